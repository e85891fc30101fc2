//! The outcome of the experiment.

use std::collections::BTreeMap;

use chronorb_probe::{Activity, ActivityTimes};
use serde::Serialize;
use serde_json::{Value, json};

use super::budget::BrokenBudgets;
use super::case::WhiteboxCase;
use super::counts::{Counts, ProcessCosts, per_call};
use super::trial::CallsByName;
use super::{CLIENTS, WhiteboxPlan, claims};
use crate::environment::Environment;
use crate::experiment::{merge, plain_data};
use crate::{Claim, Verdict};

/// The outcome of the experiment.
#[derive(Clone, Debug)]
pub struct WhiteboxOutcome {
    /// The plan that was run.
    pub plan: WhiteboxPlan,
    /// The machine.
    pub environment: Environment,
    /// The costs of each side of each case.
    pub rows: Vec<SideCosts>,
    /// The costs of each side of each architecture, with ten clients.
    pub architectures: Vec<SideCosts>,
    /// The reason why system calls could not be traced, if so.
    pub untraced: Option<String>,
}

/// The costs of calls of one case on one side.
#[derive(Clone, Debug)]
pub struct SideCosts {
    /// The case.
    pub case: WhiteboxCase,
    /// The side.
    pub side: WhiteboxSide,
    /// The number of calls that were counted.
    pub calls: u64,
    /// The counts of all of them. Those of an architecture have no octets that were copied.
    pub counts: Counts,
    /// The processor time of as many calls by activity, which is kept of architectures only.
    pub times: ActivityTimes,
    /// The number of calls that were traced.
    pub traced: u64,
    /// The numbers and octets of the system calls of these, if they could be traced.
    pub system_calls: Option<CallsByName>,
}

/// A side of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WhiteboxSide {
    /// The caller; within one process, the whole process.
    Client,
    /// The servant's process.
    Server,
}

impl WhiteboxOutcome {
    /// The costs of a case on a side.
    pub(crate) fn row(&self, case: &str, side: WhiteboxSide) -> Option<&SideCosts> {
        let mut rows = self.rows.iter();
        rows.find(|row| (row.case.name, row.side) == (case, side))
    }

    /// Checks that all budgets are kept, as far as they could be counted.
    ///
    /// # Errors
    ///
    /// [`BrokenBudgets`] where one is not.
    pub fn check(&self) -> Result<(), BrokenBudgets> {
        let is_missed = |claim: &Claim| claim.paper.is_none() && claim.verdict() == Verdict::Missed;
        match claims::of(self).into_iter().filter(is_missed).count() {
            0 => Ok(()),
            missed => Err(BrokenBudgets { missed }),
        }
    }
}

impl SideCosts {
    /// The costs of client and server, where there is one. `calls` were counted, `traced` traced.
    pub(super) fn of_sides(
        case: WhiteboxCase,
        [calls, traced]: [u64; 2],
        costs: [Option<ProcessCosts>; 2],
        system_calls: [Option<CallsByName>; 2],
    ) -> impl Iterator<Item = Self> {
        let sides = WhiteboxSide::ALL.into_iter().zip(costs).zip(system_calls);
        sides.filter_map(move |((side, costs), system_calls)| {
            let ProcessCosts { counts, times } = costs?;
            Some(Self {
                case,
                side,
                calls,
                counts,
                times,
                traced,
                system_calls,
            })
        })
    }

    /// Returns a count of one call.
    pub(super) fn each(&self, count: u64) -> f64 {
        per_call(count, self.calls)
    }

    /// Returns a number of system calls, or of their octets, of one call.
    pub(super) fn each_traced(&self, count: u64) -> f64 {
        per_call(count, self.traced)
    }

    /// Returns the lock operations of one call as the papers count them: that a lock is taken, and
    /// that it is given back.
    pub(super) fn paper_locks(&self) -> f64 {
        2.0 * self.each(self.counts.lock_operations)
    }

