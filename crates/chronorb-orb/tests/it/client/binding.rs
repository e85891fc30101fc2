//! Explicit binding, after which no call connects, and private connections.

use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{ClientPolicy, Protocol, Protocols, SetOverride};
use chronorb_orb::{BindError, Collocation, Object, SystemExceptionKind};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::support::adapters::omg;
use crate::support::laned::{DECLARED, LANES, PROPAGATED, Pool, bands, corba, laned};
use crate::support::{add, orb, orb_with, priority};

const TWO: [(i16, i16); 2] = [(0, 15), (16, 40)];

fn with(object: &Object, policy: ClientPolicy) -> Object {
    object
        .with_policy_overrides(&[policy], SetOverride::Add)
        .expect("there is one of the kind")
}

fn banded(object: &Object, ranges: &[(i16, i16)]) -> Object {
    with(
        object,
        ClientPolicy::PriorityBandedConnection(bands(ranges)),
    )
}

fn propagated() -> Policy {
    Policy::PriorityModel(PROPAGATED, corba(LANES[0]))
}

#[test]
fn binding_connects_to_every_lane_of_every_band_and_calls_connect_no_more() {
    let s = laned(Pool::Lanes, &[propagated()]);
    let object = banded(&s.object, &TWO);
    s.at(Some(12), || {
        assert_eq!(object.validate_connection(), Ok(()));
        let connections = s.connections();
        assert_eq!(s.connected(), LANES);
        for value in [0, 10, 12, 15, 16, 20, 25, 30] {
            s.raise(value);
            assert_eq!(priority(&object).map(|(corba, _)| corba), Ok(value));
        }
        assert_eq!(s.connections(), connections);
        // Nor does binding again.
        assert_eq!(object.validate_connection(), Ok(()));
        assert_eq!(s.connections(), connections);
    });
}

#[test]
fn without_lanes_there_is_one_connection_for_each_band() {
    let s = laned(Pool::Plain, &[propagated()]);
    let object = banded(&s.object, &TWO);
    s.at(Some(3), || {
        assert_eq!(object.validate_connection(), Ok(()));
        let connections = s.connections();
        assert_eq!(connections.len(), 2);
        for value in [3, 15, 40, 16] {
            s.raise(value);
            assert_eq!(add(&object, 1, 1), Ok(2));
        }
        assert_eq!(s.connections(), connections);
    });
}

#[test]
fn without_bands_the_present_priority_is_bound() {
    let s = laned(Pool::Lanes, &[propagated()]);
    s.at(Some(20), || {
        assert_eq!(s.object.validate_connection(), Ok(()));
        let connections = s.connections();
        assert_eq!(s.connected(), [20]);
        assert_eq!(add(&s.object, 1, 1), Ok(2));
        assert_eq!(s.connections(), connections);
    });
}

#[test]
fn a_declared_priority_needs_the_connection_of_its_band_alone() {
    let s = laned(Pool::Lanes, &[Policy::PriorityModel(DECLARED, corba(30))]);
    let object = banded(&s.object, &TWO);
    s.at(Some(5), || {
        assert_eq!(object.validate_connection(), Ok(()));
        let connections = s.connections();
        assert_eq!(s.connected(), [30]);
        for value in [5, 25] {
            s.raise(value);
            assert_eq!(add(&object, 1, 1), Ok(2));
        }
        assert_eq!(s.connections(), connections);
    });
}

#[test]
fn an_object_of_this_orb_is_bound_without_connections() {
    for (pool, collocation, connected) in [
        (Pool::Default, Collocation::ThroughPoa, 0),
        (Pool::Default, Collocation::Direct, 0),
        (Pool::Default, Collocation::Off, 1),
        // The pool's threads are servers for its objects, and not application threads.
        (Pool::Lanes, Collocation::ThroughPoa, 1),
    ] {
        let s = laned(pool, &[propagated()]);
        let near = s.server.ior_to_object(s.object.ior().clone());
        let near = near.expect("it is not nil").with_collocation(collocation);
        s.at(None, || {
            assert_eq!(near.validate_connection(), Ok(()));
            assert_eq!(s.connections().len(), connected, "{pool:?} {collocation:?}");
            assert_eq!(add(&near, 1, 1), Ok(2));
            assert_eq!(s.connections().len(), connected, "{pool:?} {collocation:?}");
        });
    }
}

