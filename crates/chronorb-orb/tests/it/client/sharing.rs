//! One connection for requests of all priorities, if that is configured.

use chronorb_giop::{Component, IiopProfile, Ior, TaggedProfile};
use chronorb_orb::poa::{Policy, PriorityModel};
use chronorb_orb::{ConnectionStrategy, Object, Orb};
use chronorb_rt::Scheduling;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::laned::{DECLARED, LANES, PROPAGATED, Pool, corba, laned};
use crate::support::raw_server::{Peer, RawServer, object_at, raw_server};
use crate::support::strategies::SHARED;
use crate::support::{Latch, add, has_real_time, orb_with};

const MODELS: [PriorityModel; 2] = [DECLARED, PROPAGATED];

/// The origin of a calling thread's priority.
#[derive(Clone, Copy, Debug)]
enum Caller {
    /// The thread has ordinary scheduling.
    Ordinary,
    /// The thread has set its CORBA priority.
    Corba(i16),
    /// The thread has real-time scheduling that the ORB was not told of.
    Native(u8),
}

const CALLERS: [Caller; 8] = [
    Caller::Ordinary,
    Caller::Corba(LANES[0]),
    Caller::Corba(LANES[1]),
    Caller::Corba(LANES[2]),
    Caller::Native(1),
    Caller::Native(40),
    Caller::Corba(LANES[0]),
    Caller::Ordinary,
];

fn client(strategy: ConnectionStrategy) -> Orb {
    orb_with(|config| {
        config.client_connection = strategy;
        config.share_connections_across_priorities = true;
    })
}

/// Calls an object from threads of all kinds, and counts the connections that they have at the same
/// time.
fn connections_of_all(client: &Orb, object: &Object, connections: impl Fn() -> usize) -> usize {
    let (called, go_on) = (Latch::default(), Latch::default());
    let arrived = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for caller in CALLERS {
            let (called, go_on, arrived) = (&called, &go_on, &arrived);
            scope.spawn(move || {
                become_one(client, caller);
                for i in 0..20 {
                    assert_eq!(add(object, i, 2), Ok(i + 2), "{caller:?}");
                }
                if arrived.fetch_add(1, Ordering::SeqCst) + 1 == CALLERS.len() {
                    called.set(1);
                }
                go_on.reach(1);
            });
        }
        called.reach(1);
        let connections = connections();
        go_on.set(1);
        connections
    })
}

fn become_one(client: &Orb, caller: Caller) {
    match caller {
        Caller::Ordinary => {}
        Caller::Corba(value) => {
            let current = client.rt_current();
            current.set_priority(corba(value)).expect("it is mapped");
            let scheduling = chronorb_rt::current().expect("it has a policy");
            assert_eq!(
                scheduling.policy == chronorb_rt::Policy::Fifo,
                has_real_time()
            );
        }
        Caller::Native(priority) if has_real_time() => {
            chronorb_rt::set_current(Scheduling::fifo(priority)).expect("it has the right");
        }
        Caller::Native(_) => {
            eprintln!("NOT TESTED: without real-time rights all threads are ordinary ones.");
        }
    }
}

/// Returns an object of a pool with lanes, all of which have the address of `server`.
fn at_one_endpoint(client: &Orb, server: &RawServer, model: PriorityModel) -> Object {
    let s = laned(
        Pool::Lanes,
        &[Policy::PriorityModel(model, corba(LANES[0]))],
    );
    let ior = s.object.ior();
    let mut profile = IiopProfile::decode(&ior.profiles[0].data).expect("our own");
    profile.port = server.address.port();
    let mut lanes = 0;
    for component in &mut profile.components {
        if let Ok(Component::TaoEndpoints(mut endpoints)) = component.typed() {
            for endpoint in &mut endpoints {
                endpoint.port = server.address.port();
                lanes += 1;
            }
            let endpoints = Component::TaoEndpoints(endpoints);
            *component = endpoints.tagged().expect("it fits");
        }
    }
    assert_eq!(lanes, LANES.len(), "each lane has its endpoint");
    let tagged = TaggedProfile {
        data: profile.encode().expect("it fits"),
        ..ior.profiles[0].clone()
    };
    let ior = Ior {
        profiles: vec![tagged],
        ..ior.clone()
    };
    client.ior_to_object(ior).expect("it is not nil")
}

#[test]
fn threads_of_all_priorities_share_one_connection_to_an_endpoint() {
    for strategy in SHARED {
        let client = client(strategy);
        let server = raw_server(Peer::answer_all);
        let object = object_at(&client, server.address);
        let connections = connections_of_all(&client, &object, || server.connections());
        assert_eq!(connections, 1, "{strategy:?}");
    }
}

#[test]
fn objects_with_a_declared_priority_are_reached_by_one_connection() {
    for strategy in SHARED {
        for pool in [Pool::Default, Pool::Plain, Pool::Lanes] {
            let client = client(strategy);
            let declared = Policy::PriorityModel(DECLARED, corba(LANES[0]));
            let s = laned(pool, &[declared]);
            let text = s.server.object_to_string(&s.object);
            let object = client.string_to_object(&text).expect("the reference reads");
            let connections = connections_of_all(&client, &object, || s.connections().len());
            assert_eq!(connections, 1, "{strategy:?}, {pool:?}");
        }
    }
}

#[test]
fn lanes_that_publish_the_same_endpoint_are_reached_by_one_connection() {
    for strategy in SHARED {
        for model in MODELS {
            let client = client(strategy);
            let server = raw_server(Peer::answer_all);
            let object = at_one_endpoint(&client, &server, model);
            let connections = connections_of_all(&client, &object, || server.connections());
            assert_eq!(connections, 1, "{strategy:?}, {model:?}");
        }
    }
}

#[test]
fn lanes_with_endpoints_of_their_own_have_a_connection_each_all_the_same() {
    for strategy in SHARED {
        let client = client(strategy);
        let s = laned(
            Pool::Lanes,
            &[Policy::PriorityModel(PROPAGATED, corba(LANES[0]))],
        );
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("the reference reads");
        let connections = connections_of_all(&client, &object, || s.connections().len());
        assert_eq!(connections, LANES.len(), "{strategy:?}");
    }
}
