//! What threads spend their processor time on.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::{Add, Sub};
use core::sync::atomic::{AtomicU8, Ordering};

use rustix::time::{ClockId, clock_gettime};

use crate::mem::tally;
use crate::stamp;

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
    /// Nothing at all. What it takes is what it costs to tell activities apart; whoever measures does nothing now and
    /// then among other things, to find that out.
    Nothing,
}

/// The processor time of threads by [`Activity`], and how often they turned to each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ActivityTimes {
    /// In nanoseconds, in the order of [`Activity::ALL`]. To look at the clock at one end of each is part of it.
    pub nanoseconds: [u64; ACTIVITIES],
    /// How many times they are of.
    pub intervals: [u64; ACTIVITIES],
}

/// Tells what the calling thread does until the result is dropped, and it does again what it did before.
///
/// This crate says so of its locks and wake-ups, transports of their input and output. It is a look at a flag unless
/// somebody [wants to know](keep_activity_times), and then it is a system call on each end, for the clock of the thread; or
/// wants [stamps](crate::keep_stamps), which are put down for input and output alone.
#[inline]
pub fn doing(activity: Activity) -> Doing {
    let before = match KEPT.load(Ordering::Relaxed) {
        0 => None,
        _ => turn_to(activity),
    };
    Doing {
        before,
        of_thread: PhantomData,
    }
}

/// A thread does something; see [`doing`].
#[derive(Debug)]
#[must_use = "the thread is done with it when this is dropped"]
pub struct Doing {
    /// What it did before, where that was something else and somebody wants to know.
    before: Option<Activity>,
    /// It is of this thread, and of no other.
    of_thread: PhantomData<*const ()>,
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
    KEPT.fetch_or(TIMES, Ordering::Relaxed);
}

/// Puts a stamp down from now on wherever a thread turns to input and output, or from there to something else.
pub(crate) fn stamp_turns() {
    KEPT.fetch_or(STAMPS, Ordering::Relaxed);
}

/// Books what the calling thread has done since it last turned to something.
pub(crate) fn settle() {
    if KEPT.load(Ordering::Relaxed) & TIMES != 0 {
        book(PRESENT.get());
    }
}

/// Books or stamps it that the calling thread turns to something else. Returns what it did, if that is not the same.
#[cold]
fn turn_to(activity: Activity) -> Option<Activity> {
    let before = PRESENT.replace(activity);
    if before == activity {
        return None;
    }
    let kept = KEPT.load(Ordering::Relaxed);
    if kept & TIMES != 0 {
        book(before);
    }
    // Locks are so many, and so short, that their stamps would be most of what is measured.
    let is_of_kernel = [before, activity].contains(&Activity::InputOutput);
    if kept & STAMPS != 0 && is_of_kernel {
        stamp::turned_to(activity);
    }
    Some(before)
}

fn book(activity: Activity) {
    let now = processor_time();
    // A signal handler that wakes somebody may have booked since the clock was read.
    tally::spent(activity, now.saturating_sub(SINCE.replace(now)));
}

/// The processor time of the calling thread, in nanoseconds.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // It is never negative, and 64 bits of nanoseconds are 584 years.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Activity {
    /// All of them.
    pub const ALL: [Self; ACTIVITIES] = [
        Self::Other,
        Self::InputOutput,
        Self::Synchronisation,
        Self::Application,
        Self::Nothing,
    ];
}

impl ActivityTimes {
    /// What was spent on an activity, in nanoseconds, without what it cost to look at the clock: as long as
    /// [`Activity::Nothing`] took on the average.
    #[must_use]
    pub fn net(&self, activity: Activity) -> f64 {
        let at = activity as usize;
        self.nanoseconds[at] as f64 - self.intervals[at] as f64 * self.look()
    }

    /// What it cost to look at the clock once, in nanoseconds, with all that it disturbs; 0 where it is not known,
    /// since nobody did nothing.
    #[must_use]
    pub fn look(&self) -> f64 {
        let nothing = Activity::Nothing as usize;
        self.nanoseconds[nothing] as f64 / self.intervals[nothing].max(1) as f64
    }

    fn zip(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let each = |mine: [u64; ACTIVITIES], others: [u64; ACTIVITIES]| {
            core::array::from_fn(|at| of(mine[at], others[at]))
        };
        Self {
            nanoseconds: each(self.nanoseconds, other.nanoseconds),
            intervals: each(self.intervals, other.intervals),
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

    fn sub(self, before: Self) -> Self {
        self.zip(before, Sub::sub)
    }
}

/// How many there are.
pub(crate) const ACTIVITIES: usize = 5;

/// [`TIMES`], [`STAMPS`], both, or neither.
static KEPT: AtomicU8 = AtomicU8::new(0);
const TIMES: u8 = 1;
const STAMPS: u8 = 2;

thread_local! {
    static PRESENT: Cell<Activity> = const { Cell::new(Activity::Other) };
    /// The thread's processor time when it was last booked: all time before is for nothing else.
    static SINCE: Cell<u64> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PiMutex, ThreadCounts};

    fn times() -> ActivityTimes {
        ThreadCounts::of_this_thread().times
    }

    fn spent_on(activity: Activity) -> u64 {
        times().nanoseconds[activity as usize]
    }

    /// Works until the time for an activity has grown by so many nanoseconds.
    fn work_until(grown: u64, activity: Activity) {
        let before = spent_on(activity);
        while spent_on(activity) - before < grown {}
    }

    #[test]
    fn time_is_booked_for_what_a_thread_does() {
        drop(doing(Activity::Application));
        assert_eq!(times(), ActivityTimes::default(), "nobody wants to know");

        keep_activity_times();
        let application = doing(Activity::Application);
        let before = times();
        let same = doing(Activity::Application);
        let inner = doing(Activity::InputOutput);
        work_until(50_000, Activity::InputOutput);
        drop(inner);
        drop(same);
        work_until(50_000, Activity::Application);
        drop(application);
        let since = times() - before;
        assert_eq!(since.nanoseconds[Activity::Synchronisation as usize], 0);
        work_until(50_000, Activity::Other);

        let mutex = PiMutex::new(());
        let before = spent_on(Activity::Synchronisation);
        while spent_on(Activity::Synchronisation) == before {
            drop(mutex.lock());
        }
        let intervals = times().intervals[Activity::Synchronisation as usize];
        assert!(intervals >= 2, "to lock, and to unlock");
    }

    #[test]
    fn what_a_signal_handler_has_booked_meanwhile_is_booked_once() {
        let before = spent_on(Activity::Nothing);
        SINCE.set(u64::MAX);
        book(Activity::Nothing);
        assert_eq!(spent_on(Activity::Nothing), before);
    }

    #[test]
    fn what_a_look_costs_is_what_nothing_takes() {
        let times = ActivityTimes {
            nanoseconds: [5000, 0, 900, 600, 2000],
            intervals: [10, 0, 3, 2, 10],
        };
        let net = [
            Activity::Other,
            Activity::InputOutput,
            Activity::Synchronisation,
            Activity::Application,
        ];
        assert_eq!(
            net.map(|activity| times.net(activity)),
            [3000.0, 0.0, 300.0, 200.0]
        );
        assert_eq!(ActivityTimes::default().look(), 0.0);
    }
}
