//! Holistic analysis of transactions over processors and links: Tindell and Clark (1994).
//!
//! Each step inherits the response time of its predecessor as jitter. The responses are computed
//! again until nothing changes. They only grow, so they are bounds once they are stable.
//!
//! # Why the responses are bounds
//! Suppose that the responses are stable, and that some job exceeds its own; take the first moment
//! at which that happens. Until then every job has kept to its response. So each step was released
//! within its jitter, and the job was delayed by no more than the analysis counts. It has therefore
//! ended, which is a contradiction.
//!
//! # Levels with an order
//! Steps of one priority count as more urgent than each other, which holds for any order among
//! them. If all of them are [ordered](crate::Step::ordered_by), the bound of earliest deadline
//! first without preemption holds as well, and the shorter one counts. Both only grow with the
//! jitters.
//!
//! # One response for a level
//! A transaction of one step, without jitter and order, on a processor that preempts, has the least
//! time w that is its execution and the work of all others of at least its priority in w. If w is
//! at most its period, it is also the work of all of them, itself among them. So w is the same for
//! all such transactions of one priority and blocking whose period is at least w, and is computed
//! once. A bound [along its path](path) is none for them: it counts at least as much of others.
//!
//! # Suspended steps
//! A step that suspends itself waits in its blocking, whose parts can be anywhere in its response.
//! Others execute meanwhile, so its work can come together at the end of its response. A step that
//! it delays therefore counts each of its jobs that has not ended: with offset O and response R,
//! its jitter is R − O. That holds from any moment on, so also from the start of a busy period of
//! work that does not suspend itself. A response of a suspended step holds for one job at a time:
//! it is unbounded above the period, as several threads could execute its jobs in another order.
//!
//! # Late steps
//! A step that is late goes on, so its response stays a bound, and the jitter of what follows. The
//! analysis continues until all responses are stable. A response that has no bound, or for which
//! none was found, makes that of each step unbounded which depends on it.

mod admission;
mod demand;
mod path;
mod state;

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;

use self::demand::Demand;
use self::state::{StepState, number_families};
use crate::error::{AnalysisError, StepGrant, Steps};
use crate::ordered::OrderedLevel;
use crate::rta::{BusyPeriod, Preemption, Response, response_up_to};
use crate::task::{Task, Time, validate};
use crate::transaction::{Resource, Transaction};

/// The responses of transactions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HolisticAnalysis {
    /// Whether every transaction meets its deadline.
    pub schedulable: bool,
    /// The worst response of each step of each transaction, from the arrival of the transaction.
    /// Those of a set that is not schedulable are bounds as well, if late jobs go on.
    ///
    /// [`Response::Unbounded`] if a resource is used beyond its capacity, if the jitter of steps
    /// that delay each other grows without end, or if no bound was found within the bound of steps
    /// or below 1,000 times the deadline or the period, and the jitter.
    pub responses: Vec<Vec<Response>>,
    /// The number of rounds.
    pub rounds: u64,
}

/// Analyses transactions, as if all of their steps were independent.
///
/// # Errors
/// [`AnalysisError`] for zero values or a step on no resource, and if the computation exceeds 64
/// bits or its bound of steps before any step is late. The index of a task is that of the
/// transaction.
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
    let mut granted = StepGrant::ALL;
    analyse(resources, transactions, OwnSteps::Counted, &mut granted)
}

/// Analyses transactions as [`analyse_transactions`] does, and also counts that the steps of a
/// transaction follow each other, so that they do not delay each other. No response is longer.
///
/// If the responses of a step and of those before and after it are at most the period, they have
/// ended when the transaction arrives again. From its release on, the step is then delayed by at
/// most the jobs of each other branch and transaction that have not ended, as far as they keep to
/// their responses, and by those that arrive later. The same holds for several steps that follow
/// each other, together: a job of another transaction delays all of them only once. The shortest
/// of these bounds and of that of [`analyse_transactions`] counts.
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
    let mut granted = StepGrant::ALL;
    analyse(resources, transactions, OwnSteps::LeftOut, &mut granted)
}

