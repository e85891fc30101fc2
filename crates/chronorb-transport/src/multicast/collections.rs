//! Reassembly of messages from their packets, in bounded memory.
//!
//! Every host can send to a group, so no packet is trusted: a collection is dropped if its packets
//! contradict each other, if it is too old or too large, or if the result is not a message. If
//! there is no room for another collection, the oldest one of the sender with the most collections
//! is dropped. So a sender that floods the group evicts its own collections, and not those of
//! others.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::{TryReserveError, VecDeque};
use std::mem;
use std::net::SocketAddr;
use std::time::Duration;

use chronorb_rt::Monotonic;

use super::counts::{Counters, Drop};
use super::packet::{MAX_ID_LEN, Packet};
use crate::Messages;

/// The bounds of incomplete messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Collections.
    pub collections: usize,
    /// The octets of all collections, with their overhead.
    pub octets: usize,
    /// Octets of one message.
    pub message: usize,
    /// The greatest age of a collection, from its first received packet.
    pub age: Duration,
}

impl Limits {
    /// Returns the usual limits for messages of at most so many octets: 64 collections, four times
    /// a message, one second.
    pub fn of_messages(message: usize) -> Self {
        Self {
            collections: 64,
            octets: message.saturating_mul(4),
            message,
            age: Duration::from_secs(1),
        }
    }
}

/// The collections that packets are missing of.
#[derive(Debug)]
pub struct Collections {
    limits: Limits,
    messages: Messages,
    /// The oldest first.
    open: VecDeque<Collection>,
    /// Octets of all that are open.
    octets: usize,
    /// The last message that was reassembled from several packets.
    whole: Vec<u8>,
}

impl Collections {
    /// None, yet.
    pub fn new(limits: Limits, messages: Messages) -> Self {
        Self {
            limits,
            messages,
            open: VecDeque::new(),
            octets: 0,
            whole: Vec::new(),
        }
    }

