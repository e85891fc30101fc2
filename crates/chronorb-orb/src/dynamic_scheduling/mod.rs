//! The schedulers of distributable threads, and their parameters.

mod parameter;
mod scheduler;
mod state;

pub use parameter::{Guid, SchedulingParameter};
pub use scheduler::{
    EarliestDeadlineScheduler, FixedPriorityScheduler, LeastLaxityScheduler,
    MaximumUrgencyScheduler, Scheduler, SchedulingPoint, UnsupportedSchedulingDiscipline,
};
pub(crate) use state::SchedulingState;
