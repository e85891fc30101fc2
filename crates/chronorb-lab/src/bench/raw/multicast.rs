//! UDP to a group on this machine, with as many datagrams for a message as MIOP has.

use std::io::{self, IoSlice, Read};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use rustix::net::sockopt::{set_ip_multicast_if, set_socket_recv_buffer_size};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::super::order::Waits;
use super::channel::Socket;

/// Oneway messages to a group, each in one datagram or more.
pub(crate) struct Group {
    socket: Socket<UdpSocket>,
    /// The number of the message that is being sent or received.
    message: u32,
}

impl Group {
    pub(super) const fn new(socket: UdpSocket, waits: Waits) -> Self {
        Self {
            socket: Socket::new(socket, waits),
            message: 0,
        }
    }

    /// Sends a message. The numbers of the message and of the datagram replace the first octets of
    /// each datagram. The receiver detects a loss by them.
    pub(super) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.message = self.message.wrapping_add(1);
        for (number, piece) in frame.chunks(DATAGRAM).enumerate() {
            let numbers = numbers(self.message, number as u32);
            let rest = piece.get(NUMBERS..).unwrap_or_default();
            let pieces = [&numbers[..], rest].map(IoSlice::new);
            let mut nothing = SendAncillaryBuffer::default();
            sendmsg(
                self.socket.inner(),
                &pieces,
                &mut nothing,
                SendFlags::empty(),
            )?;
        }
        Ok(())
    }

    /// Waits for the next complete message.
    pub(super) fn receive(&mut self, frame: &mut [u8]) -> io::Result<()> {
        let (mut at, mut number) = (0, 0);
        while at < frame.len() {
            let len = DATAGRAM.min(frame.len() - at);
            let octets = self.socket.read(&mut frame[at..at + len])?;
            let Some((message, found)) = numbers_of(&frame[at..at + octets]) else {
                return Err(io::Error::other(format!("a datagram of {octets} octets")));
            };
            if found == 0 {
                // The rest of the message before is lost.
                frame.copy_within(at..at + octets, 0);
                self.message = message;
                (at, number) = (octets, 1);
            } else if (message, found) == (self.message, number) {
                (at, number) = (at + octets, number + 1);
            } else {
                (at, number) = (0, 0);
            }
        }
        Ok(())
    }
}

/// Returns a socket that has joined a group, and the address of the group.
pub(super) fn receiver() -> io::Result<(UdpSocket, String)> {
    let socket = receiver_at(SocketAddrV4::new(GROUP, 0))?;
    let address = socket.local_addr()?.to_string();
    Ok((socket, address))
}

/// Returns a socket that has joined this group.
pub(in super::super) fn receiver_at(group: SocketAddrV4) -> io::Result<UdpSocket> {
    // Bound to the group, the socket receives nothing else.
    let socket = UdpSocket::bind(group)?;
    set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)?;
    socket.join_multicast_v4(group.ip(), &Ipv4Addr::LOCALHOST)?;
    Ok(socket)
}

/// Returns a socket that sends to the group at this address.
pub(super) fn sender(address: &str) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    set_ip_multicast_if(&socket, &Ipv4Addr::LOCALHOST)?;
    socket.set_multicast_loop_v4(true)?;
    socket.set_multicast_ttl_v4(0)?;
    socket.connect(address)?;
    Ok(socket)
}

fn numbers(message: u32, number: u32) -> [u8; NUMBERS] {
    ((u64::from(message) << 32) | u64::from(number)).to_ne_bytes()
}

/// Reads the numbers of the message and of the datagram.
fn numbers_of(datagram: &[u8]) -> Option<(u32, u32)> {
    let numbers = u64::from_ne_bytes(*datagram.first_chunk()?);
    Some(((numbers >> 32) as u32, numbers as u32))
}

/// A group of the organisation-local scope (RFC 2365).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 67, 82);
/// The octets of the longest datagram, as of MIOP's packets by default: 1500 less the headers of IP
/// and UDP.
pub(in super::super) const DATAGRAM: usize = 1500 - 20 - 8;
/// The receive buffer, as of the ORB.
const RECEIVE_BUFFER: usize = 4 << 20;
const NUMBERS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Group, Group) {
        let (receiver, address) = receiver().unwrap();
        let sender = sender(&address).unwrap();
        (
            Group::new(sender, Waits::Block),
            Group::new(receiver, Waits::Block),
        )
    }

    #[test]
    fn a_long_message_is_put_together_again() {
        let (mut sender, mut receiver) = pair();
        let sent: Vec<u8> = (0..10 * DATAGRAM + 100).map(|n| (n % 251) as u8).collect();
        let mut received = vec![0; sent.len()];
        for _ in 0..3 {
            sender.send(&sent).unwrap();
            receiver.receive(&mut received).unwrap();
            for (one, other) in sent.chunks(DATAGRAM).zip(received.chunks(DATAGRAM)) {
                assert_eq!(one[NUMBERS..], other[NUMBERS..]);
            }
        }
    }

    #[test]
    fn a_message_that_lacks_a_datagram_is_passed_over() {
        let (mut sender, mut receiver) = pair();
        let with = |value: u8| vec![value; 2 * DATAGRAM + 100];
        // The beginning of a message, its end, and one that is whole.
        sender.send(&with(1)[..DATAGRAM]).unwrap();
        let end = [&numbers(1, 2)[..], &[1; 92]].concat();
        sender.socket.inner().send(&end).unwrap();
        sender.send(&with(2)).unwrap();
        let mut received = with(0);
        receiver.receive(&mut received).unwrap();
        assert_eq!(received.last(), Some(&2));
        assert_eq!(receiver.message, sender.message);
    }
}
