//! Internet checksums (RFC 1071) of the IPv4 header, and of TCP with its pseudo-header.

use std::net::IpAddr;

/// Computes the checksum of an IPv4 header. The present value of its checksum field is ignored.
pub fn ipv4(header: &[u8]) -> u16 {
    without(header, IPV4_AT, Sum::default())
}

/// Computes the checksum of a TCP segment between two addresses of the same family. The present
/// value of its checksum field is ignored.
pub fn tcp(from: IpAddr, to: IpAddr, segment: &[u8]) -> u16 {
    without(segment, TCP_AT, pseudo(from, to, segment.len()))
}

/// Returns whether the checksum of an IPv4 header is right.
pub fn is_ipv4_right(header: &[u8]) -> bool {
    Sum::default().with(header).is_right()
}

/// Returns whether the checksum of a TCP segment is right.
pub fn is_tcp_right(from: IpAddr, to: IpAddr, segment: &[u8]) -> bool {
    pseudo(from, to, segment.len()).with(segment).is_right()
}

/// A sum of 16-bit words. The carries are added at the end.
#[derive(Clone, Copy, Default)]
struct Sum(u64);

impl Sum {
    /// Adds octets. A last odd octet is the first half of a word.
    fn with(self, octets: &[u8]) -> Self {
        let (words, rest) = octets.as_chunks::<4>();
        let sum = words.iter().fold(self.0, |sum, word| {
            sum + u64::from(u32::from_be_bytes(*word))
        });
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(sum + u64::from(u32::from_be_bytes(last)))
    }

    /// Returns the sum in 16 bits, with the carries added.
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

/// Computes the checksum over `before` and the octets, without the checksum field at position `at`.
fn without(octets: &[u8], at: usize, before: Sum) -> u16 {
    let (head, tail) = octets.split_at_checked(at).unwrap_or((octets, &[]));
    let behind = tail.get(2..).unwrap_or_default();
    // Both parts begin at an even position, so their sums can be added.
    !before.with(head).with(behind).fold()
}

/// Returns the sum over the TCP pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1).
fn pseudo(from: IpAddr, to: IpAddr, len: usize) -> Sum {
    let with_address = |sum: Sum, address| match address {
        IpAddr::V4(address) => sum.with(&address.octets()),
        IpAddr::V6(address) => sum.with(&address.octets()),
    };
    let addresses = with_address(with_address(Sum::default(), from), to);
    Sum(addresses.0 + len as u64 + TCP)
}

/// The number of TCP, and the positions of the checksum fields.
const TCP: u64 = 6;
const IPV4_AT: usize = 10;
const TCP_AT: usize = 16;
