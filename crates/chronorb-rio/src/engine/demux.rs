//! The mapping of flows to slots, and the sets of free and waiting-out slots.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use chronorb_rt::Monotonic;

use super::arrivals::Arrivals;
use super::table::{Flow, FlowTable};

/// The slots of a class for the thread that demultiplexes packets.
#[derive(Debug)]
pub(super) struct Demux {
    pub(super) table: FlowTable,
    stages: Box<[(Stage, u32)]>,
    /// Free slots, the least recently used first.
    free: VecDeque<u32>,
    /// Slots in TIME-WAIT, the oldest first, each with its use count. Entries with another use
    /// count are stale.
    waiting_out: VecDeque<(u32, u32)>,
    waiting_out_count: usize,
    /// The number of slots of each peer address.
    peers: HashMap<IpAddr, usize>,
    /// The time until which no connection can be evicted, according to the last search.
    pub(super) crowded_until: Monotonic,
    pub(super) listeners: Vec<Option<AcceptQueue>>,
    /// Whether the present step has found input for the holder of a connection.
    pub(super) has_input: bool,
    dirty: Vec<u32>,
    first: usize,
    is_dirty: Box<[bool]>,
}

/// The use of a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    Free,
    Used,
    WaitingOut,
}

/// A listener, and its connections that wait to be accepted.
#[derive(Debug)]
pub(super) struct AcceptQueue {
    pub(super) address: SocketAddr,
    pub(super) queue: VecDeque<u32>,
    pub(super) arrivals: Arc<Arrivals>,
}

impl Demux {
    #[allow(clippy::disallowed_methods, reason = "when a class opens")]
    pub(super) fn new(slots: usize) -> Self {
        Self {
            table: FlowTable::new(slots),
            stages: std::iter::repeat_n((Stage::Free, 0), slots).collect(),
            free: (0..slots as u32).collect(),
            waiting_out: VecDeque::with_capacity(2 * slots),
            waiting_out_count: 0,
            peers: HashMap::with_capacity(2 * slots),
            crowded_until: Monotonic::from_nanos(0),
            listeners: Vec::new(),
            has_input: false,
            dirty: Vec::with_capacity(slots),
            first: 0,
            is_dirty: std::iter::repeat_n(false, slots).collect(),
        }
    }

    pub(super) fn stage(&self, slot: usize) -> Stage {
        self.stages[slot].0
    }

    /// Returns the number of slots in use, including those in TIME-WAIT.
    pub(super) fn used(&self) -> usize {
        self.stages.len() - self.free.len()
    }

    /// Returns whether a slot is free, or only waits for late segments.
    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.waiting_out_count > 0
    }

    /// Returns the number of slots of a peer address.
    pub(super) fn slots_of(&self, address: &IpAddr) -> usize {
        self.peers.get(address).copied().unwrap_or(0)
    }

    /// Returns the number of slots that one address may have if there are not enough for all.
    pub(super) fn share(&self) -> usize {
        (self.stages.len() / SHARES).max(1)
    }

    /// Takes a free slot for this flow.
    pub(super) fn take_free(&mut self, flow: Flow, stage: Stage) -> Option<usize> {
        let slot = self.free.pop_front()? as usize;
        self.stages[slot].1 = self.stages[slot].1.wrapping_add(1);
        self.table.insert(flow, slot);
        *self.peers.entry(flow.remote.ip()).or_default() += 1;
        self.enter(slot, stage);
        Some(slot)
    }

    /// Returns the oldest slot in TIME-WAIT if no slot is free; the caller may reuse it for a new
    /// peer. The slot keeps its flow until then.
    pub(super) fn gives_way(&mut self) -> Option<usize> {
        if self.free.is_empty() {
            self.oldest_waiting_out()
        } else {
            None
        }
    }

    /// Changes the use of a slot.
    pub(super) fn enter(&mut self, slot: usize, stage: Stage) {
        let (present, number) = self.stages[slot];
        if present == stage {
            return;
        }
        self.stages[slot].0 = stage;
        self.waiting_out_count += usize::from(stage == Stage::WaitingOut);
        self.waiting_out_count -= usize::from(present == Stage::WaitingOut);
        if stage != Stage::WaitingOut {
            return;
        }
        let queue = &mut self.waiting_out;
        if queue.len() == queue.capacity() {
            let stages = &self.stages;
            queue.retain(|(slot, number)| stages[*slot as usize] == (stage, *number));
        }
        queue.push_back((slot as u32, number));
    }

    /// Frees a slot, and removes its flow, if it has one.
    pub(super) fn release(&mut self, slot: usize, flow: Option<Flow>) {
        if let Some(flow) = flow {
            self.table.remove(&flow);
            let address = flow.remote.ip();
            if let Some(slots) = self.peers.get_mut(&address) {
                *slots -= 1;
                if *slots == 0 {
                    self.peers.remove(&address);
                }
            }
        }
        if self.stages[slot].0 != Stage::Free {
            self.enter(slot, Stage::Free);
            self.free.push_back(slot as u32);
        }
    }

    /// Marks a slot that has output to send at the end of the step.
    pub(super) fn mark_dirty(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.is_dirty[slot], true) {
            self.dirty.push(slot as u32);
        }
    }

    pub(super) fn next_dirty(&mut self) -> Option<usize> {
        let slot = self.dirty.pop()? as usize;
        self.is_dirty[slot] = false;
        Some(slot)
    }

    /// Returns the slot to begin with this time.
    pub(super) fn next_first(&mut self) -> usize {
        self.first = (self.first + 1) % self.stages.len();
        self.first
    }

    /// Returns the listener at an address.
    pub(super) fn listener(&self, address: &SocketAddr) -> Option<usize> {
        self.listeners
            .iter()
            .position(|waiting| waiting.as_ref().is_some_and(|it| it.address == *address))
    }

    /// Returns whether connections wait to be accepted.
    pub(super) fn has_arrivals(&self) -> bool {
        let mut waiting = self.listeners.iter().flatten();
        waiting.any(|waiting| !waiting.queue.is_empty())
    }

    fn oldest_waiting_out(&mut self) -> Option<usize> {
        while let Some((slot, number)) = self.waiting_out.pop_front() {
            if self.stages[slot as usize] == (Stage::WaitingOut, number) {
                return Some(slot as usize);
            }
        }
        None
    }
}

/// The number of shares of the slots. One address may use one share.
const SHARES: usize = 4;
