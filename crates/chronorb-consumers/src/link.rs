//! The way by which the events of one trail leave the service.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use chronorb::Object;
use chronorb::outbox::Outbox;
use chronorb_channel::Allowance;
use chronorb_events::Event;
use chronorb_rt::PiMutex;

use crate::share::OctetShare;
use crate::trail::Trail;

/// The way by which the events of one trail leave the service.
pub(crate) struct Link<B> {
    pub(crate) trail: Trail,
    state: PiMutex<LinkState<B>>,
    /// Locked while what was held is sent.
    settling: PiMutex<()>,
}

enum LinkState<B> {
    /// The consumer is to answer first.
    Held(HeldSets<B>),
    Open(Way),
    /// The consumer has ended.
    Ended,
}

/// An open way to a consumer.
#[derive(Clone)]
pub(crate) enum Way {
    /// By calls of this reference.
    Calls(Object),
    Outbox(Arc<Outbox>),
}

/// The sets that wait until the consumer answers, in their order.
struct HeldSets<B> {
    sets: VecDeque<Box<[Event<B>]>>,
    /// Whether a thread is sending them.
    is_settling: bool,
}

impl<B> Default for HeldSets<B> {
    fn default() -> Self {
        Self {
            sets: VecDeque::new(),
            is_settling: false,
        }
    }
}

/// The next step with a set.
pub(crate) enum Passage {
    /// The set is to be sent.
    Send(Way),
    /// The set is held, and this number of events was lost. Perhaps the supplier has waited for as
    /// long as it may.
    Held { lost: u64, has_waited: bool },
}

impl<B: Clone> Link<B> {
    /// A link that holds its events.
    pub(crate) fn held(trail: Trail) -> Self {
        Self {
            trail,
            state: PiMutex::new(LinkState::Held(HeldSets::default())),
            settling: PiMutex::new(()),
        }
    }

    pub(crate) fn open(way: Way) -> Self {
        Self {
            trail: Trail::default(),
            state: PiMutex::new(LinkState::Open(way)),
            settling: PiMutex::new(()),
        }
    }

    pub(crate) fn way(&self) -> Option<Way> {
        match &*self.state.lock() {
            LinkState::Open(way) => Some(way.clone()),
            LinkState::Held(_) | LinkState::Ended => None,
        }
    }

    pub(crate) fn outbox(&self) -> Option<Arc<Outbox>> {
        match &*self.state.lock() {
            LinkState::Open(Way::Outbox(outbox)) => Some(outbox.clone()),
            _ => None,
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(*self.state.lock(), LinkState::Held(_))
    }

    /// Returns the way of a set, or holds it. A supplier waits for at most `patience` while what
    /// was held before is sent.
    pub(crate) fn pass(
        &self,
        set: &[Event<B>],
        share: &Share<'_, B>,
        patience: Option<Duration>,
    ) -> Passage {
        let mut state = self.state.lock();
        match &mut *state {
            LinkState::Open(way) => Passage::Send(way.clone()),
            LinkState::Held(held) => {
                let is_settling = held.is_settling;
                let lost = held.add(set, share);
                drop(state);
                let patience = patience.filter(|_| is_settling);
                let waited = patience.map(|limit| self.settling.try_lock_for(limit));
                Passage::Held {
                    lost,
                    has_waited: matches!(waited, Some(None)),
                }
            }
            LinkState::Ended => Passage::Held {
                lost: set.len() as u64,
                has_waited: false,
            },
        }
    }

    /// Holds events from now on, the set before others.
    pub(crate) fn hold(&self, set: &[Event<B>], share: &Share<'_, B>) -> u64 {
        let mut state = self.state.lock();
        if let LinkState::Open(_) = &*state {
            *state = LinkState::Held(HeldSets::default());
        }
        match &mut *state {
            LinkState::Held(held) if !set.is_empty() => held.add(set, share),
            _ => 0,
        }
    }

    /// Holds events from now on, if this outbox is the present one. Returns whether it is.
    pub(crate) fn hold_after(&self, outbox: &Arc<Outbox>) -> bool {
        let mut state = self.state.lock();
        let present = match &*state {
            LinkState::Open(Way::Outbox(present)) => Some(present),
            _ => None,
        };
        let is_present = present.is_some_and(|present| Arc::ptr_eq(present, outbox));
        if is_present {
            *state = LinkState::Held(HeldSets::default());
        }
        is_present
    }

    /// Sends what is held by a way, and opens it. `send` returns whether the way is still good;
    /// otherwise the rest is held.
    pub(crate) fn settle(
        &self,
        way: Way,
        share: &Share<'_, B>,
        send: impl Fn(&Way, &[Event<B>]) -> bool,
    ) -> bool {
        let _settling = self.settling.lock();
        loop {
            let mut state = self.state.lock();
            let LinkState::Held(held) = &mut *state else {
                return true;
            };
            let Some(set) = held.take(share) else {
                *state = LinkState::Open(way);
                return true;
            };
            held.is_settling = true;
            drop(state);
            if !send(&way, &set) {
                if let LinkState::Held(held) = &mut *self.state.lock() {
                    held.is_settling = false;
                }
                return false;
            }
        }
    }

    /// The number of events that are held.
    pub(crate) fn held_events(&self) -> usize {
        match &*self.state.lock() {
            LinkState::Held(held) => held.sets.iter().map(|set| set.len()).sum(),
            LinkState::Open(_) | LinkState::Ended => 0,
        }
    }

    /// Ends the link. Returns the sets that were held, whose octets are given back.
    pub(crate) fn end(&self, share: &Share<'_, B>) -> VecDeque<Box<[Event<B>]>> {
        match std::mem::replace(&mut *self.state.lock(), LinkState::Ended) {
            LinkState::Held(held) => {
                let octets = held.sets.iter().map(|set| share.octets_of(set)).sum();
                share.octets.give_back(octets);
                held.sets
            }
            LinkState::Open(_) | LinkState::Ended => VecDeque::new(),
        }
    }
}

/// The octets that the events of a consumer use.
pub(crate) struct Share<'s, B> {
    pub(crate) octets: &'s OctetShare,
    /// The octets of a body.
    pub(crate) size: fn(&B) -> usize,
}

impl<B> Share<'_, B> {
    fn octets_of(&self, set: &[Event<B>]) -> usize {
        let each = set
            .iter()
            .map(|event| size_of::<Event<B>>() + (self.size)(&event.body));
        each.sum()
    }
}

impl<B: Clone> HeldSets<B> {
    /// Adds a set, in place of the oldest ones if there is no room. Returns the number of events
    /// that were lost.
    fn add(&mut self, set: &[Event<B>], share: &Share<'_, B>) -> u64 {
        let octets = share.octets_of(set);
        let mut lost = 0;
        while self.sets.len() >= MOST_HELD || !share.octets.take(octets) {
            match self.take(share) {
                Some(oldest) => lost += oldest.len() as u64,
                None => return lost + set.len() as u64,
            }
        }
        self.sets.push_back(set.into());
        lost
    }

    fn take(&mut self, share: &Share<'_, B>) -> Option<Box<[Event<B>]>> {
        let set = self.sets.pop_front()?;
        share.octets.give_back(share.octets_of(&set));
        Some(set)
    }
}

/// The most sets that wait for an answer of their consumer.
const MOST_HELD: usize = 4096;
