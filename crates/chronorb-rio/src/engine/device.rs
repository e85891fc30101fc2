//! The connection between the protocol stack and the path of a class.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_rt::{PiMutex, PiMutexGuard};
use smoltcp::phy::{
    Checksum, ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken,
};
use smoltcp::time::Instant;

use super::send_position::SendPosition;
use crate::frame::{Ethernet, Vlan, checksum};
use crate::path::{PathError, TransmitCounts, TransmitError, Transmitter};

/// The outgoing side of a class.
#[derive(Debug)]
pub(super) struct Egress {
    transmitter: Box<dyn Transmitter>,
    /// The buffer for a packet that finds no room and is discarded.
    scratch: Box<[u8]>,
    /// The number of frames that may still be sent in this step, if it is limited.
    pub(super) allowance: usize,
    /// The number of retransmitted segments.
    pub(super) sent_again: u64,
}

impl Egress {
    pub(super) fn new(transmitter: Box<dyn Transmitter>, mtu: usize) -> Self {
        Self {
            transmitter,
            scratch: [0].repeat(mtu).into(),
            allowance: usize::MAX,
            sent_again: 0,
        }
    }

    /// Creates an output that accepts nothing.
    #[allow(clippy::disallowed_methods, reason = "when a class opens")]
    pub(super) fn nowhere() -> Self {
        Self::new(Box::new(Nowhere), 0)
    }

    /// Creates an output that accepts and discards all frames.
    #[allow(clippy::disallowed_methods, reason = "when a class opens")]
    pub(super) fn sink(mtu: usize) -> Self {
        Self::new(Box::new(Sink), mtu)
    }

    pub(super) fn transmitter(&self) -> &dyn Transmitter {
        &*self.transmitter
    }

    fn has_room(&mut self) -> bool {
        self.allowance > 0 && self.transmitter.has_room()
    }

    /// Queues a packet of `len` octets that `write` fills in. The packet is discarded if there is
    /// no room.
    pub(super) fn put<R>(
        &mut self,
        envelope: &Envelope,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        let mut write = Some(write);
        let mut result = None;
        let whole = envelope.ethernet.octets() + len;
        let queued = self.transmitter.transmit(whole, &mut |frame| {
            if let Some(packet) = envelope.ethernet.write(frame)
                && let Some(write) = write.take()
            {
                result = Some(write(packet));
                envelope.mark(packet);
            }
        });
        if queued.is_ok() {
            self.allowance = self.allowance.saturating_sub(1);
        }
        match (result, write) {
            (Some(result), _) => result,
            (None, Some(write)) => write(&mut self.scratch[..len]),
            (None, None) => unreachable!("what was written has a result"),
        }
    }

    /// Passes the queued frames to the interface, first those that it had no room for before.
    pub(super) fn flush(&mut self) -> Result<(), PathError> {
        if self.transmitter.is_pending() {
            self.transmitter.flush()?;
        }
        Ok(())
    }
}

/// The headers around the packets of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub(super) ethernet: Ethernet,
    /// The differentiated services code point of the packets.
    pub(super) dscp: u8,
}

impl Envelope {
    /// Returns the envelope of the answer to a frame.
    pub(super) fn of_answer(to: &Ethernet, hardware: [u8; 6], marks: Marks) -> Self {
        let vlan = to.vlan.map(|vlan| Vlan {
            priority: marks.vlan_priority.unwrap_or(vlan.priority),
            may_drop: false,
            id: vlan.id,
        });
        Self {
            ethernet: Ethernet {
                to: to.from,
                from: hardware,
                vlan,
                kind: to.kind,
            },
            dscp: marks.dscp,
        }
    }

