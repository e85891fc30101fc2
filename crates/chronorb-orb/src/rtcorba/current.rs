//! The priority of the calling thread.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Scheduling, set_current};

use super::Priority;
use crate::core::Core;

thread_local! {
    static PRIORITY: Cell<Option<Priority>> = const { Cell::new(None) };
    /// The scheduling of the thread before an upcall in it set another priority.
    static BEFORE: Cell<Option<Scheduling>> = const { Cell::new(None) };
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
    /// the upcall. Otherwise the thread keeps the priority. A thread that waits for child
    /// processes, walks `/proc` or removes files is not to have a real-time one:
    /// [`with_time_sharing`](chronorb_rt::with_time_sharing).
    ///
    /// # Errors
    /// `DATA_CONVERSION` (OMG minor 2) where the mapping has no native priority for it, or one that
    /// the system does not have; `INITIALIZE` (OMG minor 1) where real-time scheduling is required,
    /// and the native one is beyond [what the process may
    /// use](super::RtOrb::native_priority_range); `NO_PERMISSION` where the system refuses it all
    /// the same; `INTERNAL` where the application's mapping panics. The thread then has the
    /// priority that it had.
    ///
    /// A value outside of 0…32767, `BAD_PARAM` in the standard, is no [`Priority`]: see its
    /// `TryFrom<i16>`.
    pub fn set_priority(&self, priority: Priority) -> Result<(), SystemException> {
        let scheduling = self.core.rt.real_time.scheduling(priority)?;
        if request_priority() != Some(priority) {
            if crate::poa::is_in_upcall(&self.core) && BEFORE.get().is_none() {
                BEFORE.set(chronorb_rt::current().ok());
            }
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

/// Sets the priority of the calls of this thread, if it is in no upcall. The caller sets the native
/// priority.
pub(crate) fn set_request_priority(priority: Option<Priority>) {
    PRIORITY.set(priority);
}

/// The priority of a thread while it serves no request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnPriority {
    pub(crate) priority: Option<Priority>,
    /// The scheduling that it was made with; `None` for a thread of the application, whose
    /// scheduling can be queried.
    pub(crate) scheduling: Option<Scheduling>,
}

impl OwnPriority {
    /// Returns the priority of the calling thread, which is one of the application.
    pub(crate) fn of_caller() -> Self {
        Self {
            priority: request_priority(),
            scheduling: None,
        }
    }
}

/// Gives a thread the priority of one request, and takes it back when dropped, with whatever the
/// servant has set meanwhile.
pub(crate) struct PriorityGuard {
    own: OwnPriority,
    during: Option<Priority>,
    /// Set where the request is within another one, or has another priority than the thread.
    outer: Option<Outer>,
}

/// The state of a thread before a request.
#[derive(Clone, Copy)]
struct Outer {
    /// The previous scheduling of the thread, if the request's native priority differs from it.
    native: Option<Scheduling>,
    /// [`BEFORE`] of the upcall that this one is within.
    before: Option<Scheduling>,
}

impl PriorityGuard {
    /// Enters a request with the priority `wanted`, if it has one.
    #[inline(always)]
    pub(crate) fn enter(
        core: &Core,
        own: &OwnPriority,
        wanted: Option<Priority>,
    ) -> Result<Self, SystemException> {
        let is_own = wanted.is_none() || wanted == own.priority;
        let outer = if is_own && BEFORE.get().is_none() {
            None
        } else {
            Some(Outer::enter(core, own, wanted.filter(|_| !is_own))?)
        };
        let during = wanted.or(own.priority);
        PRIORITY.set(during);
        Ok(Self {
            own: *own,
            during,
            outer,
        })
    }
}

/// Takes back what a request has changed, or its servant: then the `present` priority is another
/// one than it had.
///
/// The guard is passed in parts, so that it needs no place in memory where this is not called.
#[cold]
#[inline(never)]
fn restore(made_with: Option<Scheduling>, outer: Option<Outer>, is_other: bool) {
    let before = BEFORE.get();
    // It may have set another one, and then this one again.
    let changed = is_other || before.is_some();
    let (native, outer) = match outer {
        Some(outer) => (outer.native, outer.before),
        None => (None, None),
    };
    BEFORE.set(outer);
    if changed || native.is_some() {
        // The thread had this scheduling before, so that it is permitted.
        let before = native.or(made_with).or(before);
        let _ = before.map(set_current);
    }
}

impl Outer {
    #[inline(never)]
    fn enter(
        core: &Core,
        own: &OwnPriority,
        other: Option<Priority>,
    ) -> Result<Self, SystemException> {
        let native = match other {
            Some(priority) => Self::change(core, own, priority)?,
            None => None,
        };
        let before = BEFORE.take();
        Ok(Self { native, before })
    }

    /// Gives the thread the native priority of a request. Returns the previous scheduling, if it
    /// differs.
    fn change(
        core: &Core,
        own: &OwnPriority,
        priority: Priority,
    ) -> Result<Option<Scheduling>, SystemException> {
        let scheduling = core.rt.real_time.scheduling(priority)?;
        let present = own.scheduling.or_else(|| chronorb_rt::current().ok());
        if present == Some(scheduling) {
            return Ok(None);
        }
        apply(scheduling)?;
        Ok(present)
    }
}

impl PriorityGuard {
    /// Drops the guard, inlined.
    #[inline(always)]
    pub(crate) fn leave(self) {
        ManuallyDrop::new(self).end();
    }

    #[inline(always)]
    fn end(&self) {
        let is_other = PRIORITY.replace(self.own.priority) != self.during;
        if is_other || self.outer.is_some() || BEFORE.get().is_some() {
            restore(self.own.scheduling, self.outer, is_other);
        }
    }
}

impl Drop for PriorityGuard {
    fn drop(&mut self) {
        self.end();
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
