//! The schedule that an ORB has started with.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::lanes::ThreadpoolId;
use crate::rtcorba::{Priority, PriorityBands, TimeConstraint};
use crate::schedule_table::ScheduleTable;

/// The schedule that an ORB has started with.
pub(crate) struct ActiveSchedule {
    pub(crate) path: PathBuf,
    /// The digest of the schedule.
    pub(crate) digest: String,
    pub(crate) node: String,
    pub(crate) table: Arc<ScheduleTable>,
    /// The pools of the node, in the order of the lock file.
    pub(crate) pools: Vec<ProcessorPool>,
    /// The activities of the node.
    pub(crate) activities: HashMap<String, ActivitySchedule>,
    /// Whether requests of one of its activities wait in a lane with an order.
    pub(crate) has_constraints: bool,
    /// The ceilings of the locks of the node, by name.
    pub(crate) ceilings: HashMap<String, Priority>,
    /// The priorities of objects by interface or operation.
    pub(crate) objects: HashMap<String, ObjectPriority>,
}

/// An activity of a schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActivitySchedule {
    /// The priority at which it starts.
    pub(crate) priority: Priority,
    /// The constraint of its calls from its release on; `None` if only lanes in the order of
    /// arrival serve them.
    pub(crate) constraint: Option<TimeConstraint>,
}

/// The thread pool of a processor.
#[derive(Clone, Debug)]
pub(crate) struct ProcessorPool {
    pub(crate) processor: String,
    pub(crate) pool: ThreadpoolId,
    /// The bands for priorities of clients; they cover all.
    pub(crate) bands: PriorityBands,
    /// The bands for declared priorities, up to that of the most urgent lane. A connection for a
    /// band has the urgency of its end.
    pub(crate) declared_bands: PriorityBands,
    pub(crate) least: Priority,
}

/// The priority of the operations of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ObjectPriority {
    One(Priority),
    /// The operations of the interface have different ones.
    Several,
}

impl ActiveSchedule {
    /// Returns the ceiling of a lock of the node.
    pub(crate) fn ceiling(&self, lock: &str) -> Option<Priority> {
        self.ceilings.get(lock).copied()
    }
}
