//! Admission of sessions to transactions that run.
//!
//! # Why an admission is incremental
//! The responses of a set are the least ones that are stable. More work makes none shorter, so
//! those of the set before are at most those of the set with the session, and the rounds go on from
//! there to the same result. Only steps that the session can delay are computed again: those of at
//! most its priority on its resources, and all that these can delay in turn.

use std::borrow::Cow;
use std::ops::Range;

use thiserror::Error;

use super::{Analysis, LateRound, OwnSteps, after_wait, analyse};
use crate::error::{AnalysisError, StepGrant};
use crate::rta::{Preemption, Response};
use crate::sensitivity::MILLION;
use crate::task::Time;
use crate::transaction::{Resource, Transaction};

/// The number of an admitted session.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(u64);

/// A session that is not admitted.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum AdmissionError {
    /// Deadlines would be missed.
    #[error("{} steps would be late", .0.late.len())]
    Late(Box<Shortfall>),
    /// The session cannot be analysed. The index of a task is that of the transaction among all.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// The session was never admitted, or is released.
    #[error("there is no such session")]
    NoSuchSession,
}

/// The time that is missing for a session.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Shortfall {
    /// The steps that would be late, the one with the greatest excess first.
    pub late: Vec<LateStep>,
    /// The greatest factor of all costs of the session with which it would be admitted, in
    /// millionths; zero if there is none.
    pub costs: u64,
    /// The least factor of all periods of the session with which it would be admitted, in
    /// millionths, rounded up to a hundredth; `None` if a hundredfold period is too short.
    pub periods: Option<u64>,
}

/// A step that a session would make late.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LateStep {
    /// The set of the transaction.
    pub owner: StepOwner,
    /// The index of the transaction in its set.
    pub transaction: usize,
    /// The index of the step.
    pub step: usize,
    /// The response with the session.
    pub response: Response,
    /// The deadline.
    pub deadline: Time,
}

impl LateStep {
    /// Returns the time by which the deadline is missed; `None` if the response has no bound.
    pub fn excess(&self) -> Option<Time> {
        Some(self.response.time()?.saturating_sub(self.deadline))
    }
}

/// The set that a step belongs to.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum StepOwner {
    /// The transactions from the start.
    Running,
    /// A session that was admitted before.
    Session(SessionId),
    /// The session that is not admitted.
    Candidate,
}

/// Transactions that run, and the sessions that are admitted to them.
///
/// # Example
/// ```
/// use chronorb_sched::*;
///
/// let task = |cost, period, priority| {
///     Transaction::new(period, vec![Step::new(0, cost, priority)])
/// };
/// let mut control = AdmissionControl::new(vec![Resource::default()], vec![task(30, 100, 1)])?;
/// let video = control.admit(&[task(20, 60, 2)])?;
/// let Err(AdmissionError::Late(shortfall)) = control.admit(&[task(20, 70, 3)]) else {
///     panic!("the third one has no room");
/// };
/// // The transaction from the start would end after 110, and its deadline is 100.
/// assert_eq!(shortfall.late[0].owner, StepOwner::Running);
/// assert_eq!(shortfall.late[0].excess(), Some(10));
/// // It would fit with 3/4 of the execution time.
/// assert_eq!(shortfall.costs, 750_000);
/// assert!(control.release(video));
/// assert!(control.admit(&[task(20, 70, 3)]).is_ok());
/// # Ok::<(), AdmissionError>(())
/// ```
#[derive(Debug)]
pub struct AdmissionControl {
    analysis: Analysis<'static>,
    /// The transactions from the start.
    running: usize,
    /// The sessions in the order of their transactions, and the number of these.
    sessions: Vec<(SessionId, usize)>,
    next: u64,
}

impl AdmissionControl {
    /// Creates the control of transactions that run.
    ///
    /// # Errors
    /// [`AdmissionError`] if they cannot be analysed, or miss deadlines.
    pub fn new(
        resources: Vec<Resource>,
        running: Vec<Transaction>,
    ) -> Result<Self, AdmissionError> {
        Self::with_granted(resources, running, StepGrant::ALL)
    }

    /// Creates the control of transactions that run, with a bound of the work of this call and all
    /// later ones together: the terms of the sums that they compute. Within the bound all results
    /// are those without it.
    ///
    /// # Errors
    /// As for [`new`](Self::new). If the bound is used up, this and all later calls fail with
    /// [`AnalysisError::TooComplex`], and nothing changes but by [`release`](Self::release).
    ///
    /// # Example
    /// ```
    /// use chronorb_sched::*;
    ///
    /// let task = |cost| Transaction::new(100, vec![Step::new(0, cost, 1)]);
    /// let mut control = AdmissionControl::bounded(vec![Resource::default()], vec![task(30)], 50)?;
    /// control.admit(&[task(20)])?;
    /// assert!(control.steps_left() < 50);
    /// // A shortfall needs more.
    /// let outcome = control.admit(&[task(60)]);
    /// assert_eq!(outcome, Err(AnalysisError::TooComplex.into()));
    /// # Ok::<(), AdmissionError>(())
    /// ```
    pub fn bounded(
        resources: Vec<Resource>,
        running: Vec<Transaction>,
        steps: u64,
    ) -> Result<Self, AdmissionError> {
        Self::with_granted(resources, running, StepGrant::Left(steps))
    }

