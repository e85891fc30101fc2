//! The server: an object that has a lane for each priority.

use chronorb::prelude::*;

use super::class::Class;
use super::order::{ServerOrder, Serving};
use crate::error::LabError;
use crate::idl::demo::{WorkServant, WorkSkeleton};
use crate::process::{self, Parent};
use crate::work::cube;

/// Serves until the parent closes standard input.
pub(super) fn serve(order: &ServerOrder) -> Result<(), LabError> {
    let orb = orb(order.class, order.lock_memory)?;
    let object = offer(&orb, order).map_err(LabError::work("offering the object"))?;
    let priorities: Vec<u8> = order.lanes.iter().map(|(priority, _)| *priority).collect();
    order.class.finish_lanes(&priorities)?;

    let stopped = orb.clone();
    let _parent = Parent::listen(move || {
        // Without its parent the server has nobody to tell why it could not stop in order.
        let _ = stopped.shutdown(false);
    });
    process::tell(&Serving {
        reference: orb.object_to_string(&object),
    })?;
    orb.run();
    Ok(())
}

/// Makes an ORB of the experiment, for a server or a client. CORBA priorities are native ones.
///
/// What the experiment is about is fixed, whatever the environment says.
pub(super) fn orb(class: Class, lock_memory: bool) -> Result<Orb, LabError> {
    let mut args = [
        "os",
        "-ORBListenEndpoints",
        "iiop://127.0.0.1:0",
        "-ORBRealTime",
        "preferred",
        "-ORBSchedulingPolicy",
        class.option(),
        "-ORBPriorityMapping",
        "direct",
        "-ORBThreadpoolStrategy",
        "leader-followers",
        "-ORBClientConnection",
        "exclusive",
        "-ORBClientWait",
        "block",
        "-ORBServerWait",
        "block",
        "-ORBLockMemory",
        if lock_memory { "yes" } else { "no" },
    ]
    .map(str::to_owned)
    .to_vec();
    Orb::init(&mut args).map_err(LabError::work("starting the ORB"))
}

/// The CORBA priority that is this native one.
pub(super) fn priority(native: u8) -> Priority {
    Priority::new(native.into()).expect("not negative")
}

/// Activates the object on its lanes.
fn offer(
    orb: &Orb,
    order: &ServerOrder,
) -> Result<Object, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let lanes = order.lanes.iter();
    let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: lanes
            .clone()
            .map(|(native, threads)| Lane::new(priority(*native), *threads))
            .collect(),
        ..Default::default()
    })?;
    let least = lanes.map(|(native, _)| *native).min().unwrap_or_default();
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ClientPropagated, priority(least)),
    ];
    let poa = root.create_poa("lanes", Some(root.manager()), &policies)?;
    let object = poa.serve(WorkSkeleton::new(Cuber))?;
    root.manager().activate()?;
    Ok(object)
}

/// Does what the calls ask for.
#[derive(Debug)]
struct Cuber;

impl WorkServant for Cuber {
    fn cube(&self, _call: &Call<'_>, value: u8, steps: u32) -> Result<i32, SystemException> {
        Ok(cube(value, steps))
    }
}
