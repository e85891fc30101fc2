//! The server of the demonstration.

use chronorb::prelude::*;

use super::order::{HIGH_PRIORITY, LOW_PRIORITY, ServerOrder, Serving};
use crate::comparison::Setup;
use crate::error::LabError;
use crate::idl::demo::{WorkServant, WorkSkeleton};
use crate::process::{self, Parent};
use crate::work;

/// Serves until the parent closes standard input.
///
/// `order` is the argument of [`SERVER_COMMAND`](super::SERVER_COMMAND), made by [`run`](super::run).
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB fails.
pub fn server_main(order: &str) -> Result<(), LabError> {
    let ServerOrder { priorities, setup } = process::order(order)?;
    let orb = if priorities {
        orb(&["-ORBRealTime", "preferred"])
    } else {
        let threads = (setup.low_lane_threads + setup.high_lane_threads).to_string();
        orb(&["-ORBRealTime", "off", "-ORBThreads", &threads])
    }?;
    let reference =
        offer(&orb, &setup, priorities).map_err(LabError::work("offering the object"))?;

    let stopped = orb.clone();
    let _parent = Parent::listen(move || {
        // Without its parent the server has nobody to tell why it could not stop in order.
        let _ = stopped.shutdown(false);
    });
    process::tell(&Serving { reference })?;
    orb.run();
    Ok(())
}

/// Makes an ORB of the demonstration, for the server or a client.
pub(super) fn orb(options: &[&str]) -> Result<Orb, LabError> {
    let mut args = ["demo", "-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .iter()
        .chain(options)
        .map(|text| (*text).to_owned())
        .collect();
    Orb::init(&mut args).map_err(LabError::work("starting the ORB"))
}

/// Activates the object and returns its reference.
fn offer(
    orb: &Orb,
    setup: &Setup,
    priorities: bool,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let poa = if priorities {
        let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
            lanes: vec![
                Lane::new(LOW_PRIORITY, setup.low_lane_threads),
                Lane::new(HIGH_PRIORITY, setup.high_lane_threads),
            ],
            ..Default::default()
        })?;
        root.create_poa(
            "demo",
            Some(root.manager()),
            &[
                Policy::Threadpool(pool),
                Policy::PriorityModel(PriorityModel::ClientPropagated, LOW_PRIORITY),
            ],
        )?
    } else {
        root.clone()
    };
    let object = poa.serve(WorkSkeleton::new(Worker))?;
    root.manager().activate()?;
    Ok(orb.object_to_string(&object))
}

/// Does what the calls ask for.
#[derive(Debug)]
struct Worker;

impl WorkServant for Worker {
    fn cube(&self, _call: &Call<'_>, value: u8, steps: u32) -> Result<i32, SystemException> {
        Ok(work::cube(value, steps))
    }
}
