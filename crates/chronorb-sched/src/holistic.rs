//! Holistic analysis of transactions over processors and links: Tindell and Clark (1994).
//!
//! Each step inherits the response time of its predecessor as jitter. The responses are computed
//! again until nothing changes. They are pessimistic, because the steps of one transaction count as
//! if they could meet.

use crate::error::{AnalysisError, Steps};
use crate::rta::{Preemption, Response, response_of};
use crate::task::{Task, Time, validate};

/// A processor or a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Resource {
    /// Whether more urgent work preempts the work of the resource.
    pub preemption: Preemption,
    /// The longest delay by work outside of the model, for example a frame of other traffic.
    pub blocking: Time,
}

/// A step of a transaction: a piece of execution on a processor, or a message on a link. A two-way
/// call has two steps of the client and one of the server, with the messages between them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// The index of the resource.
    pub resource: usize,
    /// The worst-case execution or transmission time.
    pub cost: Time,
    /// The priority on the resource; a greater one is more urgent.
    pub priority: u32,
    /// The blocking by locks, or by messages outside of the model.
    pub blocking: Time,
    /// The step of the same transaction after whose end it begins, which precedes it in the list.
    /// `None` for the one just before it. Several steps can have one predecessor, as after a
    /// one-way call.
    pub after: Option<usize>,
    /// The deadline, from the arrival of the transaction; `None` for that of the transaction.
    pub deadline: Option<Time>,
}

impl Step {
    /// Creates a step without blocking, which follows the one before it.
    pub const fn new(resource: usize, cost: Time, priority: u32) -> Self {
        Self {
            resource,
            cost,
            priority,
            blocking: 0,
            after: None,
            deadline: None,
        }
    }

    /// Sets the step after which it begins.
    #[must_use]
    pub const fn after(mut self, step: usize) -> Self {
        self.after = Some(step);
        self
    }

    /// Sets a deadline of its own, from the arrival of the transaction.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Time) -> Self {
        self.deadline = Some(deadline);
        self
    }
}

/// A chain or a tree of steps, each of which begins when its predecessor ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Transaction {
    /// The minimum time between two arrivals.
    pub period: Time,
    /// The deadline of all steps that have none of their own, relative to the arrival.
    pub deadline: Time,
    /// The maximum time from the arrival to the release of the first step.
    pub jitter: Time,
    /// The steps in their order.
    pub steps: Vec<Step>,
}

impl Transaction {
    /// Creates a transaction whose deadline is its period, without jitter.
    pub const fn new(period: Time, steps: Vec<Step>) -> Self {
        Self {
            period,
            deadline: period,
            jitter: 0,
            steps,
        }
    }
}

/// The responses of transactions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HolisticAnalysis {
    /// Whether every transaction meets its deadline.
    pub schedulable: bool,
    /// The worst response of each step of each transaction, from the arrival of the transaction.
    /// If the set is not schedulable, the values are those of the round that showed it, and lower
    /// bounds of those that a full analysis would have.
    pub responses: Vec<Vec<Response>>,
    /// The number of rounds.
    pub rounds: u64,
}

/// Analyses transactions. The analysis ends when nothing changes, or with the first response above
/// a deadline.
///
/// # Errors
/// [`AnalysisError`] for zero values or a step on no resource, and if the computation exceeds 64
/// bits or its bound of steps. The index of a task is that of the transaction.
///
/// # Example
/// ```
/// use chronorb_sched::{Resource, Response, Step, Transaction, analyse_transactions};
///
/// let cpus = [Resource::default(), Resource::default()];
/// let first = Transaction::new(20, vec![Step::new(0, 3, 2), Step::new(1, 4, 1)]);
/// let second = Transaction::new(40, vec![Step::new(0, 6, 1), Step::new(1, 5, 2)]);
/// let analysis = analyse_transactions(&cpus, &[first, second])?;
/// assert!(analysis.schedulable);
/// assert_eq!(analysis.responses[0], [3, 12].map(Response::Bounded));
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn analyse_transactions(
    resources: &[Resource],
    transactions: &[Transaction],
) -> Result<HolisticAnalysis, AnalysisError> {
    let mut sets = Sets::new(resources, transactions)?;
    let mut steps = Steps::new(sets.count());
    let mut rounds = 0;
    loop {
        rounds += 1;
        let responses = sets.responses(transactions, resources, &mut steps)?;
        let on_time = transactions.iter().zip(&responses).all(|(it, responses)| {
            let mut each = it.steps.iter().zip(responses);
            each.all(|(step, response)| response.meets(step.deadline.unwrap_or(it.deadline)))
        });
        if !on_time || !sets.inherit(transactions, &responses) {
            return Ok(HolisticAnalysis {
                schedulable: on_time,
                responses,
                rounds,
            });
        }
    }
}

