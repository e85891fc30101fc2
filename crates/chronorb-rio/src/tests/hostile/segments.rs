//! TCP segments of other peers, valid and invalid ones.

use std::net::SocketAddrV4;

use crate::tests::support::frames::checksum;

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;

/// An IPv4 TCP segment in an Ethernet frame.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// The hardware addresses, destination and source.
    pub(crate) hardware: [[u8; 6]; 2],
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) payload: Vec<u8>,
    /// The fragment flags and offset as they are in the header.
    pub(crate) fragment: u16,
    /// The options of TCP, and those of IP, a multiple of four octets each.
    pub(crate) options: [Vec<u8>; 2],
    /// The number of VLAN tags.
    pub(crate) tags: usize,
}

/// The parsed values of a received segment.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) to: SocketAddrV4,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) payload: usize,
}

impl Segment {
    pub(crate) fn new(hardware: [[u8; 6]; 2], from: SocketAddrV4, to: SocketAddrV4) -> Self {
        Self {
            hardware,
            from,
            to,
            sequence: 1000,
            acknowledgement: 0,
            flags: SYN,
            window: 8192,
            payload: Vec::new(),
            fragment: 0,
            options: [Vec::new(), Vec::new()],
            tags: 0,
        }
    }

    /// Returns the segment with which a peer continues after this answer.
    pub(crate) fn after(&self, answer: &Answer) -> Self {
        let taken = u32::from(answer.flags & (SYN | FIN) != 0) + answer.payload as u32;
        Self {
            sequence: answer.acknowledgement,
            acknowledgement: answer.sequence.wrapping_add(taken),
            flags: ACK,
            payload: Vec::new(),
            options: [Vec::new(), Vec::new()],
            ..self.clone()
        }
    }

    pub(crate) fn flags(self, flags: u8) -> Self {
        Self { flags, ..self }
    }

    pub(crate) fn payload(self, payload: &[u8]) -> Self {
        let payload = payload.to_vec();
        Self { payload, ..self }
    }

    /// Returns the octets of the frame, with checksums.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut segment = Vec::new();
        segment.extend(self.from.port().to_be_bytes());
        segment.extend(self.to.port().to_be_bytes());
        segment.extend(self.sequence.to_be_bytes());
        segment.extend(self.acknowledgement.to_be_bytes());
        let [tcp, ip] = &self.options;
        segment.extend([0x50 + ((tcp.len() as u8 / 4) << 4), self.flags]);
        segment.extend(self.window.to_be_bytes());
        segment.extend([0; 4]);
        segment.extend(tcp);
        segment.extend(&self.payload);
        let mut pseudo = [self.from.ip().octets(), self.to.ip().octets()].concat();
        pseudo.extend([0, 6]);
        pseudo.extend((segment.len() as u16).to_be_bytes());
        let sum = checksum(&[&pseudo, &segment]);
        segment[16..18].copy_from_slice(&sum);

        let mut header = vec![0x45 + ip.len() as u8 / 4, 0];
        header.extend(((20 + ip.len() + segment.len()) as u16).to_be_bytes());
        header.extend([0, 1]);
        header.extend(self.fragment.to_be_bytes());
        header.extend([64, 6, 0, 0]);
        header.extend(self.from.ip().octets());
        header.extend(self.to.ip().octets());
        header.extend(ip);
        let sum = checksum(&[&header]);
        header[10..12].copy_from_slice(&sum);

        let mut frame = self.hardware.concat();
        for _ in 0..self.tags {
            frame.extend([0x81, 0, 0, 1]);
        }
        frame.extend([8, 0]);
        frame.extend(header);
        frame.extend(segment);
        // Padding as by an Ethernet interface.
        frame.resize(frame.len().max(60), 0);
        frame
    }
}

/// Parses the segment in a frame, if it is one of IPv4.
pub(crate) fn read(frame: &[u8]) -> Option<Answer> {
    if frame.get(12..14)? != [8, 0] || frame[14 + 9] != 6 {
        return None;
    }
    let packet = &frame[14..];
    let segment = packet.get(20..usize::from(u16::from_be_bytes([packet[2], packet[3]])))?;
    let number = |at: usize| Some(u32::from_be_bytes(*segment.get(at..)?.first_chunk()?));
    let port = |at: usize| Some(u16::from_be_bytes(*segment.get(at..)?.first_chunk()?));
    let address = |at: usize| Some(*packet.get(at..)?.first_chunk::<4>()?);
    Some(Answer {
        to: SocketAddrV4::new(address(16)?.into(), port(2)?),
        sequence: number(4)?,
        acknowledgement: number(8)?,
        flags: *segment.get(13)?,
        payload: segment.len() - usize::from(segment[12] >> 4) * 4,
    })
}
