//! The analysis of task sets: response times, slack and utilisation.

use chronorb_sched::{AnalysisError, Response, Time, analyse_sequences, first_late_step, share};

use crate::error::ScheduleError;
use crate::schedule::Schedule;
use crate::task_sets::TaskSets;

/// The result of an analysis.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Analysis {
    /// Whether every deadline is met.
    pub feasible: bool,
    /// The result of each operation of the schedule.
    pub operations: Vec<OperationResult>,
    /// The result of each transaction of the task sets.
    pub transactions: Vec<TransactionResult>,
    /// The utilisation of each resource of the task sets.
    pub resources: Vec<ResourceResult>,
    /// The rounds of the holistic analysis.
    pub rounds: u64,
}

/// The result of an operation, in the transaction that leaves it the least slack.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct OperationResult {
    /// The index of the transaction in the task sets.
    pub transaction: usize,
    /// The worst time from the arrival of the transaction to the end of the operation. It is a
    /// bound also in a set that does not fit, if late jobs go on.
    pub response: Response,
    /// The deadline from the arrival of the transaction.
    pub deadline: Time,
}

impl OperationResult {
    /// Returns the time between the worst response and the deadline; negative if it is late, and
    /// `None` if the response has no bound.
    pub fn slack(&self) -> Option<i128> {
        let response = self.response.time()?;
        Some(i128::from(self.deadline) - i128::from(response))
    }

    /// Whether the operation meets its deadline.
    pub fn is_on_time(&self) -> bool {
        self.response.meets(self.deadline)
    }
}

/// The result of a transaction.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TransactionResult {
    /// The worst response of each step, from the arrival of the transaction.
    pub steps: Vec<Response>,
    /// The worst response of all steps.
    pub response: Response,
    /// Whether each step meets its deadline.
    pub on_time: bool,
}

/// The utilisation of a processor or a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ResourceResult {
    /// The utilisation in billionths, rounded up.
    pub utilisation: u128,
}

impl TaskSets {
    /// Whether every deadline is met. This is faster than [`analyse`](Self::analyse), because it
    /// ends at the first one that is not.
    ///
    /// # Errors
    /// As for [`analyse`](Self::analyse).
    pub fn fits(&self) -> Result<bool, ScheduleError> {
        let late = first_late_step(&self.analysed_resources(), &self.analysed_transactions());
        Ok(late.map_err(of_schedule)?.is_none())
    }

    /// Analyses the task sets. `schedule` is the one that they were made of.
    ///
    /// # Errors
    /// [`ScheduleError::Analysis`] if the computation exceeds 64 bits or its bound of steps.
    pub fn analyse(&self, schedule: &Schedule) -> Result<Analysis, ScheduleError> {
        let transactions = self.analysed_transactions();
        let result = analyse_sequences(&self.analysed_resources(), &transactions);
        let result = result.map_err(of_schedule)?;
        let mut operations: Vec<Option<OperationResult>> = vec![None; schedule.operations.len()];
        let mut utilisations = vec![0; self.resources.len()];
        let mut results = Vec::with_capacity(transactions.len());
        for (index, (named, steps)) in self.transactions.iter().zip(result.responses).enumerate() {
            let mut on_time = true;
            let each = named.transaction.steps.iter().zip(&named.works).zip(&steps);
            for ((step, work), response) in each {
                utilisations[step.resource] += share(step.cost, named.transaction.period);
                let deadline = step.deadline.unwrap_or(named.transaction.deadline);
                on_time &= response.meets(deadline);
                let Some(operation) = work.executed() else {
                    continue;
                };
                let own = OperationResult {
                    transaction: index,
                    response: *response,
                    deadline,
                };
                let before = &mut operations[operation];
                // Of the pieces in one transaction the last one ends the operation.
                let is_worse = before.is_none_or(|before| tightness(&own) <= tightness(&before));
                if is_worse {
                    *before = Some(own);
                }
            }
            results.push(TransactionResult {
                response: steps.iter().copied().max().unwrap_or(Response::Bounded(0)),
                steps,
                on_time,
            });
        }
        let never = OperationResult {
            transaction: 0,
            response: Response::Bounded(0),
            deadline: Time::MAX,
        };
        Ok(Analysis {
            feasible: result.schedulable,
            operations: operations
                .into_iter()
                .map(|it| it.unwrap_or(never))
                .collect(),
            transactions: results,
            resources: utilisations
                .into_iter()
                .map(|utilisation| ResourceResult { utilisation })
                .collect(),
            rounds: result.rounds,
        })
    }
}

/// Returns the slack for comparisons; the least is the worst.
fn tightness(result: &OperationResult) -> i128 {
    result.slack().unwrap_or(i128::MIN)
}

/// Returns the error of an analysis of the whole schedule.
pub(crate) fn of_schedule(source: AnalysisError) -> ScheduleError {
    ScheduleError::Analysis {
        subject: "the schedule".to_owned(),
        source,
    }
}
