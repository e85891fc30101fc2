//! All interleavings of the slot table and the baton, by the model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p chronorb-rt --release --test loom`.
#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Count;
use std::sync::atomic::Ordering::Relaxed;

use chronorb_rt::{Baton, Full, Key, Released, Slots};
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

        assert!(table.remove(old));
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
    loom::model(|| {
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

        assert!(table.remove(key));
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(drops.load(Relaxed), 1);
        assert!(table.insert(servant(2)).is_ok());
    });
}

#[test]
fn an_outdated_key_does_not_disturb_the_drop() {
    loom::model(|| {
        let (servant, drops) = servants();
        let table = Arc::new(Slots::new(1));
        let old = table.insert(servant(1)).unwrap();
        assert!(table.remove(old));
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

        assert!(table.remove(new));
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
        assert!(table.remove(first));

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
            thread::spawn(move || table.remove(key))
        };
        let mine = table.remove(key);
        assert_ne!(mine, other.join().unwrap());
        assert_eq!(drops.load(Relaxed), 1);
        assert!(table.is_empty());
    });
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
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| no_wake_up_is_lost(3));
}
