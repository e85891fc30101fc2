//! The distribution of datagrams from all senders to one socket for each peer.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use chronorb_probe::{Activity, doing};
use chronorb_rt::PiMutex;
use rustix::io::Errno;
use rustix::net::{self, SendFlags, sockopt};

use super::arrivals::{Arrival, Arrivals};
use super::connection::{UdpConnection, is_message};
use super::peers::Peers;
use super::{MAX_IN_VAIN, ROOM, count_dropped, largest_to, max, socket};
use crate::inet::HostEndpoint;
use crate::sys::datagram::{receive_datagram, tell_destinations};
use crate::timed::TimedSocket;
use crate::{AcceptError, Acceptor, Address, Connection, Endpoint, ListenError, Setup, ip_options};

/// A socket that receives first datagrams.
#[derive(Debug)]
pub(super) struct UdpAcceptor {
    socket: OwnedFd,
    bound: SocketAddr,
    setup: Setup,
    max: usize,
    published: Vec<Address>,
    peers: Peers,
    reception: PiMutex<Reception>,
}

#[derive(Debug)]
struct Reception {
    /// The socket for the next peer. It is made before a datagram is received, which without it
    /// would be lost.
    next: Option<OwnedFd>,
    /// Messages of peers that have no socket yet.
    waiting: Arrivals<Way>,
    room: Box<[u8]>,
}

/// The sender of a datagram, and the address of this machine that received it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Way {
    peer: SocketAddr,
    local: SocketAddr,
}

impl UdpAcceptor {
    /// Binds to the first free port of the endpoint's span.
    pub(super) fn open(endpoint: &Endpoint, setup: Setup) -> Result<Self, ListenError> {
        let max = max(endpoint)?;
        let endpoint = HostEndpoint::of(endpoint)?;
        let ((socket, bound), published) = endpoint.open(|address| {
            let (socket, bound) = listen(address, setup)?;
            Ok(((socket, bound), bound))
        })?;
        Ok(Self {
            socket,
            bound,
            setup,
            max,
            published,
            peers: Peers::new(),
            reception: PiMutex::new(Reception {
                next: None,
                waiting: Arrivals::new(),
                room: vec![0; ROOM].into_boxed_slice(),
            }),
        })
    }

    /// Returns the next message of any sender.
    fn next_message(&self, reception: &mut Reception) -> Result<Option<Arrival<Way>>, Errno> {
        if let Some(waiting) = reception.waiting.pop() {
            return Ok(Some(waiting));
        }
        for _ in 0..MAX_IN_VAIN {
            match self.receive(&self.socket, &mut reception.room)? {
                ReceiveOutcome::Message(way, len) => {
                    return Ok(Some((way, reception.room[..len].into())));
                }
                ReceiveOutcome::Other => {}
                ReceiveOutcome::Nothing => break,
            }
        }
        Ok(None)
    }

    /// Makes a connection of a socket, for the peer that has sent this message.
    fn welcome(
        &self,
        socket: OwnedFd,
        way: Way,
        message: &[u8],
        reception: &mut Reception,
    ) -> Result<UdpConnection, Errno> {
        let mut own = Arrivals::new();
        own.push((), message);
        for (_, octets) in reception.waiting.take(|other| *other == way) {
            own.push((), &octets);
        }
        sockopt::set_socket_reuseport(&socket, true)?;
        net::bind(&socket, &way.local)?;
        // While the socket is connected to itself, it receives no datagrams of others. Those that
        // arrived since it was bound are discarded.
        net::connect(&socket, &way.local)?;
        self.sort(&socket, way, &mut own, reception)?;
        // Octets that wait in the process are announced by an empty datagram in the kernel. If that
        // cannot be sent, the next message announces both.
        let _ = net::send(&socket, &[], SendFlags::DONTWAIT);
        net::connect(&socket, &way.peer)?;
        // From now on its messages are received by its own socket. Earlier ones follow the first
        // one.
        self.sort(&self.socket, way, &mut own, reception)?;
        let largest = self.max.min(largest_to(&way.peer));
        let socket = TimedSocket::new(socket);
        let connection = UdpConnection::new(socket, self.setup.messages, largest, own);
        Ok(connection.with_share(self.peers.add()))
    }

