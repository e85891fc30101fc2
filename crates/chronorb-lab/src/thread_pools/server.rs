//! A server of the experiment: one lane, by one strategy, and an object that computes.

use chronorb::prelude::*;

use super::order::{ServerOrder, Serving};
use crate::error::LabError;
use crate::idl::demo::{WorkServant, WorkSkeleton};
use crate::process::{self, Parent};
use crate::work::cube;

/// Serves until the parent closes standard input.
///
/// `order` is the argument of [`SERVER_COMMAND`](super::SERVER_COMMAND), made by the experiment.
///
/// # Errors
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB fails.
pub fn server_main(order: &str) -> Result<(), LabError> {
    let ServerOrder {
        strategy,
        threads,
        terms,
    } = process::order(order)?;
    let orb = orb(
        terms.lock_memory,
        &["-ORBThreadpoolStrategy", strategy.option()],
    )?;
    let reference = offer(&orb, threads, terms.priority());
    let reference = reference.map_err(LabError::work("offering the object"))?;

    let stopped = orb.clone();
    let _parent = Parent::listen(move || {
        // Without its parent the server has nobody to tell why it could not stop in order.
        let _ = stopped.shutdown(false);
    });
    process::tell(&Serving { reference })?;
    orb.run();
    Ok(())
}

/// Makes an ORB of the experiment, for a server or a client.
pub(super) fn orb(lock_memory: bool, options: &[&str]) -> Result<Orb, LabError> {
    let fixed = [
        "thread-pools",
        "-ORBListenEndpoints",
        "iiop://127.0.0.1:0",
        "-ORBRealTime",
        "preferred",
        "-ORBLockMemory",
        if lock_memory { "yes" } else { "no" },
    ];
    let mut args = fixed
        .iter()
        .chain(options)
        .map(|text| (*text).to_owned())
        .collect();
    Orb::init(&mut args).map_err(LabError::work("starting the ORB"))
}

/// Activates the object in a lane of so many threads, and returns its reference.
fn offer(
    orb: &Orb,
    threads: u32,
    priority: Priority,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![Lane::new(priority, threads)],
        ..Default::default()
    })?;
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ServerDeclared, priority),
    ];
    let poa = root.create_poa("work", Some(root.manager()), &policies)?;
    let object = poa.serve(WorkSkeleton::new(Worker))?;
    root.manager().activate()?;
    Ok(orb.object_to_string(&object))
}

#[derive(Debug)]
struct Worker;

impl WorkServant for Worker {
    fn cube(&self, _call: &Call<'_>, value: u8, steps: u32) -> Result<i32, SystemException> {
        Ok(cube(value, steps))
    }
}
