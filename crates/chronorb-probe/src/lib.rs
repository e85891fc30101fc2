//! Instruments of the laboratory, which measure the time of threads and processes.
//!
//! | need | item |
//! |---|---|
//! | the processor time of threads by activity | [`doing`], [`keep_activity_times`] |
//! | the times at which threads passed points | [`stamp`], [`keep_stamps`], [`stamps`] |
//! | the system calls of another process | `Tracer`, with the feature `laboratory` |
//! | the instructions of a thread of another process | `StepCounter`, with the feature `laboratory` |
//! | the least cost of a message between processes, to measure by | `Mailboxes`, with the feature `laboratory` |
//! | what a program does in a forked child | `in_forked_child`, with the feature `laboratory` |
//! | operations that are submitted together with the wait for them | `Ring`, with the feature `uring` |
//!
//! Transports and the ORB call [`doing`] and [`stamp`] on the path of a request. An instrument that
//! is not switched on costs them one load of a flag.

#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod activity;
#[cfg(feature = "laboratory")]
mod fork;
#[cfg(feature = "laboratory")]
mod mailbox;
mod stamp;
mod stamp_ring;
#[cfg(feature = "laboratory")]
mod steps;
#[cfg(feature = "laboratory")]
mod system_call;
#[cfg(feature = "laboratory")]
mod tracer;
mod turn;
#[cfg(feature = "uring")]
mod uring;

pub use activity::{Activity, ActivityTimes};
#[cfg(feature = "laboratory")]
pub use fork::in_forked_child;
#[cfg(feature = "laboratory")]
pub use mailbox::Mailboxes;
pub use stamp::{Point, Stamp, StampClock, ThreadStamps, keep_stamps, stamps};
pub use stamp_ring::stamp;
#[cfg(feature = "laboratory")]
pub use steps::StepCounter;
#[cfg(feature = "laboratory")]
pub use system_call::system_call_name;
#[cfg(feature = "laboratory")]
pub use tracer::{Mark, SystemCalls, TraceError, Tracer, step_mark, trace_mark};
pub use turn::{ActivityGuard, counts_of_this_thread, doing, keep_activity_times};
#[cfg(feature = "uring")]
pub use uring::{Completion, CompletionWork, PrepareError, Ring};
