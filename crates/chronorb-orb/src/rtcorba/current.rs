//! The priority of the calling thread.

use std::cell::Cell;
use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Scheduling, set_current};

use super::Priority;
use crate::core::Core;

thread_local! {
    static PRIORITY: Cell<Option<Priority>> = const { Cell::new(None) };
}

/// `RTCORBA::Current`: the CORBA priority of the calling thread (RT-CORBA 1.2, 5.5).
#[derive(Clone, Debug)]
pub struct RtCurrent {
    core: Arc<Core>,
}

impl RtCurrent {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The calling thread's priority.
    ///
    /// # Errors
    /// `INITIALIZE` where none was set.
    pub fn priority(&self) -> Result<Priority, SystemException> {
        request_priority().ok_or(SystemException::no(SystemExceptionKind::Initialize, 0))
    }

    /// Sets the calling thread's priority, and its native one by the ORB's mapping.
    ///
    /// Calls that the thread makes from now on use connections of this priority, and carry it
    /// to servers whose priority model is client-propagated. In an upcall the change ends with
    /// the upcall.
    ///
    /// # Errors
    /// `DATA_CONVERSION` (OMG minor 2) where the mapping has no native priority for it;
    /// `NO_PERMISSION` where the system refuses the native one although the ORB may use
    /// real-time scheduling.
    pub fn set_priority(&self, priority: Priority) -> Result<(), SystemException> {
        let scheduling = self.core.real_time.scheduling(priority)?;
        if request_priority() != Some(priority) {
            apply(scheduling)?;
            PRIORITY.set(Some(priority));
        }
        Ok(())
    }
}

/// The CORBA priority that calls of this thread have; `None` where none was ever set.
pub(crate) fn request_priority() -> Option<Priority> {
    PRIORITY.get()
}

/// Gives a pool's thread the priority of one request, and takes it back when dropped, with
/// whatever the servant has set meanwhile.
pub(crate) struct PriorityGuard {
    own: (Option<Priority>, Scheduling),
    during: Option<Priority>,
    /// The native priority of the request differs from the thread's own.
    native: bool,
}

impl PriorityGuard {
    /// `own` is what the thread was made with, `wanted` what the request demands, if anything.
    pub(crate) fn enter(
        core: &Core,
        own: (Option<Priority>, Scheduling),
        wanted: Option<Priority>,
    ) -> Result<Self, SystemException> {
        let during = wanted.or(own.0);
        let mut native = false;
        if let Some(priority) = wanted.filter(|_| wanted != own.0) {
            let scheduling = core.real_time.scheduling(priority)?;
            if scheduling != own.1 {
                apply(scheduling)?;
                native = true;
            }
        }
        PRIORITY.set(during);
        Ok(Self {
            own,
            during,
            native,
        })
    }
}

impl Drop for PriorityGuard {
    fn drop(&mut self) {
        let changed = PRIORITY.replace(self.own.0) != self.during;
        if changed || self.native {
            // The thread had this scheduling when it was made, so that it is permitted.
            let _ = set_current(self.own.1);
        }
    }
}

fn apply(scheduling: Scheduling) -> Result<(), SystemException> {
    set_current(scheduling).map_err(|_| {
        SystemException::no(
            SystemExceptionKind::NoPermission,
            minor::NATIVE_PRIORITY_REFUSED,
        )
    })
}