/// Returns the transaction and the step that [`analyse_sequences`] finds to be late first, or
/// `None` if all deadlines are met. The analysis ends there, so it is faster for a verdict alone.
///
/// # Errors
/// As for [`analyse_transactions`].
///
/// # Example
/// ```
/// use chronorb_sched::{Resource, Step, Transaction, first_late_step};
///
/// let tasks = [(5, 10, 2), (6, 20, 1), (2, 40, 0)].map(|(cost, period, priority)| {
///     Transaction::new(period, vec![Step::new(0, cost, priority)])
/// });
/// assert_eq!(first_late_step(&[Resource::default()], &tasks)?, None);
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn first_late_step(
    resources: &[Resource],
    transactions: &[Transaction],
) -> Result<Option<(usize, usize)>, AnalysisError> {
    let mut analysis = Analysis::new(resources, transactions, OwnSteps::LeftOut)?;
    let all: Vec<_> = analysis.steps().collect();
    analysis.run_steps(&all, LateRound::Ended)
}

/// Analyses transactions as [`analyse_sequences`] does, but ends with `None` at the first step that
/// is late.
///
/// # Errors
/// As for [`analyse_transactions`].
pub fn analyse_while_on_time(
    resources: &[Resource],
    transactions: &[Transaction],
) -> Result<Option<HolisticAnalysis>, AnalysisError> {
    let mut analysis = Analysis::new(resources, transactions, OwnSteps::LeftOut)?;
    let all: Vec<_> = analysis.steps().collect();
    let late = analysis.run_steps(&all, LateRound::Ended)?;
    Ok(late.is_none().then(|| HolisticAnalysis {
        schedulable: true,
        responses: analysis.responses(),
        rounds: analysis.rounds,
    }))
}

/// Checks the values of transactions.
pub(crate) fn check(
    resources: &[Resource],
    transactions: &[Transaction],
) -> Result<(), AnalysisError> {
    Analysis::new(resources, transactions, OwnSteps::Counted).map(drop)
}

pub use admission::{AdmissionControl, AdmissionError, LateStep, SessionId, Shortfall, StepOwner};

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
    granted: &mut StepGrant,
) -> Result<HolisticAnalysis, AnalysisError> {
    let mut analysis = Analysis::new(resources, transactions, own)?;
    analysis.granted = *granted;
    let late = analysis.run_on_time();
    if let Ok(Some(_)) = late {
        analysis.run_late();
    }
    *granted = analysis.granted;
    let late = late?;
    granted.check()?;
    Ok(HolisticAnalysis {
        schedulable: late.is_none(),
        responses: analysis.responses(),
        rounds: analysis.rounds,
    })
}

/// The responses that are looked for, in multiples of the deadline or the period.
const LONGEST: Time = 1_000;

/// An analysis: the steps as tasks of their resources.
#[derive(Debug)]
struct Analysis<'a> {
    resources: Cow<'a, [Resource]>,
    transactions: Cow<'a, [Transaction]>,
    own: OwnSteps,
    /// The tasks of each resource. The jitter of a task does not contain its offset.
    tasks: Vec<Vec<Task>>,
    /// The transaction and the step of each task.
    owners: Vec<Vec<(usize, usize)>>,
    states: Vec<Vec<StepState>>,
    /// Whether some step of each resource suspends itself.
    has_suspended: Vec<bool>,
    rounds: u64,
    /// The changes of the last round; `None` before the first one.
    fresh: Option<Changes>,
    /// The steps that the caller grants.
    granted: StepGrant,
    /// The work of resources with many steps.
    demand: Demand,
}

/// The responses of a round that transactions of one step share, by their resource, priority and
/// blocking.
type LevelResponses = HashMap<(usize, u32, Time), Response>;

/// The steps of a round in which one is late.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LateRound {
    /// All of them are computed.
    Completed,
    /// Those after the late one are not.
    Ended,
}

impl<'a> Analysis<'a> {
    fn new(
        resources: &'a [Resource],
        transactions: &'a [Transaction],
        own: OwnSteps,
    ) -> Result<Self, AnalysisError> {
        Self::of(Cow::Borrowed(resources), Cow::Borrowed(transactions), own)
    }

    fn of(
        resources: Cow<'a, [Resource]>,
        transactions: Cow<'a, [Transaction]>,
        own: OwnSteps,
    ) -> Result<Self, AnalysisError> {
        let mut analysis = Self {
            own,
            tasks: vec![Vec::new(); resources.len()],
            owners: vec![Vec::new(); resources.len()],
            states: Vec::with_capacity(transactions.len()),
            has_suspended: vec![false; resources.len()],
            rounds: 0,
            fresh: None,
            granted: StepGrant::ALL,
            demand: Demand::default(),
            resources,
            transactions,
        };
        for index in 0..analysis.transactions.len() {
            analysis.add(index)?;
        }
        Ok(analysis)
    }

