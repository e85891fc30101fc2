//! Handshakes that peers have started: a small entry for each instead of a connection.
//!
//! Any host can send a SYN with a forged address. Therefore a SYN takes no slot of its class, but
//! an entry here: the peer's parameters, and the seed of this side's sequence numbers. A protocol
//! stack that all handshakes of the class share produces the answer. When the peer acknowledges the
//! answer, its address is proved and a connection gets a slot. The connection's stack is brought to
//! the state of the shared one by replaying the same SYN with the same seed.
//!
//! Answers are retransmitted as in TCP while the table is not flooded. In a flood, no entry lives
//! long enough for that.
//!
//! The oldest entry is dropped first. A peer succeeds if its acknowledgement arrives before as many
//! other SYNs as there are entries: a table of 2048 entries tolerates 2048 SYNs per round trip.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::time::Duration;

use chronorb_rt::{Monotonic, PiMutex};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpAddress, IpProtocol, IpRepr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};

use super::connection::{Changes, Connection, random};
use super::device::{Egress, Envelope};
use super::table::{Flow, FlowTable};

/// The handshakes of a class.
#[derive(Debug)]
pub(super) struct Handshakes {
    cells: Box<[Option<Handshake>]>,
    table: FlowTable,
    /// The cell that is written next. If all are in use, it is the oldest one.
    next: usize,
    /// The cell of the oldest handshake; all later ones lie behind it.
    oldest: usize,
    count: usize,
    /// The time of the next check for answers to retransmit.
    next_look: Monotonic,
    patience: Duration,
    /// The stack that answers SYNs.
    responder: Connection,
    /// The output for packets that were sent before.
    sink: PiMutex<Egress>,
}

/// A handshake that waits for the peer's acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    flow: Flow,
    syn: Syn,
    /// The headers of answers.
    envelope: Envelope,
    /// The seed of this side's sequence numbers.
    seed: u64,
    begun: Monotonic,
    /// The time from the start to the next retransmission.
    again: Duration,
    /// Whether a connection was already evicted for this handshake.
    pub(super) has_made_room: bool,
}

/// The parameters in a peer's SYN.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Syn {
    sequence: u32,
    window: u16,
    segment: Option<u16>,
    window_scale: Option<u8>,
    may_acknowledge_selectively: bool,
}

impl Syn {
    /// Reads the segment of a SYN.
    pub(super) fn read(segment: &[u8], flow: &Flow) -> Option<Self> {
        let packet = TcpPacket::new_checked(segment).ok()?;
        let (from, to) = (flow.remote.ip().into(), flow.local.ip().into());
        // The checksums were verified before.
        let checksums = ChecksumCapabilities::ignored();
        let read = TcpRepr::parse(&packet, &from, &to, &checksums).ok()?;
        Some(Self {
            sequence: read.seq_number.0.cast_unsigned(),
            window: read.window_len,
            segment: read.max_seg_size,
            window_scale: read.window_scale,
            may_acknowledge_selectively: read.sack_permitted,
        })
    }

    /// Writes the packet again and returns its length.
    fn write(&self, flow: &Flow, room: &mut [u8; SYN]) -> usize {
        let tcp = TcpRepr {
            src_port: flow.remote.port(),
            dst_port: flow.local.port(),
            control: TcpControl::Syn,
            seq_number: TcpSeqNumber(self.sequence.cast_signed()),
            ack_number: None,
            window_len: self.window,
            window_scale: self.window_scale,
            max_seg_size: self.segment,
            sack_permitted: self.may_acknowledge_selectively,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &[],
        };
        let (from, to): (IpAddress, IpAddress) = (flow.remote.ip().into(), flow.local.ip().into());
        let ip = IpRepr::new(from, to, IpProtocol::Tcp, tcp.buffer_len(), HOPS);
        let len = ip.buffer_len();
        let checksums = ChecksumCapabilities::default();
        ip.emit(&mut room[..len], &checksums);
        let mut segment = TcpPacket::new_unchecked(&mut room[ip.header_len()..len]);
        tcp.emit(&mut segment, &from, &to, &checksums);
        len
    }
}

