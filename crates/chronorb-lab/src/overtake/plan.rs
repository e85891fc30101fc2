//! The durations and sizes of a run.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The durations and sizes of a run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OvertakePlan {
    /// The number of times that every case is measured.
    pub rounds: u32,
    /// The duration of calls at fixed times, in each case of each round.
    pub periodic: Duration,
    /// The time from one of these calls to the next.
    pub period: Duration,
    /// The duration of calls back to back.
    ///
    /// They leave real-time threads little rest: with more than half a second of them in a second,
    /// and the middle lane's work, the kernel's real-time throttling would stop them all.
    pub back_to_back: Duration,
    /// The time from the start of the load to the first call.
    pub settle: Duration,
    /// The computing time of a measured call.
    pub high_work: Duration,
    /// The threads of the low lane, and of the middle lane; there is one for the high lane.
    pub lower_threads: u32,
    /// The time for which the work of the middle lane computes without a rest.
    pub middle_compute: Duration,
    /// The rest that follows. Without it the middle lane would take all the time that the kernel
    /// grants real-time threads, and be stopped, with the high lane, for the rest of each second.
    pub middle_rest: Duration,
    /// The callers that exhaust the high lane.
    pub slow_callers: u32,
    /// The time for which each of their calls occupies a thread.
    pub slow_work: Duration,
}

impl OvertakePlan {
    /// All cases, in some minutes.
    #[must_use]
    pub fn full() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            rounds: 5,
            periodic: Duration::from_secs(2),
            period: Duration::from_millis(10),
            back_to_back: Duration::from_millis(500),
            settle: Duration::from_millis(200),
            high_work: Duration::from_micros(20),
            lower_threads: u32::try_from(processors).unwrap_or(2).clamp(2, 64),
            middle_compute: Duration::from_millis(4),
            middle_rest: Duration::from_millis(1),
            slow_callers: 3,
            slow_work: Duration::from_millis(2),
        }
    }

    /// The same cases in some seconds: one round, and few calls of each kind.
    #[must_use]
    pub fn short() -> Self {
        Self {
            rounds: 1,
            periodic: Duration::from_millis(300),
            back_to_back: Duration::from_millis(50),
            settle: Duration::from_millis(50),
            ..Self::full()
        }
    }

    /// The least that runs every case, for tests; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            periodic: Duration::from_millis(30),
            back_to_back: Duration::from_millis(10),
            settle: Duration::from_millis(20),
            ..Self::short()
        }
    }

    /// Returns the number of threads of a pool.
    pub(super) const fn threads(&self) -> u32 {
        2 * self.lower_threads + HIGH_THREADS
    }

    /// Returns the number of callers that saturate each of the lower lanes.
    pub(super) const fn saturating_callers(&self) -> u32 {
        4 * self.lower_threads
    }

    /// Returns the number of requests that a lane of the pool with request buffering keeps.
    pub(super) const fn buffered(&self) -> u32 {
        self.lower_threads
    }

    /// Returns the longest work that a call finds before it in an exhausted high lane.
    pub(super) fn work_before(&self) -> Duration {
        self.slow_work * self.slow_callers / HIGH_THREADS
    }

    /// Returns the approximate duration of a case.
    pub(super) fn case_length(&self) -> Duration {
        self.periodic + self.back_to_back + (self.settle + AROUND) * 2
    }
}

/// The threads of the high lane.
pub(super) const HIGH_THREADS: u32 = 1;
/// The approximate time before and after a series of calls.
const AROUND: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_due_only_after_the_work_that_may_be_before_the_last_one() {
        for plan in [
            OvertakePlan::full(),
            OvertakePlan::short(),
            OvertakePlan::tiny(),
        ] {
            assert!(plan.work_before() < plan.period);
            assert!(plan.threads() > plan.slow_callers, "one is left to borrow");
        }
    }
}
