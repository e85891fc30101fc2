//! Cancelling distributable threads, wherever their heads are.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use chronorb_orb::rtcorba::Priority;
use chronorb_orb::rtscheduling::{SchedulingCurrent, SegmentError, ThreadState};
use chronorb_orb::{
    CompletionStatus, ConnectionStrategy, PendingReply, SystemException, SystemExceptionKind,
};
use chronorb_rt::Deadline;

use super::nodes::{Node, begin, perform};
use crate::support::{Latch, PATIENCE};

fn is_cancelled<T>(result: Result<T, SystemException>, completed: CompletionStatus) -> bool {
    let expected = SystemException::new(SystemExceptionKind::ThreadCancelled, 0, completed);
    result.err() == Some(expected)
}

/// Cancels the thread of a segment of this thread.
fn cancel(current: &SchedulingCurrent) {
    let thread = current.lookup(current.id().unwrap()).unwrap();
    assert_eq!(thread.state(), ThreadState::Active);
    thread.cancel();
    assert_eq!(thread.state(), ThreadState::Cancelled);
}

/// Passes scheduling points until one raises an exception.
fn work(current: &SchedulingCurrent) -> SystemException {
    let deadline = Deadline::after(PATIENCE);
    while !deadline.has_passed() {
        match current.begin_scheduling_segment("work", None, None) {
            Ok(()) => current.end_scheduling_segment("work").unwrap_or(()),
            Err(SegmentError::System(exception)) => return exception,
            Err(error) => panic!("{error}"),
        }
        thread::yield_now();
    }
    panic!("the thread was not cancelled in time");
}

#[test]
fn each_point_of_a_cancelled_thread_raises_and_ends_all_segments() {
    let node = Node::new();
    let object = node.serve(|_| Ok(()));
    let other = Node::new();
    let remote = node.see(&other, &other.serve(|_| Ok(())));
    let current = node.orb.scheduling_current();
    let of = |result: Result<(), SegmentError>| match result {
        Err(SegmentError::System(exception)) => Err(exception),
        Ok(()) => Ok(()),
        Err(error) => panic!("{error}"),
    };
    let base = Priority::new(0).unwrap();
    type Point<'a> = &'a dyn Fn() -> Result<(), SystemException>;
    let points: [(&str, Point<'_>); 6] = [
        ("begin", &|| {
            of(current.begin_scheduling_segment("c", None, None))
        }),
        ("update", &|| {
            of(current.update_scheduling_segment("b", None, None))
        }),
        ("end", &|| current.end_scheduling_segment("b")),
        ("spawn", &|| {
            of(current.spawn(|| {}, "c", None, None, 0, base).map(drop))
        }),
        ("call", &|| perform(&object, "go").map(drop)),
        ("remote call", &|| perform(&remote, "go").map(drop)),
    ];
    for (name, point) in points {
        current.begin_scheduling_segment("a", None, None).unwrap();
        let _inner = current.segment("b", None, None).unwrap();
        let id = current.id().unwrap();
        cancel(&current);
        assert!(is_cancelled(point(), CompletionStatus::No), "{name}");
        assert!(current.id().is_err(), "{name}");
        assert!(current.lookup(id).is_none(), "{name}");
        assert_eq!(node.told.cancellations(), 1, "{name}");
        let told = node.told.take();
        assert!(
            !told.iter().any(|event| event.starts_with("end")),
            "{told:?}"
        );
    }
}

#[test]
fn a_thread_that_has_ended_is_not_cancelled() {
    let node = Node::new();
    let current = node.orb.scheduling_current();
    let segment = current.segment("a", None, None).unwrap();
    let thread = current.lookup(current.id().unwrap()).unwrap();
    drop(segment);
    thread.cancel();
    assert_eq!(thread.state(), ThreadState::Active);
    let _next = current.segment("b", None, None).unwrap();
    assert!(
        current.id().is_ok(),
        "the next thread of this one is another"
    );
    assert_eq!(node.told.cancellations(), 0);
}

/// Cancels at the root a thread whose head is two calls away.
fn follows(configure: impl Fn(&mut chronorb_orb::OrbConfig), completed: CompletionStatus) {
    let nodes = [0; 3].map(|_| Node::with(&configure));
    let [a, b, c] = &nodes;
    let (arrived, arrival) = mpsc::channel();
    let (tell_c, told_c) = mpsc::channel();
    let third = c.serve(move |call| {
        let _ = arrived.send(());
        let raised = work(&call.orb().scheduling_current());
        let _ = tell_c.send(raised);
        Err(raised)
    });
    let (tell_b, told_b) = mpsc::channel();
    let onward = b.see(c, &third);
    let second = b.serve(move |_| {
        let result = perform(&onward, "go").map(drop);
        let _ = tell_b.send(result);
        result
    });
    let object = a.see(b, &second);
    let current = a.orb.scheduling_current();
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let own = &current;
        let root = scope.spawn(move || {
            let segment = own.segment("root", None, None).unwrap();
            tell.send(own.id().unwrap()).unwrap();
            let result = perform(&object, "go");
            let is_unwound = own.id().is_err();
            drop(segment);
            (result, is_unwound)
        });
        let id = told.recv_timeout(PATIENCE).unwrap();
        arrival.recv_timeout(PATIENCE).unwrap();
        current.lookup(id).expect("it waits here").cancel();
        let (result, is_unwound) = root.join().unwrap();
        assert!(is_cancelled(result, completed), "{result:?}");
        assert!(is_unwound);
    });
    let at_b = told_b.recv_timeout(PATIENCE).unwrap();
    assert!(is_cancelled(at_b, completed), "{at_b:?}");
    let at_c = told_c.recv_timeout(PATIENCE).unwrap();
    assert!(
        is_cancelled::<()>(Err(at_c), CompletionStatus::No),
        "{at_c:?}"
    );
    assert_eq!(a.told.cancellations(), 1);
    for node in [b, c] {
        let deadline = Deadline::after(PATIENCE);
        while node.told.cancellations() == 0 && !deadline.has_passed() {
            thread::yield_now();
        }
        assert_eq!(node.told.cancellations(), 1);
    }
}

