//! A wire in memory, with a driver at each end, and faults on the way, for tests.
//!
//! Time on a wire is what [`Wire::advance`] says: frames that take time arrive by it, those that
//! take none when they are [flushed](crate::path::Transmitter::flush). So a client and a server run
//! in one thread, one after the other, and do the same each time. What no class wants is counted as
//! gone to the kernel, which is not there. Frames are lost where a [`Faults`] says so, or a class's
//! queue is full, and nowhere else. After a path is open nothing is allocated.

pub(in crate::driver) mod faults;
mod faulty;
pub(in crate::driver) mod receiver;
pub(in crate::driver) mod way;

use std::collections::VecDeque;
use std::sync::Arc;

use chronorb_rt::{Monotonic, PiMutex};

use self::faults::Buffer;
pub(crate) use self::faults::{FaultCounts, Faults};
pub(crate) use self::faulty::Faulty;
use self::receiver::WayReceiver;
use self::way::Way;
use super::{Driver, DriverError, Link, longest_frame, queue_of};
use crate::class::{ClassId, Rule, Unknown};
use crate::path::{Path, PathError, TransmitError, Transmitted, Transmitter};

/// Joins two ends by a wire on which `flight` frames have room in each direction, rounded up to a
/// few. A frame that finds no room stays in its transmitter's queue.
pub(crate) fn join(left: Link, right: Link, flight: usize) -> (Wire, End, End) {
    let longest = longest_frame(&left).max(longest_frame(&right));
    let ways = [&right, &left].map(|to| {
        let way = Way::new(longest, flight, to);
        Arc::new(PiMutex::new(way))
    });
    let wire = Wire(Arc::new(Shared {
        links: [left, right],
        ways,
    }));
    let [left, right] = [Side::Left, Side::Right].map(|side| End {
        wire: wire.clone(),
        side,
    });
    (wire, left, right)
}

/// What lies between two ends: its time, its faults and its counts.
#[derive(Clone, Debug)]
pub(crate) struct Wire(Arc<Shared>);

/// One of the two sides of a wire; of directions, the one from this side to the other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    /// The first of the two ends.
    Left,
    /// The second.
    Right,
}

/// What has happened on a wire in one direction, in frames.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct WireCounts {
    /// What the faults have done.
    pub faults: FaultCounts,
    /// Arrived where no class wanted them.
    pub to_kernel: u64,
    /// On the way now.
    pub in_flight: u64,
}

impl Wire {
    /// It is this time now: what is due arrives. Time does not go back.
    pub(crate) fn advance(&self, now: Monotonic) {
        for side in [Side::Left, Side::Right] {
            self.way(side).lock().advance(now);
        }
    }

    /// When the next frame arrives; `None` if none is on the way.
    pub(crate) fn next(&self) -> Option<Monotonic> {
        let next = |side| self.way(side).lock().next();
        match (next(Side::Left), next(Side::Right)) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        }
    }

    /// Does this to what sets out from this side from now on, by random numbers that follow from
    /// `seed`.
    pub(crate) fn disturb(&self, from: Side, faults: Faults, seed: u64) {
        self.way(from).lock().disturb(faults, seed);
    }

    /// What has happened to what set out from this side.
    pub(crate) fn counts(&self, from: Side) -> WireCounts {
        self.way(from).lock().counts()
    }

    fn link(&self, side: Side) -> &Link {
        &self.0.links[side as usize]
    }

    /// The way from this side.
    fn way(&self, from: Side) -> &Arc<PiMutex<Way>> {
        &self.0.ways[from as usize]
    }
}

impl Side {
    /// The other one.
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
struct Shared {
    links: [Link; 2],
    ways: [Arc<PiMutex<Way>>; 2],
}

impl End {
    /// The way that leads here.
    fn incoming(&self) -> &Arc<PiMutex<Way>> {
        self.wire.way(self.side.other())
    }

    /// The way from here.
    fn outgoing(&self) -> &Arc<PiMutex<Way>> {
        self.wire.way(self.side)
    }
}

impl Driver for End {
    fn link(&self) -> &Link {
        self.wire.link(self.side)
    }

    fn open(&self, class: ClassId, rules: &[Rule], queue: usize) -> Result<Path, DriverError> {
        let queue = queue_of(queue)?;
        let receiver =
            WayReceiver::open(self.incoming(), class, rules, queue, self.wire.0.clone())?;
        self.outgoing().lock().add_buffers(queue);
        let transmitter = EndTransmitter {
            way: self.outgoing().clone(),
            longest: longest_frame(self.link()),
            queue,
            waiting: VecDeque::with_capacity(queue),
            counts: Transmitted::default(),
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
    way: Arc<PiMutex<Way>>,
    longest: usize,
    /// Frames.
    queue: usize,
    waiting: VecDeque<Buffer>,
    counts: Transmitted,
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
            self.way.lock().free.pop()
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
        let mut way = self.way.lock();
        while way.has_room()
            && let Some(buffer) = self.waiting.pop_front()
        {
            way.send(buffer);
        }
        Ok(())
    }

    fn is_pending(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn counts(&self) -> Transmitted {
        self.counts
    }
}

impl Drop for EndTransmitter {
    fn drop(&mut self) {
        let mut way = self.way.lock();
        way.free.extend(self.waiting.drain(..));
        way.take_buffers(self.queue);
    }
}
