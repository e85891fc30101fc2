//! Cases 22 and 23: consumers that are too slow, by each policy, and lanes of different urgency.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use chronorb::SystemExceptionKind::BadParam;
use chronorb::outbox::OutboxLimits;
use chronorb::prelude::*;
use chronorb_events::{EVENTS_LOST, Filter, write_entries};
use chronorb_rt::{Deadline, Gate};
use chronorb_rtec::idl::chronorb_events::{
    OverflowPolicy, QueueQOS, QueuedProxyPushSupplier, SetQueueError,
};
use chronorb_rtec::idl::rtec_event_channel_admin::ProxyPushSupplier;
use chronorb_rtec::idl::rtec_event_comm::{
    EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
};
use chronorb_rtec::{ChannelLimits, ChannelOptions, LaneOptions, PeerPolicy};

use crate::support::{
    Clients, ConsumerProcess, Fixture, LONG, Record, Recorder, connect, connect_on, data, endpoint,
    event,
};

/// A note of a consumer: the type of an event, or the number of lost ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Note {
    Type(i32),
    Lost(u64),
}

fn types(types: impl IntoIterator<Item = i32>) -> Vec<Note> {
    types.into_iter().map(Note::Type).collect()
}

/// Waits for so many sets, and returns all of them as notes.
fn notes(recorder: &Recorder, least: usize) -> Vec<Note> {
    let sets = recorder.sets(least);
    let values = recorder.payloads().into_iter().map(|(_, value)| value);
    let events = sets.into_iter().flatten().zip(values);
    let note = |((_, event_type), value): (_, AnyBuf)| match event_type {
        EVENTS_LOST => Note::Lost(value.extract().expect("a number")),
        event_type => Note::Type(event_type),
    };
    events.map(note).collect()
}

/// A channel with outboxes, whose consumers may make suppliers wait for a millisecond.
fn channel(lanes: usize) -> Fixture {
    let options = ChannelOptions {
        lanes: vec![LaneOptions::default(); lanes],
        outboxes: Some(OutboxLimits::default()),
        limits: ChannelLimits {
            queue: 16,
            block: Duration::from_millis(1),
            ..ChannelLimits::default()
        },
        peers: PeerPolicy {
            push_timeout: LONG,
            failures: u32::MAX,
            ..PeerPolicy::default()
        },
        ..ChannelOptions::default()
    };
    Fixture::new(Clients::Remote, options)
}

const fn queue(capacity: u32, overflow: OverflowPolicy) -> QueueQOS {
    QueueQOS {
        capacity,
        overflow,
        block: 10_000,
        tells_losses: true,
    }
}

/// Obtains a proxy with a queue. Returns its number too.
fn queued_proxy(f: &Fixture, qos: &QueueQOS) -> (ProxyPushSupplier, u64) {
    let (proxy, number) = f.proxy_supplier();
    let queued = QueuedProxyPushSupplier::narrow(proxy.as_object());
    let queued = queued.unwrap().expect("each proxy has a queue");
    queued.set_queue(qos).unwrap();
    (proxy, number)
}

fn at(f: &Fixture, text: &str) -> PushConsumer {
    PushConsumer::unchecked_narrow(&f.client.string_to_object(text).unwrap())
}

fn everything() -> Vec<chronorb_events::Entry> {
    write_entries(&Filter::Everything)
}

