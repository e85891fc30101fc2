//! Requests whose end time has passed, by the invocation policies of their clients.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::time::Duration;

use chronorb_giop::contexts::{INVOCATION_POLICIES, find};
use chronorb_giop::{EndTimes, ServiceContext, SystemException};

use crate::core::Core;
use crate::incident::Incident;
use crate::rtcorba::policies::{check_ends, utc_now};

/// Checks that a request of `peer` with these policies may still be served, and notes if not.
///
/// # Errors
/// `TIMEOUT` after its end time (OMG minor 2) or that of its reply (3); `MARSHAL` if its policies
/// are malformed.
#[cold]
#[inline(never)]
pub(super) fn check(
    core: &Core,
    peer: &dyn fmt::Display,
    policies: &[u8],
) -> Result<(), SystemException> {
    lateness(core, policies)?.map_err(|(exception, late)| {
        let late = i64::try_from(late.as_millis()).unwrap_or(i64::MAX);
        core.incidents.note(Incident::ExpiredRequest, peer, late);
        exception
    })
}

/// Whether a request has expired, or the thread that dispatches it has to find out.
pub(super) fn has_expired(core: &Core, contexts: &[ServiceContext<'_>]) -> bool {
    let data = find(contexts, INVOCATION_POLICIES);
    data.is_some_and(|data| !matches!(lateness(core, data), Ok(Ok(()))))
}

/// The exception for a request with these policies, and the time since its end.
///
/// # Errors
/// The policies are malformed.
fn lateness(
    core: &Core,
    data: &[u8],
) -> Result<Result<(), (SystemException, Duration)>, SystemException> {
    let Some(skew) = core.config.clock_skew else {
        return Ok(Ok(()));
    };
    let ends = EndTimes::decode(data)?;
    Ok(check_ends(ends, utc_now().before(skew)))
}
