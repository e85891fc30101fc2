//! The endpoints of servers; clients do not listen.

use std::sync::Arc;

use chronorb_orb::{Orb, PeerProof};
use chronorb_transport::parse_endpoints;

use crate::support::{Probe, ProbeSkeleton, add, orb_with, served};

fn server(endpoints: &str) -> Orb {
    let orb = orb_with(|config| {
        config.listen_endpoints = parse_endpoints(endpoints).expect("endpoints");
    });
    let root = orb.root_poa().expect("it is new");
    root.serve(ProbeSkeleton(Arc::new(Probe::default())))
        .expect("the endpoints open");
    orb
}

#[test]
fn an_orb_that_only_calls_opens_no_port() {
    let s = served();
    // All that a client may do without an object of its own.
    let root = s.client.root_poa().expect("it is new");
    root.manager().activate().expect("it was not deactivated");
    root.create_poa("child", None, &[])
        .expect("the name is free");
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    s.object.validate_connection().expect("it is there");
    let listening = s.client.listening();
    assert_eq!(listening.endpoints, []);
    assert_eq!(listening.to_string(), "listens nowhere");
    assert!(s.client.snapshot().pools.is_empty());
    // The first object opens the endpoints.
    root.serve(ProbeSkeleton(Arc::new(Probe::default())))
        .expect("the endpoints open");
    assert_eq!(s.client.listening().endpoints.len(), 1);
}

#[test]
fn a_server_tells_in_one_line_where_it_listens_and_what_peers_prove() {
    let orb = server("iiop://127.0.0.1:0");
    let listening = orb.listening();
    let [endpoint] = &listening.endpoints[..] else {
        panic!("{listening:?}");
    };
    assert_eq!(endpoint.proof, PeerProof::Nothing);
    assert!(!endpoint.on_all_interfaces);
    let line = listening.to_string();
    assert_eq!(
        line,
        format!("listens at {} (not authenticated)", endpoint.endpoint)
    );
    assert!(!line.contains('\n'));
    orb.shutdown(true).expect("it serves nothing");
}

#[cfg(feature = "uiop")]
#[test]
fn open_endpoints_and_low_limits_are_warned_of() {
    let orb = orb_with(|config| {
        config.listen_endpoints = parse_endpoints("uiop://;iiop://:0").expect("endpoints");
        config.max_connections = 1 << 20;
    });
    let root = orb.root_poa().expect("it is new");
    root.serve(ProbeSkeleton(Arc::new(Probe::default())))
        .expect("the endpoints open");
    let line = orb.listening().to_string();
    assert!(line.contains(" (user known)"), "{line}");
    assert!(
        line.contains(" (all interfaces, not authenticated)"),
        "{line}"
    );
    assert!(line.contains("(-ORBMaxConnections)"), "{line}");
    // On a machine without a network even all interfaces are the loopback one.
    let is_alone = line.contains("iiop://127.0.0.1");
    assert!(
        is_alone || line.contains("-ORBServerTransportRule"),
        "{line}"
    );
    orb.shutdown(true).expect("it serves nothing");
}
