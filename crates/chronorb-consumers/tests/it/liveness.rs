//! Consumers that do not answer, do not read, or do not exist.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use chronorb::SystemExceptionKind;
use chronorb_consumers::{Checks, EndCause, PeerPolicy, begin_push, has_waited};

use crate::raw::RawConsumer;
use crate::support::{Fixture, LONG, LOST, Nothing, PATIENT, orb};

/// The number of an event in its message, whose body has `octets` more.
fn number_in(message: &[u8], octets: usize) -> i32 {
    let start = message.len() - 8 - octets;
    let number = message[start..start + 4].try_into().expect("four octets");
    i32::from_ne_bytes(number)
}

fn kind_of(cause: EndCause) -> SystemExceptionKind {
    match cause {
        EndCause::Failure(exception) => exception.kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_sent_before_an_answer_and_nothing_is_lost() {
    for has_outboxes in [false, true] {
        let f = if has_outboxes {
            Fixture::with_outboxes(PATIENT)
        } else {
            Fixture::new(PATIENT, 1 << 30)
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        f.connect(1, &f.at(&listener));
        for number in 0..10 {
            f.push(number, &[]);
        }
        f.wait_until(1, |state| state.counts.waiting == 10);
        let state = f.state(1).unwrap();
        assert!(state.is_held && !state.has_answered);
        assert_eq!((state.counts.events, state.counts.lost), (0, 0));
        let mut consumer = RawConsumer::accept(&listener);
        consumer.answer();
        if has_outboxes {
            // An outbox has a connection of its own, and asks for the object.
            consumer = RawConsumer::accept(&listener);
            let question = consumer.read();
            consumer.answer_locate(&question);
        }
        for number in 0..10 {
            assert_eq!(number_in(&consumer.read(), 0), number, "in order");
        }
        f.wait_until(1, |state| state.has_answered && state.counts.waiting == 0);
        let state = f.state(1).unwrap();
        assert_eq!((state.counts.events, state.is_held), (10, false));
    }
}

#[test]
fn held_events_stay_within_the_share_of_their_consumer() {
    let f = Fixture::new(PATIENT, 10_000);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    f.connect(1, &f.at(&listener));
    for number in 0..100 {
        f.push(number, &[0; 1000]);
    }
    let quotas = f.orb.snapshot().quotas;
    let octets = quotas.iter().find(|quota| quota.name == "octets").unwrap();
    assert!((1..=10_000).contains(&octets.used), "{}", octets.used);
    let counts = f.state(1).unwrap().counts;
    assert!((1..10).contains(&counts.waiting), "{}", counts.waiting);
    assert_eq!(counts.waiting + counts.lost, 100, "the others are lost");
    let mut consumer = RawConsumer::accept(&listener);
    consumer.answer();
    // The latest are kept. The losses are told with the next event.
    let kept = i32::try_from(counts.waiting).unwrap();
    for number in 100 - kept..100 {
        assert_eq!(number_in(&consumer.read(), 1000), number);
    }
    f.wait_until(1, |state| state.has_answered);
    f.push(100, &[]);
    let lost = i32::try_from(counts.lost).unwrap();
    assert_eq!(number_in(&consumer.read(), 0), LOST + lost);
    assert_eq!(number_in(&consumer.read(), 0), 100);
    let used = |f: &Fixture| {
        f.orb
            .snapshot()
            .quotas
            .iter()
            .map(|it| it.used)
            .sum::<u64>()
    };
    assert_eq!(used(&f), 1, "of all quotas it has its place");
}

#[test]
fn a_consumer_that_fails_is_called_again() {
    let f = Fixture::new(PATIENT, 1 << 30);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    f.connect(1, &f.at(&listener));
    f.push(7, &[]);
    // The question is not answered.
    RawConsumer::accept(&listener).read();
    f.wait_until(1, |state| state.failures == 1);
    let state = f.state(1).unwrap();
    let error = state.last_error.expect("of the connection that ended");
    assert_eq!(error.kind, SystemExceptionKind::CommFailure);
    let mut consumer = RawConsumer::accept(&listener);
    consumer.answer();
    assert_eq!(number_in(&consumer.read(), 0), 7);
    f.wait_until(1, |state| state.failures == 0 && state.has_answered);
}

#[test]
fn a_consumer_that_is_not_reached_is_evicted_after_its_failures() {
    let f = Fixture::new(PATIENT, 1 << 30);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let absent = f.at(&nobody);
    drop(nobody);
    f.connect(1, &absent);
    f.push(7, &[]);
    f.wait_until(1, |state| state.failures == 1);
    let [(1, cause)] = f.evictions(|| ())[..] else {
        panic!("one is evicted, once");
    };
    assert_eq!(kind_of(cause), SystemExceptionKind::Transient);
    let counts = f.registry().counts();
    assert_eq!((counts.lost, counts.waiting), (1, 0), "what was held");
}

#[test]
fn an_idle_consumer_that_does_not_exist_is_evicted_by_a_check() {
    let f = Fixture::new(PATIENT, 1 << 30);
    let client = orb();
    let root = client.root_poa().unwrap();
    root.manager().activate().unwrap();
    let [gone, there] = [(); 2].map(|()| root.serve(Nothing).unwrap());
    for (number, object) in [(1, &gone), (2, &there)] {
        let text = client.object_to_string(object);
        f.connect(number, &f.orb.string_to_object(&text).unwrap());
        f.wait_until(number, |state| state.has_answered);
    }
    root.deactivate_object(&root.reference_to_id(&gone).unwrap())
        .unwrap();
    let mut checks = Checks::default();
    f.check(&mut checks, LONG);
    assert!(f.state(1).is_some(), "the first check learns what is idle");
    f.check(&mut checks, LONG);
    let [(1, cause)] = f.evictions(|| ())[..] else {
        panic!("the other one is there");
    };
    assert_eq!(kind_of(cause), SystemExceptionKind::ObjectNotExist);
    client.shutdown(true).unwrap();
}

#[test]
fn a_consumer_that_takes_nothing_is_evicted_by_the_checks() {
    let f = Fixture::with_outboxes(PeerPolicy {
        push_timeout: Duration::from_millis(100),
        ..PATIENT
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    f.connect(1, &f.at(&listener));
    let mut consumer = RawConsumer::accept(&listener);
    consumer.answer();
    let mut outbox = RawConsumer::accept(&listener);
    let question = outbox.read();
    outbox.answer_locate(&question);
    f.wait_until(1, |state| state.has_answered);
    // It reads nothing from here on, so the buffers of the kernel fill.
    let mut checks = Checks::default();
    let push_and_check = || {
        f.push(7, &[0; 256 << 10]);
        // It does not answer either.
        f.check(&mut checks, Duration::ZERO);
    };
    let [(1, cause)] = f.evictions(push_and_check)[..] else {
        panic!("it is evicted, once");
    };
    assert_eq!(kind_of(cause), SystemExceptionKind::Timeout);
}

#[test]
fn a_successor_gets_what_was_held() {
    let f = Fixture::new(PATIENT, 1 << 30);
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    f.connect(1, &f.at(&listeners[0]));
    f.push(7, &[]);
    f.reconnect(1, &f.at(&listeners[1]));
    f.push(8, &[]);
    let mut successor = RawConsumer::accept(&listeners[1]);
    successor.answer();
    for number in [7, 8] {
        assert_eq!(number_in(&successor.read(), 0), number);
    }
    // Its failures are no failures of the successor.
    drop(listeners);
    f.wait_until(1, |state| state.has_answered && state.failures == 0);
}

#[test]
fn the_places_of_consumers_are_limited() {
    let f = Fixture::new(PATIENT, 1 << 30);
    let origin = chronorb::quota::Origin::User(1);
    let add = |number| f.registry().add(number, origin, (), || Ok(()));
    let added = [1, 2, 3, 4].map(add);
    assert!(added[..3].iter().all(Result::is_ok));
    let refused = added[3].unwrap_err();
    assert_eq!(refused.kind, SystemExceptionKind::ImpLimit);
    f.registry().remove(2).map(drop).unwrap();
    add(5).unwrap();
    let gone = f.registry().remove(2).map(drop).unwrap_err();
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    let mut seen = Vec::new();
    f.registry().visit(1, 1, |number, _| seen.push(number));
    assert_eq!(seen, [3]);
}

/// A consumer that takes what was held as slowly as it may makes no supplier wait for all of it.
#[test]
fn a_push_waits_for_a_part_of_what_is_held() {
    const HELD: usize = 200;
    let f = Fixture::new(
        PeerPolicy {
            push_timeout: Duration::from_millis(300),
            ..PATIENT
        },
        1 << 30,
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    f.connect(1, &f.at(&listener));
    for number in 0..HELD {
        f.push(i32::try_from(number).unwrap(), &[0; 256 << 10]);
    }
    let mut consumer = RawConsumer::accept(&listener);
    consumer.answer();
    let (read, has_pushed) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while read.load(Ordering::Acquire) < HELD && !has_pushed.load(Ordering::Acquire) {
                consumer.read();
                read.fetch_add(1, Ordering::AcqRel);
                thread::sleep(Duration::from_millis(20));
            }
            drop(consumer);
        });
        while read.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        let push = begin_push();
        f.push(7, &[]);
        assert!(has_waited(), "other consumers do not make it wait again");
        drop(push);
        has_pushed.store(true, Ordering::Release);
    });
    let read = read.into_inner();
    assert!(read < HELD, "it has waited for {read} events");
}
