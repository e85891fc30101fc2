//! Events for the log of the application, reported without waiting for it.
//!
//! A subscriber of `tracing` is code of the application: it may write to a disk, take a lock or
//! never return. A thread that serves requests must not call it. So an event is written as a record
//! of fixed size into a bounded ring, and one thread of ordinary priority, `chronorb.log`, passes
//! the records on. A ring that is full loses the newest record, and the loss is counted and told.
//!
//! The ring is guarded by a [`PiMutex`](crate::PiMutex) that is held while one record is copied:
//! the thread of ordinary priority that holds it runs at the priority of the most urgent thread
//! that waits.
//!
//! Without the feature `tracing`, and as long as no subscriber wants events of the level, an event
//! comes to nothing: neither the ring nor the thread exists.

use core::time::Duration;

mod event;
#[cfg(feature = "tracing")]
mod limits;
#[cfg(feature = "tracing")]
mod record;
#[cfg(feature = "tracing")]
mod ring;

pub use event::{Event, Level, Limit};

/// Returns whether a subscriber wants events of this level. Reads one number, and calls no
/// subscriber.
#[inline]
#[must_use]
pub fn is_wanted(level: Level) -> bool {
    #[cfg(feature = "tracing")]
    return ring::is_wanted(level);
    #[cfg(not(feature = "tracing"))]
    {
        let _ = level;
        false
    }
}

/// Reports an event if a subscriber wants it. Never waits for a subscriber. Allocates only for the
/// first event of the process, which starts the thread, unless [`start`] did so before.
#[inline]
pub fn tell(event: &Event<'_>) {
    #[cfg(feature = "tracing")]
    ring::tell(event);
    #[cfg(not(feature = "tracing"))]
    let _ = event;
}

/// Starts the thread that passes events on, if a subscriber wants any. To be called where there is
/// time to start a thread.
#[inline]
pub fn start() {
    #[cfg(feature = "tracing")]
    if is_wanted(Level::Error) {
        ring::start();
    }
}

/// Waits until all events that were told before have been passed on, at most for `time`. Returns
/// whether that is so.
#[inline]
pub fn flush(time: Duration) -> bool {
    #[cfg(feature = "tracing")]
    return ring::flush(time);
    #[cfg(not(feature = "tracing"))]
    {
        let _ = time;
        true
    }
}

/// Returns the number of events that were lost since the start of the process, because the ring was
/// full.
#[inline]
#[must_use]
pub fn lost() -> u64 {
    #[cfg(feature = "tracing")]
    return ring::lost();
    #[cfg(not(feature = "tracing"))]
    0
}
