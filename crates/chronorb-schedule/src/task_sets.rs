//! The task sets of a schedule, for `chronorb-sched`.

use std::collections::HashMap;

use chronorb_sched::{Resource, Step, StepSection, Task, Time, Transaction};

use crate::frames::{Frame, ThreadPools};
use crate::schedule::Schedule;

/// The resources and transactions of a schedule.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TaskSets {
    /// The processors of the schedule, then its links: both directions, where these are apart.
    pub resources: Vec<SharedResource>,
    /// The transactions: one for each operation with a period, then the declared ones.
    pub transactions: Vec<NamedTransaction>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) pools: ThreadPools,
    pub(crate) requests: Vec<LockRequest>,
}

/// A request of a frame for a lock of several processors.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LockRequest {
    pub(crate) frame: usize,
    /// The branch of the frame.
    pub(crate) branch: usize,
    pub(crate) transaction: usize,
    pub(crate) lock: usize,
    pub(crate) processor: usize,
    pub(crate) priority: u32,
    pub(crate) length: Time,
    /// The steps in which it can be, in their order.
    pub(crate) steps: Vec<usize>,
}

/// A processor or a link.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SharedResource {
    /// The name: of a direction, that of the link and of the sending node.
    pub name: String,
    /// The item of the schedule.
    pub kind: ResourceKind,
    /// The resource for the analysis.
    pub resource: Resource,
}

/// The item of a schedule that a resource is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResourceKind {
    /// The index of a processor.
    Processor(usize),
    /// The index of a link.
    Link(usize),
}

/// A transaction with its name.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct NamedTransaction {
    /// The name of the transaction, or of the operation that starts it.
    pub name: String,
    /// The transaction for the analysis.
    pub transaction: Transaction,
    /// The work of each of its steps.
    pub works: Vec<StepWork>,
    /// Whether it is declared step by step. Otherwise an operation with a period starts it.
    pub is_declared: bool,
}

/// The work of a step.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum StepWork {
    /// A piece of an operation's execution.
    Execution {
        /// The index of the operation.
        operation: usize,
    },
    /// The message of a request to an operation.
    Request {
        /// The index of the operation.
        operation: usize,
    },
    /// The message of a reply of an operation.
    Reply {
        /// The index of the operation.
        operation: usize,
    },
    /// A message that a transaction declares.
    Message,
}

impl StepWork {
    /// Returns the operation that the step executes.
    pub const fn executed(self) -> Option<usize> {
        match self {
            Self::Execution { operation } => Some(operation),
            Self::Request { .. } | Self::Reply { .. } | Self::Message => None,
        }
    }
}

impl TaskSets {
    /// Returns the resources for [`chronorb_sched::analyse_transactions`].
    pub fn analysed_resources(&self) -> Vec<Resource> {
        self.resources.iter().map(|it| it.resource).collect()
    }

    /// Returns the transactions for [`chronorb_sched::analyse_transactions`].
    pub fn analysed_transactions(&self) -> Vec<Transaction> {
        let transactions = self.transactions.iter();
        transactions.map(|it| it.transaction.clone()).collect()
    }

    /// Returns the critical sections of all steps, for
    /// [`simulate_transactions`](chronorb_sched::simulate_transactions): an operation takes its
    /// locks one after another, once in each transaction, from the start of its first step on. A
    /// lock of one name is another one on each node. What exceeds a step is left to the next one.
    pub fn sections(&self, schedule: &Schedule) -> Vec<StepSection> {
        let mut locks: HashMap<(usize, &str), usize> = HashMap::new();
        let mut sections = Vec::new();
        for (number, it) in self.transactions.iter().enumerate() {
            // The next lock of each operation.
            let mut next: HashMap<usize, usize> = HashMap::new();
            for (position, (step, work)) in it.transaction.steps.iter().zip(&it.works).enumerate() {
                let Some(operation) = work.executed() else {
                    continue;
                };
                let executed = &schedule.operations[operation];
                let node = schedule.processors[executed.processor].node;
                let next = next.entry(operation).or_insert(0);
                let mut start = 0;
                while let Some(used) = executed.locks.get(*next) {
                    let end: Time = start + used.time;
                    if end > step.cost {
                        break;
                    }
                    let count = locks.len();
                    let lock = *locks.entry((node, &used.lock)).or_insert(count);
                    sections.push(StepSection {
                        transaction: number,
                        step: position,
                        lock,
                        start,
                        length: used.time,
                    });
                    start = end;
                    *next += 1;
                }
            }
        }
        sections
    }

    /// Returns the steps of one resource as independent tasks, with the index of the transaction
    /// and of the step of each. Jitter that a step inherits from its predecessor is left out.
    pub fn tasks(&self, resource: usize) -> Vec<(Task, usize, usize)> {
        let mut tasks = Vec::new();
        for (number, it) in self.transactions.iter().enumerate() {
            for (position, step) in it.transaction.steps.iter().enumerate() {
                if step.resource == resource {
                    tasks.push((task(&it.transaction, step), number, position));
                }
            }
        }
        tasks
    }
}

fn task(transaction: &Transaction, step: &Step) -> Task {
    let deadline: Time = step.deadline.unwrap_or(transaction.deadline);
    Task::new(step.cost, transaction.period)
        .with_deadline(deadline)
        .with_jitter(transaction.jitter)
        .with_blocking(step.blocking)
        .with_priority(step.priority)
}