    /// Adds the steps of a transaction.
    fn add(&mut self, index: usize) -> Result<(), AnalysisError> {
        let transaction = &self.transactions[index];
        let mut states: Vec<StepState> = Vec::with_capacity(transaction.steps.len());
        for (number, step) in transaction.steps.iter().enumerate() {
            if let Some(index) = step.after.filter(|after| *after >= number) {
                return Err(AnalysisError::NoSuchIndex {
                    what: "earlier step",
                    index,
                });
            }
            let resource = self.resources.get(step.resource);
            let resource = resource.ok_or(AnalysisError::NoSuchIndex {
                what: "resource",
                index: step.resource,
            })?;
            let task = Task::new(step.cost, transaction.period)
                .with_deadline(transaction.deadline_of(number))
                .with_jitter(transaction.jitter.saturating_add(step.wait))
                .with_blocking(step.blocking.max(resource.blocking))
                .with_priority(step.priority);
            let task = Task {
                parts: step.parts,
                ..task
            };
            validate(&[task]).map_err(|error| error.with_task(index))?;
            let before = transaction.before(number);
            let offset = before.map_or(0, |before| {
                let it = &transaction.steps[before];
                states[before].offset.saturating_add(it.least.min(it.cost))
            });
            states.push(StepState {
                position: (step.resource, self.tasks[step.resource].len()),
                before,
                offset,
                delay: after_wait(transaction.jitter, step.wait),
                wait: step.wait,
                response: Response::Bounded(0),
                changed: true,
                family: (0, 0),
                ends: Cell::default(),
                starts: Cell::default(),
            });
            self.has_suspended[step.resource] |= step.suspends;
            self.tasks[step.resource].push(task);
            self.owners[step.resource].push((index, number));
        }
        number_families(&mut states);
        self.states.push(states);
        Ok(())
    }

    fn step_count(&self) -> usize {
        self.states.iter().map(Vec::len).sum()
    }

    /// Returns the responses of the last round.
    fn responses(&self) -> Vec<Vec<Response>> {
        let of = |states: &Vec<StepState>| states.iter().map(|it| it.response).collect();
        self.states.iter().map(of).collect()
    }

    /// Returns all transactions and steps.
    fn steps(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let counts: Vec<_> = self.states.iter().map(Vec::len).collect();
        let each = counts.into_iter().enumerate();
        each.flat_map(|(transaction, count)| (0..count).map(move |step| (transaction, step)))
    }

    fn deadline_of(&self, (transaction, step): (usize, usize)) -> Time {
        self.transactions[transaction].deadline_of(step)
    }

    /// Runs rounds until nothing changes, or to the end of the first round in which a step is late.
    /// Returns that step.
    fn run_on_time(&mut self) -> Result<Option<(usize, usize)>, AnalysisError> {
        let all: Vec<_> = self.steps().collect();
        self.run_steps(&all, LateRound::Completed)
    }

    /// Runs rounds of some steps, on which no others depend, as [`run_on_time`](Self::run_on_time).
    fn run_steps(
        &mut self,
        steps: &[(usize, usize)],
        late_round: LateRound,
    ) -> Result<Option<(usize, usize)>, AnalysisError> {
        let mut budget = Steps::of(self.step_count(), self.granted);
        let late = self.run_rounds(steps, late_round, &mut budget);
        self.granted = budget.granted();
        // Some parts of an analysis go on without those that took too many steps.
        self.granted.check()?;
        late
    }

    fn run_rounds(
        &mut self,
        steps: &[(usize, usize)],
        late_round: LateRound,
        budget: &mut Steps,
    ) -> Result<Option<(usize, usize)>, AnalysisError> {
        self.fresh = None;
        self.index(steps);
        loop {
            let mut late = None;
            let mut levels = LevelResponses::new();
            let mut responses = Vec::with_capacity(steps.len());
            budget.visit(steps.len())?;
            budget.visit(self.update_demand())?;
            for it in steps {
                let deadline = self.deadline_of(*it);
                let response = if self.is_stale(*it) {
                    self.response(*it, deadline, &mut levels, budget)?
                } else {
                    self.states[it.0][it.1].response
                };
                if late.is_none() && !response.meets(deadline) {
                    late = Some(*it);
                    if late_round == LateRound::Ended {
                        return Ok(late);
                    }
                }
                responses.push(response);
            }
            let goes_on = self.inherit(steps, &responses);
            if late.is_some() || !goes_on {
                return Ok(late);
            }
        }
    }

