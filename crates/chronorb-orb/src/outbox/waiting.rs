//! The requests that wait in an outbox, and the policy for those that find no room.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::VecDeque;
use std::time::Duration;

use crate::encoded_body::EncodedBody;

/// The bounds of an [`Outbox`](super::Outbox), and its policy where they are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxLimits {
    /// The most requests that wait, at least 1.
    pub requests: usize,
    /// The most octets of the bodies that wait. A single body may be longer.
    pub octets: usize,
    /// The policy for a request that finds no room.
    pub overflow: OutboxOverflow,
}

impl Default for OutboxLimits {
    /// 64 requests, 1 MiB, the oldest is dropped.
    fn default() -> Self {
        Self {
            requests: 64,
            octets: 1 << 20,
            overflow: OutboxOverflow::DropOldest,
        }
    }
}

/// The policy for a request that finds its outbox full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OutboxOverflow {
    /// The oldest requests that wait are lost, except for one whose sending has begun.
    #[default]
    DropOldest,
    /// The new request is lost.
    DropNewest,
    /// The caller waits for room for at most this time. Then the new request is lost.
    Block(Duration),
}

/// The bodies that wait, in order. The first one may have been sent in part.
pub(super) struct WaitingBodies {
    bodies: VecDeque<EncodedBody>,
    octets: usize,
    limits: OutboxLimits,
}

/// The outcome of an offer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// The body waits, and this number of others was dropped for it.
    Waits(u64),
    /// There is no room.
    Full,
}

impl WaitingBodies {
    /// An empty list. It allocates its memory here, and none later.
    #[allow(clippy::disallowed_methods, reason = "once for each outbox")]
    pub(super) fn new(limits: OutboxLimits) -> Self {
        let requests = limits.requests.max(1);
        Self {
            bodies: VecDeque::with_capacity(requests),
            octets: 0,
            limits: OutboxLimits { requests, ..limits },
        }
    }

    pub(super) fn first(&self) -> Option<&EncodedBody> {
        self.bodies.front()
    }

    pub(super) fn len(&self) -> usize {
        self.bodies.len()
    }

    pub(super) fn octets(&self) -> usize {
        self.octets
    }

    /// Adds a body to an empty list, whatever its length.
    pub(super) fn begin(&mut self, body: EncodedBody) {
        debug_assert!(self.bodies.is_empty(), "the first body waits alone");
        self.push(body);
    }

    /// Adds a body behind others if there is room, or if the policy makes room. The first body
    /// `is_begun` if a part of it was sent; it is not dropped then.
    pub(super) fn offer(&mut self, body: &EncodedBody, is_begun: bool) -> Offer {
        let mut dropped = 0;
        while !self.has_room(body.len()) {
            let oldest = usize::from(is_begun);
            if self.limits.overflow != OutboxOverflow::DropOldest || self.bodies.len() <= oldest {
                // Only the begun body is left, so nothing was dropped.
                return Offer::Full;
            }
            self.octets -= self.bodies.remove(oldest).map_or(0, |body| body.len());
            dropped += 1;
        }
        self.push(body.clone());
        Offer::Waits(dropped)
    }

    /// Removes the first body.
    pub(super) fn remove_first(&mut self) {
        self.octets -= self.bodies.pop_front().map_or(0, |body| body.len());
    }

    /// Removes all bodies. Returns their number.
    pub(super) fn clear(&mut self) -> u64 {
        let number = self.bodies.len() as u64;
        self.bodies.clear();
        self.octets = 0;
        number
    }

    fn push(&mut self, body: EncodedBody) {
        self.octets += body.len();
        self.bodies.push_back(body);
    }

    fn has_room(&self, octets: usize) -> bool {
        let total = self.octets.saturating_add(octets);
        self.bodies.is_empty()
            || (self.bodies.len() < self.limits.requests && total <= self.limits.octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(octets: usize) -> EncodedBody {
        let octets = &[0; 1000][..octets];
        EncodedBody::new(&|e| e.write_octets(octets)).expect("there is memory")
    }

    fn waiting(requests: usize, octets: usize, overflow: OutboxOverflow) -> WaitingBodies {
        WaitingBodies::new(OutboxLimits {
            requests,
            octets,
            overflow,
        })
    }

    #[test]
    fn the_oldest_go_first_but_not_a_begun_one() {
        let mut waiting = waiting(3, 100, OutboxOverflow::DropOldest);
        waiting.begin(body(10));
        for _ in 0..2 {
            assert_eq!(waiting.offer(&body(20), true), Offer::Waits(0));
        }
        assert_eq!(waiting.offer(&body(30), true), Offer::Waits(1));
        assert_eq!((waiting.len(), waiting.octets()), (3, 10 + 20 + 30));
        assert_eq!(waiting.offer(&body(90), true), Offer::Waits(2));
        assert_eq!((waiting.len(), waiting.octets()), (2, 100));
        // The begun one leaves no room.
        waiting.remove_first();
        assert_eq!(waiting.offer(&body(20), true), Offer::Full);
        assert_eq!(waiting.offer(&body(20), false), Offer::Waits(1));
        assert_eq!(waiting.clear(), 1);
        assert_eq!(waiting.octets(), 0);
    }

    #[test]
    fn other_policies_drop_nothing_that_waits() {
        for overflow in [
            OutboxOverflow::DropNewest,
            OutboxOverflow::Block(Duration::ZERO),
        ] {
            let mut waiting = waiting(2, 100, overflow);
            waiting.begin(body(10));
            assert_eq!(waiting.offer(&body(10), false), Offer::Waits(0));
            assert_eq!(waiting.offer(&body(10), false), Offer::Full);
            waiting.remove_first();
            assert_eq!(waiting.offer(&body(91), false), Offer::Full);
            assert_eq!(waiting.offer(&body(90), false), Offer::Waits(0));
        }
    }

    #[test]
    fn a_long_body_waits_alone() {
        let mut waiting = waiting(2, 100, OutboxOverflow::DropNewest);
        waiting.begin(body(1000));
        assert_eq!(waiting.offer(&body(1), false), Offer::Full);
        waiting.remove_first();
        assert_eq!(waiting.offer(&body(1000), false), Offer::Waits(0));
    }
}
