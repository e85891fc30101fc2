//! Records of events, which are of fixed size.

use std::time::{SystemTime, UNIX_EPOCH};

use super::event::{Event, Level, Limit};
use crate::mem::text::Text;

/// An event in the ring.
#[derive(Clone, Copy)]
pub(super) struct Record {
    pub(super) level: Level,
    pub(super) cause: &'static str,
    pub(super) peer: Text<64>,
    pub(super) detail: Text<512>,
    pub(super) thread: Text<32>,
    pub(super) number: i64,
    /// Nanoseconds since 1970.
    pub(super) time_ns: u64,
    pub(super) limit: Limit,
}

#[cold]
pub(super) fn record_of(event: &Event<'_>) -> Record {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Record {
        level: event.level,
        cause: event.cause,
        peer: Text::of(event.peer),
        detail: Text::of(event.detail),
        thread: name_of_this_thread(),
        number: event.number,
        time_ns: since_epoch.as_nanos() as u64,
        limit: event.limit,
    }
}

fn name_of_this_thread() -> Text<32> {
    let current = std::thread::current();
    Text::of(current.name().unwrap_or("-"))
}
