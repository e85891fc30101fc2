//! RT mutexes: locking, names, misuse, and the priority inversion that they prevent.

use chronorb_orb::rtcorba::{LinearMapping, MutexNotFound, Priority, PriorityMapping, RtMutex};
use chronorb_orb::{Orb, SystemException, SystemExceptionKind, minor};
use chronorb_rt::{PiMutex, Scheduling, Thread, ThreadBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Latch, PATIENCE, has_real_time, orb};

const AT_ONCE: Duration = Duration::ZERO;
const SHORT: Duration = Duration::from_micros(100);

/// Runs `f` on another thread.
fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    thread::scope(|threads| threads.spawn(f).join().expect("it does not panic"))
}

fn refusal<T: std::fmt::Debug>(result: Result<T, SystemException>) -> (SystemExceptionKind, u32) {
    let exception = result.expect_err("it is refused");
    (exception.kind, exception.minor)
}

const DEADLOCK: (SystemExceptionKind, u32) =
    (SystemExceptionKind::BadInvOrder, minor::WOULD_DEADLOCK);
const NOT_OWNED: (SystemExceptionKind, u32) =
    (SystemExceptionKind::BadInvOrder, minor::MUTEX_NOT_OWNED);
const IN_USE: (SystemExceptionKind, u32) = (SystemExceptionKind::BadInvOrder, minor::MUTEX_IN_USE);
const OWNER_ENDED: (SystemExceptionKind, u32) =
    (SystemExceptionKind::BadInvOrder, minor::MUTEX_OWNER_ENDED);
const DESTROYED: (SystemExceptionKind, u32) =
    (SystemExceptionKind::ObjectNotExist, minor::MUTEX_DESTROYED);

#[test]
fn one_thread_at_a_time_has_the_mutex() {
    const ROUNDS: u32 = 2_000;
    let mutex = orb().rt().create_mutex();
    // Separate load and store: concurrent threads would lose additions.
    let count = AtomicU32::new(0);
    let add = || {
        let before = count.load(Ordering::Relaxed);
        thread::yield_now();
        count.store(before + 1, Ordering::Relaxed);
    };
    thread::scope(|threads| {
        for way in 0..3 {
            let (mutex, add) = (&mutex, &add);
            threads.spawn(move || {
                for _ in 0..ROUNDS {
                    match way {
                        0 => mutex.lock().expect("it is free some day"),
                        1 => assert!(mutex.try_lock(PATIENCE).expect("it is free some day")),
                        _ => {
                            let _section = mutex.guard().expect("it is free some day");
                            add();
                            continue;
                        }
                    }
                    add();
                    mutex.unlock().expect("it is locked");
                }
            });
        }
    });
    assert_eq!(count.into_inner(), 3 * ROUNDS);
}

#[test]
fn who_tries_gets_a_free_mutex_and_gives_up_on_a_locked_one() {
    let mutex = orb().rt().create_mutex();
    assert_eq!(mutex.try_lock(AT_ONCE), Ok(true));
    elsewhere(|| {
        assert_eq!(mutex.try_lock(AT_ONCE), Ok(false));
        assert_eq!(mutex.try_lock(SHORT), Ok(false));
    });
    assert_eq!(mutex.unlock(), Ok(()));
    elsewhere(|| {
        assert_eq!(mutex.try_lock(SHORT), Ok(true));
        assert_eq!(mutex.unlock(), Ok(()));
    });
}

#[test]
fn a_section_ends_with_its_guard() {
    let mutex = orb().rt().create_mutex();
    let section = mutex.guard().expect("it is free");
    assert_eq!(elsewhere(|| mutex.try_lock(AT_ONCE)), Ok(false));
    drop(section);
    assert_eq!(mutex.try_lock(AT_ONCE), Ok(true));
}

#[test]
fn only_the_owner_unlocks_and_once() {
    let mutex = orb().rt().create_mutex();
    assert_eq!(refusal(mutex.unlock()), NOT_OWNED);
    mutex.lock().expect("it is free");
    assert_eq!(refusal(elsewhere(|| mutex.unlock())), NOT_OWNED);
    assert_eq!(mutex.unlock(), Ok(()));
    assert_eq!(refusal(mutex.unlock()), NOT_OWNED);
}

#[test]
fn the_owner_cannot_lock_again() {
    let mutex = orb().rt().create_mutex();
    mutex.lock().expect("it is free");
    assert_eq!(refusal(mutex.lock()), DEADLOCK);
    assert_eq!(refusal(mutex.try_lock(AT_ONCE)), DEADLOCK);
    assert_eq!(refusal(mutex.try_lock(PATIENCE)), DEADLOCK);
    assert_eq!(mutex.unlock(), Ok(()));
}

