//! Activities of one thread that other threads find and cancel, with the waits that this ends.
//!
//! One word has the number of the activity, whether it is cancelled, and whether its thread waits.
//! The owner and a canceller change it by read-modify-write operations, so each of them sees what
//! the other has done before: either the owner sees the cancellation before it waits, or the
//! canceller sees the wait and interrupts it.

use core::fmt;

use crate::sync::primitives::Mutex;
use crate::sync::primitives::atomic::{AtomicU64, Ordering};

/// A place for one activity after the other, each with a name of three words. `W` interrupts a
/// wait.
///
/// The thread that owns the place begins and ends activities. Any thread finds the present one and
/// cancels it. To begin and to end an activity is some stores, and to find out whether it is
/// cancelled is one load.
pub struct Cancellable<W> {
    /// The number of the last activity, above the [`FLAGS`].
    state: AtomicU64,
    name: [AtomicU64; 3],
    /// Locked by a canceller from before it cancels until it has interrupted.
    wait: Mutex<Option<W>>,
}

/// The number of an activity of a [`Cancellable`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Activity(u64);

/// The activity is cancelled.
const CANCELLED: u64 = 1;
/// The owner waits, and may be interrupted.
const WAITING: u64 = 2;
/// The activity has not ended.
const PRESENT: u64 = 4;
const FLAGS: u64 = CANCELLED | WAITING | PRESENT;

impl Activity {
    /// Whether the state is that of this activity, and it has not ended.
    fn is_in(self, state: u64) -> bool {
        state & !(CANCELLED | WAITING) == self.0
    }
}

impl<W> Cancellable<W> {
    /// Makes a place without an activity.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it is no value to begin with")]
    pub fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            name: [0; 3].map(AtomicU64::new),
            wait: Mutex::new(None),
        }
    }

    /// Begins an activity with this name. Only the owner may do so, while there is none, and with a
    /// number above that of the activity before.
    pub fn begin(&self, number: u64, name: [u64; 3]) -> Activity {
        for (place, word) in self.name.iter().zip(name) {
            // A reader of one of these sees the end of the activity before.
            place.store(word, Ordering::Release);
        }
        let state = (number * (FLAGS + 1)) | PRESENT;
        self.set(state);
        Activity(state)
    }

    /// Ends the activity. Only the owner may do so.
    pub fn end(&self, activity: Activity) {
        // A canceller that is late changes nothing.
        self.set(activity.0 & !PRESENT);
    }

    /// Sets the state. No read-modify-write operation of a canceller comes after it that has not
    /// read it.
    fn set(&self, state: u64) {
        #[cfg(not(loom))]
        self.state.store(state, Ordering::Release);
        // The model checker lets such an operation come after a store that it has not read.
        #[cfg(loom)]
        self.state.swap(state, Ordering::Release);
    }

    /// Returns the present activity if it has this name.
    pub fn find(&self, name: [u64; 3]) -> Option<Activity> {
        let state = self.state.load(Ordering::Acquire);
        let activity = Activity(state & !(CANCELLED | WAITING));
        let words = self.name.iter().zip(name);
        let has_name = words.fold(true, |has, (place, word)| {
            has & (place.load(Ordering::Acquire) == word)
        });
        // The name is that of the activity if it is still the same.
        let is_stable = activity.is_in(self.state.load(Ordering::Acquire));
        (state & PRESENT != 0 && has_name && is_stable).then_some(activity)
    }

    /// Whether this activity is cancelled.
    #[inline]
    pub fn is_cancelled(&self, activity: Activity) -> bool {
        let state = self.state.load(Ordering::Acquire);
        activity.is_in(state) && state & CANCELLED != 0
    }

    /// Cancels the present activity. Only the owner may do so, while it does not wait.
    pub fn mark(&self) {
        self.state.fetch_or(CANCELLED, Ordering::AcqRel);
    }

    /// Cancels an activity. If its thread waits, calls `interrupt`. Returns `false` if the activity
    /// has ended, or was cancelled before.
    pub fn cancel(&self, activity: Activity, interrupt: impl FnOnce(&W)) -> bool {
        let wait = self.wait.lock();
        let mut state = activity.0;
        loop {
            let cancelled = state | CANCELLED;
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match self
                .state
                .compare_exchange(state, cancelled, success, failure)
            {
                Ok(_) => break,
                Err(other) if activity.is_in(other) && other & CANCELLED == 0 => state = other,
                Err(_) => return false,
            }
        }
        if state & WAITING != 0
            && let Some(wait) = &*wait
        {
            interrupt(wait);
        }
        true
    }

    /// Sets what interrupts the waits of the owner. Only the owner may do so, while it does not
    /// wait.
    pub fn set_wait(&self, wait: W) {
        *self.wait.lock() = Some(wait);
    }

    /// Begins a wait, which a cancellation interrupts from now on. Returns `false` if the activity
    /// is cancelled already: nothing interrupts the wait then. Only the owner may call this.
    #[inline]
    #[must_use = "a cancelled activity must not wait"]
    pub fn begin_wait(&self) -> bool {
        self.state.fetch_or(WAITING, Ordering::AcqRel) & CANCELLED == 0
    }

    /// Ends a wait: nothing is interrupted from now on. Only the owner may call this.
    #[inline]
    pub fn end_wait(&self) {
        let state = self.state.fetch_and(!WAITING, Ordering::AcqRel);
        if state & CANCELLED != 0 {
            // The canceller has the lock until it has interrupted.
            drop(self.wait.lock());
        }
    }
}

