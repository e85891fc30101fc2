//! Packets: a header, and a part of a message. The Unreliable Multicast specification (MIOP),
//! packet header 1.0.
//!
//! ```text
//! offset  0  "MIOP"
//!         4  version, 0x10
//!         5  flags: 1 little-endian, 2 the collection's last packet
//!         6  unsigned short: octets of data
//!         8  unsigned long: the packet's number, from 0
//!        12  unsigned long: packets of the collection, or 0
//!        16  unsigned long: octets of the unique id, at most 252
//!        20  the unique id of the collection
//!            padding to a multiple of 8
//!            data
//! ```

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use thiserror::Error;

/// Octets of the headers that are sent, whose ids have [`ID_LEN`] octets.
pub(super) const HEADER_LEN: usize = ID_AT + ID_LEN;

/// Octets of the ids that are sent.
pub(super) const ID_LEN: usize = 12;

/// Octets of the longest id that is received.
pub(super) const MAX_ID_LEN: usize = 252;

/// Part of a message, as it travels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Packet<'a> {
    /// The index in the collection, from 0.
    pub number: u32,
    /// The number of packets of the collection, if this packet has it.
    pub total: Option<u32>,
    /// The identifier of the collection, which is unique.
    pub id: &'a [u8],
    /// The part of the message; never empty.
    pub data: &'a [u8],
}

/// The reason why a datagram is not a packet.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PacketError {
    /// The packet does not begin with `MIOP`.
    #[error("it is not MIOP")]
    Magic,
    /// The header has another major version.
    #[error("the version of its header is not 1")]
    Version,
    /// The packet ends within its header, or the id is too long.
    #[error("its header is malformed")]
    Header,
    /// The packet has less data than its header declares, or none.
    #[error("its length is not that of its header")]
    Length,
    /// The number is not one of its collection's.
    #[error("its number is out of its collection's range")]
    Number,
}

impl<'a> Packet<'a> {
    /// Parses a datagram. Octets after the data are ignored.
    ///
    /// # Errors
    /// [`PacketError`] with the reason.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let (head, rest) = datagram.split_first_chunk::<ID_AT>().ok_or_else(|| {
            if datagram.starts_with(MAGIC) {
                PacketError::Header
            } else {
                PacketError::Magic
            }
        })?;
        if head[..4] != *MAGIC {
            return Err(PacketError::Magic);
        }
        // The upper half of the octet is the major version; minor ones add nothing to the header.
        if head[4] >> 4 != VERSION >> 4 {
            return Err(PacketError::Version);
        }
        let flags = head[5];
        let octets = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let long = |at| match flags & LITTLE_ENDIAN {
            0 => u32::from_be_bytes(octets(at)),
            _ => u32::from_le_bytes(octets(at)),
        };
        let len = match flags & LITTLE_ENDIAN {
            0 => u16::from_be_bytes([head[6], head[7]]),
            _ => u16::from_le_bytes([head[6], head[7]]),
        };
        let (number, count) = (long(8), long(12));
        let id_len = long(16) as usize;
        if id_len > MAX_ID_LEN {
            return Err(PacketError::Header);
        }
        let id = rest.get(..id_len).ok_or(PacketError::Header)?;
        let start = (ID_AT + id_len).next_multiple_of(8);
        let end = start + usize::from(len);
        let data = datagram.get(start..end).ok_or(PacketError::Length)?;
        if data.is_empty() {
            return Err(PacketError::Length);
        }
        let is_last = flags & LAST != 0;
        let total = match (count, is_last) {
            (0, false) => None,
            (0, true) => Some(number.checked_add(1).ok_or(PacketError::Number)?),
            (count, false) if number < count => Some(count),
            (count, true) if number == count - 1 => Some(count),
            _ => return Err(PacketError::Number),
        };
        Ok(Self {
            number,
            total,
            id,
            data,
        })
    }
}

/// The header of a packet with `len` octets of data, the `number`th of `total`.
pub(super) fn header(id: [u8; ID_LEN], len: u16, number: u32, total: u32) -> [u8; HEADER_LEN] {
    let order = if cfg!(target_endian = "little") {
        LITTLE_ENDIAN
    } else {
        0
    };
    let last = if number + 1 == total { LAST } else { 0 };
    let mut header = [0; HEADER_LEN];
    header[..4].copy_from_slice(MAGIC);
    header[4] = VERSION;
    header[5] = order | last;
    header[6..8].copy_from_slice(&len.to_ne_bytes());
    header[8..12].copy_from_slice(&number.to_ne_bytes());
    header[12..16].copy_from_slice(&total.to_ne_bytes());
    header[16..ID_AT].copy_from_slice(&(ID_LEN as u32).to_ne_bytes());
    header[ID_AT..].copy_from_slice(&id);
    header
}

