//! Subscriptions as entries: both notations, and what is refused.

use std::time::Duration;

use chronorb_events::{
    Entry, Filter, Limits, Notation, SubscriptionError, read_entries, write_entries,
};

fn entry(source: i32, event_type: i32) -> Entry {
    Entry {
        source,
        event_type,
        time: 0,
    }
}

fn read(notation: Notation, entries: &[Entry]) -> Result<Filter, SubscriptionError> {
    read_entries(entries, notation, &Limits::default())
}

#[test]
fn prefix_notation_nests() {
    // (A and-then B) or not C, with a mask and a timer.
    let entries = [
        entry(4, 9),
        entry(2, 8),
        entry(1, 20),
        entry(2, 20),
        entry(0, 10),
        entry(3, 20),
        entry(0, 12),
        entry(0xf0, 0x0f),
        entry(0, 14),
        Entry {
            source: 0,
            event_type: 5,
            time: 10_000,
        },
    ];
    let leaf = Filter::event;
    let expected = Filter::Any(vec![
        Filter::Conjunction(vec![leaf(1, 20), leaf(2, 20)]),
        !leaf(3, 20),
        Filter::Bits {
            source_mask: 0xf0,
            type_mask: 0x0f,
            then: Box::new(Filter::Everything),
        },
        Filter::each(Duration::from_millis(1)),
    ]);
    assert_eq!(read(Notation::Prefix, &entries), Ok(expected.clone()));
    assert_eq!(write_entries(&expected), entries);
}

#[test]
fn basic_notation_ends_a_group_with_the_next() {
    let entries = [
        entry(0, 7),
        entry(1, 20),
        entry(0, 8),
        entry(2, 20),
        entry(3, 20),
        entry(0, 9),
        entry(4, 20),
        entry(0, 10),
        entry(5, 20),
    ];
    let leaf = Filter::event;
    let expected = Filter::Any(vec![
        leaf(1, 20),
        Filter::Conjunction(vec![leaf(2, 20), leaf(3, 20)]),
        Filter::Any(vec![leaf(4, 20), !leaf(5, 20)]),
    ]);
    assert_eq!(read(Notation::Basic, &entries), Ok(expected));
}

#[test]
fn several_filters_are_a_disjunction() {
    for notation in [Notation::Prefix, Notation::Basic] {
        let filter = read(notation, &[entry(1, 20), entry(2, 20)]);
        let expected = Filter::event(1, 20) | Filter::event(2, 20);
        assert_eq!(filter, Ok(expected));
    }
}

#[test]
fn entries_that_end_too_early_are_refused() {
    let truncated = |at| Err(SubscriptionError::Truncated { at });
    let prefix = |entries: &[Entry]| read(Notation::Prefix, entries);
    assert_eq!(prefix(&[]), Err(SubscriptionError::Empty));
    assert_eq!(prefix(&[entry(0, 7)]), Err(SubscriptionError::Empty));
    let two_of_five = [entry(5, 9), entry(1, 20), entry(2, 20)];
    assert_eq!(prefix(&two_of_five), truncated(0));
    assert_eq!(prefix(&[entry(-1, 8), entry(1, 20)]), truncated(0));
    assert_eq!(prefix(&[entry(1, 20), entry(0, 10)]), truncated(1));
    assert_eq!(prefix(&[entry(0, 12), entry(1, 1)]), truncated(0));
    assert_eq!(prefix(&[entry(0, 13), entry(1, 1)]), truncated(0));
    // A nested group takes what its parent needs.
    let nested = [entry(2, 9), entry(1, 8), entry(1, 20)];
    assert!(prefix(&nested).is_err());
    for notation in [Notation::Prefix, Notation::Basic] {
        for designator in [10, 12, 13] {
            let entries = [entry(1, 20), entry(1, designator)];
            assert_eq!(read(notation, &entries), truncated(1), "{designator}");
        }
    }
}

#[test]
fn depth_and_number_of_entries_are_bounded() {
    let deep = vec![entry(1, 9); 10_000];
    let too_large = Err(SubscriptionError::TooLarge { limit: 1024 });
    assert_eq!(read(Notation::Prefix, &deep), too_large);
    let too_deep = Err(SubscriptionError::TooDeep { limit: 32 });
    assert_eq!(read(Notation::Prefix, &deep[..1000]), too_deep);
    assert_eq!(read(Notation::Prefix, &vec![entry(0, 10); 1000]), too_deep);
}

#[test]
fn basic_notation_has_no_groups_in_operands() {
    let bad = |at| Err(SubscriptionError::BadDesignator { at });
    assert_eq!(read(Notation::Basic, &[entry(0, 10), entry(2, 8)]), bad(1));
    let entries = [entry(0, 12), entry(1, 1), entry(0, 10), entry(1, 20)];
    assert_eq!(read(Notation::Basic, &entries), bad(2));
}
