//! All interleavings of the tables that readers enter without a lock, and of the baton, by the model
//! checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p chronorb-rt --release --test loom`.
#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Count;
use std::sync::atomic::Ordering::Relaxed;

use chronorb_rt::{Baton, Full, HashIndex, Key, Released, Removed, SlotRef, Slots, epoch};
use loom::sync::atomic::AtomicBool;
use loom::thread;

/// A value that counts its drops.
struct Servant {
    name: u32,
    drops: Arc<Count>,
}

impl Drop for Servant {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Relaxed);
    }
}

fn servants() -> (impl Fn(u32) -> Servant, Arc<Count>) {
    let drops = Arc::new(Count::new(0));
    let counted = Arc::clone(&drops);
    let servant = move |name| Servant {
        name,
        drops: Arc::clone(&drops),
    };
    (servant, counted)
}

#[test]
fn a_key_never_finds_a_newer_value() {
    loom::model(|| {
        let (servant, drops) = servants();
        let table = Arc::new(Slots::new(1));
        let old = table.insert(servant(1)).unwrap();

        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                if let Some(value) = table.get(old) {
                    assert_eq!(value.name, 1);
                }
            })
        };

        assert!(table.remove(old).was_there());
        assert!(table.get(old).is_none());
        match table.insert(servant(2)) {
            Ok(new) => {
                assert_ne!(old, new);
                assert_eq!(table.get(new).unwrap().name, 2);
                assert!(table.get(old).is_none());
                reader.join().unwrap();
                assert_eq!(drops.load(Relaxed), 1);
            }
            Err(Full) => {
                // The reader still used the old value; the new one was refused and dropped.
                reader.join().unwrap();
                assert_eq!(drops.load(Relaxed), 2);
                assert!(table.insert(servant(3)).is_ok());
            }
        }
    });
}

#[test]
fn the_value_is_dropped_once_by_the_last_of_readers_and_remover() {
    bounded(2, || {
        let (servant, drops) = servants();
        let table = Arc::new(Slots::new(1));
        let key = table.insert(servant(1)).unwrap();

        let readers = [(); 2].map(|()| {
            let (table, drops) = (Arc::clone(&table), Arc::clone(&drops));
            thread::spawn(move || {
                if let Some(value) = table.get(key) {
                    assert_eq!(value.name, 1);
                    assert_eq!(drops.load(Relaxed), 0);
                }
            })
        });

        assert!(table.remove(key).was_there());
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(drops.load(Relaxed), 1);
        assert!(table.insert(servant(2)).is_ok());
    });
}

#[test]
fn an_outdated_key_does_not_disturb_the_drop() {
    bounded(2, || {
        let (servant, drops) = servants();
        let table = Arc::new(Slots::new(1));
        let old = table.insert(servant(1)).unwrap();
        assert!(table.remove(old).was_there());
        let new = table.insert(servant(2)).unwrap();

        let outdated = {
            let table = Arc::clone(&table);
            thread::spawn(move || assert!(table.get(old).is_none()))
        };
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                if let Some(value) = table.get(new) {
                    assert_eq!(value.name, 2);
                }
            })
        };

        assert!(table.remove(new).was_there());
        outdated.join().unwrap();
        reader.join().unwrap();
        assert_eq!(drops.load(Relaxed), 2);
        assert!(table.insert(servant(3)).is_ok());
    });
}

#[test]
fn a_key_that_is_used_too_early_finds_nothing_or_the_whole_value() {
    loom::model(|| {
        let (servant, _) = servants();
        let table = Arc::new(Slots::new(1));
        let first = table.insert(servant(1)).unwrap();
        assert!(table.remove(first).was_there());

        // Keys come from peers, who may guess.
        let guessed = Key {
            generation: first.generation + 1,
            ..first
        };
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                if let Some(value) = table.get(guessed) {
                    assert_eq!(value.name, 2);
                }
            })
        };

        assert_eq!(table.insert(servant(2)), Ok(guessed));
        reader.join().unwrap();
    });
}

