//! A server of the experiment: two servants, one of high and one of low priority.

use chronorb::prelude::*;
use chronorb::rtcorba::{Threadpool, ThreadpoolId};

use super::architecture::Pool;
use super::order::{HIGH, LOW, ServerOrder, Serving};
use crate::error::LabError;
use crate::idl::peers::{PowerServant, PowerSkeleton};
use crate::process::{self, Parent};
use crate::work::cube;

/// Serves until the parent closes standard input.
///
/// `order` is the argument of [`SERVER_COMMAND`](super::SERVER_COMMAND).
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB fails.
pub fn server_main(order: &str) -> Result<(), LabError> {
    let order: ServerOrder = process::order(order)?;
    let orb = orb(
        &order.architecture,
        &order.host,
        order.lock_memory,
        &order.options,
    )?;
    let serving = offer(&orb, &order).map_err(LabError::work("offering the objects"))?;
    let stopped = orb.clone();
    let _parent = Parent::listen(move || {
        // Without its parent the server has nobody to tell why it could not stop in order.
        let _ = stopped.shutdown(false);
    });
    process::tell(&serving)?;
    orb.run();
    Ok(())
}

/// Makes an ORB of the experiment, for a server or a client.
///
/// How threads wait is fixed, whatever the environment says.
pub(super) fn orb(
    architecture: &str,
    host: &str,
    lock_memory: bool,
    options: &[String],
) -> Result<Orb, LabError> {
    let endpoint = format!("iiop://{host}:0");
    let fixed = [
        "inversion",
        "-ORBListenEndpoints",
        &endpoint,
        "-ORBRealTime",
        "preferred",
        "-ORBClientWait",
        "block",
        "-ORBServerWait",
        "block",
        "-ORBLockMemory",
        if lock_memory { "yes" } else { "no" },
        "-ORBArchitecture",
        architecture,
    ];
    let mut args = fixed.map(str::to_owned).to_vec();
    args.extend_from_slice(options);
    Orb::init(&mut args).map_err(LabError::work("starting the ORB"))
}

/// Activates both objects and returns their references.
fn offer(
    orb: &Orb,
    order: &ServerOrder,
) -> Result<Serving, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let pool = threadpool(orb, order)?;
    let offer = |name: &str, priority| {
        let policies = [
            Policy::Threadpool(pool),
            Policy::PriorityModel(PriorityModel::ServerDeclared, priority),
        ];
        let poa = root.create_poa(name, Some(root.manager()), &policies)?;
        let servant = Worker { steps: order.steps };
        let object = poa.serve(PowerSkeleton::new(servant))?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(orb.object_to_string(&object))
    };
    let serving = Serving {
        high: offer("high", HIGH)?,
        low: offer("low", LOW)?,
    };
    root.manager().activate()?;
    Ok(serving)
}

fn threadpool(orb: &Orb, order: &ServerOrder) -> Result<ThreadpoolId, SystemException> {
    match order.pool {
        Pool::Lanes => orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
            lanes: [LOW, HIGH]
                .map(|priority| Lane::new(priority, order.threads))
                .to_vec(),
            ..Default::default()
        }),
        Pool::Shared => {
            let threads = Threadpool::new(HIGH, SERVANTS * order.threads);
            orb.rt().create_threadpool(&threads)
        }
    }
}

/// Computes for a while, and then the cube.
#[derive(Debug)]
struct Worker {
    steps: u32,
}

impl PowerServant for Worker {
    fn cube(&self, _call: &Call<'_>, v: u8) -> Result<i32, SystemException> {
        Ok(cube(v, self.steps))
    }
}

const SERVANTS: u32 = 2;
