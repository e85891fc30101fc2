//! Statistics of received packets.

use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of messages and packets that were received, and of those that were dropped, by
/// reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Messages that were whole, and delivered.
    pub delivered: u64,
    /// Datagrams that were no packets.
    pub malformed: u64,
    /// Packets that were received before.
    pub duplicates: u64,
    /// Collections whose packets contradicted each other.
    pub contradicting: u64,
    /// Collections longer than messages may be.
    pub too_large: u64,
    /// Collections that were no message.
    pub no_message: u64,
    /// Collections of which packets were still missing when they were too old.
    pub expired: u64,
    /// Collections that had to go for others.
    pub crowded_out: u64,
}

/// The reason why a packet or message was dropped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Drop {
    /// See [`Counts::malformed`].
    Malformed,
    /// See [`Counts::duplicates`].
    Duplicate,
    /// See [`Counts::contradicting`].
    Contradicting,
    /// See [`Counts::too_large`].
    TooLarge,
    /// See [`Counts::no_message`].
    NoMessage,
    /// See [`Counts::expired`].
    Expired,
    /// See [`Counts::crowded_out`].
    CrowdedOut,
}

/// [`Counts`] that several threads add to.
#[derive(Debug, Default)]
pub struct Counters {
    delivered: AtomicU64,
    dropped: [AtomicU64; 7],
}

impl Counters {
    /// The present counts. They are taken one after the other.
    pub fn counts(&self) -> Counts {
        let dropped = |why: Drop| self.dropped[why as usize].load(Ordering::Relaxed);
        Counts {
            delivered: self.delivered.load(Ordering::Relaxed),
            malformed: dropped(Drop::Malformed),
            duplicates: dropped(Drop::Duplicate),
            contradicting: dropped(Drop::Contradicting),
            too_large: dropped(Drop::TooLarge),
            no_message: dropped(Drop::NoMessage),
            expired: dropped(Drop::Expired),
            crowded_out: dropped(Drop::CrowdedOut),
        }
    }

    /// Counts something that was dropped.
    pub(super) fn count(&self, why: Drop) {
        self.dropped[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts something that was dropped, instead of a message.
    pub(super) fn drop<T>(&self, why: Drop) -> Option<T> {
        self.count(why);
        None
    }

    /// Counts a message.
    pub(super) fn whole<'a>(&self, message: &'a [u8]) -> Option<&'a [u8]> {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        Some(message)
    }
}
