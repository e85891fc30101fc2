//! Headers of Ethernet frames, with VLAN tags.

use super::network::{array, word};

/// The length of an Ethernet header without a VLAN tag, in octets.
pub const ETHERNET_LEN: usize = 14;

/// An Ethernet header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ethernet {
    /// The destination hardware address.
    pub to: [u8; 6],
    /// The source hardware address.
    pub from: [u8; 6],
    /// The VLAN tag, if there is one.
    pub vlan: Option<Vlan>,
    /// The EtherType of the payload: [`Ethernet::IPV4`], [`Ethernet::IPV6`] or another.
    pub kind: u16,
}

/// A VLAN tag (802.1Q).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Vlan {
    /// The priority code point, 0 to 7.
    pub priority: u8,
    /// Whether the frame is eligible to be dropped first.
    pub may_drop: bool,
    /// The VLAN number, 0 to 4095. 0 means that the tag carries only the priority.
    pub id: u16,
}

impl Ethernet {
    /// The EtherType of IPv4.
    pub const IPV4: u16 = 0x0800;
    /// The EtherType of IPv6.
    pub const IPV6: u16 = 0x86dd;

    /// Parses the header. Returns it and its length in octets; `None` if the frame is too short.
    pub fn read(frame: &[u8]) -> Option<(Self, usize)> {
        let to = array(frame, 0)?;
        let from = array(frame, 6)?;
        let kind = word(frame, 12)?;
        if kind != TAG {
            let untagged = Self {
                to,
                from,
                vlan: None,
                kind,
            };
            return Some((untagged, ETHERNET_LEN));
        }
        let control = word(frame, 14)?;
        let vlan = Some(Vlan {
            priority: (control >> 13) as u8,
            may_drop: control & MAY_DROP != 0,
            id: control & MAX_ID,
        });
        let kind = word(frame, 16)?;
        let tagged = Self {
            to,
            from,
            vlan,
            kind,
        };
        Some((tagged, ETHERNET_LEN + TAG_LEN))
    }

    /// Returns the length of the header in octets.
    pub const fn octets(&self) -> usize {
        match self.vlan {
            None => ETHERNET_LEN,
            Some(_) => ETHERNET_LEN + TAG_LEN,
        }
    }

    /// Writes the header at the start of `frame` and returns the rest of the frame. Returns `None`,
    /// and writes nothing, if the frame is too short.
    pub fn write<'f>(&self, frame: &'f mut [u8]) -> Option<&'f mut [u8]> {
        let (header, rest) = frame.split_at_mut_checked(self.octets())?;
        let (addresses, kinds) = header.split_at_mut(12);
        addresses[..6].copy_from_slice(&self.to);
        addresses[6..].copy_from_slice(&self.from);
        if let Some(vlan) = self.vlan {
            let may_drop = if vlan.may_drop { MAY_DROP } else { 0 };
            let control = u16::from(vlan.priority) << 13 | may_drop | vlan.id & MAX_ID;
            kinds[..2].copy_from_slice(&TAG.to_be_bytes());
            kinds[2..4].copy_from_slice(&control.to_be_bytes());
        }
        let at = kinds.len() - 2;
        kinds[at..].copy_from_slice(&self.kind.to_be_bytes());
        Some(rest)
    }
}

/// The EtherType of a VLAN tag.
const TAG: u16 = 0x8100;
/// The length of a VLAN tag in octets.
const TAG_LEN: usize = 4;
const MAY_DROP: u16 = 1 << 12;
const MAX_ID: u16 = 0xfff;
