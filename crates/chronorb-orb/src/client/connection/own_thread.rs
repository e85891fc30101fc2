//! The thread of a shared connection that has one.

use std::sync::Arc;

use chronorb_giop::CompletionStatus;
use chronorb_rt::{Scheduling, SpawnError, ThreadBuilder};

use super::comm_failure;
use super::multiplexed::Multiplexed;

/// Starts the thread, which does `work` until the connection ends; `ended` is dropped last.
pub(super) fn start(
    shared: Arc<Multiplexed>,
    name: String,
    scheduling: Scheduling,
    work: impl FnOnce(&Multiplexed) + Send + 'static,
    ended: impl Send + 'static,
) -> Result<(), SpawnError> {
    let thread = ThreadBuilder::new(name)
        .scheduling(scheduling)
        .stack_size(STACK_SIZE)
        .prefault_stack(true);
    thread
        .spawn(move || {
            let working = Working(&shared);
            work(working.0);
            drop(working);
            drop(shared);
            drop(ended);
        })
        .map(drop)
}

/// However the thread ends, nobody waits for it in vain.
struct Working<'s>(&'s Multiplexed);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.end(comm_failure(CompletionStatus::Maybe).into());
    }
}

const STACK_SIZE: usize = 128 << 10;
