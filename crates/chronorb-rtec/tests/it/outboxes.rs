//! Case 21 with outboxes: a consumer that takes nothing loses its own events, and each is counted.

use std::sync::Arc;
use std::time::Duration;

use chronorb::outbox::{OutboxLimits, OutboxOverflow};
use chronorb::prelude::*;
use chronorb_events::{Filter, write_entries};
use chronorb_rt::{Deadline, Gate};
use chronorb_rtec::idl::rtec_event_comm::{
    EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
};
use chronorb_rtec::{ChannelOptions, LaneOptions, PeerPolicy};

use crate::support::{
    Clients, ConsumerProcess, Fixture, LONG, connect, data, endpoint, event, orb,
};

const EVENTS: u32 = 40;

/// A consumer that takes nothing until its gate is open.
#[derive(Default)]
struct StuckConsumer {
    open: Gate,
    taken: Gate,
}

impl PushConsumerOwnedServant for StuckConsumer {
    fn push(&self, _: &Call<'_>, _: EventSet<'_>) -> Result<(), SystemException> {
        self.open.wait_while(0, Deadline::after(LONG));
        self.taken.advance();
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A channel with outboxes for four events, and a stuck consumer in a process of its own.
struct Site {
    f: Fixture,
    orb: Orb,
    stuck: Arc<StuckConsumer>,
    number: u64,
}

impl Site {
    fn new(lanes: usize, push_timeout: Duration) -> Self {
        let options = ChannelOptions {
            lanes: vec![LaneOptions::default(); lanes],
            outboxes: Some(OutboxLimits {
                requests: 4,
                octets: 64 << 20,
                overflow: OutboxOverflow::DropOldest,
            }),
            peers: PeerPolicy {
                push_timeout,
                failures: 2,
                ..PeerPolicy::default()
            },
            ..ChannelOptions::default()
        };
        let f = Fixture::new(Clients::Remote, options);
        let orb = orb();
        let root = orb.root_poa().unwrap();
        root.manager().activate().unwrap();
        let stuck = Arc::new(StuckConsumer::default());
        let skeleton = PushConsumerSkeleton::from_arc(stuck.clone());
        let object = root.serve(skeleton).unwrap();
        let text = orb.object_to_string(&object);
        let consumer = PushConsumer::unchecked_narrow(&f.client.string_to_object(&text).unwrap());
        let (proxy, number) = f.proxy_supplier();
        connect(&proxy, Some(&consumer), &write_entries(&Filter::Everything)).unwrap();
        Self {
            f,
            orb,
            stuck,
            number,
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stuck.open.set(1);
        self.orb.shutdown(true).unwrap();
    }
}

#[test]
fn a_stuck_consumer_loses_its_own_events_only() {
    for lanes in [0, 2] {
        let site = Site::new(lanes, LONG);
        let f = &site.f;
        let other = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(1, 20)]);
        let payload = vec![7; 1 << 20];
        for _ in 0..EVENTS {
            let mut large = event(1, 20);
            large.data = data(&payload);
            supplier.proxy.push(&[large]).unwrap();
            f.expect(1);
            // The other one takes each, so nothing of it has to wait.
            let taken = f.sets(&other).len();
            assert_eq!(taken as u64, f.state_of(other.number).unwrap().sets);
        }
        let payloads = other.recorder.payloads();
        assert!(payloads.iter().all(|(octets, _)| *octets == payload));
        assert_eq!(payloads.len(), EVENTS as usize);
        let state = f.state_of(site.number).unwrap();
        assert!(state.lost > 0, "its buffers have an end");
        assert_eq!(state.queued, 4);
        assert_eq!(state.events + state.lost + 4, u64::from(EVENTS));
        site.stuck.open.set(1);
        let deadline = Deadline::after(LONG);
        while site.stuck.taken.get() < EVENTS - state.lost as u32 {
            assert!(!deadline.has_passed(), "{} taken", site.stuck.taken.get());
            site.stuck
                .taken
                .wait_while(site.stuck.taken.get(), deadline);
        }
        assert_eq!(f.state_of(site.number).unwrap().lost, state.lost);
    }
}

#[test]
fn a_consumer_that_stays_stuck_is_disconnected() {
    // Each event that waits is late at once.
    let site = Site::new(0, Duration::from_nanos(1));
    let f = &site.f;
    let supplier = f.supplier(&[(1, 20)]);
    let payload = vec![7; 1 << 20];
    for _ in 0..EVENTS {
        let mut large = event(1, 20);
        large.data = data(&payload);
        supplier.proxy.push(&[large]).unwrap();
        f.expect(1);
    }
    assert!(f.state_of(site.number).is_some());
    f.service.check_clients();
    f.service.check_clients();
    f.wait_for_evictions(1);
    assert!(f.state_of(site.number).is_none());
    let statistics = f.service.statistics();
    assert_eq!(statistics.evicted, 1);
    assert_eq!(statistics.delivered + statistics.lost, u64::from(EVENTS));
}

#[test]
fn one_encoding_serves_all_consumers() {
    for lanes in [0, 2] {
        let site = Site::new(lanes, LONG);
        site.stuck.open.set(1);
        let f = &site.f;
        let consumers: Vec<_> = (0..5).map(|_| f.subscribe(&Filter::Everything)).collect();
        let supplier = f.supplier(&[(1, 20)]);
        for octets in [0, 1, 9] {
            let payload = vec![octets; octets as usize];
            let mut sent = event(1, 20);
            sent.data = data(&payload);
            supplier.proxy.push(&[sent]).unwrap();
            f.expect(1);
        }
        for consumer in &consumers {
            assert_eq!(f.sets(consumer).len(), 3);
            let payloads = consumer.recorder.payloads();
            let payloads: Vec<_> = payloads.into_iter().map(|(octets, _)| octets).collect();
            assert_eq!(payloads, [vec![], vec![1], vec![9; 9]]);
        }
    }
}

#[test]
fn an_outbox_is_opened_again_when_the_process_is_back() {
    let options = ChannelOptions {
        outboxes: Some(OutboxLimits::default()),
        peers: PeerPolicy {
            failures: u32::MAX,
            ..PeerPolicy::default()
        },
        ..ChannelOptions::default()
    };
    let f = Fixture::new(Clients::Remote, options);
    let endpoint = endpoint("reopened");
    let first = ConsumerProcess::start(&endpoint, 1);
    let text = first.texts[0].clone();
    let consumer = PushConsumer::unchecked_narrow(&f.client.string_to_object(&text).unwrap());
    let (proxy, number) = f.proxy_supplier();
    connect(&proxy, Some(&consumer), &write_entries(&Filter::Everything)).unwrap();
    let supplier = f.supplier(&[(1, 20)]);
    f.push(&supplier, &[(1, 20)]);
    assert_eq!(first.recorders[0].sets(1), [[(1, 20)]]);
    drop(first);

    // It is lost when its connection ends, which the channel learns by a push at the latest.
    let deadline = Deadline::after(LONG);
    let mut pushed = 1;
    while f.state_of(number).unwrap().failures == 0 {
        f.push(&supplier, &[(1, 21)]);
        pushed += 1;
        assert!(!deadline.has_passed());
    }
    f.push(&supplier, &[(1, 30), (1, 31)]);
    let second = ConsumerProcess::start(&endpoint, 1);
    assert_eq!(second.texts, [text]);
    // The channel tries again by itself, and what has waited follows.
    let sets = second.recorders[0].sets(2);
    let rest = &sets[sets.len() - 2..];
    assert_eq!(rest, [[(1, 30)], [(1, 31)]]);
    let state = f.state_of(number).unwrap();
    assert_eq!(state.events + state.lost, pushed + 2);
    f.push(&supplier, &[(1, 32)]);
    assert_eq!(
        second.recorders[0].sets(sets.len() + 1).last(),
        Some(&vec![(1, 32)])
    );
}
