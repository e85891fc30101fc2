//! The bound of an ORB's client connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The number of connections that an ORB may have, and has.
pub(super) struct Permits {
    limit: usize,
    open: Arc<AtomicUsize>,
}

/// The right to one connection.
pub(super) struct Permit {
    open: Arc<AtomicUsize>,
    is_given_back: AtomicBool,
}

impl Permits {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            open: Arc::default(),
        }
    }

    /// Returns a permit, if there is one left.
    pub(super) fn take(&self) -> Option<Permit> {
        let more = |open: usize| (open < self.limit).then_some(open + 1);
        let order = Ordering::AcqRel;
        self.open
            .fetch_update(order, Ordering::Acquire, more)
            .ok()?;
        Some(Permit {
            open: self.open.clone(),
            is_given_back: AtomicBool::new(false),
        })
    }
}

impl Permit {
    /// Gives the permit back; the connection is closed.
    pub(super) fn give_back(&self) {
        if !self.is_given_back.swap(true, Ordering::AcqRel) {
            self.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back();
    }
}
