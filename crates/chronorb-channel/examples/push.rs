//! Pushes events to direct consumers, for instruction counts:
//! `valgrind --tool=callgrind push CONSUMERS EVENTS`. The difference of two runs cancels the start.

use std::hint::black_box;

use chronorb_channel::{Channel, Event, Filter};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut next = || numbers.next().unwrap_or(Ok(1));
    let (consumers, events) = (next()?, next()?);
    let channel = Channel::<u64>::builder().start()?;
    // Consumers of other types cost nothing.
    let subscribe = |event_type| {
        let consume = |set: &[Event<u64>]| {
            black_box(set[0].body);
        };
        channel.subscribe(Filter::of_type(event_type)).call(consume)
    };
    let matching: Vec<_> = (0..consumers).map(|_| subscribe(20)).collect();
    let others: Vec<_> = (21..30).map(subscribe).collect();
    let supplier = channel.supplier(1);
    for number in 0..events as u64 {
        supplier.push(20, number);
    }
    assert!(matching.iter().chain(&others).all(Result::is_ok));
    Ok(())
}
