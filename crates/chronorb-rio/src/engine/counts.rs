//! What has happened to a class.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::AtomicU64;
#[cfg(test)]
use std::sync::atomic::Ordering;

#[cfg(test)]
use crate::path::{Received, Transmitted};

/// What has happened to a class since it was opened.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ClassCounts {
    /// What came in, and was lost before.
    pub received: Received,
    /// What went out.
    pub transmitted: Transmitted,
    /// Packets that were taken in by a step.
    pub packets: u64,
    /// Of these, those without a TCP segment that makes sense.
    pub malformed: u64,
    /// Those that somebody has changed on the way.
    pub wrong_checksums: u64,
    /// Those that belong to nobody, and were refused.
    pub refused: u64,
    /// Connections that peers have made.
    pub connections: u64,
    /// Wishes for a connection that found no slot.
    pub connections_dropped: u64,
    /// Half-open connections that gave way to others.
    pub gave_way: u64,
    /// Connections that were ended to make room for others.
    pub evicted: u64,
    /// Periods that began late since the one before took too long.
    pub overruns: u64,
    /// Periods in which the whole budget was used.
    pub exhausted: u64,
    /// Slots in use now.
    pub slots: usize,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) packets: AtomicU64,
    pub(super) malformed: AtomicU64,
    pub(super) wrong_checksums: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) connections_dropped: AtomicU64,
    pub(super) gave_way: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) overruns: AtomicU64,
    pub(super) exhausted: AtomicU64,
}

#[cfg(test)]
impl Counters {
    pub(super) fn counts(
        &self,
        (received, transmitted): (Received, Transmitted),
        slots: usize,
    ) -> ClassCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ClassCounts {
            received,
            transmitted,
            packets: read(&self.packets),
            malformed: read(&self.malformed),
            wrong_checksums: read(&self.wrong_checksums),
            refused: read(&self.refused),
            connections: read(&self.connections),
            connections_dropped: read(&self.connections_dropped),
            gave_way: read(&self.gave_way),
            evicted: read(&self.evicted),
            overruns: read(&self.overruns),
            exhausted: read(&self.exhausted),
            slots,
        }
    }
}
