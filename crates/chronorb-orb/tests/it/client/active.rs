//! The send queue of a connection whose thread sends for all callers: its order, and the time in
//! it.

use chronorb_orb::SystemExceptionKind::Timeout;
use chronorb_orb::{CompletionStatus, ConnectionStrategy, Object, Operation, Orb, SystemException};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::support::raw_server::{CLOSE_CONNECTION, Message, Peer, object_at, raw_server};
use crate::support::{Latch, add, kind_and_completion, orb_with};

/// The maximum number of waiting messages.
const ROOM: usize = 64;
const A_MOMENT: Duration = Duration::from_millis(60);
const NOTE: Operation = Operation::oneway("note");

fn client() -> Orb {
    orb_with(|config| config.client_connection = ConnectionStrategy::Active)
}

/// Sends the two numbers, and more data than the sockets of both sides buffer.
fn send_much(object: &Object, a: i32, b: i32) -> Result<(), SystemException> {
    let text = "x".repeat(12 << 20);
    object.invoke_oneway(&NOTE, &|e| {
        e.write_str(&text)?;
        e.write_i32(a)?;
        e.write_i32(b)
    })
}

/// A server that signals the start of the first message, reads on when it is told to, and reports
/// the arguments of all requests, each with the number of its connection.
struct Slow {
    begun: Arc<Latch>,
    reads: Arc<Latch>,
    seen: std::sync::mpsc::Receiver<(usize, (i32, i32))>,
    server: crate::support::raw_server::RawServer,
}

fn slow() -> Slow {
    let (begun, reads) = (Arc::new(Latch::default()), Arc::new(Latch::default()));
    let (sees, seen) = std::sync::mpsc::channel();
    let (begins, may_read) = (begun.clone(), reads.clone());
    let server = raw_server(move |mut peer: Peer| {
        peer.wait_for_octets();
        begins.set(1);
        may_read.reach(1);
        while let Some(message) = peer.message() {
            if let Message::Request { id, arguments } = message {
                let _ = sees.send((peer.number, arguments));
                // The large request is not two-way.
                if arguments.0 != 0 {
                    peer.answer((id, arguments));
                }
            }
        }
    });
    Slow {
        begun,
        reads,
        seen,
        server,
    }
}

#[test]
fn a_request_that_cannot_be_sent_in_time_is_taken_back() {
    let slow = slow();
    let object = object_at(&client(), slow.server.address);
    std::thread::scope(|scope| {
        let great = scope.spawn(|| send_much(&object, 0, 1));
        slow.begun.reach(1);
        let hasty = object.with_timeout(A_MOMENT);
        for called in [add(&hasty, 1, 2), send_much(&hasty, 0, 3).map(|()| 0)] {
            assert_eq!(kind_and_completion(called), (Timeout, CompletionStatus::No));
        }
        slow.reads.set(1);
        assert_eq!(great.join().expect("no panic"), Ok(()));
        assert_eq!(add(&object, 1, 4), Ok(5));
    });
    let seen: Vec<_> = slow.seen.try_iter().collect();
    assert_eq!(seen, [(0, (0, 1)), (0, (1, 4))]);
}

#[test]
fn where_the_queue_is_full_callers_wait_in_their_own_time() {
    let slow = slow();
    let object = object_at(&client(), slow.server.address);
    // The connection exists as long as one of its threads.
    let all_have_called = Barrier::new(ROOM + 9);
    let stay = || {
        all_have_called.wait();
    };
    std::thread::scope(|scope| {
        let great = scope.spawn(|| {
            let sent = send_much(&object, 0, 1);
            stay();
            assert_eq!(sent, Ok(()));
        });
        slow.begun.reach(1);
        let hasty: Vec<_> = (0..ROOM as i32 + 8)
            .map(|n| {
                let hasty = object.with_timeout(A_MOMENT * 5);
                scope.spawn(move || add(&hasty, 1, n))
            })
            .collect();
        for called in hasty {
            let called = called.join().expect("no panic");
            assert_eq!(kind_and_completion(called), (Timeout, CompletionStatus::No));
        }
        let patient: Vec<_> = (0..ROOM as i32 + 8)
            .map(|n| {
                let (object, stay) = (&object, &stay);
                scope.spawn(move || {
                    let called = add(object, 2, n);
                    stay();
                    assert_eq!(called, Ok(n + 2));
                })
            })
            .collect();
        slow.reads.set(1);
        great.join().expect("it is sent");
        for called in patient {
            called.join().expect("it is answered");
        }
    });
    let mut seen: Vec<_> = slow.seen.try_iter().collect();
    seen.sort_unstable();
    let patient = (0..ROOM as i32 + 8).map(|n| (2, n));
    let by_one_connection = [(0, 1)].into_iter().chain(patient).map(|it| (0, it));
    assert_eq!(seen, by_one_connection.collect::<Vec<_>>());
}

#[test]
fn requests_that_wait_when_the_server_says_goodbye_go_by_a_new_connection() {
    let (begun, leaves) = (Arc::new(Latch::default()), Arc::new(Latch::default()));
    let (begins, leave) = (begun.clone(), leaves.clone());
    let server = raw_server(move |mut peer: Peer| {
        peer.wait_for_octets();
        if peer.number == 0 {
            begins.set(1);
            leave.reach(1);
            return peer.send(CLOSE_CONNECTION);
        }
        while let Some(message) = peer.message() {
            match message {
                Message::Request {
                    arguments: (0, _), ..
                } => {}
                Message::Request { id, arguments } => peer.answer((id, arguments)),
                other => panic!("{other:?} is no request"),
            }
        }
    });
    let object = object_at(&client(), server.address);
    // The new connection exists as long as one of its threads.
    let both_have_called = Barrier::new(2);
    std::thread::scope(|scope| {
        let great = scope.spawn(|| {
            let sent = send_much(&object, 0, 1);
            both_have_called.wait();
            sent
        });
        begun.reach(1);
        let small = scope.spawn(|| {
            let called = add(&object, 1, 2);
            both_have_called.wait();
            called
        });
        leaves.set(1);
        assert_eq!(great.join().expect("no panic"), Ok(()));
        assert_eq!(small.join().expect("no panic"), Ok(3));
    });
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_request_whose_time_is_over_in_its_midst_ends_the_connection() {
    let slow = slow();
    let object = object_at(&client(), slow.server.address);
    std::thread::scope(|scope| {
        // Its first octets are sent by then.
        let hasty = object.with_timeout(A_MOMENT * 25);
        let great = scope.spawn(move || send_much(&hasty, 0, 1));
        slow.begun.reach(1);
        // It uses a new connection.
        let patient = scope.spawn(|| add(&object, 1, 2));
        let called = great.join().expect("no panic");
        assert_eq!(kind_and_completion(called), (Timeout, CompletionStatus::No));
        slow.reads.set(1);
        assert_eq!(patient.join().expect("no panic"), Ok(3));
    });
    assert_eq!(slow.server.connections(), 2);
    assert_eq!(slow.seen.try_iter().collect::<Vec<_>>(), [(1, (1, 2))]);
}