#[test]
fn threads_do_not_wait_for_each_other() {
    let rt = orb().rt();
    let (first, second) = (rt.create_mutex(), rt.create_mutex());
    let arrived = Latch::default();
    first.lock().expect("it is free");
    thread::scope(|threads| {
        let other = threads.spawn(|| {
            let _section = second.guard().expect("it is free");
            arrived.set(1);
            let locked = first.try_lock(PATIENCE);
            if locked == Ok(true) {
                first.unlock().expect("it is locked");
            }
            locked
        });
        arrived.reach(1);
        // The second one would close the cycle.
        let locked = second.try_lock(PATIENCE);
        first.unlock().expect("it is locked");
        let outcomes = [locked, other.join().expect("it does not panic")];
        let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        assert_eq!(refused.len(), 1, "{outcomes:?}");
        assert_eq!(refusal::<()>(Err(refused[0])), DEADLOCK);
    });
}

#[test]
fn a_mutex_that_is_locked_is_not_destroyed() {
    let rt = orb().rt();
    let mutex = rt.create_mutex();
    mutex.lock().expect("it is free");
    assert_eq!(refusal(rt.destroy_mutex(&mutex)), IN_USE);
    assert_eq!(refusal(elsewhere(|| rt.destroy_mutex(&mutex))), IN_USE);
    mutex.unlock().expect("it is locked, still");
    assert_eq!(rt.destroy_mutex(&mutex), Ok(()));
}

#[test]
fn a_destroyed_mutex_does_not_exist() {
    let rt = orb().rt();
    let mutex = rt.create_mutex();
    rt.destroy_mutex(&mutex).expect("it is free");
    for _ in 0..2 {
        assert_eq!(refusal(mutex.lock()), DESTROYED);
        assert_eq!(refusal(mutex.try_lock(AT_ONCE)), DESTROYED);
        assert_eq!(refusal(mutex.guard()), DESTROYED);
        assert_eq!(refusal(mutex.unlock()), DESTROYED);
        assert_eq!(refusal(rt.destroy_mutex(&mutex)), DESTROYED);
    }
}

#[test]
fn a_mutex_belongs_to_its_orb() {
    let mutex = orb().rt().create_mutex();
    let (kind, _) = refusal(orb().rt().destroy_mutex(&mutex));
    assert_eq!(kind, SystemExceptionKind::BadParam);
    assert_eq!(mutex.lock(), Ok(()));
}

#[test]
fn a_mutex_whose_owner_has_ended_can_only_be_destroyed() {
    let rt = orb().rt();
    let (mutex, _) = rt.create_named_mutex("left behind");
    elsewhere(|| mutex.lock().expect("it is free"));
    // The kernel keeps the owner for a moment after its end.
    while mutex.try_lock(AT_ONCE) == Ok(false) {
        thread::yield_now();
    }
    assert_eq!(refusal(mutex.lock()), OWNER_ENDED);
    assert_eq!(refusal(mutex.try_lock(PATIENCE)), OWNER_ENDED);
    assert_eq!(refusal(mutex.unlock()), NOT_OWNED);

    assert_eq!(rt.destroy_mutex(&mutex), Ok(()));
    assert_eq!(refusal(mutex.lock()), DESTROYED);
    let (anew, created) = rt.create_named_mutex("left behind");
    assert!(created);
    assert_eq!(anew.lock(), Ok(()));
}

#[test]
fn a_name_is_made_once_and_found_by_everyone() {
    let orb_of_names = orb();
    let rt = orb_of_names.rt();
    assert_eq!(rt.open_named_mutex("log"), Err(MutexNotFound));

    let (mutex, created) = rt.create_named_mutex("log");
    assert!(created);
    assert_eq!(rt.create_named_mutex("log"), (mutex.clone(), false));
    assert_eq!(
        orb_of_names.rt().open_named_mutex("log").as_ref(),
        Ok(&mutex)
    );
    mutex.lock().expect("it is free");
    let same = rt.open_named_mutex("log").expect("it is there");
    assert_eq!(elsewhere(|| same.try_lock(AT_ONCE)), Ok(false));

    let (other, created) = rt.create_named_mutex("table");
    assert!(created && other != mutex);
    assert_eq!(orb().rt().open_named_mutex("log"), Err(MutexNotFound));
}

#[test]
fn a_destroyed_name_is_free_again() {
    let rt = orb().rt();
    let (mutex, _) = rt.create_named_mutex("log");
    rt.destroy_mutex(&mutex).expect("it is free");
    assert_eq!(rt.open_named_mutex("log"), Err(MutexNotFound));
    let (anew, created) = rt.create_named_mutex("log");
    assert!(created && anew != mutex);
    assert_eq!(anew.lock(), Ok(()));
}

