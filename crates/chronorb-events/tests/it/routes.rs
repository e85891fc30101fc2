//! The cost of subscribing, counted.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use chronorb_events::{Event, Filter, Header, Limits, Program, Routes, Rules};

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

/// A filter that begins with masks concerns only the events that pass them.
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
    assert_eq!(candidates(&routes, 0xf, 0), [101]);
    assert_eq!(candidates(&routes, 1, 0), [&ones[..], &[101]].concat());
    for number in 0..100 {
        routes.remove(&compile(&masked(number % 10)), &number);
    }
    assert_eq!(candidates(&routes, 1, 21), [] as [i32; 0]);
}

fn bits(source_mask: i32, type_mask: i32, then: Filter) -> Filter {
    Filter::Bits {
        source_mask,
        type_mask,
        then: Box::new(then),
    }
}

fn header(source: i32, event_type: i32) -> Header {
    Event::new(source, event_type, ()).header
}

/// Negations, logical ands and groups concern what their masks let pass, and no other event.
#[test]
fn masks_within_other_filters_reject_events() {
    let masked = |value| Filter::Masked {
        source_mask: 0,
        type_mask: 0xf0,
        source_value: 0,
        type_value: value,
    };
    let not_bits = !bits(0xf, -1, Filter::Everything);
    let cases = [
        (Filter::of_type(20) | masked(0x30), [20, 0x31].as_slice()),
        (masked(0x30) & !Filter::of_type(0x31), &[0x31]),
        (bits(-1, 0x40, !Filter::of_type(0x41)), &[0x40, 0x41]),
        (!!Filter::of_type(20), &[20]),
        (!(!Filter::of_type(20) | !Filter::from_source(1)), &[20]),
        (
            bits(-1, 0x40, Filter::Everything) & !not_bits,
            &[0x40, 0x41],
        ),
        (!Filter::Everything, &[]),
        (!Filter::event(0, 0), &[]),
        (
            Filter::Conjunction(vec![masked(0x40), masked(0x30)]),
            &[0x31, 0x40, 0x41],
        ),
    ];
    for (filter, expected) in cases {
        let mut routes = Routes::new();
        routes.insert(&compile(&filter), ());
        let is_candidate =
            |event_type: &i32| routes.candidates(&header(1, *event_type)).count() > 0;
        let all = [20, 0x31, 0x40, 0x41].into_iter().filter(is_candidate);
        assert_eq!(all.collect::<Vec<_>>(), expected, "{filter:?}");
        routes.remove(&compile(&filter), &());
        assert_eq!(
            (routes.candidates(&header(0, 0)).count(), routes.guards()),
            (0, 0)
        );
    }
}

/// A test of masks has a bounded cost, so a filter with many different ones is a candidate, and its
/// nodes count.
#[test]
fn values_below_many_masks_are_not_compared() {
    let values = |masks: i32| {
        let masked = |mask: i32| Filter::Masked {
            source_mask: mask,
            type_mask: 0,
            source_value: mask,
            type_value: 0,
        };
        let mut routes = Routes::new();
        routes.insert(
            &compile(&Filter::Any((1..=masks).map(masked).collect())),
            (),
        );
        let candidates = routes.candidates(&header(1 << 20, 20)).count();
        (candidates, routes.guards())
    };
    assert_eq!(values(4), (0, 1));
    assert_eq!(values(5), (1, 0));
}

/// Subscriptions of many masks that reject an event cost no evaluation of a node.
#[test]
fn many_masks_cost_nothing_for_the_events_that_they_reject() {
    let masks = |number: i32| {
        let mask = |bit: i32| bits(1 << (bit % 14), 1 << (bit / 14 % 14), Filter::Everything);
        Filter::Any((0..330).map(|bit| mask(bit + number)).collect())
    };
    let mut routes = Routes::new();
    for number in 0..200 {
        routes.insert(&compile(&masks(number)), number);
    }
    // Of 2,000 events one in ten has bits that masks name.
    let events = (0..2000).map(|number| match number % 10 {
        0 => header(1 << (number / 10 % 14), 1 << (number / 140 % 14)),
        _ => header(1 << (14 + number % 16), number + 1),
    });
    let programs: Vec<_> = (0..200).map(|number| compile(&masks(number))).collect();
    let (mut candidates, mut accepting) = (0, 0);
    for event in events {
        candidates += routes.candidates(&event).count();
        let accepts = |program: &&Program| program.accepts(&event);
        accepting += programs.iter().filter(accepts).count();
    }
    assert!(accepting > 0);
    assert_eq!(candidates, accepting);
}
