//! Without distributable threads a request brings none.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

pub(super) use std::convert::Infallible as HostGuard;

use chronorb_giop::{SchedulingContext, SystemException};

use super::ServiceOutcome;
use crate::riders::{Admission, Arrival};

#[inline(always)]
#[expect(clippy::unnecessary_wraps, reason = "the same as with the feature")]
pub(super) fn begin(
    _: &SchedulingContext,
    _: &Arrival<'_>,
    _: &Admission,
) -> Result<Option<HostGuard>, SystemException> {
    Ok(None)
}

pub(super) fn finish(guard: HostGuard, _: ServiceOutcome) -> Result<(), SystemException> {
    match guard {}
}