impl Handshakes {
    /// Creates room for `most` handshakes of limited duration.
    #[allow(clippy::disallowed_methods, reason = "when a class opens")]
    pub(super) fn new(most: usize, patience: Duration, responder: Connection, mtu: usize) -> Self {
        Self {
            cells: std::iter::repeat_n(None, most).collect(),
            table: FlowTable::new(most),
            next: 0,
            oldest: 0,
            count: 0,
            next_look: Monotonic::from_nanos(0),
            patience,
            responder,
            sink: PiMutex::new(Egress::sink(mtu)),
        }
    }

    /// Returns the number of unfinished handshakes.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the handshake of a flow.
    pub(super) fn get(&mut self, flow: &Flow) -> Option<&mut Handshake> {
        self.cells[self.table.get(flow)?].as_mut()
    }

    /// Answers a SYN. Returns whether another handshake was dropped for it.
    pub(super) fn answer(
        &mut self,
        (flow, syn): (Flow, Syn),
        envelope: Envelope,
        egress: &PiMutex<Egress>,
        now: Monotonic,
    ) -> bool {
        let known = self.get(&flow).filter(|known| known.syn == syn).copied();
        // A repeated SYN means that the answer was lost or is under way.
        let handshake = known.unwrap_or_else(|| Handshake {
            flow,
            syn,
            envelope,
            seed: random(),
            begun: now,
            again: AGAIN,
            has_made_room: false,
        });
        let gave_way = known.is_none() && self.insert(handshake);
        self.send_answer(&handshake, egress, now);
        gave_way
    }

    /// Retransmits the answers that have not been acknowledged for a while. Returns the time of the
    /// next retransmission.
    pub(super) fn answer_again(
        &mut self,
        egress: &PiMutex<Egress>,
        now: Monotonic,
    ) -> Option<Monotonic> {
        if self.count == 0 {
            return None;
        }
        if now < self.next_look {
            return Some(self.next_look);
        }
        self.next_look = now + LOOK;
        for index in 0..self.cells.len() {
            if let Some(handshake) = &mut self.cells[index]
                && now >= handshake.begun + handshake.again
            {
                handshake.again *= 2;
                let handshake = *handshake;
                self.send_answer(&handshake, egress, now);
            }
        }
        Some(self.next_look)
    }

    fn send_answer(&mut self, handshake: &Handshake, egress: &PiMutex<Egress>, now: Monotonic) {
        let Handshake {
            flow,
            envelope,
            seed,
            ..
        } = *handshake;
        let mut room = [0; SYN];
        let len = handshake.syn.write(&flow, &mut room);
        let responder = &mut self.responder;
        responder.await_peer(flow, envelope, 0, seed, now);
        let _ = responder.feed(&room[..len], egress, now);
        let _ = responder.run(egress, now);
        responder.forget();
    }

    /// Brings an unused connection to the state of a flow's handshake, and passes it the packet
    /// that acknowledges the answer. Returns `None` if there is no handshake.
    pub(super) fn resume(
        &mut self,
        (flow, listener): (Flow, usize),
        connection: &mut Connection,
        packet: &[u8],
        envelope: Envelope,
        egress: &PiMutex<Egress>,
        now: Monotonic,
    ) -> Option<Changes> {
        let handshake = *self.get(&flow)?;
        let mut room = [0; SYN];
        let len = handshake.syn.write(&flow, &mut room);
        // Packets of that time are not sent again. The time since is one round trip.
        let then = handshake.begun;
        connection.await_peer(flow, envelope, listener, handshake.seed, then);
        let _ = connection.feed(&room[..len], &self.sink, then);
        let _ = connection.run(&self.sink, then);
        let changes = connection.feed(packet, egress, now);
        if changes.established.is_some() || changes.is_over {
            self.remove(&flow);
        }
        Some(changes)
    }

    /// Ends the handshakes whose time is over.
    pub(super) fn expire(&mut self, now: Monotonic) {
        while self.count > 0 {
            match self.cells[self.oldest] {
                Some(oldest) if now < oldest.begun + self.patience => break,
                Some(oldest) => self.remove(&oldest.flow),
                None => {}
            }
            self.oldest = (self.oldest + 1) % self.cells.len();
        }
    }

