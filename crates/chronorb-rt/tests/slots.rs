//! The slot table beside a simple model, and with several threads. Their interleavings are checked
//! one by one in `loom.rs`.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use chronorb_rt::{Full, Key, SlotRef, Slots};
use proptest::prelude::*;

#[test]
fn readers_beside_a_writer_find_the_value_of_their_key_or_none() {
    // A value is the number that the writer publishes with its key.
    let table = Slots::new(4);
    let key = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    let packed = key.load(Acquire);
                    let key = Key {
                        index: packed as u32,
                        generation: (packed >> 32) as u32,
                    };
                    if let Some(value) = table.get(key) {
                        let value: &OnceLock<u64> = &value;
                        assert_eq!(value.get(), Some(&packed));
                    }
                }
            });
        }
        for _ in 0..50_000 {
            let Ok(new) = table.insert(OnceLock::new()) else {
                continue;
            };
            let packed = u64::from(new.generation) << 32 | u64::from(new.index);
            table.get(new).unwrap().set(packed).unwrap();
            key.store(packed, Release);
            assert!(table.remove(new));
        }
        done.store(true, Relaxed);
    });
    assert!(table.is_empty());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert,
    Remove(usize),
    Hold(usize),
    LetGo(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Insert),
        (0..20_usize).prop_map(Step::Remove),
        (0..20_usize).prop_map(Step::Hold),
        (0..20_usize).prop_map(Step::LetGo),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn the_table_behaves_like_a_map_of_shared_values(steps in steps(), max in 0..40_u32) {
        let table = Slots::new(max);
        let mut model = HashMap::<Key, Weak<usize>>::new();
        let mut ever = Vec::<(Key, Weak<usize>)>::new();
        let mut held = Vec::<(Key, SlotRef<'_, Arc<usize>>)>::new();
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
                        prop_assert_eq!(table.remove(*key), model.remove(key).is_some());
                    }
                }
                Step::Hold(which) => {
                    if let Some((key, _)) = ever.iter().rev().nth(which) {
                        held.extend(table.get(*key).map(|value| (*key, value)));
                    }
                }
                Step::LetGo(which) => {
                    if !held.is_empty() {
                        let index = which % held.len();
                        drop(held.swap_remove(index));
                    }
                }
            }
            for (number, (key, value)) in ever.iter().enumerate() {
                let live = model.contains_key(key);
                prop_assert_eq!(table.get(*key).map(|value| **value), live.then_some(number));
                let in_use = live || held.iter().any(|(held, _)| held == key);
                prop_assert_eq!(value.strong_count(), usize::from(in_use));
            }
            prop_assert_eq!(table.len(), model.len());
            let keys = table.keys();
            prop_assert_eq!(keys.len(), model.len());
            prop_assert!(keys.iter().all(|key| model.contains_key(key)));
        }
    }
}
