//! The links: messages as packets that a node sends one after another.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::random::Choices;
use crate::schedule::{Link, MessageLength, Time};

/// The packets of a message that are not sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packets {
    /// The number of packets of the greatest length, and the time of each.
    full: u64,
    full_time: Time,
    /// The time of the last packet; zero if all are full.
    last_time: Time,
}

/// Octets of a packet that are no part of a message: the headers of IPv6 and TCP with time stamps.
const HEADERS: u64 = 40 + 20 + 12;
/// Octets of the shortest Ethernet frame without its check sequence.
const SHORTEST_FRAME: u64 = 60;
/// Octets of the header of a frame with a VLAN tag.
const FRAME_HEADER: u64 = 14 + 4;
/// Octets of the check sequence, the preamble, and the gap between frames.
const AROUND_FRAME: u64 = 4 + 8 + 12;

impl Packets {
    /// Cuts a message of at most a length into packets. A time is cut like the octets that take it.
    pub(super) fn new(link: &Link, longest: MessageLength, choices: &mut Choices) -> Self {
        let payload = u64::from(link.mtu).saturating_sub(HEADERS).max(1);
        let one = |last_time| Self {
            full: 0,
            full_time: 0,
            last_time,
        };
        let Some(rate) = link.rate else {
            let MessageLength::Time(time) = longest else {
                return one(0);
            };
            return one(choices.taken(time));
        };
        let on_wire = |octets: u64| {
            let frame = (octets + HEADERS + FRAME_HEADER).max(SHORTEST_FRAME);
            let bits_and_nanos = u128::from(frame + AROUND_FRAME) * NANOS_OF_OCTETS;
            Time::try_from(bits_and_nanos.div_ceil(rate.into())).unwrap_or(Time::MAX)
        };
        let full_time = on_wire(payload);
        match longest {
            MessageLength::Time(time) => {
                let time = choices.taken(time);
                Self {
                    full: time / full_time,
                    full_time,
                    last_time: time % full_time,
                }
            }
            MessageLength::Octets(octets) => {
                let octets = choices.taken(octets.max(1));
                let last = octets % payload;
                Self {
                    full: octets / payload,
                    full_time,
                    last_time: if last > 0 { on_wire(last) } else { 0 },
                }
            }
        }
    }

    /// Takes the next packet. Returns its time, and whether it is the last one.
    fn take(&mut self) -> (Time, bool) {
        if self.full == 0 {
            return (self.last_time, true);
        }
        self.full -= 1;
        (self.full_time, self.full == 0 && self.last_time == 0)
    }
}

/// Nanoseconds of a second, for each bit of an octet.
const NANOS_OF_OCTETS: u128 = 8 * 1_000_000_000;

/// The side of a link on which a node sends, or all of a link whose nodes send in turn.
#[derive(Debug, Default)]
pub(super) struct Port {
    /// The time until which traffic outside of the file occupies it.
    pub(super) foreign_until: Time,
    /// The messages by priority and their order.
    waiting: BTreeSet<(Reverse<u64>, u64, usize)>,
    /// The packet that is being sent.
    sending: Option<SentPacket>,
}

/// A packet on a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentPacket {
    /// The index of the message.
    pub(super) message: usize,
    pub(super) start: Time,
    end: Time,
    /// Whether it is the last one of the message.
    pub(super) is_last: bool,
    place: (Reverse<u64>, u64, usize),
}

impl Port {
    /// Whether nothing is sent and nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        self.sending.is_none() && self.waiting.is_empty()
    }

    pub(super) fn add(&mut self, message: usize, priority: u64, turn: u64) {
        self.waiting.insert((Reverse(priority), turn, message));
    }

    /// Begins the most urgent packet, if none is being sent. Returns its time.
    pub(super) fn begin<'p>(
        &mut self,
        now: Time,
        packets: impl FnOnce(usize) -> &'p mut Packets,
    ) -> Option<Time> {
        if self.sending.is_some() || self.foreign_until > now {
            return None;
        }
        let place = self.waiting.pop_first()?;
        let (time, is_last) = packets(place.2).take();
        self.sending = Some(SentPacket {
            message: place.2,
            start: now,
            end: now.saturating_add(time),
            is_last,
            place,
        });
        Some(time)
    }

    /// Ends the packet that is being sent, if its time is over.
    pub(super) fn end(&mut self, now: Time) -> Option<SentPacket> {
        let packet = self.sending.take_if(|packet| packet.end <= now)?;
        if !packet.is_last {
            self.waiting.insert(packet.place);
        }
        Some(packet)
    }
}
