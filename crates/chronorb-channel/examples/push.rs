//! Pushes events to direct consumers or to consumers of a lane, for instruction counts:
//! `valgrind --tool=callgrind push CONSUMERS EVENTS [lane|bounded|within]`. `bounded` is by a lane
//! with a bound of octets, `within` is direct with a bound of the work. The difference of two runs
//! cancels the start.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chronorb_channel::{Allowance, Channel, Event, Filter, Lane, SystemClock};

/// An allowance that grants everything, and counts it.
struct Ledger(AtomicUsize);

impl Allowance for Ledger {
    fn take(&self, octets: usize) -> bool {
        self.0.fetch_add(octets, Ordering::Relaxed);
        true
    }

    fn give_back(&self, octets: usize) {
        self.0.fetch_sub(octets, Ordering::Relaxed);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().map_or(Ok(1), |text| text.parse::<usize>());
    let (consumers, events) = (number()?, number()?);
    let way = arguments.next().unwrap_or_default();
    let is_bounded = way == "bounded";
    let by_lane = way == "lane" || is_bounded;
    let ledger = Arc::new(Ledger(AtomicUsize::new(0)));
    let channel = Channel::<u64>::builder().lane(Lane::new("lane"));
    let channel = channel.without_threads(Arc::new(SystemClock));
    // Consumers of other types cost nothing.
    let subscribe = |event_type| {
        let consume = |set: &[Event<u64>]| {
            black_box(set[0].body);
        };
        let mut subscription = channel.subscribe(Filter::of_type(event_type));
        if is_bounded {
            subscription = subscription.allowance(ledger.clone());
        }
        if by_lane {
            subscription.call_on(0, consume)
        } else {
            subscription.call(consume)
        }
    };
    let matching: Vec<_> = (0..consumers).map(|_| subscribe(20)).collect();
    let others: Vec<_> = (21..30).map(subscribe).collect();
    let supplier = channel.supplier(1);
    if way == "within" {
        push_within(&channel, events);
        return Ok(());
    }
    for number in 0..events as u64 {
        supplier.push(20, number);
        if by_lane {
            channel.step(0);
        }
    }
    assert!(matching.iter().chain(&others).all(Result::is_ok));
    Ok(())
}

/// Pushes with a bound of the work. A function of its own, so that the loop above stays as it is.
#[inline(never)]
fn push_within(channel: &Channel<u64>, events: usize) {
    let mut work = u64::MAX;
    for number in 0..events as u64 {
        assert!(channel.push_within(&Event::new(1, 20, number), &mut work));
    }
}
