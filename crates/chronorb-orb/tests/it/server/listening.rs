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

/// The warnings of a server about the host in its references.
fn warnings_of_hosts(endpoint: &str) -> Vec<String> {
    let orb = server(endpoint);
    let warnings = orb.listening().warnings.into_iter();
    let of_hosts = warnings.filter(|warning| warning.starts_with("references name the host"));
    let of_hosts = of_hosts.collect();
    orb.shutdown(true).expect("it serves nothing");
    of_hosts
}

#[test]
fn a_published_host_that_is_the_loopback_is_warned_of() {
    for host in ["localhost", "127.0.1.1", "::1"] {
        let warnings = warnings_of_hosts(&format!("iiop://:0/hostname_in_ior={host}"));
        let expected = format!(
            "references name the host {host}, which is the loopback: no other machine reaches it \
             (hostname_in_ior)"
        );
        assert_eq!(warnings, [expected]);
    }
}

#[test]
fn a_published_host_that_does_not_resolve_is_warned_of() {
    // A name that no server of names has (RFC 6761).
    let warnings = warnings_of_hosts("iiop://:0/hostname_in_ior=radar.invalid:2809");
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    let expected = "references name the host radar.invalid, which does not resolve here: ";
    assert!(warning.starts_with(expected), "{warning}");
    assert!(warning.ends_with(" (hostname_in_ior)"), "{warning}");
}

#[test]
fn a_published_host_is_not_warned_of_where_it_is_right_or_the_endpoint_is_local_anyway() {
    for endpoint in [
        "iiop://:0/hostname_in_ior=192.0.2.7",
        "iiop://127.0.0.1:0",
        "iiop://localhost:0",
        "iiop://127.0.0.1:0/hostname_in_ior=localhost",
    ] {
        assert_eq!(warnings_of_hosts(endpoint), [""; 0], "{endpoint}");
    }
}