    /// Returns the rest of the bound of its work; zero if it is used up.
    pub fn steps_left(&self) -> u64 {
        match self.analysis.granted {
            StepGrant::Left(steps) => steps,
            StepGrant::UsedUp => 0,
        }
    }

    fn with_granted(
        resources: Vec<Resource>,
        running: Vec<Transaction>,
        granted: StepGrant,
    ) -> Result<Self, AdmissionError> {
        let mut none = Analysis::of(
            Cow::Owned(resources),
            Cow::Owned(Vec::new()),
            OwnSteps::LeftOut,
        )?;
        none.granted = granted;
        let mut control = Self {
            analysis: none,
            running: 0,
            sessions: Vec::new(),
            next: 0,
        };
        if !control.add(&running)? {
            let mut late = control.late(&running)?;
            for it in &mut late {
                it.owner = StepOwner::Running;
            }
            return Err(AdmissionError::Late(Box::new(Shortfall {
                late,
                costs: 0,
                periods: None,
            })));
        }
        control.running = running.len();
        Ok(control)
    }

    /// Admits a session if all deadlines are met with it: its own, those of the transactions from
    /// the start, and those of all sessions before. Otherwise everything stays as it was.
    ///
    /// # Errors
    /// [`AdmissionError::Late`] with the steps that would be late, and what would fit. This takes
    /// longer than an admission, as the whole set is analysed.
    pub fn admit(&mut self, session: &[Transaction]) -> Result<SessionId, AdmissionError> {
        if !self.add(session)? {
            return Err(AdmissionError::Late(Box::new(self.shortfall(session)?)));
        }
        let id = SessionId(self.next);
        self.next += 1;
        self.sessions.push((id, session.len()));
        Ok(id)
    }

    /// Admits the first of several forms of a session that fits, as of one that can do with lower
    /// rates. Returns its index too.
    ///
    /// # Errors
    /// As for [`admit`](Self::admit), of the last form. Without a form this is
    /// [`AdmissionError::NoSuchSession`].
    pub fn admit_first(
        &mut self,
        forms: &[Vec<Transaction>],
    ) -> Result<(SessionId, usize), AdmissionError> {
        for (index, form) in forms.iter().enumerate() {
            if index + 1 == forms.len() {
                return Ok((self.admit(form)?, index));
            }
            if self.add(form)? {
                let id = SessionId(self.next);
                self.next += 1;
                self.sessions.push((id, form.len()));
                return Ok((id, index));
            }
        }
        Err(AdmissionError::NoSuchSession)
    }

    /// Replaces the transactions of a session, if the new ones fit in place of those before.
    /// Otherwise everything stays as it was.
    ///
    /// # Errors
    /// As for [`admit`](Self::admit), and [`AdmissionError::NoSuchSession`].
    pub fn change(
        &mut self,
        session: SessionId,
        transactions: &[Transaction],
    ) -> Result<(), AdmissionError> {
        let range = self.range(session).ok_or(AdmissionError::NoSuchSession)?;
        let before = self.analysis.transactions[range].to_vec();
        self.release(session);
        let outcome = self.admit(transactions);
        if outcome.is_err() {
            // It fitted before, so it fits again. The caller did not ask for that.
            let granted = std::mem::replace(&mut self.analysis.granted, StepGrant::ALL);
            let added = self.add(&before);
            self.analysis.granted = granted;
            added?;
            self.sessions.push((session, before.len()));
        } else if let Some((id, _)) = self.sessions.last_mut() {
            *id = session;
        }
        outcome.map(drop)
    }

    /// Ends a session, whose time is free for others from now on. Returns whether it was admitted.
    pub fn release(&mut self, session: SessionId) -> bool {
        let Some(range) = self.range(session) else {
            return false;
        };
        self.sessions.retain(|(id, _)| *id != session);
        self.analysis.remove(range);
        true
    }

    /// Returns the worst responses of the steps of a session, from the arrival of each transaction.
    pub fn responses(&self, session: SessionId) -> Option<Vec<Vec<Response>>> {
        let range = self.range(session)?;
        Some(self.analysis.responses()[range].to_vec())
    }

    /// Returns the worst responses of the transactions from the start.
    pub fn running(&self) -> Vec<Vec<Response>> {
        self.analysis.responses()[..self.running].to_vec()
    }

