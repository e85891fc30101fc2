//! Datagrams that wait in the process.

use std::collections::VecDeque;

/// A datagram with its metadata.
pub(super) type Arrival<T> = (T, Box<[u8]>);

/// A bounded queue of received messages that were not asked for yet.
#[derive(Debug)]
pub(super) struct Arrivals<T> {
    waiting: VecDeque<Arrival<T>>,
    octets: usize,
}

impl<T> Arrivals<T> {
    pub(super) const fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            octets: 0,
        }
    }

    /// Whether any further one may wait.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < MAX_WAITING && self.octets < MAX_OCTETS
    }

    /// Lets a datagram wait.
    pub(super) fn push(&mut self, about: T, octets: &[u8]) {
        self.octets += octets.len();
        self.waiting.push_back((about, octets.into()));
    }

    /// Lets one wait that was the first before.
    pub(super) fn put_back(&mut self, (about, octets): Arrival<T>) {
        self.octets += octets.len();
        self.waiting.push_front((about, octets));
    }

    pub(super) fn pop(&mut self) -> Option<Arrival<T>> {
        let (about, octets) = self.waiting.pop_front()?;
        self.octets -= octets.len();
        Some((about, octets))
    }

    /// Takes those out that are meant, in their order.
    pub(super) fn take(&mut self, is_meant: impl Fn(&T) -> bool) -> VecDeque<Arrival<T>> {
        let (meant, others) = self
            .waiting
            .drain(..)
            .partition(|(about, _)| is_meant(about));
        self.waiting = others;
        self.octets = self.waiting.iter().map(|(_, octets)| octets.len()).sum();
        meant
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The same amount that a socket of the kernel buffers by default.
const MAX_OCTETS: usize = 256 << 10;
const MAX_WAITING: usize = 256;
