//! Filters, groups and timers by each way of delivery. The rules themselves are tested in
//! `chronorb-events`; here each way has to apply them.

use std::time::Duration;

use chronorb_channel::{
    Channel, Delivery, Event, EventStream, Filter, SubscribeError, Subscription,
};
use chronorb_events::{DEADLINE_TIMEOUT, INTERVAL_TIMEOUT};

use crate::support::{Note, Notes, TestClock, headers, one, stepped};

/// A consumer that is called, or takes its events itself.
enum TestConsumer {
    Called(Subscription<u64>, Notes),
    Stream(EventStream<u64>),
}

/// A way that takes any filter.
#[derive(Clone, Copy)]
enum TestWay {
    Lane,
    Inline,
    Stream,
}

/// A channel with one consumer.
struct Site {
    channel: Channel<u64>,
    clock: TestClock,
    served: TestConsumer,
}

impl Site {
    /// One site for each way that takes any filter.
    fn each(filter: &Filter) -> [Self; 3] {
        [TestWay::Lane, TestWay::Inline, TestWay::Stream].map(|way| {
            let (channel, clock) = stepped(1);
            let subscription = channel.subscribe(filter.clone());
            let notes = Notes::default();
            let called = match way {
                TestWay::Lane => Some(subscription.call_on(0, notes.clone())),
                TestWay::Inline => Some(subscription.call_inline(0, notes.clone())),
                TestWay::Stream => None,
            };
            let served = match called {
                Some(called) => TestConsumer::Called(called.expect("it is a lane"), notes),
                None => {
                    let stream = channel.subscribe(filter.clone()).stream();
                    TestConsumer::Stream(stream.expect("it is a filter"))
                }
            };
            Self {
                channel,
                clock,
                served,
            }
        })
    }

    fn push(&mut self, source: i32, event_type: i32) -> Vec<Note> {
        self.channel.push(&Event::new(source, event_type, 0));
        self.take()
    }

    fn at(&mut self, milliseconds: u64) -> Vec<Note> {
        self.clock.set(milliseconds);
        self.take()
    }

    fn take(&mut self) -> Vec<Note> {
        match &mut self.served {
            TestConsumer::Called(_, notes) => {
                self.channel.step(0);
                notes.take()
            }
            TestConsumer::Stream(stream) => {
                let taken = std::iter::from_fn(|| stream.next_within(Duration::ZERO));
                taken.map(note).collect()
            }
        }
    }

    fn suspend(&self, is_suspended: bool) {
        match (&self.served, is_suspended) {
            (TestConsumer::Called(subscription, _), true) => subscription.suspend(),
            (TestConsumer::Called(subscription, _), false) => subscription.resume(),
            (TestConsumer::Stream(stream), true) => stream.suspend(),
            (TestConsumer::Stream(stream), false) => stream.resume(),
        }
    }
}

fn note(taken: Delivery<u64>) -> Note {
    match taken {
        Delivery::Set(set) => Note::Set(headers(&set)),
        Delivery::Lost(number) => Note::Lost(number),
    }
}

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

#[test]
fn wildcards_and_events_without_a_source() {
    let leaves = [(10, 20), (10, 0), (0, 20), (0, 0)];
    let expected = [
        [true, false, true],
        [true, false, true],
        [true, false, true],
        [true; 3],
    ];
    for ((source, event_type), expected) in leaves.into_iter().zip(expected) {
        let filter = Filter::event(source, event_type);
        let events = [(10, 20), (11, 21), (0, 20)];
        for mut site in Site::each(&filter) {
            for ((source, event_type), expected) in events.into_iter().zip(expected) {
                let got = site.push(source, event_type);
                let want = Vec::from_iter(expected.then(|| one(source, event_type)));
                assert_eq!(got, want, "{filter:?}");
            }
        }
        // The same without a queue.
        let (channel, _) = stepped(0);
        let notes = Notes::default();
        let subscription = channel.subscribe(filter).call(notes.clone());
        for ((source, event_type), expected) in events.into_iter().zip(expected) {
            channel.push(&Event::new(source, event_type, 0));
            let want = Vec::from_iter(expected.then(|| one(source, event_type)));
            assert_eq!(notes.take(), want);
        }
        drop(subscription);
    }
}

#[test]
fn groups_deliver_sets() {
    let filter = Filter::Conjunction(vec![Filter::of_type(20), Filter::of_type(21)]);
    for mut site in Site::each(&filter) {
        assert_eq!(site.push(1, 20), []);
        assert_eq!(site.push(2, 20), []);
        let set = Note::Set(vec![(1, 20), (3, 21)]);
        assert_eq!(site.push(3, 21), [set]);
        assert_eq!(site.push(4, 21), []);
        let set = Note::Set(vec![(4, 21), (5, 20)]);
        assert_eq!(site.push(5, 20), [set]);
    }
}

#[test]
fn timers_do_not_drift() {
    let interval = Filter::each(milliseconds(100));
    for mut site in Site::each(&interval) {
        let mut ticks = 0;
        for now in (30..=5000).step_by(10) {
            ticks += site.at(now).len();
        }
        assert_eq!(ticks, 50);
    }
    let filter = Filter::silence(milliseconds(80)) | Filter::of_type(20);
    for mut site in Site::each(&filter) {
        for now in (50..=500).step_by(50) {
            assert_eq!(site.at(now), []);
            assert_eq!(site.push(1, 20), [one(1, 20)]);
        }
        assert_eq!(site.at(579), []);
        assert_eq!(site.at(580), [one(0, DEADLINE_TIMEOUT)]);
        assert_eq!(site.at(659), []);
        assert_eq!(site.at(660), [one(0, DEADLINE_TIMEOUT)]);
    }
    let filter = Filter::each(milliseconds(100)) | Filter::of_type(20);
    for mut site in Site::each(&filter) {
        assert_eq!(
            site.at(250),
            [one(0, INTERVAL_TIMEOUT)],
            "a late one comes once"
        );
        assert_eq!(site.at(300), [one(0, INTERVAL_TIMEOUT)]);
    }
}

#[test]
fn a_suspended_consumer_keeps_its_groups() {
    let filter = Filter::Conjunction(vec![Filter::of_type(20), Filter::of_type(21)])
        | Filter::silence(milliseconds(100));
    for mut site in Site::each(&filter) {
        assert_eq!(site.push(1, 20), []);
        site.suspend(true);
        site.suspend(true);
        assert_eq!(site.push(2, 21), []);
        assert_eq!(site.at(250), [], "timers are suspended too");
        site.suspend(false);
        site.suspend(false);
        assert_eq!(site.push(3, 21), [Note::Set(vec![(1, 20), (3, 21)])]);
    }
}

#[test]
fn a_filter_with_state_is_not_delivered_directly() {
    let (channel, _) = stepped(1);
    let with_state = [
        Filter::each(milliseconds(1)),
        Filter::Conjunction(vec![Filter::of_type(20)]),
        Filter::of_type(20) | Filter::after(milliseconds(1)),
    ];
    for filter in with_state {
        let refused = channel.subscribe(filter).call(Notes::default());
        assert_eq!(
            refused.expect_err("it has state"),
            SubscribeError::NeedsLane
        );
    }
    let refused = channel
        .subscribe(!Filter::each(milliseconds(1)))
        .call(Notes::default());
    assert!(matches!(refused, Err(SubscribeError::Filter(_))));
    let refused = channel
        .subscribe(Filter::Everything)
        .call_on(1, Notes::default());
    assert_eq!(
        refused.expect_err("there is one lane"),
        SubscribeError::NoLane(1)
    );
    assert_eq!(channel.subscriptions(), 0);
}
