//! Ethernet frames: parsing and writing of their headers.
//!
//! The parsers read Ethernet with at most one VLAN tag (802.1Q), IPv4 with options (RFC 791), IPv6
//! with extension headers (RFC 8200) and TCP (RFC 9293). They accept any octets and do not
//! allocate.
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

/// The parsed headers of a frame with an IP packet.
///
/// Positions count octets from the start of the frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Headers {
    /// The Ethernet header, with its VLAN tag.
    pub ethernet: Ethernet,
    /// The position of the IP packet.
    pub network: usize,
    /// The position of the IP payload, behind options or extension headers.
    pub transport: usize,
    /// The end of the IP packet. Padding of the frame may follow.
    pub end: usize,
    /// The source address.
    pub from: IpAddr,
    /// The destination address.
    pub to: IpAddr,
    /// The differentiated services code point (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// Whether the packet is a fragment. A packet with a fragment header counts as one, even if it
    /// is complete.
    pub is_fragment: bool,
    /// The TCP header; `None` for another protocol or a fragment.
    pub tcp: Option<Tcp>,
}

impl Headers {
    /// Parses the headers of a frame, from the Ethernet header on and without the check sequence.
    /// Does not verify checksums.
    ///
    /// # Errors
    /// [`HeadersError`] if the frame has no IP packet, or an inconsistent one.
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

    /// Returns the priority of the VLAN tag, 0 to 7, if there is a tag.
    pub fn vlan_priority(&self) -> Option<u8> {
        self.ethernet.vlan.map(|vlan| vlan.priority)
    }

    /// Returns the position of the IP packet, without the frame's padding.
    pub const fn packet(&self) -> Range<usize> {
        self.network..self.end
    }

    /// Returns the position of the TCP payload; `None` if there is no TCP.
    pub fn payload(&self) -> Option<Range<usize>> {
        self.tcp.map(|tcp| tcp.payload..self.end)
    }

    /// Returns the source and the destination of the TCP segment; `None` for packets without TCP.
    pub fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        let tcp = self.tcp?;
        let from = SocketAddr::new(self.from, tcp.from);
        Some((from, SocketAddr::new(self.to, tcp.to)))
    }

    /// Returns whether the checksums of the IPv4 header and of TCP are right. `frame` is the frame
    /// that the headers were read from.
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

/// An error of [`Headers::read`].
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum HeadersError {
    /// The frame ends within a header, or before the packet does.
    #[error("the frame ends before its packet does")]
    Short,
    /// The frame has no IP packet, or more than one VLAN tag.
    #[error("the frame carries no IP packet")]
    NotIp,
    /// A header has a wrong version or an impossible length.
    #[error("a header of the packet is malformed")]
    Malformed,
    /// The packet has more extension headers than are ever used.
    #[error(
        "the packet has more than {} extension headers",
        network::MAX_EXTENSIONS
    )]
    TooManyExtensions,
}
