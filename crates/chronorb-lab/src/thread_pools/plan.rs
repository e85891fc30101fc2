//! What is run, and how much of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Cell, Place};

/// What is run, and how much of it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// How many requests are timed, for each strategy in each cell and round.
    pub requests: u32,
    /// How many go before them.
    pub warm_up: u32,
    /// How many times every cell is measured, one after the other.
    pub rounds: u32,
    /// The numbers of threads that serve.
    pub threads: Vec<u32>,
    /// What a request computes, in µs.
    pub work_us: Vec<u32>,
    /// The threads of the client; each calls on a connection of its own, again as soon as it is answered.
    pub callers: u32,
    /// Where client and server run.
    pub place: Place,
    /// Whether all threads have a real-time priority, the same one, where that is permitted.
    ///
    /// With ordinary scheduling other programs have their share of the processors, and who sleeps often is given more
    /// than who computes.
    pub real_time: bool,
}

impl Plan {
    /// As many requests as in the paper.
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

    /// The same cells in about a minute.
    #[must_use]
    pub fn short() -> Self {
        Self {
            requests: 1_200,
            warm_up: 120,
            // What disturbs a short measurement does not show in the median of many.
            rounds: 7,
            ..Self::full()
        }
    }

    /// As little as shows that it works; its figures mean nothing.
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

    /// All cells, in the order in which they are measured: those of a number of threads together.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell> {
        let cell = |threads| {
            let all = self.work_us.iter();
            all.map(move |&work_us| Cell { threads, work_us })
        };
        self.threads.iter().flat_map(move |&threads| cell(threads))
    }

    /// What a cell takes for both strategies, about.
    pub(super) fn cell_length(&self, cell: Cell) -> Duration {
        (cell.work() + ORDINARY) * (2 * (self.requests + self.warm_up))
    }

    /// What all takes, about.
    pub(super) fn length(&self) -> Duration {
        let cells: Duration = self.cells().map(|cell| self.cell_length(cell)).sum();
        let starts = START * u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        (cells + starts) * self.rounds
    }

    /// Whether the figures are of fewer requests than the paper's.
    pub(super) fn is_short(&self) -> bool {
        self.requests < Self::full().requests
    }
}

/// What a request takes without its work, about.
const ORDINARY: Duration = Duration::from_micros(16);
/// What starting and stopping the processes of a number of threads takes, about.
const START: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_threads_meets_every_amount_of_work() {
        let plan = Plan::full();
        let cells: Vec<Cell> = plan.cells().collect();
        assert_eq!(cells.len(), 30);
        assert!(cells.is_sorted_by_key(|cell| (cell.threads, cell.work_us)));
        assert!(plan.callers > 6, "there is always a request for a thread");
    }

    #[test]
    fn a_short_run_takes_little_more_than_a_minute() {
        assert!(Plan::short().length() < Duration::from_secs(75));
        assert!(Plan::short().is_short() && !Plan::full().is_short());
    }
}
