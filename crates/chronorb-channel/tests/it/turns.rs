//! Timers, deliveries and new subscriptions of a lane take turns.

use std::sync::Arc;
use std::time::Duration;

use chronorb_channel::{Channel, Event, Filter, Overflow};
use chronorb_rt::PiMutex;

use crate::support::{Notes, TestClock, one, stepped};

/// The deliveries of a lane in their order: the names of the consumers, with the times.
#[derive(Clone, Default)]
struct Order(Arc<PiMutex<Vec<(&'static str, u64)>>>);

impl Order {
    /// A consumer that notes its name and the time, and then takes some time, until an instant. All
    /// are in milliseconds.
    fn consumer(
        &self,
        name: &'static str,
        clock: &TestClock,
        work: u64,
        until: u64,
    ) -> impl Fn(&[Event<u64>]) + Send + Sync + 'static {
        let (order, clock) = (self.0.clone(), clock.clone());
        move |_| {
            let now = chronorb_channel::Clock::now(&clock) / 1_000_000;
            order.lock().push((name, now));
            if now < until {
                clock.advance(work);
            }
        }
    }

    fn take(&self) -> Vec<(&'static str, u64)> {
        std::mem::take(&mut *self.0.lock())
    }
}

fn push(channel: &Channel<u64>, events: usize) {
    for _ in 0..events {
        channel.push(&Event::new(1, 20, 0));
    }
}

/// A timer that is due again whenever its consumer returns leaves each second turn to others.
#[test]
fn a_timer_that_is_always_due_does_not_stop_deliveries() {
    let (channel, clock) = stepped(1);
    let order = Order::default();
    let timer = channel.subscribe(Filter::each(Duration::from_millis(1)));
    let _timer = timer.call_on(0, order.consumer("timer", &clock, 2, 1000));
    let other = channel
        .subscribe(Filter::of_type(20))
        .queue(100, Overflow::DropOldest);
    let other = other.call_on(0, order.consumer("event", &clock, 0, 0));
    push(&channel, 100);
    clock.set(1);
    channel.step(0);
    let order = order.take();
    let last = order.iter().rfind(|(name, _)| *name == "event");
    assert_eq!(last, Some(&("event", 201)), "each delivery follows a timer");
    for pair in order[..200].windows(2) {
        assert_ne!(pair[0].0, pair[1].0, "timers and events take turns");
    }
    assert_eq!(other.expect("a lane").status().lost, 0);
}

/// A turn fires one timer, and those of other subscriptions that are due as long come in between.
#[test]
fn timers_that_are_due_at_once_take_turns() {
    let (channel, clock) = stepped(1);
    let order = Order::default();
    let all = Filter::Any(vec![Filter::each(Duration::from_secs(1)); 1000]);
    let many = channel.subscribe(all);
    let _many = many.call_on(0, order.consumer("many", &clock, 0, 0));
    let few = channel.subscribe(Filter::each(Duration::from_secs(1)));
    let _few = few.call_on(0, order.consumer("few", &clock, 0, 0));
    let event = channel.subscribe(Filter::of_type(20));
    let _event = event.call_on(0, order.consumer("event", &clock, 0, 0));
    channel.step(0);
    clock.set(1000);
    push(&channel, 2);
    channel.step(0);
    let names = order.take().into_iter().map(|(name, _)| name);
    let names: Vec<_> = names.collect();
    assert_eq!(names[..5], ["many", "event", "few", "event", "many"]);
    assert_eq!(names.len(), 1000 + 1 + 2);
}

/// The delivery of an event fires one timer of its subscription before it, whatever is due.
#[test]
fn a_delivery_fires_one_timer() {
    for is_inline in [false, true] {
        let (channel, clock) = stepped(1);
        let order = Order::default();
        let mut filters = vec![Filter::each(Duration::from_secs(1)); 1000];
        filters.push(Filter::of_type(20));
        let both = channel.subscribe(Filter::Any(filters));
        let consumer = order.consumer("it", &clock, 0, 0);
        let _both = if is_inline {
            both.call_inline(0, consumer)
        } else {
            both.call_on(0, consumer)
        };
        let event = channel.subscribe(Filter::of_type(20));
        let _event = event.call_on(0, order.consumer("event", &clock, 0, 0));
        channel.step(0);
        clock.set(1000);
        push(&channel, 1);
        channel.step(0);
        let names = order.take().into_iter().map(|(name, _)| name);
        let names: Vec<_> = names.collect();
        let at = names.iter().position(|name| *name == "event");
        assert!(at.is_some_and(|at| at <= 5), "{at:?} deliveries before");
        assert_eq!(names.len(), 1000 + 1 + 1);
    }
}

/// New subscriptions do not keep a lane from its deliveries, and all are looked at.
#[test]
fn many_new_timers_are_all_known() {
    let (channel, clock) = stepped(1);
    let notes = Notes::default();
    let subscribe = |_| {
        let timer = channel.subscribe(Filter::each(Duration::from_millis(10)));
        timer.call_on(0, notes.clone()).expect("a lane")
    };
    let _timers: Vec<_> = (0..1000).map(subscribe).collect();
    assert_eq!(channel.step(0), Some(10_000_000));
    clock.set(10);
    channel.step(0);
    assert_eq!(notes.take().len(), 1000);
}

/// A lane that is late fires an interval once, and goes on at the next multiple in the future.
#[test]
fn missed_intervals_are_skipped() {
    let (channel, clock) = stepped(1);
    let notes = Notes::default();
    let timer = channel.subscribe(Filter::each(Duration::from_millis(10)));
    let _timer = timer.call_on(0, notes.clone());
    channel.step(0);
    clock.set(995);
    assert_eq!(channel.step(0), Some(1_000_000_000));
    assert_eq!(notes.take(), [one(0, chronorb_events::INTERVAL_TIMEOUT)]);
}
