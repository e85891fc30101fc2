//! Packets of IP as a network would have carried them.

use std::net::{IpAddr, SocketAddr};

/// A segment of TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) flags: u8,
    pub(super) sequence: u32,
    pub(super) acknowledged: u32,
}

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;

/// The longest payload that is put into one packet.
pub(super) const LONGEST_PAYLOAD: usize = 60_000;

/// Writes an IP packet that carries one TCP segment.
pub(super) fn write_tcp(
    out: &mut Vec<u8>,
    from: SocketAddr,
    to: SocketAddr,
    segment: Segment,
    payload: &[u8],
) {
    let options: &[u8] = match segment.flags & SYN {
        0 => &[],
        _ => &WIDEST_WINDOW,
    };
    let header = TCP_HEADER + options.len();
    let ip = IpHeader::write(out, from, to, TCP, header + payload.len());
    let begin = out.len();
    out.extend(from.port().to_be_bytes());
    out.extend(to.port().to_be_bytes());
    out.extend(segment.sequence.to_be_bytes());
    out.extend(segment.acknowledged.to_be_bytes());
    out.push(((header / 4) as u8) << 4);
    out.push(segment.flags);
    out.extend(WINDOW.to_be_bytes());
    // The checksum, and no urgent data.
    out.extend([0; 4]);
    out.extend_from_slice(options);
    out.extend_from_slice(payload);
    let checksum = ip.checksum(&out[begin..]);
    out[begin + 16..begin + 18].copy_from_slice(&checksum.to_be_bytes());
}

/// Writes a packet with a datagram of UDP.
pub(super) fn write_udp(out: &mut Vec<u8>, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
    let len = UDP_HEADER + payload.len();
    let ip = IpHeader::write(out, from, to, UDP, len);
    let begin = out.len();
    out.extend(from.port().to_be_bytes());
    out.extend(to.port().to_be_bytes());
    out.extend((len as u16).to_be_bytes());
    out.extend([0; 2]);
    out.extend_from_slice(payload);
    // 0 would mean that there is none.
    let checksum = match ip.checksum(&out[begin..]) {
        0 => u16::MAX,
        checksum => checksum,
    };
    out[begin + 6..begin + 8].copy_from_slice(&checksum.to_be_bytes());
}

/// The sum of the header fields that the checksums of TCP and UDP cover.
struct IpHeader(u32);

impl IpHeader {
    fn write(
        out: &mut Vec<u8>,
        from: SocketAddr,
        to: SocketAddr,
        protocol: u8,
        len: usize,
    ) -> Self {
        let begin = out.len();
        let sum = u32::from(protocol) + len as u32;
        match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                out.extend([0x45, 0]);
                out.extend((IPV4_HEADER as u16 + len as u16).to_be_bytes());
                // No identification; not to be fragmented.
                out.extend([0, 0, 0x40, 0, HOPS, protocol, 0, 0]);
                out.extend(from.octets());
                out.extend(to.octets());
                let checksum = fold(add_up(&out[begin..]));
                out[begin + 10..begin + 12].copy_from_slice(&checksum.to_be_bytes());
                Self(sum + add_up(&out[begin + 12..]))
            }
            (from, to) => {
                out.extend([0x60, 0, 0, 0]);
                out.extend((len as u16).to_be_bytes());
                out.extend([protocol, HOPS]);
                out.extend(of_version_6(from));
                out.extend(of_version_6(to));
                Self(sum + add_up(&out[begin + 8..]))
            }
        }
    }

    fn checksum(&self, rest: &[u8]) -> u16 {
        fold(self.0 + add_up(rest))
    }
}

fn of_version_6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The sum of all pairs of octets; packets are short enough that it does not overflow.
fn add_up(octets: &[u8]) -> u32 {
    let pairs = octets.chunks(2);
    pairs
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)))
        .sum()
}

/// Returns the Internet checksum (RFC 1071) for the given sum.
fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV4_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const HOPS: u8 = 64;
const WINDOW: u16 = u16::MAX;
/// The option that has windows count in units of 16 KiB (RFC 7323), and one that does nothing.
const WIDEST_WINDOW: [u8; 4] = [3, 3, 14, 1];
