//! Publication of a class's counters in memory that other processes can read.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use chronorb_rt::Monotonic;

use super::counts::Counters;
use super::demux::Demux;
use super::device::Egress;
use crate::path::Receiver;
use crate::status::{ClassCounters, Count, Level};

/// The published counters of a class.
#[derive(Debug)]
pub(super) struct StatusPublisher {
    status: ClassCounters,
    /// The maximum number of waiting frames.
    queue: usize,
    /// The time of the next query to the driver for lost packets, in nanoseconds.
    next_losses: AtomicU64,
    /// The number of steps that have put the query off.
    put_off: AtomicU32,
}

/// The input of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepInput {
    pub(super) packets: usize,
    pub(super) octets: usize,
    /// The number of frames that waited before the step.
    pub(super) waiting: usize,
    /// Whether the budget is used up, so that frames may be left.
    pub(super) has_more: bool,
    /// Whether a thread serves input that the step has found.
    pub(super) has_input: bool,
}

impl StatusPublisher {
    pub(super) fn new(status: ClassCounters, queue: usize) -> Self {
        Self {
            status,
            queue,
            next_losses: AtomicU64::new(0),
            put_off: AtomicU32::new(0),
        }
    }

    /// Publishes the results of a step that began at `now`.
    pub(super) fn step(
        &self,
        now: Monotonic,
        input: StepInput,
        counters: &Counters,
        receiver: &dyn Receiver,
        half_open: usize,
        demux: &Demux,
    ) {
        let status = &self.status;
        if input.packets > 0 {
            let latency = Monotonic::now().since(now);
            status.delivered_after(latency, input.packets as u64);
            status.add(Count::PacketsIn, input.packets as u64);
            status.add(Count::OctetsIn, input.octets as u64);
        }
        status.set(Level::Queue, input.waiting as u64);
        let left = if input.has_more {
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
        if self.reads_losses(now, input) {
            let received = receiver.counts();
            status.put(Count::QueueFull, received.dropped);
            status.put(Count::NoBuffers, received.failed);
        }
    }

    /// Returns whether to ask the driver for lost packets now. The query needs system calls, so it
    /// does not delay input, unless that is so much that packets may be lost.
    fn reads_losses(&self, now: Monotonic, input: StepInput) -> bool {
        if now.as_nanos() < self.next_losses.load(Ordering::Relaxed) {
            return false;
        }
        let may_wait = input.has_input && input.waiting < self.queue / 2;
        if may_wait && self.put_off.fetch_add(1, Ordering::Relaxed) < MOST_PUT_OFF {
            return false;
        }
        self.put_off.store(0, Ordering::Relaxed);
        let next = now + LOSSES_PAUSE;
        self.next_losses.store(next.as_nanos(), Ordering::Relaxed);
        true
    }

    /// Publishes the output counts.
    pub(super) fn departures(&self, egress: &Egress) {
        let sent = egress.transmitter().counts();
        self.status.put(Count::PacketsOut, sent.frames);
        self.status.put(Count::OctetsOut, sent.octets);
        self.status.put(Count::Retransmissions, egress.sent_again);
    }

    /// Publishes that a period has begun.
    pub(super) fn period(&self) {
        self.status.add(Count::Periods, 1);
    }

    /// Publishes the number of packets that have used the present period's budget.
    pub(super) fn budget_used(&self, packets: usize) {
        self.status.set(Level::BudgetUsed, packets as u64);
    }
}

/// The least time between two queries for lost packets.
const LOSSES_PAUSE: Duration = Duration::from_millis(10);
/// The number of steps with input that put such a query off.
const MOST_PUT_OFF: u32 = 256;
