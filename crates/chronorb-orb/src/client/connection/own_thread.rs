//! The thread of a shared connection that has one.
//!
//! It has the priority of the most urgent thread that has used the connection: where priorities share one, it would
//! otherwise keep urgent calls waiting for whatever else the processor has to do.

use std::sync::Arc;

use chronorb_giop::{CompletionStatus, SystemException};
use chronorb_rt::{
    PiMutex, Scheduling, SpawnError, ThreadBuilder, set_current, set_scheduling_of, thread_id,
};

use super::comm_failure;
use super::multiplexed::Multiplexed;
use crate::core::Core;
use crate::rtcorba::Priority;

/// The thread, as those see it that share its connection.
#[derive(Clone, Default)]
pub(in crate::client) struct OwnThread(Arc<PiMutex<State>>);

#[derive(Default)]
struct State {
    /// While it runs.
    id: Option<u32>,
    /// Of the most urgent one that it works for.
    priority: Option<Priority>,
    /// What it is to have as soon as it runs, where somebody more urgent came before that.
    late: Option<Scheduling>,
}

impl OwnThread {
    /// Starts the thread, which does `work` until the connection ends; `ended` is dropped last.
    pub(super) fn start(
        shared: Arc<Multiplexed>,
        name: String,
        (priority, scheduling): (Option<Priority>, Scheduling),
        work: impl FnOnce(&Multiplexed) + Send + 'static,
        ended: impl Send + 'static,
    ) -> Result<Self, SpawnError> {
        let this = Self(Arc::new(PiMutex::new(State {
            id: None,
            priority,
            late: None,
        })));
        let own = this.clone();
        let thread = ThreadBuilder::new(name)
            .scheduling(scheduling)
            .stack_size(STACK_SIZE)
            .prefault_stack(true);
        thread.spawn(move || {
            let running = own.begin();
            let working = Working(&shared);
            work(working.0);
            drop(working);
            drop(running);
            drop(shared);
            drop(ended);
        })?;
        Ok(this)
    }

    /// Sees to it that it is no less urgent than a thread that it works for from now on.
    pub(in crate::client) fn work_for(
        &self,
        core: &Core,
        priority: Option<Priority>,
    ) -> Result<(), SystemException> {
        let Some(priority) = priority else {
            return Ok(());
        };
        // The mapping is the application's, and not asked under a lock.
        let scheduling = core.rt.real_time.scheduling(priority)?;
        let mut state = self.0.lock();
        if state.priority < Some(priority) {
            state.priority = Some(priority);
            match state.id {
                // Where it is refused the connection works all the same, as any does without the right to it.
                Some(id) => {
                    let _ = set_scheduling_of(id, scheduling);
                }
                None => state.late = Some(scheduling),
            }
        }
        Ok(())
    }

    fn begin(&self) -> Running<'_> {
        let mut state = self.0.lock();
        state.id = Some(thread_id());
        if let Some(scheduling) = state.late.take() {
            let _ = set_current(scheduling);
        }
        Running(self)
    }
}

/// That the thread runs, so that its id is its own.
struct Running<'t>(&'t OwnThread);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.0.lock().id = None;
    }
}

/// However the thread ends, nobody waits for it in vain.
struct Working<'s>(&'s Multiplexed);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.end(comm_failure(CompletionStatus::Maybe).into());
    }
}

const STACK_SIZE: usize = 128 << 10;
