//! Messages that have no answer: how long they are under way, by the one clock of the machine.

use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use chronorb_rt::{Monotonic, PiMutex, sleep_until};

use super::order::{Arrivals, Operation, Report, Waits};
use crate::process::{self, Parent};

/// When messages may follow each other: each shall find the way free, but those of a flood.
#[derive(Debug)]
pub(super) struct Pace {
    waits: Waits,
    period: Duration,
    due: Monotonic,
    /// Whether the next message counts.
    counts: bool,
}

impl Pace {
    pub(super) fn of(operation: Operation, waits: Waits) -> Self {
        let period = match operation {
            Operation::Flood => Duration::ZERO,
            Operation::Oneway(octets) if octets >= MUCH => LONG_PERIOD,
            _ => PERIOD,
        };
        Self {
            waits,
            period,
            due: Monotonic::now(),
            counts: true,
        }
    }

    /// The next message does not count.
    pub(super) const fn leave_out_next(&mut self) {
        self.counts = false;
    }

    /// The time, as a message tells it: 0 where it does not count.
    pub(super) fn begin(&mut self) -> u64 {
        let now = Monotonic::now();
        self.due = now + self.period;
        match mem::replace(&mut self.counts, true) {
            true => now.as_nanos(),
            false => 0,
        }
    }

    /// Waits until the next message may be sent; who spins does not leave its processor.
    pub(super) fn keep(&self) {
        match self.waits {
            _ if self.period.is_zero() => {}
            Waits::Block => sleep_until(self.due),
            Waits::Spin => while Monotonic::now() < self.due {},
        }
    }
}

/// Where messages that have no answer arrive.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Arc<PiMutex<Arrivals>>);

impl Recorder {
    /// Lets the parent ask.
    pub(super) fn report_to(&self, parent: Parent) {
        let recorder = self.clone();
        thread::spawn(move || {
            // The parent is gone when there is nothing more to hear.
            while let Ok(Report {}) = parent.hear() {
                if process::tell(&recorder.taken()).is_err() {
                    break;
                }
            }
        });
    }

    /// A message has come that was sent at this time.
    pub(super) fn take(&self, sent_ns: u64) {
        if sent_ns == 0 {
            return;
        }
        let came_ns = Monotonic::now().as_nanos();
        self.0.lock().add(sent_ns, came_ns);
    }

    /// What has come since it was asked last.
    pub(super) fn taken(&self) -> Arrivals {
        mem::take(&mut self.0.lock())
    }
}

/// The time that a raw message tells: its end.
pub(super) fn stamp_of(message: &[u8]) -> u64 {
    message.last_chunk().copied().map_or(0, u64::from_ne_bytes)
}

/// Has a raw message tell the time.
pub(super) fn put_stamp(message: &mut [u8], sent_ns: u64) {
    if let Some(end) = message.last_chunk_mut() {
        *end = sent_ns.to_ne_bytes();
    }
}

/// Longer than one is under way where nothing disturbs it.
const PERIOD: Duration = Duration::from_micros(100);
/// The same for those that carry much.
const LONG_PERIOD: Duration = Duration::from_millis(1);
const MUCH: u32 = 1 << 15;