#[test]
fn case_22_each_policy_of_a_consumer_tells_its_losses() {
    let last = [vec![Note::Lost(24)], types(44..60)].concat();
    let first = [types(20..36), vec![Note::Lost(24)]].concat();
    let cases = [
        (OverflowPolicy::DropOldest, last.clone()),
        (OverflowPolicy::DropNewest, first.clone()),
        (OverflowPolicy::Block, first),
        // Each event has a key of its own.
        (OverflowPolicy::LatestByKey, last),
    ];
    for lanes in [0, 2] {
        let f = channel(lanes);
        let endpoint = endpoint(&format!("policies-{lanes}"));
        let number = cases.len() as u32;
        let texts = ConsumerProcess::start(&endpoint, number).texts.clone();
        // The process is gone when its consumers connect, so all events wait.
        let consumers = cases.iter().zip(&texts).map(|((overflow, _), text)| {
            let (proxy, number) = queued_proxy(&f, &queue(16, *overflow));
            connect_on(&proxy, &at(&f, text), &everything(), 1);
            number
        });
        let consumers: Vec<_> = consumers.collect();
        let supplier = f.supplier(&[(1, 20)]);
        let events: Vec<_> = (20..60).map(|event_type| (1, event_type)).collect();
        f.push(&supplier, &events);
        for number in &consumers {
            let state = f.state_of(*number).unwrap();
            assert_eq!((state.events, state.queued, state.lost), (0, 16, 24));
        }
        let process = ConsumerProcess::start(&endpoint, number);
        for ((recorder, number), (overflow, expected)) in
            process.recorders.iter().zip(&consumers).zip(&cases)
        {
            assert_eq!(notes(recorder, 17), *expected, "{overflow:?}");
            let state = f.state_of(*number).unwrap();
            assert_eq!((state.events, state.queued, state.lost), (16, 0, 24));
        }
    }
}

#[test]
fn case_22_the_latest_event_of_each_key_is_kept() {
    let f = channel(1);
    let endpoint = endpoint("latest");
    let text = ConsumerProcess::start(&endpoint, 1).texts[0].clone();
    let (proxy, _) = queued_proxy(&f, &queue(16, OverflowPolicy::LatestByKey));
    connect(&proxy, Some(&at(&f, &text)), &everything()).unwrap();
    let supplier = f.supplier(&[(1, 20)]);
    let events: Vec<_> = (0..10).map(|number| (1, 30 + number % 2)).collect();
    f.push(&supplier, &events);
    let process = ConsumerProcess::start(&endpoint, 1);
    let expected = [vec![Note::Lost(8)], types([30, 31])].concat();
    assert_eq!(notes(&process.recorders[0], 3), expected);
}

/// A consumer whose pushes wait until it is opened.
#[derive(Default)]
struct Dam {
    open: Gate,
    sets: Record<Note>,
    disconnected: Gate,
}

impl PushConsumerOwnedServant for Dam {
    fn push(&self, _: &Call<'_>, set: EventSet<'_>) -> Result<(), SystemException> {
        self.open.wait_while(0, Deadline::after(LONG));
        for event in set {
            self.sets.add(match event.header.r#type {
                EVENTS_LOST => Note::Lost(event.data.any_value.extract().expect("a number")),
                event_type => Note::Type(event_type),
            });
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        self.disconnected.advance();
        Ok(())
    }
}

/// Connects a dam, which the channel reaches over TCP.
fn dam(f: &Fixture, qos: &QueueQOS) -> (Arc<Dam>, u64) {
    let (proxy, number) = queued_proxy(f, qos);
    let dam = Arc::new(Dam::default());
    let skeleton = PushConsumerSkeleton::from_arc(dam.clone());
    let object = f.client.root_poa().unwrap().serve(skeleton).unwrap();
    let consumer = PushConsumer::unchecked_narrow(&object);
    connect(&proxy, Some(&consumer), &everything()).unwrap();
    (dam, number)
}

#[test]
fn case_22_a_consumer_that_overflows_is_disconnected_once() {
    let f = channel(1);
    let (dam, number) = dam(&f, &queue(16, OverflowPolicy::Disconnect));
    let other = f.subscribe(&Filter::Everything);
    let supplier = f.supplier(&[(1, 20)]);
    let payload = vec![7; 256 << 10];
    let mut pushed = 0;
    while f.state_of(number).is_some() {
        let mut large = event(1, 20);
        large.data = data(&payload);
        supplier.proxy.push(&[large]).unwrap();
        f.expect(1);
        pushed += 1;
        other.recorder.sets(pushed);
    }
    assert_eq!(dam.disconnected.wait_while(0, Deadline::after(LONG)), 1);
    dam.open.set(1);
    f.wait_for_evictions(1);
    let statistics = f.service.statistics();
    assert_eq!(statistics.evicted, 1);
    let delivered = statistics.delivered - pushed as u64;
    assert_eq!(delivered + statistics.lost, pushed as u64);
}

