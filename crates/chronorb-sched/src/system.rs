//! A simulator in virtual time for transactions: jobs that pass over several processors and links
//! by fixed priorities, and take locks.
//!
//! At one instant, pieces of work end first, then jobs are released, and then the resources choose.

use std::collections::HashSet;

use crate::blocking::LockProtocol;
use crate::error::AnalysisError;
use crate::rta::Preemption;
use crate::sim::JobCounts;
use crate::task::Time;
use crate::transaction::{Resource, Transaction};

/// The rules of a simulation of transactions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SystemSimulation {
    /// The time at which the simulation ends. A job counts if its deadline is not after it.
    pub window: Time,
    /// The first arrival of each transaction; those that are left out arrive at zero.
    pub offsets: Vec<Time>,
    /// The critical sections.
    pub sections: Vec<StepSection>,
    /// The protocol of the locks.
    pub protocol: LockProtocol,
    /// Whether [`SystemResult::slices`] is filled.
    pub record: bool,
}

impl SystemSimulation {
    /// Creates a simulation from a synchronous start at zero to `window`, without locks.
    pub const fn new(window: Time) -> Self {
        Self {
            window,
            offsets: Vec::new(),
            sections: Vec::new(),
            protocol: LockProtocol::Inheritance,
            record: false,
        }
    }
}

/// A critical section of a step. Sections of one step do not overlap.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StepSection {
    /// The index of the transaction.
    pub transaction: usize,
    /// The index of the step.
    pub step: usize,
    /// The number of the lock.
    pub lock: usize,
    /// The execution time of the step before it takes the lock.
    pub start: Time,
    /// The execution time for which it holds the lock.
    pub length: Time,
}

/// A time in which a step of a job runs without interruption.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StepSlice {
    /// The index of the transaction.
    pub transaction: usize,
    /// The number of the job, from 0.
    pub job: u64,
    /// The index of the step.
    pub step: usize,
    /// The start.
    pub start: Time,
    /// The end.
    pub end: Time,
    /// Whether the step holds a lock.
    pub locked: bool,
}

/// The result of a simulation of transactions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SystemResult {
    /// The jobs of each step of each transaction. Responses count from the arrival of the
    /// transaction.
    pub steps: Vec<Vec<JobCounts>>,
    /// The slices in the order of their ends, if they are recorded.
    pub slices: Vec<StepSlice>,
    /// The instants at which the resources chose.
    pub events: u64,
}

/// Simulates transactions whose steps need their whole cost in each job. Equal priorities are
/// served by release, or by their [order](crate::Step::ordered_by).
///
/// With [`LockProtocol::Ceiling`] a holder has the greatest priority of the steps that take the
/// lock; with [`LockProtocol::Inheritance`] it has that of the steps that wait.
///
/// # Errors
/// [`AnalysisError`] for zero values, indices of nothing, sections that overlap or exceed their
/// step, and [`AnalysisError::TooComplex`] after 2²⁶ looks at jobs.
///
/// # Example
/// ```
/// use chronorb_sched::*;
///
/// let cpus = [Resource::default(), Resource::default()];
/// let call = vec![Step::new(0, 4, 1), Step::new(1, 8, 1), Step::new(0, 3, 1)];
/// let transactions = [Transaction::new(50, call), Transaction::new(50, vec![Step::new(1, 6, 2)])];
/// let result = simulate_transactions(&cpus, &transactions, &SystemSimulation::new(1000))?;
/// assert_eq!(result.steps[0][2].worst_response, 17);
/// # Ok::<(), AnalysisError>(())
/// ```
pub fn simulate_transactions(
    resources: &[Resource],
    transactions: &[Transaction],
    rules: &SystemSimulation,
) -> Result<SystemResult, AnalysisError> {
    let mut system = System::new(resources, transactions, rules)?;
    loop {
        system.end_steps()?;
        if system.now >= rules.window {
            return Ok(system.finish());
        }
        system.arrive()?;
        system.choose()?;
        system.advance()?;
    }
}

/// The work of a simulation, in looks at jobs.
const MAX_WORK: u64 = 1 << 26;
/// The slices that are recorded, at most.
const MAX_SLICES: usize = 1 << 20;

/// A step of a job that is released and has not ended.
#[derive(Clone, Debug)]
struct Active {
    transaction: usize,
    step: usize,
    job: u64,
    arrival: Time,
    release: Time,
    done: Time,
    /// The next section, of those of the step.
    section: usize,
    holds: bool,
    /// The start of the open slice, if it runs.
    since: Option<Time>,
    /// The priority with ceilings and inheritance.
    priority: u32,
    /// The lock for which it waits.
    waits_for: Option<usize>,
}

