//! Connections that a class can have.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places for the connections of a class; all clones have the same.
#[derive(Clone, Debug)]
pub(super) struct Places {
    free: Arc<AtomicUsize>,
}

/// That of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    free: Arc<AtomicUsize>,
}

impl Places {
    #[allow(clippy::disallowed_methods, reason = "once for each class")]
    pub(super) fn new(connections: usize) -> Self {
        Self {
            free: Arc::new(AtomicUsize::new(connections)),
        }
    }

    /// A place, if one is free.
    pub(super) fn take(&self) -> Option<Place> {
        let one_less = |free: usize| free.checked_sub(1);
        let taken = (self.free).fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
        taken.ok().map(|_| Place {
            free: self.free.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.free.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_places_as_connections() {
        let places = Places::new(2);
        let first = places.take().expect("one of two");
        let _second = places.take().expect("the other one");
        assert!(places.take().is_none());
        drop(first);
        assert!(places.take().is_some());
    }
}
