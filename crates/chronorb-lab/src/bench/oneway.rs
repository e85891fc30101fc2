//! Oneway messages: their time under way, by the clock that both processes share.

use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use chronorb_rt::{Monotonic, PiMutex, sleep_until};

use super::order::{Arrivals, Operation, Report, Waits};
use crate::process::{self, Parent};

/// The pace of oneway messages. Each finds empty buffers, except in a flood.
#[derive(Debug)]
pub(super) struct SendPace {
    waits: Waits,
    period: Duration,
    due: Monotonic,
    /// Whether the next message counts.
    counts: bool,
}

impl SendPace {
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

    /// Excludes the next message from the figures.
    pub(super) const fn leave_out_next(&mut self) {
        self.counts = false;
    }

    /// Returns the time stamp of the next message: 0 if the message is excluded.
    pub(super) fn begin(&mut self) -> u64 {
        let now = Monotonic::now();
        self.due = now + self.period;
        if mem::replace(&mut self.counts, true) {
            now.as_nanos()
        } else {
            0
        }
    }

    /// Waits until the next message may be sent. A spinning sender keeps its processor.
    pub(super) fn keep(&self) {
        match self.waits {
            _ if self.period.is_zero() => {}
            Waits::Block => sleep_until(self.due),
            Waits::Spin => while Monotonic::now() < self.due {},
        }
    }
}

/// The record of arriving oneway messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Arc<PiMutex<BatchRecord>>);

/// The messages of a batch that arrived. A message of an earlier batch, which was counted as lost
/// because it took too long, is not among them.
#[derive(Debug, Default)]
struct BatchRecord {
    start_ns: u64,
    arrivals: Arrivals,
}

impl Recorder {
    /// Answers the requests of the parent for a report.
    pub(super) fn report_to(&self, parent: Parent) {
        let recorder = self.clone();
        thread::spawn(move || {
            // An error means that the parent is gone.
            while let Ok(Report { batch_ns }) = parent.hear() {
                if process::tell(&recorder.taken_for(batch_ns)).is_err() {
                    break;
                }
            }
        });
    }

    /// Adds a message that was sent at this time and comes now.
    pub(super) fn take(&self, sent_ns: u64) {
        if sent_ns == 0 {
            return;
        }
        let came_ns = Monotonic::now().as_nanos();
        let mut record = self.0.lock();
        if sent_ns >= record.start_ns {
            record.arrivals.add(sent_ns, came_ns);
        }
    }

    /// Returns the messages since the last call.
    pub(super) fn taken(&self) -> Arrivals {
        mem::take(&mut self.0.lock().arrivals)
    }

    /// Returns the messages since the last call, and excludes those sent before the start of the
    /// batch from now on.
    fn taken_for(&self, batch_ns: u64) -> Arrivals {
        let mut record = self.0.lock();
        record.start_ns = batch_ns;
        mem::take(&mut record.arrivals)
    }
}

/// Reads the time stamp at the end of a raw message.
pub(super) fn stamp_of(message: &[u8]) -> u64 {
    message.last_chunk().copied().map_or(0, u64::from_ne_bytes)
}

/// Writes a time stamp to the end of a raw message.
pub(super) fn put_stamp(message: &mut [u8], sent_ns: u64) {
    if let Some(end) = message.last_chunk_mut() {
        *end = sent_ns.to_ne_bytes();
    }
}

/// The time between messages, which is longer than an undisturbed message takes.
const PERIOD: Duration = Duration::from_micros(100);
/// The time between large messages.
const LONG_PERIOD: Duration = Duration::from_millis(1);
/// The octets of a large message.
const MUCH: u32 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_an_earlier_batch_is_not_counted() {
        let recorder = Recorder::default();
        recorder.take(10);
        assert_eq!(recorder.taken_for(20).count(), 1);
        // It was under way when the batch before ended.
        recorder.take(19);
        recorder.take(20);
        let arrivals = recorder.taken_for(20);
        assert_eq!((arrivals.count(), arrivals.first_sent_ns), (1, 20));
    }
}
