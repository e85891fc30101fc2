//! The priority of the calling thread, for applications.

use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind};

use super::Core;
use crate::poa::is_in_upcall;
use crate::rtcorba::scheduling::{self, Constraint};
use crate::rtcorba::{
    ConstraintGuard, Priority, TimeConstraint, request_priority, set_priority_of_thread,
};

/// `RTCORBA::Current`: the CORBA priority of the calling thread (RT-CORBA 1.2, “Real-Time CORBA
/// Current”).
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
    /// and the native one is beyond [what the process may use][range]; `NO_PERMISSION` where the
    /// system refuses it all the same; `INTERNAL` where the application's mapping panics. The
    /// thread then has the priority that it had.
    ///
    /// A value outside of 0…32767, `BAD_PARAM` in the standard, is no [`Priority`]: see its
    /// `TryFrom<i16>`.
    ///
    /// [range]: crate::rtcorba::RtOrb::native_priority_range
    pub fn set_priority(&self, priority: Priority) -> Result<(), SystemException> {
        let real_time = &self.core.rt.real_time;
        set_priority_of_thread(real_time, priority, || is_in_upcall(&self.core))
    }

    /// Gives the calls that this thread makes a deadline and an urgency, until the guard is
    /// dropped.
    ///
    /// They travel with each request, as the time that is left when it is sent. The servant's
    /// thread has them while it serves the request, so the calls of the servant have what is left
    /// of the time. Lanes with an [order] serve the most urgent requests first. Within another
    /// constraint, the earlier of both deadlines holds. A call does not end at its deadline: see
    /// [`RelativeRequestTimeout`] for that.
    ///
    /// [order]: crate::rtcorba::LaneOrder
    /// [`RelativeRequestTimeout`]: crate::rtcorba::ClientPolicy::RelativeRequestTimeout
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use chronorb_orb::rtcorba::TimeConstraint;
    /// # fn example(orb: chronorb_orb::Orb) -> Result<(), Box<dyn std::error::Error>> {
    /// let current = orb.rt_current();
    /// let _until = current.constrain(TimeConstraint {
    ///     criticality: 10,
    ///     ..TimeConstraint::within(Duration::from_millis(20))
    /// });
    /// // Calls in this block have the deadline.
    /// # Ok(())
    /// # }
    /// ```
    pub fn constrain(&self, constraint: TimeConstraint) -> ConstraintGuard {
        Constraint::enter_within(constraint)
    }

    /// Returns the time to the deadline of the calling thread, in nanoseconds; negative if it has
    /// passed. In a servant this is the deadline of its request. `None` without a deadline.
    pub fn time_left(&self) -> Option<i64> {
        scheduling::time_left()
    }
}
