//! Pushes events to direct consumers or to consumers of a lane, for instruction counts:
//! `valgrind --tool=callgrind push CONSUMERS EVENTS [lane]`. The difference of two runs cancels the
//! start.

use std::hint::black_box;
use std::sync::Arc;

use chronorb_channel::{Channel, Event, Filter, Lane, SystemClock};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().map_or(Ok(1), |text| text.parse::<usize>());
    let (consumers, events) = (number()?, number()?);
    let by_lane = arguments.next().is_some_and(|way| way == "lane");
    let channel = Channel::<u64>::builder().lane(Lane::new("lane"));
    let channel = channel.without_threads(Arc::new(SystemClock));
    // Consumers of other types cost nothing.
    let subscribe = |event_type| {
        let consume = |set: &[Event<u64>]| {
            black_box(set[0].body);
        };
        let subscription = channel.subscribe(Filter::of_type(event_type));
        if by_lane {
            subscription.call_on(0, consume)
        } else {
            subscription.call(consume)
        }
    };
    let matching: Vec<_> = (0..consumers).map(|_| subscribe(20)).collect();
    let others: Vec<_> = (21..30).map(subscribe).collect();
    let supplier = channel.supplier(1);
    for number in 0..events as u64 {
        supplier.push(20, number);
        if by_lane {
            channel.step(0);
        }
    }
    assert!(matching.iter().chain(&others).all(Result::is_ok));
    Ok(())
}