#[test]
fn binding_follows_forwards() {
    let s = laned(Pool::Lanes, &[propagated()]);
    s.server
        .register_initial_reference("Probe", &s.object)
        .expect("the name is free");
    let profile = chronorb_giop::IiopProfile::decode(&s.object.ior().profiles[0].data);
    let url = format!(
        "corbaloc::127.0.0.1:{}/Probe",
        profile.expect("our own").port
    );
    let named = s.client.string_to_object(&url).expect("a correct URL");
    s.at(Some(20), || {
        assert_eq!(named.validate_connection(), Ok(()));
        let connections = s.connections();
        // The connection of the request, and that of the object's lane.
        assert_eq!(s.connected(), [10, 20]);
        assert_eq!(add(&named, 1, 1), Ok(2));
        assert_eq!(s.connections(), connections);
    });
}

#[test]
fn binding_does_not_wait_for_the_object_to_be_served() {
    let server = orb();
    let root = server.root_poa().expect("the ORB runs");
    // Its manager holds.
    let object = root
        .serve(crate::support::ProbeSkeleton(Default::default()))
        .expect("it activates");
    let client = orb();
    let text = server.object_to_string(&object);
    let object = client.string_to_object(&text).expect("it reads");
    assert_eq!(object.validate_connection(), Ok(()));
    client.shutdown(true).expect("no servant calls");
    server.shutdown(true).expect("no servant calls");
}

#[test]
fn what_cannot_be_bound_is_the_exception_of_a_call() {
    use SystemExceptionKind::{BadInvOrder, NoResources, ObjectNotExist, Timeout, Transient};
    let s = laned(Pool::Lanes, &[propagated()]);
    let url = |address: &dyn std::fmt::Display| {
        let url = format!("corbaloc::{address}/Nothing");
        s.client.string_to_object(&url).expect("a correct URL")
    };
    let gone = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nobody = url(&gone.local_addr().expect("it is bound"));
    drop(gone);
    let kind = |object: &Object, priority| {
        let refused = s.at(priority, || object.validate_connection());
        match refused.expect_err("an exception") {
            BindError::System(exception) => (exception.kind, exception.minor & 0xfff),
            inconsistent => panic!("{inconsistent:?}"),
        }
    };
    assert_eq!(kind(&nobody, None), (Transient, 2));

    let profile = chronorb_giop::IiopProfile::decode(&s.object.ior().profiles[0].data);
    let unknown = url(&format!("127.0.0.1:{}", profile.expect("our own").port));
    assert_eq!(kind(&unknown, None).0, ObjectNotExist);

    assert_eq!(kind(&s.object, Some(11)), (NoResources, 2));
    let no_lane = banded(&s.object, &[(1, 9), (10, 40)]);
    assert_eq!(kind(&no_lane, Some(10)), (NoResources, 2));

    // It listens, but never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = url(&silent.local_addr().expect("it is bound"));
    let silent = silent.with_timeout(std::time::Duration::from_millis(1));
    assert!(matches!(kind(&silent, None).0, Timeout | Transient));

    let ended = orb_with(|_| {});
    let object = ended
        .ior_to_object(s.object.ior().clone())
        .expect("it is not nil");
    ended.shutdown(true).expect("no servant calls");
    assert_eq!(kind(&object, None), (BadInvOrder, 4));
}

