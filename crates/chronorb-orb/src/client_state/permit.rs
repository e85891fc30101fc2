//! Bounds of an ORB's client connections, and of threads for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The numbers of permits that exist and that are taken.
pub(crate) struct ConnectionPermits {
    limit: usize,
    taken: Arc<AtomicUsize>,
}

/// The right to one connection or thread.
pub(crate) struct ConnectionPermit {
    taken: Arc<AtomicUsize>,
    is_given_back: AtomicBool,
}

impl ConnectionPermits {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            taken: Arc::default(),
        }
    }

    /// Returns a permit, if there is one left.
    pub(crate) fn take(&self) -> Option<ConnectionPermit> {
        let more = |taken: usize| (taken < self.limit).then_some(taken + 1);
        let order = Ordering::AcqRel;
        self.taken
            .fetch_update(order, Ordering::Acquire, more)
            .ok()?;
        Some(ConnectionPermit {
            taken: self.taken.clone(),
            is_given_back: AtomicBool::new(false),
        })
    }
}

impl ConnectionPermit {
    /// Gives the permit back before it is dropped.
    pub(crate) fn give_back(&self) {
        if !self.is_given_back.swap(true, Ordering::AcqRel) {
            self.taken.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.give_back();
    }
}
