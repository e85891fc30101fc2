//! An observer of locks and wake-ups, for measurements.

use core::marker::PhantomData;
use std::sync::OnceLock;

/// Functions that threads call around each lock operation, wake-up and wait of this crate.
///
/// They run in signal handlers too, and so must not allocate, lock or wait.
#[derive(Clone, Copy, Debug)]
pub struct SyncObserver {
    /// Called at the beginning. Returns the argument of `end`, or `None` if `end` is not needed.
    pub begin: fn() -> Option<u8>,
    /// Called at the end.
    pub end: fn(u8),
}

/// Installs an observer for the rest of the process. The first one stays.
///
/// Without an observer, each operation reads one word for it.
pub fn observe_synchronisation(observer: SyncObserver) {
    let _first_one_stays = OBSERVER.set(observer);
}

/// Begins an operation, which ends when the result is dropped.
#[inline]
pub(crate) fn begin() -> Operation {
    Operation {
        begun: OBSERVER.get().and_then(|observer| (observer.begin)()),
        of_thread: PhantomData,
    }
}

/// An operation that an observer may have been told of.
pub(crate) struct Operation {
    begun: Option<u8>,
    of_thread: PhantomData<*const ()>,
}

impl Drop for Operation {
    #[inline]
    fn drop(&mut self) {
        if let (Some(begun), Some(observer)) = (self.begun, OBSERVER.get()) {
            (observer.end)(begun);
        }
    }
}

static OBSERVER: OnceLock<SyncObserver> = OnceLock::new();
