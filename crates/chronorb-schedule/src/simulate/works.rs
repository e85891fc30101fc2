//! The works of activities: what each job executes and sends.

use std::collections::{BTreeMap, HashMap};

use super::run::{Numbers, SimulationError, WorkOutcome};
use super::work::Work;
use crate::schedule::{DeclaredStep, Schedule, Time};
use crate::task_sets::ResourceKind;

/// The source of an activity.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// An operation with a period.
    Operation(usize),
    /// A declared transaction.
    Transaction(usize),
}

/// An activity with its works.
#[derive(Debug)]
pub(super) struct Activity {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) period: Time,
    pub(super) jitter: Time,
    pub(super) deadline: Time,
    /// The sum of the execution times of its operations, each once.
    pub(super) execution: Time,
    /// The greatest criticality and importance of its operations.
    pub(super) criticality: u8,
    pub(super) importance: u8,
    pub(super) works: Vec<WorkOutcome>,
    /// The number of times that each job does each work.
    pub(super) expected: Vec<u64>,
    pub(super) index: HashMap<Work, usize>,
}

/// Returns the position of each operation in an order in which callees come before callers.
pub(super) fn call_order(schedule: &Schedule) -> Result<Vec<usize>, SimulationError> {
    const NEW: usize = usize::MAX;
    const OPEN: usize = usize::MAX - 1;
    let mut positions = vec![NEW; schedule.operations.len()];
    let mut count = 0;
    for start in 0..positions.len() {
        let mut path = vec![(start, 0)];
        if positions[start] != NEW {
            continue;
        }
        positions[start] = OPEN;
        while let Some((operation, next)) = path.last_mut() {
            let Some(call) = schedule.operations[*operation].calls.get(*next) else {
                positions[*operation] = count;
                count += 1;
                path.pop();
                continue;
            };
            *next += 1;
            match positions[call.operation] {
                NEW => {
                    positions[call.operation] = OPEN;
                    path.push((call.operation, 0));
                }
                OPEN => return Err(SimulationError::Cycle),
                _ => {}
            }
        }
    }
    Ok(positions)
}

/// Returns the activities of a schedule: operations with a period, and then transactions.
pub(super) fn activities(schedule: &Schedule, numbers: &Numbers, order: &[usize]) -> Vec<Activity> {
    let mut all = Vec::new();
    for (number, it) in schedule.operations.iter().enumerate() {
        let Some(period) = it.period else { continue };
        let deadline = it.deadline.unwrap_or(period);
        let mut activity = Activity::new(
            it.name.clone(),
            Source::Operation(number),
            (period, it.jitter, deadline),
        );
        activity.add_operation(schedule, numbers, order, number);
        all.push(activity);
    }
    let mut of_messages = numbers.priorities[schedule.operations.len()..].iter();
    for (number, it) in schedule.transactions.iter().enumerate() {
        let own = it.has_only_messages();
        let own = own.then(|| of_messages.next().copied()).flatten();
        let mut activity = Activity::new(
            it.name.clone(),
            Source::Transaction(number),
            (it.period, it.jitter, it.deadline),
        );
        for (step, declared) in it.steps.iter().enumerate() {
            match *declared {
                DeclaredStep::Operation { operation } => {
                    activity.add_operation(schedule, numbers, order, operation);
                }
                DeclaredStep::Message { link, .. } => {
                    let called = || message_priority(&it.steps, step, &numbers.priorities);
                    let priority = own.unwrap_or_else(called);
                    let work = Work::Message { step };
                    activity.add(work, ResourceKind::Link(link), priority, None, 1);
                }
            }
        }
        all.push(activity);
    }
    all
}

/// Returns the priority of a declared message: that of the operation after it, or else of the last
/// one before it.
fn message_priority(steps: &[DeclaredStep], step: usize, priorities: &[u32]) -> u32 {
    let executed = |step: &DeclaredStep| match step {
        DeclaredStep::Operation { operation } => Some(priorities[*operation]),
        DeclaredStep::Message { .. } => None,
    };
    let after = steps[step..].iter().find_map(executed);
    let before = || steps[..step].iter().rev().find_map(executed);
    after.or_else(before).unwrap_or(0)
}

impl Activity {
    fn new(name: String, source: Source, (period, jitter, deadline): (Time, Time, Time)) -> Self {
        Self {
            name,
            source,
            period,
            jitter,
            deadline,
            execution: 0,
            criticality: 0,
            importance: 0,
            works: Vec::new(),
            expected: Vec::new(),
            index: HashMap::new(),
        }
    }

    /// Adds an operation with all calls that it makes.
    fn add_operation(
        &mut self,
        schedule: &Schedule,
        numbers: &Numbers,
        order: &[usize],
        operation: usize,
    ) {
        // By position: the executions of each operation, and its messages by link.
        let mut open = BTreeMap::from([(order[operation], (operation, 1_u64))]);
        let mut reached = Vec::new();
        let mut messages: BTreeMap<Work, (usize, u64)> = BTreeMap::new();
        while let Some((_, (caller, count))) = open.pop_last() {
            reached.push((caller, count));
            for call in &schedule.operations[caller].calls {
                let operation = call.operation;
                let calls = count.saturating_mul(call.count.into());
                let entry = open.entry(order[operation]).or_insert((operation, 0));
                entry.1 = entry.1.saturating_add(calls);
                let Some(sent) = call.messages else { continue };
                let mut add = |work| {
                    let entry = messages.entry(work).or_insert((sent.link, 0));
                    entry.1 = entry.1.saturating_add(calls);
                };
                add(Work::Request { operation });
                if sent.reply.is_some() {
                    add(Work::Reply { operation });
                }
            }
        }
        for (operation, count) in reached.into_iter().rev() {
            let it = &schedule.operations[operation];
            let priority = numbers.priorities[operation];
            let mut message = |activity: &mut Self, work| {
                if let Some((link, count)) = messages.remove(&work) {
                    activity.add(work, ResourceKind::Link(link), priority, None, count);
                }
            };
            message(self, Work::Request { operation });
            let work = Work::Execution { operation };
            if !self.index.contains_key(&work) {
                self.execution = self.execution.saturating_add(it.cost);
                self.criticality = self.criticality.max(it.criticality);
                self.importance = self.importance.max(it.importance);
            }
            let deadline = it.deadline.filter(|_| it.period.is_none());
            let processor = ResourceKind::Processor(it.processor);
            self.add(work, processor, priority, deadline, count);
            message(self, Work::Reply { operation });
        }
    }

    fn add(
        &mut self,
        work: Work,
        resource: ResourceKind,
        priority: u32,
        deadline: Option<Time>,
        count: u64,
    ) {
        let next = self.works.len();
        let index = *self.index.entry(work).or_insert(next);
        if index < next {
            self.expected[index] = self.expected[index].saturating_add(count);
            return;
        }
        self.expected.push(count);
        self.works.push(WorkOutcome {
            work,
            resource,
            priority,
            deadline: deadline.unwrap_or(self.deadline),
            met: 0,
            missed: 0,
            longest: 0,
        });
    }
}