    /// Returns the transactions of a session, as indices of all.
    fn range(&self, session: SessionId) -> Option<Range<usize>> {
        let mut first = self.running;
        for (id, count) in &self.sessions {
            if *id == session {
                return Some(first..first + count);
            }
            first += count;
        }
        None
    }

    /// Adds transactions, if all deadlines are met with them. Returns whether they are.
    fn add(&mut self, session: &[Transaction]) -> Result<bool, AnalysisError> {
        self.try_with(session, Trial::Kept)
    }

    /// Returns whether all deadlines are met with further transactions.
    fn try_with(&mut self, session: &[Transaction], trial: Trial) -> Result<bool, AnalysisError> {
        let analysis = &mut self.analysis;
        let first = analysis.transactions.len();
        let suspended = session
            .iter()
            .position(|it| it.steps.iter().any(|step| step.suspends));
        if let Some(index) = suspended {
            return Err(AnalysisError::Suspends {
                task: first + index,
            });
        }
        analysis.transactions.to_mut().extend_from_slice(session);
        let added = (first..first + session.len()).try_for_each(|index| analysis.add(index));
        if let Err(error) = added {
            analysis.truncate(first);
            return Err(error);
        }
        let affected = analysis.affected(first..first + session.len());
        let before = analysis.save(&affected);
        let outcome = analysis.run_steps(&affected, LateRound::Ended);
        if trial == Trial::Undone || !matches!(outcome, Ok(None)) {
            analysis.restore(&affected, before);
            analysis.truncate(first);
        }
        Ok(outcome?.is_none())
    }

    /// Returns the steps that would be late with a session, the greatest excess first.
    fn late(&mut self, session: &[Transaction]) -> Result<Vec<LateStep>, AnalysisError> {
        let mut all = self.analysis.transactions.to_vec();
        all.extend_from_slice(session);
        let analysis = &mut self.analysis;
        let (own, granted) = (analysis.own, &mut analysis.granted);
        let result = analyse(&analysis.resources, &all, own, granted)?;
        let mut owners = vec![StepOwner::Running; self.running];
        for (id, count) in &self.sessions {
            owners.extend(vec![StepOwner::Session(*id); *count]);
        }
        owners.resize(all.len(), StepOwner::Candidate);
        let mut late = Vec::new();
        let (mut number, mut last) = (0, None);
        for ((transaction, responses), owner) in all.iter().zip(&result.responses).zip(owners) {
            number = if last == Some(owner) { number + 1 } else { 0 };
            last = Some(owner);
            for (step, response) in responses.iter().enumerate() {
                let deadline = transaction.deadline_of(step);
                if !response.meets(deadline) {
                    late.push(LateStep {
                        owner,
                        transaction: number,
                        step,
                        response: *response,
                        deadline,
                    });
                }
            }
        }
        let excess = |it: &LateStep| it.excess().unwrap_or(Time::MAX);
        late.sort_by_key(|it| std::cmp::Reverse(excess(it)));
        Ok(late)
    }

    fn shortfall(&mut self, session: &[Transaction]) -> Result<Shortfall, AnalysisError> {
        let late = self.late(session)?;
        let mut fits = |changed: Option<Vec<Transaction>>| {
            let fits = changed.map(|it| self.try_with(&it, Trial::Undone));
            self.analysis.granted.check()?;
            // What cannot be analysed does not fit.
            Ok::<_, AnalysisError>(matches!(fits, Some(Ok(true))))
        };
        let (mut costs, mut bad) = (0, MILLION);
        while bad - costs > 1 {
            let middle = costs + (bad - costs) / 2;
            if fits(with_costs(session, middle))? {
                costs = middle;
            } else {
                bad = middle;
            }
        }
        let (mut bad, mut periods) = (100, MOST_HUNDREDTHS);
        let mut found = None;
        if fits(with_periods(session, periods))? {
            while periods - bad > 1 {
                let middle = bad + (periods - bad) / 2;
                if fits(with_periods(session, middle))? {
                    periods = middle;
                } else {
                    bad = middle;
                }
            }
            found = Some(periods * (MILLION / 100));
        }
        Ok(Shortfall {
            late,
            costs,
            periods: found,
        })
    }
}

/// The end of an analysis with further transactions that meet their deadlines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Trial {
    /// The transactions stay.
    Kept,
    /// Everything is as before.
    Undone,
}

/// The longest period that is tried, in hundredths of that of the session.
const MOST_HUNDREDTHS: u64 = 10_000;

/// Returns a session with its costs multiplied by millionths, rounded up; `None` if a cost is zero.
fn with_costs(session: &[Transaction], factor: u64) -> Option<Vec<Transaction>> {
    let mut changed = session.to_vec();
    for step in changed.iter_mut().flat_map(|it| &mut it.steps) {
        *step = step.scaled(factor, MILLION).filter(|it| it.cost > 0)?;
    }
    Some(changed)
}

