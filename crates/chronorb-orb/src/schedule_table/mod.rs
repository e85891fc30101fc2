//! Schedules at run time: priorities of operations by look-up, and overruns.

mod names;
mod overrun;
mod table;

pub(crate) use names::scoped;
pub use overrun::OverrunPolicy;
pub(crate) use table::OperationIdentity;
pub use table::{OperationHandle, OperationSchedule, ScheduleTable, TableError};
