//! A shared connection that a thread of its own reads from, and hands all replies over.

use std::sync::Arc;
use std::time::Duration;

use chronorb_giop::CompletionStatus;
use chronorb_rt::{Deadline, Scheduling, SpawnError, ThreadBuilder};

use super::comm_failure;
use super::multiplexed::Multiplexed;
use crate::scope;

/// Starts the thread, which ends with the connection; `ended` is dropped last.
pub(super) fn start(
    shared: Arc<Multiplexed>,
    name: String,
    scheduling: Scheduling,
    ended: impl Send + 'static,
) -> Result<(), SpawnError> {
    let thread = ThreadBuilder::new(name)
        .scheduling(scheduling)
        .stack_size(STACK_SIZE)
        .prefault_stack(true);
    thread
        .spawn(move || {
            read_on(&Reading(&shared));
            drop(shared);
            drop(ended);
        })
        .map(drop)
}

/// However the thread ends, nobody waits for it in vain.
struct Reading<'s>(&'s Multiplexed);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.end(comm_failure(CompletionStatus::Maybe).into());
    }
}

fn read_on(Reading(shared): &Reading<'_>) {
    let mut inbox = shared.inbox.lock();
    let mut frame = scope::frame();
    loop {
        match shared.read(&mut inbox, &mut frame, Deadline::after(LOOK_AGAIN)) {
            Ok(Some((id, header))) => shared.hand_over(id, header, &mut frame),
            Ok(None) => {}
            Err(failure) => return shared.end(failure),
        }
    }
}

const STACK_SIZE: usize = 128 << 10;
/// The wait for a reply has no end but that of the connection.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
