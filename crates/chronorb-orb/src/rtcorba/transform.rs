//! Priority transforms: priorities that follow neither the client nor the server alone.

use std::sync::{Arc, OnceLock};

use chronorb_giop::SystemException;

use super::Priority;
use super::real_time::ask_application;

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

/// The priority transform of an ORB, if there is one. To ask for it is one load.
#[derive(Default)]
pub(crate) struct Transform(pub(crate) OnceLock<Arc<dyn PriorityTransform>>);

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

    /// Returns the priority of a call that an object makes, instead of that of its thread.
    ///
    /// # Errors
    /// Those of [`inbound`](Self::inbound).
    pub(crate) fn outbound(
        transform: &dyn PriorityTransform,
        priority: Priority,
        object_id: &[u8],
    ) -> Result<Priority, SystemException> {
        ask_application(|| transform.outbound(priority, object_id))
    }
}