impl<W> fmt::Debug for Cancellable<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Ordering::Relaxed);
        f.debug_struct("Cancellable")
            .field("number", &(state / (FLAGS + 1)))
            .field("is_present", &(state & PRESENT != 0))
            .field("is_cancelled", &(state & CANCELLED != 0))
            .field("is_waiting", &(state & WAITING != 0))
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;

    #[test]
    fn a_cancellation_belongs_to_one_activity() {
        let place = Cancellable::<()>::new();
        assert_eq!(place.find([0; 3]), None, "there is none yet");
        let first = place.begin(1, [1, 2, 3]);
        assert_eq!(place.find([1, 2, 3]), Some(first));
        assert_eq!(place.find([1, 2, 4]), None);
        assert!(place.cancel(first, |()| panic!("it does not wait")));
        assert!(place.is_cancelled(first));
        assert_eq!(place.find([1, 2, 3]), Some(first), "it has not ended");
        assert!(!place.cancel(first, |()| ()), "it was cancelled before");
        place.end(first);
        assert_eq!(place.find([1, 2, 3]), None);
        assert!(!place.cancel(first, |()| ()));
        let second = place.begin(2, [1, 2, 3]);
        assert!(!place.is_cancelled(second) && !place.is_cancelled(first));
        assert!(!place.cancel(first, |()| ()), "it has ended");
        place.mark();
        assert!(place.is_cancelled(second));
    }

    #[test]
    fn only_a_wait_is_interrupted() {
        let place = Cancellable::new();
        let interrupted = Cell::new(0);
        let interrupt = |by: &i32| interrupted.set(interrupted.get() + by);
        place.set_wait(10);
        let first = place.begin(1, [1; 3]);
        assert!(place.begin_wait());
        place.end_wait();
        assert!(place.cancel(first, interrupt));
        assert_eq!(interrupted.get(), 0, "the wait has ended");
        assert!(!place.begin_wait(), "it is cancelled");
        place.end_wait();
        place.end(first);
        let second = place.begin(2, [1; 3]);
        assert!(place.begin_wait());
        assert!(place.cancel(second, interrupt));
        assert_eq!(interrupted.get(), 10);
        place.end_wait();
    }
}
