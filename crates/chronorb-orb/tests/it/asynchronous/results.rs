//! Asynchronous calls of a chronorb server: results are taken later, by waiting, by polling, by a
//! handler or by a future, with each connection strategy of the client.

use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::MappingKind;
use chronorb_orb::{
    Collocation, CompletionStatus, ConnectionStrategy, Object, Orb, OrbConfig, SystemException,
    SystemExceptionKind, minor,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::support::asynchronous::{
    Alarm, Inbox, begin_add, begin_nothing, block_on, poll_for, poll_once,
};
use crate::support::laned::{LANES, PROPAGATED, Pool, corba, laned};
use crate::support::strategies::STRATEGIES;
use crate::support::{
    PATIENCE, ServedProbe, add, has_real_time, kind_and_completion, orb_with, served,
};

/// A probe from the point of view of a client with another configuration.
struct Client {
    orb: Orb,
    object: Object,
    served: ServedProbe,
}

fn client(configure: impl FnOnce(&mut OrbConfig)) -> Client {
    let served = served();
    let orb = orb_with(configure);
    let text = served.server.object_to_string(&served.object);
    let object = orb.string_to_object(&text).expect("the reference reads");
    Client {
        orb,
        object,
        served,
    }
}

fn with(strategy: ConnectionStrategy) -> Client {
    eprintln!("with {strategy:?}");
    client(|config| config.client_connection = strategy)
}

impl Drop for Client {
    fn drop(&mut self) {
        self.served.probe.gate.set(u32::MAX);
        let _ = self.orb.shutdown(true);
    }
}

#[test]
fn a_result_is_waited_for_after_the_call_has_begun() {
    for client in STRATEGIES.map(with) {
        let first = begin_add(&client.object, 1, 2).expect("it begins");
        let mut second = begin_add(&client.object, 3, 4).expect("it begins");
        assert_eq!(second.wait_until(Instant::now() + PATIENCE), Ok(7));
        assert_eq!(first.wait(), Ok(3));
    }
}

#[test]
fn a_result_is_looked_for_without_waiting() {
    for client in STRATEGIES.map(with) {
        let mut waiting = begin_nothing(&client.object, "wait").expect("it begins");
        client.served.probe.gate.reach(1);
        assert!(waiting.try_get().is_none());
        let mut other = begin_add(&client.object, 1, 2).expect("it begins");
        assert_eq!(poll_for(&mut other), Ok(3));
        assert!(waiting.try_get().is_none());
        client.served.probe.gate.set(2);
        assert_eq!(poll_for(&mut waiting), Ok(()));
    }
}

#[test]
fn a_wait_that_was_too_short_leaves_the_call_under_way() {
    for client in STRATEGIES.map(with) {
        let mut pending = begin_nothing(&client.object, "wait").expect("it begins");
        client.served.probe.gate.reach(1);
        for patience in [Duration::ZERO, Duration::from_millis(1)] {
            let exception = pending.wait_until(Instant::now() + patience);
            let exception = exception.expect_err("it is not there yet");
            assert_eq!(exception.kind, SystemExceptionKind::Timeout);
            assert_eq!(exception.minor, minor::TIMEOUT_POLLER);
        }
        client.served.probe.gate.set(2);
        assert_eq!(pending.wait_until(Instant::now() + PATIENCE), Ok(()));
    }
}

#[test]
fn a_result_is_given_once() {
    for client in STRATEGIES.map(with) {
        let mut pending = begin_add(&client.object, 1, 2).expect("it begins");
        assert_eq!(pending.wait_until(Instant::now() + PATIENCE), Ok(3));
        let taken = |result: Result<i32, SystemException>| {
            let exception = result.expect_err("it was taken");
            (exception.kind, exception.minor)
        };
        let expected = (SystemExceptionKind::ObjectNotExist, minor::ALREADY_REPLIED);
        assert_eq!(taken(pending.wait_until(Instant::now())), expected);
        assert_eq!(
            taken(pending.try_get().expect("there is a result")),
            expected
        );
        assert_eq!(taken(block_on(pending)), expected);
    }
}

#[test]
fn exceptions_of_the_servant_are_results_too() {
    for client in STRATEGIES.map(with) {
        let failing = begin_nothing(&client.object, "fail").expect("it begins");
        let panicking = begin_nothing(&client.object, "panic").expect("it begins");
        let unknown = begin_nothing(&client.object, "unheard_of").expect("it begins");
        let refused = (SystemExceptionKind::NoPermission, CompletionStatus::Maybe);
        assert_eq!(kind_and_completion(failing.wait()), refused);
        let (kind, _) = kind_and_completion(panicking.wait());
        assert_eq!(kind, SystemExceptionKind::Unknown);
        let (kind, _) = kind_and_completion(block_on(unknown));
        assert_eq!(kind, SystemExceptionKind::BadOperation);
    }
}

#[test]
fn handlers_are_called_by_a_thread_of_the_connection() {
    for client in STRATEGIES.map(with) {
        let inbox = Inbox::new();
        for i in 0..50 {
            let pending = begin_add(&client.object, i, 1).expect("it begins");
            let handler = inbox.handler();
            let handled = pending.on_reply(move |result| {
                let name = std::thread::current().name().unwrap_or_default().to_owned();
                handler((result, name));
            });
            handled.expect("there is a thread");
        }
        let mut handled = inbox.take(50);
        handled.sort_by_key(|(result, _)| *result.as_ref().expect("it was served"));
        for (i, (result, name)) in handled.into_iter().enumerate() {
            assert_eq!(result, Ok(i as i32 + 1));
            assert!(name.starts_with("ami."), "{name}");
        }
    }
}

#[test]
fn a_handler_that_panics_ends_alone() {
    for client in STRATEGIES.map(with) {
        let inbox = Inbox::new();
        let pending = begin_add(&client.object, 1, 2).expect("it begins");
        let handled = pending.on_reply(|_| panic!("the handler was asked to"));
        handled.expect("there is a thread");
        let pending = begin_add(&client.object, 3, 4).expect("it begins");
        pending
            .on_reply(inbox.handler())
            .expect("there is a thread");
        assert_eq!(inbox.take(1), [Ok(7)]);
        assert_eq!(add(&client.object, 5, 6), Ok(11));
    }
}

#[test]
fn a_handler_may_call_and_its_slot_is_free_by_then() {
    for strategy in STRATEGIES {
        let client = client(|config| {
            config.client_connection = strategy;
            config.max_pending = 1;
        });
        let inbox = Inbox::new();
        let (object, handler) = (client.object.clone(), inbox.handler());
        let pending = begin_add(&client.object, 1, 2).expect("it begins");
        let handled = pending.on_reply(move |result| {
            let sum = result.and_then(|sum| add(&object, sum, 10));
            let pending = sum.and_then(|sum| begin_add(&object, sum, 100));
            let handled = pending.and_then(|pending| pending.on_reply(handler));
            handled.expect("it begins");
        });
        handled.expect("there is a thread");
        assert_eq!(inbox.take(1), [Ok(113)], "{strategy:?}");
    }
}

#[test]
fn a_handler_cannot_wait_for_the_end_of_its_orb() {
    for client in STRATEGIES.map(with) {
        let inbox = Inbox::new();
        let (orb, handler) = (client.orb.clone(), inbox.handler());
        let pending = begin_add(&client.object, 1, 2).expect("it begins");
        let handled = pending.on_reply(move |_| handler(orb.shutdown(true)));
        handled.expect("there is a thread");
        let [refused] = inbox.take(1).try_into().expect("it is one");
        let exception = refused.expect_err("it would wait for itself");
        assert_eq!(exception.minor, minor::WOULD_DEADLOCK);
    }
}

#[test]
fn futures_are_woken_by_their_replies() {
    for client in STRATEGIES.map(with) {
        let sum = async {
            let first = begin_add(&client.object, 1, 2)?;
            let second = begin_add(&client.object, 3, 4)?;
            Ok::<_, SystemException>(first.await? + second.await?)
        };
        assert_eq!(block_on(sum), Ok(10));
    }
}

#[test]
fn who_has_polled_a_future_may_still_wait() {
    for client in STRATEGIES.map(with) {
        let alarm = Arc::new(Alarm::default());
        let mut pending = begin_nothing(&client.object, "wait").expect("it begins");
        assert_eq!(poll_once(&mut pending, &alarm), Poll::Pending);
        client.served.probe.gate.reach(1);
        assert!(pending.try_get().is_none());
        let exception = pending.wait_until(Instant::now() + Duration::from_millis(1));
        let minor = exception.expect_err("it is not there yet").minor;
        assert_eq!(minor, minor::TIMEOUT_POLLER);
        assert_eq!(poll_once(&mut pending, &alarm), Poll::Pending);
        client.served.probe.gate.set(2);
        assert_eq!(pending.wait(), Ok(()));
    }
}

#[test]
fn one_call_more_than_there_may_be_is_transient() {
    for strategy in STRATEGIES {
        let client = client(|config| {
            config.client_connection = strategy;
            config.max_pending = 2;
        });
        let first = begin_add(&client.object, 1, 2).expect("it begins");
        let mut second = begin_nothing(&client.object, "wait").expect("it begins");
        let exception = begin_add(&client.object, 1, 2).expect_err("two are under way");
        assert_eq!(exception.kind, SystemExceptionKind::Transient);
        assert_eq!(exception.minor, minor::TOO_MANY_PENDING);
        assert_eq!(exception.completed, CompletionStatus::No);

        assert_eq!(first.wait(), Ok(3));
        let alarm = Arc::new(Alarm::default());
        let mut third = begin_add(&client.object, 1, 2).expect("there is room");
        while poll_once(&mut third, &alarm).is_pending() {
            alarm
                .0
                .wait_while(0, chronorb_rt::Deadline::after(PATIENCE));
        }
        assert_eq!(poll_once(&mut second, &alarm), Poll::Pending);
        drop(second);
        let again = [(); 2].map(|()| begin_add(&client.object, 1, 2).expect("there is room"));
        assert!(again.into_iter().all(|pending| pending.wait() == Ok(3)));
    }
}

#[test]
fn no_call_begins_after_shutdown() {
    for client in STRATEGIES.map(with) {
        assert_eq!(add(&client.object, 1, 2), Ok(3));
        client.orb.shutdown(true).expect("it ends");
        let exception = begin_add(&client.object, 1, 2).expect_err("it has ended");
        assert_eq!(exception.minor, minor::ORB_SHUT_DOWN);
    }
}

#[test]
fn calls_of_both_kinds_do_not_wait_for_each_other() {
    for client in STRATEGIES.map(with) {
        let pending = begin_nothing(&client.object, "wait").expect("it begins");
        client.served.probe.gate.reach(1);
        assert_eq!(add(&client.object, 1, 2), Ok(3));
        client.served.probe.gate.set(2);
        assert_eq!(pending.wait(), Ok(()));
    }
}

#[test]
fn objects_of_the_own_process_answer_at_once() {
    let served = served();
    for collocation in [Collocation::ThroughPoa, Collocation::Direct] {
        let text = served.server.object_to_string(&served.object);
        let object = served.server.string_to_object(&text).expect("it reads");
        let object = object.with_collocation(collocation);
        let mut pending = begin_add(&object, 1, 2).expect("it begins");
        assert_eq!(pending.try_get(), Some(Ok(3)));
        assert_eq!(
            block_on(begin_add(&object, 1, 2).expect("it begins")),
            Ok(3)
        );
        let inbox = Inbox::new();
        let pending = begin_add(&object, 1, 2).expect("it begins");
        pending.on_reply(inbox.handler()).expect("it is there");
        assert_eq!(inbox.take(1), [Ok(3)]);
        let failing = begin_nothing(&object, "fail").expect("it begins");
        let refused = (SystemExceptionKind::NoPermission, CompletionStatus::Maybe);
        assert_eq!(kind_and_completion(failing.wait()), refused);
    }
}

#[test]
fn many_threads_take_their_results_in_all_ways() {
    for client in STRATEGIES.map(with) {
        let handled = Arc::new(AtomicU32::new(0));
        let inbox = Inbox::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (object, handled, inbox) = (&client.object, &handled, &inbox);
                scope.spawn(move || {
                    for i in 0..60 {
                        let sum = Ok(thread * 1000 + i);
                        let begin = || begin_add(object, thread * 1000, i).expect("it begins");
                        let (first, mut second) = (begin(), begin());
                        match i % 6 {
                            0 => assert_eq!(first.wait(), sum),
                            1 => assert_eq!(block_on(first), sum),
                            2 => {
                                let (handled, handler) = (handled.clone(), inbox.handler());
                                let result = first.on_reply(move |result| {
                                    assert_eq!(result, sum);
                                    handled.fetch_add(1, Ordering::Relaxed);
                                    handler(());
                                });
                                result.expect("there is a thread");
                            }
                            3 => assert_eq!(add(object, thread * 1000, i), sum),
                            4 => drop(first),
                            _ => {
                                let alarm = Arc::new(Alarm::default());
                                let mut first = first;
                                let _ = poll_once(&mut first, &alarm);
                                drop(first);
                            }
                        }
                        match i % 2 {
                            0 => assert_eq!(second.wait(), sum),
                            _ => assert_eq!(poll_for(&mut second), sum),
                        }
                    }
                });
            }
        });
        inbox.take(40);
        assert_eq!(handled.load(Ordering::Relaxed), 40);
    }
}

