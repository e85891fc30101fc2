//! Detection of retransmitted segments.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

/// The sequence numbers up to which a connection has sent and queued octets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendPosition {
    /// The sequence number behind the last sent octet; `None` before the first segment.
    end: Option<u32>,
    /// The sequence number behind the last queued octet. Valid once something was sent.
    given: u32,
}

impl SendPosition {
    /// Records an IP packet with a TCP segment. Returns whether all of its sequence numbers were
    /// sent before. An empty segment, such as an acknowledgement, never counts as sent before; a
    /// keep-alive probe has one octet that was.
    pub(super) fn note(&mut self, packet: &[u8]) -> bool {
        let Some((begin, len)) = extent(packet).filter(|(_, len)| *len > 0) else {
            return false;
        };
        let end = begin.wrapping_add(len);
        let is_again = (self.end).is_some_and(|sent| end.wrapping_sub(sent).cast_signed() <= 0);
        if !is_again {
            if self.end.is_none() {
                self.given = self.given.wrapping_add(end);
            }
            self.end = Some(end);
        }
        is_again
    }

    /// Records that this many further octets are queued.
    pub(super) fn give(&mut self, octets: usize) {
        self.given = self.given.wrapping_add(octets as u32);
    }

    /// Returns the number of octets that were never sent.
    pub(super) fn left(&self) -> usize {
        let left = self
            .end
            .map(|end| self.given.wrapping_sub(end).cast_signed());
        left.map_or(0, |left| left.max(0) as usize)
    }
}

/// Returns the sequence number of the segment in an IP packet without extension headers, and the
/// length of the sequence space that it takes.
fn extent(packet: &[u8]) -> Option<(u32, u32)> {
    let at = match packet.first()? >> 4 {
        4 => usize::from(packet[0] & 0xf) * 4,
        _ => IPV6_HEADER,
    };
    let segment = packet.get(at..)?;
    let header: &[u8; 20] = segment.first_chunk()?;
    let [_, _, _, _, a, b, c, d, ..] = *header;
    let payload = segment
        .len()
        .checked_sub(usize::from(header[12] >> 4) * 4)?;
    let marks = (header[13] & (FIN | SYN)).count_ones();
    Some((u32::from_be_bytes([a, b, c, d]), payload as u32 + marks))
}

const IPV6_HEADER: usize = 40;
const FIN: u8 = 1 << 0;
const SYN: u8 = 1 << 1;

#[cfg(test)]
#[allow(clippy::disallowed_macros, reason = "tests may allocate")]
mod tests {
    use super::*;

    fn packet(sequence: u32, flags: u8, payload: usize) -> Vec<u8> {
        let mut packet: Vec<u8> = std::iter::repeat_n(0, 40 + payload).collect();
        packet[0] = 0x45;
        packet[24..28].copy_from_slice(&sequence.to_be_bytes());
        packet[32] = 5 << 4;
        packet[33] = flags;
        packet
    }

    #[test]
    fn only_what_was_sent_before_is_sent_again() {
        let mut position = SendPosition::default();
        let first = u32::MAX - 1;
        assert!(!position.note(&packet(first, SYN, 0)));
        assert!(position.note(&packet(first, SYN, 0)), "the SYN once more");
        assert!(
            !position.note(&packet(first + 1, 0, 0)),
            "an acknowledgement"
        );
        assert!(
            !position.note(&packet(first + 1, 0, 10)),
            "over the end of the numbers"
        );
        assert!(!position.note(&packet(9, FIN, 5)));
        assert!(position.note(&packet(first + 1, 0, 10)));
        assert!(position.note(&packet(9, FIN, 5)));
        assert!(!position.note(&packet(9, 0, 20)), "more than was sent");
    }

    #[test]
    fn what_was_given_and_not_sent_is_left() {
        let mut position = SendPosition::default();
        let first = u32::MAX - 3;
        position.note(&packet(first, SYN, 0));
        position.give(100);
        assert_eq!(position.left(), 100);
        position.note(&packet(first + 1, 0, 60));
        position.note(&packet(first + 1, 0, 60));
        assert_eq!(position.left(), 40);
        position.note(&packet(57, FIN, 40));
        assert_eq!(position.left(), 0);
    }

    #[test]
    fn what_is_no_segment_was_never_sent() {
        for len in 0..60 {
            assert!(!SendPosition::default().note(&[0x4f; 60][..len]));
            assert!(!SendPosition::default().note(&[0x60; 60][..len]));
        }
    }
}