    /// Returns the octets that system calls moved, if they could be traced.
    pub(super) fn kernel_octets(&self) -> Option<u64> {
        let calls = self.system_calls.as_ref()?;
        Some(calls.values().map(|(_, octets)| octets).sum())
    }

    /// Returns the futex calls of all traced calls together, if they could be traced.
    pub(crate) fn futex_calls(&self) -> Option<u64> {
        let calls = self.system_calls.as_ref()?.get("futex");
        Some(calls.map_or(0, |(calls, _)| *calls))
    }

    /// Returns the futex calls of one call, if they could be traced.
    pub(super) fn futexes_each(&self) -> Option<f64> {
        self.futex_calls().map(|calls| self.each_traced(calls))
    }

    /// Returns the processor time of one call, in µs.
    pub(crate) fn processor_us(&self) -> f64 {
        self.spent_ns() / 1e3 / self.calls.max(1) as f64
    }

    /// Returns the share of an activity in the processor time, in percent.
    pub(crate) fn percent(&self, of: Activity) -> f64 {
        let all = self.spent_ns();
        if all > 0.0 {
            100.0 * self.net_ns(of) / all
        } else {
            0.0
        }
    }

    fn spent_ns(&self) -> f64 {
        ACTIVITIES.iter().map(|(of, _)| self.net_ns(*of)).sum()
    }

    /// The time of an activity. One of nearly no time may measure as less than nothing.
    fn net_ns(&self, of: Activity) -> f64 {
        self.times.net(of).max(0.0)
    }

    /// Returns the figures of one call for programs.
    pub(super) fn figures(&self) -> Value {
        let each =
            |(name, (calls, _)): (&String, &(u64, u64))| (name.clone(), self.each_traced(*calls));
        let calls = self.system_calls.as_ref();
        let calls = calls.map(|calls| calls.iter().map(each).collect::<BTreeMap<_, _>>());
        let mut figures = plain_data(&self.counts.each(self.calls));
        merge(
            &mut figures,
            json!({"side": self.side, "system_calls": calls}),
        );
        if !self.case.is_of_ten() {
            let octets = self.kernel_octets().map(|octets| self.each_traced(octets));
            merge(
                &mut figures,
                json!({"case": self.case.name, "octets_by_kernel": octets}),
            );
            return figures;
        }
        // They are not counted here.
        figures.as_object_mut().map(|of| of.remove("octets_copied"));
        let of_ten = json!({
            "case": "ten-clients",
            "architecture": self.case.name,
            "clients": CLIENTS,
            "requests": self.calls,
            "futex_calls": self.futexes_each(),
            "synchronisation_percent": self.percent(Activity::Synchronisation),
            "io_percent": self.percent(Activity::InputOutput),
            "protocol_percent": self.percent(Activity::Other),
            "application_percent": self.percent(Activity::Application),
            "processor_us": self.processor_us(),
        });
        merge(&mut figures, of_ten);
        figures
    }
}

impl WhiteboxSide {
    /// Both sides.
    pub const ALL: [Self; 2] = [Self::Client, Self::Server];

    /// The name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// The activities that share the processor time, with their names.
pub(super) const ACTIVITIES: [(Activity, &str); 4] = [
    (Activity::Synchronisation, "synchronisation"),
    (Activity::InputOutput, "I/O"),
    (Activity::Other, "protocol"),
    (Activity::Application, "application"),
];

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

    #[test]
    fn shares_are_of_all_time_that_was_spent() {
        let mut row = outcome().architectures.swap_remove(0);
        row.times = ActivityTimes {
            nanoseconds: [320, 610, 20, 110, 40],
            intervals: [2, 1, 3, 1, 4],
        };
        let shares = ACTIVITIES.map(|(of, _)| row.percent(of));
        assert_eq!(shares, [0.0, 60.0, 30.0, 10.0]);
        row.times = ActivityTimes::default();
        assert_eq!(row.percent(Activity::Other), 0.0);
    }
}
