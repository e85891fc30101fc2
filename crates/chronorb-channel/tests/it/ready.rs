//! Consumers that are not ready, and those that have used their budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_channel::{Budget, Channel, Consumer, Event, Filter, Lane, Overflow};

use crate::support::{Note, Notes, PATIENCE, TestClock, one, stepped};

/// A consumer that takes nothing until it is opened.
#[derive(Clone, Default)]
struct Valve {
    notes: Notes,
    is_open: Arc<AtomicBool>,
}

impl Consumer<u64> for Valve {
    fn push(&self, set: &[Event<u64>]) {
        self.notes.push(set);
    }

    fn is_ready(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    fn lost(&self, number: u64) {
        Consumer::<u64>::lost(&self.notes, number);
    }

    fn disconnected(&self) {
        Consumer::<u64>::disconnected(&self.notes);
    }
}

fn push(channel: &Channel<u64>, types: std::ops::Range<i32>) {
    for event_type in types {
        channel.push(&Event::new(1, event_type, 0));
    }
}

#[test]
fn events_of_a_consumer_that_is_not_ready_wait_in_its_queue() {
    let (channel, _) = stepped(1);
    let (valve, other) = (Valve::default(), Notes::default());
    let subscribe = || {
        channel
            .subscribe(Filter::Everything)
            .queue(2, Overflow::DropOldest)
    };
    let slow = subscribe().call_on(0, valve.clone()).expect("a lane");
    let _other = subscribe().call_on(0, other.clone()).expect("a lane");
    for event_type in 20..25 {
        push(&channel, event_type..event_type + 1);
        channel.step(0);
    }
    assert_eq!(other.types(), [20, 21, 22, 23, 24]);
    assert_eq!(valve.notes.take(), []);
    assert_eq!((slow.status().queued, slow.status().lost), (2, 3));

    slow.waker().wake();
    channel.step(0);
    assert_eq!(valve.notes.take(), [], "it is still not ready");
    valve.is_open.store(true, Ordering::SeqCst);
    channel.step(0);
    assert_eq!(valve.notes.take(), [], "it has not said so");
    slow.waker().wake();
    channel.step(0);
    assert_eq!(valve.notes.take(), [Note::Lost(3), one(1, 23), one(1, 24)]);
    push(&channel, 25..26);
    channel.step(0);
    assert_eq!(valve.notes.take(), [one(1, 25)]);
}

#[test]
fn a_consumer_that_is_never_ready_is_disconnected_by_its_policy() {
    let (channel, _) = stepped(1);
    let valve = Valve::default();
    let subscription = channel
        .subscribe(Filter::Everything)
        .queue(2, Overflow::Disconnect);
    let subscription = subscription.call_on(0, valve.clone()).expect("a lane");
    for event_type in 20..24 {
        push(&channel, event_type..event_type + 1);
        channel.step(0);
    }
    assert_eq!(valve.notes.take(), [Note::Disconnected]);
    let status = subscription.status();
    assert!(status.has_ended);
    assert_eq!((status.events, status.lost, status.queued), (0, 2, 2));
}

#[test]
fn readiness_is_not_missed_by_threads() {
    let channel = Channel::<u64>::builder().lane(Lane::new("lane")).start();
    let channel = channel.expect("there are threads");
    let valve = Valve::default();
    let subscription = channel
        .subscribe(Filter::Everything)
        .queue(10_000, Overflow::Block);
    let subscription = subscription.call_on(0, valve.clone()).expect("a lane");
    let waker = subscription.waker();
    std::thread::scope(|scope| {
        scope.spawn(|| push(&channel, 20..5020));
        scope.spawn(|| {
            for _ in 0..5000 {
                valve.is_open.fetch_not(Ordering::SeqCst);
                waker.wake();
            }
            valve.is_open.store(true, Ordering::SeqCst);
            waker.wake();
        });
    });
    assert!(channel.flush(PATIENCE));
    assert_eq!(valve.notes.types(), (20..5020).collect::<Vec<_>>());
}

/// A consumer that takes some milliseconds for each event, by the clock of the test.
#[derive(Clone)]
struct Worker {
    notes: Notes,
    clock: TestClock,
    cost: u64,
}

impl Consumer<u64> for Worker {
    fn push(&self, set: &[Event<u64>]) {
        self.notes.push(set);
        self.clock.advance(self.cost);
    }

    fn lost(&self, number: u64) {
        Consumer::<u64>::lost(&self.notes, number);
    }
}

#[test]
fn a_consumer_gets_its_budget_of_each_period() {
    let (channel, clock) = stepped(1);
    let worker = |cost| Worker {
        notes: Notes::default(),
        clock: clock.clone(),
        cost,
    };
    let (greedy, other) = (worker(3), worker(0));
    let budget = Budget {
        cost: Duration::from_millis(5),
        period: Duration::from_millis(100),
    };
    let filter = Filter::Everything;
    let bounded = channel
        .subscribe(filter.clone())
        .queue(3, Overflow::DropOldest);
    let bounded = bounded
        .budget(budget)
        .call_on(0, greedy.clone())
        .expect("a lane");
    let _other = channel
        .subscribe(filter)
        .call_on(0, other.clone())
        .expect("a lane");
    push(&channel, 20..23);
    assert_eq!(channel.step(0), Some(100_000_000), "the next period");
    // Two events took 6 ms of 5 ms.
    assert_eq!(greedy.notes.types(), [20, 21]);
    assert_eq!(other.notes.types(), [20, 21, 22]);
    assert_eq!(bounded.status().pauses, 1);
    push(&channel, 23..27);
    channel.step(0);
    assert_eq!(other.notes.types(), [23, 24, 25, 26]);
    assert_eq!(greedy.notes.take(), []);
    assert_eq!(bounded.status().pauses, 1);
    assert_eq!((bounded.status().queued, bounded.status().lost), (3, 2));

    // One millisecond of the second period is used already, so two events fit.
    clock.set(100);
    assert_eq!(channel.step(0), Some(200_000_000));
    assert_eq!(greedy.notes.take(), [Note::Lost(2), one(1, 24), one(1, 25)]);
    assert_eq!(bounded.status().pauses, 2);
    clock.set(500);
    assert_eq!(channel.step(0), None);
    assert_eq!(greedy.notes.types(), [26]);
}

#[test]
fn timers_of_a_consumer_without_budget_fire_in_the_next_period() {
    let (channel, clock) = stepped(1);
    let greedy = Worker {
        notes: Notes::default(),
        clock: clock.clone(),
        cost: 25,
    };
    let subscription = channel.subscribe(Filter::each(Duration::from_millis(10)));
    let budget = Budget {
        cost: Duration::from_millis(20),
        period: Duration::from_millis(100),
    };
    let subscription = subscription.budget(budget).call_on(0, greedy.clone());
    let _subscription = subscription.expect("a lane");
    clock.set(10);
    assert_eq!(channel.step(0), Some(100_000_000));
    assert_eq!(greedy.notes.take().len(), 1);
    clock.set(100);
    channel.step(0);
    assert_eq!(greedy.notes.take().len(), 1, "late ticks are one");
}
