use super::HeadersError;
use super::network::array;

/// What a header of TCP says (RFC 9293 §3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tcp {
    /// The port it comes from.
    pub from: u16,
    /// The port it goes to.
    pub to: u16,
    /// The number of its first octet.
    pub sequence: u32,
    /// The number of the octet that is expected next, if [`Flags::has_ack`].
    pub acknowledgement: u32,
    /// Its control bits.
    pub flags: Flags,
    /// Where its octets begin, in octets from the start of the frame.
    pub payload: usize,
}

/// Control bits of TCP.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Flags(pub u8);

impl Tcp {
    /// Reads the header of `segment`, which begins at a position in the frame.
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
    /// No more octets come.
    pub const fn has_fin(self) -> bool {
        self.0 & 1 << 0 != 0
    }

    /// The connection begins.
    pub const fn has_syn(self) -> bool {
        self.0 & 1 << 1 != 0
    }

    /// The connection is no more.
    pub const fn has_rst(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// The acknowledgement counts.
    pub const fn has_ack(self) -> bool {
        self.0 & 1 << 4 != 0
    }

    /// Whether it asks for a new connection: a SYN, and nothing that contradicts it.
    pub const fn asks_to_connect(self) -> bool {
        self.has_syn() && !self.has_ack() && !self.has_rst() && !self.has_fin()
    }
}
