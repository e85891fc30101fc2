//! Holistic analysis of transactions over processors and links: Tindell and Clark (1994).
//!
//! Each step inherits the response time of its predecessor as jitter. The responses are computed
//! again until nothing changes. They are pessimistic, because the steps of one transaction count as
//! if they could meet.

use crate::error::{AnalysisError, Steps};
use crate::rta::{Preemption, Response, response_of};
use crate::task::{Load, Task, Time, validate};

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
    /// The least execution or transmission time; zero if it is unknown.
    pub least: Time,
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
            least: 0,
        }
    }

    /// Sets the step after which it begins.
    #[must_use]
    pub const fn after(mut self, step: usize) -> Self {
        self.after = Some(step);
        self
    }

    /// Sets the least execution or transmission time; the cost is the greatest one.
    #[must_use]
    pub const fn with_least(mut self, least: Time) -> Self {
        self.least = least;
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
    analyse(resources, transactions, OwnSteps::Counted)
}

/// Analyses transactions as [`analyse_transactions`] does, and also counts that the steps of a
/// transaction follow each other, so that they do not delay each other. No response is longer.
///
/// While every response is at most its period, each step has at most one job that waits. From its
/// release on, a step is then delayed by at most one waiting job of each more urgent step of other
/// branches and transactions, and by those that arrive later. The shorter one of this bound and of
/// that of [`analyse_transactions`] counts; with deadlines beyond a period the latter alone.
///
/// # Errors
/// As for [`analyse_transactions`].
///
/// # Example
/// ```
/// use chronorb_sched::{Resource, Response, Step, Transaction, analyse_sequences};
///
/// let call = vec![Step::new(0, 4, 1), Step::new(1, 8, 1), Step::new(0, 3, 1)];
/// let cpus = [Resource::default(), Resource::default()];
/// let analysis = analyse_sequences(&cpus, &[Transaction::new(50, call)])?;
/// assert_eq!(analysis.responses[0], [4, 12, 15].map(Response::Bounded));
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn analyse_sequences(
    resources: &[Resource],
    transactions: &[Transaction],
) -> Result<HolisticAnalysis, AnalysisError> {
    let is_within_period = |it: &Transaction| {
        let mut steps = it.steps.iter();
        steps.all(|step| step.deadline.unwrap_or(it.deadline) <= it.period)
    };
    let own = if transactions.iter().all(is_within_period) {
        OwnSteps::LeftOut
    } else {
        OwnSteps::Counted
    };
    analyse(resources, transactions, own)
}

/// The treatment of the steps of one transaction that follow each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum OwnSteps {
    Counted,
    LeftOut,
}

fn analyse(
    resources: &[Resource],
    transactions: &[Transaction],
    own: OwnSteps,
) -> Result<HolisticAnalysis, AnalysisError> {
    let mut sets = Sets::new(resources, transactions)?;
    let mut steps = Steps::new(sets.count());
    let mut rounds = 0;
    loop {
        rounds += 1;
        let responses = sets.responses(own, resources, &mut steps)?;
        let on_time = transactions.iter().zip(&responses).all(|(it, responses)| {
            let mut each = it.steps.iter().zip(responses);
            each.all(|(step, response)| response.meets(step.deadline.unwrap_or(it.deadline)))
        });
        if !on_time || !sets.inherit(own, &responses) {
            return Ok(HolisticAnalysis {
                schedulable: on_time,
                responses,
                rounds,
            });
        }
    }
}

/// The steps as tasks of their resources. The jitter of a task does not contain its offset.
struct Sets {
    tasks: Vec<Vec<Task>>,
    /// The transaction and the step of each task.
    owners: Vec<Vec<(usize, usize)>>,
    transactions: Vec<Vec<StepState>>,
}

/// A step among the steps of all transactions.
struct StepState {
    /// The resource, and the index of the task there.
    position: (usize, usize),
    before: Option<usize>,
    /// The least time from the arrival of the transaction to the release.
    offset: Time,
    /// The longest response of the last round, from the arrival.
    response: Time,
    /// The step and those that follow it are of this range, in an order of its own.
    family: (usize, usize),
}

impl StepState {
    /// Whether one of two steps of a transaction follows the other.
    fn is_related(&self, other: &Self) -> bool {
        let (a, b) = (self.family, other.family);
        (a.0..a.1).contains(&b.0) || (b.0..b.1).contains(&a.0)
    }
}