/// The steps as tasks of their resources.
struct Sets {
    tasks: Vec<Vec<Task>>,
    /// The resource and the index there of each step of each transaction.
    positions: Vec<Vec<(usize, usize)>>,
}

impl Sets {
    fn new(resources: &[Resource], transactions: &[Transaction]) -> Result<Self, AnalysisError> {
        let mut tasks = vec![Vec::new(); resources.len()];
        let mut positions = Vec::with_capacity(transactions.len());
        for (index, transaction) in transactions.iter().enumerate() {
            let mut own = Vec::with_capacity(transaction.steps.len());
            for (number, step) in transaction.steps.iter().enumerate() {
                if let Some(after) = step.after.filter(|after| *after >= number) {
                    return Err(AnalysisError::NoSuchIndex {
                        what: "earlier step",
                        index: after,
                    });
                }
                let resource =
                    (resources.get(step.resource)).ok_or(AnalysisError::NoSuchIndex {
                        what: "resource",
                        index: step.resource,
                    })?;
                let blocking = step.blocking.max(resource.blocking);
                let task = Task::new(step.cost, transaction.period)
                    .with_deadline(step.deadline.unwrap_or(transaction.deadline))
                    .with_jitter(transaction.jitter)
                    .with_blocking(blocking)
                    .with_priority(step.priority);
                validate(&[task]).map_err(|error| of_transaction(error, index))?;
                own.push((step.resource, tasks[step.resource].len()));
                tasks[step.resource].push(task);
            }
            positions.push(own);
        }
        Ok(Self { tasks, positions })
    }

    fn count(&self) -> usize {
        self.positions.iter().map(Vec::len).sum()
    }

    fn responses(
        &self,
        transactions: &[Transaction],
        resources: &[Resource],
        steps: &mut Steps,
    ) -> Result<Vec<Vec<Response>>, AnalysisError> {
        let mut all = Vec::with_capacity(transactions.len());
        for positions in &self.positions {
            let each = positions.iter().map(|(resource, task)| {
                let preemption = resources[*resource].preemption;
                response_of(&self.tasks[*resource], *task, preemption, steps)
            });
            all.push(each.collect::<Result<_, _>>()?);
        }
        Ok(all)
    }

    /// Makes each response the jitter of the next step. Returns whether any jitter changed.
    fn inherit(&mut self, transactions: &[Transaction], responses: &[Vec<Response>]) -> bool {
        let mut changed = false;
        let each = transactions.iter().zip(&self.positions).zip(responses);
        for ((transaction, positions), responses) in each {
            for (number, (resource, task)) in positions.iter().enumerate().skip(1) {
                let before = transaction.steps[number].after.unwrap_or(number - 1);
                let jitter = &mut self.tasks[*resource][*task].jitter;
                let inherited = responses[before].time().unwrap_or(Time::MAX);
                changed |= *jitter != inherited;
                *jitter = inherited;
            }
        }
        changed
    }
}

const fn of_transaction(error: AnalysisError, task: usize) -> AnalysisError {
    match error {
        AnalysisError::ZeroPeriod { .. } => AnalysisError::ZeroPeriod { task },
        AnalysisError::ZeroCost { .. } => AnalysisError::ZeroCost { task },
        AnalysisError::ZeroDeadline { .. } => AnalysisError::ZeroDeadline { task },
        other => other,
    }
}
