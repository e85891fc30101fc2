//! The octets of one connection, as packets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;

use rustix::net;

use super::file::TraceFile;
use super::packet::{ACK, FIN, LONGEST_PAYLOAD, PSH, RST, SYN, Segment, write_tcp, write_udp};
use crate::{Carriage, Connection};

/// The role of this process at a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Client,
    Server,
}

/// The two ends of a conversation.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Ends {
    pub(super) near: SocketAddr,
    pub(super) far: SocketAddr,
}

/// The direction of octets.
#[derive(Clone, Copy, Debug)]
pub(super) enum FlowDirection {
    Out,
    In,
}

/// A conversation of TCP or UDP.
#[derive(Debug)]
pub(super) struct Conversation {
    ends: Ends,
    is_stream: bool,
    /// The next sequence numbers, of the near and the far end.
    near: u32,
    far: u32,
    /// Whether the far end has ended, and the whole.
    far_ended: bool,
    ended: bool,
    packet: Vec<u8>,
}

impl Conversation {
    /// A conversation that begins now; streams with a handshake.
    pub(super) fn begin(
        ends: Ends,
        side: Side,
        carriage: Carriage,
        file: &TraceFile,
        told: &str,
    ) -> Self {
        let mut new = Self {
            ends,
            is_stream: carriage == Carriage::Stream,
            near: 0,
            far: 0,
            far_ended: false,
            ended: false,
            packet: Vec::new(),
        };
        if new.is_stream {
            let (first, second) = match side {
                Side::Client => (FlowDirection::Out, FlowDirection::In),
                Side::Server => (FlowDirection::In, FlowDirection::Out),
            };
            new.segment(file, first, SYN, &[], told);
            new.segment(file, second, SYN | ACK, &[], "");
            new.segment(file, first, ACK, &[], "");
        }
        new
    }

    /// Octets of a stream, or one message.
    pub(super) fn octets(&mut self, file: &TraceFile, way: FlowDirection, octets: &[u8]) {
        for payload in octets.chunks(LONGEST_PAYLOAD) {
            if self.is_stream {
                self.segment(file, way, PSH | ACK, payload, "")
            } else {
                self.datagram(file, way, payload)
            }
        }
    }

    /// Records the end of the input.
    pub(super) fn end_of_input(&mut self, file: &TraceFile) {
        if self.is_stream && !self.far_ended && !self.ended {
            self.far_ended = true;
            self.segment(file, FlowDirection::In, FIN | ACK, &[], "");
        }
    }

    /// The end in order, from here.
    pub(super) fn end(&mut self, file: &TraceFile) {
        if self.is_stream && !self.ended {
            self.segment(file, FlowDirection::Out, FIN | ACK, &[], "");
            self.segment(file, FlowDirection::In, ACK, &[], "");
            self.ended = true;
        }
    }

    /// The end in the middle.
    pub(super) fn reset(&mut self, file: &TraceFile, way: FlowDirection, told: &str) {
        if self.is_stream && !self.ended {
            self.segment(file, way, RST | ACK, &[], told);
            self.ended = true;
        }
    }

    fn segment(
        &mut self,
        file: &TraceFile,
        way: FlowDirection,
        flags: u8,
        payload: &[u8],
        told: &str,
    ) {
        let Ends { near, far } = self.ends;
        let (from, to, sequence, acknowledged) = match way {
            FlowDirection::Out => (near, far, &mut self.near, self.far),
            FlowDirection::In => (far, near, &mut self.far, self.near),
        };
        let segment = Segment {
            flags,
            sequence: *sequence,
            acknowledged: if flags & ACK == 0 { 0 } else { acknowledged },
        };
        // A beginning and an end count as an octet each (RFC 9293).
        let counted = payload.len() + usize::from(flags & (SYN | FIN) != 0);
        *sequence = sequence.wrapping_add(counted as u32);
        self.packet.clear();
        write_tcp(&mut self.packet, from, to, segment, payload);
        file.put(&self.packet, told);
    }

    fn datagram(&mut self, file: &TraceFile, way: FlowDirection, payload: &[u8]) {
        let Ends { near, far } = self.ends;
        let (from, to) = match way {
            FlowDirection::Out => (near, far),
            FlowDirection::In => (far, near),
        };
        self.packet.clear();
        write_udp(&mut self.packet, from, to, payload);
        file.put(&self.packet, "");
    }
}

impl Ends {
    /// Returns the addresses of a connection's socket. A transport without IP addresses gets
    /// invented ones, which differ by `number`.
    pub(super) fn of(connection: &dyn Connection, side: Side, number: u64) -> Self {
        match Self::of_socket(connection.as_fd()) {
            Some(ends) => ends,
            None => {
                let client = (CLIENT, FIRST_PORT + (number % PORTS) as u16).into();
                let server = (SERVER, SERVER_PORT).into();
                match side {
                    Side::Client => Self {
                        near: client,
                        far: server,
                    },
                    Side::Server => Self {
                        near: server,
                        far: client,
                    },
                }
            }
        }
    }

    fn of_socket(socket: BorrowedFd<'_>) -> Option<Self> {
        let near = SocketAddr::try_from(net::getsockname(socket).ok()?).ok()?;
        let far = SocketAddr::try_from(net::getpeername(socket).ok()??).ok()?;
        let plain = |address: SocketAddr| SocketAddr::new(plain(address.ip()), address.port());
        Some(Self {
            near: plain(near),
            far: plain(far),
        })
    }

    pub(super) fn seen_from_afar(self) -> Self {
        Self {
            near: self.far,
            far: self.near,
        }
    }
}

/// An address of IPv4 as such.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 2);
const SERVER_PORT: u16 = 2809;
const FIRST_PORT: u16 = 49_152;
const PORTS: u64 = 16_384;
