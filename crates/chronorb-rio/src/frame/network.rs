//! Headers of IPv4 and IPv6 packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::HeadersError;

/// The parsed header of an IP packet. Positions count octets from the start of the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip {
    pub(super) transport: usize,
    pub(super) end: usize,
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) dscp: u8,
    pub(super) is_fragment: bool,
    pub(super) is_tcp: bool,
}

/// The maximum number of IPv6 extension headers of a packet. RFC 8200 allows each kind once, and
/// one of them twice.
pub(crate) const MAX_EXTENSIONS: usize = 8;

/// Reads a header of IPv4 (RFC 791 §3.1).
pub(super) fn ipv4(packet: &[u8]) -> Result<Ip, HeadersError> {
    let header: [u8; 20] = array(packet, 0).ok_or(HeadersError::Short)?;
    let transport = usize::from(header[0] & 0xf) * 4;
    let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[0] >> 4 != 4 || transport < header.len() || end < transport {
        return Err(HeadersError::Malformed);
    }
    if end > packet.len() {
        return Err(HeadersError::Short);
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let [.., a, b, c, d, e, f, g, h] = header;
    Ok(Ip {
        transport,
        end,
        from: Ipv4Addr::new(a, b, c, d).into(),
        to: Ipv4Addr::new(e, f, g, h).into(),
        dscp: header[1] >> 2,
        is_fragment: fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0,
        is_tcp: header[9] == TCP,
    })
}

/// Reads a header of IPv6 and its extensions (RFC 8200 §3 and §4).
pub(super) fn ipv6(packet: &[u8]) -> Result<Ip, HeadersError> {
    let header: [u8; 8] = array(packet, 0).ok_or(HeadersError::Short)?;
    let from: [u8; 16] = array(packet, 8).ok_or(HeadersError::Short)?;
    let to: [u8; 16] = array(packet, 24).ok_or(HeadersError::Short)?;
    if header[0] >> 4 != 6 {
        return Err(HeadersError::Malformed);
    }
    let end = IPV6_LEN + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let packet = packet.get(..end).ok_or(HeadersError::Short)?;
    let mut ip = Ip {
        transport: IPV6_LEN,
        end,
        from: Ipv6Addr::from(from).into(),
        to: Ipv6Addr::from(to).into(),
        dscp: (header[0] << 2 | header[1] >> 6) & 0x3f,
        is_fragment: false,
        is_tcp: false,
    };
    let mut next = header[6];
    for _ in 0..=MAX_EXTENSIONS {
        match next {
            TCP => {
                ip.is_tcp = true;
                return Ok(ip);
            }
            FRAGMENT => {
                ip.is_fragment = true;
                return Ok(ip);
            }
            HOP_BY_HOP | ROUTING | DESTINATION => {}
            _ => return Ok(ip),
        }
        let extension: [u8; 4] = array(packet, ip.transport).ok_or(HeadersError::Malformed)?;
        let [following, len, _, segments_left] = extension;
        if next == ROUTING && segments_left != 0 {
            // A routing header with segments left: the packet is forwarded to another host.
            return Ok(ip);
        }
        next = following;
        ip.transport += 8 + 8 * usize::from(len);
        if ip.transport > ip.end {
            return Err(HeadersError::Malformed);
        }
    }
    Err(HeadersError::TooManyExtensions)
}

/// Returns the `N` octets that begin at the index `at`; `None` if the packet ends before.
pub(super) fn array<const N: usize>(octets: &[u8], at: usize) -> Option<[u8; N]> {
    octets.get(at..)?.first_chunk().copied()
}

/// Returns the 16-bit word at a position.
pub(super) fn word(octets: &[u8], at: usize) -> Option<u16> {
    array(octets, at).map(u16::from_be_bytes)
}

const IPV6_LEN: usize = 40;
const MORE_FRAGMENTS: u16 = 1 << 13;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// Protocol numbers of IANA.
const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
