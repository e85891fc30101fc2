//! The threads of shared connections.
//!
//! A connection's own thread has the priority of the most urgent thread that has used the
//! connection. Where priorities share one, urgent calls would otherwise wait for all other work of
//! the processor.

use std::fmt;
use std::sync::Arc;

use chronorb_giop::{CompletionStatus, SystemException, SystemExceptionKind};
use chronorb_rt::{PiMutex, Scheduling, ThreadBuilder, set_current, set_scheduling_of, thread_id};

use super::key::ConnectionKey;
use super::link::comm_failure;
use super::shared::SharedConnection;
use crate::core::Core;
use crate::failure::because;
use crate::rtcorba::{Priority, request_priority};

/// The handle of a connection's thread.
#[derive(Clone)]
pub(in crate::client) struct ConnectionThread(Arc<PiMutex<ThreadState>>);

struct ThreadState {
    /// The thread's id, while it runs.
    id: Option<u32>,
    /// The priority of the most urgent thread that it works for.
    priority: Option<Priority>,
    /// The scheduling that it takes when it starts, if a more urgent thread came before that.
    late: Option<Scheduling>,
}

impl ConnectionThread {
    /// Starts a thread that does `work` until the connection ends, at the priority of the
    /// connection, or of the calling thread if that is more urgent.
    pub(in crate::client) fn start(
        core: &Core,
        key: &ConnectionKey,
        shared: &Arc<SharedConnection>,
        what: &str,
        work: impl FnOnce(&SharedConnection) + Send + 'static,
    ) -> Result<Self, SystemException> {
        let number = core.client.threads.next_number();
        let name = format!("{what}.{number} {}", core.config.orb_id);
        let shared = shared.clone();
        Self::spawn(core, key, name, move |own| {
            let end = EndGuard {
                shared: &shared,
                thread: own,
            };
            work(&shared);
            drop(end);
            drop(shared);
        })
    }

    /// Starts a thread with this name, for the connection with this key.
    pub(super) fn spawn(
        core: &Core,
        key: &ConnectionKey,
        name: String,
        work: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<Self, SystemException> {
        let priority = key.carries.network_priority().max(request_priority());
        let scheduling = scheduling_of(core, priority)?;
        let counted = core.client.threads.count();
        let this = Self(Arc::new(PiMutex::new(ThreadState {
            id: None,
            priority,
            late: None,
        })));
        let own = this.clone();
        let thread = ThreadBuilder::new(name)
            .scheduling(scheduling)
            .stack_size(STACK_SIZE)
            .prefault_stack(true);
        let started = thread.spawn(move || {
            own.begin();
            work(&own);
            drop(counted);
        });
        started.map_err(|error| no_thread(key, error))?;
        Ok(this)
    }

    /// Raises it to the priority of a thread that it works for from now on.
    ///
    /// # Errors
    /// The priority has no native one.
    pub(in crate::client) fn work_for(
        &self,
        core: &Core,
        priority: Option<Priority>,
    ) -> Result<(), SystemException> {
        let Some(priority) = priority else {
            return Ok(());
        };
        // The mapping is the application's code, so no lock is held.
        let scheduling = core.rt.real_time.scheduling(priority)?;
        let mut state = self.0.lock();
        if state.priority < Some(priority) {
            state.priority = Some(priority);
            match state.id {
                // Without the right to it, the thread works at its present priority.
                Some(id) => {
                    let _ = set_scheduling_of(id, scheduling);
                }
                None => state.late = Some(scheduling),
            }
        }
        Ok(())
    }

    fn begin(&self) {
        let mut state = self.0.lock();
        state.id = Some(thread_id());
        if let Some(scheduling) = state.late.take() {
            let _ = set_current(scheduling);
        }
    }
}

/// A guard that ends the connection with its thread, even if that panics, so that no caller waits
/// in vain. From then on the thread's id is not used.
struct EndGuard<'t> {
    shared: &'t SharedConnection,
    thread: &'t ConnectionThread,
}

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.shared
            .end(comm_failure(CompletionStatus::Maybe).into());
        self.thread.0.lock().id = None;
    }
}

/// Starts a thread that continues a call of this priority, while the completion thread completes
/// others. Returns whether it was started.
pub(in crate::client) fn start_aside(
    core: &Core,
    urgency: Option<Priority>,
    work: impl FnOnce() + Send + 'static,
) -> bool {
    let threads = &core.client.threads;
    let permit = threads.aside.take();
    let scheduling = scheduling_of(core, urgency);
    let (Some(permit), Ok(scheduling)) = (permit, scheduling) else {
        return false;
    };
    let guards = (permit, threads.count());
    let thread = ThreadBuilder::new(format!("aside {}", core.config.orb_id));
    let thread = thread.scheduling(scheduling).stack_size(STACK_SIZE_ASIDE);
    let started = thread.spawn(move || {
        work();
        drop(guards);
    });
    started.is_ok()
}

fn scheduling_of(core: &Core, priority: Option<Priority>) -> Result<Scheduling, SystemException> {
    priority.map_or(Ok(Scheduling::OTHER), |p| core.rt.real_time.scheduling(p))
}

/// The exception for a connection whose thread cannot be started.
pub(in crate::client) fn no_thread(
    key: &ConnectionKey,
    error: impl fmt::Display,
) -> SystemException {
    let exception = SystemException::no(SystemExceptionKind::NoResources, 0);
    let what = format_args!("connection to {}: no thread", key.way);
    because(exception, format_args!("{what}: {error}"))
}

const STACK_SIZE: usize = 128 << 10;
const STACK_SIZE_ASIDE: usize = 256 << 10;
