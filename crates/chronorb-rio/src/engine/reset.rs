//! The answer to a segment that belongs to no connection (RFC 9293 §3.5.2).
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::net::IpAddr;

use chronorb_rt::PiMutex;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpAddress, IpProtocol, IpRepr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};

use super::device::{Egress, Envelope};
use crate::frame::Headers;

/// Answers a segment that belongs to no connection with a reset. A reset is not answered.
pub(super) fn answer(headers: &Headers, envelope: &Envelope, egress: &PiMutex<Egress>) {
    let Some(tcp) = headers.tcp.filter(|tcp| !tcp.flags.has_rst()) else {
        return;
    };
    let flags = tcp.flags;
    let octets =
        headers.end - tcp.payload + usize::from(flags.has_syn()) + usize::from(flags.has_fin());
    let (sequence, acknowledged) = if flags.has_ack() {
        (tcp.acknowledgement, None)
    } else {
        (0, Some(tcp.sequence.wrapping_add(octets as u32)))
    };
    let number = |number: u32| TcpSeqNumber(number.cast_signed());
    let reset = TcpRepr {
        src_port: tcp.to,
        dst_port: tcp.from,
        control: TcpControl::Rst,
        seq_number: number(sequence),
        ack_number: acknowledged.map(number),
        window_len: 0,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    };
    let (from, to) = (address(headers.to), address(headers.from));
    let ip = IpRepr::new(from, to, IpProtocol::Tcp, reset.buffer_len(), HOPS);
    let checksums = ChecksumCapabilities::default();
    egress.lock().put(envelope, ip.buffer_len(), |packet| {
        ip.emit(&mut *packet, &checksums);
        let segment = &mut packet[ip.header_len()..];
        let mut segment = TcpPacket::new_unchecked(segment);
        reset.emit(&mut segment, &from, &to, &checksums);
    });
}

fn address(address: IpAddr) -> IpAddress {
    address.into()
}

const HOPS: u8 = 64;
