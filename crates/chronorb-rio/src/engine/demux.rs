//! Which slot a flow has, and which slots are free or waited out.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use chronorb_rt::{Monotonic, Wake};

use super::table::{Flow, FlowTable};

/// The slots of a class, as who sorts packets sees them.
#[derive(Debug)]
pub(super) struct Demux {
    pub(super) table: FlowTable,
    stages: Box<[(Stage, u32)]>,
    /// The one that was used longest ago first.
    free: VecDeque<u32>,
    /// Those that give way, the oldest first, each with the number of its use; some are out of
    /// date.
    waiting_out: VecDeque<(u32, u32)>,
    waiting_out_count: usize,
    /// How many slots each peer's address has.
    peers: HashMap<IpAddr, usize>,
    /// Until when no connection gives way, as the last look has found.
    pub(super) crowded_until: Monotonic,
    pub(super) listeners: Vec<Option<Waiting>>,
    dirty: Vec<u32>,
    first: usize,
    is_dirty: Box<[bool]>,
}

/// What a slot is used for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    Free,
    Used,
    WaitingOut,
}

/// A listener, and the connections that wait to be taken in.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) address: SocketAddr,
    pub(super) queue: VecDeque<u32>,
    pub(super) arrivals: Arc<Wake>,
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
            dirty: Vec::with_capacity(slots),
            first: 0,
            is_dirty: std::iter::repeat_n(false, slots).collect(),
        }
    }

    pub(super) fn stage(&self, slot: usize) -> Stage {
        self.stages[slot].0
    }

    /// Slots in use, whatever for.
    pub(super) fn used(&self) -> usize {
        self.stages.len() - self.free.len()
    }

    /// Returns whether a slot is free, or only waits for late segments.
    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.waiting_out_count > 0
    }

    /// How many slots the connections of a peer's address have.
    pub(super) fn slots_of(&self, address: &IpAddr) -> usize {
        self.peers.get(address).copied().unwrap_or(0)
    }

    /// How many slots one address may have where there are not enough for all.
    pub(super) fn share(&self) -> usize {
        (self.stages.len() / SHARES).max(1)
    }

    /// A free slot, for this flow.
    pub(super) fn take_free(&mut self, flow: Flow, stage: Stage) -> Option<usize> {
        let slot = self.free.pop_front()? as usize;
        self.stages[slot].1 = self.stages[slot].1.wrapping_add(1);
        self.table.insert(flow, slot);
        *self.peers.entry(flow.remote.ip()).or_default() += 1;
        self.enter(slot, stage);
        Some(slot)
    }

    /// The slot that is waited out and gives way to a peer that wants to connect, where none is
    /// free. It is still in use.
    pub(super) fn gives_way(&mut self) -> Option<usize> {
        if self.free.is_empty() {
            self.oldest_waiting_out()
        } else {
            None
        }
    }

    /// A slot is used for something else.
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

    /// A slot is free, and its flow, if it had one, is nobody's.
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

    /// Something of this slot has to go out at the end of the step.
    pub(super) fn soil(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.is_dirty[slot], true) {
            self.dirty.push(slot as u32);
        }
    }

    pub(super) fn next_dirty(&mut self) -> Option<usize> {
        let slot = self.dirty.pop()? as usize;
        self.is_dirty[slot] = false;
        Some(slot)
    }

    /// The slot to begin with this time.
    pub(super) fn next_first(&mut self) -> usize {
        self.first = (self.first + 1) % self.stages.len();
        self.first
    }

    /// Who listens there.
    pub(super) fn listener(&self, address: &SocketAddr) -> Option<usize> {
        self.listeners
            .iter()
            .position(|waiting| waiting.as_ref().is_some_and(|it| it.address == *address))
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

/// Each address has one of so many shares of the slots.
const SHARES: usize = 4;
