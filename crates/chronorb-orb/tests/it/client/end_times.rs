//! End times of requests and replies from the client's point of view, and the time-out of an
//! attempt to connect.

use chronorb_giop::{EndTimes, UtcTime};
use chronorb_orb::rtcorba::{ClientPolicy, SetOverride};
use chronorb_orb::{
    Collocation, CompletionStatus, Object, Operation, SystemException, SystemExceptionKind, minor,
};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

use crate::support::asynchronous::begin_add;
use crate::support::raw_server::{object_at, raw_server};
use crate::support::strategies::STRATEGIES;
use crate::support::{
    Latch, PATIENCE, add, full_listener, kind_and_completion, nothing, orb, orb_with, served,
    served_by,
};

const REQUEST_LATE: SystemException =
    SystemException::no(SystemExceptionKind::Timeout, minor::TIMEOUT_REQUEST_END);
const REPLY_LATE: SystemException =
    SystemException::no(SystemExceptionKind::Timeout, minor::TIMEOUT_REPLY_END);

fn with(object: &Object, policy: ClientPolicy) -> Object {
    let object = object.with_policy_overrides(&[policy], SetOverride::Set);
    object.expect("it is one policy")
}

fn note(object: &Object) -> Result<(), SystemException> {
    object.invoke_oneway(&Operation::oneway("note"), &|_| Ok(()))
}

/// Policies whose end has passed, and their exceptions.
fn passed() -> [(ClientPolicy, SystemException); 3] {
    let past = SystemTime::now() - Duration::from_secs(1);
    [
        (ClientPolicy::RequestEndTime(past), REQUEST_LATE),
        (ClientPolicy::ReplyEndTime(past), REPLY_LATE),
        (
            ClientPolicy::RelativeRequestTimeout(Duration::ZERO),
            REQUEST_LATE,
        ),
    ]
}

/// Policies whose end does not pass during a test.
fn far() -> [ClientPolicy; 3] {
    let end = SystemTime::now() + PATIENCE;
    [
        ClientPolicy::RequestEndTime(end),
        ClientPolicy::ReplyEndTime(end),
        ClientPolicy::RelativeRequestTimeout(PATIENCE),
    ]
}

#[test]
fn nothing_is_sent_after_an_end() {
    for strategy in STRATEGIES {
        println!("{strategy:?}");
        let s = served();
        let client = orb_with(|config| config.client_connection = strategy);
        let text = s.server.object_to_string(&s.object);
        let remote = client.string_to_object(&text).expect("it reads");
        // With and without a connection.
        for _ in 0..2 {
            for (policy, late) in passed() {
                let object = with(&remote, policy);
                assert_eq!(add(&object, 1, 2), Err(late));
                assert_eq!(note(&object), Err(late));
                let pending = begin_add(&object, 1, 2);
                assert_eq!(pending.and_then(|pending| pending.wait()), Err(late));
            }
            assert_eq!(add(&remote, 1, 2), Ok(3));
        }
        assert_eq!(s.probe.notes.load(Ordering::Relaxed), 0);
        client.shutdown(false).expect("no servant calls it");
    }
}

#[test]
fn nor_within_the_process() {
    let server = orb_with(|config| config.collocation = Collocation::ThroughPoa);
    let s = served_by(server);
    let text = s.server.object_to_string(&s.object);
    let within = s.server.string_to_object(&text).expect("it reads");
    for (policy, late) in passed() {
        let object = with(&within, policy);
        assert_eq!(add(&object, 1, 2), Err(late));
    }
    for policy in far() {
        let object = with(&within, policy);
        assert_eq!(add(&object, 1, 2), Ok(3));
    }
    assert_eq!(add(&within, 1, 2), Ok(3));
}

#[test]
fn ends_have_effect_at_every_level() {
    let s = served();
    let manager = s.client.policy_manager();
    let current = s.client.policy_current();
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    for (policy, late) in passed() {
        let policies = [policy];
        let set = manager.set_policy_overrides(&policies, SetOverride::Set);
        set.expect("it is one policy");
        assert_eq!(add(&s.object, 1, 2), Err(late));
        let set = manager.set_policy_overrides(&[], SetOverride::Set);
        set.expect("there is no policy");
        assert_eq!(add(&s.object, 1, 2), Ok(3));
        let set = current.set_policy_overrides(&policies, SetOverride::Set);
        set.expect("it is one policy");
        assert_eq!(add(&s.object, 1, 2), Err(late));
        let set = current.set_policy_overrides(&far(), SetOverride::Set);
        set.expect("one of each kind");
        assert_eq!(add(&s.object, 1, 2), Ok(3));
        let set = current.set_policy_overrides(&[], SetOverride::Set);
        set.expect("there is no policy");
    }
}

