//! Bounds of the work of pushes.

use chronorb_channel::{Channel, Event, Filter};

use crate::support::{Note, Notes, one, stepped};

/// A filter of this number of leaves, of which the last one accepts the type.
fn last_of(leaves: i32, event_type: i32) -> Filter {
    let others = (1..leaves).map(|number| Filter::event(1000 + number, event_type));
    Filter::Any(others.chain([Filter::of_type(event_type)]).collect())
}

fn push_within(channel: &Channel<u64>, event_type: i32, work: &mut u64) -> bool {
    channel.push_within(&Event::new(1, event_type, 0), work)
}

#[test]
fn the_work_of_a_set_is_bounded() {
    let (channel, _) = stepped(1);
    let notes = Notes::default();
    let mut work = 100;
    assert!(push_within(&channel, 20, &mut work), "there is no consumer");
    // 100 nodes of the type 20, 30 of 21.
    let subscribe = |filter| channel.subscribe(filter).call(notes.clone());
    let ends = [last_of(49, 20), last_of(49, 20), last_of(29, 21)].map(subscribe);
    assert!(ends.iter().all(Result::is_ok));

    let mut work = 1000;
    assert!(push_within(&channel, 20, &mut work));
    assert_eq!(work, 900);
    assert!(push_within(&channel, 22, &mut work));
    assert_eq!(work, 900, "it concerns no consumer");
    assert_eq!(notes.take(), [one(1, 20), one(1, 20)]);

    // Less than all filters have together.
    let mut work = 110;
    assert!(push_within(&channel, 20, &mut work));
    assert_eq!((work, notes.take().len()), (10, 2));
    assert!(!push_within(&channel, 20, &mut work));
    assert_eq!((work, notes.take()), (9, vec![]), "one was looked at");
    let mut work = 99;
    assert!(!push_within(&channel, 20, &mut work));
    assert_eq!((work, notes.take()), (97, vec![]), "both were looked at");
    assert!(push_within(&channel, 21, &mut work));
    assert_eq!((work, notes.take()), (67, vec![one(1, 21)]));
    let mut none = 0;
    assert!(!push_within(&channel, 20, &mut none));
    assert!(push_within(&channel, 22, &mut none));
    assert_eq!(none, 0);
}

/// The masks of a subscription cost one, also where they reject the event.
#[test]
fn rejecting_masks_count() {
    let (channel, _) = stepped(1);
    let masks = |bit: i32| Filter::Bits {
        source_mask: -1,
        type_mask: 1 << bit,
        then: Box::new(Filter::Everything),
    };
    let filter = Filter::Any((8..20).map(masks).collect());
    let notes = Notes::default();
    let subscribe = |_| channel.subscribe(filter.clone()).call(notes.clone());
    let _ends: Vec<_> = (0..100).map(subscribe).collect();
    let mut work = 1_000_000;
    for _ in 0..10 {
        assert!(push_within(&channel, 20, &mut work));
    }
    assert_eq!(work, 1_000_000 - 10 * 100);
    let mut work = 99;
    assert!(!push_within(&channel, 20, &mut work));
    assert_eq!(work, 0);
    assert_eq!(notes.take(), [] as [Note; 0]);
    let mut work = 2600;
    assert!(push_within(&channel, 1 << 8, &mut work));
    assert_eq!((work, notes.take().len()), (0, 100), "each has 25 nodes");
}

/// A filter of leaves and masks may be a candidate by its leaves while its masks reject the event.
#[test]
fn leaves_and_masks_count_together() {
    let (channel, _) = stepped(1);
    let masks = Filter::Bits {
        source_mask: 8,
        type_mask: 8,
        then: Box::new(Filter::Everything),
    };
    let notes = Notes::default();
    let filter = Filter::of_type(20) | masks;
    let _end = channel.subscribe(filter).call(notes.clone());
    for (before, is_pushed, after) in [(6, true, 1), (5, true, 0), (4, false, 2)] {
        let mut work = before;
        assert_eq!(push_within(&channel, 20, &mut work), is_pushed, "{before}");
        assert_eq!(work, after);
        assert_eq!(notes.take().len(), usize::from(is_pushed));
    }
}
