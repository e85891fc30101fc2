//! Threads that wait at one source of work, while others wait for all sources.
//!
//! Several threads wait together at a set of sources, for example at one epoll set. One of them may
//! wait at a single source instead, which is cheaper, as long as another one is at the set. Each
//! side publishes its own counter before it reads the other's: a thread that stays at a source is
//! counted before it checks that a thread is at the set, and a thread that leaves the set is
//! counted before it checks for threads that stay. So at least one of them observes the other
//! (Dekker).

use std::sync::Arc;
use std::time::Duration;

use crate::sync::primitives::Mutex;
use crate::sync::primitives::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::time::clock::Monotonic;

/// The numbers of threads that wait at a set of sources, and the threads that wait at one source
/// each. `P` identifies a source.
#[derive(Debug)]
pub struct SourceAffinity<P> {
    at_set: AtomicUsize,
    /// The number of entries of `stayers`, with those that are about to be added.
    staying: AtomicUsize,
    stayers: Mutex<Vec<(P, Arc<AffineThread>)>>,
    /// The time before which no thread may stay, in nanoseconds; 0 if any may.
    not_before: AtomicU64,
    /// The length of the pause after the next call, in nanoseconds.
    next_pause: AtomicU64,
}

/// The state of a thread that stays at times.
#[derive(Debug)]
pub struct AffineThread {
    tid: u32,
    /// [`WAITING`], [`BUSY`] or [`CALLED`].
    state: AtomicU32,
}

/// The thread waits at its source.
const WAITING: u32 = 0;
/// The thread works, or is about to wait.
const BUSY: u32 = 1;
/// The thread must go back to the set.
const CALLED: u32 = 2;

impl<P> SourceAffinity<P> {
    /// Makes an instance without waiting and staying threads.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it is no value to begin with")]
    pub fn new() -> Self {
        Self {
            at_set: AtomicUsize::new(0),
            staying: AtomicUsize::new(0),
            stayers: Mutex::new(Vec::new()),
            not_before: AtomicU64::new(0),
            next_pause: AtomicU64::new(nanos(LEAST_PAUSE)),
        }
    }

    /// Returns the number of threads that stay.
    pub fn staying(&self) -> usize {
        self.staying.load(Ordering::Relaxed)
    }

    /// Counts the calling thread as waiting at the set.
    pub fn come(&self) {
        self.at_set.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts the calling thread as gone from the set. Returns whether the set is empty now. Unless
    /// this thread comes back soon or a further one comes, another must be
    /// [called](Self::call_one) if [one stays](Self::has_stayers).
    pub fn go(&self) -> bool {
        self.at_set.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether a thread stays, for one that has left the set empty.
    pub fn has_stayers(&self) -> bool {
        self.staying.fetch_add(0, Ordering::AcqRel) > 0
    }

    /// Whether a thread is at the set, for one that is not and will not come back. If that other
    /// thread goes, it learns that the set is empty.
    pub fn is_attended(&self) -> bool {
        self.at_set.load(Ordering::Acquire) > 0
    }

    /// Whether a thread may try to stay, after an event at the set. Others must be at the set, and
    /// the pause after the last [call](Self::call_one) must be over: 1 ms, twice as long after each
    /// further call, up to 64 ms.
    ///
    /// The pause is a time and no number of events, so that a past load affects a few milliseconds
    /// and not the first thousands of events after it. `now` is asked only during a pause.
    pub fn is_time(&self, now: impl FnOnce() -> Monotonic) -> bool {
        if self.at_set.load(Ordering::Relaxed) == 0 {
            return false;
        }
        match self.not_before.load(Ordering::Relaxed) {
            0 => true,
            end if now().as_nanos() < end => false,
            end => {
                // A call meanwhile begins another pause, which stays.
                let (set, order) = (&self.not_before, Ordering::Relaxed);
                set.compare_exchange(end, 0, order, order).is_ok()
            }
        }
    }

    /// Registers the calling thread as staying at `place`, until it [leaves](Self::leave). Returns
    /// whether it may stay; otherwise it must leave at once.
    #[must_use]
    pub fn enter(&self, stayer: &Arc<AffineThread>, place: P) -> bool {
        stayer.state.store(BUSY, Ordering::Release);
        self.stayers.lock().push((place, Arc::clone(stayer)));
        self.staying.fetch_add(1, Ordering::AcqRel);
        // From here on it is called if that is necessary.
        self.at_set.fetch_add(0, Ordering::AcqRel) > 0
    }

    /// Ends the stay of the calling thread after `served` items. Returns whether it was called.
    pub fn leave(&self, stayer: &Arc<AffineThread>, served: u32) -> bool {
        let mut stayers = self.stayers.lock();
        stayers.retain(|(_, other)| !Arc::ptr_eq(other, stayer));
        drop(stayers);
        self.staying.fetch_sub(1, Ordering::AcqRel);
        if served >= WORTH {
            let least = nanos(LEAST_PAUSE);
            self.next_pause.store(least, Ordering::Relaxed);
        }
        // The list does not contain it any more.
        stayer.state.swap(BUSY, Ordering::AcqRel) == CALLED
    }

    /// Calls one thread back to the set: a waiting one, or else all busy ones, of which the first
    /// to finish goes. A waiting thread has to be woken: `wake` gets its place and its thread id.
    /// From `now` on there is a [pause](Self::is_time).
    #[cold]
    pub fn call_one(&self, now: Monotonic, wake: impl Fn(&P, u32)) {
        let pause = self.next_pause.load(Ordering::Relaxed);
        let end = now.as_nanos().saturating_add(pause);
        self.not_before.store(end, Ordering::Relaxed);
        let longer = pause.saturating_mul(2).min(nanos(GREATEST_PAUSE));
        self.next_pause.store(longer, Ordering::Relaxed);
        let stayers = self.stayers.lock();
        if !stayers.iter().any(|stayer| call(stayer, false, &wake)) {
            // It is unknown which of them finishes first, and that one must not wait elsewhere.
            for stayer in &*stayers {
                call(stayer, true, &wake);
            }
        }
    }

    /// Calls the threads that stay at sources of which `is_called` is true.
    pub fn call_from(&self, is_called: impl Fn(&P) -> bool, wake: impl Fn(&P, u32)) {
        let stayers = self.stayers.lock();
        for stayer in stayers.iter().filter(|(at, _)| is_called(at)) {
            call(stayer, true, &wake);
        }
    }

    /// Calls all that stay.
    pub fn call_all(&self, wake: impl Fn(&P, u32)) {
        for stayer in &*self.stayers.lock() {
            call(stayer, true, &wake);
        }
    }
}

/// Calls a waiting thread, or a busy one if permitted. Returns whether it did.
fn call<P>(
    (place, stayer): &(P, Arc<AffineThread>),
    even_if_busy: bool,
    wake: &impl Fn(&P, u32),
) -> bool {
    loop {
        if stayer.becomes(WAITING, CALLED) {
            wake(place, stayer.tid);
            return true;
        }
        if even_if_busy && stayer.becomes(BUSY, CALLED) {
            return true;
        }
        // The thread may have begun to wait in between.
        if !even_if_busy || stayer.is_called() {
            return false;
        }
    }
}

impl AffineThread {
    /// Makes the state of the thread `tid`.
    #[must_use]
    pub fn new(tid: u32) -> Self {
        Self {
            tid,
            state: AtomicU32::new(BUSY),
        }
    }

    /// Marks the thread as waiting at its place. Returns whether it may wait; otherwise it was
    /// called.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.becomes(BUSY, WAITING)
    }

    /// Marks the thread as working. It may have been called.
    pub fn has_waited(&self) {
        let _ = self.becomes(WAITING, BUSY);
    }

    /// Whether the thread must leave.
    #[inline]
    pub fn is_called(&self) -> bool {
        self.state.load(Ordering::Acquire) == CALLED
    }

    #[inline]
    fn becomes(&self, from: u32, to: u32) -> bool {
        let state = &self.state;
        let became = state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        became.is_ok()
    }
}

/// Returns the length of a pause in nanoseconds, which is far below the greatest number.
const fn nanos(pause: Duration) -> u64 {
    pause.as_nanos() as u64
}

/// The first pause after a call: the time of about a hundred calls.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
const GREATEST_PAUSE: Duration = Duration::from_millis(64);
/// The number of items in one stay that made it worthwhile.
const WORTH: u32 = 1024;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const START: Monotonic = Monotonic::from_nanos(1 << 40);