    /// Ends all handshakes without notice to the peers.
    pub(super) fn clear(&mut self) {
        for index in 0..self.cells.len() {
            if let Some(handshake) = self.cells[index] {
                self.remove(&handshake.flow);
            }
        }
    }

    /// Adds a handshake. Returns whether the oldest one was dropped for it.
    fn insert(&mut self, handshake: Handshake) -> bool {
        self.remove(&handshake.flow);
        let at = self.next;
        self.next = (at + 1) % self.cells.len();
        let oldest = self.cells[at];
        if let Some(oldest) = oldest {
            self.remove(&oldest.flow);
        }
        if self.count == 0 {
            self.oldest = at;
        } else if self.oldest == at {
            self.oldest = self.next;
        }
        self.cells[at] = Some(handshake);
        self.table.insert(handshake.flow, at);
        self.count += 1;
        oldest.is_some()
    }

    fn remove(&mut self, flow: &Flow) {
        if let Some(at) = self.table.get(flow) {
            self.table.remove(flow);
            self.cells[at] = None;
            self.count -= 1;
        }
    }
}

/// The time to the first retransmission of an answer. It doubles each time.
const AGAIN: Duration = Duration::from_millis(125);
/// The interval between checks for retransmissions.
const LOOK: Duration = Duration::from_millis(25);
/// The maximum length of a packet with a SYN in octets: the headers of IPv6 and TCP with all
/// options.
const SYN: usize = 100;
const HOPS: u8 = 64;

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests may allocate")]
pub(super) mod tests {
    use super::super::tests::flow_of;
    use super::*;
    use crate::frame::Ethernet;

    /// Returns the packet of a SYN.
    pub(in super::super) fn syn_of(flow: &Flow) -> Vec<u8> {
        let mut room = [0; SYN];
        let len = handshake(1, Monotonic::from_nanos(0))
            .syn
            .write(flow, &mut room);
        room[..len].to_vec()
    }

    fn handshake(number: u32, begun: Monotonic) -> Handshake {
        Handshake {
            flow: flow_of(number),
            syn: Syn {
                sequence: number,
                window: 1000,
                segment: Some(1460),
                window_scale: Some(7),
                may_acknowledge_selectively: true,
            },
            envelope: Envelope {
                ethernet: Ethernet {
                    to: [0; 6],
                    from: [0; 6],
                    vlan: None,
                    kind: Ethernet::IPV4,
                },
                dscp: 0,
            },
            seed: number.into(),
            begun,
            again: AGAIN,
            has_made_room: false,
        }
    }

    #[test]
    fn a_syn_reads_as_it_was_written() {
        let syn = handshake(7, Monotonic::from_nanos(0)).syn;
        let mut room = [0; SYN];
        let len = syn.write(&flow_of(7), &mut room);
        assert_eq!(Syn::read(&room[20..len], &flow_of(7)), Some(syn));
    }

    #[test]
    fn the_oldest_gives_way_and_all_end_in_time() {
        let mut all = super::super::tests::handshakes(4, Duration::from_secs(5));
        let at = |second: u64| Monotonic::from_nanos(second * 1_000_000_000);
        for number in 0..4 {
            assert!(!all.insert(handshake(number, at(number.into()))));
        }
        assert!(all.insert(handshake(4, at(4))), "0 was the oldest");
        assert!(all.get(&flow_of(0)).is_none());
        all.remove(&flow_of(2));
        assert_eq!(all.count(), 3);
        all.expire(at(6));
        assert_eq!(all.count(), 2, "1 was begun at 1 s");
        assert!(all.get(&flow_of(3)).is_some());
        assert!(!all.insert(handshake(5, at(7))), "the cell of 1 is free");
        all.expire(at(8));
        assert_eq!(all.count(), 2);
        all.expire(at(30));
        assert_eq!(all.count(), 0);
        assert!(!all.insert(handshake(6, at(31))));
        assert!(all.get(&flow_of(6)).is_some());
        all.clear();
        assert_eq!(all.count(), 0);
    }
}
