//! One direction of a wire.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::{Monotonic, Wake};

use super::faults::{Buffer, Disturbance};
use super::{Faults, WireCounts};
use crate::class::{ClassId, MAX_CLASSES, Verdict};
use crate::driver::Link;
use crate::driver::table::Table;
use crate::frame::Headers;

/// One direction of a wire, and what waits at its end.
///
/// Buffers go round: from `free` to a transmitter, on the way, into a queue, to who receives, and
/// back. Whoever may hold some has brought as many.
#[derive(Debug)]
pub(in crate::driver) struct Way {
    pub(in crate::driver) free: Vec<Buffer>,
    /// The rules of the end that it leads to.
    pub(in crate::driver) table: Table,
    pub(in crate::driver) queues: [Option<Queue>; MAX_CLASSES],
    /// The hardware address of that end, and its addresses.
    hardware: [u8; 6],
    addresses: Vec<(IpAddr, u8)>,
    longest: usize,
    disturbance: Disturbance,
    flight: VecDeque<(Monotonic, Buffer)>,
    /// Frames that have room on the way.
    room: usize,
    now: Monotonic,
    /// When the next frame can set out.
    idle_from: Monotonic,
    to_kernel: u64,
}

/// The frames of a class that have arrived.
#[derive(Debug)]
pub(in crate::driver) struct Queue {
    pub(super) frames: VecDeque<Buffer>,
    pub(super) dropped: u64,
    room: usize,
    event: Arc<Wake>,
}

impl Way {
    /// The way to a host that has this interface.
    pub(in crate::driver) fn new(longest: usize, flight: usize, to: &Link) -> Self {
        let room = flight.max(Disturbance::BURST);
        let mut frames = VecDeque::new();
        frames.reserve_exact(room);
        let mut way = Self {
            free: Vec::new(),
            table: Table::new(),
            queues: [const { None }; MAX_CLASSES],
            hardware: to.hardware,
            addresses: to.addresses.clone(),
            longest,
            disturbance: Disturbance::new(Faults::default(), 0),
            flight: frames,
            room,
            now: Monotonic::from_nanos(0),
            idle_from: Monotonic::from_nanos(0),
            to_kernel: 0,
        };
        way.add_buffers(room + Disturbance::BURST);
        way
    }

    pub(super) fn add_buffers(&mut self, count: usize) {
        let longest = self.longest;
        self.free.extend((0..count).map(|_| Buffer::new(longest)));
    }

    pub(super) fn take_buffers(&mut self, count: usize) {
        let left = self.free.len().saturating_sub(count);
        self.free.truncate(left);
    }

    pub(super) fn disturb(&mut self, faults: Faults, seed: u64) {
        self.disturbance.set(faults, seed);
    }

    pub(in crate::driver) fn counts(&self) -> WireCounts {
        WireCounts {
            faults: self.disturbance.counts,
            to_kernel: self.to_kernel,
            in_flight: (self.flight.len() + self.disturbance.held()) as u64,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.flight.len() + Disturbance::BURST <= self.room
    }

    /// A frame sets out. There must be room.
    pub(in crate::driver) fn send(&mut self, frame: Buffer) {
        let Faults { delay, rate, .. } = self.disturbance.faults;
        let (now, idle_from, flight) = (self.now, &mut self.idle_from, &mut self.flight);
        self.disturbance.pass(frame, &mut self.free, |frame| {
            let octets = frame.octets().len() as u64;
            let start = (*idle_from).max(now);
            *idle_from = start + transmission_time(octets, rate);
            flight.push_back((*idle_from + delay, frame));
        });
        self.arrive();
    }

    pub(super) fn advance(&mut self, now: Monotonic) {
        self.now = self.now.max(now);
        self.arrive();
    }

    pub(super) fn next(&self) -> Option<Monotonic> {
        Some(self.flight.front()?.0)
    }

    /// The next frame that waits for this class.
    pub(super) fn take(&mut self, class: ClassId) -> Option<Buffer> {
        let queue = self.queues[class.index()].as_mut()?;
        let frame = queue.frames.pop_front()?;
        if queue.frames.is_empty() {
            queue.event.drain();
        }
        Some(frame)
    }

    /// The class of a frame; `None` if it is for the kernel.
    fn class_of(&self, frame: &Buffer) -> Option<ClassId> {
        let headers = Headers::read(frame.octets()).ok()?;
        match (self.table.rules()).classify(&headers, self.hardware, &self.addresses) {
            Verdict::Class(class) => Some(class),
            Verdict::Kernel => None,
        }
    }

    /// Puts what is due into the queues.
    fn arrive(&mut self) {
        while let Some((due, _)) = self.flight.front()
            && *due <= self.now
            && let Some((_, frame)) = self.flight.pop_front()
        {
            let Some(queue) =
                (self.class_of(&frame)).and_then(|class| self.queues[class.index()].as_mut())
            else {
                self.to_kernel += 1;
                self.free.push(frame);
                continue;
            };
            if queue.frames.len() == queue.room {
                queue.dropped += 1;
                self.free.push(frame);
                continue;
            }
            queue.frames.push_back(frame);
            if queue.frames.len() == 1 {
                queue.event.notify();
            }
        }
    }
}

impl Queue {
    pub(super) fn new(room: usize, event: Arc<Wake>) -> Self {
        let mut frames = VecDeque::new();
        frames.reserve_exact(room);
        Self {
            frames,
            dropped: 0,
            room,
            event,
        }
    }
}

/// How long so many octets take at so many bits in a second.
fn transmission_time(octets: u64, rate: u64) -> Duration {
    let nanoseconds = (octets * 8 * 1_000_000_000).checked_div(rate);
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}