struct System<'a> {
    resources: &'a [Resource],
    transactions: &'a [Transaction],
    rules: &'a SystemSimulation,
    /// The sections of each step of each transaction, by their start.
    sections: Vec<Vec<Vec<StepSection>>>,
    /// The steps that follow each step of each transaction.
    followers: Vec<Vec<Vec<usize>>>,
    /// Whether each step of each transaction is of a level with an order.
    is_ordered: Vec<Vec<bool>>,
    ceilings: Vec<u32>,
    next: Vec<(Time, u64)>,
    active: Vec<Active>,
    now: Time,
    work: u64,
    result: SystemResult,
}

impl<'a> System<'a> {
    fn new(
        resources: &'a [Resource],
        transactions: &'a [Transaction],
        rules: &'a SystemSimulation,
    ) -> Result<Self, AnalysisError> {
        let mut followers = Vec::with_capacity(transactions.len());
        for (task, it) in transactions.iter().enumerate() {
            if it.period == 0 {
                return Err(AnalysisError::ZeroPeriod { task });
            }
            let mut own = vec![Vec::new(); it.steps.len()];
            for (number, step) in it.steps.iter().enumerate() {
                if step.cost == 0 {
                    return Err(AnalysisError::ZeroCost { task });
                }
                if step.resource >= resources.len() {
                    return Err(no_such("resource", step.resource));
                }
                match step.after.or_else(|| number.checked_sub(1)) {
                    Some(before) if before >= number => {
                        return Err(no_such("earlier step", before));
                    }
                    Some(before) => own[before].push(number),
                    None => {}
                }
            }
            followers.push(own);
        }
        let steps = |it: &Transaction| vec![JobCounts::default(); it.steps.len()];
        let offset = |number| rules.offsets.get(number).copied().unwrap_or(0);
        let (sections, ceilings) = sections(transactions, rules)?;
        Ok(Self {
            resources,
            transactions,
            rules,
            sections,
            followers,
            is_ordered: ordered(transactions),
            ceilings,
            next: (0..transactions.len()).map(|it| (offset(it), 0)).collect(),
            active: Vec::new(),
            now: 0,
            work: 0,
            result: SystemResult {
                steps: transactions.iter().map(steps).collect(),
                ..SystemResult::default()
            },
        })
    }

    fn take(&mut self, looks: usize) -> Result<(), AnalysisError> {
        self.work += looks as u64 + 1;
        if self.work > MAX_WORK {
            return Err(AnalysisError::TooComplex);
        }
        Ok(())
    }

    fn sections_of(&self, active: &Active) -> &[StepSection] {
        &self.sections[active.transaction][active.step]
    }

    /// Ends steps and sections at the present time, and releases what follows.
    fn end_steps(&mut self) -> Result<(), AnalysisError> {
        self.take(self.active.len())?;
        let mut released = Vec::new();
        let mut index = 0;
        while index < self.active.len() {
            let it = &self.active[index];
            let sections = self.sections_of(it);
            if it.holds {
                let section = sections[it.section];
                if it.done == section.start + section.length {
                    self.close_slice(index)?;
                    self.active[index].holds = false;
                    self.active[index].section += 1;
                }
            }
            let it = &self.active[index];
            let transaction = &self.transactions[it.transaction];
            let step = &transaction.steps[it.step];
            if it.done < step.cost {
                index += 1;
                continue;
            }
            self.close_slice(index)?;
            let ended = self.active.swap_remove(index);
            let deadline = step.deadline.unwrap_or(transaction.deadline);
            let counts = &mut self.result.steps[ended.transaction][ended.step];
            let response = self.now - ended.arrival;
            counts.worst_response = counts.worst_response.max(response);
            if ended.arrival.saturating_add(deadline) <= self.rules.window {
                if response <= deadline {
                    counts.met += 1;
                } else {
                    counts.missed += 1;
                }
            }
            for follower in &self.followers[ended.transaction][ended.step] {
                released.push(self.released(
                    ended.transaction,
                    *follower,
                    ended.job,
                    ended.arrival,
                ));
            }
        }
        self.active.extend(released);
        Ok(())
    }

    fn released(&self, transaction: usize, step: usize, job: u64, arrival: Time) -> Active {
        Active {
            transaction,
            step,
            job,
            arrival,
            release: self.now,
            done: 0,
            section: 0,
            holds: false,
            since: None,
            priority: self.transactions[transaction].steps[step].priority,
            waits_for: None,
        }
    }