/// The end times in the octets of a request.
fn ends_in(body: &[u8]) -> Option<EndTimes> {
    let is_context = |octets: &&[u8]| {
        octets[..4] == 7_u32.to_le_bytes() && octets[5..8] == [0; 3] && octets[4] >= 40
    };
    let context = body.windows(8).find(is_context)?;
    let start = context.as_ptr().addr() - body.as_ptr().addr() + 8;
    let data = &body[start..start + usize::from(context[4])];
    Some(EndTimes::decode(data).expect("it is well-formed"))
}

#[test]
fn ends_travel_with_each_request() {
    let (sender, bodies) = mpsc::channel();
    let server = raw_server(move |mut peer| {
        while let Some(request) = peer.request() {
            let _ = sender.send(peer.body.clone());
            peer.answer(request);
        }
    });
    let client = orb();
    let plain = object_at(&client, server.address);
    let end = SystemTime::now() + PATIENCE;
    let both = [
        ClientPolicy::RequestEndTime(end),
        ClientPolicy::ReplyEndTime(end + PATIENCE),
    ];
    let both = plain.with_policy_overrides(&both, SetOverride::Set);
    let both = both.expect("one of each kind");
    let relative = with(&plain, ClientPolicy::RelativeRequestTimeout(PATIENCE));
    for _ in 0..3 {
        assert_eq!(add(&plain, 1, 2), Ok(3));
        assert_eq!(ends_in(&bodies.recv().expect("it was sent")), None);
        assert_eq!(add(&both, 1, 2), Ok(3));
        let expected = EndTimes {
            request: Some(end.into()),
            reply: Some((end + PATIENCE).into()),
        };
        let sent = ends_in(&bodies.recv().expect("it was sent"));
        assert_eq!(sent, Some(expected));
        let before = UtcTime::from(SystemTime::now());
        assert_eq!(add(&relative, 1, 2), Ok(3));
        let after = UtcTime::from(SystemTime::now());
        let sent = ends_in(&bodies.recv().expect("it was sent")).expect("it has an end");
        let request = sent.request.expect("it has an end");
        // The beginning of a long call is known to a tick of the system's clock.
        let tick = Duration::from_millis(20);
        assert!(request >= (before + PATIENCE).before(tick) && request <= after + PATIENCE);
        assert_eq!(sent.reply, None);
    }
}

#[test]
fn a_call_ends_at_the_end_of_its_reply() {
    for strategy in STRATEGIES {
        println!("{strategy:?}");
        let s = served();
        let client = orb_with(|config| config.client_connection = strategy);
        let text = s.server.object_to_string(&s.object);
        let remote = client.string_to_object(&text).expect("it reads");
        assert_eq!(add(&remote, 1, 2), Ok(3));
        let end = SystemTime::now() + Duration::from_millis(300);
        let object = with(&remote, ClientPolicy::ReplyEndTime(end));
        let result = nothing(&object, "wait");
        let exception = result.expect_err("it is held");
        assert_eq!(exception.kind, SystemExceptionKind::Timeout);
        // A slow machine may not even have sent it.
        if exception.completed == CompletionStatus::Maybe {
            assert_eq!(exception.minor, minor::TIMEOUT_REPLY_END);
        }
        s.probe.gate.set(2);
        client.shutdown(false).expect("no servant calls it");
    }
}

/// The server reads nothing, so the transport takes only a part of the request.
#[test]
fn sending_ends_at_the_end_of_the_request() {
    let latch = Arc::new(Latch::default());
    let ended = latch.clone();
    let server = raw_server(move |_peer| ended.reach(1));
    let client = orb();
    let object = object_at(&client, server.address);
    let time_out = Duration::from_millis(300);
    let object = with(&object, ClientPolicy::RelativeRequestTimeout(time_out));
    let octets = vec![0; 15 << 20];
    let result = object.invoke_oneway(&Operation::oneway("note"), &|e| e.write_octet_seq(&octets));
    assert_eq!(result, Err(REQUEST_LATE));
    latch.set(1);
}

/// Nothing answers: the listener has no room for another connection.
#[test]
fn an_attempt_to_connect_ends_in_its_own_time() {
    let (full, _filler) = full_listener();
    let address = full.local_addr().expect("it is bound");
    let client = orb();
    let object = object_at(&client, address);
    let moment = Duration::from_millis(100);
    let object = with(&object, ClientPolicy::ConnectTimeout(moment));
    let result = add(&object, 1, 2);
    let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
    assert_eq!(kind_and_completion(result), expected);
}