    /// Takes a packet from `sender`, and returns the message that it completes. Collections that
    /// are dropped for it are counted.
    pub fn push<'a>(
        &'a mut self,
        sender: SocketAddr,
        packet: Packet<'a>,
        now: Monotonic,
        counters: &Counters,
    ) -> Option<&'a [u8]> {
        self.expire(now, counters);
        let at = self.open.iter().position(|c| c.is_of(sender, packet.id));
        if at.is_none() && packet.number == 0 && packet.total == Some(1) {
            return if self.is_message(packet.data) {
                counters.whole(packet.data)
            } else {
                counters.drop(Drop::NoMessage)
            };
        }
        match self.add(at, sender, packet, now, counters) {
            Ok(Some(at)) => self.take_whole(at, counters),
            Ok(None) => None,
            Err(reason) => counters.drop(reason),
        }
    }

    /// Returns the number of open collections.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the octets of all open collections, with their overhead.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Adds a packet to its collection, or to a new one; returns where that is if it is whole.
    fn add(
        &mut self,
        at: Option<usize>,
        sender: SocketAddr,
        packet: Packet<'_>,
        now: Monotonic,
        counters: &Counters,
    ) -> Result<Option<usize>, Drop> {
        let mut at = match at {
            Some(at) => at,
            None => self.begin(sender, packet, now, counters),
        };
        let change = self.open[at].check(packet, self.limits.message);
        let place = match change {
            Ok(place) => place,
            // The earlier piece stays.
            Err(Drop::Duplicate) => return Err(Drop::Duplicate),
            Err(reason) => {
                self.remove(at);
                return Err(reason);
            }
        };
        if packet.number == 0 && !self.begins_message(packet.data) {
            self.remove(at);
            return Err(Drop::NoMessage);
        }
        let needed = self.open[at].growth(packet.data.len(), self.limits.message);
        while self.octets + needed.octets() > self.limits.octets {
            let victim = self.victim(Collection::octets);
            self.remove(victim);
            if victim == at {
                return Err(Drop::CrowdedOut);
            }
            counters.count(Drop::CrowdedOut);
            at -= usize::from(victim < at);
        }
        let collection = &mut self.open[at];
        let before = collection.octets();
        let reserved = collection.reserve(needed);
        self.octets += collection.octets() - before;
        if reserved.is_err() {
            self.remove(at);
            return Err(Drop::CrowdedOut);
        }
        collection.insert(place, packet);
        Ok(collection.is_whole().then_some(at))
    }

    /// Begins a collection, which is the last one.
    fn begin(
        &mut self,
        sender: SocketAddr,
        packet: Packet<'_>,
        now: Monotonic,
        counters: &Counters,
    ) -> usize {
        if self.open.len() >= self.limits.collections {
            let victim = self.victim(|_| 1);
            self.remove(victim);
            counters.count(Drop::CrowdedOut);
        }
        let collection = Collection::new(sender, packet.id, now);
        self.octets += collection.octets();
        self.open.push_back(collection);
        self.open.len() - 1
    }

    fn take_whole(&mut self, at: usize, counters: &Counters) -> Option<&[u8]> {
        let collection = self.remove(at)?;
        if collection.join(&mut self.whole).is_err() {
            return counters.drop(Drop::CrowdedOut);
        }
        if self.is_message(&self.whole) {
            counters.whole(&self.whole)
        } else {
            counters.drop(Drop::NoMessage)
        }
    }

    fn expire(&mut self, now: Monotonic, counters: &Counters) {
        while let Some(oldest) = self.open.front()
            && now.since(oldest.begun) > self.limits.age
        {
            self.remove(0);
            counters.count(Drop::Expired);
        }
    }

    fn remove(&mut self, at: usize) -> Option<Collection> {
        let removed = self.open.remove(at)?;
        self.octets -= removed.octets();
        Some(removed)
    }

    /// The oldest collection of the sender with most, of the host with most.
    fn victim(&self, weight: impl Fn(&Collection) -> usize) -> usize {
        let sum = |is_counted: &dyn Fn(&SocketAddr) -> bool| -> usize {
            let counted = self.open.iter().filter(|c| is_counted(&c.sender));
            counted.map(&weight).sum()
        };
        let heaviest = self.open.iter().enumerate().max_by_key(|(at, collection)| {
            let sender = collection.sender;
            let of_host = sum(&|other| other.ip() == sender.ip());
            (
                of_host,
                sum(&|other| *other == sender),
                self.open.len() - at,
            )
        });
        heaviest.map_or(0, |(at, _)| at)
    }

    fn is_message(&self, octets: &[u8]) -> bool {
        octets.len() <= self.limits.message && (self.messages.len)(octets) == Some(octets.len())
    }

    /// Whether the first part of a message is valid, as far as that can be decided.
    fn begins_message(&self, octets: &[u8]) -> bool {
        octets.len() < LEAST_BEGINNING
            || (self.messages.len)(octets).is_some_and(|len| len <= self.limits.message)
    }
}

/// Packets of one message.
#[derive(Debug)]
struct Collection {
    sender: SocketAddr,
    id: Id,
    begun: Monotonic,
    /// The number of packets, once one of them has told it.
    total: Option<u32>,
    /// The received packets, by their numbers.
    pieces: Vec<Piece>,
    /// The data of the packets, in the order of arrival.
    data: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    number: u32,
    start: u32,
    len: u32,
}

/// The room that a collection gets for another piece: its new capacities, and the increase.
#[derive(Clone, Copy, Debug)]
struct Growth {
    pieces: usize,
    data: usize,
}

impl Growth {
    fn octets(self) -> usize {
        self.pieces * size_of::<Piece>() + self.data
    }
}

impl Collection {
    fn new(sender: SocketAddr, id: &[u8], begun: Monotonic) -> Self {
        Self {
            sender,
            id: Id::new(id),
            begun,
            total: None,
            pieces: Vec::new(),
            data: Vec::new(),
        }
    }

    fn is_of(&self, sender: SocketAddr, id: &[u8]) -> bool {
        self.sender == sender && self.id.as_slice() == id
    }

    fn octets(&self) -> usize {
        let pieces = self.pieces.capacity() * size_of::<Piece>();
        size_of::<Self>() + pieces + self.data.capacity()
    }

