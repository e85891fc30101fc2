//! Threads with a scheduling, each on a CPU of its own.

use std::panic::resume_unwind;

use chronorb_rt::{Scheduling, Thread, ThreadBuilder};

use crate::error::LabError;

/// Starts a thread on a CPU. Its stack is in memory before it runs.
pub(super) fn start<T: Send + 'static>(
    name: &str,
    scheduling: Scheduling,
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Thread<T>, LabError> {
    let builder = ThreadBuilder::new(name).scheduling(scheduling);
    let thread = builder.affinity(&[cpu]).prefault_stack(true).spawn(work);
    thread.map_err(LabError::work("starting a thread"))
}

/// Waits for the end of a thread, and returns its result.
pub(super) fn join<T>(thread: Thread<T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
