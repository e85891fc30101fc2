//! The hash index beside a simple model, and with several threads. Their interleavings are checked
//! one by one in `loom.rs`.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use chronorb_rt::HashIndex;
use proptest::prelude::*;

/// All indices under a hash, in order.
fn under(index: &HashIndex, hash: u32) -> Vec<u32> {
    let mut found = Vec::new();
    index.find::<()>(hash, |index| {
        found.push(index);
        None
    });
    found.sort_unstable();
    found
}

#[test]
fn an_entry_is_found_under_its_hash_until_it_is_removed() {
    let index = HashIndex::new();
    assert!(index.is_empty());
    index.insert(7, 100);
    assert_eq!(index.len(), 1);
    assert_eq!(under(&index, 7), [100]);
    assert_eq!(under(&index, 8), []);
    assert!(!index.remove(7, 101));
    assert!(!index.remove(8, 100));
    assert!(index.remove(7, 100));
    assert!(!index.remove(7, 100));
    assert_eq!(under(&index, 7), []);
    assert!(index.is_empty());
}

#[test]
fn the_search_ends_with_the_first_index_that_is_accepted() {
    let index = HashIndex::new();
    for slot in 0..10 {
        index.insert(7, slot);
    }
    let mut asked = 0;
    let found = index.find(7, |slot| {
        asked += 1;
        (slot % 5 == 3).then_some(slot)
    });
    assert!(matches!(found, Some(3 | 8)));
    assert!(asked < 10);
}

#[test]
fn hashes_and_indices_have_no_special_values() {
    let index = HashIndex::new();
    let special = [0, 1, 2, u32::MAX / 2, u32::MAX - 1];
    for hash in special.into_iter().chain([u32::MAX]) {
        for slot in special {
            index.insert(hash, slot);
        }
    }
    for hash in special.into_iter().chain([u32::MAX]) {
        assert_eq!(under(&index, hash), special);
        assert!(!index.remove(hash, u32::MAX));
    }
}

#[test]
#[should_panic(expected = "no slot has this index")]
fn the_index_that_no_slot_has_is_refused() {
    HashIndex::new().insert(0, u32::MAX);
}

#[test]
fn what_is_there_all_the_time_is_never_missed() {
    const KEPT: u32 = 20;
    let index = HashIndex::new();
    for kept in 0..KEPT {
        index.insert(kept, kept);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    for kept in 0..KEPT {
                        assert!(
                            index
                                .find(kept, |slot| (slot == kept).then_some(()))
                                .is_some()
                        );
                    }
                }
            });
        }
        let writers = [0, 1].map(|writer| {
            let index = &index;
            scope.spawn(move || {
                // The table grows and shrinks, and fills with what was removed.
                for wave in 0..300_u32 {
                    let others = (KEPT + writer..KEPT + 10 + wave).step_by(2);
                    for other in others.clone() {
                        index.insert(other % 64, other);
                    }
                    for other in others {
                        assert!(index.remove(other % 64, other));
                    }
                }
            })
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Relaxed);
    });
    assert_eq!(index.len(), KEPT as usize);
}

proptest! {
    #[test]
    fn the_index_behaves_like_a_bag_of_pairs(
        steps in prop::collection::vec((any::<bool>(), 0..6_u32, 0..30_u32), 0..400),
    ) {
        let index = HashIndex::new();
        let mut model = Vec::new();
        for (insert, hash, slot) in steps {
            // Such hashes share their place in small tables.
            let entry = (hash << 29, slot);
            if insert {
                index.insert(entry.0, entry.1);
                model.push(entry);
            } else {
                let place = model.iter().position(|other| *other == entry);
                prop_assert_eq!(index.remove(entry.0, entry.1), place.is_some());
                place.map(|place| model.swap_remove(place));
            }
            prop_assert_eq!(index.len(), model.len());
            for hash in 0..6 {
                let of_hash = model.iter().filter(|entry| entry.0 == hash << 29);
                let mut expected: Vec<_> = of_hash.map(|entry| entry.1).collect();
                expected.sort_unstable();
                prop_assert_eq!(under(&index, hash << 29), expected);
            }
        }
    }
}