#[test]
fn case_22_the_losses_of_a_stuck_process_are_told_in_order() {
    let f = channel(0);
    let (dam, number) = dam(&f, &queue(16, OverflowPolicy::DropOldest));
    let supplier = f.supplier(&[(1, 20)]);
    let payload = vec![7; 256 << 10];
    let last = 120;
    for event_type in 20..=last {
        let mut large = event(1, event_type);
        large.data = data(&payload);
        supplier.proxy.push(&[large]).unwrap();
        f.expect(1);
    }
    assert!(
        f.state_of(number).unwrap().lost > 0,
        "its buffers have an end"
    );
    dam.open.set(1);
    // Everything arrives but what is told as lost, each loss at its place.
    let (mut next, mut seen, mut got) = (20, 0, 0);
    while next <= last {
        let notes = dam.sets.wait_for(seen + 1);
        for note in &notes[seen..] {
            match note {
                Note::Type(event_type) => {
                    assert_eq!(*event_type, next);
                    next += 1;
                    got += 1;
                }
                Note::Lost(number) => next += i32::try_from(*number).unwrap(),
            }
        }
        seen = notes.len();
    }
    assert_eq!(next, last + 1);
    assert_eq!(f.state_of(number).unwrap().lost + got, 101);
}

#[test]
fn a_queue_beyond_the_bounds_is_refused() {
    let f = channel(1);
    let (proxy, _) = f.proxy_supplier();
    let queued = QueuedProxyPushSupplier::narrow(proxy.as_object());
    let queued = queued.unwrap().expect("each proxy has a queue");
    let longer = QueueQOS {
        block: 10_001,
        ..queue(1, OverflowPolicy::Block)
    };
    let refused = [
        queue(0, OverflowPolicy::DropOldest),
        queue(17, OverflowPolicy::DropOldest),
        queue(u32::MAX, OverflowPolicy::DropOldest),
        longer,
    ];
    for qos in refused {
        match queued.set_queue(&qos) {
            Err(SetQueueError::System(exception)) => assert_eq!(exception.kind, BadParam),
            other => panic!("{qos:?}: {other:?}"),
        }
    }
    let (_, consumer) = f.recorder();
    connect(&proxy, Some(&consumer), &everything()).unwrap();
    let late = queued.set_queue(&queue(1, OverflowPolicy::DropOldest));
    assert!(matches!(late, Err(SetQueueError::AlreadyConnected(_))));
}

#[test]
fn case_23_an_urgent_event_does_not_wait_for_a_saturated_lane() {
    let options = ChannelOptions {
        lanes: vec![LaneOptions::default(); 2],
        peers: PeerPolicy {
            push_timeout: LONG,
            ..PeerPolicy::default()
        },
        ..ChannelOptions::default()
    };
    let f = Fixture::new(Clients::Remote, options);
    let stuck = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stuck.local_addr().unwrap().port();
    let consumer = at(&f, &format!("corbaloc:iiop:127.0.0.1:{port}/Absent"));
    let (proxy, low) = f.proxy_supplier();
    connect_on(&proxy, &consumer, &everything(), 2);
    let (proxy, _) = f.proxy_supplier();
    let (urgent, consumer) = f.recorder();
    connect_on(&proxy, &consumer, &write_entries(&Filter::of_type(99)), 1);
    let supplier = f.supplier(&[(1, 20)]);
    // The thread of the low lane comes to wait in a push that its peer does not take. Before that
    // it may only be late, and take from its queue while the urgent event is on its way.
    let payload = vec![7; 256 << 10];
    let mut received = f.service.statistics().received;
    let mut urgents = 0;
    loop {
        while f.state_of(low).unwrap().queued < 8 {
            let mut large = event(1, 20);
            large.data = data(&payload);
            supplier.proxy.push(&[large]).unwrap();
            received += 1;
            f.wait_for_received(received);
        }
        let before = f.state_of(low).unwrap();
        supplier.proxy.push(&[event(1, 99)]).unwrap();
        received += 1;
        urgents += 1;
        assert_eq!(urgent.sets(urgents), vec![[(1, 99)]; urgents]);
        let after = f.state_of(low).unwrap();
        if after.queued == before.queued + 1 {
            break;
        }
    }
    drop(stuck);
}
