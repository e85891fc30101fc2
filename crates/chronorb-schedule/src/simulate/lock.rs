//! Locks: their holders, waiting frames and ceilings.

use std::collections::HashMap;

use super::run::Numbers;
use crate::schedule::{LockProtocol, Schedule};

/// The priority of all sections of locks that are taken on several processors: above all lanes.
const ABOVE_LANES: u64 = 1 << 32;

/// A lock.
#[derive(Debug)]
pub(super) struct Lock {
    pub(super) holder: Option<usize>,
    /// The frames that wait, in their order.
    pub(super) waiting: Vec<usize>,
    /// The least priority of a holder; zero without ceilings.
    pub(super) ceiling: u64,
}

/// Returns the locks of a schedule, and their numbers by node and name.
pub(super) fn locks<'s>(
    schedule: &'s Schedule,
    numbers: &Numbers,
) -> (Vec<Lock>, HashMap<(usize, &'s str), usize>) {
    let mut by_name = HashMap::new();
    // The greatest priority, one processor, and whether there are others.
    let mut users: Vec<(u64, usize, bool)> = Vec::new();
    for (operation, priority) in schedule.operations.iter().zip(&numbers.priorities) {
        let node = schedule.processors[operation.processor].node;
        for it in &operation.locks {
            let number = *by_name
                .entry((node, it.lock.as_str()))
                .or_insert(users.len());
            if number == users.len() {
                users.push((0, operation.processor, false));
            }
            let (greatest, processor, has_others) = &mut users[number];
            *greatest = (*greatest).max(u64::from(*priority));
            *has_others |= *processor != operation.processor;
        }
    }
    let has_ceilings = schedule.rules.locks == LockProtocol::Ceiling;
    let locks = users.into_iter().map(|(greatest, _, has_others)| Lock {
        holder: None,
        waiting: Vec::new(),
        ceiling: match (has_ceilings, has_others) {
            (false, _) => 0,
            (true, false) => greatest,
            (true, true) => ABOVE_LANES,
        },
    });
    (locks.collect(), by_name)
}
