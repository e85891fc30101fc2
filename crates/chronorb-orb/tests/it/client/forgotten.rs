//! Connections that the server has closed, or that something on the way has forgotten: no call
//! begins on them.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use chronorb_orb::{Object, Operation, SystemException, SystemExceptionKind};

use crate::support::asynchronous::begin_add;
use crate::support::raw_server::{CLOSE_CONNECTION, Peer, RawServer, object_at, raw_server};
use crate::support::strategies::{SHARED, STRATEGIES};
use crate::support::{Latch, PATIENCE, add, orb_with, with_short_timeout};

fn note(object: &Object) -> Result<(), SystemException> {
    object.invoke_oneway(&Operation::oneway("note"), &|_| Ok(()))
}

/// Returns a server that says goodbye on its first connection after one request, and the latches
/// that show this, and that a request has arrived on the next one.
fn farewell() -> (RawServer, Arc<Latch>, Arc<Latch>) {
    let (ended, arrived) = (Arc::new(Latch::default()), Arc::new(Latch::default()));
    let (tell_end, tell_arrival) = (ended.clone(), arrived.clone());
    let server = raw_server(move |mut peer: Peer| {
        let request = peer.request().expect("a request comes");
        if peer.number > 0 {
            tell_arrival.set(1);
            return peer.until_the_end();
        }
        let _ = request;
        peer.send(CLOSE_CONNECTION);
        drop(peer);
        tell_end.set(1);
    });
    (server, ended, arrived)
}

#[test]
fn the_first_oneway_of_a_thread_is_not_sent_on_a_shared_connection_that_was_closed() {
    for strategy in SHARED {
        let (server, ended, arrived) = farewell();
        let orb = orb_with(|config| config.client_connection = strategy);
        let object = object_at(&orb, server.address);
        assert_eq!(note(&object), Ok(()), "{strategy:?}");
        ended.reach(1);
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(note(&object), Ok(()), "{strategy:?}"));
        });
        arrived.reach(1);
        let _ = orb.shutdown(true);
    }
}

#[test]
fn the_first_oneway_by_a_reference_is_not_sent_on_a_connection_that_was_closed() {
    for strategy in STRATEGIES {
        let (server, ended, arrived) = farewell();
        let orb = orb_with(|config| config.client_connection = strategy);
        assert_eq!(note(&object_at(&orb, server.address)), Ok(()));
        ended.reach(1);
        // Another reference to the same address, for which the thread has a connection.
        let other = object_at(&orb, server.address);
        assert_eq!(note(&other), Ok(()), "{strategy:?}");
        arrived.reach(1);
        let _ = orb.shutdown(true);
    }
}

#[test]
fn no_call_begins_on_a_connection_with_calls_that_the_server_has_closed() {
    for strategy in SHARED {
        let (ended, arrived) = (Arc::new(Latch::default()), Arc::new(Latch::default()));
        let (tell_end, tell_arrival) = (ended.clone(), arrived.clone());
        let server = raw_server(move |mut peer: Peer| {
            let request = peer.request().expect("a request comes");
            if peer.number > 0 {
                tell_arrival.set(1);
                return peer.until_the_end();
            }
            // The answer to the call is due when the connection ends, and is not read before.
            peer.answer(request);
            drop(peer);
            tell_end.set(1);
        });
        let orb = orb_with(|config| config.client_connection = strategy);
        let object = object_at(&orb, server.address);
        let pending = begin_add(&object, 1, 2).expect("it begins");
        ended.reach(1);
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(note(&object), Ok(()), "{strategy:?}"));
        });
        arrived.reach(1);
        assert_eq!(pending.wait(), Ok(3), "{strategy:?}");
        let _ = orb.shutdown(true);
    }
}

/// Returns a server whose first connection gives an answer and no sign of life after it.
fn silent_after_one() -> RawServer {
    raw_server(|mut peer: Peer| {
        let first = peer.request().expect("a request comes");
        peer.answer(first);
        if peer.number == 0 {
            peer.until_the_end();
        } else {
            peer.answer_all();
        }
    })
}

type Call = fn(&Object) -> Result<i32, SystemException>;
const CALLS: [Call; 2] = [
    |object| add(object, 1, 2),
    |object| begin_add(object, 1, 2)?.wait(),
];

#[test]
fn after_a_timeout_without_a_sign_of_life_calls_go_by_a_new_connection() {
    for strategy in STRATEGIES {
        for call in CALLS {
            let server = silent_after_one();
            let orb = orb_with(|config| config.client_connection = strategy);
            let object = object_at(&orb, server.address);
            assert_eq!(call(&object), Ok(3));
            let late = with_short_timeout(&object, call).expect_err("nothing comes");
            assert_eq!(late.kind, SystemExceptionKind::Timeout, "{strategy:?}");
            assert_eq!(call(&object), Ok(3), "{strategy:?}");
            assert_eq!(server.connections(), 2, "{strategy:?}");
            let _ = orb.shutdown(true);
        }
    }
}

#[test]
fn calls_that_wait_keep_a_retired_connection_until_their_own_end() {
    for strategy in SHARED {
        let go_on = Arc::new(Latch::default());
        let waits = go_on.clone();
        let server = raw_server(move |mut peer: Peer| {
            if peer.number > 0 {
                return peer.answer_all();
            }
            let patient = peer.request().expect("a request comes");
            peer.request().expect("another one comes");
            waits.reach(1);
            peer.answer(patient);
            peer.until_the_end();
        });
        let orb = orb_with(|config| config.client_connection = strategy);
        let object = object_at(&orb, server.address);
        let patient = begin_add(&object.with_timeout(PATIENCE), 5, 6).expect("it begins");
        let late = with_short_timeout(&object, |hasty| add(hasty, 1, 2));
        let late = late.expect_err("nothing comes");
        assert_eq!(late.kind, SystemExceptionKind::Timeout, "{strategy:?}");
        assert_eq!(add(&object, 3, 4), Ok(7), "{strategy:?}");
        assert_eq!(server.connections(), 2, "{strategy:?}");
        go_on.set(1);
        assert_eq!(patient.wait(), Ok(11), "{strategy:?}");
        let _ = orb.shutdown(true);
    }
}

#[test]
fn a_call_that_is_cancelled_in_time_retires_no_connection() {
    for strategy in SHARED {
        let (came, comes) = mpsc::channel();
        let server = raw_server(move |mut peer: Peer| {
            peer.request().expect("a request comes");
            came.send(()).expect("the test waits");
            peer.message().expect("it is cancelled");
            peer.answer_all();
        });
        let orb = orb_with(|config| config.client_connection = strategy);
        let object = object_at(&orb, server.address);
        let object = object.with_timeout(Duration::MAX);
        let first = begin_add(&object, 1, 2).expect("it begins");
        // One that was not sent is taken back instead.
        comes.recv().expect("the server has it");
        drop(first);
        assert_eq!(begin_add(&object, 3, 4).expect("it begins").wait(), Ok(7));
        assert_eq!(server.connections(), 1, "{strategy:?}");
        let _ = orb.shutdown(true);
    }
}
