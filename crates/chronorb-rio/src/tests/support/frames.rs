//! Frames to send, and parsing of received ones.

use std::net::IpAddr;

/// A builder of a TCP packet in an Ethernet frame. The payload is a number, and octets derived from
/// it.
#[derive(Clone, Debug)]
pub(crate) struct TestFrame {
    pub(crate) hardware: [[u8; 6]; 2],
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    /// The source port.
    pub(crate) source_port: u16,
    /// The destination port.
    pub(crate) port: u16,
    pub(crate) dscp: u8,
    /// The tag's control information.
    pub(crate) vlan: Option<u16>,
    /// For IPv4: whether more fragments follow.
    pub(crate) is_fragment: bool,
    pub(crate) protocol: u8,
    /// The TCP flags. The default is a reset, which no kernel answers.
    pub(crate) flags: u8,
    /// The length of the frame in octets.
    pub(crate) len: usize,
}

impl TestFrame {
    /// A packet between two hosts, each with its hardware address.
    pub(crate) fn between(from: ([u8; 6], IpAddr), to: ([u8; 6], IpAddr), port: u16) -> Self {
        Self {
            hardware: [to.0, from.0],
            from: from.1,
            to: to.1,
            source_port: 4321,
            port,
            dscp: 0,
            vlan: None,
            is_fragment: false,
            protocol: 6,
            flags: 0x04,
            len: 100,
        }
    }

    pub(crate) fn len(self, len: usize) -> Self {
        Self { len, ..self }
    }

    pub(crate) fn source_port(self, source_port: u16) -> Self {
        Self {
            source_port,
            ..self
        }
    }

    pub(crate) fn dscp(self, dscp: u8) -> Self {
        Self { dscp, ..self }
    }

    /// Adds a VLAN tag with a priority and a network.
    pub(crate) fn vlan(self, priority: u8, vlan: u16) -> Self {
        let vlan = Some(u16::from(priority) << 13 | vlan);
        Self { vlan, ..self }
    }

    pub(crate) fn fragment(self) -> Self {
        Self {
            is_fragment: true,
            ..self
        }
    }

    pub(crate) fn protocol(self, protocol: u8) -> Self {
        Self { protocol, ..self }
    }

    pub(crate) fn flags(self, flags: u8) -> Self {
        Self { flags, ..self }
    }

    /// Returns the frame with this number.
    pub(crate) fn octets(&self, number: u32) -> Vec<u8> {
        let mut frame = self.hardware.concat();
        if let Some(vlan) = self.vlan {
            frame.extend(0x8100_u16.to_be_bytes());
            frame.extend(vlan.to_be_bytes());
        }
        let mut packet = match (self.from, self.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                frame.extend(0x0800_u16.to_be_bytes());
                let rest = (self.len - frame.len()) as u16;
                let mut header = vec![0x45, self.dscp << 2];
                header.extend(rest.to_be_bytes());
                header.extend([0, 1, u8::from(self.is_fragment) << 5, 0]);
                header.extend([64, self.protocol, 0, 0]);
                header.extend(from.octets());
                header.extend(to.octets());
                let sum = checksum(&[&header]);
                header[10..12].copy_from_slice(&sum);
                header
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                frame.extend(0x86dd_u16.to_be_bytes());
                let rest = (self.len - frame.len() - 40) as u16;
                let mut header = vec![0x60 | self.dscp >> 2, self.dscp << 6, 0, 0];
                header.extend(rest.to_be_bytes());
                header.extend([self.protocol, 64]);
                header.extend(from.octets());
                header.extend(to.octets());
                header
            }
            _ => panic!("both of a packet's addresses are of one family"),
        };
        let transport = packet.len();
        packet.extend(self.source_port.to_be_bytes());
        packet.extend(self.port.to_be_bytes());
        packet.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, self.flags, 32, 0, 0, 0, 0, 0]);
        let room = (self.len - frame.len() - packet.len()) as u32;
        let numbers = (0..room).map(|place| match place {
            0..4 => number.to_be_bytes()[place as usize],
            _ => (number.wrapping_mul(31) + place) as u8,
        });
        packet.extend(numbers);
        let segment = packet.len() - transport;
        let mut pseudo = Vec::new();
        for address in [self.from, self.to] {
            match address {
                IpAddr::V4(address) => pseudo.extend(address.octets()),
                IpAddr::V6(address) => pseudo.extend(address.octets()),
            }
        }
        pseudo.extend((segment as u32).to_be_bytes());
        pseudo.extend([0, 0, 0, self.protocol]);
        let sum = checksum(&[&pseudo, &packet[transport..]]);
        packet[transport + 16..transport + 18].copy_from_slice(&sum);
        frame.extend(packet);
        frame
    }
}

/// Returns the number of a frame; `None` if the frame has changed.
pub(crate) fn number_of(frame: &[u8]) -> Option<u32> {
    let tag = match frame[12..14] {
        [0x81, 0] => 4,
        _ => 0,
    };
    let header = match frame[12 + tag..14 + tag] {
        [8, 0] => 20,
        [0x86, 0xdd] => 40,
        _ => return None,
    };
    let payload = frame.get(14 + tag + header + 20..)?;
    Some(u32::from_be_bytes(*payload.first_chunk()?))
}

/// Computes the Internet checksum (RFC 1071) of pieces, all of even length except the last.
pub(crate) fn checksum(pieces: &[&[u8]]) -> [u8; 2] {
    let mut sum = 0_u32;
    for pair in pieces.iter().flat_map(|piece| piece.chunks(2)) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([pair[0], low]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}
