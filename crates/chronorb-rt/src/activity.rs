//! What threads spend their processor time on.

use core::cell::Cell;
use core::ops::{Add, Sub};
use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use rustix::time::{ClockId, clock_gettime};

use crate::tally;

/// What a thread spends processor time on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Activity {
    /// Whatever is not said to be something else.
    Other,
    /// Input and output, and waiting for it in the kernel: on the way into a wait and out of it, a thread works too.
    InputOutput,
    /// Locks, waiting for other threads, and waking them.
    Synchronisation,
    /// What the application does, as far as it says so itself.
    Application,
}

/// The processor time of threads by [`Activity`], in nanoseconds.
///
/// What it costs to look at the clock is found out beforehand and taken off each time, so that next to nothing may
/// come out as less than nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ActivityTimes {
    /// For [`Activity::Other`].
    pub other: i64,
    /// For [`Activity::InputOutput`].
    pub input_output: i64,
    /// For [`Activity::Synchronisation`].
    pub synchronisation: i64,
    /// For [`Activity::Application`].
    pub application: i64,
}

/// Tells what the calling thread does until the result is dropped, and it does again what it did before.
///
/// This crate says so of its locks and wake-ups, transports of their input and output. It is a look at a flag unless
/// somebody [wants to know](keep_activity_times); then it is a system call on each end, for the clock of the thread.
#[inline]
pub fn doing(activity: Activity) -> Doing {
    let before = match KEPT.load(Ordering::Relaxed) {
        true => turn_to(activity),
        false => None,
    };
    Doing { before }
}

/// A thread does something; see [`doing`].
#[derive(Debug)]
#[must_use = "the thread is done with it when this is dropped"]
pub struct Doing {
    /// What it did before, where that was something else and somebody wants to know.
    before: Option<Activity>,
}

impl Drop for Doing {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            turn_to(before);
        }
    }
}

/// Keeps times from now on, of all threads of the process, to be found in
/// [`ThreadCounts`](crate::ThreadCounts). For measurements: it makes everything slower that threads do.
pub fn keep_activity_times() {
    let looks: [i64; LOOKS] = core::array::from_fn(|_| processor_time());
    let mut costs: [i64; LOOKS - 1] = core::array::from_fn(|n| looks[n + 1] - looks[n]);
    costs.sort_unstable();
    COST.store(costs[costs.len() / 2], Ordering::Relaxed);
    KEPT.store(true, Ordering::Relaxed);
}

/// Books what the calling thread has done since it last turned to something.
pub(crate) fn settle() {
    if KEPT.load(Ordering::Relaxed) {
        book(PRESENT.get());
    }
}

/// Books what the calling thread did, and turns to something else. Returns what it did, if that is not the same.
#[cold]
fn turn_to(activity: Activity) -> Option<Activity> {
    let before = PRESENT.replace(activity);
    if before == activity {
        return None;
    }
    book(before);
    Some(before)
}

fn book(activity: Activity) {
    let now = processor_time();
    let spent = now - SINCE.replace(now) - COST.load(Ordering::Relaxed);
    tally::spent(activity, spent);
}

/// The processor time of the calling thread.
fn processor_time() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

impl ActivityTimes {
    /// All of it.
    #[must_use]
    pub const fn total(&self) -> i64 {
        self.other + self.input_output + self.synchronisation + self.application
    }

    fn zip(self, other: Self, of: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            other: of(self.other, other.other),
            input_output: of(self.input_output, other.input_output),
            synchronisation: of(self.synchronisation, other.synchronisation),
            application: of(self.application, other.application),
        }
    }
}

impl Add for ActivityTimes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, Add::add)
    }
}

impl Sub for ActivityTimes {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.zip(other, Sub::sub)
    }
}

static KEPT: AtomicBool = AtomicBool::new(false);
/// What a look at the clock costs, in nanoseconds.
static COST: AtomicI64 = AtomicI64::new(0);
/// Enough that the middle one was not disturbed.
const LOOKS: usize = 1001;

thread_local! {
    static PRESENT: Cell<Activity> = const { Cell::new(Activity::Other) };
    /// The thread's processor time when it was last booked: all time before is for nothing else.
    static SINCE: Cell<i64> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PiMutex, ThreadCounts};

    fn times() -> ActivityTimes {
        ThreadCounts::of_this_thread().times
    }

    /// Works until the time for something has grown by so many nanoseconds.
    fn work_until(grown: i64, of: fn(&ActivityTimes) -> i64) {
        let before = of(&times());
        while of(&times()) - before < grown {}
    }

    #[test]
    fn time_is_booked_for_what_a_thread_does() {
        drop(doing(Activity::Application));
        assert_eq!(times(), ActivityTimes::default(), "nobody wants to know");

        keep_activity_times();
        let application = doing(Activity::Application);
        work_until(50_000, |times| times.application);
        let before = times();
        let same = doing(Activity::Application);
        let inner = doing(Activity::InputOutput);
        work_until(50_000, |times| times.input_output);
        drop(inner);
        drop(same);
        work_until(50_000, |times| times.application);
        drop(application);
        let since = times() - before;
        assert!(
            since.input_output >= 50_000 && since.application >= 50_000,
            "{since:?}"
        );
        work_until(50_000, |times| times.other);

        let mutex = PiMutex::new(());
        let before = times();
        while times().synchronisation <= before.synchronisation {
            drop(mutex.lock());
        }
        assert_eq!(times().input_output, before.input_output);
        let total =
            before.other + before.input_output + before.synchronisation + before.application;
        assert_eq!(before.total(), total);
    }
}
