//! The server: two servants, one of high and one of low priority.

use chronorb::prelude::*;
use chronorb::rtcorba::{Threadpool, ThreadpoolId};
use chronorb_probe::keep_activity_times;

use super::super::server::Bench;
use super::configuration::{Configuration, Pool};
use super::order::{Objects, Pass, ServerOrder};
use crate::bench;
use crate::error::LabError;
use crate::idl::whitebox::BenchSkeleton;

/// The priority of one client and its servant.
pub(super) const HIGH: Priority = Priority::new(20_000).expect("not negative");
/// That of the nine others and theirs.
pub(super) const LOW: Priority = Priority::new(10_000).expect("not negative");

/// Serves until the parent closes standard input.
pub(in super::super) fn serve(order: &ServerOrder) -> Result<(), LabError> {
    let (configuration, orb) = orb(order)?;
    let objects = offer(&orb, configuration).map_err(LabError::work("offering the objects"))?;
    bench::serve(&orb, &objects)
}

/// Makes an ORB of the architecture, for a server or a client.
///
/// What else there is to set is fixed, whatever the environment says.
pub(super) fn orb(order: &ServerOrder) -> Result<(&'static Configuration, Orb), LabError> {
    let none = || {
        let name = &order.architecture;
        LabError::work("finding the architecture")(format!("there is none called {name}"))
    };
    let configuration = Configuration::named(&order.architecture).ok_or_else(none)?;
    let orb = bench::start_orb(&[
        "-ORBRealTime",
        "preferred",
        "-ORBArchitecture",
        configuration.name(),
        "-ORBClientWait",
        "block",
        "-ORBServerWait",
        "block",
    ])?;
    if order.pass == Pass::Timed {
        keep_activity_times();
    }
    Ok((configuration, orb))
}

fn offer(
    orb: &Orb,
    configuration: &Configuration,
) -> Result<Objects, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let pool = threadpool(orb, configuration.pool)?;
    let offer = |name: &str, priority| {
        let policies = [
            Policy::Threadpool(pool),
            Policy::PriorityModel(PriorityModel::ServerDeclared, priority),
        ];
        let poa = root.create_poa(name, Some(root.manager()), &policies)?;
        let object = poa.serve(BenchSkeleton::new(Bench::default()))?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(orb.object_to_string(&object))
    };
    let objects = Objects {
        high: offer("high", HIGH)?,
        low: offer("low", LOW)?,
    };
    root.manager().activate()?;
    Ok(objects)
}

fn threadpool(orb: &Orb, pool: Pool) -> Result<ThreadpoolId, SystemException> {
    match pool {
        Pool::Lanes => orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
            lanes: [LOW, HIGH].map(|priority| Lane::new(priority, 1)).to_vec(),
            ..Default::default()
        }),
        Pool::Shared => orb.rt().create_threadpool(&Threadpool::new(HIGH, 2)),
    }
}
