//! Schedules at run time: priorities of operations by look-up, their measurement, and overruns.
//!
//! A schedule is computed before the program starts. At run time nothing is computed: a
//! [`ScheduleTable`] gives priority, subpriority and preemption level of an operation by its index.
//! The ORB measures the execution of operations ([`OperationSnapshot`](crate::OperationSnapshot)),
//! and applies an [`OverrunPolicy`] to those that exceed their budgets.

mod load;
mod meter;
mod names;
mod operations;
mod overrun;
mod scheduler;
mod start;
mod table;

pub use chronorb_schedule::{LateCall, SessionCall, SessionError, SessionRefusal, Sessions};
pub(crate) use load::LoadedSchedule;
pub use load::StartError;
pub(crate) use meter::Meter;
pub use overrun::OverrunPolicy;
pub use scheduler::{
    ClientScheduler, ScheduleActivityError, ScheduleObjectError, ServerScheduler, UnknownName,
};
pub(crate) use start::ActiveSchedule;
pub use table::{OperationHandle, OperationSchedule, ScheduleTable, TableError};