    /// Writes the DSCP of the connection's class into the IP header of a packet.
    fn mark(&self, packet: &mut [u8]) {
        if self.dscp == 0 {
            return;
        }
        match (self.ethernet.kind, packet) {
            (Ethernet::IPV4, packet) if packet.len() >= IPV4_HEADER => {
                packet[1] = self.dscp << 2;
                let sum = checksum::ipv4(&packet[..IPV4_HEADER]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            (Ethernet::IPV6, [first, second, ..]) => {
                *first = *first & 0xf0 | self.dscp >> 2;
                *second = *second & 0x3f | self.dscp << 6;
            }
            _ => {}
        }
    }
}

/// The marks of a class's packets for the network.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Marks {
    pub(super) dscp: u8,
    pub(super) vlan_priority: Option<u8>,
}

/// The smoltcp device of one connection for one call of the protocol. At most one packet is
/// received by it.
///
/// The output is locked from the first outgoing packet to the end of the call.
pub(super) struct Port<'a> {
    incoming: Option<&'a [u8]>,
    egress: &'a PiMutex<Egress>,
    locked: Option<PiMutexGuard<'a, Egress>>,
    envelope: Envelope,
    mtu: usize,
    position: &'a mut SendPosition,
}

impl<'a> Port<'a> {
    pub(super) fn new(
        incoming: Option<&'a [u8]>,
        egress: &'a PiMutex<Egress>,
        envelope: Envelope,
        mtu: usize,
        position: &'a mut SendPosition,
    ) -> Self {
        Self {
            incoming,
            egress,
            locked: None,
            envelope,
            mtu,
            position,
        }
    }
}

impl Device for Port<'_> {
    type RxToken<'t>
        = IncomingPacket<'t>
    where
        Self: 't;
    type TxToken<'t>
        = OutgoingPacket<'t>
    where
        Self: 't;

    fn receive(&mut self, _: Instant) -> Option<(IncomingPacket<'_>, OutgoingPacket<'_>)> {
        let packet = self.incoming.take()?;
        let locked = self.locked.get_or_insert_with(|| self.egress.lock());
        let outgoing = OutgoingPacket {
            egress: locked,
            envelope: self.envelope,
            position: self.position,
        };
        Some((IncomingPacket(packet), outgoing))
    }

    fn transmit(&mut self, _: Instant) -> Option<OutgoingPacket<'_>> {
        let locked = self.locked.get_or_insert_with(|| self.egress.lock());
        let envelope = self.envelope;
        locked.has_room().then_some(OutgoingPacket {
            egress: locked,
            envelope,
            position: self.position,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        // The checksums of incoming packets were verified before.
        let mut checksums = ChecksumCapabilities::ignored();
        checksums.ipv4 = Checksum::Tx;
        checksums.tcp = Checksum::Tx;
        capabilities.checksum = checksums;
        capabilities
    }
}

pub(super) struct IncomingPacket<'a>(&'a [u8]);

impl RxToken for IncomingPacket<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

pub(super) struct OutgoingPacket<'a> {
    egress: &'a mut Egress,
    envelope: Envelope,
    position: &'a mut SendPosition,
}

impl TxToken for OutgoingPacket<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut is_again = false;
        let result = self.egress.put(&self.envelope, len, |packet| {
            let result = f(packet);
            is_again = self.position.note(packet);
            result
        });
        self.egress.sent_again += u64::from(is_again);
        result
    }
}

/// The output of a closed class.
#[derive(Debug)]
struct Nowhere;

impl Transmitter for Nowhere {
    fn transmit(&mut self, _: usize, _: &mut dyn FnMut(&mut [u8])) -> Result<(), TransmitError> {
        Err(TransmitError::Full)
    }

    fn has_room(&mut self) -> bool {
        false
    }

    fn flush(&mut self) -> Result<(), PathError> {
        Ok(())
    }

    fn is_pending(&self) -> bool {
        false
    }

    fn counts(&self) -> TransmitCounts {
        TransmitCounts::default()
    }
}

/// A transmitter that accepts all frames and sends none.
#[derive(Debug)]
struct Sink;

impl Transmitter for Sink {
    fn transmit(&mut self, _: usize, _: &mut dyn FnMut(&mut [u8])) -> Result<(), TransmitError> {
        Ok(())
    }

    fn has_room(&mut self) -> bool {
        true
    }

    fn flush(&mut self) -> Result<(), PathError> {
        Ok(())
    }

    fn is_pending(&self) -> bool {
        false
    }

    fn counts(&self) -> TransmitCounts {
        TransmitCounts::default()
    }
}

const IPV4_HEADER: usize = 20;
