//! Calls by protocols other than IIOP: all kinds of calls, with all strategies of both sides.

use chronorb_giop::{IiopProfile, PathProfile, TAG_DIOP, TAG_UIOP};
use chronorb_orb::{
    CompletionStatus, Object, Operation, Orb, Scope, SystemException, SystemExceptionKind,
    ThreadpoolStrategy,
};
use chronorb_transport::parse_endpoints;
use std::sync::atomic::Ordering;

use crate::support::descriptors::uncopied;
use crate::support::strategies::STRATEGIES;
use crate::support::{
    BASE_ID, PATIENCE, Probe, ServedProbe, add, call, echo, kind_and_completion, nothing, orb_with,
    served_by,
};

/// The endpoints of servers, for each of the protocols.
const ENDPOINTS: &[&str] = &[
    #[cfg(feature = "uiop")]
    "uiop://",
    #[cfg(feature = "diop")]
    "diop://127.0.0.1:0",
    #[cfg(feature = "diop")]
    "diop://",
];

fn server(endpoint: &str) -> Orb {
    orb_with(|config| {
        config.listen_endpoints = parse_endpoints(endpoint).expect("an endpoint");
    })
}

fn clients() -> Vec<Orb> {
    let client = |strategy| orb_with(|config| config.client_connection = strategy);
    STRATEGIES.map(client).into()
}

fn at(client: &Orb, s: &ServedProbe) -> Object {
    let object = client.ior_to_object(s.object.ior().clone());
    object.expect("it is not nil")
}

fn echo_octets(object: &Object, len: usize) -> Result<(), SystemException> {
    let octets: Vec<u8> = (0..len).map(|i| (i * 7 + i / 250) as u8).collect();
    let write = |e: &mut chronorb_cdr::Encoder<'_>| e.write_octet_seq(&octets);
    let back = call(object, "octets", &write, |d| {
        Ok(d.read_octet_seq()?.to_vec())
    })?;
    assert!(back == octets, "{len} octets");
    Ok(())
}

fn call_in_every_way(object: &Object, probe: &Probe) {
    assert_eq!(object.validate_connection(), Ok(()));
    for n in 0..50 {
        assert_eq!(add(object, n, 1), Ok(n + 1));
    }
    assert_eq!(echo(object, "Größe"), Ok("Größe".to_owned()));
    for len in [0, 1, 1000, 10_000, 16_384, 20_000, 60_000] {
        assert_eq!(echo_octets(object, len), Ok(()));
    }
    let failed = kind_and_completion(nothing(object, "fail"));
    let expected = (SystemExceptionKind::NoPermission, CompletionStatus::Maybe);
    assert_eq!(failed, expected);
    let refused = call(object, "refuse", &|e| e.write_str("no"), |_| Ok(()));
    assert_eq!(
        refused.expect_err("it refuses").kind,
        SystemExceptionKind::Unknown
    );
    assert_eq!(object.is_a(BASE_ID), Ok(true));
    assert_eq!(object.is_a("IDL:Test/Other:1.0"), Ok(false));

    let before = probe.notes.load(Ordering::Relaxed);
    for n in 1..=20 {
        Scope::with(|_| object.invoke_oneway(&Operation::oneway("note"), &|_| Ok(())))
            .expect("it is sent");
        let deadline = chronorb_rt::Deadline::after(PATIENCE);
        while probe.notes.load(Ordering::Relaxed) < before + n {
            assert!(!deadline.has_passed(), "note {n} is lost");
            std::thread::yield_now();
        }
    }
}

#[test]
fn every_kind_of_call_goes_by_every_protocol_and_connection() {
    for endpoint in ENDPOINTS {
        let s = served_by(server(endpoint));
        for client in clients() {
            call_in_every_way(&at(&client, &s), &s.probe);
            client.shutdown(false).expect("it runs");
        }
    }
}

#[test]
fn every_way_to_serve_serves_every_protocol() {
    #[cfg(feature = "baselines")]
    use ThreadpoolStrategy::WorkerPool;
    use ThreadpoolStrategy::{HalfSyncHalfAsync, LeaderFollowers, Reactive, ThreadPerConnection};
    for endpoint in ENDPOINTS {
        for strategy in [
            LeaderFollowers,
            HalfSyncHalfAsync,
            ThreadPerConnection,
            Reactive,
            #[cfg(feature = "baselines")]
            WorkerPool,
        ] {
            let s = served_by(orb_with(|config| {
                config.listen_endpoints = parse_endpoints(endpoint).expect("an endpoint");
                config.threadpool_strategy = strategy;
            }));
            call_in_every_way(&s.object, &s.probe);
        }
    }
}

#[test]
fn several_threads_share_a_connection_or_have_their_own() {
    for endpoint in ENDPOINTS {
        let s = served_by(server(endpoint));
        for client in clients() {
            let object = at(&client, &s);
            std::thread::scope(|threads| {
                for thread in 0..4 {
                    let object = &object;
                    threads.spawn(move || {
                        for n in 0..200 {
                            assert_eq!(add(object, thread, n), Ok(thread + n));
                        }
                    });
                }
            });
            client.shutdown(false).expect("it runs");
        }
    }
}

/// Returns the URL of a name at the first address of a reference.
fn url(object: &Object, name: &str) -> String {
    let profile = &object.ior().profiles[0];
    match profile.tag {
        TAG_UIOP => {
            let told = PathProfile::decode(&profile.data).expect("our own");
            format!("corbaloc:uiop:1.2@{}|/{name}", told.path)
        }
        TAG_DIOP => {
            let told = IiopProfile::decode(&profile.data).expect("our own");
            format!("corbaloc:diop:1.2@{}:{}/{name}", told.host, told.port)
        }
        other => panic!("a profile of {other:#x}"),
    }
}

#[test]
fn urls_name_every_protocol_and_forwards_are_followed() {
    for endpoint in ENDPOINTS {
        let s = served_by(server(endpoint));
        s.server
            .register_initial_reference("Probe", &s.object)
            .expect("the name is free");
        let url = url(&s.object, "Probe");
        for client in clients() {
            let named = client.string_to_object(&url).expect("a correct URL");
            assert_eq!(add(&named, 1, 2), Ok(3), "{url}");
            assert_eq!(named.validate_connection(), Ok(()));
            client.shutdown(false).expect("it runs");
        }
    }
}

#[test]
fn a_server_that_is_gone_is_told_of() {
    for endpoint in ENDPOINTS {
        let s = served_by(server(endpoint));
        assert_eq!(add(&s.object, 1, 2), Ok(3));
        let _uncopied = uncopied();
        s.server.shutdown(true).expect("it runs");
        let (kind, _) = kind_and_completion(add(&s.object, 1, 2));
        assert!(
            matches!(
                kind,
                SystemExceptionKind::Transient | SystemExceptionKind::CommFailure
            ),
            "{endpoint}: {kind:?}"
        );
    }
}
