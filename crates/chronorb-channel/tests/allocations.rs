//! Pushes in steady state allocate nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb_channel::{Channel, DeliveryRef, Event, Filter, Lane, Overflow, SystemClock};
use chronorb_rt::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() {
    let channel = Channel::<u64>::builder().lane(Lane::new("lane"));
    let channel = channel.without_threads(Arc::new(SystemClock));
    let sum = Arc::new(AtomicU64::new(0));
    let add = || {
        let sum = sum.clone();
        move |set: &[Event<u64>]| {
            sum.fetch_add(set[0].body, Ordering::Relaxed);
        }
    };
    let group = Filter::Conjunction(vec![Filter::of_type(20), Filter::of_type(21)]);
    let _direct = channel.subscribe(Filter::of_type(20)).call(add());
    let _lane = channel.subscribe(Filter::of_type(20)).call_on(0, add());
    let _small = channel
        .subscribe(Filter::Everything)
        .queue(1, Overflow::DropOldest);
    let _small = _small.call_on(0, add()).expect("a lane");
    let _group = channel.subscribe(group).call_on(0, add());
    let mut stream = channel
        .subscribe(Filter::of_type(20))
        .stream()
        .expect("a filter");
    let supplier = channel.supplier(1);
    let mut round = || {
        supplier.push(20, 1);
        supplier.push(21, 1);
        channel.step(0);
        let take = |taken: DeliveryRef<'_, u64>| {
            if let DeliveryRef::Set(set) = taken {
                sum.fetch_add(set[0].body, Ordering::Relaxed);
            }
        };
        assert!(stream.next_with(Duration::ZERO, take));
    };
    // The first push of a thread enters the tables.
    round();
    sum.store(0, Ordering::Relaxed);
    let before = allocations();
    for _ in 0..1000 {
        round();
    }
    assert_eq!(allocations() - before, 0, "pushes allocate");
    assert_eq!(sum.load(Ordering::Relaxed), 5000);
    println!("1000 rounds without an allocation");
}
