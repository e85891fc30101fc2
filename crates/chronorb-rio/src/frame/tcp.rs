//! Headers of TCP segments.

use super::HeadersError;
use super::network::array;

/// A TCP header (RFC 9293 §3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tcp {
    /// The source port.
    pub from: u16,
    /// The destination port.
    pub to: u16,
    /// The sequence number of the first octet.
    pub sequence: u32,
    /// The sequence number of the next expected octet. Valid if [`Flags::has_ack`].
    pub acknowledgement: u32,
    /// The control bits.
    pub flags: Flags,
    /// The position of the payload, in octets from the start of the frame.
    pub payload: usize,
}

/// The control bits of a TCP header.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Flags(pub u8);

impl Tcp {
    /// Parses the header of `segment`, which begins at position `at` of the frame.
    pub(super) fn read(segment: &[u8], at: usize) -> Result<Self, HeadersError> {
        let header: [u8; 20] = array(segment, 0).ok_or(HeadersError::Malformed)?;
        let len = usize::from(header[12] >> 4) * 4;
        if len < header.len() || len > segment.len() {
            return Err(HeadersError::Malformed);
        }
        let [a, b, c, d, e, f, g, h, i, j, k, l, _, flags, ..] = header;
        Ok(Self {
            from: u16::from_be_bytes([a, b]),
            to: u16::from_be_bytes([c, d]),
            sequence: u32::from_be_bytes([e, f, g, h]),
            acknowledgement: u32::from_be_bytes([i, j, k, l]),
            flags: Flags(flags),
            payload: at + len,
        })
    }
}

impl Flags {
    /// Returns whether the sender has no more data (FIN).
    pub const fn has_fin(self) -> bool {
        self.0 & 1 << 0 != 0
    }

    /// Returns whether the packet synchronizes sequence numbers (SYN).
    pub const fn has_syn(self) -> bool {
        self.0 & 1 << 1 != 0
    }

    /// Returns whether the packet resets the connection (RST).
    pub const fn has_rst(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// Returns whether the acknowledgement number is valid (ACK).
    pub const fn has_ack(self) -> bool {
        self.0 & 1 << 4 != 0
    }

    /// Returns whether the packet requests a new connection: SYN without ACK, RST and FIN.
    pub const fn asks_to_connect(self) -> bool {
        self.has_syn() && !self.has_ack() && !self.has_rst() && !self.has_fin()
    }
}
