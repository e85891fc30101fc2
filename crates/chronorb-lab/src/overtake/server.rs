//! A server of the experiment: four thread pools by one strategy, and an object on each.

use std::time::Duration;

use chronorb::prelude::*;
use chronorb::rtcorba::{RequestBuffering, Threadpool, ThreadpoolId};
use chronorb_rt::{Monotonic, sleep_until};

use super::case::Pool;
use super::endless;
use super::order::{HIGH, LOW, MIDDLE, ServerOrder, Serving};
use super::plan::{HIGH_THREADS, Plan};
use crate::error::LabError;
use crate::idl::overtake::{WorkshopServant, WorkshopSkeleton};
use crate::process::{self, Parent};
use crate::work::cube;

/// Serves until the parent closes standard input.
///
/// `order` is the argument of [`SERVER_COMMAND`](super::SERVER_COMMAND), made by
/// [`Overtake`](super::Overtake).
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB
/// fails.
pub fn server_main(order: &str) -> Result<(), LabError> {
    let ServerOrder {
        strategy,
        lock_memory,
        plan,
    } = process::order(order)?;
    let orb = orb(lock_memory, &["-ORBThreadpoolStrategy", strategy.option()])?;
    let mut references = Vec::new();
    for pool in Pool::ALL {
        let reference = offer(&orb, pool, &plan);
        let reference = reference.map_err(LabError::work("offering an object"))?;
        references.push((pool, reference));
    }

    let stopped = orb.clone();
    let _parent = Parent::listen(move || {
        // Without its parent the server has nobody to tell why it could not stop in order.
        let _ = stopped.shutdown(false);
    });
    process::tell(&Serving { references })?;
    orb.run();
    Ok(())
}

/// Makes an ORB of the experiment, for a server or a client.
pub(super) fn orb(lock_memory: bool, options: &[&str]) -> Result<Orb, LabError> {
    let fixed = [
        "overtake",
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

/// Activates an object on a pool and returns its reference.
fn offer(
    orb: &Orb,
    pool: Pool,
    plan: &Plan,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let policies = [
        Policy::Threadpool(threadpool(orb, pool, plan)?),
        Policy::PriorityModel(PriorityModel::ClientPropagated, LOW),
    ];
    let name = format!("{pool:?}");
    let poa = root.create_poa(&name, Some(root.manager()), &policies)?;
    let object = poa.serve(WorkshopSkeleton::new(Workshop))?;
    root.manager().activate()?;
    Ok(orb.object_to_string(&object))
}

fn threadpool(orb: &Orb, pool: Pool, plan: &Plan) -> Result<ThreadpoolId, SystemException> {
    if pool == Pool::NoLanes {
        let threads = Threadpool::new(LOW, plan.threads());
        return orb.rt().create_threadpool(&threads);
    }
    orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![
            Lane::new(LOW, plan.lower_threads),
            Lane::new(MIDDLE, plan.lower_threads),
            Lane::new(HIGH, HIGH_THREADS),
        ],
        allow_borrowing: pool == Pool::Borrowing,
        request_buffering: (pool == Pool::Buffering).then_some(RequestBuffering {
            max_requests: plan.buffered(),
            max_octets: 0,
        }),
        ..Default::default()
    })
}

/// Does what the calls ask for.
#[derive(Debug)]
struct Workshop;

impl WorkshopServant for Workshop {
    fn cube(&self, _call: &Call<'_>, value: u8, steps: u32) -> Result<i32, SystemException> {
        Ok(cube(value, steps))
    }

    fn work_until(
        &self,
        _call: &Call<'_>,
        until_ns: u64,
        compute_us: u32,
        rest_us: u32,
    ) -> Result<u32, SystemException> {
        let latest = Monotonic::now() + LONGEST;
        let until = Monotonic::from_nanos(until_ns.min(latest.as_nanos()));
        let longest = endless::work_until(until, micros(compute_us), micros(rest_us));
        Ok(u32::try_from(longest.as_micros()).unwrap_or(u32::MAX))
    }

    fn occupy(&self, _call: &Call<'_>, length_us: u32) -> Result<(), SystemException> {
        sleep_until(Monotonic::now() + micros(length_us).min(LONGEST));
        Ok(())
    }
}

fn micros(us: u32) -> Duration {
    Duration::from_micros(us.into())
}

/// No work is longer, whatever a client asks for.
const LONGEST: Duration = Duration::from_secs(60);