    /// Runs rounds until nothing changes. What exceeds 64 bits, the bound of steps or [`LONGEST`]
    /// is unbounded. There is no result if what the caller grants is used up.
    fn run_late(&mut self) {
        let first = Steps::new(self.step_count());
        let mut budget = Steps::of(self.step_count(), self.granted);
        let all: Vec<_> = self.steps().collect();
        self.fresh = None;
        self.index(&all);
        loop {
            let mut levels = LevelResponses::new();
            let mut responses = Vec::with_capacity(all.len());
            self.update_demand();
            for it in all.iter().copied() {
                let transaction = &self.transactions[it.0];
                let longest = self.deadline_of(it).max(transaction.period);
                let longest = longest.saturating_add(transaction.jitter);
                let longest = longest.saturating_mul(LONGEST);
                if !self.is_stale(it) {
                    responses.push(self.states[it.0][it.1].response);
                    continue;
                }
                let response = budget.part(8, |part| self.response(it, longest, &mut levels, part));
                self.granted = budget.granted();
                if self.granted.check().is_err() {
                    return;
                }
                let response = response.ok().filter(|response| response.meets(longest));
                responses.push(response.unwrap_or(Response::Unbounded));
            }
            if !self.inherit(&all, &responses) {
                return;
            }
            if budget.is_below(&first, 16) {
                self.give_up();
                return;
            }
        }
    }

    /// Prepares the sums of the rounds of some steps.
    fn index(&mut self, steps: &[(usize, usize)]) {
        let resource = |it: &(usize, usize)| self.states[it.0][it.1].position.0;
        self.demand = Demand::new(steps.iter().map(resource), &self.tasks);
    }

    /// Prepares the sums of a round. Returns the number of their terms.
    fn update_demand(&mut self) -> usize {
        self.demand.update(&self.tasks, &self.owners, &self.states)
    }

    /// Makes each step unbounded whose response changed in the last round, or depends on one that
    /// did. The responses of the others are stable.
    fn give_up(&mut self) {
        let mut open: Vec<_> = self.steps().collect();
        open.retain(|(transaction, step)| self.states[*transaction][*step].changed);
        let none_marked = self.states.iter().map(|it| vec![false; it.len()]);
        let mut is_marked: Vec<_> = none_marked.collect();
        while let Some(it) = open.pop() {
            if std::mem::replace(&mut is_marked[it.0][it.1], true) {
                continue;
            }
            self.states[it.0][it.1].response = Response::Unbounded;
            open.extend(self.steps().filter(|other| self.depends_on(*other, it)));
        }
    }

    /// Whether the response of a step depends on that of another one.
    fn depends_on(&self, step: (usize, usize), other: (usize, usize)) -> bool {
        let state = &self.states[step.0][step.1];
        let (resource, task) = state.position;
        let priority = self.tasks[resource][task].priority;
        let delays = |(task, owner): (&Task, &(usize, usize))| {
            let follows =
                owner.0 == other.0 && self.states[owner.0][owner.1].before == Some(other.1);
            task.priority >= priority && (follows || *owner == other)
        };
        let is_next = step.0 == other.0
            && (state.before == Some(other.1) || state.is_related(&self.states[other.0][other.1]));
        is_next
            || self.tasks[resource]
                .iter()
                .zip(&self.owners[resource])
                .any(delays)
    }

    /// Computes the response of a step, from the arrival of its transaction. Of one that exceeds
    /// the limit, the result is a part that does.
    fn response(
        &self,
        (transaction, step): (usize, usize),
        limit: Time,
        levels: &mut LevelResponses,
        budget: &mut Steps,
    ) -> Result<Response, AnalysisError> {
        let state = &self.states[transaction][step];
        if state.response == Response::Unbounded {
            return Ok(Response::Unbounded);
        }
        let (resource, number) = state.position;
        let task = &self.tasks[resource][number];
        if task.blocking == Time::MAX {
            return Ok(Response::Unbounded);
        }
        let own = &self.transactions[transaction].steps[step];
        let is_alone = self.states[transaction].len() == 1
            && !own.suspends
            && self.resources[resource].preemption == Preemption::Preemptive
            && own.order.is_none()
            && task.jitter == 0;
        let level = (resource, task.priority, task.blocking);
        // An unbounded response is unbounded for the whole level.
        let is_shared = |response: &Response| {
            let time = response.time();
            is_alone && time.is_none_or(|time| time <= task.period)
        };
        if let Some(response) = levels.get(&level).copied().filter(is_shared) {
            return Ok(response);
        }
        budget.visit(self.tasks[resource].len())?;
        let response = self.own_response((transaction, step), limit, is_alone, budget)?;
        if is_shared(&response) {
            levels.insert(level, response);
        }
        Ok(response)
    }

