//! All interleavings of the tables that readers enter without a lock, of the baton, of worker sets
//! and of cancellations, by the model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p chronorb-rt --release --test loom`.
#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Count;
use std::sync::atomic::Ordering::Relaxed;

use chronorb_rt::{
    AffineThread, Baton, Bounds, Cancellable, Full, HashIndex, Key, Monotonic, OfferOutcome, Rank,
    ReleaseOutcome, RemoveOutcome, SlotRef, Slots, SourceAffinity, WakeReason, WorkerSet, epoch,
};
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

        // Keys come from peers, which may guess.
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
        let given = usize::from(table.remove(key) == RemoveOutcome::Last("value"));
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
            RemoveOutcome::Last(value) => given.push(value),
            removed => assert_eq!(removed, RemoveOutcome::InUse),
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

/// Announces work, then claims; the holder of the baton handles the work of all threads.
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
            ReleaseOutcome::Done => return,
            ReleaseOutcome::Again(still_held) => holder = still_held,
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
    assert!(matches!(holder.release(), ReleaseOutcome::Done));
}

#[test]
fn every_claim_of_two_threads_is_followed_by_a_look() {
    loom::model(|| no_wake_up_is_lost(2));
}

#[test]
fn every_claim_of_three_threads_is_followed_by_a_look() {
    bounded(3, || no_wake_up_is_lost(3));
}

/// A permit of a workers and a room of one thing.
fn one_worker<T>() -> WorkerSet<T> {
    let bounds = Bounds {
        things: 1,
        octets: 1,
    };
    WorkerSet::new(1, 1, 2, bounds)
}

#[test]
fn what_found_no_seat_is_served_by_who_gives_one_back() {
    loom::model(|| {
        let workers = Arc::new(one_worker());
        let served = Arc::new(Count::new(0));
        let serve_and_finish = |workers: &WorkerSet<()>, served: &Count| {
            served.fetch_add(1, Relaxed);
            while workers.finish().is_some() {
                served.fetch_add(1, Relaxed);
            }
        };
        // Two threads with a request each, one permit, and room for one to wait.
        let other = {
            let (workers, served) = (Arc::clone(&workers), Arc::clone(&served));
            thread::spawn(move || match workers.offer(Rank::of(0), 1, (), |_| ()) {
                OfferOutcome::Permit(()) => serve_and_finish(&workers, &served),
                OfferOutcome::Waits(evicted) => assert!(evicted.is_empty()),
                OfferOutcome::Refused(()) => panic!("there is room for it"),
            })
        };
        if workers.try_begin() {
            serve_and_finish(&workers, &served);
        } else {
            match workers.offer(Rank::of(0), 1, (), |_| ()) {
                OfferOutcome::Permit(()) => serve_and_finish(&workers, &served),
                OfferOutcome::Waits(_) => {}
                OfferOutcome::Refused(()) => panic!("the other one has the permit"),
            }
        }
        other.join().unwrap();
        assert_eq!(served.load(Relaxed), 2);
        assert_eq!(workers.counts(), (1, 1, 0), "the permit is free again");
    });
}

#[test]
fn what_gives_way_to_a_more_urgent_item_is_served_all_the_same() {
    loom::model(|| {
        let workers = Arc::new(one_worker());
        let served = Arc::new([Count::new(0), Count::new(0)]);
        // One thread has the permit and an item. Another one reads a more urgent item meanwhile.
        assert!(workers.try_begin());
        let reader = {
            let (workers, served) = (Arc::clone(&workers), Arc::clone(&served));
            thread::spawn(move || match workers.offer(Rank::of(1), 1, 1, |_| ()) {
                OfferOutcome::Permit(thing) => {
                    let mut next = Some(thing);
                    while let Some(thing) = next {
                        served[thing].fetch_add(1, Relaxed);
                        next = workers.finish();
                    }
                }
                OfferOutcome::Waits(evicted) => assert!(evicted.is_empty()),
                OfferOutcome::Refused(_) => panic!("there is room for it"),
            })
        };
        let mut next = Some(0);
        while let Some(thing) = next {
            let first = workers.exchange(Rank::of(thing as u128), 1, thing);
            assert!(thing == 0 || first == 1, "the urgent one does not give way");
            served[first].fetch_add(1, Relaxed);
            next = workers.finish();
        }
        reader.join().unwrap();
        assert_eq!(served.each_ref().map(|count| count.load(Relaxed)), [1, 1]);
        assert_eq!(workers.counts(), (1, 1, 0), "the permit is free again");
    });
}

#[test]
fn an_assignment_reaches_a_member_that_is_about_to_rest() {
    loom::model(|| {
        let workers = Arc::new(one_worker());
        let me = workers.enlist(1).unwrap();
        assert!(workers.try_begin());
        let reader = {
            let workers = Arc::clone(&workers);
            thread::spawn(move || {
                workers.assign(Rank::of(0), 7).unwrap();
                workers.call().map(|call| call.make(false)).is_some()
            })
        };
        let served = if workers.rest(me) {
            // The member waits here. It goes on when it is called, or not at all.
            let called = reader.join().unwrap();
            assert!(called, "it rests, and is not called");
            assert_eq!(workers.rise(me), WakeReason::Called);
            workers.take_assigned()
        } else {
            let called = workers.rise(me) != WakeReason::ByItself;
            let served = workers.take_assigned();
            assert_eq!(
                called,
                reader.join().unwrap(),
                "it was called, and does not know"
            );
            served
        };
        assert_eq!(served, Some(7));
        workers.leave(me);
    });
}

