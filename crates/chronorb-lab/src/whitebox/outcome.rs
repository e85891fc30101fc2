//! What was counted.

use std::collections::BTreeMap;

use chronorb_report::Document;
use serde::Serialize;
use serde_json::Value;

use super::architectures::{ArchitectureRow, RowFigures as ArchitectureFigures};
use super::budget::BrokenBudgets;
use super::case::Case;
use super::claims;
use super::client::RUNS;
use super::counts::Counts;
use super::published::{PUBLISHED, Published};
use super::report;
use super::{Plan, Whitebox};
use crate::Claim;
use crate::Verdict;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, plain_data};

/// All that was counted.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was run.
    pub plan: Plan,
    /// Where it was run.
    pub environment: Environment,
    /// A row for each side of each case.
    pub rows: Vec<Row>,
    /// A row for each side of each architecture, with ten clients.
    pub architectures: Vec<ArchitectureRow>,
    /// Why system calls could not be traced; nothing where they were.
    pub untraced: Option<String>,
}

/// What calls of one case cost one side.
#[derive(Clone, Debug)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// The side.
    pub side: Side,
    /// How many calls it is of.
    pub calls: u64,
    /// What threads counted of themselves, for all of these calls.
    pub counts: Counts,
    /// What the kernel was asked for, for as many calls; nothing where it could not be traced.
    pub system_calls: Option<Vec<SystemCall>>,
}

/// Who does something.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Who calls; within one process, all of it.
    Client,
    /// Who is called.
    Server,
}

/// How often the kernel was asked for one thing.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct SystemCall {
    /// The name, as `sendto`.
    pub name: String,
    /// How often.
    pub calls: u64,
    /// How many octets it moved.
    pub octets: u64,
}

impl Outcome {
    /// What calls of a case cost a side.
    #[must_use]
    pub fn row(&self, case: &str, side: Side) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| (row.case.name, row.side) == (case, side))
    }

    /// Whether all budgets are kept, as far as it could be counted.
    ///
    /// # Errors
    ///
    /// [`BrokenBudgets`] where one is not.
    pub fn check(&self) -> Result<(), BrokenBudgets> {
        let claims = claims::of(self);
        let missed = claims
            .iter()
            .filter(|claim| claim.paper.is_none() && claim.verdict() == Verdict::Missed);
        match missed.count() {
            0 => Ok(()),
            missed => Err(BrokenBudgets { missed }),
        }
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        let reason = self.untraced.as_ref();
        let untold = reason.map(|reason| format!("System calls were not counted: {reason}."));
        let stolen = self.environment.stolen_caveat();
        untold.into_iter().chain(stolen).collect()
    }

    /// What the budgets say, and the papers, and whether it holds.
    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        plain_data(&Figures {
            experiment: Whitebox::NAME,
            environment: &self.environment,
            runs: RUNS,
            rows: (self
                .rows
                .iter()
                .map(|row| AnyRow::Case(RowFigures::of(row))))
            .chain((self.architectures.iter()).map(|row| AnyRow::Architecture(row.figures())))
            .collect(),
            not_counted: self.untraced.as_deref(),
            published_lock_operations: PUBLISHED,
            claims: self.claims(),
            plan: self.plan,
        })
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

impl Row {
    pub(super) fn new(
        case: &Case,
        side: Side,
        plan: Plan,
        counts: Counts,
        system_calls: Option<Vec<SystemCall>>,
    ) -> Self {
        Self {
            case: *case,
            side,
            calls: plan.calls.into(),
            counts,
            system_calls,
        }
    }

    /// So many for each call.
    pub(super) fn each(&self, count: u64) -> f64 {
        count as f64 / self.calls.max(1) as f64
    }

    /// How many octets the kernel moved; nothing where that could not be traced.
    pub(super) fn kernel_octets(&self) -> Option<u64> {
        let calls = self.system_calls.as_ref()?;
        Some(calls.iter().map(|of| of.octets).sum())
    }
}

impl Side {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// The figures of an [`Outcome`] for programs.
#[derive(Serialize)]
struct Figures<'a> {
    experiment: &'static str,
    environment: &'a Environment,
    runs: u32,
    rows: Vec<AnyRow<'a>>,
    not_counted: Option<&'a str>,
    published_lock_operations: [Published; 4],
    claims: Vec<Claim>,
    plan: Plan,
}

/// A row of either part.
#[derive(Serialize)]
#[serde(untagged)]
enum AnyRow<'a> {
    Case(RowFigures<'a>),
    Architecture(ArchitectureFigures<'a>),
}

/// All of one call.
#[derive(Serialize)]
struct RowFigures<'a> {
    case: &'static str,
    side: Side,
    allocations: f64,
    allocated_octets: f64,
    lock_operations: f64,
    octets_copied: f64,
    minor_faults: f64,
    major_faults: f64,
    voluntary_switches: f64,
    involuntary_switches: f64,
    octets_by_kernel: Option<f64>,
    system_calls: Option<BTreeMap<&'a str, f64>>,
}

impl<'a> RowFigures<'a> {
    fn of(row: &'a Row) -> Self {
        let counts = row.counts.to_array().map(|count| row.each(count));
        let [
            allocations,
            allocated_octets,
            lock_operations,
            octets_copied,
            minor_faults,
            major_faults,
            voluntary_switches,
            involuntary_switches,
        ] = counts;
        let named = |of: &'a SystemCall| (of.name.as_str(), row.each(of.calls));
        Self {
            case: row.case.name,
            side: row.side,
            allocations,
            allocated_octets,
            lock_operations,
            octets_copied,
            minor_faults,
            major_faults,
            voluntary_switches,
            involuntary_switches,
            octets_by_kernel: row.kernel_octets().map(|octets| row.each(octets)),
            system_calls: (row.system_calls.as_ref())
                .map(|calls| calls.iter().map(named).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn a_broken_budget_is_found() {
        let mut outcome = outcome();
        assert_eq!(outcome.check(), Ok(()));
        outcome.rows[0].counts.lock_operations = 1;
        let broken = outcome.check().unwrap_err();
        assert_eq!(broken, BrokenBudgets { missed: 1 });
        assert!(broken.to_string().starts_with("1 of"), "{broken}");
    }
}