#[test]
fn two_removers_remove_once() {
    loom::model(|| {
        let (servant, drops) = servants();
        let table = Arc::new(Slots::new(1));
        let key = table.insert(servant(1)).unwrap();
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.remove(key).was_there())
        };
        let mine = table.remove(key).was_there();
        assert_ne!(mine, other.join().unwrap());
        assert_eq!(drops.load(Relaxed), 1);
        assert!(table.is_empty());
    });
}

/// A table whose second chunk has one slot, with that alone taken: the chunk goes with its value.
fn second_chunk<T>(mut make: impl FnMut(u32) -> T) -> (Arc<Slots<T>>, Key) {
    let table = Slots::new(3);
    let keys = [1, 2, 3].map(|name| table.insert(make(name)).unwrap());
    for key in &keys[..2] {
        assert!(table.remove(*key).was_there());
    }
    (Arc::new(table), keys[2])
}

#[test]
fn a_reader_meets_the_removal_that_frees_the_memory() {
    loom::model(|| {
        let (servant, drops) = servants();
        let (table, key) = second_chunk(servant);
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                if let Some(value) = table.get(key) {
                    assert_eq!(value.name, 3);
                }
            })
        };
        assert!(table.remove(key).was_there());
        reader.join().unwrap();
        assert_eq!(drops.load(Relaxed), 3);
        assert!(table.was_issued(key));
    });
}

#[test]
fn a_reader_with_an_outdated_key_meets_the_removal_that_frees_the_memory() {
    bounded(3, || {
        let table = Slots::new(3);
        let keys = [1, 2, 3].map(|name| table.insert(name).unwrap());
        assert!(table.remove(keys[2]).was_there());
        let new = table.insert(4).unwrap();
        assert_eq!(new.index, keys[2].index);
        for key in &keys[..2] {
            assert!(table.remove(*key).was_there());
        }
        let table = Arc::new(table);
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                assert!(table.get(keys[2]).is_none());
                assert!(table.get_held(keys[2]).is_none());
                if let Some((key, value)) = table.get_at(new.index) {
                    assert_eq!((key, *value), (new, 4));
                }
            })
        };
        assert!(table.remove(new).was_there());
        reader.join().unwrap();
    });
}

#[test]
fn a_chunk_that_comes_again_has_new_keys() {
    bounded(2, || {
        let (table, old) = second_chunk(|name| name);
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                if let Some(value) = table.get(old) {
                    assert_eq!(*value, 3);
                }
                assert!(table.was_issued(old));
            })
        };
        assert!(table.remove(old).was_there());
        for name in [4, 5, 6] {
            match table.insert(name) {
                Ok(key) => {
                    assert_ne!(key, old);
                    assert_eq!(*table.get(key).unwrap(), name);
                }
                // The reader still uses the old value.
                Err(Full) => assert_eq!(name, 6),
            }
        }
        assert!(table.get(old).is_none());
        reader.join().unwrap();
    });
}

#[test]
fn the_removed_value_is_given_out_once_to_remover_or_user() {
    bounded(2, || {
        let table = Arc::new(Slots::new(1));
        let key = table.insert("value").unwrap();
        let users = [(); 2].map(|()| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let Some(first) = table.get(key) else {
                    return 0;
                };
                let second = table.get_held(key).expect("it is in use");
                let given = [first.release(), second.release()];
                given.into_iter().flatten().count()
            })
        });
        let given = usize::from(table.remove(key) == Removed::Last("value"));
        let given = users
            .into_iter()
            .fold(given, |given, user| given + user.join().unwrap());
        assert_eq!(given, 1);
    });
}

#[test]
fn a_value_that_an_outdated_key_delays_is_given_out_once() {
    loom::model(|| {
        let table = Arc::new(Slots::new(1));
        let old = table.insert(1).unwrap();
        let user = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let mut inherited = None;
                let found = table.get_or_inherit(old, |value| inherited = Some(value));
                found.map_or(inherited, SlotRef::release)
            })
        };
        let mut given = Vec::new();
        let mut remove = |key| match table.remove(key) {
            Removed::Last(value) => given.push(value),
            removed => assert_eq!(removed, Removed::InUse),
        };
        remove(old);
        let new = table.insert(2);
        if let Ok(new) = new {
            remove(new);
        }
        given.extend(user.join().unwrap());
        given.sort_unstable();
        match new {
            Ok(_) => assert_eq!(given, [1, 2]),
            Err(Full) => assert_eq!(given, [1]),
        }
    });
}

