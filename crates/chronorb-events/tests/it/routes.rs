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

/// A filter that begins with masks concerns only the events that pass them, and those without a
/// type.
#[test]
fn masks_that_reject_an_event_cost_no_candidate() {
    let masked = |value| Filter::Masked {
        source_mask: 0xf,
        type_mask: 0,
        source_value: value,
        type_value: 0,
    };
    let bits = Filter::Bits {
        source_mask: 0x30,
        type_mask: 0x40,
        then: Box::new(Filter::Everything),
    };
    let mut routes = Routes::new();
    for number in 0..100 {
        routes.insert(&compile(&masked(number % 10)), number);
    }
    routes.insert(&compile(&bits), 100);
    routes.insert(&compile(&Filter::of_type(20)), 101);
    let candidates = |routes: &Routes<i32>, source, event_type| {
        let header = Event::new(source, event_type, ()).header;
        routes.candidates(&header).copied().collect::<Vec<_>>()
    };
    let ones: Vec<_> = (0..100).filter(|number| number % 10 == 1).collect();
    assert_eq!(candidates(&routes, 1, 21), ones);
    assert_eq!(
        candidates(&routes, 0x11, 0x40),
        [&ones[..], &[100]].concat()
    );
    assert_eq!(candidates(&routes, 0xf, 20), [101]);
    assert_eq!(candidates(&routes, 0xf, 0).len(), 102);
    for number in 0..100 {
        routes.remove(&compile(&masked(number % 10)), &number);
    }
    assert_eq!(candidates(&routes, 1, 21), [] as [i32; 0]);
}
