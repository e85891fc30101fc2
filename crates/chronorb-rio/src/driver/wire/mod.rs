//! A wire in memory for tests, with a driver at each end, and faults in between.
//!
//! [`Wire::advance`] sets the time of a wire. Frames with a latency arrive then; frames without one
//! arrive when they are [flushed](crate::path::Transmitter::flush). Thus a client and a server can
//! run in one thread, one after the other, and behave the same in each run. Frames of no class are
//! counted as left to the kernel. Frames are lost only by [`Faults`] or if a class's queue is full.
//! An open path does not allocate.

pub(in crate::driver) mod faults;
mod faulty;
pub(in crate::driver) mod pipe;
pub(in crate::driver) mod receiver;

use std::collections::VecDeque;
use std::sync::Arc;

use chronorb_rt::{Monotonic, PiMutex};

use self::faults::Buffer;
pub(crate) use self::faults::{FaultCounts, Faults};
pub(crate) use self::faulty::FaultyDriver;
use self::pipe::Pipe;
use self::receiver::PipeReceiver;
use super::{Driver, DriverError, Link, longest_frame, queue_of};
use crate::class::{ClassId, Rule, Unknown};
use crate::path::{Path, PathError, TransmitCounts, TransmitError, Transmitter};

/// Joins two ends by a wire with room for about `flight` frames in each direction. A frame that
/// finds no room stays in its transmitter's queue.
pub(crate) fn join(left: Link, right: Link, flight: usize) -> (Wire, End, End) {
    let longest = longest_frame(&left).max(longest_frame(&right));
    let ways = [&right, &left].map(|to| {
        let pipe = Pipe::new(longest, flight, to);
        Arc::new(PiMutex::new(pipe))
    });
    let wire = Wire(Arc::new(WireState {
        links: [left, right],
        ways,
    }));
    let [left, right] = [Side::Left, Side::Right].map(|side| End {
        wire: wire.clone(),
        side,
    });
    (wire, left, right)
}

/// The wire between two ends: its time, its faults and its counts.
#[derive(Clone, Debug)]
pub(crate) struct Wire(Arc<WireState>);

/// A side of a wire. As a direction, it means the one from this side to the other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    /// The first of the two ends.
    Left,
    /// The second.
    Right,
}

/// Counts of frames on a wire in one direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct WireCounts {
    /// The counts of faults.
    pub faults: FaultCounts,
    /// Frames that arrived and matched no class.
    pub to_kernel: u64,
    /// Frames that are under way.
    pub in_flight: u64,
    /// Frames that have arrived and wait in the queues of their classes.
    pub waiting: u64,
}

impl Wire {
    /// Sets the time and delivers frames that are due. Time is monotonic.
    pub(crate) fn advance(&self, now: Monotonic) {
        for side in [Side::Left, Side::Right] {
            self.pipe(side).lock().advance(now);
        }
    }

    /// Returns the time at which the next frame arrives; `None` if none is under way.
    pub(crate) fn next(&self) -> Option<Monotonic> {
        let next = |side| self.pipe(side).lock().next();
        match (next(Side::Left), next(Side::Right)) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        }
    }

    /// Applies faults to frames sent from this side from now on. Random numbers are derived from
    /// `seed`.
    pub(crate) fn disturb(&self, from: Side, faults: Faults, seed: u64) {
        self.pipe(from).lock().disturb(faults, seed);
    }

    /// Returns the counts of frames sent from this side.
    pub(crate) fn counts(&self, from: Side) -> WireCounts {
        self.pipe(from).lock().counts()
    }

    fn link(&self, side: Side) -> &Link {
        &self.0.links[side as usize]
    }

    /// Returns the direction from this side.
    fn pipe(&self, from: Side) -> &Arc<PiMutex<Pipe>> {
        &self.0.ways[from as usize]
    }
}

impl Side {
    /// Returns the other side.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// An end of a wire.
#[derive(Clone, Debug)]
pub(crate) struct End {
    wire: Wire,
    side: Side,
}

#[derive(Debug)]
struct WireState {
    links: [Link; 2],
    ways: [Arc<PiMutex<Pipe>>; 2],
}

impl End {
    /// Returns the direction that leads to this end.
    fn incoming(&self) -> &Arc<PiMutex<Pipe>> {
        self.wire.pipe(self.side.other())
    }

    /// Returns the direction that leads from this end.
    fn outgoing(&self) -> &Arc<PiMutex<Pipe>> {
        self.wire.pipe(self.side)
    }
}

impl Driver for End {
    fn link(&self) -> &Link {
        self.wire.link(self.side)
    }

    fn open(&self, class: ClassId, rules: &[Rule], queue: usize) -> Result<Path, DriverError> {
        let queue = queue_of(queue)?;
        let receiver =
            PipeReceiver::open(self.incoming(), class, rules, queue, self.wire.0.clone())?;
        self.outgoing().lock().add_buffers(queue);
        let transmitter = EndTransmitter {
            pipe: self.outgoing().clone(),
            longest: longest_frame(self.link()),
            queue,
            waiting: VecDeque::with_capacity(queue),
            counts: TransmitCounts::default(),
        };
        Ok(Path {
            receiver: Box::new(receiver),
            transmitter: Box::new(transmitter),
        })
    }

    fn add(&self, rule: &Rule) -> Result<(), DriverError> {
        self.incoming().lock().table.add(rule)
    }

    fn remove(&self, rule: &Rule) {
        self.incoming().lock().table.remove(rule);
    }

    fn set_unknown(&self, unknown: Unknown) -> Result<(), DriverError> {
        self.incoming().lock().table.set_unknown(unknown)
    }
}

#[derive(Debug)]
struct EndTransmitter {
    pipe: Arc<PiMutex<Pipe>>,
    longest: usize,
    /// The length of the queue in frames.
    queue: usize,
    waiting: VecDeque<Buffer>,
    counts: TransmitCounts,
}

impl Transmitter for EndTransmitter {
    fn transmit(
        &mut self,
        len: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), TransmitError> {
        if len > self.longest {
            let max = self.longest;
            return Err(TransmitError::TooLong { len, max });
        }
        let buffer = if self.has_room() {
            self.pipe.lock().free.pop()
        } else {
            None
        };
        let Some(mut buffer) = buffer else {
            self.counts.full += 1;
            return Err(TransmitError::Full);
        };
        write(buffer.resize(len));
        self.waiting.push_back(buffer);
        self.counts.frames += 1;
        self.counts.octets += len as u64;
        Ok(())
    }

    fn has_room(&mut self) -> bool {
        self.waiting.len() < self.queue
    }

    fn flush(&mut self) -> Result<(), PathError> {
        let mut pipe = self.pipe.lock();
        while pipe.has_room()
            && let Some(buffer) = self.waiting.pop_front()
        {
            pipe.send(buffer);
        }
        Ok(())
    }

    fn is_pending(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn counts(&self) -> TransmitCounts {
        self.counts
    }
}

impl Drop for EndTransmitter {
    fn drop(&mut self) {
        let mut pipe = self.pipe.lock();
        pipe.free.extend(self.waiting.drain(..));
        pipe.take_buffers(self.queue);
    }
}
