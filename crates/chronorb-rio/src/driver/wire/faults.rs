//! Faults of a wire, decided by random numbers that are the same in each run.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::time::Duration;

use fastrand::Rng;

use crate::frame::ETHERNET_LEN;

/// The faults of a wire in one direction. The default is none.
///
/// The first four are independent probabilities from 0 to 1 per frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Faults {
    /// The frame is lost.
    pub loss: f64,
    /// The frame arrives twice.
    pub duplication: f64,
    /// The frame waits until one to eight others have overtaken it.
    pub reordering: f64,
    /// One octet behind the Ethernet header changes. The error is left for the TCP and IP checksums
    /// to detect.
    pub corruption: f64,
    /// The latency of each frame.
    pub delay: Duration,
    /// The data rate in bits per second of frame octets; 0 is unlimited. A frame waits for the
    /// frames before it.
    pub rate: u64,
}

/// Counts of frames in one direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct FaultCounts {
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that were lost.
    pub lost: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames that were overtaken by others.
    pub overtaken: u64,
    /// Frames with a changed octet.
    pub corrupted: u64,
}

impl FaultCounts {
    /// Adds the difference between two counts.
    pub(super) fn add_difference(&mut self, before: Self, after: Self) {
        self.sent += after.sent - before.sent;
        self.lost += after.lost - before.lost;
        self.duplicated += after.duplicated - before.duplicated;
        self.overtaken += after.overtaken - before.overtaken;
        self.corrupted += after.corrupted - before.corrupted;
    }
}

/// A buffer, and the frame in it.
#[derive(Debug)]
pub(in crate::driver) struct Buffer {
    room: Box<[u8]>,
    len: usize,
}

/// Applies [`Faults`] to the frames of one direction, except for delay and rate.
#[derive(Debug)]
pub(super) struct Disturbance {
    pub(super) faults: Faults,
    pub(super) counts: FaultCounts,
    random: Rng,
    /// Frames that wait to be overtaken, each with the number of frames that still have to pass.
    held: Vec<(u64, Buffer)>,
}

impl Buffer {
    pub(in crate::driver) fn new(longest: usize) -> Self {
        Self {
            room: [0].repeat(longest).into(),
            len: 0,
        }
    }

    /// Sets the length of the frame and returns its octets.
    pub(in crate::driver) fn resize(&mut self, len: usize) -> &mut [u8] {
        self.len = len;
        &mut self.room[..len]
    }

    /// Returns the whole buffer.
    pub(in crate::driver) fn whole(&mut self) -> &mut [u8] {
        &mut self.room
    }

    pub(in crate::driver) fn octets(&self) -> &[u8] {
        &self.room[..self.len]
    }
}

impl Disturbance {
    /// The maximum number of frames that wait to be overtaken.
    pub(super) const HELD: usize = 8;
    /// The maximum number of frames that arrive because of one that is sent.
    pub(super) const BURST: usize = Self::HELD + 2;

    pub(super) fn new(faults: Faults, seed: u64) -> Self {
        let mut held = Vec::new();
        held.reserve_exact(Self::HELD);
        Self {
            faults,
            counts: FaultCounts::default(),
            random: Rng::with_seed(seed),
            held,
        }
    }

    /// Changes the faults. Frames that wait to be overtaken keep waiting.
    pub(super) fn set(&mut self, faults: Faults, seed: u64) {
        self.faults = faults;
        self.random = Rng::with_seed(seed);
    }

    /// Returns the number of frames that wait to be overtaken.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Sends a frame. Arriving frames go to `out`. Unused buffers go to `free`, which also provides
    /// the buffer of a duplicate.
    pub(super) fn pass(
        &mut self,
        mut frame: Buffer,
        free: &mut Vec<Buffer>,
        mut out: impl FnMut(Buffer),
    ) {
        self.counts.sent += 1;
        let faults = self.faults;
        let is_overtaken =
            hits(&mut self.random, faults.reordering) && self.held.len() < Self::HELD;
        if hits(&mut self.random, faults.loss) {
            self.counts.lost += 1;
            free.push(frame);
        } else {
            let payload = frame.len.saturating_sub(ETHERNET_LEN);
            if hits(&mut self.random, faults.corruption) && payload > 0 {
                self.counts.corrupted += 1;
                let place = ETHERNET_LEN + self.random.usize(..payload);
                frame.room[place] ^= self.random.u8(1..);
            }
            let double = if hits(&mut self.random, faults.duplication) {
                free.pop()
            } else {
                None
            };
            if let Some(mut double) = double {
                self.counts.duplicated += 1;
                double.resize(frame.len).copy_from_slice(frame.octets());
                out(double);
            }
            if is_overtaken {
                self.counts.overtaken += 1;
                let others = self.random.u64(1..=Self::HELD as u64);
                // The frame itself counts as the first one that passes, below.
                self.held.push((others + 1, frame));
            } else {
                out(frame);
            }
        }
        for (others, _) in &mut self.held {
            *others -= 1;
        }
        while let Some(place) = self.held.iter().position(|(others, _)| *others == 0) {
            out(self.held.remove(place).1);
        }
    }
}

/// Draws whether an event with this probability occurs.
fn hits(random: &mut Rng, probability: f64) -> bool {
    random.f64() < probability
}
