//! The cost of subscribing, counted.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use chronorb_events::{Event, Filter, Limits, Program, Routes, Rules};

/// A name of a subscription that counts its copies and comparisons.
#[derive(Debug)]
struct CountedName(u32, Arc<AtomicUsize>);

impl CountedName {
    fn count(&self) {
        self.1.fetch_add(1, Relaxed);
    }
}

impl Clone for CountedName {
    fn clone(&self) -> Self {
        self.count();
        Self(self.0, self.1.clone())
    }
}

impl PartialEq for CountedName {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for CountedName {}

impl PartialOrd for CountedName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CountedName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.count();
        self.0.cmp(&other.0)
    }
}

fn compile(filter: &Filter) -> Program {
    Program::compile(filter, Rules::Corrected, &Limits::default()).expect("the filter is valid")
}

/// The copies and comparisons of connecting consumers one by one, each with a plan of its own that
/// is kept until the next one is there, and of disconnecting them.
fn cost_of(consumers: u32, filter: impl Fn(u32) -> Filter) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let mut routes = Routes::new();
    let mut plan = routes.clone();
    for number in 0..consumers {
        routes.insert(
            &compile(&filter(number)),
            CountedName(number, count.clone()),
        );
        plan = routes.clone();
    }
    let event = Event::new(1, 20, ());
    assert_eq!(plan.candidates(&event.header).count(), consumers as usize);
    for number in 0..consumers {
        let subscription = CountedName(number, count.clone());
        routes.remove(&compile(&filter(number)), &subscription);
        plan = routes.clone();
    }
    assert_eq!(plan.candidates(&event.header).count(), 0);
    count.load(Relaxed)
}

#[test]
fn connecting_costs_the_logarithm_of_the_consumers() {
    let own = |number: u32| Filter::event(1, 20) | Filter::event(2 + number.cast_signed(), 30);
    let filters: [&dyn Fn(u32) -> Filter; 3] =
        [&|_| Filter::Everything, &|_| Filter::of_type(20), &own];
    for filter in filters {
        let few = cost_of(1 << 10, filter);
        let many = cost_of(1 << 14, filter);
        // 16 times as many consumers, and 14 / 10 of the depth.
        assert!(many < few * 16 * 2, "{many} steps after {few}");
        // Some nodes of 32 elements in each of a few sequences.
        assert!(many < (1 << 14) * 1500, "{many} steps");
    }
}