#[test]
fn a_cancellation_follows_the_head_over_two_calls_and_wakes_who_waits() {
    follows(|_| {}, CompletionStatus::Maybe);
}

/// The strategies by which threads share connections.
const SHARED: [ConnectionStrategy; 2] = [ConnectionStrategy::Leader, ConnectionStrategy::Thread];

#[test]
fn a_cancellation_wakes_a_thread_that_waits_on_a_shared_connection() {
    for strategy in SHARED {
        let shared = |config: &mut chronorb_orb::OrbConfig| config.client_connection = strategy;
        follows(shared, CompletionStatus::Maybe);
    }
}

#[test]
fn a_shared_connection_goes_on_when_a_wait_on_it_is_cancelled() {
    for strategy in SHARED {
        let shared = |config: &mut chronorb_orb::OrbConfig| config.client_connection = strategy;
        let (a, b) = (Node::with(shared), Node::new());
        let gate = Arc::new(Latch::default());
        let (entered, held) = (gate.clone(), gate.clone());
        let (arrived, arrival) = mpsc::channel();
        let object = b.serve(move |call| match call.operation() {
            b"hold" => {
                entered.set(1);
                held.reach(2);
                Ok(())
            }
            _ => {
                let current = call.orb().scheduling_current();
                let _ = arrived.send(current.id()?);
                Err(work(&current))
            }
        });
        let object = a.see(&b, &object);
        let current = a.orb.scheduling_current();
        thread::scope(|scope| {
            // This one reads for the other.
            let first = scope.spawn(|| perform(&object, "hold"));
            gate.reach(1);
            let other = scope.spawn(|| {
                let _segment = current.segment("root", None, None).unwrap();
                perform(&object, "go")
            });
            let id = arrival.recv_timeout(PATIENCE).unwrap();
            current.lookup(id).expect("it waits here").cancel();
            let result = other.join().unwrap();
            assert!(is_cancelled(result, CompletionStatus::Maybe), "{result:?}");
            gate.set(2);
            assert_eq!(first.join().unwrap(), Ok(false), "its reply comes");
        });
    }
}

#[test]
fn a_cancellation_wakes_a_thread_that_waits_for_an_asynchronous_reply() {
    let (a, b) = (Node::new(), Node::new());
    let gate = Arc::new(Latch::default());
    let (entered, held) = (gate.clone(), gate.clone());
    let object = b.serve(move |_| {
        entered.set(1);
        held.reach(2);
        Ok(())
    });
    let object = a.see(&b, &object);
    let current = a.orb.scheduling_current();
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let own = &current;
        let root = scope.spawn(move || {
            let _segment = own.segment("root", None, None).unwrap();
            tell.send(own.id().unwrap()).unwrap();
            // The cancellation may come before the wait, even before the end of the beginning.
            let result = begin(&object).and_then(PendingReply::wait);
            (result, own.id().is_err())
        });
        let id = told.recv_timeout(PATIENCE).unwrap();
        gate.reach(1);
        current.lookup(id).expect("it is here").cancel();
        let (result, is_unwound) = root.join().unwrap();
        assert!(is_cancelled(result, CompletionStatus::Maybe), "{result:?}");
        assert!(is_unwound);
    });
    gate.set(2);
    assert_eq!(a.told.cancellations(), 1);
}