    #[test]
    fn a_call_begins_a_pause_that_time_ends_and_not_events() {
        let stays = SourceAffinity::<u32>::new();
        assert!(!stays.is_time(|| START), "no thread is at the set");
        stays.come();
        assert!(stays.is_time(|| panic!("there is no pause")));
        for pause_ms in [1, 2, 4, 8, 16, 32, 64, 64] {
            stays.call_one(START, |_, _| ());
            let pause = Duration::from_millis(pause_ms);
            let last = START + (pause - Duration::from_nanos(1));
            assert!((0..10_000).all(|_| !stays.is_time(|| last)));
            assert!(stays.is_time(|| START + pause));
            assert!(stays.is_time(|| panic!("the pause is over")));
        }
        let stayer = Arc::new(AffineThread::new(1));
        assert!(stays.enter(&stayer, 1));
        stays.leave(&stayer, WORTH);
        stays.call_one(START, |_, _| ());
        assert!(
            stays.is_time(|| START + LEAST_PAUSE),
            "a long stay was worthwhile"
        );
    }

    /// Makes threads 1, 2 and 3, which stay at places of these numbers and are busy.
    fn three_that_stay() -> (SourceAffinity<u32>, [Arc<AffineThread>; 3]) {
        let stays = SourceAffinity::new();
        stays.come();
        let stayers = [1, 2, 3].map(|tid| {
            let stayer = Arc::new(AffineThread::new(tid));
            assert!(stays.enter(&stayer, tid));
            stayer
        });
        (stays, stayers)
    }

    #[test]
    fn one_that_waits_is_called_before_those_that_are_busy() {
        let (stays, [first, second, third]) = three_that_stay();
        assert!(second.waits());
        let woken = RefCell::new(Vec::new());
        stays.call_one(START, |&place, tid| woken.borrow_mut().push((place, tid)));
        assert_eq!(*woken.borrow(), [(2, 2)]);
        assert!(!first.is_called() && second.is_called() && !third.is_called());
    }

    #[test]
    fn of_those_that_are_busy_whoever_has_done_first_comes() {
        let (stays, [first, second, third]) = three_that_stay();
        stays.call_one(START, |_, tid| panic!("{tid} does not wait"));
        // The first and the second are still at work.
        assert!(!third.waits(), "it goes back to the set");
        assert!(first.is_called() && second.is_called());
    }

    #[test]
    fn whoever_stays_at_a_place_is_called_from_there() {
        let (stays, [first, second, third]) = three_that_stay();
        assert!(second.waits());
        let woken = RefCell::new(Vec::new());
        stays.call_from(|at| *at == 2, |_, tid| woken.borrow_mut().push(tid));
        stays.call_from(|at| *at == 3, |_, tid| woken.borrow_mut().push(tid));
        assert_eq!(
            *woken.borrow(),
            [2],
            "the other one finds out when it has done"
        );
        assert!(!first.is_called() && second.is_called() && third.is_called());
    }
}
