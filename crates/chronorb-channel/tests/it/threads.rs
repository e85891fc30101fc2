//! Channels with threads: what was pushed is received or told as lost, while consumers come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chronorb_channel::{Channel, Consumer, Delivery, Event, Filter, Lane, Overflow};
use chronorb_rt::{Deadline, Gate};

use crate::support::PATIENCE;

const SUPPLIERS: u64 = 3;
const EVENTS: u64 = 20_000;

/// A consumer that checks the order of each supplier, and counts.
#[derive(Default)]
struct Checker {
    last: [AtomicU64; SUPPLIERS as usize],
    got: AtomicU64,
    lost: AtomicU64,
    total: Gate,
}

impl Checker {
    fn see(&self, event: &Event<u64>) {
        let last = &self.last[event.header.source as usize - 1];
        let before = last.swap(event.body, Ordering::SeqCst);
        assert!(before < event.body, "{before} before {}", event.body);
        self.got.fetch_add(1, Ordering::SeqCst);
        self.total.advance();
    }

    fn miss(&self, number: u64) {
        self.lost.fetch_add(number, Ordering::SeqCst);
        self.total.advance();
    }

    fn sum(&self) -> u64 {
        self.got.load(Ordering::SeqCst) + self.lost.load(Ordering::SeqCst)
    }

    /// Waits until all events have come, or were told as lost.
    fn wait(&self, all: u64) {
        let deadline = Deadline::after(PATIENCE);
        loop {
            let seen = self.total.get();
            if self.sum() == all {
                return;
            }
            assert!(!deadline.has_passed(), "{} of {all}", self.sum());
            self.total.wait_while(seen, deadline);
        }
    }
}

struct CheckingConsumer(Arc<Checker>);

impl Consumer<u64> for CheckingConsumer {
    fn push(&self, set: &[Event<u64>]) {
        set.iter().for_each(|event| self.0.see(event));
    }

    fn lost(&self, number: u64) {
        self.0.miss(number);
    }
}

fn push_all(channel: &Channel<u64>) {
    std::thread::scope(|scope| {
        for source in 1..=SUPPLIERS {
            scope.spawn(move || {
                let supplier = channel.supplier(source as i32);
                for number in 1..=EVENTS {
                    supplier.push(20, number);
                }
            });
        }
    });
}

#[test]
fn sent_is_received_and_told_lost() {
    let builder = Channel::<u64>::builder();
    let channel = builder.lane(Lane::new("urgent")).lane(Lane::new("slow"));
    let channel = channel.start().expect("threads start");
    let policies = [
        (0, Overflow::DropOldest),
        (1, Overflow::DropNewest),
        (0, Overflow::Block),
    ];
    let checkers = policies.map(|(lane, policy)| {
        let checker = Arc::new(Checker::default());
        let subscription = channel.subscribe(Filter::Everything).queue(16, policy);
        let subscription = subscription.block_for(PATIENCE);
        let consumer = CheckingConsumer(checker.clone());
        let subscription = subscription.call_on(lane, consumer).expect("a lane");
        (checker, subscription)
    });
    let stream = channel
        .subscribe(Filter::Everything)
        .queue(16, Overflow::DropOldest);
    let mut stream = stream.stream().expect("a filter");
    let streamed = Arc::new(Checker::default());
    std::thread::scope(|scope| {
        let checker = streamed.clone();
        scope.spawn(move || {
            while checker.sum() < SUPPLIERS * EVENTS {
                match stream.next_within(PATIENCE).expect("more comes") {
                    Delivery::Set(set) => checker.see(&set[0]),
                    Delivery::Lost(number) => checker.miss(number),
                }
            }
        });
        push_all(&channel);
    });
    for (checker, subscription) in &checkers {
        checker.wait(SUPPLIERS * EVENTS);
        let status = subscription.status();
        assert_eq!(status.lost, checker.lost.load(Ordering::SeqCst));
    }
    let (blocking, _) = &checkers[2];
    assert_eq!(
        blocking.lost.load(Ordering::SeqCst),
        0,
        "its suppliers wait"
    );
}

#[test]
fn consumers_come_and_go_while_events_are_pushed() {
    let channel = Channel::<u64>::builder().lane(Lane::new("lane"));
    let channel = channel.start().expect("a thread starts");
    let stays = Arc::new(Checker::default());
    let stay = channel
        .subscribe(Filter::Everything)
        .call(CheckingConsumer(stays.clone()));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for by_lane in [false, true] {
            let (channel, is_over) = (&channel, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let is_connected = Arc::new(AtomicBool::new(true));
                    let seen = is_connected.clone();
                    let consumer = move |_: &[Event<u64>]| {
                        assert!(seen.load(Ordering::SeqCst), "a push after the end");
                    };
                    let subscription = channel.subscribe(Filter::Everything);
                    let subscription = if by_lane {
                        subscription.call_on(0, consumer)
                    } else {
                        subscription.call(consumer)
                    };
                    let subscription = subscription.expect("a filter");
                    subscription.disconnect();
                    is_connected.store(false, Ordering::SeqCst);
                }
            });
        }
        push_all(&channel);
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(stays.got.load(Ordering::SeqCst), SUPPLIERS * EVENTS);
    drop(stay);
    assert_eq!(channel.subscriptions(), 0);
}

#[test]
fn timers_fire_on_threads() {
    let channel = Channel::<()>::builder().lane(Lane::new("timers"));
    let channel = channel.start().expect("a thread starts");
    let ticks = Arc::new(Gate::new(0));
    let count = ticks.clone();
    let interval = Filter::each(Duration::from_millis(1));
    let subscription = channel.subscribe(interval.clone());
    let _subscription = subscription.call_on(0, move |_: &[Event<()>]| count.advance());
    let mut stream = channel.subscribe(interval).stream().expect("a filter");
    for _ in 0..5 {
        assert!(stream.next_within(PATIENCE).is_some());
    }
    let deadline = Deadline::after(PATIENCE);
    while ticks.get() < 5 {
        assert!(!deadline.has_passed(), "{} ticks", ticks.get());
        ticks.wait_while(ticks.get(), deadline);
    }
}
