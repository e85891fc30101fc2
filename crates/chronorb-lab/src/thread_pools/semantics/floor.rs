//! Where requests are held: so a busy thread is a fact, and not a matter of time.

use std::collections::BTreeSet;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_rt::{Deadline, Gate, PiMutex, Scheduling};

use crate::error::LabError;
use crate::idl::lab::WorkServant;

/// Who is at work, and who may go on.
#[derive(Debug)]
pub(super) struct Floor {
    state: PiMutex<State>,
    /// Counts the changes, for who waits for one.
    changes: Gate,
}

#[derive(Debug, Default)]
struct State {
    sights: Vec<Sight>,
    released: BTreeSet<u8>,
    open: bool,
    running: usize,
    most: usize,
}

/// What a servant sees of its thread.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    /// The request.
    number: u8,
    pub(super) tid: u32,
    /// `pool:lane.number`.
    pub(super) thread: String,
    /// Whose lane's thread it is.
    pub(super) lane: Option<usize>,
    pub(super) native: Scheduling,
}

impl Sight {
    fn now(number: u8) -> Self {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default();
        let name = name.split(' ').next().unwrap_or_default();
        let lane = name
            .split_once(':')
            .and_then(|(_, rest)| rest.split_once('.'));
        Self {
            number,
            tid: chronorb_rt::thread_id(),
            thread: name.to_owned(),
            lane: lane.and_then(|(lane, _)| lane.parse().ok()),
            native: chronorb_rt::current().unwrap_or(Scheduling::OTHER),
        }
    }
}

impl Floor {
    pub(super) fn new() -> Self {
        Self {
            state: PiMutex::new(State::default()),
            changes: Gate::new(0),
        }
    }

    /// What a request saw when it began; waits for it.
    pub(super) fn begun(&self, number: u8) -> Result<Sight, LabError> {
        self.wait_for(|state| {
            let mut sights = state.sights.iter();
            sights.find(|sight| sight.number == number).cloned()
        })
        .ok_or_else(|| stuck(format!("request {number} never began")))
    }

    pub(super) fn has_begun(&self, number: u8) -> bool {
        let state = self.state.lock();
        state.sights.iter().any(|sight| sight.number == number)
    }

    /// Waits until so many are held at the same time.
    pub(super) fn await_running(&self, count: usize) -> Result<(), LabError> {
        self.wait_for(|state| (state.running >= count).then_some(()))
            .ok_or_else(|| stuck(format!("there never were {count} at work")))
    }

    /// How many were held at the same time, at most.
    pub(super) fn most(&self) -> usize {
        self.state.lock().most
    }

    /// Lets a request go on.
    pub(super) fn release(&self, number: u8) {
        self.change(|state| {
            state.released.insert(number);
        });
    }

    /// Lets all requests go on, those that come too.
    pub(super) fn open(&self) {
        self.change(|state| state.open = true);
    }

    fn hold(&self, number: u8) {
        let sight = Sight::now(number);
        self.change(|state| {
            state.sights.push(sight);
            state.running += 1;
            state.most = state.most.max(state.running);
        });
        // Nobody is held longer than anybody waits.
        self.wait_for(|state| (state.open || state.released.contains(&number)).then_some(()));
        self.change(|state| state.running -= 1);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changes.advance();
    }

    /// Waits until `find` finds something, at most for a while.
    fn wait_for<R>(&self, find: impl Fn(&State) -> Option<R>) -> Option<R> {
        let deadline = Deadline::after(PATIENCE);
        loop {
            let seen = self.changes.get();
            if let Some(found) = find(&self.state.lock()) {
                return Some(found);
            }
            if deadline.has_passed() {
                return None;
            }
            self.changes.wait_while(seen, deadline);
        }
    }
}

/// A servant whose requests are held on the floor.
#[derive(Debug)]
pub(super) struct Held(pub(super) std::sync::Arc<Floor>);

impl WorkServant for Held {
    fn cube(&self, _call: &Call<'_>, value: u8, _steps: u32) -> Result<i32, SystemException> {
        self.0.hold(value);
        Ok(i32::from(value).pow(3))
    }

    fn work_until(
        &self,
        _call: &Call<'_>,
        _until_ns: u64,
        _compute_us: u32,
        _rest_us: u32,
    ) -> Result<u32, SystemException> {
        Err(not_offered())
    }

    fn occupy(&self, _call: &Call<'_>, _length_us: u32) -> Result<(), SystemException> {
        Err(not_offered())
    }
}

fn not_offered() -> SystemException {
    SystemException::no(SystemExceptionKind::NoImplement, 0)
}

/// What was waited for did not happen.
pub(super) fn stuck(what: impl Into<String>) -> LabError {
    LabError::work("trying what thread pools promise")(what.into())
}

/// How long anything is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
