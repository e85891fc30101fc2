//! Growth of a Leader/Followers lane: a thread starts when the last one leaves the reactor, and
//! ends when it has been idle there.
//!
//! So each busy connection gets a thread that may stay with it, and a slow servant delays no other
//! request, within the bound of the lane.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The dynamic threads of a lane.
#[derive(Debug)]
pub(super) struct Growth {
    /// The greatest number of dynamic threads.
    most: u32,
    /// The number of threads beyond the static ones.
    threads: AtomicU32,
    /// Set while a started thread has not come to the reactor.
    starting: AtomicBool,
    pub(super) idle_timeout: Duration,
    /// The time of the next check for threads that stay with idle connections, in nanoseconds.
    pub(super) next_look: AtomicU64,
    /// The tick of the lane at the last such check.
    pub(super) mark: AtomicU32,
}

/// The answer to a thread that leaves the reactor empty.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum GrowthStep {
    /// The caller starts a thread, and [gives up](Growth::give_up) the step if that fails.
    Start,
    /// A thread is on its way to the reactor.
    UnderWay,
    /// The lane has all its threads.
    AtBound,
}

impl Growth {
    /// Returns the growth by at most `most` threads, each of which ends after `idle_timeout`
    /// without work.
    pub(super) fn new(most: u32, idle_timeout: Duration) -> Self {
        Self {
            most,
            threads: AtomicU32::new(0),
            starting: AtomicBool::new(false),
            idle_timeout,
            next_look: AtomicU64::new(0),
            mark: AtomicU32::new(0),
        }
    }

    /// The number of threads beyond the static ones.
    pub(super) fn threads(&self) -> u32 {
        self.threads.load(Ordering::Relaxed)
    }

    /// Takes the next step of growth, for a thread that has left the reactor empty.
    pub(super) fn step(&self) -> GrowthStep {
        if self.starting.swap(true, Ordering::AcqRel) {
            return GrowthStep::UnderWay;
        }
        let more = |threads: u32| (threads < self.most).then_some(threads + 1);
        let claimed = self
            .threads
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
        if claimed.is_ok() {
            GrowthStep::Start
        } else {
            self.starting.store(false, Ordering::Release);
            GrowthStep::AtBound
        }
    }

    /// Takes back a step whose thread could not be started.
    pub(super) fn give_up(&self) {
        self.threads.fetch_sub(1, Ordering::AcqRel);
        self.starting.store(false, Ordering::Release);
    }

    /// Notes that a thread comes to the reactor for the first time.
    pub(super) fn arrive(&self) {
        self.starting.store(false, Ordering::Release);
    }

    /// The time after which an idle thread ends; `None` while there are static threads only.
    #[inline]
    pub(super) fn patience(&self) -> Option<Duration> {
        (self.threads() > 0).then_some(self.idle_timeout)
    }

    /// Whether the calling thread ends, as one thread too many. Which one it is does not matter.
    pub(super) fn shrink(&self) -> bool {
        let fewer = |threads: u32| threads.checked_sub(1);
        self.threads
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, fewer)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_starts_at_a_time_up_to_the_bound() {
        let growth = Growth::new(2, Duration::from_secs(1));
        assert_eq!(growth.patience(), None);
        assert_eq!(growth.step(), GrowthStep::Start);
        assert_eq!(growth.step(), GrowthStep::UnderWay);
        growth.arrive();
        assert_eq!(growth.step(), GrowthStep::Start);
        growth.arrive();
        assert_eq!(growth.step(), GrowthStep::AtBound);
        assert_eq!(growth.step(), GrowthStep::AtBound, "it is not under way");
    }

    #[test]
    fn a_thread_that_could_not_start_is_tried_again() {
        let growth = Growth::new(1, Duration::from_secs(1));
        assert_eq!(growth.step(), GrowthStep::Start);
        growth.give_up();
        assert_eq!(growth.patience(), None);
        assert_eq!(growth.step(), GrowthStep::Start);
    }

    #[test]
    fn as_many_threads_end_as_have_started() {
        let growth = Growth::new(2, Duration::from_secs(1));
        for _ in 0..2 {
            assert_eq!(growth.step(), GrowthStep::Start);
            growth.arrive();
        }
        assert!(growth.shrink());
        assert_eq!(growth.patience(), Some(Duration::from_secs(1)));
        assert!(growth.shrink());
        assert!(!growth.shrink(), "the static threads stay");
        assert_eq!(growth.patience(), None);
    }
}
