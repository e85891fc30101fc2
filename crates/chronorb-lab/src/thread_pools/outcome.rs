//! The figures of a run.

use serde::{Deserialize, Serialize};

use super::Strategy;
use super::plan::{PoolCell, ThreadPoolsPlan};
use super::semantics::Observation;
use crate::environment::Environment;
use crate::stats::median;

/// The figures of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ThreadPoolsOutcome {
    /// The plan of the run.
    pub plan: ThreadPoolsPlan,
    /// The machine.
    pub environment: Environment,
    /// Whether client and server had their memory locked.
    pub memory_locked: bool,
    /// Whether all threads had a real-time priority.
    pub real_time: bool,
    /// Every round of every cell, with both strategies.
    #[serde(rename = "rounds")]
    pub trials: Vec<PoolTrial>,
    /// The behaviour of thread pools under the rules of the specification.
    #[serde(rename = "semantics")]
    pub observations: Vec<Observation>,
}

/// One measurement of a strategy in a cell.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct PoolTrial {
    /// The cell.
    #[serde(flatten)]
    pub cell: PoolCell,
    /// The strategy.
    pub strategy: Strategy,
    /// The round, from 1.
    pub round: u32,
    /// The number of requests.
    pub requests: u32,
    /// The time from the first request to the last reply.
    pub elapsed_ms: f64,
    /// The processor time of the server's threads meanwhile.
    pub server_cpu_ms: f64,
    /// The context switches of the server's threads, voluntary or not.
    pub server_context_switches: u64,
}

/// The medians of the rounds of a strategy in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PoolRow {
    /// The cell.
    #[serde(flatten)]
    pub cell: PoolCell,
    /// The strategy.
    pub strategy: Strategy,
    /// The number of requests.
    pub requests: u32,
    /// The time from the first request to the last reply.
    pub elapsed_ms: f64,
    /// The least time of a round.
    pub least_elapsed_ms: f64,
    /// The greatest time of a round.
    pub greatest_elapsed_ms: f64,
    /// The number of requests in a second.
    pub requests_per_s: f64,
    /// The processor time of the server's threads for each request.
    pub server_cpu_us_per_request: f64,
    /// The context switches of the server's threads for each request.
    pub context_switches_per_request: f64,
    /// The processor time of the server's threads by the elapsed time; 100 is one CPU.
    pub server_busy_percent: f64,
    /// The additional time of the other strategy; with Leader/Followers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub improvement_percent: Option<f64>,
}

impl ThreadPoolsOutcome {
    /// Returns a row for each cell and strategy.
    #[must_use]
    pub fn rows(&self) -> Vec<PoolRow> {
        let cells = self.plan.cells();
        let rows = cells.flat_map(|cell| Strategy::ALL.map(|strategy| self.row(cell, strategy)));
        rows.flatten().collect()
    }

    /// Returns the additional time of Half-Sync/Half-Async in percent of that of Leader/Followers.
    #[must_use]
    pub fn improvement(&self, cell: PoolCell) -> Option<f64> {
        let [leader_followers, half_sync] = Strategy::ALL.map(|strategy| {
            let trials = self.of(cell, strategy);
            median(trials.map(|trial| trial.elapsed_ms))
        });
        let leader_followers = leader_followers?;
        Some((half_sync? - leader_followers) / leader_followers * 100.0)
    }

    /// Returns all measured cells, with the improvement in each.
    pub(super) fn improvements(&self) -> Vec<(PoolCell, f64)> {
        let cells = self.plan.cells();
        let all = cells.filter_map(|cell| Some((cell, self.improvement(cell)?)));
        all.collect()
    }

    pub(super) fn row(&self, cell: PoolCell, strategy: Strategy) -> Option<PoolRow> {
        let all = |of: fn(&PoolTrial) -> f64| self.of(cell, strategy).map(of);
        let elapsed = || all(|trial| trial.elapsed_ms);
        let elapsed_ms = median(elapsed())?;
        let requests = self.of(cell, strategy).next()?.requests;
        let each = |figure: f64| figure / f64::from(requests);
        let busy = all(|trial| trial.server_cpu_ms / trial.elapsed_ms * 100.0);
        let switches = all(|trial| trial.server_context_switches as f64);
        let is_first = strategy == Strategy::LeaderFollowers;
        Some(PoolRow {
            cell,
            strategy,
            requests,
            elapsed_ms,
            least_elapsed_ms: elapsed().reduce(f64::min)?,
            greatest_elapsed_ms: elapsed().reduce(f64::max)?,
            requests_per_s: f64::from(requests) / elapsed_ms * 1e3,
            server_cpu_us_per_request: each(median(all(|trial| trial.server_cpu_ms * 1e3))?),
            context_switches_per_request: each(median(switches)?),
            server_busy_percent: median(busy)?,
            improvement_percent: self.improvement(cell).filter(|_| is_first),
        })
    }

