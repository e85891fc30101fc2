//! The figures of the experiment, and its claims.

use serde::Serialize;

use super::order::FailureKind;
use super::plan::{EnduranceLoad, EndurancePlan};
use crate::Claim;
use crate::environment::Environment;
use crate::stats::median;
use crate::units;

/// The calls of the clients of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EnduranceRow {
    /// The load.
    pub load: EnduranceLoad,
    /// The calls, and the events that arrived.
    pub calls: u64,
    /// The exceptions of calls that were disturbed.
    pub explained: u64,
    /// The exceptions of other calls.
    pub unexplained: u64,
    /// The answers that were wrong.
    pub wrong: u64,
    /// The calls that took longer than their timeout.
    pub hung: u64,
    /// The acknowledged names that were lost.
    pub lost: u64,
    /// The events out of order.
    pub disorder: u64,
}

impl EnduranceRow {
    pub(super) const fn new(load: EnduranceLoad) -> Self {
        Self {
            load,
            calls: 0,
            explained: 0,
            unexplained: 0,
            wrong: 0,
            hung: 0,
            lost: 0,
            disorder: 0,
        }
    }

    pub(super) const fn count(&mut self, kind: FailureKind) {
        let count = match kind {
            FailureKind::Wrong => &mut self.wrong,
            FailureKind::Hung => &mut self.hung,
            FailureKind::Lost => &mut self.lost,
            FailureKind::Disorder => &mut self.disorder,
        };
        *count += 1;
    }

    const fn failures(&self) -> u64 {
        self.unexplained + self.wrong + self.hung + self.lost + self.disorder
    }
}

/// The resident memory of all servers at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemorySample {
    /// The time since the beginning, in seconds.
    pub at_s: f64,
    /// The resident memory.
    pub octets: u64,
}

/// The outcome of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct EnduranceOutcome {
    /// The plan of the run.
    pub plan: EndurancePlan,
    /// The machine.
    pub environment: Environment,
    /// Each load.
    pub rows: Vec<EnduranceRow>,
    /// The memory of the servers over time.
    pub memory: Vec<MemorySample>,
    /// The processes that were killed.
    pub kills: u64,
    /// The processes that were stopped for some time.
    pub stops: u64,
    /// The ends of processes that were not killed.
    pub deaths: Vec<String>,
    /// The first failures in words.
    pub words: Vec<String>,
}

impl EnduranceOutcome {
    /// Returns the number of all failures.
    pub(super) fn failures(&self) -> u64 {
        let rows: u64 = self.rows.iter().map(EnduranceRow::failures).sum();
        rows + self.deaths.len() as u64
    }

    /// Returns the median of the memory in a quarter of the run, from 0.
    fn memory_in(&self, quarter: u32) -> Option<f64> {
        let length = self.plan.length.as_secs_f64();
        let samples = self.memory.iter();
        let samples = samples.filter(|of| (of.at_s / length * 4.0) as u32 == quarter);
        median(samples.map(|of| of.octets as f64))
    }

    pub(super) fn judged(&self) -> Vec<Claim> {
        let total =
            |figure: fn(&EnduranceRow) -> u64| -> u64 { self.rows.iter().map(figure).sum() };
        let is_measured = self.rows.iter().any(|row| row.calls > 0);
        let none = |claim: &str, count: u64| {
            let words = format!(
                "{} of {}",
                units::count(count),
                units::count(total(|r| r.calls))
            );
            Claim::aim(claim).holds(is_measured.then_some((count == 0, words)))
        };
        let deaths = self.deaths.len() as u64;
        let memory = self
            .memory_in(1)
            .zip(self.memory_in(3))
            .map(|(second, last)| {
                let words = format!("{} after {}", units::bytes(last), units::bytes(second));
                (last <= second * MOST_GROWTH + GRANULARITY, words)
            });
        vec![
            none("No answer is wrong", total(|row| row.wrong)),
            none("No call hangs beyond its timeout", total(|row| row.hung)),
            none(
                "No call fails unless its server or its client is disturbed",
                total(|row| row.unexplained),
            ),
            none("No acknowledged name is lost", total(|row| row.lost)),
            none("No event is out of order", total(|row| row.disorder)),
            Claim::aim("No process ends without being killed").holds(
                is_measured.then_some((deaths == 0, format!("{} ended", units::count(deaths)))),
            ),
            Claim::aim(format!(
                "The memory of the servers is flat: its median in the last quarter is at most 1.1 \
                 times that in the second, and {}",
                units::bytes(GRANULARITY)
            ))
            .holds(memory),
        ]
    }
}

/// The most growth of memory from the second quarter to the last one.
const MOST_GROWTH: f64 = 1.1;
/// The growth that does not count, for the granularity of the allocator.
const GRANULARITY: f64 = 4_194_304.0;

#[cfg(test)]
pub(super) mod tests {
    use super::super::Endurance;
    use super::*;
    use crate::Verdict;
    use crate::experiment::{Experiment, Findings};

    /// An outcome without a failure.
    pub(in super::super) fn outcome() -> EnduranceOutcome {
        let plan = Endurance::short();
        let rows = EnduranceLoad::ALL.map(|load| EnduranceRow {
            calls: 1_000,
            explained: 10,
            ..EnduranceRow::new(load)
        });
        let memory = (0..60_u8).map(|at| MemorySample {
            at_s: at.into(),
            octets: 30 << 20,
        });
        EnduranceOutcome {
            plan,
            environment: Environment::example(),
            rows: rows.into(),
            memory: memory.collect(),
            kills: 10,
            stops: 30,
            deaths: Vec::new(),
            words: Vec::new(),
        }
    }

    fn missed(change: impl FnOnce(&mut EnduranceOutcome)) -> Vec<Claim> {
        let mut outcome = outcome();
        change(&mut outcome);
        let mut claims = outcome.claims();
        claims.retain(|claim| claim.verdict() == Verdict::Missed);
        claims
    }

    #[test]
    fn each_failure_misses_its_claim() {
        assert!(missed(|_| {}).is_empty());
        for kind in [
            FailureKind::Wrong,
            FailureKind::Hung,
            FailureKind::Lost,
            FailureKind::Disorder,
        ] {
            assert_eq!(missed(|outcome| outcome.rows[0].count(kind)).len(), 1);
        }
        assert_eq!(missed(|outcome| outcome.rows[0].unexplained = 1).len(), 1);
        assert_eq!(
            missed(|outcome| outcome.deaths.push(String::new())).len(),
            1
        );
    }

    #[test]
    fn memory_that_grows_misses_its_claim() {
        let grow = |outcome: &mut EnduranceOutcome| {
            for sample in &mut outcome.memory[45..] {
                sample.octets = 38 << 20;
            }
        };
        assert_eq!(missed(grow).len(), 1);
    }
}