#[test]
fn policies_that_a_call_would_refuse_are_named() {
    let banded_policy =
        |ranges: &[(i16, i16)]| ClientPolicy::PriorityBandedConnection(bands(ranges));
    let protocols = |list: &[Protocol]| Protocols::new(list).expect("they differ");
    let iiop = || protocols(&[Protocol::Iiop(Default::default())]);
    let none = || ClientPolicy::ClientProtocol(protocols(&[Protocol::Other(77)]));
    let s = laned(
        Pool::Lanes,
        &[
            propagated(),
            Policy::PriorityBandedConnection(bands(&TWO)),
            Policy::ClientProtocol(iiop()),
        ],
    );
    let plain = laned(Pool::Default, &[]);
    let propagating = laned(Pool::Default, &[propagated()]);
    let (of_server, own) = (banded_policy(&TWO), banded_policy(&[(0, 30_000)]));
    let own_protocol = ClientPolicy::ClientProtocol(iiop());
    for (object, overrides, expected) in [
        (&s.object, vec![], vec![]),
        (&s.object, vec![own.clone()], vec![own.clone(), of_server]),
        (
            &s.object,
            vec![own_protocol.clone()],
            vec![own_protocol.clone(), own_protocol.clone()],
        ),
        (&plain.object, vec![own.clone()], vec![own.clone()]),
        (&plain.object, vec![own_protocol], vec![]),
        (&plain.object, vec![none()], vec![none()]),
        (
            &plain.object,
            vec![own.clone(), none()],
            vec![own.clone(), none()],
        ),
        (&propagating.object, vec![own], vec![]),
        (
            &propagating.object,
            vec![banded_policy(&[(20, 30)])],
            vec![banded_policy(&[(20, 30)])],
        ),
    ] {
        let object = object
            .with_policy_overrides(&overrides, SetOverride::Set)
            .expect("one of each kind");
        let bound = s.at(Some(10), || object.validate_connection());
        let called = s.at(Some(10), || add(&object, 1, 1));
        if expected.is_empty() {
            assert_eq!((bound, called), (Ok(()), Ok(2)));
        } else {
            assert_eq!(bound, Err(BindError::Inconsistent(expected)));
            assert_eq!(called, Err(omg(SystemExceptionKind::InvPolicy, 1)));
        }
    }
}

/// Answers one locate request with OBJECT_HERE.
fn answer_locate(stream: &mut TcpStream) {
    let mut octets = [0; 4096];
    let n = stream.read(&mut octets).expect("a request");
    assert!(n >= 16 && octets[7] == 3, "a locate request");
    // GIOP 1.0: the request's id follows the header.
    let mut reply = b"GIOP\x01\x00\x01\x04\x08\x00\x00\x00".to_vec();
    reply.extend_from_slice(&octets[12..16]);
    reply.extend_from_slice(&[1, 0, 0, 0]);
    stream.write_all(&reply).expect("the client is there");
}

#[test]
fn a_connection_that_has_ended_meanwhile_is_made_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("a client");
            answer_locate(&mut stream);
        }
    });
    let client = orb();
    let url = format!("corbaloc::{address}/It");
    let object = client.string_to_object(&url).expect("a correct URL");
    assert_eq!(object.validate_connection(), Ok(()));
    assert_eq!(object.validate_connection(), Ok(()));
    server.join().expect("two clients came");
}

#[test]
fn a_private_connection_is_one_references_alone() {
    let s = laned(Pool::Default, &[]);
    s.at(None, || {
        let shared = [s.another(), s.another()];
        let private = shared
            .each_ref()
            .map(|o| with(o, ClientPolicy::PrivateConnection));
        for object in shared.iter().chain(&private) {
            assert_eq!(add(object, 1, 1), Ok(2));
            // The same reference.
            assert_eq!(add(&object.clone(), 1, 1), Ok(2));
        }
        assert_eq!(s.connections().len(), 1 + private.len());
    });
}

#[test]
fn private_connections_end_after_their_references() {
    let s = laned(Pool::Default, &[]);
    s.at(None, || {
        for _ in 0..5 {
            let object = with(&s.another(), ClientPolicy::PrivateConnection);
            assert_eq!(add(&object, 1, 1), Ok(2));
            assert_eq!(s.connections().len(), 1, "the one before is gone");
        }
    });
}

#[test]
fn private_connections_of_different_priorities_are_different() {
    let s = laned(Pool::Lanes, &[propagated()]);
    let object = with(&s.object, ClientPolicy::PrivateConnection);
    s.at(Some(10), || {
        assert_eq!(object.validate_connection(), Ok(()));
        assert_eq!(add(&s.object, 1, 1), Ok(2));
        assert_eq!(s.connected(), [10, 10]);
        s.raise(20);
        assert_eq!(add(&object, 1, 1), Ok(2));
        assert_eq!(s.connected(), [10, 10, 20]);
    });
}
