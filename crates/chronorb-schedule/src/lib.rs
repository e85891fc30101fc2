//! Schedule files: operations declare what they need, an analysis decides whether it fits, and
//! priorities, lanes and bands are assigned and written as a lock file.
//!
//! This crate does no I/O: [`Schedule::parse`] takes texts, and [`LockFile`] is written as text.
//! Times are integers of nanoseconds, and no verdict depends on a rounding.
//!
//! | need | item |
//! |---|---|
//! | the declarations of a file | [`Schedule::parse`] |
//! | tasks and transactions for `chronorb-sched` | [`Schedule::ranks`], [`Schedule::to_task_sets`] |
//! | response times and slack | [`TaskSets::analyse`] |
//! | priorities, lanes, bands | [`Schedule::assign`] |
//! | room for longer execution times | [`Schedule::greatest_factor`], [`Schedule::greatest_cost`], [`Schedule::least_cuts`] |
//! | a run in virtual time, as the ORB executes it | [`Schedule::simulate`] |
//! | the result as a file | [`LockFile`] |
//! | a plan of real-time I/O for the links of a node | [`LockFile::rio_plan`] |
//! | sessions of further clients at run time | [`Sessions`] |
//! | measured execution times in a file | [`Schedule::learn`] |
//!
//! # Example
//! ```
//! use chronorb_schedule::Schedule;
//!
//! let text = r#"
//!     [[operation]]
//!     name = "Nav::update"
//!     wcet = "10 ms"
//!     period = "20 Hz"
//!
//!     [[operation]]
//!     name = "Map::draw"
//!     wcet = "100 ms"
//!     period = "1 Hz"
//! "#;
//! let schedule = Schedule::parse("nav.toml", text, &mut |_| Err("none".into()))?;
//! let assignment = schedule.assign()?;
//! assert!(assignment.analysis.feasible);
//! assert_eq!(assignment.analysis.operations[1].response.time(), Some(130_000_000));
//! let lock = assignment.lock_file(&schedule);
//! assert!(lock.to_string().contains("[[lane]]"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod analysis;
mod assign;
mod checks;
mod error;
mod expand;
mod frames;
mod learn;
mod lock;
mod numbers;
mod operations;
mod packets;
mod parse;
mod pieces;
mod reservation;
mod schedule;
mod sensitivity;
mod sessions;
mod shared_locks;
mod simulate;
mod table;
mod task_sets;
mod threads;
mod units;
mod values;
mod wire;

pub use analysis::{Analysis, OperationResult, ResourceResult, TransactionResult};
pub use assign::{AssignedLane, Assignment};
pub use error::{FileError, ScheduleError, ScheduleErrors};
pub use frames::Frame;
pub use learn::{Margin, MeasuredCost};
pub use lock::{
    LockActivity, LockBand, LockCeiling, LockClass, LockFile, LockInterface, LockLane,
    LockOperation, LockReservation, LockUrgency,
};
pub use parse::MAX_TEXT;
pub use schedule::{
    Call, DeclaredStep, DeclaredTransaction, Interface, Lane, LaneOrder, LaneRule, Link,
    LockProtocol, LockUse, MessageLength, Messages, Node, Operation, PriorityRule, Processor,
    Rules, Schedule, Time,
};
pub use sensitivity::FACTOR_UNIT;
pub use sessions::{LateCall, SessionCall, SessionError, SessionRefusal, Sessions};
pub use simulate::{
    ActivityOutcome, LaneNumbers, Numbers, SimulationError, SimulationOutcome, SimulationRun, Work,
    WorkOutcome, WorkSlice,
};
pub use task_sets::{NamedTransaction, ResourceKind, SharedResource, StepWork, TaskSets};
pub use threads::{ThreadOwner, ThreadShortage};
pub use units::{parse_time, readable_time};
