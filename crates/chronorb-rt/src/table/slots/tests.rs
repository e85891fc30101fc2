use core::cell::Cell;
use core::mem::size_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::*;

/// Returns the number of slots that have memory.
fn room<T>(table: &Slots<T>) -> usize {
    let reading = epoch::enter();
    let rows = table.chunks.iter().filter_map(|chunk| chunk.read(&reading));
    rows.map(Row::len).sum()
}

fn fill(table: &Slots<u32>, values: u32) -> Vec<Key> {
    (0..values)
        .map(|value| table.insert(value).unwrap())
        .collect()
}

#[test]
fn a_value_is_found_by_its_key_until_it_is_removed() {
    let table = Slots::new(10);
    let key = table.insert("quoter").unwrap();
    assert_eq!(table.get(key).as_deref(), Some(&"quoter"));
    assert_eq!(table.remove(key), RemoveOutcome::Last("quoter"));
    assert!(table.get(key).is_none());
    assert_eq!(table.remove(key), RemoveOutcome::NotThere);
    assert!(table.is_empty());
}

#[test]
fn a_reused_slot_is_not_found_by_the_old_key() {
    let table = Slots::new(1);
    let old = table.insert(1).unwrap();
    assert!(table.remove(old).was_there());
    let new = table.insert(2).unwrap();
    assert_eq!(old.index, new.index);
    assert!(table.get(old).is_none());
    assert!(table.get_held(old).is_none());
    assert_eq!(table.remove(old), RemoveOutcome::NotThere);
    assert_eq!(table.get(new).as_deref(), Some(&2));
}

#[test]
fn keys_from_outside_are_harmless() {
    let table = Slots::new(100);
    let issued = table.insert(()).unwrap();
    for index in [0, 1, 7, 8, 31, 32, 99, 100, u32::MAX] {
        for generation in [0, 2, u32::MAX] {
            let key = Key { index, generation };
            assert!(table.get(key).is_none(), "{key:?}");
            assert!(table.get_held(key).is_none(), "{key:?}");
            assert_eq!(table.remove(key), RemoveOutcome::NotThere, "{key:?}");
            assert!(!table.was_issued(key), "{key:?}");
            assert_eq!(table.readers(key), 0, "{key:?}");
        }
        assert_eq!(table.get_at(index).is_some(), index == issued.index);
    }
}

#[test]
fn a_value_is_made_knowing_its_key() {
    let table = Slots::new(1);
    let key = table.insert_with(|key| key).unwrap();
    assert_eq!(table.get(key).as_deref(), Some(&key));
    let called = Cell::new(false);
    let refused = table.insert_with(|key| {
        called.set(true);
        key
    });
    assert_eq!(refused, Err(Full));
    assert!(!called.get());
}

#[test]
fn a_value_whose_making_panics_leaves_no_trace_but_its_key() {
    let table = Slots::new(1);
    let given = Cell::new(None);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        table.insert_with(|key| -> u32 {
            given.set(Some(key));
            panic!("no value")
        })
    }));
    assert!(caught.is_err());
    assert!(table.is_empty());
    let lost = given.get().unwrap();
    assert!(table.get(lost).is_none());
    assert_ne!(table.insert(1).unwrap(), lost);
}

#[test]
fn a_slot_is_found_by_its_index_alone() {
    let table = Slots::new(1);
    assert!(table.get_at(0).is_none());
    let first = table.insert(1).unwrap();
    assert!(table.remove(first).was_there());
    assert!(table.get_at(0).is_none());
    let second = table.insert(2).unwrap();
    let (key, value) = table.get_at(0).unwrap();
    assert_eq!((key, value.key(), *value), (second, second, 2));
}

#[test]
fn a_removed_value_lives_until_its_last_reference() {
    let table = Slots::new(1);
    let value = Arc::new(());
    let key = table.insert(Arc::clone(&value)).unwrap();
    let (first, second) = (table.get(key).unwrap(), table.get(key).unwrap());
    assert_eq!(table.readers(key), 2);
    assert_eq!(table.remove(key), RemoveOutcome::InUse);
    assert_eq!(table.len(), 0);
    assert_eq!(table.readers(key), 2);
    assert_eq!(table.insert(Arc::new(())), Err(Full));
    drop(first);
    assert_eq!(Arc::strong_count(&value), 2);
    drop(second);
    assert_eq!(Arc::strong_count(&value), 1);
    assert_eq!(table.readers(key), 0);
    assert!(table.insert(Arc::new(())).is_ok());
}

#[test]
fn who_lets_go_last_gets_the_removed_value() {
    let table = Slots::new(1);
    let key = table.insert("quoter").unwrap();
    let (first, second) = (table.get(key).unwrap(), table.get(key).unwrap());
    assert_eq!(first.release(), None);
    assert_eq!(table.remove(key), RemoveOutcome::InUse);
    assert_eq!(second.release(), Some("quoter"));
}

#[test]
fn who_uses_a_removed_value_finds_it_again() {
    let table = Slots::new(1);
    let key = table.insert("quoter").unwrap();
    let held = table.get(key).unwrap();
    assert_eq!(table.remove(key), RemoveOutcome::InUse);
    assert!(table.get(key).is_none());
    let again = table.get_held(key).unwrap();
    assert_eq!(held.release(), None);
    assert_eq!(again.release(), Some("quoter"));
    assert!(table.get_held(key).is_none());
}