/// Looks for an entry that is there all the time, while `change` is made to the index.
fn nothing_is_missed(prepare: fn(&HashIndex), change: fn(&HashIndex)) {
    loom::model(move || {
        let index = Arc::new(HashIndex::new());
        prepare(&index);
        let reader = {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                let found = index.find(7, |slot| (slot == 100).then_some(()));
                assert!(found.is_some());
            })
        };
        change(&index);
        reader.join().unwrap();
    });
}

#[test]
fn nothing_is_missed_while_the_index_grows() {
    let prepare = |index: &HashIndex| {
        index.insert(7, 100);
        index.insert(7, 101);
    };
    nothing_is_missed(prepare, |index| index.insert(7, 102));
}

#[test]
fn nothing_is_missed_while_the_index_shrinks() {
    let prepare = |index: &HashIndex| {
        index.insert(7, 100);
        index.insert(7, 101);
        index.insert(8, 102);
        assert!(index.remove(8, 102));
    };
    nothing_is_missed(prepare, |index| assert!(index.remove(7, 101)));
}

#[test]
fn nothing_is_missed_while_others_before_and_behind_it_go_and_come() {
    let prepare = |index: &HashIndex| {
        index.insert(7, 99);
        index.insert(7, 100);
    };
    nothing_is_missed(prepare, |index| {
        assert!(index.remove(7, 99));
        index.insert(7, 101);
        assert!(index.remove(7, 101));
    });
}

#[test]
fn memory_is_not_freed_while_somebody_reads_there() {
    loom::model(|| {
        let index = Arc::new(HashIndex::new());
        index.insert(7, 100);
        let reader = {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                let _reading = epoch::enter();
                index.find(7, |slot| {
                    assert_eq!(slot, 100);
                    // Looking further, in memory that may be retired by now.
                    None::<()>
                });
                index.find(7, Some)
            })
        };
        assert!(index.remove(7, 100));
        assert!(matches!(reader.join().unwrap(), None | Some(100)));
        assert!(index.is_empty());
        assert!(index.find(7, Some).is_none());
    });
}

/// With so many preemptions at most: all schedules of three threads, or of long ones, are too many.
fn bounded(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Announces work, then claims; whoever holds the baton looks at the work of everybody.
///
/// The announcements are relaxed: only the baton makes them visible.
fn announce_and_serve(who: usize, announced: &[AtomicBool], seen: &Baton<Vec<bool>>) {
    announced[who].store(true, Relaxed);
    let Some(mut holder) = seen.claim() else {
        return;
    };
    loop {
        for (seen, announced) in holder.iter_mut().zip(announced) {
            *seen |= announced.load(Relaxed);
        }
        match holder.release() {
            Released::Done => return,
            Released::Again(still_held) => holder = still_held,
        }
    }
}

fn no_wake_up_is_lost(threads: usize) {
    let announced: Arc<Vec<_>> = Arc::new((0..threads).map(|_| AtomicBool::new(false)).collect());
    let seen = Arc::new(Baton::new(vec![false; threads]));
    let others: Vec<_> = (1..threads)
        .map(|who| {
            let (announced, seen) = (Arc::clone(&announced), Arc::clone(&seen));
            thread::spawn(move || announce_and_serve(who, &announced, &seen))
        })
        .collect();
    announce_and_serve(0, &announced, &seen);
    for other in others {
        other.join().unwrap();
    }
    let holder = seen.claim().expect("everybody has released");
    assert_eq!(*holder, vec![true; threads]);
    assert!(matches!(holder.release(), Released::Done));
}

#[test]
fn every_claim_of_two_threads_is_followed_by_a_look() {
    loom::model(|| no_wake_up_is_lost(2));
}

#[test]
fn every_claim_of_three_threads_is_followed_by_a_look() {
    bounded(3, || no_wake_up_is_lost(3));
}
