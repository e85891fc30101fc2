//! The counters of a class.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::AtomicU64;
#[cfg(test)]
use std::sync::atomic::Ordering;

#[cfg(test)]
use crate::path::{ReceiveCounts, TransmitCounts};

/// The counts of a class since it was opened.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ClassCounts {
    /// Incoming frames, including lost ones.
    pub received: ReceiveCounts,
    /// Outgoing frames.
    pub transmitted: TransmitCounts,
    /// Packets that were processed.
    pub packets: u64,
    /// Processed packets without a valid TCP segment.
    pub malformed: u64,
    /// Processed packets with a wrong checksum.
    pub wrong_checksums: u64,
    /// Processed packets of unknown connections, which were answered by a reset.
    pub refused: u64,
    /// Connections that peers have established.
    pub connections: u64,
    /// Connection requests that found no slot.
    pub connections_dropped: u64,
    /// Half-open connections that were dropped for others.
    pub gave_way: u64,
    /// Connections that were ended to make room for others.
    pub evicted: u64,
    /// Periods that began late because the one before took too long.
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
        (received, transmitted): (ReceiveCounts, TransmitCounts),
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