    fn arrive(&mut self) -> Result<(), AnalysisError> {
        self.take(self.next.len())?;
        for (number, transaction) in self.transactions.iter().enumerate() {
            while self.next[number].0 <= self.now {
                let (arrival, job) = self.next[number];
                if !transaction.steps.is_empty() {
                    let first = self.released(number, 0, job, arrival);
                    self.active.push(first);
                }
                let next = arrival.checked_add(transaction.period);
                self.next[number] = (next.unwrap_or(Time::MAX), job + 1);
                if next.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Lets each resource run its most urgent step.
    fn choose(&mut self) -> Result<(), AnalysisError> {
        for it in &mut self.active {
            it.waits_for = None;
        }
        for resource in 0..self.resources.len() {
            loop {
                self.take(self.active.len())?;
                self.inherit()?;
                let Some(chosen) = self.most_urgent(resource) else {
                    break;
                };
                // A step that comes to a section takes its lock, or waits for it.
                let it = &self.active[chosen];
                let section = self.sections_of(it).get(it.section);
                let lock = section.filter(|section| !it.holds && section.start == it.done);
                if let Some(section) = lock.copied() {
                    let is_held = self.active.iter().any(|other| {
                        let own = self.sections_of(other);
                        other.holds && own[other.section].lock == section.lock
                    });
                    if is_held {
                        self.active[chosen].waits_for = Some(section.lock);
                        self.close_slice(chosen)?;
                        continue;
                    }
                    self.close_slice(chosen)?;
                    self.active[chosen].holds = true;
                }
                self.switch(resource, chosen)?;
                break;
            }
        }
        Ok(())
    }

    /// Computes the priorities with locks, until waiters pass on nothing.
    fn inherit(&mut self) -> Result<(), AnalysisError> {
        for index in 0..self.active.len() {
            let it = &self.active[index];
            let mut priority = self.transactions[it.transaction].steps[it.step].priority;
            if it.holds && self.rules.protocol == LockProtocol::Ceiling {
                let lock = self.sections_of(it)[it.section].lock;
                priority = priority.max(self.ceilings[lock]);
            }
            self.active[index].priority = priority;
        }
        if self.rules.sections.is_empty() {
            return Ok(());
        }
        loop {
            self.take(self.active.len())?;
            let mut changed = false;
            for index in 0..self.active.len() {
                let it = &self.active[index];
                if !it.holds {
                    continue;
                }
                let lock = self.sections_of(it)[it.section].lock;
                let waiting = self
                    .active
                    .iter()
                    .filter(|other| other.waits_for == Some(lock));
                let most = waiting.map(|other| other.priority).max().unwrap_or(0);
                if most > it.priority {
                    self.active[index].priority = most;
                    changed = true;
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }

    fn most_urgent(&self, resource: usize) -> Option<usize> {
        let preemptive = self.resources[resource].preemption == Preemption::Preemptive;
        let own = self.active.iter().enumerate().filter(|(_, it)| {
            let step = &self.transactions[it.transaction].steps[it.step];
            step.resource == resource && it.waits_for.is_none()
        });
        let key = |it: &Active| {
            let step = &self.transactions[it.transaction].steps[it.step];
            let is_between = it.done == 0 || step.end_of_part(it.done - 1) == it.done;
            let has_begun = !preemptive && !is_between;
            let is_running = it.since.is_some();
            let order = step
                .order
                .filter(|_| self.is_ordered[it.transaction][it.step]);
            // What a level with an order has begun, it ends.
            let comes_first = is_running || order.is_some() && it.done > 0;
            (
                !has_begun,
                u32::MAX - it.priority,
                !comes_first,
                order.map(|order| it.arrival.saturating_add(order)),
                it.release,
                it.transaction,
                it.step,
                it.job,
            )
        };
        own.min_by_key(|(_, it)| key(it)).map(|(index, _)| index)
    }

    fn switch(&mut self, resource: usize, chosen: usize) -> Result<(), AnalysisError> {
        for index in 0..self.active.len() {
            let it = &self.active[index];
            let step = &self.transactions[it.transaction].steps[it.step];
            if step.resource == resource && index != chosen && it.since.is_some() {
                self.close_slice(index)?;
            }
        }
        let now = self.now;
        self.active[chosen].since.get_or_insert(now);
        Ok(())
    }

    fn close_slice(&mut self, index: usize) -> Result<(), AnalysisError> {
        let now = self.now;
        let it = &mut self.active[index];
        let Some(start) = it.since.take() else {
            return Ok(());
        };
        if self.rules.record && start < now {
            if self.result.slices.len() >= MAX_SLICES {
                return Err(AnalysisError::TooComplex);
            }
            self.result.slices.push(StepSlice {
                transaction: it.transaction,
                job: it.job,
                step: it.step,
                start,
                end: now,
                locked: it.holds,
            });
        }
        Ok(())
    }

    /// Runs the chosen steps to the next event.
    fn advance(&mut self) -> Result<(), AnalysisError> {
        self.result.events += 1;
        self.take(self.active.len())?;
        let mut time = self.rules.window - self.now;
        for (next, _) in &self.next {
            time = time.min(next.saturating_sub(self.now));
        }
        for it in self.active.iter().filter(|it| it.since.is_some()) {
            let step = &self.transactions[it.transaction].steps[it.step];
            let end = match self.resources[step.resource].preemption {
                Preemption::Preemptive => step.cost,
                Preemption::NonPreemptive => step.end_of_part(it.done),
            };
            time = time.min(end - it.done);
            if let Some(section) = self.sections_of(it).get(it.section) {
                let event = if it.holds {
                    section.start + section.length
                } else {
                    section.start
                };
                time = time.min(event - it.done);
            }
        }
        for it in self.active.iter_mut().filter(|it| it.since.is_some()) {
            it.done += time;
        }
        self.now += time;
        Ok(())
    }

    fn finish(mut self) -> SystemResult {
        for index in 0..self.active.len() {
            // A slice that is too many is one of the end, and is left out.
            if self.close_slice(index).is_err() {
                break;
            }
        }
        // A step whose deadline passed before it was released is missed as well.
        for it in &self.active {
            let transaction = &self.transactions[it.transaction];
            let mut open = vec![it.step];
            while let Some(number) = open.pop() {
                let step = &transaction.steps[number];
                let deadline = step.deadline.unwrap_or(transaction.deadline);
                if it.arrival.saturating_add(deadline) <= self.rules.window {
                    self.result.steps[it.transaction][number].missed += 1;
                }
                open.extend(&self.followers[it.transaction][number]);
            }
        }
        self.result
    }
}

/// Returns whether each step is of a level with an order: whether all steps of its resource and
/// priority have one.
fn ordered(transactions: &[Transaction]) -> Vec<Vec<bool>> {
    let all = || transactions.iter().flat_map(|it| &it.steps);
    let plain: HashSet<_> = all()
        .filter(|step| step.order.is_none())
        .map(|step| (step.resource, step.priority))
        .collect();
    let each = transactions.iter().map(|it| {
        let steps = it.steps.iter();
        let is_ordered = steps.map(|step| !plain.contains(&(step.resource, step.priority)));
        is_ordered.collect()
    });
    each.collect()
}

type SectionsOfSteps = Vec<Vec<Vec<StepSection>>>;

/// Sorts sections by their steps, and returns the ceiling of each lock.
fn sections(
    transactions: &[Transaction],
    rules: &SystemSimulation,
) -> Result<(SectionsOfSteps, Vec<u32>), AnalysisError> {
    let none = |it: &Transaction| vec![Vec::new(); it.steps.len()];
    let mut all: SectionsOfSteps = transactions.iter().map(none).collect();
    let mut locks: Vec<_> = rules.sections.iter().map(|it| it.lock).collect();
    locks.sort_unstable();
    locks.dedup();
    let mut ceilings = vec![0; locks.len()];
    for it in &rules.sections {
        let transaction = transactions.get(it.transaction);
        let transaction = transaction.ok_or_else(|| no_such("transaction", it.transaction))?;
        let step = transaction.steps.get(it.step);
        let step = step.ok_or_else(|| no_such("step", it.step))?;
        let end = it.start.checked_add(it.length);
        if it.length == 0 || end.is_none_or(|end| end > step.cost) {
            return Err(no_such("section within step", it.step));
        }
        // Locks are numbered by their position, so that any numbers can be given.
        let lock = locks.binary_search(&it.lock).unwrap_or_default();
        ceilings[lock] = step.priority.max(ceilings[lock]);
        all[it.transaction][it.step].push(StepSection { lock, ..*it });
    }
    for sections in all.iter_mut().flatten() {
        sections.sort_by_key(|it| it.start);
        let overlap = sections
            .windows(2)
            .any(|two| two[0].start + two[0].length > two[1].start);
        if overlap {
            return Err(no_such(
                "section apart from others in step",
                sections[0].step,
            ));
        }
    }
    Ok((all, ceilings))
}

const fn no_such(what: &'static str, index: usize) -> AnalysisError {
    AnalysisError::NoSuchIndex { what, index }
}
