//! The distributable thread that a request brings to a server.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::{SchedulingContext, SystemException};

use super::ServiceOutcome;
use crate::riders::{Admission, Arrival};
use crate::rtscheduling::Answer;
pub(super) use crate::rtscheduling::HostedThread as HostGuard;

/// Begins the part of the thread of a context, if it has one, on the calling thread.
#[inline]
pub(super) fn begin(
    context: &SchedulingContext,
    arrival: &Arrival<'_>,
    admission: &Admission,
) -> Result<Option<HostGuard>, SystemException> {
    if !context.has_thread() {
        return Ok(None);
    }
    arrival.carrier.host(context, admission.priority).map(Some)
}

/// Ends that part.
///
/// # Errors
/// `THREAD_CANCELLED`, which is the answer then.
pub(super) fn finish(guard: HostGuard, outcome: ServiceOutcome) -> Result<(), SystemException> {
    guard.finish(match outcome {
        ServiceOutcome::Reply => Answer::Reply,
        ServiceOutcome::Exception(exception) => Answer::Exception(exception),
        ServiceOutcome::Forward => Answer::Other,
    })
}
