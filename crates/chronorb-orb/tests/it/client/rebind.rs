//! Rebind policies: the implicit reactions of a call to a moved object or a closed connection.

use chronorb_giop::{IiopProfile, minor};
use chronorb_orb::SystemExceptionKind::{CommFailure, Rebind};
use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{ClientPolicy, ClientPolicyKind, RebindMode, SetOverride};
use chronorb_orb::{BindError, Object, Orb, SystemException};

use RebindMode::{NoRebind, NoReconnect, Transparent};

use crate::support::laned::{LANES, PROPAGATED, Pool, corba, laned};
use crate::support::raw_server::{CLOSE_CONNECTION, Message, Peer, object_at, raw_server, reply};
use crate::support::strategies::STRATEGIES;
use crate::support::{add, kind_and_completion, orb_with};

const MODES: [RebindMode; 3] = [Transparent, NoRebind, NoReconnect];

fn clients() -> Vec<Orb> {
    let client = |strategy| orb_with(|config| config.client_connection = strategy);
    STRATEGIES.map(client).into()
}

fn with(object: &Object, mode: RebindMode) -> Object {
    object
        .with_policy_overrides(&[ClientPolicy::Rebind(mode)], SetOverride::Add)
        .expect("there is one of the kind")
}

fn refused(minor: u32) -> SystemException {
    SystemException::no(Rebind, minor)
}

#[test]
fn a_forward_is_followed_as_far_as_the_policy_lets_it() {
    let model = Policy::PriorityModel(PROPAGATED, corba(LANES[0]));
    for (same_policies, policies) in [(true, &[][..]), (false, &[model])] {
        // A plain key is forwarded to the object.
        let s = laned(Pool::Default, policies);
        s.server
            .register_initial_reference("Probe", &s.object)
            .expect("the name is free");
        let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
        let url = format!("corbaloc::1.2@127.0.0.1:{}/Probe", profile.port);
        for client in clients() {
            for mode in MODES {
                let named = client.string_to_object(&url).expect("a correct URL");
                let named = with(&named, mode);
                let called = add(&named, 1, 2);
                if mode == Transparent || (mode == NoRebind && same_policies) {
                    assert_eq!(called, Ok(3));
                    continue;
                }
                assert_eq!(called, Err(refused(minor::FORWARD_FORBIDDEN)), "{mode:?}");
                // Explicit binding by the application is permitted.
                assert_eq!(named.validate_connection(), Ok(()));
                assert_eq!(add(&named, 1, 2), Ok(3));
            }
        }
    }
}

/// Answers locate requests, and one request with CloseConnection.
fn answer_and_leave(mut peer: Peer) {
    while let Some(message) = peer.message() {
        match message {
            Message::Locate { id } => peer.here(id),
            Message::Request { id, arguments } => {
                let reply = reply(id, arguments.0 + arguments.1);
                return peer.send(&[&reply, CLOSE_CONNECTION].concat());
            }
            Message::Cancel { .. } => {}
        }
    }
}

#[test]
fn a_connection_that_ended_is_made_again_as_far_as_the_policy_lets_it() {
    for client in clients() {
        for mode in MODES {
            let server = raw_server(answer_and_leave);
            let object = with(&object_at(&client, server.address), mode);
            assert_eq!(add(&object, 1, 2), Ok(3));
            if mode != NoReconnect {
                assert_eq!(add(&object, 1, 2), Ok(3));
                assert_eq!(server.connections(), 2);
                continue;
            }
            for _ in 0..3 {
                let told = Err(refused(minor::RECONNECT_FORBIDDEN));
                assert_eq!(add(&object, 1, 2), told);
            }
            assert_eq!(server.connections(), 1);
            assert_eq!(object.validate_connection(), Ok(()));
            assert_eq!(add(&object, 1, 2), Ok(3));
            assert_eq!(server.connections(), 2);
        }
    }
}

#[test]
fn a_connection_that_was_lost_in_a_call_is_told_first_by_that_call() {
    for client in clients() {
        let server = raw_server(|mut peer: Peer| {
            peer.request();
        });
        let object = with(&object_at(&client, server.address), NoReconnect);
        assert_eq!(kind_and_completion(add(&object, 1, 2)).0, CommFailure);
        let told = Err(refused(minor::RECONNECT_FORBIDDEN));
        assert_eq!(add(&object, 1, 2), told);
        // Its policy does not affect other references.
        let other = object_at(&client, server.address);
        assert_eq!(kind_and_completion(add(&other, 1, 2)).0, CommFailure);
        assert_eq!(add(&object, 1, 2), told);
    }
}

#[test]
fn an_explicit_binding_fails_with_what_the_server_says_and_not_with_rebind() {
    for client in clients() {
        let server = raw_server(|mut peer: Peer| match peer.message() {
            Some(Message::Request { id, arguments }) => peer.answer((id, arguments)),
            _locate => {}
        });
        let object = with(&object_at(&client, server.address), NoReconnect);
        assert_eq!(add(&object, 1, 2), Ok(3));
        match object.validate_connection().expect_err("no server answers") {
            BindError::System(exception) => assert_eq!(exception.kind, CommFailure),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn the_policy_has_the_number_of_the_standard() {
    assert_eq!(ClientPolicyKind::Rebind.policy_type(), 23);
}
