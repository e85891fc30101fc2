//! What a class shows of itself to other processes.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb_rt::Monotonic;

use super::counts::Counters;
use super::demux::Demux;
use super::device::Egress;
use crate::path::Receiver;
use crate::status::{ClassCounters, Count, Level};

/// The counters of a class that other processes see.
#[derive(Debug)]
pub(super) struct Shown {
    status: ClassCounters,
    /// When the driver is to be asked again how many packets were lost, in nanoseconds.
    next_losses: AtomicU64,
}

/// What a step has taken in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) packets: usize,
    pub(super) octets: usize,
    /// Frames that were there before.
    pub(super) waiting: usize,
    /// Its budget is used up, so that some may be left.
    pub(super) has_more: bool,
}

impl Shown {
    pub(super) fn new(status: ClassCounters) -> Self {
        Self {
            status,
            next_losses: AtomicU64::new(0),
        }
    }

    /// Shows what a step that began at `now` has done.
    pub(super) fn step(
        &self,
        now: Monotonic,
        taken: Taken,
        counters: &Counters,
        receiver: &dyn Receiver,
        half_open: usize,
        demux: &Demux,
    ) {
        let status = &self.status;
        if taken.packets > 0 {
            let latency = Monotonic::now().since(now);
            status.delivered_after(latency, taken.packets as u64);
            status.add(Count::PacketsIn, taken.packets as u64);
            status.add(Count::OctetsIn, taken.octets as u64);
        }
        status.set(Level::Queue, taken.waiting as u64);
        let left = if taken.has_more {
            receiver.waiting()
        } else {
            0
        };
        status.set(Level::LeftOver, left as u64);
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let malformed = read(&counters.malformed) + read(&counters.wrong_checksums);
        status.put(Count::Malformed, malformed);
        status.put(Count::NoConnection, read(&counters.refused));
        status.put(Count::SynOverLimit, read(&counters.connections_dropped));
        let gave_way = read(&counters.gave_way) + read(&counters.evicted);
        status.put(Count::Refused, gave_way);
        status.put(Count::Established, read(&counters.connections));
        status.put(Count::Overruns, read(&counters.overruns));
        status.set(Level::HalfOpen, half_open as u64);
        status.set(Level::Open, demux.used() as u64);
        // The kernel is asked, which takes a system call.
        if now.as_nanos() >= self.next_losses.load(Ordering::Relaxed) {
            let next = now + LOSSES_PAUSE;
            self.next_losses.store(next.as_nanos(), Ordering::Relaxed);
            let received = receiver.counts();
            status.put(Count::QueueFull, received.dropped);
            status.put(Count::NoBuffers, received.failed);
        }
    }

    /// Shows what has gone out.
    pub(super) fn departures(&self, egress: &Egress) {
        let sent = egress.transmitter().counts();
        self.status.put(Count::PacketsOut, sent.frames);
        self.status.put(Count::OctetsOut, sent.octets);
        self.status.put(Count::Retransmissions, egress.sent_again);
    }

    /// Shows that a period has begun.
    pub(super) fn period(&self) {
        self.status.add(Count::Periods, 1);
    }

    /// Shows how many packets of its budget the present period has used.
    pub(super) fn budget_used(&self, packets: usize) {
        self.status.set(Level::BudgetUsed, packets as u64);
    }
}

const LOSSES_PAUSE: Duration = Duration::from_millis(10);
