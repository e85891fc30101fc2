//! The flusher: a thread of the ORB that sends kept oneways when their time is over, for threads
//! that make no further call. It never waits for a server.

use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb_giop::SystemException;
use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex};

use super::batch::KeptOneways;
use super::key::ConnectionKey;
use super::threads::ConnectionThread;
use crate::core::Core;
use crate::rtcorba::request_priority;

/// The flusher of an ORB. Its thread starts with the first connection that keeps oneways.
#[derive(Default)]
pub(super) struct Flusher {
    state: PiMutex<FlusherState>,
    /// Advanced when the thread has to look again.
    changes: Gate,
}

#[derive(Default)]
struct FlusherState {
    thread: Option<ConnectionThread>,
    kept: Vec<Weak<KeptOneways>>,
    /// The time, in nanoseconds, until which the thread sleeps; 0 while it works.
    sleeps_until: u64,
    is_over: bool,
}

impl Flusher {
    /// Adds the kept oneways of a connection with this key.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn add(
        self: &Arc<Self>,
        core: &Core,
        key: &ConnectionKey,
        kept: &Arc<KeptOneways>,
    ) -> Result<(), SystemException> {
        let mut state = self.state.lock();
        if state.is_over {
            return Ok(());
        }
        let thread = match &state.thread {
            Some(thread) => thread.clone(),
            None => {
                let this = self.clone();
                let name = format!("flusher {}", core.config.orb_id);
                let thread = ConnectionThread::spawn(core, key, name, move |_| this.run())?;
                state.thread = Some(thread.clone());
                thread
            }
        };
        state.kept.retain(|kept| kept.strong_count() > 0);
        state.kept.push(Arc::downgrade(kept));
        drop(state);
        thread.work_for(core, key.carries.network_priority().max(request_priority()))
    }

    /// Notes that oneways are due at a time, in nanoseconds. Wakes the thread if it would sleep
    /// longer.
    pub(super) fn note(&self, due: u64) {
        let mut state = self.state.lock();
        if due < state.sleeps_until {
            state.sleeps_until = due;
            drop(state);
            self.changes.advance();
        }
    }

    /// Sends all kept oneways for which there is room.
    pub(super) fn send_all(&self) {
        let all = self.state.lock().kept.clone();
        let all = all.iter().filter_map(Weak::upgrade);
        for kept in all.filter(|kept| kept.has_any()) {
            kept.send_due();
        }
    }

    /// Sends all kept oneways for which there is room, and ends the thread.
    pub(super) fn end(&self) {
        let all = {
            let mut state = self.state.lock();
            state.is_over = true;
            std::mem::take(&mut state.kept)
        };
        self.changes.advance();
        for kept in all.iter().filter_map(Weak::upgrade) {
            kept.send_due();
        }
    }

    fn run(&self) {
        let mut due = Vec::new();
        loop {
            let seen = self.changes.get();
            let Some(next) = self.collect(Monotonic::now(), &mut due) else {
                return;
            };
            if due.is_empty() {
                let limit = Deadline::after(LONG);
                self.changes.wait_while(seen, limit.min(Deadline::at(next)));
            }
            for kept in due.drain(..) {
                kept.send_due();
            }
        }
    }

    /// Collects what is due, and returns the time at which more will be; `None` at the end. If
    /// nothing is due, the thread counts as asleep from now on.
    fn collect(&self, now: Monotonic, due: &mut Vec<Arc<KeptOneways>>) -> Option<Monotonic> {
        let mut state = self.state.lock();
        if state.is_over {
            return None;
        }
        let mut next = u64::MAX;
        state.kept.retain(|kept| {
            let Some(kept) = kept.upgrade() else {
                return false;
            };
            let time = kept.due();
            if time <= now.as_nanos() {
                due.push(kept);
            } else {
                next = next.min(time);
            }
            true
        });
        state.sleeps_until = if due.is_empty() { next } else { 0 };
        Some(Monotonic::from_nanos(next))
    }
}

/// The limit of one wait; the wait is repeated.
const LONG: Duration = Duration::from_secs(3600);
