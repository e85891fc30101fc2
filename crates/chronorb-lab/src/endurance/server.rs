//! The servers.

use chronorb::config::{OrbConfig, RealTimeMode};
use chronorb::poa::{IdAssignment, Lifespan, ObjectId};
use chronorb::prelude::*;
use chronorb::transport::{Endpoint, parse_endpoints};
use chronorb_naming::store::{Directory, Store};
use chronorb_naming::{Limits, NameServer, Tree, unused_number};
use chronorb_rt::Monotonic;
use chronorb_rtec::{EventServer, keep_order};

use super::order::EnduranceServer;
use super::plan::ServerKind;
use crate::bench::{self, Model, PoolSpec};
use crate::error::LabError;
use crate::idl::endurance::{EchoServant, EchoSkeleton};

/// An error of any type, as it ends the process.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Serves until the parent closes standard input.
pub(super) fn serve(order: &EnduranceServer) -> Result<(), LabError> {
    let orb = orb(|config| {
        // References stay valid when the server starts again. The root POA of the echo's server
        // serves nothing, and so its endpoint is not opened; the first lane has its port.
        if order.kind == ServerKind::Echo {
            let lanes = [LOW_LANE, HIGH_LANE].into_iter();
            let lanes = lanes.flat_map(|lane| {
                let at = at(order.port + u16::from(lane)).into_iter();
                at.map(move |at| ((1, lane.into()), at))
            });
            config.lane_listen_endpoints = lanes.collect();
        } else {
            config.listen_endpoints = at(order.port);
        }
        if order.kind == ServerKind::Events {
            keep_order(config);
        }
    })?;
    let root = orb.root_poa().map_err(LabError::work(SERVING))?;
    root.manager().activate().map_err(LabError::work(SERVING))?;
    match order.kind {
        ServerKind::Echo => {
            offer(&orb).map_err(LabError::work(SERVING))?;
            bench::serve(&orb, &order.port)
        }
        ServerKind::Names => {
            let server = stored(order).map_err(LabError::work(SERVING))?;
            let _service = server.serve_in(&root).map_err(LabError::work(SERVING))?;
            bench::serve(&orb, &order.port)
        }
        ServerKind::Events => {
            let _service = EventServer::new()
                .serve_in(&root)
                .map_err(LabError::work(SERVING))?;
            bench::serve(&orb, &order.port)
        }
    }
}

/// Returns the endpoint of a port.
fn at(port: u16) -> Vec<Endpoint> {
    parse_endpoints(&format!("iiop://127.0.0.1:{port}")).unwrap_or_default()
}

/// Starts an ORB of this machine alone, with real-time priorities if they are permitted.
pub(super) fn orb(change: impl FnOnce(&mut OrbConfig)) -> Result<Orb, LabError> {
    let mut config = OrbConfig::default();
    config.listen_endpoints =
        parse_endpoints("iiop://127.0.0.1:0").map_err(LabError::work("choosing an endpoint"))?;
    config.real_time = RealTimeMode::Preferred;
    change(&mut config);
    Orb::with_config(config).map_err(LabError::work("starting the ORB"))
}

/// Serves the echo by a lane of each priority.
fn offer(orb: &Orb) -> Result<(), Failure> {
    let root = orb.root_poa()?;
    let pool = PoolSpec::lanes([(LOW, 2), (HIGH, 1)]).make(orb)?;
    let policies = [
        Policy::Threadpool(pool),
        Model::Propagated(LOW).policy(),
        Policy::Lifespan(Lifespan::Persistent),
        Policy::IdAssignment(IdAssignment::User),
    ];
    let poa = root.create_poa("echo", Some(root.manager()), &policies)?;
    let id = ObjectId::from("echo");
    poa.activate_object_with_id(id.clone(), EchoSkeleton::new(Echo))?;
    let object = poa.id_to_reference(&id)?;
    orb.register_initial_reference(ServerKind::Echo.name(), &object)?;
    Ok(())
}

/// Opens the store of a name server.
fn stored(order: &EnduranceServer) -> Result<NameServer, Failure> {
    let now = Monotonic::now();
    let mut tree = Tree::new(unused_number());
    let files = Directory::open(order.store.clone())?;
    let store = Store::open(files, |change| tree.apply(&change, now))?;
    Ok(NameServer::new()
        .limits(Limits::default())
        .state(tree, store))
}

#[derive(Debug)]
struct Echo;

impl EchoServant for Echo {
    fn repeat(&self, _call: &Call<'_>, number: u32) -> Result<u32, SystemException> {
        Ok(number)
    }
}

/// The numbers of the lanes.
const LOW_LANE: u8 = 0;
const HIGH_LANE: u8 = 1;
/// The priorities of the lanes.
pub(super) const LOW: i16 = 5_000;
pub(super) const HIGH: i16 = 15_000;
const SERVING: &str = "serving";