    /// Computes the response of a step, which is perhaps the only one of its transaction.
    fn own_response(
        &self,
        (transaction, step): (usize, usize),
        limit: Time,
        is_alone: bool,
        budget: &mut Steps,
    ) -> Result<Response, AnalysisError> {
        let state = &self.states[transaction][step];
        let limit = limit.saturating_sub(state.offset);
        let Some(tasks) = self.deferred(state) else {
            return Ok(Response::Unbounded);
        };
        let plain = self.plain_response(state, &tasks, limit, budget)?;
        let Response::Bounded(mut time) = plain else {
            return Ok(Response::Unbounded);
        };
        if is_alone {
            return Ok(plain);
        }
        if self.own == OwnSteps::LeftOut {
            time = self.along_paths((transaction, step), time, budget)?;
        }
        // A bound that takes too many steps is none; the other one holds.
        if let Ok(Some(ordered)) = budget.part(8, |part| self.in_order(state, &tasks, part)) {
            time = time.min(ordered);
        }
        let since_arrival = time.checked_add(state.offset);
        let since_arrival = since_arrival.ok_or(AnalysisError::TooLarge)?;
        let own = &self.transactions[transaction];
        if own.steps[step].suspends && since_arrival > own.period {
            return Ok(Response::Unbounded);
        }
        Ok(Response::Bounded(since_arrival))
    }

