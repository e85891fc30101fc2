//! What was measured.

use chronorb_report::Document;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::case::Cell;
use super::plan::Plan;
use super::semantics::Observation;
use super::{Strategy, ThreadPools, claims, report};
use crate::Claim;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};
use crate::stats::median;
use crate::units;

/// What was measured.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// What was run.
    pub plan: Plan,
    /// Where.
    pub environment: Environment,
    /// Whether client and server had their memory locked.
    pub memory_locked: bool,
    /// Whether all threads had a real-time priority.
    pub real_time: bool,
    /// Every round of every cell, by both strategies.
    #[serde(rename = "rounds")]
    pub trials: Vec<Trial>,
    /// What thread pools did where the specification says what they do.
    #[serde(rename = "semantics")]
    pub observations: Vec<Observation>,
}

/// A strategy in a cell, once.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Trial {
    /// The threads and their work.
    #[serde(flatten)]
    pub cell: Cell,
    /// How the threads share the work.
    pub strategy: Strategy,
    /// The round, from 1.
    pub round: u32,
    /// How many requests there were.
    pub requests: u32,
    /// From the first request to the last reply.
    pub elapsed_ms: f64,
    /// How long the server's threads ran meanwhile.
    pub server_cpu_ms: f64,
    /// How often one of the server's threads gave up its processor, or lost it.
    pub server_context_switches: u64,
}

/// A strategy in a cell: the medians of the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The threads and their work.
    #[serde(flatten)]
    pub cell: Cell,
    /// How the threads share the work.
    pub strategy: Strategy,
    /// How many requests there were.
    pub requests: u32,
    /// From the first request to the last reply.
    pub elapsed_ms: f64,
    /// The least of a round.
    pub least_elapsed_ms: f64,
    /// The greatest of a round.
    pub greatest_elapsed_ms: f64,
    /// Requests in a second.
    pub requests_per_s: f64,
    /// How long the server's threads ran for a request.
    pub server_cpu_us_per_request: f64,
    /// How often they gave up their processor, or lost it, for a request.
    pub context_switches_per_request: f64,
    /// How much of the time the server's threads ran, all together; 100 is one processor.
    pub server_busy_percent: f64,
    /// By how much the other strategy took longer; with Leader/Followers alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub improvement_percent: Option<f64>,
}

impl Outcome {
    /// A row for each cell and strategy, in their order.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let cells = self.plan.cells();
        let rows = cells.flat_map(|cell| Strategy::ALL.map(|strategy| self.row(cell, strategy)));
        rows.flatten().collect()
    }

    /// By how much Half-Sync/Half-Async took longer than Leader/Followers, in hundredths of what these took.
    #[must_use]
    pub fn improvement(&self, cell: Cell) -> Option<f64> {
        let elapsed = |strategy| {
            let trials = self.of(cell, strategy);
            median(trials.map(|trial| trial.elapsed_ms))
        };
        let leader_followers = elapsed(Strategy::LeaderFollowers)?;
        let half_sync = elapsed(Strategy::HalfSyncHalfAsync)?;
        Some((half_sync - leader_followers) / leader_followers * 100.0)
    }

    /// All cells that were measured, with the improvement in each.
    pub(super) fn improvements(&self) -> Vec<(Cell, f64)> {
        let cells = self.plan.cells();
        cells
            .filter_map(|cell| Some((cell, self.improvement(cell)?)))
            .collect()
    }

    pub(super) fn row(&self, cell: Cell, strategy: Strategy) -> Option<Row> {
        let all = |of: fn(&Trial) -> f64| self.of(cell, strategy).map(of);
        let elapsed = || all(|trial| trial.elapsed_ms);
        let elapsed_ms = median(elapsed())?;
        let requests = self.of(cell, strategy).next()?.requests;
        let each = |trial: &Trial, figure: f64| figure / f64::from(trial.requests);
        let trials = || self.of(cell, strategy);
        Some(Row {
            cell,
            strategy,
            requests,
            elapsed_ms,
            least_elapsed_ms: elapsed().reduce(f64::min)?,
            greatest_elapsed_ms: elapsed().reduce(f64::max)?,
            requests_per_s: f64::from(requests) / elapsed_ms * 1e3,
            server_cpu_us_per_request: median(trials().map(|t| each(t, t.server_cpu_ms * 1e3)))?,
            context_switches_per_request: median(
                trials().map(|t| each(t, t.server_context_switches as f64)),
            )?,
            server_busy_percent: median(all(|t| t.server_cpu_ms / t.elapsed_ms * 100.0))?,
            improvement_percent: match strategy {
                Strategy::LeaderFollowers => self.improvement(cell),
                Strategy::HalfSyncHalfAsync => None,
            },
        })
    }

    fn of(&self, cell: Cell, strategy: Strategy) -> impl Iterator<Item = &Trial> {
        let trials = self.trials.iter();
        trials.filter(move |trial| trial.cell == cell && trial.strategy == strategy)
    }

    /// The cells with the least and the greatest improvement.
    pub(super) fn extremes(&self) -> Option<[(Cell, f64); 2]> {
        let all = self.improvements();
        let least = all.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let greatest = all.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some([least, greatest])
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        let all = self.improvements();
        let ahead = all.iter().filter(|(_, percent)| *percent > 0.0).count();
        match self.extremes() {
            Some([(_, least), (_, greatest)]) => format!(
                "Leader/Followers were ahead of Half-Sync/Half-Async in {ahead} of {} cells: by {} to {}",
                all.len(),
                percent(least),
                percent(greatest),
            ),
            None => "Leader/Followers and Half-Sync/Half-Async were not compared".to_owned(),
        }
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats: Vec<String> = self.environment.stolen_caveat().into_iter().collect();
        if self.plan.is_short() {
            caveats.push(format!(
                "This was a short run: {} requests for each strategy, cell and round, where the paper has {}.",
                units::count(self.plan.requests.into()),
                units::count(Plan::full().requests.into()),
            ));
        }
        if !self.real_time {
            caveats.push(
                "All threads had ordinary scheduling, so that other programs had their share of the processors: who \
                 sleeps often is given more than who computes."
                    .to_owned(),
            );
        }
        if self.environment.cpus < 2 {
            caveats.push(
                "There is one CPU: client and server share it, and the time is that of both."
                    .to_owned(),
            );
        }
        caveats
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(ThreadPools::NAME, self, json!({"rows": self.rows()}))
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

/// An improvement as people read it: `+12 %`, `+0.4 %`, `-3.1 %`.
pub(super) fn percent(percent: f64) -> String {
    match percent.abs() < 9.95 {
        true => format!("{percent:+.1} %"),
        false => format!("{percent:+.0} %"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// All cells, where a request takes 10 µs besides its work, and by the other strategy `more` of it.
    pub(in super::super) fn outcome(more: impl Fn(Cell) -> f64) -> Outcome {
        let plan = Plan::full();
        let mut trials = Vec::new();
        for cell in plan.cells() {
            for round in 1..=plan.rounds {
                for strategy in Strategy::ALL {
                    let own = match strategy {
                        Strategy::LeaderFollowers => 10.0,
                        Strategy::HalfSyncHalfAsync => 10.0 + more(cell),
                    };
                    // The second round is disturbed, which is not to show.
                    let disturbed = if round == 2 { 1.5 } else { 1.0 };
                    let us = f64::from(cell.work_us) + own;
                    trials.push(Trial {
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
        Outcome {
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
        let cell = Cell {
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
    fn the_headline_says_in_how_many_cells_they_are_ahead() {
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
