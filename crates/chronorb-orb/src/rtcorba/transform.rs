//! Priority transforms: priorities that follow neither the client nor the server alone.

use std::sync::{Arc, OnceLock};

use chronorb_giop::{SystemException, SystemExceptionKind};

use super::real_time::ask_application;
use super::{Priority, RtOrb, request_priority};
use crate::core::Core;
use crate::poa::{NoContext, PoaCurrent};

/// `RTCORBA::PriorityTransform`: changes the priorities of incoming requests, and of the calls that
/// servants make (RT-CORBA 1.2, “Priority Transforms”).
///
/// Many threads call the transform concurrently, for every request. So it must not block, and
/// should not allocate. With `None`, the standard's `FALSE`, the caller gets `DATA_CONVERSION` (OMG
/// minor 2), and with a panic `INTERNAL`.
///
/// ```
/// use std::sync::Arc;
///
/// use chronorb_orb::Orb;
/// use chronorb_orb::rtcorba::{Priority, PriorityTransform};
///
/// /// What servants call is a little less urgent than what they serve.
/// struct Onward;
///
/// impl PriorityTransform for Onward {
///     fn inbound(&self, priority: Priority, _: &[u8]) -> Option<Priority> {
///         Some(priority)
///     }
///
///     fn outbound(&self, priority: Priority, _: &[u8]) -> Option<Priority> {
///         Priority::new(priority.value().saturating_sub(100).max(1))
///     }
/// }
///
/// let orb = Orb::init(&mut Vec::new())?;
/// orb.rt().set_priority_transform(Arc::new(Onward))?;
/// # orb.shutdown(true)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait PriorityTransform: Send + Sync {
    /// Returns the priority at which a request is served, instead of the propagated or declared
    /// one.
    ///
    /// The transform is called once for each request to a POA that has a priority model, from other
    /// processes or from this one, when the target's priority is known and before it becomes a
    /// native one. Servant managers and the servant run at its result. The lane that receives a
    /// request, and the thread that serves it, do not depend on it. `object_id` names the target.
    fn inbound(&self, priority: Priority, object_id: &[u8]) -> Option<Priority>;

    /// The priority of a call that a servant makes while it serves a request, instead of that of
    /// the thread: it chooses the connection, and travels with the request where the target's
    /// model is client-propagated. The thread's own priority stays.
    ///
    /// It is called for each attempt of a call by an upcall's thread, where that has a priority; a
    /// call that is forwarded, or sent again after an orderly close, is another attempt.
    /// `object_id` names the object that makes the call, not its target.
    fn outbound(&self, priority: Priority, object_id: &[u8]) -> Option<Priority>;
}

impl RtOrb {
    /// Installs the priority transform of this ORB, once. It does not affect requests in progress.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` where there is one.
    pub fn set_priority_transform(
        &self,
        transform: Arc<dyn PriorityTransform>,
    ) -> Result<(), SystemException> {
        let set = self.core.rt.transform.0.set(transform);
        // Calls of bindings that were made without a transform do not ask for one.
        self.core.rt.policies.renew_bindings();
        set.map_err(|_| SystemException::no(SystemExceptionKind::BadInvOrder, 0))
    }
}

/// The priority transform of an ORB, if there is one. To ask for it is one load.
#[derive(Default)]
pub(crate) struct Transform(OnceLock<Arc<dyn PriorityTransform>>);

impl Transform {
    /// Whether there is none.
    pub(crate) fn is_none(&self) -> bool {
        self.0.get().is_none()
    }

    /// The priority to serve a request for an object at.
    ///
    /// # Errors
    /// `DATA_CONVERSION` (OMG minor 2) where the transform has none; `INTERNAL` where it panics.
    #[inline(always)]
    pub(crate) fn inbound(
        &self,
        priority: Option<Priority>,
        object_id: &[u8],
    ) -> Result<Option<Priority>, SystemException> {
        let Some(wanted) = priority else {
            return Ok(None);
        };
        match self.0.get() {
            Some(transform) => ask_application(|| transform.inbound(wanted, object_id)).map(Some),
            None => Ok(priority),
        }
    }
}

/// The priority of a call that this thread makes by an ORB; `None` where it has none.
///
/// # Errors
/// `DATA_CONVERSION` (OMG minor 2) where the transform has none; `INTERNAL` where it panics.
#[inline(always)]
pub(crate) fn onward_priority(core: &Arc<Core>) -> Result<Option<Priority>, SystemException> {
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
        Ok(id) => ask_application(|| transform.outbound(priority, id.as_bytes())),
        // Outside of a request there is nothing to transform.
        Err(NoContext) => Ok(priority),
    }
}
