//! The analysis of task sets: response times, slack and utilisation.

use chronorb_sched::{
    AnalysisError, HolisticAnalysis, Resource, Response, Time, Transaction, analyse_sequences,
    analyse_while_on_time, share,
};

use crate::error::ScheduleError;
use crate::schedule::Schedule;
use crate::shared_locks::MOST_TERMS;
use crate::task_sets::TaskSets;
use crate::threads::ThreadShortage;

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
    /// Threads that are fewer than requests can have at once. Those of an activity make it
    /// unbounded; the requests of a lane wait for them.
    pub shortages: Vec<ThreadShortage>,
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
        Ok(self.settle_by(analyse_while_on_time)?.is_some())
    }

    /// Analyses the task sets. `schedule` is the one that they were made of.
    ///
    /// # Errors
    /// [`ScheduleError::Analysis`] if the computation exceeds 64 bits or its bound of steps.
    pub fn analyse(&self, schedule: &Schedule) -> Result<Analysis, ScheduleError> {
        Ok(self.settle()?.analysis(schedule))
    }

    /// Analyses the task sets with the waits for threads, which are those of the result.
    pub(crate) fn settle(&self) -> Result<SettledSets, ScheduleError> {
        let settled = self.settle_by(|resources, transactions| {
            analyse_sequences(resources, transactions).map(Some)
        });
        settled.map(|it| it.expect("the analysis always has a result"))
    }

    /// Analyses the task sets as [`settle`](Self::settle) does, by an analysis that may end without
    /// a result.
    fn settle_by(
        &self,
        analyse: impl Fn(&[Resource], &[Transaction]) -> MaybeAnalysis,
    ) -> Result<Option<SettledSets>, ScheduleError> {
        let mut sets = self.clone();
        let mut waits = vec![0; sets.frames.len()];
        let mut shortages: Vec<ThreadShortage> = Vec::new();
        let mut terms = MOST_TERMS;
        sets.set_blocking(self, &[], false, &mut terms)
            .map_err(of_schedule)?;
        for round in 0.. {
            let is_last = round >= MOST_ROUNDS;
            let transactions = sets.analysed_transactions();
            let result = analyse(&sets.analysed_resources(), &transactions);
            let Some(result) = result.map_err(of_schedule)? else {
                return Ok(None);
            };
            let (mut longer, found) = sets.thread_waits(&result.responses, &waits);
            // The first round knows what is needed without the waits.
            for new in found {
                if !shortages.iter().any(|it| it.is_of_same(&new)) {
                    shortages.push(new);
                }
            }
            if is_last {
                // A wait that grows from round to round has no bound.
                for (longer, wait) in longer.iter_mut().zip(&waits) {
                    *longer = if *longer > *wait { Time::MAX } else { *wait };
                }
            }
            let blocking = sets.set_blocking(self, &result.responses, is_last, &mut terms);
            let is_blocked_longer = blocking.map_err(of_schedule)?;
            if longer == waits && !is_blocked_longer {
                return Ok(Some(SettledSets {
                    sets,
                    result,
                    shortages,
                }));
            }
            sets.set_waits(&longer);
            waits = longer;
        }
        unreachable!("a wait is without bound at last")
    }
}

/// The result of an analysis that may end without one.
type MaybeAnalysis = Result<Option<HolisticAnalysis>, AnalysisError>;

/// Task sets with the waits for threads, and their analysis.
pub(crate) struct SettledSets {
    pub(crate) sets: TaskSets,
    pub(crate) result: HolisticAnalysis,
    pub(crate) shortages: Vec<ThreadShortage>,
}

impl SettledSets {
    /// Returns the analysis by operation.
    pub(crate) fn analysis(self, schedule: &Schedule) -> Analysis {
        let Self {
            sets,
            result,
            shortages,
        } = self;
        let mut operations: Vec<Option<OperationResult>> = vec![None; schedule.operations.len()];
        let mut utilisations = vec![0; sets.resources.len()];
        let mut results = Vec::with_capacity(sets.transactions.len());
        for (index, (named, steps)) in sets.transactions.iter().zip(result.responses).enumerate() {
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
        Analysis {
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
            shortages,
        }
    }
}

/// The rounds after which a wait that still grows has no bound.
const MOST_ROUNDS: u32 = 64;

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
