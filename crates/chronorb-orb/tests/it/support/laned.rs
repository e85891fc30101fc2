//! A server whose pool, priority model and client policies a test chooses, and its connections.

use std::collections::BTreeSet;
use std::sync::Arc;

use chronorb_giop::{Component, IiopProfile};
use chronorb_orb::poa::{Policy, PriorityModel};
use chronorb_orb::rtcorba::{
    Lane, Priority, PriorityBand, PriorityBands, Threadpool, ThreadpoolLanes,
};
use chronorb_orb::{Object, Orb};

use super::{Probe, ProbeSkeleton, orb};

/// The thread pool of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pool {
    /// The ORB's own pool.
    Default,
    /// A pool without lanes.
    Plain,
    /// A pool with the lanes [`LANES`].
    Lanes,
}

pub(crate) const LANES: [i16; 3] = [10, 20, 30];
pub(crate) const PROPAGATED: PriorityModel = PriorityModel::ClientPropagated;
pub(crate) const DECLARED: PriorityModel = PriorityModel::ServerDeclared;

pub(crate) fn corba(value: i16) -> Priority {
    Priority::new(value).expect("not negative")
}

pub(crate) fn bands(ranges: &[(i16, i16)]) -> PriorityBands {
    let band = |(low, high): &(i16, i16)| PriorityBand::new(corba(*low), corba(*high));
    let bands: Vec<_> = ranges.iter().map(band).collect();
    PriorityBands::new(&bands).expect("they do not overlap")
}

/// Returns the policy that names a new pool.
pub(crate) fn pool_policy(server: &Orb, pool: Pool) -> Option<Policy> {
    let lanes = ThreadpoolLanes {
        lanes: LANES.map(|value| Lane::new(corba(value), 1)).to_vec(),
        ..Default::default()
    };
    let id = match pool {
        Pool::Default => return None,
        Pool::Plain => server
            .rt()
            .create_threadpool(&Threadpool::new(corba(LANES[0]), 1)),
        Pool::Lanes => server.rt().create_threadpool_with_lanes(&lanes),
    };
    Some(Policy::Threadpool(id.expect("the pool opens")))
}

/// A server's probe from the point of view of another ORB's client.
pub(crate) struct LanedServer {
    pub(crate) server: Orb,
    pub(crate) client: Orb,
    pub(crate) probe: Arc<Probe>,
    pub(crate) object: Object,
}

/// Returns an object of a POA with these policies.
pub(crate) fn laned(pool: Pool, policies: &[Policy]) -> LanedServer {
    laned_by(orb(), pool, policies)
}

pub(crate) fn laned_by(server: Orb, pool: Pool, policies: &[Policy]) -> LanedServer {
    let root = server.root_poa().expect("the ORB runs");
    let mut all: Vec<_> = pool_policy(&server, pool).into_iter().collect();
    all.extend_from_slice(policies);
    let poa = root
        .create_poa("rt", Some(root.manager()), &all)
        .expect("the policies agree");
    let probe = Arc::new(Probe::default());
    let object = poa
        .serve(ProbeSkeleton(probe.clone()))
        .expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = orb();
    let text = server.object_to_string(&object);
    LanedServer {
        object: client.string_to_object(&text).expect("the reference reads"),
        server,
        client,
        probe,
    }
}

impl LanedServer {
    /// Runs `f` in another thread with this CORBA priority, or without one.
    pub(crate) fn at<R: Send>(&self, value: Option<i16>, f: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|threads| {
            let thread = threads.spawn(|| {
                if let Some(value) = value {
                    self.raise(value);
                }
                f()
            });
            thread.join().expect("it does not panic")
        })
    }

    /// Gives the calling thread a CORBA priority.
    pub(crate) fn raise(&self, value: i16) {
        let current = self.client.rt_current();
        current
            .set_priority(corba(value))
            .expect("it has a native priority");
    }

    /// Returns another reference to the same object.
    pub(crate) fn another(&self) -> Object {
        let ior = self.object.ior().clone();
        self.client.ior_to_object(ior).expect("it is not nil")
    }

    /// Returns the connections to the object's server, each as the endpoint's priority (-1 if it
    /// has none) and the client's port.
    pub(crate) fn connections(&self) -> BTreeSet<(i16, u16)> {
        let endpoints = endpoints(&self.object);
        let connections = endpoints.iter().flat_map(|(priority, port)| {
            let from = connections_to(*port);
            from.into_iter().map(|from| (*priority, from))
        });
        connections.collect()
    }

    /// Returns the priorities of the connected endpoints, one for each connection.
    pub(crate) fn connected(&self) -> Vec<i16> {
        self.connections().into_iter().map(|(to, _)| to).collect()
    }
}

impl Drop for LanedServer {
    fn drop(&mut self) {
        self.probe.gate.set(u32::MAX);
        let _ = self.client.shutdown(false);
        let _ = self.server.shutdown(true);
    }
}

/// Returns the endpoints in a reference, each with its priority.
pub(crate) fn endpoints(object: &Object) -> BTreeSet<(i16, u16)> {
    let profile = IiopProfile::decode(&object.ior().profiles[0].data).expect("our own");
    let mut lanes = BTreeSet::new();
    for component in &profile.components {
        if let Ok(Component::TaoEndpoints(endpoints)) = component.typed() {
            lanes.extend(endpoints.iter().map(|e| (e.priority, e.port)));
        }
    }
    if lanes.is_empty() {
        lanes.insert((-1, profile.port));
    }
    lanes
}

/// Returns the local ports of connections to a port of this machine, by proc(5).
///
/// A table that changes while it is read misses lines or repeats them, so that only two equal
/// readings count.
pub(crate) fn connections_to(port: u16) -> BTreeSet<u16> {
    let mut reading = read_connections_to(port);
    loop {
        let next = read_connections_to(port);
        if next == reading {
            return reading;
        }
        reading = next;
    }
}

fn read_connections_to(port: u16) -> BTreeSet<u16> {
    const ESTABLISHED: &str = "01";
    let table = std::fs::read_to_string("/proc/self/net/tcp").expect("proc is mounted");
    let port_of = |address: &str| u16::from_str_radix(address.rsplit(':').next()?, 16).ok();
    let connections = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
        (state == ESTABLISHED && port_of(remote)? == port).then(|| port_of(local))?
    });
    connections.collect()
}
