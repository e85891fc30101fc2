//! Schedules at run time: priorities of operations by look-up, their measurement, and overruns.
//!
//! A schedule is computed before the program starts. At run time nothing is computed: a
//! [`ScheduleTable`] gives priority, subpriority and preemption level of an operation by its index.
//! The ORB measures the execution of operations ([`OperationSnapshot`](crate::OperationSnapshot)),
//! and applies an [`OverrunPolicy`] to those that exceed their budgets.

mod load;
mod scheduler;
mod start;

pub use crate::schedule_table::{
    OperationHandle, OperationSchedule, OverrunPolicy, ScheduleTable, TableError,
};
pub use chronorb_schedule::{LateCall, SessionCall, SessionError, SessionRefusal, Sessions};
pub(crate) use load::LoadedSchedule;
pub use load::StartError;
pub use scheduler::{
    ClientScheduler, ScheduleActivityError, ScheduleObjectError, ServerScheduler, UnknownName,
};
