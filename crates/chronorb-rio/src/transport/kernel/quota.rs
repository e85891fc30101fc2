//! The limit of a class's connections.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The connection quota of a class; all clones share it.
#[derive(Clone, Debug)]
pub(super) struct ConnectionQuota {
    free: Arc<AtomicUsize>,
}

/// A permit for one connection, returned on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    free: Arc<AtomicUsize>,
}

impl ConnectionQuota {
    #[allow(clippy::disallowed_methods, reason = "once for each class")]
    pub(super) fn new(connections: usize) -> Self {
        Self {
            free: Arc::new(AtomicUsize::new(connections)),
        }
    }

    /// Takes a permit, if one is free.
    pub(super) fn take(&self) -> Option<ConnectionPermit> {
        let one_less = |free: usize| free.checked_sub(1);
        let taken = (self.free).fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
        taken.ok().map(|_| ConnectionPermit {
            free: self.free.clone(),
        })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.free.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_places_as_connections() {
        let quota = ConnectionQuota::new(2);
        let first = quota.take().expect("one of two");
        let _second = quota.take().expect("the other one");
        assert!(quota.take().is_none());
        drop(first);
        assert!(quota.take().is_some());
    }
}
