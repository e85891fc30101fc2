//! The packets of messages on a link, and the directions of a link.

use chronorb_sched::{Parts, Time};

use crate::schedule::{DeclaredStep, Link, MessageLength, Schedule};

/// The transmission of a message, with the headers of all its packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Transmission {
    pub(crate) time: Time,
    /// The packets; `None` for one.
    pub(crate) parts: Option<Parts>,
}

/// Octets of a packet that are no part of a message: the headers of IPv6 and TCP with time stamps.
pub(crate) const HEADERS: u32 = 40 + 20 + 12;
/// Octets of an Ethernet frame around a packet: the preamble, the header with a VLAN tag, the check
/// sequence, and the gap between two frames.
const FRAME: u64 = 8 + 18 + 4 + 12;

impl Link {
    /// Returns the octets of messages in a packet, at most.
    pub(crate) fn payload(&self) -> u64 {
        u64::from(self.mtu.saturating_sub(HEADERS)).max(1)
    }

    /// Returns the octets of a message that takes a time on the link with all headers; none without
    /// a rate.
    pub(crate) fn octets(&self, length: MessageLength) -> u64 {
        match length {
            MessageLength::Octets(octets) => octets,
            MessageLength::Time(time) => {
                let rate = self.rate.unwrap_or(0);
                let on_wire = u128::from(time) * u128::from(rate) / BITS_AND_NANOS;
                u64::try_from(on_wire).unwrap_or(u64::MAX)
            }
        }
    }

    /// Cuts a message into packets. Returns `None` if its octets have no rate, or their time
    /// exceeds 64 bits.
    pub(crate) fn transmission(&self, length: MessageLength) -> Option<Transmission> {
        let longest = self.time_of_packet(self.payload());
        let (time, last) = match length {
            MessageLength::Time(time) => (
                time,
                longest.map_or(time, |longest| last_part(time, longest)),
            ),
            MessageLength::Octets(octets) => {
                let before = octets.max(1).div_ceil(self.payload()) - 1;
                let last = self.time_of_packet(last_part(octets.max(1), self.payload()))?;
                (longest?.checked_mul(before)?.checked_add(last)?, last)
            }
        };
        let longest = longest.filter(|longest| *longest < time);
        let parts = longest.map(|longest| Parts { longest, last });
        Some(Transmission { time, parts })
    }

    /// Returns the time of a packet with octets of a message; `None` without a rate.
    fn time_of_packet(&self, octets: u64) -> Option<Time> {
        let octets = u128::from(octets) + u128::from(HEADERS) + u128::from(FRAME);
        Time::try_from((octets * BITS_AND_NANOS).div_ceil(self.rate?.into())).ok()
    }
}

/// Returns the last one of the parts of at most `longest` into which a length is cut.
const fn last_part(all: u64, longest: u64) -> u64 {
    match all % longest {
        0 => longest,
        rest => rest,
    }
}

/// Nanoseconds of a second, for each bit of an octet.
const BITS_AND_NANOS: u128 = 8 * 1_000_000_000;

impl Schedule {
    /// Returns the nodes that send on a link without delaying each other, or one without a node for
    /// all: each of two nodes has a direction of its own.
    pub(crate) fn directions(&self, link: usize) -> Vec<Option<usize>> {
        let it = &self.links[link];
        let connected: Vec<_> = match it.nodes.as_slice() {
            [] => (0..self.nodes.len()).collect(),
            nodes => nodes.to_vec(),
        };
        let is_apart = connected.len() == 2 && !it.half_duplex;
        let mut declared = self.transactions.iter().flat_map(|it| {
            let steps = it.steps.iter().enumerate();
            steps.map(|(position, step)| (it.steps.as_slice(), position, step))
        });
        // A message that comes from somewhere else can be in each direction.
        let is_foreign = |(steps, position, step): (&[DeclaredStep], usize, &DeclaredStep)| {
            matches!(step, DeclaredStep::Message { link: its, .. } if *its == link)
                && (self.sender(steps, position)).is_none_or(|it| !connected.contains(&it))
        };
        if is_apart && !declared.any(is_foreign) {
            connected.into_iter().map(Some).collect()
        } else {
            vec![None]
        }
    }

    /// Returns the node that sends a declared message: that of the operation before it.
    pub(crate) fn sender(&self, steps: &[DeclaredStep], position: usize) -> Option<usize> {
        let before = steps[..position].iter().rev();
        let executed = before.filter_map(|step| match step {
            DeclaredStep::Operation { operation } => Some(*operation),
            DeclaredStep::Message { .. } => None,
        });
        executed
            .map(|it| self.processors[self.operations[it].processor].node)
            .next()
    }
}
