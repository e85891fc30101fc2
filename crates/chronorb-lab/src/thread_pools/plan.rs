//! The measurements of a run.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Place;

/// The measurements of a run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ThreadPoolsPlan {
    /// The number of timed requests, for each strategy in each cell and round.
    pub requests: u32,
    /// The number of requests before them.
    pub warm_up: u32,
    /// The number of rounds, each of which measures every cell once.
    pub rounds: u32,
    /// The numbers of threads that serve.
    pub threads: Vec<u32>,
    /// The computing times of a request in µs.
    pub work_us: Vec<u32>,
    /// The number of threads of the client. Each has a connection of its own, and calls again as
    /// soon as it is answered.
    pub callers: u32,
    /// The CPUs of client and server.
    pub place: Place,
    /// Whether all threads have the same real-time priority, if that is permitted.
    ///
    /// With ordinary scheduling other programs have their share of the CPUs, and a thread that
    /// sleeps often gets more than one that computes.
    pub real_time: bool,
}

impl ThreadPoolsPlan {
    /// Returns the plan with as many requests as in the paper.
    #[must_use]
    pub fn full() -> Self {
        Self {
            requests: 100_000,
            warm_up: 2_000,
            rounds: 3,
            threads: (1..=6).collect(),
            work_us: vec![0, 25, 50, 75, 100],
            callers: 12,
            place: Place::Apart,
            real_time: true,
        }
    }

    /// Returns the plan that measures the same cells in about a minute.
    #[must_use]
    pub fn short() -> Self {
        Self {
            requests: 1_200,
            warm_up: 120,
            // Disturbances of a short measurement do not show in the median of many.
            rounds: 7,
            ..Self::full()
        }
    }

    /// Returns the smallest plan that has all parts, for tests.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            requests: 200,
            warm_up: 24,
            rounds: 2,
            threads: vec![1, 3],
            work_us: vec![0, 50],
            ..Self::full()
        }
    }

    /// Returns all cells in the order of their measurement: those of a number of threads together.
    pub(super) fn cells(&self) -> impl Iterator<Item = PoolCell> {
        let threads = self.threads.iter();
        threads.flat_map(|&threads| {
            let works = self.work_us.iter();
            works.map(move |&work_us| PoolCell { threads, work_us })
        })
    }

    /// Returns about the length of the run.
    pub(super) fn length(&self) -> Duration {
        let requests = 2 * (self.requests + self.warm_up);
        let cells = self.cells().map(|cell| (cell.work() + ORDINARY) * requests);
        let starts = START * u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        (cells.sum::<Duration>() + starts) * self.rounds
    }

    /// Whether there are fewer requests than in the paper.
    pub(super) fn is_short(&self) -> bool {
        self.requests < Self::full().requests
    }
}

/// A number of threads and an amount of work, with which both strategies are compared.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PoolCell {
    /// The number of threads that serve. Half-Sync/Half-Async has one more, which reads.
    pub threads: u32,
    /// The computing time of a request in µs.
    pub work_us: u32,
}

impl PoolCell {
    /// Returns the computing time of a request.
    pub(super) fn work(self) -> Duration {
        Duration::from_micros(self.work_us.into())
    }
}

/// Numbers of threads: `1-6`, `1,2,4`, `3`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Threads(pub Vec<u32>);

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| {
            let number = text.trim().parse().ok();
            let number = number.filter(|number| (1..=MOST_THREADS).contains(number));
            number.ok_or_else(|| format!("{text:?} is not a number from 1 to {MOST_THREADS}"))
        };
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("{part:?} begins after its end"));
            }
            all.extend(first..=last);
        }
        all.sort_unstable();
        all.dedup();
        Ok(Self(all))
    }
}

/// The bound of the number of threads, for the sake of readable charts.
const MOST_THREADS: u32 = 64;
/// About the time of a request without its work.
const ORDINARY: Duration = Duration::from_micros(16);
/// About the time to start and to stop the processes of a number of threads.
const START: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_threads_meets_every_amount_of_work() {
        let plan = ThreadPoolsPlan::full();
        let cells: Vec<PoolCell> = plan.cells().collect();
        assert_eq!(cells.len(), 30);
        assert!(cells.is_sorted_by_key(|cell| (cell.threads, cell.work_us)));
        assert!(plan.callers > 6, "there is always a request for a thread");
    }

    #[test]
    fn a_short_run_takes_little_more_than_a_minute() {
        assert!(ThreadPoolsPlan::short().length() < Duration::from_secs(75));
        assert!(ThreadPoolsPlan::short().is_short() && !ThreadPoolsPlan::full().is_short());
    }

    #[test]
    fn numbers_of_threads_are_single_ones_and_ranges() {
        let threads = |text: &str| text.parse().map(|Threads(all)| all);
        assert_eq!(threads("1-6"), Ok(vec![1, 2, 3, 4, 5, 6]));
        assert_eq!(threads("4,1, 2-2,4"), Ok(vec![1, 2, 4]));
        for wrong in ["", "0", "65", "3-1", "1-", "two"] {
            assert!(threads(wrong).is_err(), "{wrong}");
        }
    }
}
