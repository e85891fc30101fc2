//! Requests that are held in their servant, so that a thread is busy with certainty and not for a
//! time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_rt::{Deadline, Gate, PiMutex, Scheduling, current, thread_id};

use crate::error::LabError;
use crate::idl::peers::PowerServant;

/// The requests in their servants, and those that may leave them.
#[derive(Debug)]
pub(super) struct Floor {
    state: PiMutex<FloorState>,
    /// Counts the changes, so that threads can wait for one.
    changes: Gate,
}

#[derive(Debug, Default)]
struct FloorState {
    sights: Vec<Sight>,
    released: BTreeSet<u8>,
    open: bool,
    running: usize,
    most: usize,
}

/// The thread of a request in its servant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    /// The number of the request.
    number: u8,
    pub(super) tid: u32,
    /// The native scheduling of the thread at that time.
    pub(super) native: Scheduling,
}

impl Floor {
    pub(super) fn new() -> Self {
        Self {
            state: PiMutex::new(FloorState::default()),
            changes: Gate::new(0),
        }
    }

    /// Waits until a request is in its servant, and returns its thread.
    pub(super) fn begun(&self, number: u8) -> Result<Sight, LabError> {
        self.wait_for(|state| {
            let mut sights = state.sights.iter();
            sights.find(|sight| sight.number == number).copied()
        })
        .ok_or_else(|| stuck(format!("request {number} never began")))
    }

    pub(super) fn has_begun(&self, number: u8) -> bool {
        let state = self.state.lock();
        state.sights.iter().any(|sight| sight.number == number)
    }

    /// Waits until so many requests are in their servants at the same time.
    pub(super) fn await_running(&self, count: usize) -> Result<(), LabError> {
        self.wait_for(|state| (state.running >= count).then_some(()))
            .ok_or_else(|| stuck(format!("there never were {count} at work")))
    }

    /// Returns the largest number of requests in their servants at the same time.
    pub(super) fn most(&self) -> usize {
        self.state.lock().most
    }

    /// Lets a request leave its servant.
    pub(super) fn release(&self, number: u8) {
        self.change(|state| {
            state.released.insert(number);
        });
    }

    /// Lets all requests leave their servants, later ones too.
    pub(super) fn open(&self) {
        self.change(|state| state.open = true);
    }

    fn hold(&self, number: u8) {
        let sight = Sight {
            number,
            tid: thread_id(),
            native: current().unwrap_or(Scheduling::OTHER),
        };
        self.change(|state| {
            state.sights.push(sight);
            state.running += 1;
            state.most = state.most.max(state.running);
        });
        // A request is held no longer than other threads wait for it.
        self.wait_for(|state| (state.open || state.released.contains(&number)).then_some(()));
        self.change(|state| state.running -= 1);
    }

    fn change(&self, change: impl FnOnce(&mut FloorState)) {
        change(&mut self.state.lock());
        self.changes.advance();
    }

    /// Waits until `find` returns a value, for a bounded time.
    fn wait_for<R>(&self, find: impl Fn(&FloorState) -> Option<R>) -> Option<R> {
        let deadline = Deadline::after(PATIENCE);
        loop {
            let seen = self.changes.get();
            let value = find(&self.state.lock());
            if value.is_some() || deadline.has_passed() {
                return value;
            }
            self.changes.wait_while(seen, deadline);
        }
    }
}

/// A servant that holds its requests on the floor.
#[derive(Debug)]
pub(super) struct HoldingServant(pub(super) Arc<Floor>);

impl PowerServant for HoldingServant {
    fn cube(&self, _call: &Call<'_>, number: u8) -> Result<i32, SystemException> {
        self.0.hold(number);
        Ok(i32::from(number).pow(3))
    }
}

/// Returns the error of an event that did not happen.
pub(super) fn stuck(what: impl Into<String>) -> LabError {
    LabError::work("trying what thread pools promise")(what.into())
}

/// The bound of each wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