#[test]
fn live_values_are_visited_by_index() {
    let table = Slots::new(100);
    let keys = fill(&table, 50);
    for key in keys.iter().step_by(2) {
        assert!(table.remove(*key).was_there());
    }
    let mut seen = Vec::new();
    let end = table.for_each_live(|key, value| {
        assert_eq!(table.get(key).as_deref(), Some(value));
        seen.push(*value);
        match *value {
            31 => ControlFlow::Break("found"),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!(end, Some("found"));
    assert!(seen.iter().copied().eq((1..=31).step_by(2)));
}

#[test]
fn a_key_that_was_given_out_is_known_for_ever() {
    let table = Slots::new(1000);
    let mut issued = Vec::new();
    for _ in 0..3 {
        let keys = fill(&table, 500);
        let unissued = Key {
            generation: u32::MAX,
            ..keys[499]
        };
        assert!(!table.was_issued(unissued));
        issued.extend_from_slice(&keys);
        for key in keys {
            assert!(table.remove(key).was_there());
        }
        assert!(issued.iter().all(|key| table.was_issued(*key)));
    }
}

#[test]
fn keys_are_new_after_memory_was_given_back() {
    let table = Slots::new(1000);
    let mut issued = std::collections::HashSet::new();
    for _ in 0..5 {
        let keys = fill(&table, 300);
        assert!(keys.iter().all(|key| issued.insert(*key)));
        assert!(keys.iter().all(|key| table.remove(*key).was_there()));
        assert_eq!(room(&table), FIRST_CHUNK);
        assert!(issued.iter().all(|key| table.get(*key).is_none()));
    }
}

#[test]
fn an_empty_table_has_its_first_chunk_at_most() {
    let table = Slots::new(u32::MAX);
    assert_eq!(room(&table), 0);
    for order in [|keys: &mut Vec<Key>| keys.reverse(), |_: &mut Vec<Key>| ()] {
        let mut keys = fill(&table, 5000);
        order(&mut keys);
        assert!(room(&table) < 10_000);
        for key in keys {
            assert!(table.remove(key).was_there());
            assert!(room(&table) >= table.len());
        }
        assert_eq!(room(&table), FIRST_CHUNK);
    }
}

#[test]
fn a_value_in_use_holds_its_chunk() {
    let table = Slots::new(100);
    let keys = fill(&table, 9);
    let held = table.get(keys[8]).unwrap();
    for key in keys {
        assert!(table.remove(key).was_there());
    }
    assert_eq!(room(&table), 3 * FIRST_CHUNK);
    assert_eq!(*held, 8);
    drop(held);
    assert_eq!(room(&table), FIRST_CHUNK);
}

#[test]
fn a_value_that_comes_and_goes_at_the_border_of_a_chunk_allocates_once() {
    let table = Slots::new(100);
    fill(&table, FIRST_CHUNK as u32);
    let spent: Vec<_> = (0..10)
        .map(|value| {
            let key = table.insert(value).unwrap();
            assert!(table.remove(key).was_there());
            (room(&table), key.generation)
        })
        .collect();
    assert!(
        spent
            .iter()
            .copied()
            .eq((1..=10).map(|n| (3 * FIRST_CHUNK, n)))
    );
}

#[test]
fn new_values_go_where_there_is_room_below() {
    let table = Slots::new(1000);
    let keys = fill(&table, 500);
    for key in &keys[..100] {
        assert!(table.remove(*key).was_there());
    }
    assert!(fill(&table, 100).iter().all(|key| key.index < 100 + 20));
}

#[test]
fn the_table_drops_what_is_left_in_it() {
    let table = Slots::new(20);
    let value = Arc::new(());
    for _ in 0..20 {
        table.insert(Arc::clone(&value)).unwrap();
    }
    drop(table);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_table_has_as_many_slots_as_it_was_made_for() {
    for max in [0, 1, 7, 8, 9, 100] {
        let table = Slots::new(max);
        fill(&table, max);
        assert_eq!(table.insert(0), Err(Full));
        assert_eq!(room(&table), max as usize);
    }
}

#[test]
fn a_slot_whose_generations_are_used_up_is_retired() {
    let table = Slots::new(1);
    let first = table.insert(1).unwrap();
    assert!(table.remove(first).was_there());
    let reading = epoch::enter();
    let slot = table.slot(first.index, &reading).unwrap();
    slot.state
        .store(vacant_state(u32::MAX - 1), Ordering::Relaxed);
    let last = table.insert(2).unwrap();
    assert_eq!(last.generation, u32::MAX);
    assert_eq!(table.remove(last), RemoveOutcome::Last(2));
    assert!(table.get(last).is_none());
    assert_eq!(table.insert(3), Err(Full));
}

#[test]
fn tables_and_slots_are_small() {
    assert!(size_of::<Slots<[u64; 5]>>() <= 400);
    assert_eq!(size_of::<Slot<[u64; 5]>>(), 64);
    assert_eq!(size_of::<Slot<[u64; 6]>>(), 64);
}

#[test]
fn every_index_has_its_own_place() {
    let mut expected = (0, 0);
    for index in 0..10_000 {
        assert_eq!(place(index), expected);
        assert_eq!(first_index(expected.0) + expected.1 as u32, index);
        expected.1 += 1;
        if expected.1 == FIRST_CHUNK << expected.0 {
            expected = (expected.0 + 1, 0);
        }
    }
    assert_eq!(place(u32::MAX).0, CHUNKS - 1);
}
