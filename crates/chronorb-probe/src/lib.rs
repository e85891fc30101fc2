//! Instruments of the laboratory, which measure the time of threads and processes.
//!
//! | need | item |
//! |---|---|
//! | the processor time of threads by activity | [`doing`], [`keep_activity_times`] |
//! | the times at which threads passed points | [`stamp`], [`keep_stamps`], [`stamps`] |
//! | the system calls of another process | [`Tracer`] |
//! | the instructions of a thread of another process | [`StepCounter`] |
//! | the least cost of a message between processes, to measure by | [`Mailboxes`] |
//! | operations that are submitted together with the wait for them | `Ring`, with the feature `uring` |
//!
//! Transports and the ORB call [`doing`] and [`stamp`] on the path of a request. An instrument that
//! is not switched on costs them one load of a flag.

#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod activity;
mod mailbox;
mod stamp;
mod stamp_ring;
mod steps;
mod system_call;
mod tracer;
mod turn;
#[cfg(feature = "uring")]
mod uring;

pub use activity::{Activity, ActivityTimes};
pub use mailbox::Mailboxes;
pub use stamp::{Point, Stamp, StampClock, ThreadStamps, keep_stamps, stamps};
pub use stamp_ring::stamp;
pub use steps::StepCounter;
pub use tracer::{Mark, SystemCalls, TraceError, Tracer, step_mark, trace_mark};
pub use turn::{ActivityGuard, counts_of_this_thread, doing, keep_activity_times};
#[cfg(feature = "uring")]
pub use uring::{Completion, CompletionWork, PrepareError, Ring};
