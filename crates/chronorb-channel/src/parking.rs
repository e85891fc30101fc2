//! The agreement of a lane and its subscriptions on whose turn it is.

use super::sync::{AtomicBool, Ordering};

/// The state of a subscription for its lane: at rest, called, or left until its consumer is ready.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    /// Set from the call of the lane until it looks, and while the subscription is parked.
    is_called: AtomicBool,
    is_parked: AtomicBool,
}

impl Parking {
    /// Notes that the lane is to look. Returns whether it has to be called for that.
    #[inline]
    pub(crate) fn call(&self) -> bool {
        !self.is_called.swap(true, Ordering::AcqRel)
    }

    /// Notes that the lane looks now.
    pub(crate) fn begin_look(&self) {
        self.is_called.store(false, Ordering::Release);
    }

    /// Parks the subscription, unless its consumer `is_ready` by now. Events do not call the lane
    /// then, but [`unpark`](Self::unpark) does. Returns whether it is parked.
    pub(crate) fn park(&self, is_ready: impl Fn() -> bool) -> bool {
        self.is_called.store(true, Ordering::Release);
        // Each side publishes its change before it reads that of the other one. So the consumer
        // finds the subscription parked, or its readiness is seen here.
        self.is_parked.swap(true, Ordering::SeqCst);
        if !is_ready() || !self.unpark() {
            // Where another thread has unparked it, that thread has called the lane.
            return true;
        }
        self.begin_look();
        false
    }

    /// Returns whether the subscription was parked. Then the lane has to be called.
    pub(crate) fn unpark(&self) -> bool {
        self.is_parked.swap(false, Ordering::SeqCst)
    }
}