impl Sets {
    fn new(resources: &[Resource], transactions: &[Transaction]) -> Result<Self, AnalysisError> {
        let mut sets = Self {
            tasks: vec![Vec::new(); resources.len()],
            owners: vec![Vec::new(); resources.len()],
            transactions: Vec::with_capacity(transactions.len()),
        };
        for (index, transaction) in transactions.iter().enumerate() {
            let mut own: Vec<StepState> = Vec::with_capacity(transaction.steps.len());
            for (number, step) in transaction.steps.iter().enumerate() {
                if let Some(index) = step.after.filter(|after| *after >= number) {
                    return Err(AnalysisError::NoSuchIndex {
                        what: "earlier step",
                        index,
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
                let before = step.after.or_else(|| number.checked_sub(1));
                let offset = before.map_or(0, |before| {
                    let least = transaction.steps[before].least;
                    own[before]
                        .offset
                        .saturating_add(least.min(transaction.steps[before].cost))
                });
                own.push(StepState {
                    position: (step.resource, sets.tasks[step.resource].len()),
                    before,
                    offset,
                    response: 0,
                    family: (0, 0),
                });
                sets.tasks[step.resource].push(task);
                sets.owners[step.resource].push((index, number));
            }
            number_families(&mut own);
            sets.transactions.push(own);
        }
        Ok(sets)
    }

    fn count(&self) -> usize {
        self.transactions.iter().map(Vec::len).sum()
    }

    fn responses(
        &self,
        own: OwnSteps,
        resources: &[Resource],
        steps: &mut Steps,
    ) -> Result<Vec<Vec<Response>>, AnalysisError> {
        let mut all = Vec::with_capacity(self.transactions.len());
        for states in &self.transactions {
            let each = states.iter().map(|state| {
                let (resource, task) = state.position;
                let preemption = resources[resource].preemption;
                let response = response_of(&self.tasks[resource], task, preemption, steps)?;
                let Response::Bounded(time) = response else {
                    return Ok(Response::Unbounded);
                };
                let time = match own {
                    OwnSteps::Counted => time,
                    OwnSteps::LeftOut => self
                        .after_release(state, preemption, time, steps)?
                        .min(time),
                };
                let since_arrival = time.checked_add(state.offset);
                let since_arrival = since_arrival.ok_or(AnalysisError::TooLarge)?;
                Ok(Response::Bounded(since_arrival))
            });
            all.push(each.collect::<Result<_, _>>()?);
        }
        Ok(all)
    }

    /// Returns the response of a step without its offset, if no step has two jobs that wait; at
    /// most `limit`.
    fn after_release(
        &self,
        state: &StepState,
        preemption: Preemption,
        limit: Time,
        steps: &mut Steps,
    ) -> Result<Time, AnalysisError> {
        let (resource, number) = state.position;
        let tasks = &self.tasks[resource];
        let (transaction, _) = self.owners[resource][number];
        let own = &tasks[number];
        let mut above = Vec::new();
        let mut blocking = own.blocking;
        for (task, (owner, step)) in tasks.iter().zip(&self.owners[resource]) {
            let other = &self.transactions[*owner][*step];
            if *owner == transaction && state.is_related(other) {
                continue;
            }
            if task.priority >= own.priority {
                // A job that waits at the release arrived at most its response before.
                let waited = other.response.max(task.jitter.saturating_add(other.offset));
                above.push(Load {
                    jitter: waited.saturating_sub(other.offset),
                    ..task.load()
                });
            } else if preemption == Preemption::NonPreemptive {
                blocking = blocking.max(task.cost);
            }
        }
        let rest = limit.saturating_sub(own.jitter);
        let end = match preemption {
            Preemption::Preemptive => {
                let work = own.cost.checked_add(blocking);
                bounded(work, rest, &above, steps, Load::work_within)?
            }
            Preemption::NonPreemptive => {
                let start = bounded(Some(blocking), rest, &above, steps, Load::work_through)?;
                start.saturating_add(own.cost)
            }
        };
        Ok(end.saturating_add(own.jitter))
    }

    /// Makes each response the jitter of the steps that follow it. Returns whether anything changed
    /// on which a response depends.
    fn inherit(&mut self, own: OwnSteps, responses: &[Vec<Response>]) -> bool {
        let mut changed = false;
        for (states, responses) in self.transactions.iter_mut().zip(responses) {
            for (state, response) in states.iter_mut().zip(responses) {
                let response = response.time().unwrap_or(Time::MAX);
                changed |= own == OwnSteps::LeftOut && state.response != response;
                state.response = response;
                if let Some(before) = state.before {
                    let before = responses[before].time().unwrap_or(Time::MAX);
                    let inherited = before.saturating_sub(state.offset);
                    let (resource, task) = state.position;
                    let jitter = &mut self.tasks[resource][task].jitter;
                    changed |= *jitter != inherited;
                    *jitter = inherited;
                }
            }
        }
        changed
    }
}

/// Numbers steps so that those that follow a step have the numbers just after it.
fn number_families(states: &mut [StepState]) {
    let mut sizes = vec![1_usize; states.len()];
    for number in (1..states.len()).rev() {
        if let Some(before) = states[number].before {
            sizes[before] += sizes[number];
        }
    }
    // The next free number within the range of each step.
    let mut next = vec![0; states.len()];
    for number in 0..states.len() {
        let first = match states[number].before {
            Some(before) => next[before],
            None => 0,
        };
        if let Some(before) = states[number].before {
            next[before] += sizes[number];
        }
        states[number].family = (first, first + sizes[number]);
        next[number] = first + 1;
    }
}

/// Returns the least time that is `base` and the work of the loads in it, or `limit` if it is
/// above.
fn bounded(
    base: Option<Time>,
    limit: Time,
    loads: &[Load],
    steps: &mut Steps,
    work: impl Fn(&Load, Time) -> Time,
) -> Result<Time, AnalysisError> {
    let base = base.ok_or(AnalysisError::TooLarge)?;
    let mut time = base;
    while time < limit {
        steps.take(loads.len())?;
        let longer = (loads.iter()).fold(base, |sum, load| sum.saturating_add(work(load, time)));
        if longer <= time {
            return Ok(time);
        }
        time = longer;
    }
    Ok(limit)
}

const fn of_transaction(error: AnalysisError, task: usize) -> AnalysisError {
    match error {
        AnalysisError::ZeroPeriod { .. } => AnalysisError::ZeroPeriod { task },
        AnalysisError::ZeroCost { .. } => AnalysisError::ZeroCost { task },
        AnalysisError::ZeroDeadline { .. } => AnalysisError::ZeroDeadline { task },
        other => other,
    }
}