    fn of(&self, cell: PoolCell, strategy: Strategy) -> impl Iterator<Item = &PoolTrial> {
        let trials = self.trials.iter();
        trials.filter(move |trial| trial.cell == cell && trial.strategy == strategy)
    }

    /// Returns the cells with the least and the greatest improvement.
    pub(super) fn extremes(&self) -> Option<[(PoolCell, f64); 2]> {
        let mut all = self.improvements();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        Some([*all.first()?, *all.last()?])
    }
}

/// Returns an improvement in words: `+12 %`, `+0.4 %`, `-3.1 %`.
pub(super) fn percent(percent: f64) -> String {
    let digits = if percent.abs() < 9.95 { 1 } else { 0 };
    format!("{percent:+.digits$} %")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::experiment::Findings;

    /// Returns figures of all cells: a request takes 10 µs besides its work, and `more` than that
    /// with the other strategy.
    pub(in super::super) fn outcome(more: impl Fn(PoolCell) -> f64) -> ThreadPoolsOutcome {
        let plan = ThreadPoolsPlan::full();
        let mut trials = Vec::new();
        for cell in plan.cells() {
            for round in 1..=plan.rounds {
                for strategy in Strategy::ALL {
                    let own = match strategy {
                        Strategy::LeaderFollowers => 10.0,
                        Strategy::HalfSyncHalfAsync => 10.0 + more(cell),
                    };
                    // The second round is disturbed, and the medians must not show it.
                    let disturbed = if round == 2 { 1.5 } else { 1.0 };
                    let us = f64::from(cell.work_us) + own;
                    trials.push(PoolTrial {
                        cell,
                        strategy,
                        round,
                        requests: plan.requests,
                        elapsed_ms: us * f64::from(plan.requests) / 1e3 * disturbed,
                        server_cpu_ms: us * f64::from(plan.requests) / 1e3,
                        server_context_switches: 2 * u64::from(plan.requests),
                    });
                }
            }
        }
        let mut environment = Environment::probe();
        environment.stolen_percent = vec![0.0];
        environment.cpus = 2;
        ThreadPoolsOutcome {
            plan,
            environment,
            memory_locked: true,
            real_time: true,
            trials,
            observations: super::super::semantics::tests::observations(),
        }
    }

    #[test]
    fn the_improvement_is_by_what_leader_followers_took() {
        let outcome = outcome(|_| 5.0);
        let cell = PoolCell {
            threads: 1,
            work_us: 0,
        };
        assert_eq!(outcome.improvement(cell), Some(50.0));
        let rows = outcome.rows();
        assert_eq!(rows.len(), 60);
        let first = rows[0];
        assert_eq!(first.elapsed_ms, 1000.0);
        assert_eq!(first.greatest_elapsed_ms, 1500.0);
        assert_eq!(first.requests_per_s, 100_000.0);
        assert_eq!(first.server_cpu_us_per_request, 10.0);
        assert_eq!(first.context_switches_per_request, 2.0);
        assert_eq!(first.server_busy_percent, 100.0);
        assert_eq!(
            [first, rows[1]].map(|row| row.improvement_percent),
            [Some(50.0), None]
        );
    }

    #[test]
    fn the_headline_counts_the_cells_with_an_improvement() {
        let headline = outcome(|cell| if cell.threads == 1 { -1.0 } else { 5.0 }).headline();
        assert!(headline.contains("25 of 30 cells"), "{headline}");
        assert!(headline.ends_with("-10 % to +50 %"), "{headline}");
    }

    #[test]
    fn programs_get_flat_rows_with_units_in_their_names() {
        let figures = outcome(|_| 5.0).figures();
        assert_eq!(figures["experiment"], "thread-pools");
        let row = &figures["rows"][0];
        assert_eq!(row["strategy"], "leader-followers");
        for name in [
            "threads",
            "work_us",
            "requests",
            "elapsed_ms",
            "requests_per_s",
            "server_cpu_us_per_request",
            "context_switches_per_request",
            "improvement_percent",
        ] {
            assert!(row[name].is_number(), "{name}: {row}");
        }
        assert!(figures["rows"][1]["improvement_percent"].is_null());
        for name in ["paper", "published", "measured", "verdict"] {
            assert!(figures["claims"][0][name].is_string(), "{name}");
        }
    }
}
