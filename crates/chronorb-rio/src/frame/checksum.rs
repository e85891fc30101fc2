//! Internet checksums (RFC 1071): of the header of IPv4, and of TCP with its pseudo-header.

use std::net::IpAddr;

/// The checksum of a header of IPv4, whatever its field of it holds now.
pub fn ipv4(header: &[u8]) -> u16 {
    without(header, IPV4_AT, Sum::default())
}

/// The checksum of a segment of TCP from one address to another, of the same family, whatever its
/// field of it holds now.
pub fn tcp(from: IpAddr, to: IpAddr, segment: &[u8]) -> u16 {
    without(segment, TCP_AT, pseudo(from, to, segment.len()))
}

/// Whether a header of IPv4 has the right checksum.
pub fn is_ipv4_right(header: &[u8]) -> bool {
    Sum::default().with(header).is_right()
}

/// Whether a segment of TCP has the right checksum.
pub fn is_tcp_right(from: IpAddr, to: IpAddr, segment: &[u8]) -> bool {
    pseudo(from, to, segment.len()).with(segment).is_right()
}

/// A sum of words of 16 bits, of which the carries are added in the end.
#[derive(Clone, Copy, Default)]
struct Sum(u64);

impl Sum {
    /// Adds octets; a last one alone is the first half of a word.
    fn with(self, octets: &[u8]) -> Self {
        let (words, rest) = octets.as_chunks::<4>();
        let sum = words.iter().fold(self.0, |sum, word| {
            sum + u64::from(u32::from_be_bytes(*word))
        });
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(sum + u64::from(u32::from_be_bytes(last)))
    }

    /// The sum in 16 bits, carries added.
    fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn is_right(self) -> bool {
        self.fold() == 0xffff
    }
}

/// The checksum over `before` and octets, which have the field for it at a position.
fn without(octets: &[u8], at: usize, before: Sum) -> u16 {
    let (head, tail) = octets.split_at_checked(at).unwrap_or((octets, &[]));
    let behind = tail.get(2..).unwrap_or_default();
    // Both parts begin at an even position, so their sums can be added.
    !before.with(head).with(behind).fold()
}

/// What TCP adds of the header of IP (RFC 9293 §3.1, RFC 8200 §8.1).
fn pseudo(from: IpAddr, to: IpAddr, len: usize) -> Sum {
    let with_address = |sum: Sum, address| match address {
        IpAddr::V4(address) => sum.with(&address.octets()),
        IpAddr::V6(address) => sum.with(&address.octets()),
    };
    let addresses = with_address(with_address(Sum::default(), from), to);
    Sum(addresses.0 + len as u64 + TCP)
}

/// The number of TCP, and where the checksums are.
const TCP: u64 = 6;
const IPV4_AT: usize = 10;
const TCP_AT: usize = 16;
