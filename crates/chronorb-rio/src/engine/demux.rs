//! Which slot a flow has, and which slots are free, half open or waited out.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use chronorb_rt::Wake;

use super::table::{Flow, FlowTable};

/// The slots of a class, as who sorts packets sees them.
#[derive(Debug)]
pub(super) struct Demux {
    pub(super) table: FlowTable,
    stages: Box<[(Stage, u32)]>,
    /// The one that was used longest ago first.
    free: VecDeque<u32>,
    /// Those that give way, the oldest first, each with the number of its use; some are out of date.
    half_open: VecDeque<(u32, u32)>,
    waiting_out: VecDeque<(u32, u32)>,
    half_open_count: usize,
    pub(super) listeners: Vec<Option<Waiting>>,
    dirty: Vec<u32>,
    first: usize,
    is_dirty: Box<[bool]>,
}

/// What a slot is used for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    Free,
    HalfOpen,
    Used,
    WaitingOut,
}

/// A listener, and the connections that wait to be taken in.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) address: SocketAddr,
    /// How many may be half open at a time, with those of other listeners of the class.
    pub(super) backlog: usize,
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
            half_open: VecDeque::with_capacity(2 * slots),
            waiting_out: VecDeque::with_capacity(2 * slots),
            half_open_count: 0,
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

    /// Slots of handshakes that are not over.
    pub(super) fn half_open(&self) -> usize {
        self.half_open_count
    }

    /// A free slot, for this flow.
    pub(super) fn take_free(&mut self, flow: Flow, stage: Stage) -> Option<usize> {
        let slot = self.free.pop_front()? as usize;
        self.stages[slot].1 = self.stages[slot].1.wrapping_add(1);
        self.table.insert(flow, slot);
        self.enter(slot, stage);
        Some(slot)
    }

    /// The slot that should give way to a peer that wants to connect. It is still in use.
    pub(super) fn gives_way(&mut self, backlog: usize) -> Option<usize> {
        if self.half_open_count >= backlog {
            return self.oldest(Stage::HalfOpen);
        }
        if !self.free.is_empty() {
            return None;
        }
        self.oldest(Stage::WaitingOut)
            .or_else(|| self.oldest(Stage::HalfOpen))
    }

    /// A slot is used for something else.
    pub(super) fn enter(&mut self, slot: usize, stage: Stage) {
        let (present, number) = self.stages[slot];
        if present == stage {
            return;
        }
        self.stages[slot].0 = stage;
        self.half_open_count += usize::from(stage == Stage::HalfOpen);
        self.half_open_count -= usize::from(present == Stage::HalfOpen);
        let queue = match stage {
            Stage::HalfOpen => &mut self.half_open,
            Stage::WaitingOut => &mut self.waiting_out,
            Stage::Free | Stage::Used => return,
        };
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

    fn oldest(&mut self, stage: Stage) -> Option<usize> {
        let queue = match stage {
            Stage::HalfOpen => &mut self.half_open,
            _ => &mut self.waiting_out,
        };
        while let Some((slot, number)) = queue.pop_front() {
            if self.stages[slot as usize] == (stage, number) {
                return Some(slot as usize);
            }
        }
        None
    }
}
