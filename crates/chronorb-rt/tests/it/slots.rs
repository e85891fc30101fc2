//! The slot table beside a simple model, and with several threads. Their interleavings are checked
//! one by one in `loom.rs`.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};
use std::thread;

use chronorb_rt::{Full, Key, RemoveOutcome, SlotRef, Slots};
use proptest::prelude::*;

/// A value in which readers find what they look for.
struct NamedEntry {
    key: Key,
    whole: Box<u32>,
}

fn named(table: &Slots<NamedEntry>) -> Result<Key, Full> {
    table.insert_with(|key| NamedEntry {
        key,
        whole: Box::new(key.index ^ key.generation),
    })
}

fn check(found: &NamedEntry, key: Key) {
    assert_eq!(found.key, key);
    assert_eq!(*found.whole, key.index ^ key.generation);
}

#[test]
fn readers_beside_a_writer_find_the_value_of_their_key_or_none() {
    // The writer fills chunk after chunk, and gives them back.
    const WAVE: u32 = 100;
    let table = Slots::new(10 * WAVE);
    let newest = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..3 {
            let (table, newest, done) = (&table, &newest, &done);
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    let packed = newest.load(Acquire);
                    let generation = (packed >> 32) as u32;
                    let index = packed as u32;
                    // The newest key, older ones, and guesses.
                    for back in [0, 1, 7, WAVE / 2, WAVE - 1] {
                        let key = Key {
                            index: index.wrapping_sub(back * reader),
                            generation: generation.wrapping_sub(back % 3),
                        };
                        if let Some(found) = table.get(key) {
                            check(&found, key);
                        }
                        if let Some((key, found)) = table.get_at(key.index) {
                            check(&found, key);
                        }
                    }
                }
            });
        }
        for _ in 0..500 {
            let keys: Vec<_> = (0..WAVE).filter_map(|_| named(&table).ok()).collect();
            for key in &keys {
                newest.store(
                    u64::from(key.generation) << 32 | u64::from(key.index),
                    Release,
                );
                check(&table.get(*key).unwrap(), *key);
            }
            for key in keys {
                assert!(table.remove(key).was_there());
                assert!(table.was_issued(key));
            }
        }
        done.store(true, Relaxed);
    });
    assert!(table.is_empty());
}

#[test]
fn every_removed_value_is_given_out_once() {
    const VALUES: usize = 20_000;
    let table = Slots::<NamedEntry>::new(64);
    let newest = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let given = thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut given = 0;
                    while !done.load(Relaxed) {
                        let packed = newest.load(Acquire);
                        let key = Key {
                            index: packed as u32,
                            generation: (packed >> 32) as u32,
                        };
                        let mut inherited = None;
                        let found = table.get_or_inherit(key, |value| inherited = Some(value));
                        given += match found {
                            Some(found) => usize::from(found.release().is_some()),
                            None => usize::from(inherited.is_some()),
                        };
                    }
                    given
                })
            })
            .collect();
        let mut given = 0;
        for _ in 0..VALUES {
            let key = loop {
                // Full as long as readers hold what was removed.
                match named(&table) {
                    Ok(key) => break key,
                    Err(Full) => thread::yield_now(),
                }
            };
            newest.store(
                u64::from(key.generation) << 32 | u64::from(key.index),
                Release,
            );
            given += usize::from(matches!(table.remove(key), RemoveOutcome::Last(_)));
        }
        done.store(true, Relaxed);
        readers
            .into_iter()
            .fold(given, |given, reader| given + reader.join().unwrap())
    });
    assert_eq!(given, VALUES);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert,
    Remove(usize),
    Hold(usize),
    HoldAgain(usize),
    LetGo(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Insert),
        2 => (0..40_usize).prop_map(Step::Remove),
        1 => (0..20_usize).prop_map(Step::Hold),
        1 => (0..20_usize).prop_map(Step::HoldAgain),
        1 => (0..20_usize).prop_map(Step::LetGo),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn the_table_behaves_like_a_map_of_shared_values(steps in steps(), max in 0..40_u32) {
        let table = Slots::new(max);
        let mut model = HashMap::<Key, Weak<usize>>::new();
        let mut ever = Vec::<(Key, Weak<usize>)>::new();
        let mut held = Vec::<SlotRef<'_, Arc<usize>>>::new();
        for step in steps {
            match step {
                Step::Insert => {
                    let value = Arc::new(ever.len());
                    let weak = Arc::downgrade(&value);
                    let in_use = ever.iter().filter(|(_, value)| value.strong_count() > 0).count();
                    match table.insert(value) {
                        Ok(key) => {
                            prop_assert!(model.insert(key, weak.clone()).is_none());
                            prop_assert!(ever.iter().all(|(old, _)| *old != key));
                            ever.push((key, weak));
                        }
                        Err(Full) => prop_assert_eq!(in_use, max as usize),
                    }
                }
                Step::Remove(which) => {
                    if let Some((key, _)) = ever.iter().rev().nth(which) {
                        let in_use = held.iter().any(|held| held.key() == *key);
                        match table.remove(*key) {
                            RemoveOutcome::NotThere => prop_assert!(!model.contains_key(key)),
                            RemoveOutcome::InUse => {
                                prop_assert!(in_use && model.remove(key).is_some());
                            }
                            RemoveOutcome::Last(_) => {
                                prop_assert!(!in_use && model.remove(key).is_some())
                            }
                        }
                    }
                }
                Step::Hold(which) => {
                    if let Some((key, _)) = ever.iter().rev().nth(which) {
                        held.extend(table.get(*key));
                    }
                }
                Step::HoldAgain(which) => {
                    if let Some((key, value)) = ever.iter().rev().nth(which) {
                        let again = table.get_held(*key);
                        prop_assert_eq!(again.is_some(), value.strong_count() > 0);
                        held.extend(again);
                    }
                }
                Step::LetGo(which) => {
                    if !held.is_empty() {
                        let held_one = held.swap_remove(which % held.len());
                        let key = held_one.key();
                        let last = held.iter().all(|held| held.key() != key);
                        let given = held_one.release();
                        prop_assert_eq!(given.is_some(), last && !model.contains_key(&key));
                    }
                }
            }
            for (number, (key, value)) in ever.iter().enumerate() {
                let live = model.contains_key(key);
                prop_assert_eq!(table.get(*key).map(|value| **value), live.then_some(number));
                let readers = held.iter().filter(|held| held.key() == *key).count();
                prop_assert_eq!(table.readers(*key) as usize, readers);
                prop_assert_eq!(value.strong_count(), usize::from(live || readers > 0));
                prop_assert!(table.was_issued(*key));
            }
            prop_assert_eq!(table.len(), model.len());
            let keys = table.keys();
            prop_assert_eq!(keys.len(), model.len());
            prop_assert!(keys.iter().all(|key| model.contains_key(key)));
            prop_assert!(keys.is_sorted());
        }
    }
}
