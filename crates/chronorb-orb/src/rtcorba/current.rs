//! The priority of the calling thread.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::Cell;
use std::mem::ManuallyDrop;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Scheduling, set_current};

use super::Priority;
use super::real_time::RealTime;

thread_local! {
    static PRIORITY: Cell<Option<Priority>> = const { Cell::new(None) };
    /// The scheduling of the thread before an upcall in it set another priority.
    static BEFORE: Cell<Option<Scheduling>> = const { Cell::new(None) };
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

/// Sets the priority of the calling thread, and its native one.
///
/// # Errors
/// See [`RtCurrent::set_priority`](crate::rtcorba::RtCurrent::set_priority).
pub(crate) fn set_priority_of_thread(
    real_time: &RealTime,
    priority: Priority,
    is_in_upcall: impl FnOnce() -> bool,
) -> Result<(), SystemException> {
    let scheduling = real_time.scheduling(priority)?;
    if request_priority() != Some(priority) {
        if is_in_upcall() && BEFORE.get().is_none() {
            BEFORE.set(chronorb_rt::current().ok());
        }
        apply(scheduling)?;
        PRIORITY.set(Some(priority));
    }
    Ok(())
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
        real_time: &RealTime,
        own: &OwnPriority,
        wanted: Option<Priority>,
    ) -> Result<Self, SystemException> {
        let is_own = wanted.is_none() || wanted == own.priority;
        let outer = if is_own && BEFORE.get().is_none() {
            None
        } else {
            Some(Outer::enter(real_time, own, wanted.filter(|_| !is_own))?)
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
        real_time: &RealTime,
        own: &OwnPriority,
        other: Option<Priority>,
    ) -> Result<Self, SystemException> {
        let native = match other {
            Some(priority) => Self::change(real_time, own, priority)?,
            None => None,
        };
        let before = BEFORE.take();
        Ok(Self { native, before })
    }

    /// Gives the thread the native priority of a request. Returns the previous scheduling, if it
    /// differs.
    fn change(
        real_time: &RealTime,
        own: &OwnPriority,
        priority: Priority,
    ) -> Result<Option<Scheduling>, SystemException> {
        let scheduling = real_time.scheduling(priority)?;
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