#[test]
fn a_mutex_outlives_the_orb_s_run() {
    let orb = orb();
    let mutex = orb.rt().create_mutex();
    let _section = mutex.guard().expect("it is free");
    orb.shutdown(true).expect("it runs");
    assert_eq!(elsewhere(|| mutex.try_lock(AT_ONCE)), Ok(false));
    assert_eq!(orb.rt().create_mutex().lock(), Ok(()));
}

const MIDDLE_WORK: u32 = 10_000;

/// The shared state of the threads of an inversion.
struct Inversion {
    orb: Orb,
    mutex: RtMutex,
    cpu: usize,
    events: PiMutex<Vec<&'static str>>,
    /// The completed virtual work of the middle thread.
    work: AtomicU32,
    /// The value of `work` at the moment when the high thread got the mutex.
    work_before_high: AtomicU32,
}

impl Inversion {
    /// Starts a thread of this CORBA priority on the only CPU. With real-time rights, a more urgent
    /// thread than the caller runs until it waits or ends; a less urgent one waits.
    fn start(
        self: &Arc<Self>,
        name: &str,
        priority: i16,
        run: impl FnOnce(&Self) + Send + 'static,
    ) -> Thread<()> {
        let priority = Priority::new(priority).expect("not negative");
        let native = LinearMapping
            .to_native(priority)
            .filter(|_| has_real_time());
        let inversion = self.clone();
        ThreadBuilder::new(name)
            .affinity(&[self.cpu])
            .scheduling(native.map_or(Scheduling::OTHER, Scheduling::fifo))
            .spawn(move || {
                let current = inversion.orb.rt_current();
                current.set_priority(priority).expect("it has a native one");
                run(&inversion);
            })
            .expect("it starts")
    }

    fn note(&self, event: &'static str) {
        self.events.lock().push(event);
    }
}

/// Runs the inversion on one CPU: low locks the mutex, high waits for it, and middle has
/// independent work. Returns the order of events, and the completed work of middle when high got
/// the mutex.
fn inversion(lock: fn(&RtMutex)) -> (Vec<&'static str>, u32) {
    let orb = orb();
    let probe = ThreadBuilder::new("probe").spawn(chronorb_rt::list);
    let threads = probe.map(|probe| probe.join().expect("it does not panic"));
    let inversion = Arc::new(Inversion {
        mutex: orb.rt().create_mutex(),
        orb,
        cpu: threads.expect("it starts")[0].affinity[0],
        events: PiMutex::default(),
        work: AtomicU32::new(0),
        work_before_high: AtomicU32::new(0),
    });
    let all = inversion.clone();
    let low = inversion.start("low", 4_000, move |shared| {
        shared.mutex.lock().expect("it is free");
        let high = all.start("high", 12_000, move |shared| {
            lock(&shared.mutex);
            let work = shared.work.load(Ordering::Relaxed);
            shared.work_before_high.store(work, Ordering::Relaxed);
            shared.note("high has the mutex");
            shared.mutex.unlock().expect("it is locked");
        });
        let middle = all.start("middle", 8_000, |shared| {
            for _ in 0..MIDDLE_WORK {
                shared.work.fetch_add(1, Ordering::Relaxed);
            }
            shared.note("middle has done its work");
        });
        shared.note("low ends its section");
        shared.mutex.unlock().expect("it is locked");
        shared.note("low goes on");
        for thread in [high, middle] {
            thread.join().expect("it does not panic");
        }
    });
    low.join().expect("it does not panic");
    let events = inversion.events.lock().clone();
    (events, inversion.work_before_high.load(Ordering::Relaxed))
}

#[test]
fn a_high_thread_waits_for_the_critical_section_and_no_longer() {
    let ways: [fn(&RtMutex); 2] = [
        |mutex| mutex.lock().expect("it is free some day"),
        |mutex| assert_eq!(mutex.try_lock(PATIENCE), Ok(true)),
    ];
    for lock in ways {
        let (events, work_before_high) = inversion(lock);
        if has_real_time() {
            let in_order = [
                "low ends its section",
                "high has the mutex",
                "middle has done its work",
                "low goes on",
            ];
            assert_eq!(events, in_order);
            assert_eq!(work_before_high, 0, "middle has not run before high");
        } else {
            eprintln!(
                "NOT TESTED: without real-time rights the three threads have no order of urgency."
            );
            let place = |event| events.iter().position(|other| *other == event);
            assert_eq!(events.len(), 4, "{events:?}");
            assert!(place("low ends its section") < place("high has the mutex"));
        }
    }
}
