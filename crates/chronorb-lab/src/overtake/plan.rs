//! What is run, and for how long.

use std::thread;
use std::time::Duration;

use chronorb_rt::Monotonic;
use serde::{Deserialize, Serialize};

use super::case::Load;
use crate::schedule::Window;

/// What is run, and for how long.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// How many times every case is measured, one after the other.
    pub rounds: u32,
    /// How long calls are made at fixed times, in each case of each round.
    pub periodic: Duration,
    /// The time from one of these to the next.
    pub period: Duration,
    /// How long calls are made back to back.
    ///
    /// They leave real-time threads little rest: with more than half a second of them in a second,
    /// and the middle lane's work, the kernel's real-time throttling would stop them all.
    pub back_to_back: Duration,
    /// How long the load is on before the first call.
    pub settle: Duration,
    /// What a call of the measuring client computes.
    pub high_work: Duration,
    /// The threads of the low lane, and of the middle lane; there is one for the high lane.
    pub lower_threads: u32,
    /// How long the work of the middle lane computes without a rest.
    pub middle_compute: Duration,
    /// The rest that it takes then. Without it the middle lane would take all the time that the
    /// kernel grants real-time threads, and be stopped, with the high lane, for what remains of
    /// each second.
    pub middle_rest: Duration,
    /// How many others exhaust the high lane.
    pub slow_callers: u32,
    /// How long each of their calls occupies a thread.
    pub slow_work: Duration,
}

impl Plan {
    /// All of it, in some minutes.
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

    /// The same in some seconds: one round, and few calls of each kind.
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

    /// As little as shows that it works; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            periodic: Duration::from_millis(60),
            back_to_back: Duration::from_millis(20),
            settle: Duration::from_millis(20),
            ..Self::short()
        }
    }

    /// The threads of a pool.
    pub(super) const fn threads(&self) -> u32 {
        2 * self.lower_threads + HIGH_THREADS
    }

    /// Who asks the low lane, and who the middle lane, for endless work: threads of a client.
    pub(super) const fn saturating_callers(&self, load: Load) -> u32 {
        match load.saturates() {
            true => 4 * self.lower_threads,
            false => 0,
        }
    }

    /// Who keeps the processors awake: threads of a client.
    pub(super) const fn waking_threads(&self, load: Load) -> u32 {
        match load.wakes() {
            true => self.lower_threads,
            false => 0,
        }
    }

    /// The requests that a lane of the pool with request buffering keeps.
    pub(super) const fn buffered(&self) -> u32 {
        self.lower_threads
    }

    /// Who exhausts the high lane: threads of a client.
    pub(super) const fn exhausting_callers(&self, load: Load) -> u32 {
        match load.exhausts() {
            true => self.slow_callers,
            false => 0,
        }
    }

    /// The work that a call finds before it in an exhausted high lane, at most.
    pub(super) fn work_before(&self) -> Duration {
        self.slow_work * self.slow_callers / HIGH_THREADS
    }

    /// When what is done in a case that begins at `at`, for each series.
    pub(super) fn spans(&self, at: Monotonic) -> [Span; 2] {
        let span = |load_from: Monotonic, length| {
            let start = load_from + self.settle;
            Span {
                load_from,
                window: Window { start, length },
                load_until: start + length + TAIL,
            }
        };
        let periodic = span(at, self.periodic);
        let next = periodic.load_until + PAUSE;
        [periodic, span(next, self.back_to_back)]
    }

    /// How long a case takes, without its preparation.
    pub(super) fn case_length(&self) -> Duration {
        let at = Monotonic::from_nanos(0);
        let [_, last] = self.spans(at);
        last.load_until.since(at)
    }
}

/// When the calls of a series are made, and when the load is on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) load_from: Monotonic,
    pub(super) window: Window,
    pub(super) load_until: Monotonic,
}

/// The threads of the high lane.
pub(super) const HIGH_THREADS: u32 = 1;
/// How much longer than the calls the load lasts.
const TAIL: Duration = Duration::from_millis(20);
/// For what is still waiting when a load ends.
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_on_before_the_first_call_and_after_the_last() {
        let plan = Plan::full();
        let at = Monotonic::from_nanos(1_000_000_000);
        let [periodic, back_to_back] = plan.spans(at);
        assert_eq!(periodic.load_from, at);
        for span in [periodic, back_to_back] {
            let end = span.window.start + span.window.length;
            assert!(span.load_from < span.window.start && end < span.load_until);
        }
        assert!(periodic.load_until < back_to_back.load_from);
        assert_eq!(
            at + plan.case_length(),
            back_to_back.load_until,
            "and nothing follows"
        );
    }

    #[test]
    fn a_call_is_due_only_after_the_work_that_may_be_before_the_last_one() {
        for plan in [Plan::full(), Plan::short(), Plan::tiny()] {
            assert!(plan.work_before() < plan.period);
            assert!(plan.threads() > plan.slow_callers, "one is left to borrow");
        }
    }
}
