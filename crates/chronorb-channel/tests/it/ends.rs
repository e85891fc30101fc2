//! The ends of subscriptions and channels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use chronorb_channel::{Event, Filter, Overflow, SubscribeError, Subscription};
use chronorb_rt::PiMutex;

use crate::support::{Note, Notes, PATIENCE, one, stepped};

#[test]
fn no_push_follows_a_disconnection() {
    let (channel, _) = stepped(1);
    let (direct, lane) = (Notes::default(), Notes::default());
    let first = channel.subscribe(Filter::Everything).call(direct.clone());
    let second = channel
        .subscribe(Filter::Everything)
        .call_on(0, lane.clone());
    let supplier = channel.supplier(1);
    supplier.push(20, 0);
    first.expect("it has no state").disconnect();
    // Its event waits in the queue, and is dropped.
    second.expect("it is a lane").disconnect();
    supplier.push(21, 0);
    channel.step(0);
    assert_eq!(direct.types(), [20]);
    assert_eq!(lane.take(), []);
    assert_eq!(channel.subscriptions(), 0);
}

#[test]
fn a_disconnection_waits_for_a_push_in_progress() {
    let (channel, _) = stepped(0);
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let may_end = PiMutex::new(may_end);
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    let subscription = channel.subscribe(Filter::Everything);
    let subscription = subscription.call(move |_: &[Event<u64>]| {
        begun.send(()).expect("the test waits");
        may_end
            .lock()
            .recv_timeout(PATIENCE)
            .expect("the test sends");
        over.store(true, Ordering::SeqCst);
    });
    let subscription = subscription.expect("it has no state");
    std::thread::scope(|scope| {
        scope.spawn(|| channel.push(&Event::new(1, 20, 0)));
        has_begun.recv_timeout(PATIENCE).expect("it is pushed");
        let disconnected = scope.spawn(|| {
            subscription.disconnect();
            assert!(is_over.load(Ordering::SeqCst), "the push was over");
        });
        end.send(()).expect("the consumer waits");
        disconnected.join().expect("it ends");
    });
}

#[test]
fn a_consumer_may_disconnect_itself() {
    for by_lane in [false, true] {
        let (channel, _) = stepped(1);
        let own: Arc<PiMutex<Option<Subscription<u64>>>> = Arc::default();
        let calls = Arc::new(AtomicU32::new(0));
        let (its, counted) = (own.clone(), calls.clone());
        let consumer = move |_: &[Event<u64>]| {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(its.lock().take());
        };
        let subscription = channel.subscribe(Filter::Everything);
        let subscription = if by_lane {
            subscription.call_on(0, consumer)
        } else {
            subscription.call(consumer)
        };
        *own.lock() = Some(subscription.expect("it is a filter"));
        for _ in 0..3 {
            channel.push(&Event::new(1, 20, 0));
        }
        channel.step(0);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        assert_eq!(channel.subscriptions(), 0);
    }
}

#[test]
fn the_end_of_a_channel_is_told_once() {
    let (channel, _) = stepped(1);
    let (direct, lane) = (Notes::default(), Notes::default());
    let _direct = channel.subscribe(Filter::Everything).call(direct.clone());
    let _lane = channel
        .subscribe(Filter::Everything)
        .call_on(0, lane.clone());
    let mut stream = channel
        .subscribe(Filter::Everything)
        .stream()
        .expect("a filter");
    channel.push(&Event::new(1, 20, 0));
    channel.close();
    channel.close();
    channel.push(&Event::new(1, 21, 0));
    channel.step(0);
    assert_eq!(direct.take(), [one(1, 20), Note::Disconnected]);
    assert_eq!(lane.take(), [Note::Disconnected]);
    assert!(stream.next().is_some(), "what was queued can be taken");
    assert_eq!(stream.next(), None);
    let refused = channel.subscribe(Filter::Everything).call(direct);
    assert_eq!(refused.expect_err("it is closed"), SubscribeError::Closed);
}

#[test]
fn a_panic_of_a_consumer_ends_one_delivery() {
    let (channel, _) = stepped(1);
    let group = Filter::Conjunction(vec![Filter::of_type(20), Filter::of_type(21)]);
    let subscription = channel.subscribe(group).call_on(0, |_: &[Event<u64>]| {
        panic!("the consumer was asked to");
    });
    let subscription = subscription.expect("it is a lane");
    let other = Notes::default();
    let _other = channel
        .subscribe(Filter::Everything)
        .call_on(0, other.clone());
    for _ in 0..2 {
        channel.push(&Event::new(1, 20, 0));
        channel.push(&Event::new(1, 21, 0));
        channel.step(0);
    }
    let status = subscription.status();
    assert_eq!((status.panics, status.sets), (2, 2));
    assert_eq!(other.types(), [20, 21, 20, 21]);
}

#[test]
fn a_supplier_that_waits_goes_on_when_its_consumer_leaves() {
    let (channel, _) = stepped(1);
    let subscription = channel.subscribe(Filter::Everything);
    let subscription = subscription.queue(1, Overflow::Block).block_for(PATIENCE);
    let subscription = subscription.call_on(0, Notes::default()).expect("a lane");
    channel.push(&Event::new(1, 20, 0));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| channel.push(&Event::new(1, 21, 0)));
        while subscription.status().queued < 1 {
            std::thread::yield_now();
        }
        subscription.disconnect();
        waiting.join().expect("it goes on");
    });
}

#[test]
fn subscriptions_are_bounded() {
    let channel = chronorb_channel::Channel::<()>::builder().subscriptions(2);
    let channel = channel.start().expect("it has no threads");
    let subscribe = || channel.subscribe(Filter::Everything).stream();
    let _two = [subscribe().expect("room"), subscribe().expect("room")];
    let refused = subscribe().expect_err("there is no room");
    assert_eq!(refused, SubscribeError::TooMany { most: 2 });
    let none = Duration::ZERO;
    assert_eq!(
        _two.map(|mut stream| stream.next_within(none).is_none()),
        [true; 2]
    );
}