/// Returns a session with its periods multiplied by hundredths, rounded up. Deadlines stay.
fn with_periods(session: &[Transaction], factor: u64) -> Option<Vec<Transaction>> {
    let mut changed = session.to_vec();
    for it in &mut changed {
        let period = (u128::from(it.period) * u128::from(factor)).div_ceil(100);
        it.period = Time::try_from(period).ok()?;
    }
    Some(changed)
}

/// A step with what an analysis computes of it.
struct SavedStep {
    delay: Response,
    response: Response,
    jitter: Time,
}

impl Analysis<'_> {
    /// Returns the steps whose response can depend on some transactions, and those of these.
    fn affected(&self, transactions: Range<usize>) -> Vec<(usize, usize)> {
        let mut is_marked = vec![false; self.transactions.len()];
        // On each resource, what is affected has at most this priority.
        let mut levels: Vec<Option<u32>> = vec![None; self.resources.len()];
        let mut open: Vec<_> = transactions.collect();
        while !open.is_empty() {
            for index in open.drain(..) {
                is_marked[index] = true;
                for step in &self.transactions[index].steps {
                    // A longer message blocks more urgent ones, too.
                    let priority = match self.resources[step.resource].preemption {
                        Preemption::Preemptive => step.priority,
                        Preemption::NonPreemptive => u32::MAX,
                    };
                    levels[step.resource] = levels[step.resource].max(Some(priority));
                }
            }
            for (index, it) in self.transactions.iter().enumerate() {
                let mut steps = it.steps.iter();
                let is_delayed = steps.any(|it| Some(it.priority) <= levels[it.resource]);
                if is_delayed && !is_marked[index] {
                    open.push(index);
                }
            }
        }
        self.steps()
            .filter(|(index, _)| is_marked[*index])
            .collect()
    }

    fn save(&self, steps: &[(usize, usize)]) -> Vec<SavedStep> {
        let each = steps.iter().map(|(transaction, step)| {
            let state = &self.states[*transaction][*step];
            let (resource, task) = state.position;
            SavedStep {
                delay: state.delay,
                response: state.response,
                jitter: self.tasks[resource][task].jitter,
            }
        });
        each.collect()
    }

    fn restore(&mut self, steps: &[(usize, usize)], saved: Vec<SavedStep>) {
        for ((transaction, step), saved) in steps.iter().zip(saved) {
            let state = &mut self.states[*transaction][*step];
            let (resource, task) = state.position;
            (state.delay, state.response) = (saved.delay, saved.response);
            state.ends.take();
            state.starts.take();
            self.tasks[resource][task].jitter = saved.jitter;
        }
    }

    /// Removes all transactions from one on.
    fn truncate(&mut self, first: usize) {
        self.transactions.to_mut().truncate(first);
        self.states.truncate(first);
        for (tasks, owners) in self.tasks.iter_mut().zip(&mut self.owners) {
            let count = owners.partition_point(|(transaction, _)| *transaction < first);
            owners.truncate(count);
            tasks.truncate(count);
        }
    }

    /// Removes transactions, and computes what they delayed again.
    fn remove(&mut self, range: Range<usize>) {
        let moved = |(transaction, step): (usize, usize)| {
            let is_after = transaction >= range.end;
            (transaction - if is_after { range.len() } else { 0 }, step)
        };
        let affected = self.affected(range.clone()).into_iter();
        let affected = affected.filter(|(transaction, _)| !range.contains(transaction));
        let affected: Vec<_> = affected.map(moved).collect();
        self.transactions.to_mut().drain(range.clone());
        self.states.drain(range.clone());
        for (resource, tasks) in self.tasks.iter_mut().enumerate() {
            let owners = std::mem::take(&mut self.owners[resource]);
            let kept = owners.into_iter().zip(std::mem::take(tasks));
            for (owner, task) in kept.filter(|(owner, _)| !range.contains(&owner.0)) {
                let owner = moved(owner);
                self.states[owner.0][owner.1].position = (resource, tasks.len());
                self.owners[resource].push(owner);
                tasks.push(task);
            }
        }
        let before = self.save(&affected);
        for (transaction, step) in &affected {
            let jitter = self.transactions[*transaction].jitter;
            let state = &mut self.states[*transaction][*step];
            let (resource, task) = state.position;
            state.delay = after_wait(jitter, state.wait);
            state.response = Response::Bounded(0);
            state.ends.take();
            state.starts.take();
            self.tasks[resource][task].jitter = jitter.saturating_add(state.wait);
        }
        if !matches!(self.run_steps(&affected, LateRound::Ended), Ok(None)) {
            // The responses with more work are bounds as well.
            self.restore(&affected, before);
        }
    }
}
