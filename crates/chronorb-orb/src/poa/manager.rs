//! POA managers: whether requests are let through.

use std::sync::Arc;
use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, Gate};
use thiserror::Error;

/// Lets the requests of its POAs through, or not (CORBA 3.3, 15.3.4). A handle.
#[derive(Clone, Debug)]
pub struct PoaManager {
    gate: Arc<Gate>,
}

/// What a manager does with requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PoaManagerState {
    /// They wait, for the ORB's hold time-out at most.
    Holding,
    /// They are served.
    Active,
    /// They are answered with `TRANSIENT` (OMG minor 1).
    Discarding,
    /// They are answered with `OBJ_ADAPTER`, for good.
    Inactive,
}

/// The manager is inactive, and stays so.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the POA manager is inactive")]
pub struct AdapterInactive;

impl PoaManager {
    pub(crate) fn new() -> Self {
        Self {
            gate: Arc::new(Gate::new(HOLDING)),
        }
    }

    /// Lets requests through.
    ///
    /// # Errors
    /// [`AdapterInactive`] after [`deactivate`](Self::deactivate).
    pub fn activate(&self) -> Result<(), AdapterInactive> {
        self.change(ACTIVE)
    }

    /// Lets requests wait. Each keeps a thread of its lane while it waits.
    ///
    /// # Errors
    /// [`AdapterInactive`] after [`deactivate`](Self::deactivate).
    pub fn hold_requests(&self) -> Result<(), AdapterInactive> {
        self.change(HOLDING)
    }

    /// Answers requests with `TRANSIENT`.
    ///
    /// # Errors
    /// [`AdapterInactive`] after [`deactivate`](Self::deactivate).
    pub fn discard_requests(&self) -> Result<(), AdapterInactive> {
        self.change(DISCARDING)
    }

    /// Answers requests with `OBJ_ADAPTER` from now on.
    ///
    /// # Errors
    /// [`AdapterInactive`] where it is so already.
    pub fn deactivate(&self) -> Result<(), AdapterInactive> {
        self.change(INACTIVE)
    }

    /// What it does at present.
    pub fn state(&self) -> PoaManagerState {
        match self.gate.get() {
            HOLDING => PoaManagerState::Holding,
            ACTIVE => PoaManagerState::Active,
            DISCARDING => PoaManagerState::Discarding,
            _ => PoaManagerState::Inactive,
        }
    }

    /// Lets one request through, after waiting if need be.
    pub(crate) fn admit(&self, hold: Duration) -> Result<(), SystemException> {
        let mut state = self.gate.get();
        if state == HOLDING {
            state = self.gate.wait_while(HOLDING, Deadline::after(hold));
        }
        match state {
            ACTIVE => Ok(()),
            INACTIVE => Err(SystemException::no(
                SystemExceptionKind::ObjAdapter,
                minor::POA_MANAGER_INACTIVE,
            )),
            _ => Err(SystemException::no(
                SystemExceptionKind::Transient,
                minor::REQUEST_DISCARDED,
            )),
        }
    }

    fn change(&self, to: u32) -> Result<(), AdapterInactive> {
        let mut state = self.gate.get();
        while state != INACTIVE {
            match self.gate.compare_set(state, to) {
                Ok(()) => return Ok(()),
                Err(present) => state = present,
            }
        }
        Err(AdapterInactive)
    }
}

const HOLDING: u32 = 0;
const ACTIVE: u32 = 1;
const DISCARDING: u32 = 2;
const INACTIVE: u32 = 3;