    /// Empties a socket into the queues of a peer and of others, as far as there is room.
    fn sort(
        &self,
        from: &OwnedFd,
        way: Way,
        own: &mut Arrivals<()>,
        reception: &mut Reception,
    ) -> Result<(), Errno> {
        let Reception { waiting, room, .. } = reception;
        while own.has_room() && waiting.has_room() {
            match self.receive(from, room)? {
                ReceiveOutcome::Message(from, len) if from == way => own.push((), &room[..len]),
                ReceiveOutcome::Message(from, len) => waiting.push(from, &room[..len]),
                ReceiveOutcome::Other => {}
                ReceiveOutcome::Nothing => break,
            }
        }
        Ok(())
    }

    /// Receives a datagram.
    fn receive(&self, socket: &OwnedFd, room: &mut [u8]) -> Result<ReceiveOutcome, Errno> {
        let info = match receive_datagram(socket, room) {
            Ok(info) => info,
            Err(error) => {
                return match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => Ok(ReceiveOutcome::Nothing),
                    Some(error @ (Errno::NOBUFS | Errno::NOMEM | Errno::BADF)) => Err(error),
                    // Errors that the network reports for others' datagrams do not affect the
                    // socket.
                    _ => Ok(ReceiveOutcome::Other),
                };
            }
        };
        let local = match (self.bound.ip().is_unspecified(), info.local) {
            (false, _) => Some(self.bound),
            (true, Some(ip)) => Some(self.with_port(ip, info.interface)),
            (true, None) => None,
        };
        match local {
            Some(local) if is_message(&self.setup.messages, &room[..info.len]) => {
                let peer = info.peer;
                Ok(ReceiveOutcome::Message(Way { peer, local }, info.len))
            }
            _ => {
                count_dropped();
                Ok(ReceiveOutcome::Other)
            }
        }
    }

    /// An address of this machine at the port of the socket.
    fn with_port(&self, ip: IpAddr, interface: u32) -> SocketAddr {
        match ip {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => {
                SocketAddrV6::new(ip, self.bound.port(), 0, interface).into()
            }
            ip => SocketAddr::new(ip, self.bound.port()),
        }
    }

    fn new_socket(&self) -> io::Result<OwnedFd> {
        let socket = socket(&self.bound)?;
        if self.bound.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, false)?;
        }
        ip_options::set(&socket, self.setup.options)?;
        Ok(socket)
    }
}

impl Acceptor for UdpAcceptor {
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        let _accepting = doing(Activity::InputOutput);
        let reception = &mut *self.reception.lock();
        loop {
            let socket = match reception.next.take() {
                Some(socket) => socket,
                None => self.new_socket().map_err(refused)?,
            };
            let message = self.next_message(reception);
            let Some((way, message)) = message.map_err(|error| refused(error.into()))? else {
                reception.next = Some(socket);
                return Ok(None);
            };
            if !self.peers.has_room() {
                reception.next = Some(socket);
                reception.waiting.put_back((way, message));
                return Err(AcceptError::Exhausted);
            }
            match self.welcome(socket, way, &message, reception) {
                Ok(connection) => return Ok(Some(Box::new(connection))),
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    reception.waiting.put_back((way, message));
                    return Err(refused(error.into()));
                }
                // The peer cannot be answered, or the address that it used does not exist any more.
                Err(_) => count_dropped(),
            }
        }
    }

    fn published(&self) -> &[Address] {
        &self.published
    }
}

impl AsFd for UdpAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The outcome of one receive call on a socket.
enum ReceiveOutcome {
    /// A message of so many octets.
    Message(Way, usize),
    /// A datagram of another kind, which was dropped.
    Other,
    Nothing,
}

fn listen(address: SocketAddr, setup: Setup) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = socket(&address)?;
    if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    ip_options::set(&socket, setup.options)?;
    tell_destinations(&socket, address.is_ipv6())?;
    net::bind(&socket, &address)?;
    // Not before now: the port is not shared. Sockets of the same user may share it from here on,
    // as those for peers do.
    sockopt::set_socket_reuseport(&socket, true)?;
    let local = SocketAddr::try_from(net::getsockname(&socket)?)?;
    Ok((socket, local))
}

fn refused(error: io::Error) -> AcceptError {
    match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => AcceptError::Exhausted,
        other => AcceptError::Failed(other.unwrap_or(Errno::IO)),
    }
}