    /// Returns the tasks of the resource of a step, with the jitter by which the work of those that
    /// suspend themselves can be deferred. `None` if that of one that delays the step has no bound.
    fn deferred(&self, state: &StepState) -> Option<Cow<'_, [Task]>> {
        let (resource, number) = state.position;
        let mut tasks = Cow::Borrowed(&self.tasks[resource][..]);
        if !self.has_suspended[resource] {
            return Some(tasks);
        }
        let priority = tasks[number].priority;
        for (other, (transaction, step)) in self.owners[resource].iter().enumerate() {
            let suspends = self.transactions[*transaction].steps[*step].suspends;
            if other == number || !suspends || tasks[other].priority < priority {
                continue;
            }
            let it = &self.states[*transaction][*step];
            let deferred = it.response.time()?.saturating_sub(it.offset);
            let task = &mut tasks.to_mut()[other];
            task.jitter = task.jitter.max(deferred);
        }
        Some(tasks)
    }

    /// Computes the response of a step without its offset, as if it were independent.
    fn plain_response(
        &self,
        state: &StepState,
        tasks: &[Task],
        limit: Time,
        budget: &mut Steps,
    ) -> Result<Response, AnalysisError> {
        let (resource, number) = state.position;
        let own = &tasks[number];
        let preemption = self.resources[resource].preemption;
        let levels = self
            .demand
            .levels(resource)
            .filter(|_| !self.has_suspended[resource]);
        if let Some(levels) = levels.filter(|it| it.has_releases(own.priority)) {
            match levels.share(own.priority) {
                Some(Ordering::Greater) => return Ok(Response::Unbounded),
                Some(Ordering::Less) => {
                    let above = levels.released(own.priority, vec![own.load()]);
                    let blocking = self.blocking(state);
                    let mut starts = state.starts.get();
                    let mut jobs = BusyPeriod::new(own, blocking, &above, preemption);
                    let response = jobs.worst(None, limit, &mut starts, budget);
                    state.starts.set(starts);
                    return response;
                }
                _ => {}
            }
        }
        let is_unbounded = |(task, owner): (&Task, &(usize, usize))| {
            let other = &self.states[owner.0][owner.1];
            task.priority >= own.priority && other.delay == Response::Unbounded
        };
        if tasks.iter().zip(&self.owners[resource]).any(is_unbounded) {
            return Ok(Response::Unbounded);
        }
        response_up_to(tasks, number, preemption, limit, budget)
    }

    /// Returns the response of a step without its offset in a level that is served in an order.
    fn in_order(
        &self,
        state: &StepState,
        tasks: &[Task],
        budget: &mut Steps,
    ) -> Result<Option<Time>, AnalysisError> {
        let (resource, number) = state.position;
        let (transaction, step) = self.owners[resource][number];
        let has_order = self.transactions[transaction].steps[step].order.is_some();
        if !has_order || self.resources[resource].preemption == Preemption::NonPreemptive {
            return Ok(None);
        }
        let priority = tasks[number].priority;
        let (mut level, mut above) = (Vec::new(), Vec::new());
        let (mut position, mut blocking) = (0, 0);
        let all = tasks.iter().zip(&self.owners[resource]);
        for (index, (task, (transaction, step))) in all.enumerate() {
            if task.priority > priority {
                above.push(task.load());
            } else if task.priority == priority {
                let it = &self.transactions[*transaction].steps[*step];
                let order = it.order.filter(|_| !it.suspends);
                let offset = self.states[*transaction][*step].offset;
                let Some(since_offset) = order.and_then(|order| order.checked_sub(offset)) else {
                    return Ok(None);
                };
                if index == number {
                    position = level.len();
                }
                blocking = task.blocking.max(blocking);
                level.push(task.with_deadline(since_offset));
            }
        }
        if level.len() < 2 {
            return Ok(None);
        }
        let spread = level[position].jitter.saturating_add(state.offset);
        let level = OrderedLevel {
            tasks: &level,
            above: &above,
            blocking,
        };
        level.response(position, spread, budget)
    }

    /// Takes over the responses of steps in a round, and makes each the jitter of the steps that
    /// follow it. Returns whether anything changed on which a response depends.
    fn inherit(&mut self, steps: &[(usize, usize)], responses: &[Response]) -> bool {
        self.rounds += 1;
        let mut goes_on = false;
        let mut fresh = Changes {
            levels: vec![None; self.resources.len()],
            transactions: vec![false; self.transactions.len()],
        };
        for ((transaction, number), response) in steps.iter().zip(responses) {
            let states = &mut self.states[*transaction];
            let state = &mut states[*number];
            state.changed = state.response != *response;
            state.response = *response;
            let (offset, position, wait) = (state.offset, state.position, state.wait);
            let is_counted = self.own == OwnSteps::LeftOut || self.has_suspended[position.0];
            goes_on |= is_counted && state.changed;
            let priority = self.tasks[position.0][position.1].priority;
            if state.changed {
                fresh.note(*transaction, (position.0, priority));
            }
            let Some(before) = state.before else {
                continue;
            };
            let delay = match states[before].response {
                Response::Bounded(time) => after_wait(time.saturating_sub(offset), wait),
                Response::Unbounded => Response::Unbounded,
            };
            if states[*number].delay != delay {
                goes_on = true;
                states[*number].delay = delay;
                fresh.note(*transaction, (position.0, priority));
            }
            if let Response::Bounded(jitter) = delay {
                self.tasks[position.0][position.1].jitter = jitter;
            }
        }
        self.fresh = Some(fresh);
        goes_on
    }

    /// Whether anything changed in the last round on which the response of a step may depend: in
    /// its transaction, or in work that delays a step of it.
    fn is_stale(&self, (transaction, _): (usize, usize)) -> bool {
        let Some(fresh) = &self.fresh else {
            return true;
        };
        let steps = &self.transactions[transaction].steps;
        let mut delayed = steps.iter();
        fresh.transactions[transaction]
            || delayed.any(|step| fresh.levels[step.resource] >= Some(step.priority))
    }
}

/// The changes of a round.
#[derive(Debug)]
struct Changes {
    /// The most urgent step of each resource whose response or release changed.
    levels: Vec<Option<u32>>,
    /// Whether a step of the transaction changed.
    transactions: Vec<bool>,
}

impl Changes {
    fn note(&mut self, transaction: usize, (resource, priority): (usize, u32)) {
        self.transactions[transaction] = true;
        self.levels[resource] = self.levels[resource].max(Some(priority));
    }
}

/// Returns the delay of a release after a wait on no resource.
fn after_wait(delay: Time, wait: Time) -> Response {
    match delay.checked_add(wait) {
        Some(delay) if wait < Time::MAX => Response::Bounded(delay),
        _ => Response::Unbounded,
    }
}