#[test]
fn a_cancellation_between_a_request_and_its_poll_does_not_say_that_it_was_not_sent() {
    let (a, b) = (Node::new(), Node::new());
    let object = a.see(&b, &b.serve(|_| Ok(())));
    let current = a.orb.scheduling_current();
    let _segment = current.segment("root", None, None).unwrap();
    let pending = begin(&object).unwrap();
    cancel(&current);
    assert!(is_cancelled(pending.wait(), CompletionStatus::Maybe));
    assert!(current.id().is_err());
    assert_eq!(a.told.cancellations(), 1);
}

#[test]
fn between_calls_it_is_raised_at_the_next_point() {
    let (a, b) = (Node::new(), Node::new());
    let gate = Arc::new(Latch::default());
    let passed = gate.clone();
    let inner = b.serve(|_| Ok(()));
    let (tell, told) = mpsc::channel();
    let second = b.serve(move |call| {
        let current = call.orb().scheduling_current();
        perform(&inner, "go")?;
        passed.set(1);
        let own = current.lookup(current.id()?).expect("it is here");
        let deadline = Deadline::after(PATIENCE);
        while own.state() == ThreadState::Active && !deadline.has_passed() {
            thread::yield_now();
        }
        let result = perform(&inner, "go").map(drop);
        let _ = tell.send(result);
        result
    });
    let object = a.see(&b, &second);
    let current = a.orb.scheduling_current();
    thread::scope(|scope| {
        let (id, ids) = mpsc::channel();
        let own = &current;
        let root = scope.spawn(move || {
            let _segment = own.segment("root", None, None).unwrap();
            id.send(own.id().unwrap()).unwrap();
            perform(&object, "go")
        });
        let id = ids.recv_timeout(PATIENCE).unwrap();
        gate.reach(1);
        current.lookup(id).expect("it waits here").cancel();
        let result = root.join().unwrap();
        assert!(is_cancelled(result, CompletionStatus::Maybe), "{result:?}");
    });
    let at_b = told.recv_timeout(PATIENCE).unwrap();
    assert!(is_cancelled(at_b, CompletionStatus::No), "{at_b:?}");
}

#[test]
fn a_thread_that_is_cancelled_where_its_head_is_unwinds_to_its_root() {
    let (a, b) = (Node::new(), Node::new());
    let object = b.serve(|call| {
        let current = call.orb().scheduling_current();
        let _segment = current
            .segment("inner", None, None)
            .expect("it is supported");
        current.lookup(current.id()?).expect("it is here").cancel();
        let _raised = current.begin_scheduling_segment("more", None, None);
        // A servant that goes on all the same has no reply.
        Ok(())
    });
    let object = a.see(&b, &object);
    let current = a.orb.scheduling_current();
    current
        .begin_scheduling_segment("outer", None, None)
        .unwrap();
    current
        .begin_scheduling_segment("inner", None, None)
        .unwrap();
    let result = perform(&object, "go");
    assert!(is_cancelled(result, CompletionStatus::Yes), "{result:?}");
    assert!(current.id().is_err(), "all segments have ended");
    for node in [&a, &b] {
        assert_eq!(node.told.cancellations(), 1);
        node.told.take();
    }
    // The next thread is served as before.
    let _segment = current.segment("again", None, None).unwrap();
    assert!(current.id().is_ok());
}

#[test]
fn on_a_shared_connection_the_reply_has_the_cancellation() {
    let shared = |config: &mut chronorb_orb::OrbConfig| {
        config.client_connection = ConnectionStrategy::Leader;
    };
    let (a, b) = (Node::with(shared), Node::new());
    let (arrived, arrival) = mpsc::channel();
    let object = b.serve(move |call| {
        let current = call.orb().scheduling_current();
        let _ = arrived.send(current.id()?);
        Err(work(&current))
    });
    let object = a.see(&b, &object);
    let current = a.orb.scheduling_current();
    let result = thread::scope(|scope| {
        let own = &current;
        let root = scope.spawn(move || {
            let _segment = own.segment("root", None, None).unwrap();
            perform(&object, "go")
        });
        let id = arrival.recv_timeout(PATIENCE).unwrap();
        b.orb.scheduling_current().lookup(id).unwrap().cancel();
        root.join().unwrap()
    });
    assert!(is_cancelled(result, CompletionStatus::No), "{result:?}");
}
