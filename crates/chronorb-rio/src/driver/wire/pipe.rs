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

/// One direction of a wire, and the queues at its end.
///
/// Buffers circulate: from `free` to a transmitter, under way, into a queue, to a receiver, and
/// back. Every holder of buffers has contributed as many as it can hold.
#[derive(Debug)]
pub(in crate::driver) struct Pipe {
    pub(in crate::driver) free: Vec<Buffer>,
    /// The rules of the receiving end.
    pub(in crate::driver) table: Table,
    pub(in crate::driver) queues: [Option<PipeQueue>; MAX_CLASSES],
    /// The hardware address and the addresses of the receiving end.
    hardware: [u8; 6],
    addresses: Vec<(IpAddr, u8)>,
    longest: usize,
    disturbance: Disturbance,
    flight: VecDeque<(Monotonic, Buffer)>,
    /// The maximum number of frames in the pipe.
    room: usize,
    now: Monotonic,
    /// The time at which the next frame can be sent.
    idle_from: Monotonic,
    to_kernel: u64,
}

/// The frames of a class that have arrived.
#[derive(Debug)]
pub(in crate::driver) struct PipeQueue {
    pub(super) frames: VecDeque<Buffer>,
    pub(super) dropped: u64,
    room: usize,
    event: Arc<Wake>,
}

impl Pipe {
    /// Creates the direction to a host that has this interface.
    pub(in crate::driver) fn new(longest: usize, flight: usize, to: &Link) -> Self {
        let room = flight.max(Disturbance::BURST);
        let mut frames = VecDeque::new();
        frames.reserve_exact(room);
        let mut pipe = Self {
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
        pipe.add_buffers(room + Disturbance::BURST);
        pipe
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
            waiting: self.waiting() as u64,
            to_kernel: self.to_kernel,
            in_flight: (self.flight.len() + self.disturbance.held()) as u64,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.flight.len() + Disturbance::BURST <= self.room
    }

    /// Sends a frame. There must be room.
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

    /// Returns the next waiting frame of this class.
    pub(super) fn take(&mut self, class: ClassId) -> Option<Buffer> {
        let queue = self.queues[class.index()].as_mut()?;
        let frame = queue.frames.pop_front()?;
        if queue.frames.is_empty() {
            queue.event.drain();
        }
        Some(frame)
    }

    /// Returns the number of frames in the queues of all classes.
    fn waiting(&self) -> usize {
        let queues = self.queues.iter().flatten();
        queues.map(|queue| queue.frames.len()).sum()
    }

    /// Classifies a frame; `None` if it is for the kernel.
    fn class_of(&self, frame: &Buffer) -> Option<ClassId> {
        let headers = Headers::read(frame.octets()).ok()?;
        match (self.table.rules()).classify(&headers, self.hardware, &self.addresses) {
            Verdict::Class(class) => Some(class),
            Verdict::Kernel => None,
        }
    }

    /// Delivers the frames that are due.
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

impl PipeQueue {
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

/// Returns the transmission time of this many octets at a rate in bits per second.
fn transmission_time(octets: u64, rate: u64) -> Duration {
    let nanoseconds = (octets * 8 * 1_000_000_000).checked_div(rate);
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}
