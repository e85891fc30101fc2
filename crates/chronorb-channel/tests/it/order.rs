//! The order of deliveries.

use std::cell::Cell;
use std::sync::Arc;

use chronorb_channel::{Channel, Event, Filter, Lane, Overflow};
use chronorb_rt::PiMutex;

use crate::support::{Notes, TestClock, stepped};

#[test]
fn a_lane_serves_by_subpriority_and_then_by_age() {
    let (channel, _) = stepped(1);
    let order = Arc::new(PiMutex::new(Vec::new()));
    let subscribe = |name: &'static str, subpriority| {
        let order = order.clone();
        let subscription = channel
            .subscribe(Filter::Everything)
            .subpriority(subpriority);
        let note = move |set: &[Event<u64>]| order.lock().push((name, set[0].body));
        subscription.call_on(0, note).expect("it is a lane")
    };
    let _subscriptions = [("b", 5), ("c", 5), ("a", -1), ("d", 9)].map(|(n, s)| subscribe(n, s));
    for body in 1..=2 {
        channel.push(&Event::new(1, 20, body));
    }
    channel.step(0);
    let expected = [
        ("a", 1),
        ("a", 2),
        ("b", 1),
        ("c", 1),
        ("b", 2),
        ("c", 2),
        ("d", 1),
        ("d", 2),
    ];
    assert_eq!(*order.lock(), expected);
}

#[test]
fn an_urgent_lane_overtakes_what_has_not_begun() {
    let (channel, _) = stepped(2);
    let (urgent, slow) = (Notes::default(), Notes::default());
    let _urgent = channel
        .subscribe(Filter::of_type(20))
        .call_on(0, urgent.clone());
    let _slow = channel
        .subscribe(Filter::of_type(21))
        .call_on(1, slow.clone());
    for _ in 0..10 {
        channel.push(&Event::new(1, 21, 0));
    }
    channel.push(&Event::new(1, 20, 0));
    // The lanes share nothing, so the urgent one is done while the other has not begun.
    channel.step(0);
    assert_eq!(urgent.types(), [20]);
    assert_eq!(slow.types(), []);
    channel.step(1);
    assert_eq!(slow.types(), [21; 10]);
}

#[test]
fn queues_are_filled_before_direct_consumers_run() {
    let (channel, _) = stepped(1);
    let queued = Notes::default();
    let seen = queued.clone();
    let stepped = channel.clone();
    let _direct = channel
        .subscribe(Filter::Everything)
        .call(move |_: &[Event<u64>]| {
            // The event is in the lane's queue already.
            stepped.step(0);
            assert_eq!(seen.types(), [20]);
        });
    let _lane = channel.subscribe(Filter::Everything).call_on(0, queued);
    channel.push(&Event::new(1, 20, 0));
}

#[test]
fn a_consumer_may_push() {
    let (channel, _) = stepped(1);
    let (direct, lane) = (Notes::default(), Notes::default());
    let next = channel.supplier(2);
    let chain = channel
        .subscribe(Filter::of_type(20))
        .call(move |set: &[Event<u64>]| {
            next.push(21, set[0].body);
        });
    let _chain = chain.expect("it has no state");
    let again = channel.supplier(3);
    let chain = channel
        .subscribe(Filter::of_type(21))
        .call_on(0, move |_: &[Event<u64>]| {
            again.push(22, 0);
        });
    let _lane_chain = chain.expect("it is a lane");
    let _direct = channel.subscribe(Filter::Everything).call(direct.clone());
    let _lane = channel
        .subscribe(Filter::Everything)
        .call_on(0, lane.clone());
    channel.push(&Event::new(1, 20, 0));
    channel.step(0);
    assert_eq!(direct.types(), [21, 20, 22], "the chain is the older one");
    assert_eq!(lane.types(), [20, 21, 22]);
}

thread_local! {
    /// The deliveries that are deferred, and the greatest number of them that was sent.
    static DEFERRED: Cell<u32> = const { Cell::new(0) };
    static MOST: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn a_lane_sends_what_is_deferred_before_it_waits() {
    fn send() {
        MOST.set(MOST.get().max(DEFERRED.take()));
    }
    let builder = Channel::builder().lane(Lane::new("steps"));
    let channel = builder
        .send_deferred(send)
        .without_threads(Arc::new(TestClock::default()));
    let defer = |_: &[Event<u64>]| DEFERRED.set(DEFERRED.get() + 1);
    let subscription = channel
        .subscribe(Filter::Everything)
        .queue(200, Overflow::DropOldest);
    let subscription = subscription.call_on(0, defer).expect("it is a lane");
    for (pushed, most) in [(1, 1), (10, 10), (200, 64)] {
        for _ in 0..pushed {
            channel.push(&Event::new(1, 20, 0));
        }
        channel.step(0);
        assert_eq!(DEFERRED.get(), 0);
        assert_eq!(MOST.take(), most);
    }
    assert_eq!(subscription.status().events, 211);
}