#[test]
fn a_member_that_goes_on_by_itself_waits_for_who_calls_it() {
    loom::model(|| {
        let workers: Arc<WorkerSet<()>> = Arc::new(one_worker());
        let me = workers.enlist(1).unwrap();
        assert!(workers.rest(me));
        let raised = Arc::new(AtomicBool::new(false));
        let caller = {
            let (workers, raised) = (Arc::clone(&workers), Arc::clone(&raised));
            thread::spawn(move || {
                if let Some(call) = workers.call() {
                    // Its priority is set here.
                    raised.store(true, Relaxed);
                    call.make(true);
                    return true;
                }
                false
            })
        };
        // An event of its own woke it.
        let called = workers.rise(me) == WakeReason::Raised;
        if called {
            assert!(raised.load(Relaxed));
        }
        assert_eq!(caller.join().unwrap(), called);
        workers.leave(me);
    });
}

#[test]
fn a_lower_set_lends_its_permit_or_sees_what_waits() {
    // As lanes do it: the reader of the high one asks the low one for a permit, leaves the request
    // if there is none, and asks again; a thread of the low one that is done looks above before and
    // after it frees its permit.
    loom::model(|| {
        let (high, low) = (Arc::new(one_worker()), Arc::new(one_worker::<u32>()));
        assert!(high.try_begin(), "the high lane is exhausted");
        assert!(low.try_begin(), "a thread of the low one is at work");
        let low_thread = {
            let (high, low) = (Arc::clone(&high), Arc::clone(&low));
            thread::spawn(move || {
                loop {
                    if let Some(borrowed) = high.take() {
                        return Some(borrowed);
                    }
                    assert!(low.finish().is_none());
                    if !high.has_backlog() || !low.try_begin() {
                        return None;
                    }
                }
            })
        };
        let mut assigned = low.try_begin().then_some(7);
        if assigned.is_none() {
            assert!(matches!(
                high.offer(Rank::of(0), 1, 7, |_| ()),
                OfferOutcome::Waits(_)
            ));
            while assigned.is_none() && high.has_backlog() && low.try_begin() {
                assigned = high.take();
                if assigned.is_none() {
                    low.finish();
                }
            }
        }
        let borrowed = low_thread.join().unwrap();
        assert_eq!(
            assigned.or(borrowed),
            Some(7),
            "the request was left behind"
        );
        assert!(assigned.is_none() || borrowed.is_none());
    });
}

#[test]
fn nothing_waits_in_a_set_that_is_closed() {
    loom::model(|| {
        let workers = Arc::new(one_worker());
        assert!(workers.try_begin());
        let reader = {
            let workers = Arc::clone(&workers);
            thread::spawn(move || match workers.offer(Rank::of(0), 1, 7, |_| ()) {
                OfferOutcome::Waits(_) => None,
                OfferOutcome::Permit(thing) | OfferOutcome::Refused(thing) => Some(thing),
            })
        };
        let closed = workers.close();
        let refused = reader.join().unwrap();
        assert_eq!(closed.first().copied().or(refused), Some(7));
        assert_eq!(workers.counts(), (1, 0, 0));
    });
}

#[test]
fn a_thread_too_many_leaves_only_with_a_free_seat() {
    loom::model(|| {
        let workers: Arc<WorkerSet<()>> = Arc::new(WorkerSet::new(
            1,
            2,
            2,
            Bounds {
                things: 0,
                octets: 0,
            },
        ));
        assert!(workers.grow());
        workers.settle(true);
        assert!(workers.finish().is_none());
        let idle = [(); 2].map(|()| {
            let workers = Arc::clone(&workers);
            thread::spawn(move || workers.retire())
        });
        let begun = workers.try_begin();
        let left = idle.map(|thread| thread.join().unwrap());
        let left = left.into_iter().filter(|left| *left).count() as u32;
        assert!(left <= 1, "the least stay");
        assert!(begun || left == 1);
        let (permits, free, _) = workers.counts();
        assert_eq!(permits, 2 - left);
        assert_eq!(free, permits - u32::from(begun));
    });
}

#[test]
fn a_set_never_has_more_permits_than_it_may() {
    loom::model(|| {
        let room = Bounds {
            things: 0,
            octets: 0,
        };
        let workers: Arc<WorkerSet<()>> = Arc::new(WorkerSet::new(1, 2, 2, room));
        assert!(workers.try_begin() && workers.grow(), "both are at work");
        workers.settle(true);
        let idle = {
            let workers = Arc::clone(&workers);
            thread::spawn(move || workers.retire())
        };
        let grown = workers.grow();
        let left = idle.join().unwrap();
        let (permits, free, _) = workers.counts();
        assert!(!left && !grown, "all are at work, and there is no room");
        assert_eq!((permits, free), (2, 0));
    });
}