    fn is_whole(&self) -> bool {
        self.total == u32::try_from(self.pieces.len()).ok()
    }

    /// Returns the position of a packet's piece, if it is consistent with the others.
    fn check(&self, packet: Packet<'_>, longest: usize) -> Result<usize, Drop> {
        if let (Some(known), Some(said)) = (self.total, packet.total)
            && known != said
        {
            return Err(Drop::Contradicting);
        }
        let total = self.total.or(packet.total).unwrap_or(u32::MAX);
        let highest = self.pieces.last().map_or(0, |piece| piece.number);
        if packet.number >= total || highest >= total {
            return Err(Drop::Contradicting);
        }
        match self
            .pieces
            .binary_search_by_key(&packet.number, |piece| piece.number)
        {
            Ok(at) if self.data_of(self.pieces[at]) == packet.data => Err(Drop::Duplicate),
            Ok(_) => Err(Drop::Contradicting),
            Err(_) if self.data.len() + packet.data.len() > longest => Err(Drop::TooLarge),
            Err(place) => Ok(place),
        }
    }

    /// The room for another piece. It doubles, as long as the whole message may be so long.
    fn growth(&self, len: usize, longest: usize) -> Growth {
        let more = |len: usize, added: usize, capacity: usize, longest: usize| match len + added {
            needed if needed <= capacity => 0,
            needed => needed.max((2 * capacity).min(longest)) - capacity,
        };
        Growth {
            pieces: more(self.pieces.len(), 1, self.pieces.capacity(), usize::MAX),
            data: more(self.data.len(), len, self.data.capacity(), longest),
        }
    }

    /// Makes exactly so much room, as it is counted.
    ///
    /// # Errors
    /// There is no memory for it, or for a part of it.
    fn reserve(&mut self, growth: Growth) -> Result<(), TryReserveError> {
        let room = |len: usize, capacity: usize, more: usize| capacity + more - len;
        if growth.pieces > 0 {
            let pieces = &mut self.pieces;
            pieces.try_reserve_exact(room(pieces.len(), pieces.capacity(), growth.pieces))?;
        }
        if growth.data > 0 {
            let data = &mut self.data;
            data.try_reserve_exact(room(data.len(), data.capacity(), growth.data))?;
        }
        Ok(())
    }

    /// Puts a piece in, for which there is room.
    fn insert(&mut self, place: usize, packet: Packet<'_>) {
        self.total = self.total.or(packet.total);
        let piece = Piece {
            number: packet.number,
            start: self.data.len() as u32,
            len: packet.data.len() as u32,
        };
        self.pieces.insert(place, piece);
        self.data.extend_from_slice(packet.data);
    }

    /// Returns the message, and reuses the memory of `whole`.
    ///
    /// # Errors
    /// There is no memory.
    fn join(mut self, whole: &mut Vec<u8>) -> Result<(), TryReserveError> {
        let is_in_order = self.pieces.is_sorted_by_key(|piece| piece.start);
        if is_in_order {
            mem::swap(whole, &mut self.data);
            return Ok(());
        }
        whole.clear();
        whole.try_reserve_exact(self.data.len())?;
        for piece in &self.pieces {
            whole.extend_from_slice(self.data_of(*piece));
        }
        Ok(())
    }

    fn data_of(&self, piece: Piece) -> &[u8] {
        &self.data[piece.start as usize..][..piece.len as usize]
    }
}

/// A unique id.
#[derive(Debug)]
struct Id {
    len: u8,
    octets: [u8; MAX_ID_LEN],
}

impl Id {
    fn new(id: &[u8]) -> Self {
        let mut octets = [0; MAX_ID_LEN];
        octets[..id.len()].copy_from_slice(id);
        Self {
            len: id.len() as u8,
            octets,
        }
    }

    fn as_slice(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }
}

/// The number of octets from which [`Messages::len`] can judge the beginning of a message.
const LEAST_BEGINNING: usize = 16;

#[cfg(test)]
#[allow(clippy::disallowed_macros, clippy::disallowed_methods)]
mod tests;
