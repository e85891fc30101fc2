//! The figures of the experiment.

use std::collections::HashMap;

use chronorb_rt::Monotonic;
use serde::Serialize;

use super::order::{Completion, ThreadCalls};
use super::plan::{FailoverCase, FailoverPlan, Plug, Semantics};
use super::trial::is_as_told;
use crate::environment::Environment;
use crate::stats::{Record, Summary};

/// The trials of a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FailoverRow {
    /// The policy and the death.
    #[serde(flatten)]
    pub case: FailoverCase,
    /// The number of deaths.
    pub trials: u64,
    /// The times from the death to the first reply of the backup, by thread.
    #[serde(flatten)]
    pub recovery: Summary,
    /// The threads that had left the server before its death, after a heartbeat was late.
    pub left_early: u64,
    /// All calls.
    pub all_calls: u64,
    /// Those that raised an exception completed `NO`.
    pub not_executed: u64,
    /// Those that raised an exception completed `MAYBE`.
    pub uncertain: u64,
    /// Those that were executed by both servers.
    pub executed_twice: u64,
    /// Calls that were not executed as often as their policy and their result say, and executions
    /// of calls that were never made.
    pub violations: u64,
}

/// The outcome of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct FailoverOutcome {
    /// The plan of the run.
    pub plan: FailoverPlan,
    /// The machine.
    pub environment: Environment,
    /// The cases that were tried.
    pub rows: Vec<FailoverRow>,
    /// The calls that the servers answered before their deaths.
    pub answered: Summary,
    /// The times of the rows, by death.
    #[serde(skip)]
    pub(super) recoveries: Vec<(Plug, Record)>,
}

/// The figures of a case, while it is measured.
pub(super) struct CaseFigures {
    pub(super) case: FailoverCase,
    pub(super) trials: u64,
    pub(super) violations: u64,
    recovery: Record,
    answered: Record,
    left_early: u64,
    all_calls: u64,
    not_executed: u64,
    uncertain: u64,
    executed_twice: u64,
}

impl CaseFigures {
    pub(super) fn new(case: FailoverCase) -> Self {
        Self {
            case,
            trials: 0,
            violations: 0,
            recovery: Record::new(),
            answered: Record::new(),
            left_early: 0,
            all_calls: 0,
            not_executed: 0,
            uncertain: 0,
            executed_twice: 0,
        }
    }

    /// Adds the calls of a thread, and removes them from the numbers of executions.
    pub(super) fn add(
        &mut self,
        died: Monotonic,
        thread: &ThreadCalls,
        executions: &mut HashMap<u64, u32>,
    ) {
        let moved = Monotonic::from_nanos(thread.moved_ns);
        if moved < died {
            self.left_early += 1;
        } else {
            self.recovery.add(Default::default(), moved.since(died));
        }
        self.answered.merge(&thread.answered);
        self.all_calls += thread.calls;
        let mut failures = thread.failures.iter().peekable();
        for call in thread.first_call..thread.first_call + thread.calls {
            let failure = failures.next_if(|failed| failed.call == call);
            let result = failure.map(|failed| failed.completed);
            let times = executions.remove(&call).unwrap_or(0);
            self.not_executed += u64::from(result == Some(Completion::No));
            self.uncertain += u64::from(result == Some(Completion::Maybe));
            self.executed_twice += u64::from(times > 1);
            self.violations += u64::from(!is_as_told(self.case.policy, result, times));
        }
    }

    fn row(&self) -> FailoverRow {
        FailoverRow {
            case: self.case,
            trials: self.trials,
            recovery: self.recovery.summary(),
            left_early: self.left_early,
            all_calls: self.all_calls,
            not_executed: self.not_executed,
            uncertain: self.uncertain,
            executed_twice: self.executed_twice,
            violations: self.violations,
        }
    }
}

impl FailoverOutcome {
    pub(super) fn new(
        plan: &FailoverPlan,
        environment: Environment,
        figures: Vec<CaseFigures>,
    ) -> Self {
        let mut answered = Record::new();
        let mut recoveries = Plug::ALL.map(|plug| (plug, Record::new())).to_vec();
        let tried: Vec<_> = figures.into_iter().filter(|of| of.trials > 0).collect();
        for of in &tried {
            answered.merge(&of.answered);
            for (plug, record) in &mut recoveries {
                if of.case.plug == *plug {
                    record.merge(&of.recovery);
                }
            }
        }
        Self {
            plan: plan.clone(),
            environment,
            rows: tried.iter().map(CaseFigures::row).collect(),
            answered: answered.summary(),
            recoveries,
        }
    }

    /// Returns the rows of a policy.
    pub(super) fn of(&self, policy: Semantics) -> impl Iterator<Item = &FailoverRow> {
        let rows = self.rows.iter();
        rows.filter(move |row| row.case.policy == policy)
    }

    /// Returns the number of deaths.
    pub(super) fn trials(&self) -> u64 {
        self.rows.iter().map(|row| row.trials).sum()
    }

    /// Returns the times of a death; nothing if no thread was there.
    pub(super) fn recovery(&self, plug: Plug) -> Option<&Record> {
        let of = self.recoveries.iter().find(|(of, _)| *of == plug);
        of.map(|(_, record)| record)
            .filter(|record| record.calls() > 0)
    }

    /// Returns the longest time from a death to the next reply, in µs: the bound of the heartbeats,
    /// and one call.
    pub(super) fn bound_us(&self) -> f64 {
        self.plan.bound().as_secs_f64() * 1e6 + self.answered.p99_us
    }
}
