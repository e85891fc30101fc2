//! Subscriptions whose filter and consumer are replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chronorb_channel::{
    Channel, Event, Filter, Lane, Overflow, SubscribeError, Subscription, SubscriptionBuilder,
};
use chronorb_events::INTERVAL_TIMEOUT;
use chronorb_rt::PiMutex;

use crate::support::{Notes, PATIENCE, one, stepped};

fn each_way(
    subscription: SubscriptionBuilder<'_, u64>,
    by_lane: bool,
    consumer: impl chronorb_channel::Consumer<u64>,
) -> Subscription<u64> {
    let subscription = if by_lane {
        subscription.call_on(0, consumer)
    } else {
        subscription.call_inline(0, consumer)
    };
    subscription.expect("there is a lane")
}

#[test]
fn events_and_timers_follow_the_new_filter() {
    for by_lane in [false, true] {
        let (channel, clock) = stepped(1);
        let (old, new) = (Notes::default(), Notes::default());
        let ticks = Filter::each(Duration::from_millis(7)) | Filter::of_type(20);
        let mut subscription = each_way(channel.subscribe(ticks), by_lane, old.clone());
        channel.push(&Event::new(1, 20, 0));
        channel.step(0);
        assert_eq!(old.take(), [one(1, 20)]);

        clock.set(3);
        let ticks = Filter::each(Duration::from_millis(10)) | Filter::of_type(21);
        subscription.replace(&ticks, new.clone()).expect("a filter");
        assert_eq!(subscription.leaves(), [(0, 21)]);
        channel.push(&Event::new(1, 20, 0));
        channel.push(&Event::new(1, 21, 0));
        channel.step(0);
        clock.set(12);
        channel.step(0);
        clock.set(13);
        channel.step(0);
        assert_eq!(old.take(), []);
        assert_eq!(new.take(), [one(1, 21), one(0, INTERVAL_TIMEOUT)]);
        assert_eq!(channel.subscriptions(), 1);
        subscription.disconnect();
        channel.push(&Event::new(1, 21, 0));
        clock.set(33);
        channel.step(0);
        assert_eq!(new.take(), []);
    }
}

#[test]
fn a_consumer_may_replace_itself_within_a_push() {
    for by_lane in [false, true] {
        let (channel, _) = stepped(1);
        let own: Arc<PiMutex<Option<Subscription<u64>>>> = Arc::default();
        let (its, next) = (own.clone(), Notes::default());
        let for_next = next.clone();
        let consumer = move |_: &[Event<u64>]| {
            let mut subscription = its.lock().take().expect("it is called once");
            let replaced = subscription.replace(&Filter::of_type(21), for_next.clone());
            replaced.expect("a filter");
            *its.lock() = Some(subscription);
        };
        let subscription = each_way(channel.subscribe(Filter::Everything), by_lane, consumer);
        *own.lock() = Some(subscription);
        for event_type in [20, 21, 22] {
            channel.push(&Event::new(1, event_type, 0));
        }
        channel.step(0);
        assert_eq!(next.take(), [one(1, 21)]);
    }
}

#[test]
fn an_event_that_passes_both_filters_is_delivered_once() {
    for by_lane in [false, true] {
        let channel = Channel::<u64>::builder().lane(Lane::new("lane")).start();
        let channel = channel.expect("there are threads");
        let sum = Arc::new(AtomicU64::new(0));
        let consumer = |sum: &Arc<AtomicU64>| {
            let sum = sum.clone();
            move |set: &[Event<u64>]| {
                sum.fetch_add(set[0].body, Ordering::SeqCst);
            }
        };
        let subscription = channel
            .subscribe(Filter::of_type(20))
            .queue(20_000, Overflow::Block);
        let mut subscription = each_way(subscription, by_lane, consumer(&sum));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for body in 1..=10_000 {
                    channel.push(&Event::new(1, 20, body));
                }
                is_over.store(true, Ordering::SeqCst);
            });
            let filters = [Filter::from_source(1), Filter::of_type(20)];
            for filter in filters.iter().cycle() {
                subscription
                    .replace(filter, consumer(&sum))
                    .expect("a filter");
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        assert!(channel.flush(PATIENCE));
        assert_eq!(sum.load(Ordering::SeqCst), 10_000 * 10_001 / 2);
    }
}

#[test]
fn a_filter_that_is_refused_changes_nothing() {
    let (channel, _) = stepped(1);
    let notes = Notes::default();
    let mut subscription = channel.subscribe(Filter::of_type(20)).call(notes.clone());
    let subscription = subscription.as_mut().expect("it has no state");
    let ticks = Filter::each(Duration::from_millis(7));
    let refused = subscription.replace(&!ticks.clone(), Notes::default());
    assert!(matches!(refused, Err(SubscribeError::Filter(_))));
    let refused = subscription.replace(&ticks, Notes::default());
    assert_eq!(refused, Err(SubscribeError::NeedsLane));
    channel.push(&Event::new(1, 20, 0));
    assert_eq!(notes.take(), [one(1, 20)]);
    channel.close();
    let refused = subscription.replace(&Filter::Everything, Notes::default());
    assert_eq!(refused, Err(SubscribeError::Closed));
}
