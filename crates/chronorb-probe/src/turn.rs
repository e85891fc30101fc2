//! The activity of the calling thread.

use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU8, Ordering};

use chronorb_rt::{SyncObserver, ThreadCounts, observe_synchronisation};
use rustix::time::{ClockId, clock_gettime};

use crate::activity::{self, Activity};
use crate::stamp_ring;

/// Declares the activity of the calling thread until the result is dropped, which restores the
/// previous one.
///
/// Transports call it for their input and output. Locks and wake-ups of `chronorb-rt` count as
/// [`Activity::Synchronisation`]. It reads one flag, unless [times](keep_activity_times) or
/// [stamps](crate::keep_stamps) are kept: a time is a system call at each end, for the clock of the
/// thread, and a stamp is put down for input and output alone.
#[inline]
pub fn doing(activity: Activity) -> ActivityGuard {
    let before = match KEPT.load(Ordering::Relaxed) {
        0 => None,
        _ => turn_to(activity),
    };
    ActivityGuard {
        before,
        of_thread: PhantomData,
    }
}

/// A thread does something; see [`doing`].
#[derive(Debug)]
#[must_use = "the thread is done with it when this is dropped"]
pub struct ActivityGuard {
    /// The previous activity, if it was another one and activities are recorded.
    before: Option<Activity>,
    /// Binds the value to its thread.
    of_thread: PhantomData<*const ()>,
}

impl Drop for ActivityGuard {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            turn_to(before);
        }
    }
}

/// Keeps times from now on, of all threads of the process, as the [`ActivityTimes`] of their
/// [`ThreadCounts`]. For measurements: it makes everything slower that threads do.
///
/// The times of another thread are complete up to its last change of activity; those of the calling
/// thread are in [`counts_of_this_thread`].
///
/// [`ActivityTimes`]: crate::ActivityTimes
pub fn keep_activity_times() {
    keep(TIMES);
}

/// Returns the counts of the calling thread, with its present activity counted up to now.
#[must_use]
pub fn counts_of_this_thread() -> ThreadCounts {
    settle();
    ThreadCounts::of_this_thread()
}

/// Puts a stamp down from now on wherever a thread turns to input and output, or from there to
/// something else.
pub(crate) fn stamp_turns() {
    keep(STAMPS);
}

fn keep(what: u8) {
    KEPT.fetch_or(what, Ordering::Relaxed);
    observe_synchronisation(SyncObserver {
        begin: || turn_to(Activity::Synchronisation).map(|before| before as u8),
        end: |before| {
            turn_to(Activity::ALL[usize::from(before)]);
        },
    });
}

/// Accounts the time since the calling thread last changed its activity.
fn settle() {
    if KEPT.load(Ordering::Relaxed) & TIMES != 0 {
        book(PRESENT.get());
    }
}

/// Accounts or stamps a change of activity of the calling thread. Returns the previous activity, if
/// it differs.
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
    // Locks are so many, and so short, that their stamps would dominate the measurement.
    let is_of_kernel = [before, activity].contains(&Activity::InputOutput);
    if kept & STAMPS != 0 && is_of_kernel {
        stamp_ring::turned_to(activity);
    }
    Some(before)
}

fn book(activity: Activity) {
    let now = processor_time();
    // A signal handler that sends a wake-up may have accounted time since the clock was read.
    activity::spent(activity, now.saturating_sub(SINCE.replace(now)));
}

/// The processor time of the calling thread, in nanoseconds.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // It is never negative, and 64 bits of nanoseconds are 584 years.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

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
    use crate::ActivityTimes;
    use chronorb_rt::PiMutex;

    fn times() -> ActivityTimes {
        counts_of_this_thread().into()
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
        assert_eq!(
            times(),
            ActivityTimes::default(),
            "activities are not recorded"
        );

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
}