/// One thread stays, or does not; the other goes away from the set, and calls it where it has to.
/// What is woken by the second model of a wait is told by `woken`.
#[test]
fn a_set_is_not_left_alone_by_who_stays() {
    loom::model(|| {
        let stays = Arc::new(SourceAffinity::new());
        let stayer = Arc::new(AffineThread::new(1));
        let woken = Arc::new(AtomicBool::new(false));
        // Both are at the set, and the first has gone away to work.
        stays.come();
        let other = {
            let (stays, woken) = (Arc::clone(&stays), Arc::clone(&woken));
            thread::spawn(move || {
                if stays.go() && stays.has_stayers() {
                    let now = Monotonic::from_nanos(1);
                    stays.call_one(now, |(), _| woken.store(true, Relaxed));
                }
            })
        };
        let entered = stays.enter(&stayer, ());
        let waits = entered && stayer.waits();
        other.join().unwrap();
        // The set is alone now: the staying thread knows, or is woken.
        if waits {
            assert!(woken.load(Relaxed));
            stayer.has_waited();
            assert!(stayer.is_called());
        } else if entered {
            assert!(stayer.is_called());
        }
        let called = stays.leave(&stayer, 0);
        assert!(called || !entered);
        assert_eq!(stays.staying(), 0);
    });
}

#[test]
fn whoever_is_called_notices_it_before_the_next_wait() {
    loom::model(|| {
        let stays = Arc::new(SourceAffinity::new());
        let stayer = Arc::new(AffineThread::new(1));
        let wakes = Arc::new(Count::new(0));
        stays.come();
        assert!(stays.enter(&stayer, ()));
        let caller = {
            let (stays, wakes) = (Arc::clone(&stays), Arc::clone(&wakes));
            thread::spawn(move || {
                stays.call_all(|(), _| {
                    wakes.fetch_add(1, Relaxed);
                });
            })
        };
        // Two waits, each ended by work that came.
        for _ in 0..2 {
            if stayer.waits() {
                stayer.has_waited();
            }
        }
        caller.join().unwrap();
        assert!(!stayer.waits());
        assert!(wakes.load(Relaxed) <= 1);
        assert!(stays.leave(&stayer, 0));
    });
}

/// The owner waits for what only a cancellation ends; the canceller finds it by its name.
#[test]
fn a_cancellation_ends_a_wait_or_is_seen_before_it() {
    loom::model(|| {
        let place = Arc::new(Cancellable::new());
        let woken = Arc::new(AtomicBool::new(false));
        place.set_wait(Arc::clone(&woken));
        let activity = place.begin(1, NAME);
        let canceller = {
            let place = Arc::clone(&place);
            thread::spawn(move || {
                let found = place.find(NAME).expect("it has not ended");
                assert!(place.cancel(found, |woken| woken.store(true, Relaxed)));
            })
        };
        if place.begin_wait() {
            canceller.join().unwrap();
            assert!(woken.load(Relaxed), "it waits for ever");
        } else {
            canceller.join().unwrap();
            assert!(!woken.load(Relaxed), "it does not wait");
        }
        place.end_wait();
        assert!(place.is_cancelled(activity));
    });
}

#[test]
fn nothing_is_interrupted_after_the_end_of_a_wait() {
    loom::model(|| {
        let place = Arc::new(Cancellable::new());
        // Reads of the next wait, which nothing may interrupt.
        let is_over = Arc::new(AtomicBool::new(false));
        place.set_wait(Arc::clone(&is_over));
        let activity = place.begin(1, NAME);
        let canceller = {
            let place = Arc::clone(&place);
            thread::spawn(move || {
                place.cancel(activity, |is_over| {
                    assert!(!is_over.load(Relaxed), "the wait is over");
                });
            })
        };
        // A wait that may not begin ends alike.
        let _may_wait = place.begin_wait();
        place.end_wait();
        is_over.store(true, Relaxed);
        canceller.join().unwrap();
    });
}

#[test]
fn a_cancellation_by_name_marks_no_other_activity() {
    loom::model(|| {
        let place = Arc::new(Cancellable::<()>::new());
        let first = place.begin(1, NAME);
        let canceller = {
            let place = Arc::clone(&place);
            thread::spawn(move || {
                let found = place.find(NAME)?;
                assert_eq!(found, first, "the other one has another name");
                Some(place.cancel(found, |()| panic!("it does not wait")))
            })
        };
        place.end(first);
        let second = place.begin(2, OTHER_NAME);
        canceller.join().unwrap();
        assert!(!place.is_cancelled(second));
        assert_eq!(place.find(OTHER_NAME), Some(second));
        assert_eq!(place.find(NAME), None);
    });
}

const NAME: [u64; 3] = [1, 2, 3];
/// A name that has two words of the other one.
const OTHER_NAME: [u64; 3] = [1, 2, 4];
