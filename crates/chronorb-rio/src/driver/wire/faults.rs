//! What goes wrong on a wire, decided by numbers that are the same in each run.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::time::Duration;

use fastrand::Rng;

use crate::frame::ETHERNET_LEN;

/// What goes wrong on a wire, in one direction. The default is nothing.
///
/// Each of the first four is a probability from 0 to 1 per frame, each decided for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Faults {
    /// The frame is lost.
    pub loss: f64,
    /// The frame comes twice.
    pub duplication: f64,
    /// The frame waits until one to eight others have passed it.
    pub reordering: f64,
    /// One octet behind the Ethernet header is another one: what no check sequence has found, and a
    /// checksum does.
    pub corruption: f64,
    /// How long each frame takes.
    pub delay: Duration,
    /// Bits in a second, counted as the octets of frames are; 0 is any number. A frame waits for
    /// those before it.
    pub rate: u64,
}

/// What has happened to frames in one direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct FaultCounts {
    /// Frames that set out.
    pub sent: u64,
    /// Lost on the way.
    pub lost: u64,
    /// Frames that came twice.
    pub duplicated: u64,
    /// Frames that others have passed.
    pub overtaken: u64,
    /// Frames of which an octet was changed.
    pub corrupted: u64,
}

impl FaultCounts {
    /// Adds what was counted between the two.
    pub(super) fn add_difference(&mut self, before: Self, after: Self) {
        self.sent += after.sent - before.sent;
        self.lost += after.lost - before.lost;
        self.duplicated += after.duplicated - before.duplicated;
        self.overtaken += after.overtaken - before.overtaken;
        self.corrupted += after.corrupted - before.corrupted;
    }
}

/// Room for a frame, and the frame.
#[derive(Debug)]
pub(in crate::driver) struct Buffer {
    room: Box<[u8]>,
    len: usize,
}

/// Does to the frames of one direction what [`Faults`] say, but for the time that they take.
#[derive(Debug)]
pub(super) struct Disturbance {
    pub(super) faults: Faults,
    pub(super) counts: FaultCounts,
    random: Rng,
    /// Frames that wait to be overtaken by so many others.
    held: Vec<(u64, Buffer)>,
}

impl Buffer {
    pub(in crate::driver) fn new(longest: usize) -> Self {
        Self {
            room: std::iter::repeat_n(0, longest).collect(),
            len: 0,
        }
    }

    /// Makes it a frame of so many octets, and gives these.
    pub(in crate::driver) fn resize(&mut self, len: usize) -> &mut [u8] {
        self.len = len;
        &mut self.room[..len]
    }

    /// All of the room.
    pub(in crate::driver) fn whole(&mut self) -> &mut [u8] {
        &mut self.room
    }

    pub(in crate::driver) fn octets(&self) -> &[u8] {
        &self.room[..self.len]
    }
}

impl Disturbance {
    /// How many frames wait to be overtaken at most.
    pub(super) const HELD: usize = 8;
    /// Frames that come out for one that goes in, at most.
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

    /// Other faults from now on; who waits to be overtaken still does.
    pub(super) fn set(&mut self, faults: Faults, seed: u64) {
        self.faults = faults;
        self.random = Rng::with_seed(seed);
    }

    /// Frames that wait to be overtaken.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// A frame sets out: `out` gets what arrives for it, `free` what is left over, and gives the
    /// room of its double.
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
                // This frame itself counts as the first below.
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

/// Draws whether an event of this probability happens.
fn hits(random: &mut Rng, probability: f64) -> bool {
    random.f64() < probability
}
