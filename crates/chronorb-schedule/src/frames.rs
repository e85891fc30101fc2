//! The executions of operations that have a thread, and the lanes that these are of.

use std::collections::HashMap;

use crate::schedule::Schedule;

/// An execution of an operation within a transaction. It has a thread from its first step to its
/// last one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Frame {
    /// The index of the transaction.
    pub transaction: usize,
    /// The index of the operation.
    pub operation: usize,
    /// The index of the first step, which may be one of a called operation.
    pub first: usize,
    /// The index of the last step.
    pub last: usize,
    /// The index of the frame that waits for it.
    pub caller: Option<usize>,
    /// The index of the frame with which its branch of the transaction begins. Frames of one
    /// branch follow or contain each other.
    pub branch: usize,
    /// Whether the operation waits for calls.
    pub waits: bool,
}

/// The lanes that serve the operations of a schedule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ThreadPools {
    /// The lane of each operation: one of its processor and priority, and its declared one.
    pub(crate) of_operation: Vec<usize>,
    /// The declared threads of each lane; `None` if it gets as many as it needs.
    pub(crate) threads: Vec<Option<u32>>,
    /// The threads of each operation with a period that waits for calls.
    pub(crate) of_activity: Vec<u32>,
}

impl ThreadPools {
    pub(crate) fn new(schedule: &Schedule, priorities: &[u32]) -> Self {
        // An operation without a lane joins a declared one of its processor and priority.
        let level = |it: usize| (schedule.operations[it].processor, priorities[it]);
        let all = 0..schedule.operations.len();
        let mut declared = HashMap::new();
        for it in all.clone() {
            if let Some(lane) = schedule.operations[it].lane {
                declared.entry(level(it)).or_insert(lane);
            }
        }
        let mut numbers = HashMap::new();
        let mut threads = Vec::new();
        let of_operation = all.map(|it| {
            let lane = schedule.operations[it].lane;
            let lane = lane.or_else(|| declared.get(&level(it)).copied());
            *numbers.entry((level(it), lane)).or_insert_with(|| {
                threads.push(lane.and_then(|lane| schedule.lanes[lane].threads));
                threads.len() - 1
            })
        });
        Self {
            of_operation: of_operation.collect(),
            threads,
            of_activity: schedule.operations.iter().map(|it| it.threads).collect(),
        }
    }
}
