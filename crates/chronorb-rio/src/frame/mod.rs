//! Frames of Ethernet: what their headers say, and how they are written.
//!
//! Read are Ethernet with at most one VLAN tag (802.1Q), IPv4 with options (RFC 791), IPv6 with
//! extension headers (RFC 8200) and TCP (RFC 9293). Any octets can be given; nothing is allocated.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

pub mod checksum;
mod ethernet;
mod network;
mod tcp;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use thiserror::Error;

pub use ethernet::{ETHERNET_LEN, Ethernet, Vlan};
pub(crate) use network::MAX_EXTENSIONS;
pub use tcp::{Flags, Tcp};

/// What the headers of a frame with an IP packet say.
///
/// Positions count octets from the start of the frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Headers {
    /// The header of Ethernet, with its VLAN tag.
    pub ethernet: Ethernet,
    /// Where the IP packet begins.
    pub network: usize,
    /// Where what it carries begins, behind its options or extension headers.
    pub transport: usize,
    /// Where it ends; padding of the frame may follow.
    pub end: usize,
    /// The address it comes from.
    pub from: IpAddr,
    /// The address it goes to.
    pub to: IpAddr,
    /// Its differentiated services code point (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// Whether it is part of a packet only. A packet with a fragment header is one, even if all of
    /// it is there.
    pub is_fragment: bool,
    /// The header of TCP; `None` where it carries something else, or is a fragment.
    pub tcp: Option<Tcp>,
}

impl Headers {
    /// Reads the headers of a frame, from the Ethernet header on and without the check sequence.
    /// Checksums are not looked at.
    ///
    /// # Errors
    /// [`HeadersError`], where the frame has no IP packet, or one that contradicts itself.
    pub fn read(frame: &[u8]) -> Result<Self, HeadersError> {
        let (ethernet, network) = Ethernet::read(frame).ok_or(HeadersError::Short)?;
        let packet = frame.get(network..).ok_or(HeadersError::Short)?;
        let ip = match ethernet.kind {
            Ethernet::IPV4 => network::ipv4(packet)?,
            Ethernet::IPV6 => network::ipv6(packet)?,
            _ => return Err(HeadersError::NotIp),
        };
        let tcp = if ip.is_tcp && !ip.is_fragment {
            let segment = packet.get(ip.transport..ip.end);
            Some(Tcp::read(
                segment.unwrap_or_default(),
                network + ip.transport,
            )?)
        } else {
            None
        };
        Ok(Self {
            ethernet,
            network,
            transport: network + ip.transport,
            end: network + ip.end,
            from: ip.from,
            to: ip.to,
            dscp: ip.dscp,
            is_fragment: ip.is_fragment,
            tcp,
        })
    }

    /// The priority of its VLAN tag, 0 to 7, if it has one.
    pub fn vlan_priority(&self) -> Option<u8> {
        self.ethernet.vlan.map(|vlan| vlan.priority)
    }

    /// Where the IP packet lies, without the frame's padding.
    pub const fn packet(&self) -> Range<usize> {
        self.network..self.end
    }

    /// Where the octets lie that TCP carries; `None` if there is no TCP.
    pub fn payload(&self) -> Option<Range<usize>> {
        self.tcp.map(|tcp| tcp.payload..self.end)
    }

    /// Both ends of the connection, from and to; `None` if there is no TCP.
    pub fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        let tcp = self.tcp?;
        let from = SocketAddr::new(self.from, tcp.from);
        Some((from, SocketAddr::new(self.to, tcp.to)))
    }

    /// Whether the checksums of `frame`, whose headers these are, are right: that of the IPv4
    /// header, and that of TCP.
    pub fn has_right_checksums(&self, frame: &[u8]) -> bool {
        let whole = |range: Range<usize>| frame.get(range).unwrap_or_default();
        let header = whole(self.network..self.transport);
        let is_header_right = self.from.is_ipv6() || checksum::is_ipv4_right(header);
        let segment = whole(self.transport..self.end);
        let is_segment_right =
            self.tcp.is_none() || checksum::is_tcp_right(self.from, self.to, segment);
        is_header_right && is_segment_right
    }
}

/// Why the headers of a frame cannot be read.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum HeadersError {
    /// It ends within a header, or before the packet does.
    #[error("the frame ends before its packet does")]
    Short,
    /// Its packet is none of IP, or has more than one VLAN tag.
    #[error("the frame carries no IP packet")]
    NotIp,
    /// A header has a wrong version, or a length that cannot be.
    #[error("a header of the packet contradicts itself")]
    Malformed,
    /// There are more extension headers than anyone sends.
    #[error(
        "the packet has more than {} extension headers",
        network::MAX_EXTENSIONS
    )]
    TooManyExtensions,
}