#[test]
fn requests_and_handlers_have_the_priority_of_their_caller() {
    for strategy in STRATEGIES {
        let s = laned(
            Pool::Lanes,
            &[Policy::PriorityModel(PROPAGATED, corba(LANES[0]))],
        );
        let orb = orb_with(|config| {
            config.client_connection = strategy;
            config.priority_mapping = MappingKind::Direct;
        });
        let text = s.server.object_to_string(&s.object);
        let object = orb.string_to_object(&text).expect("the reference reads");
        let inbox = Inbox::new();
        std::thread::scope(|scope| {
            for lane in LANES {
                let (orb, object, inbox) = (&orb, &object, &inbox);
                scope.spawn(move || {
                    let current = orb.rt_current();
                    current.set_priority(corba(lane)).expect("it is mapped");
                    let (handler, current) = (inbox.handler(), orb.rt_current());
                    let pending = begin_nothing(object, "priority").expect("it begins");
                    let handled = pending.on_reply(move |result| {
                        let native = chronorb_rt::current().expect("it has a policy");
                        handler((result, current.priority(), native));
                    });
                    handled.expect("there is a thread");
                });
            }
        });
        let mut handled = inbox.take(LANES.len());
        handled.sort_by_key(|(_, priority, _)| priority.as_ref().map_or(-1, |p| p.value()));
        let mut natives = Vec::new();
        for (lane, (result, priority, native)) in LANES.into_iter().zip(handled) {
            assert_eq!(
                (result, priority),
                (Ok(()), Ok(corba(lane))),
                "{strategy:?}"
            );
            natives.push(native.priority);
        }
        if has_real_time() {
            assert!(
                natives.is_sorted_by(|a, b| a < b),
                "{strategy:?}: {natives:?}"
            );
        } else {
            eprintln!("NOT TESTED: without real-time rights all threads are ordinary ones.");
        }
        let _ = orb.shutdown(true);
    }
}
