//! The priority of calls that servants make.

use std::sync::Arc;

use chronorb_giop::SystemException;

use crate::core::Core;
use crate::poa::{NoContext, PoaCurrent};
use crate::rtcorba::{Priority, PriorityTransform, Transform, request_priority};

/// The priority of a call that this thread makes by an ORB; `None` where it has none.
///
/// # Errors
/// `DATA_CONVERSION` (OMG minor 2) where the transform has none; `INTERNAL` where it panics.
#[inline(always)]
pub(super) fn onward_priority(core: &Arc<Core>) -> Result<Option<Priority>, SystemException> {
    match (core.rt.transform.0.get(), request_priority()) {
        (Some(transform), Some(priority)) => transformed(core, &**transform, priority).map(Some),
        (_, priority) => Ok(priority),
    }
}

#[cold]
#[inline(never)]
fn transformed(
    core: &Arc<Core>,
    transform: &dyn PriorityTransform,
    priority: Priority,
) -> Result<Priority, SystemException> {
    match PoaCurrent::new(core.clone()).object_id() {
        Ok(id) => Transform::outbound(transform, priority, id.as_bytes()),
        // Outside of a request there is nothing to transform.
        Err(NoContext) => Ok(priority),
    }
}