/// The unique id of a sender's `count`th message.
///
/// It is text: some ORBs read ids as such, and would take two for the same that differ in octets
/// which are no characters only.
pub(super) fn unique_id(sender: u64, count: u32) -> [u8; ID_LEN] {
    let mut bits = (u128::from(sender) << 32) | u128::from(count);
    let mut id = [0; ID_LEN];
    for octet in id.iter_mut().rev() {
        *octet = DIGITS[(bits & 63) as usize];
        bits >>= 6;
    }
    id
}

const MAGIC: &[u8; 4] = b"MIOP";
const VERSION: u8 = 0x10;
const LITTLE_ENDIAN: u8 = 1;
const LAST: u8 = 2;
/// The offset of the unique id.
const ID_AT: usize = 20;
const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

#[cfg(test)]
#[allow(clippy::disallowed_macros, clippy::disallowed_methods)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet of JacORB: big-endian, the second of two.
    const OF_ANOTHER: &[u8] = b"MIOP\x10\x02\0\x05\0\0\0\x01\0\0\0\x02\0\0\0\x0cabcdefghijklhello";

    #[test]
    fn a_packet_of_another_orb_is_read() {
        let packet = Packet::parse(OF_ANOTHER).unwrap();
        assert_eq!((packet.number, packet.total), (1, Some(2)));
        assert_eq!(packet.id, b"abcdefghijkl");
        assert_eq!(packet.data, b"hello");
    }

    #[test]
    fn data_begins_at_a_multiple_of_8_after_an_id_of_any_length() {
        for id_len in 0..=MAX_ID_LEN {
            let mut datagram = OF_ANOTHER[..ID_AT].to_vec();
            datagram[19] = id_len as u8;
            datagram.resize((ID_AT + id_len).next_multiple_of(8), b'x');
            datagram.extend_from_slice(b"hello");
            let packet = Packet::parse(&datagram).unwrap();
            assert_eq!((packet.id.len(), packet.data), (id_len, &b"hello"[..]));
        }
    }

    #[test]
    fn the_number_of_packets_may_be_left_out() {
        let mut datagram = OF_ANOTHER.to_vec();
        datagram[15] = 0;
        assert_eq!(Packet::parse(&datagram).map(|p| p.total), Ok(Some(2)));
        datagram[5] = 0;
        assert_eq!(Packet::parse(&datagram).map(|p| p.total), Ok(None));
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        let with = |at: usize, value: u8| {
            let mut datagram = OF_ANOTHER.to_vec();
            datagram[at] = value;
            datagram
        };
        for (datagram, error) in [
            (b"GIOP".to_vec(), PacketError::Magic),
            (with(0, b'G'), PacketError::Magic),
            (with(4, 0x20), PacketError::Version),
            (OF_ANOTHER[..19].to_vec(), PacketError::Header),
            (OF_ANOTHER[..31].to_vec(), PacketError::Header),
            (with(19, 253), PacketError::Header),
            (with(16, 255), PacketError::Header),
            (OF_ANOTHER[..36].to_vec(), PacketError::Length),
            (with(6, 255), PacketError::Length),
            (with(7, 0), PacketError::Length),
            // The last packet is not the last of those that it counts, or beyond them.
            (with(15, 3), PacketError::Number),
            (with(15, 1), PacketError::Number),
        ] {
            assert_eq!(Packet::parse(&datagram), Err(error), "{datagram:?}");
        }
    }

    #[test]
    fn a_sender_has_another_id_for_each_message() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|n| unique_id(7, n)).collect();
        assert_eq!(ids.len(), 1000);
        assert_ne!(unique_id(7, 0), unique_id(8, 0));
        assert!(unique_id(u64::MAX, u32::MAX).is_ascii());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            sender: u64,
            total in 1..=u32::MAX,
            number: u32,
            data in proptest::collection::vec(any::<u8>(), 1..100),
        ) {
            let number = number % total;
            let id = unique_id(sender, number);
            let mut datagram = header(id, data.len() as u16, number, total).to_vec();
            datagram.extend_from_slice(&data);
            let packet = Packet { number, total: Some(total), id: &id, data: &data };
            prop_assert_eq!(Packet::parse(&datagram), Ok(packet));
        }

        #[test]
        fn any_octets_are_a_packet_or_none(
            mut datagram in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Some(start) = datagram.first_chunk_mut::<5>() {
                start.copy_from_slice(b"MIOP\x10");
            }
            if let Ok(packet) = Packet::parse(&datagram) {
                prop_assert!(!packet.data.is_empty());
                prop_assert!(packet.total.is_none_or(|total| packet.number < total));
            }
        }
    }
}
