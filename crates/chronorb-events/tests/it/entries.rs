//! Subscriptions as entries: both notations, and what is refused.

use std::time::Duration;

use chronorb_events::{
    Entry, Filter, Limits, Notation, Rules, SubscriptionError, fits_basic, read_entries,
    write_entries,
};

fn entry(source: i32, event_type: i32) -> Entry {
    Entry {
        source,
        event_type,
        time: 0,
    }
}

fn read(notation: Notation, entries: &[Entry]) -> Result<Filter, SubscriptionError> {
    read_by(Rules::Corrected, notation, entries)
}

fn read_by(
    rules: Rules,
    notation: Notation,
    entries: &[Entry],
) -> Result<Filter, SubscriptionError> {
    read_entries(entries, notation, rules, &Limits::default())
}

const BOTH: [Notation; 2] = [Notation::Prefix, Notation::Basic];

fn conjunction<const N: usize>(sources: [i32; N]) -> Filter {
    Filter::Conjunction(sources.map(|source| Filter::event(source, 20)).into())
}

fn disjunction<const N: usize>(sources: [i32; N]) -> Filter {
    Filter::Any(sources.map(|source| Filter::event(source, 20)).into())
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

#[test]
fn the_basic_notation_is_recognised_by_groups_that_state_no_children() {
    let [one, two, three, four] = [1, 2, 3, 4].map(|source| entry(source, 20));
    for notation in BOTH {
        // As TAO's factory writes a group by default.
        let read = |entries: &[Entry]| read(notation, entries).unwrap();
        assert_eq!(read(&[entry(0, 9), one, two]), disjunction([1, 2]));
        assert_eq!(
            read(&[entry(0, 7), entry(0, 8), one, two]),
            conjunction([1, 2])
        );
        let groups = [entry(0, 8), one, two, entry(0, 8), three, four];
        let both = Filter::Any(vec![conjunction([1, 2]), conjunction([3, 4])]);
        assert_eq!(read(&groups), both);
        // The first one states its children, as if it was in the other notation.
        let groups = [entry(2, 8), one, two, entry(0, 8), three, four];
        assert_eq!(read(&groups), both);
        // A negation of the basic notation within a group.
        let negated = [entry(0, 9), one, entry(0, 10), two];
        let expected = Filter::Any(vec![Filter::event(1, 20), !Filter::event(2, 20)]);
        assert_eq!(read(&negated), expected);
    }
}

#[test]
fn the_prefix_notation_is_recognised_by_nested_groups_that_state_their_children() {
    let [one, two, three] = [1, 2, 3].map(|source| entry(source, 20));
    for notation in BOTH {
        let read = |entries: &[Entry]| read(notation, entries).unwrap();
        let nested = [entry(2, 9), entry(2, 8), one, two, three];
        let expected = Filter::Any(vec![conjunction([1, 2]), Filter::event(3, 20)]);
        assert_eq!(read(&nested), expected);
        let nested = [entry(2, 8), one, entry(2, 9), two, three];
        let expected = Filter::Conjunction(vec![Filter::event(1, 20), disjunction([2, 3])]);
        assert_eq!(read(&nested), expected);
        // A flat group is the same in both.
        assert_eq!(
            read(&[entry(3, 8), one, two, three]),
            conjunction([1, 2, 3])
        );
    }
    // Its numbers describe the whole list, so a group without children may stand in it.
    let empty = [entry(2, 9), entry(0, 9), one];
    let expected = Filter::Any(vec![Filter::Any(vec![]), Filter::event(1, 20)]);
    assert_eq!(read(Notation::Prefix, &empty), Ok(expected));
}

#[test]
fn numbers_that_describe_no_filter_count_in_prefix_notation_only() {
    let [one, two] = [1, 2].map(|source| entry(source, 20));
    let entries = [entry(5, 9), one, two];
    let truncated = Err(SubscriptionError::Truncated { at: 0 });
    assert_eq!(read(Notation::Prefix, &entries), truncated);
    assert_eq!(read(Notation::Basic, &entries), Ok(disjunction([1, 2])));
    let entries = [entry(1, 9), one, two];
    let beside = Filter::Any(vec![disjunction([1]), Filter::event(2, 20)]);
    assert_eq!(read(Notation::Prefix, &entries), Ok(beside));
    assert_eq!(read(Notation::Basic, &entries), Ok(disjunction([1, 2])));
}

#[test]
fn a_group_without_children_is_read_in_both_notations() {
    for notation in BOTH {
        for (designator, expected) in [
            (8, Filter::Conjunction(vec![])),
            (9, Filter::Any(vec![])),
            (11, Filter::All(vec![])),
        ] {
            assert_eq!(
                read(notation, &[entry(0, designator)]),
                Ok(expected.clone())
            );
            assert_eq!(write_entries(&expected), [entry(0, designator)]);
        }
        assert_eq!(read(notation, &[]), Err(SubscriptionError::Empty));
    }
}

#[test]
fn with_the_rules_of_tao_the_first_of_several_filters_counts() {
    let [one, two, three] = [1, 2, 3].map(|source| entry(source, 20));
    for notation in BOTH {
        let tao = |entries: &[Entry]| read_by(Rules::Tao, notation, entries);
        assert_eq!(tao(&[one, two, three]), Ok(Filter::event(1, 20)));
        let groups = [entry(2, 8), one, two, entry(1, 9), three];
        assert_eq!(tao(&groups), Ok(conjunction([1, 2])));
        let groups = [entry(0, 8), one, two, entry(0, 9), three];
        assert_eq!(tao(&groups), Ok(conjunction([1, 2])));
        // So the rest can be anything.
        assert_eq!(tao(&[one, entry(0, 10)]), Ok(Filter::event(1, 20)));
        let refused = Err(SubscriptionError::Truncated { at: 0 });
        assert_eq!(tao(&[entry(0, 10)]), refused);
    }
    let behind = [entry(1, 9), one, two];
    let first = read_by(Rules::Tao, Notation::Prefix, &behind);
    assert_eq!(first, Ok(disjunction([1])));
    let all = read_by(Rules::Corrected, Notation::Prefix, &behind).unwrap();
    assert_eq!(
        all,
        Filter::Any(vec![disjunction([1]), Filter::event(2, 20)])
    );
}

#[test]
fn filters_that_the_basic_notation_has_are_known() {
    let fits = |text: &str| fits_basic(&text.parse().unwrap());
    for text in [
        "20",
        "20 | 21",
        "20 + 21 + silence 5s",
        "!20 | 21",
        "bits(1:2) 20 & 21",
        "mask(1:2=1:2) | *",
        "()",
    ] {
        assert!(fits(text), "{text}");
    }
    for text in ["20 + 21 | 22", "!(20 | 21)", "20 & (21 | 22)", "!!20"] {
        assert!(!fits(text), "{text}");
    }
}
