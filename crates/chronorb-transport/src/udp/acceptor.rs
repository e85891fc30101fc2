//! The distribution of datagrams from all senders to one socket for each peer.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

use chronorb_probe::{Activity, doing};
use chronorb_rt::PiMutex;
use rustix::io::Errno;
use rustix::net::{self, SendFlags, SocketAddrAny, sockopt};

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
    entry: Arc<Entry>,
    bound: SocketAddr,
    setup: Setup,
    max: usize,
    published: Vec<Address>,
    peers: Peers,
    reception: PiMutex<Reception>,
}

/// The part of an acceptor that the connections of its peers reach.
#[derive(Debug)]
struct Entry {
    socket: OwnedFd,
    /// Messages that the sockets of other peers have received.
    strays: PiMutex<Arrivals<Way>>,
}

/// The peer of a connection, and the acceptor for messages of others. The kernel may find the
/// socket for a datagram before that is connected, and put the datagram into it afterwards.
#[derive(Debug)]
pub(super) struct Peer {
    local: SocketAddr,
    address: SocketAddrAny,
    entry: Weak<Entry>,
}

impl Peer {
    /// Whether it is the sender of a datagram.
    #[inline]
    pub(super) fn is(&self, sender: Option<&SocketAddrAny>) -> bool {
        sender == Some(&self.address)
    }

    /// Gives the acceptor a message of another peer.
    #[cold]
    pub(super) fn hand_on(&self, sender: Option<SocketAddrAny>, message: &[u8]) {
        let sender = sender.and_then(|sender| SocketAddr::try_from(sender).ok());
        let (Some(peer), Some(entry)) = (sender, self.entry.upgrade()) else {
            return count_dropped();
        };
        let way = Way {
            peer,
            local: self.local,
        };
        if !entry.hold(way, message) {
            count_dropped();
        }
    }
}

impl Entry {
    /// Keeps a message for [`UdpAcceptor::next_message`], and announces it; returns whether there
    /// was room.
    fn hold(&self, way: Way, message: &[u8]) -> bool {
        let mut strays = self.strays.lock();
        if !strays.has_room() {
            return false;
        }
        strays.push(way, message);
        drop(strays);
        // If the empty datagram cannot be sent, the next message announces both.
        let _ = net::sendto(&self.socket, &[], SendFlags::DONTWAIT, &way.local);
        true
    }
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
    /// Binds to the first free port of the endpoint's span, at each address of its host.
    pub(super) fn open(endpoint: &Endpoint, setup: Setup) -> Result<Vec<Self>, ListenError> {
        let max = max(endpoint)?;
        let endpoint = HostEndpoint::of(endpoint)?;
        let (sockets, published) = endpoint.open(|address| {
            let (socket, bound) = listen(address, setup)?;
            Ok(((socket, bound), bound))
        })?;
        let acceptor = |(socket, bound)| Self {
            entry: Arc::new(Entry {
                socket,
                strays: PiMutex::new(Arrivals::new()),
            }),
            bound,
            setup,
            max,
            published: published.clone(),
            peers: Peers::new(),
            reception: PiMutex::new(Reception {
                next: None,
                waiting: Arrivals::new(),
                room: vec![0; ROOM].into_boxed_slice(),
            }),
        };
        Ok(sockets.into_iter().map(acceptor).collect())
    }

    /// Returns the next message of any sender.
    fn next_message(&self, reception: &mut Reception) -> Result<Option<Arrival<Way>>, Errno> {
        let waiting = reception.waiting.pop();
        if let Some(waiting) = waiting.or_else(|| self.entry.strays.lock().pop()) {
            return Ok(Some(waiting));
        }
        for _ in 0..MAX_IN_VAIN {
            match self.receive(&self.entry.socket, &mut reception.room)? {
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
        bind(&socket, way)?;
        // While the socket is connected to itself, it receives no datagrams of others, except for
        // those that the kernel is about to put into it.
        net::connect(&socket, &way.local)?;
        self.sort(&socket, way, &mut own, reception)?;
        // Octets that wait in the process are announced by an empty datagram in the kernel. If that
        // cannot be sent, the next message announces both.
        let _ = net::send(&socket, &[], SendFlags::DONTWAIT);
        net::connect(&socket, &way.peer)?;
        // From now on its messages are received by its own socket. Earlier ones follow the first
        // one.
        self.sort(&self.entry.socket, way, &mut own, reception)?;
        Ok(self.connection(socket, way, own))
    }

    /// Makes a connection of a connected socket.
    fn connection(&self, socket: OwnedFd, way: Way, own: Arrivals<()>) -> UdpConnection {
        let largest = self.max.min(largest_to(&way.peer));
        let socket = TimedSocket::new(socket);
        let connection = UdpConnection::new(socket, self.setup.messages, largest, own);
        let peer = Peer {
            local: way.local,
            address: way.peer.into(),
            entry: Arc::downgrade(&self.entry),
        };
        connection.accepted_from(peer, self.peers.add())
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
            // The announcement of a stray, or of the messages of a peer.
            Some(local) if info.len == 0 && info.peer == local => Ok(ReceiveOutcome::Other),
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
        self.entry.socket.as_fd()
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

/// Binds the socket for a peer to the address that the peer sends to, beside the acceptor's socket.
fn bind(socket: &OwnedFd, way: Way) -> Result<(), Errno> {
    sockopt::set_socket_reuseport(socket, true)?;
    net::bind(socket, &way.local)
}

fn refused(error: io::Error) -> AcceptError {
    match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => AcceptError::Exhausted,
        other => AcceptError::Failed(other.unwrap_or(Errno::IO)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use chronorb_rt::Deadline;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::{IoError, parse_endpoints};

    fn patience() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    fn is_readable(socket: &impl AsFd) -> bool {
        let mut input = [PollFd::new(socket, PollFlags::IN)];
        poll(&mut input, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    fn accept(acceptor: &UdpAcceptor) -> Box<dyn Connection> {
        let deadline = patience();
        loop {
            assert!(!deadline.has_passed(), "no connection");
            let limit = Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            let mut input = [PollFd::new(acceptor, PollFlags::IN)];
            poll(&mut input, Some(&limit)).expect("it waits");
            if let Some(connection) = acceptor.accept().expect("it is open") {
                return connection;
            }
        }
    }

    fn open(endpoint: &str) -> UdpAcceptor {
        let endpoints = parse_endpoints(endpoint).expect("an endpoint");
        let opened = UdpAcceptor::open(&endpoints[0], Setup::default());
        opened.expect("a port is free").remove(0)
    }

    fn peer(acceptor: &UdpAcceptor) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        let at = ("127.0.0.1", acceptor.bound.port());
        socket.connect(at).expect("UDP does not ask");
        socket
    }

    /// Returns a bound socket for a peer, and the peer's first message.
    fn bound_for(acceptor: &UdpAcceptor, peer: &UdpSocket) -> (OwnedFd, Way, Arrivals<()>) {
        peer.send(b"first").expect("it is sent");
        let first = acceptor.next_message(&mut acceptor.reception.lock());
        let (way, message) = first.expect("it is open").expect("it was sent");
        let socket = acceptor.new_socket().expect("there are descriptors");
        bind(&socket, way).expect("the port is shared");
        let mut own = Arrivals::new();
        own.push((), &message);
        (socket, way, own)
    }

    /// The kernel looks a socket up before it puts the datagram in, and the socket may be connected
    /// in between. Here it is connected when it has the datagram already.
    #[test]
    fn a_datagram_in_the_socket_of_another_peer_reaches_a_connection_of_its_own() {
        for endpoint in ["diop://127.0.0.1:0", "diop://0.0.0.0:0"] {
            let acceptor = open(endpoint);
            let one = peer(&acceptor);
            let (socket, way, own) = bound_for(&acceptor, &one);
            // The kernel selects a socket of the port by the sender's.
            let other = loop {
                let other = peer(&acceptor);
                other.send(b"other").expect("it is sent");
                if is_readable(&socket) {
                    break other;
                }
                drop(accept(&acceptor));
            };
            net::connect(&socket, &way.peer).expect("UDP does not ask");
            let connection = acceptor.connection(socket, way, own);
            let mut room = [0; 100];
            assert_eq!(connection.try_recv(&mut room), Ok(5));
            assert_eq!(&room[..5], b"first");
            assert_eq!(connection.try_recv(&mut room), Err(IoError::WouldBlock));

            let connection = accept(&acceptor);
            let n = connection.recv(&mut room, patience());
            assert_eq!(&room[..n.expect("it has come")], b"other");
            connection.send_all(b"reply", patience()).expect("sent");
            let n = other.recv(&mut room).expect("a reply");
            assert_eq!(&room[..n], b"reply");
            assert!(acceptor.accept().expect("it is open").is_none());
        }
    }

    #[test]
    fn a_message_before_the_announcement_of_the_first_is_received() {
        let acceptor = open("diop://127.0.0.1:0");
        let one = peer(&acceptor);
        let (socket, way, own) = bound_for(&acceptor, &one);
        net::connect(&socket, &way.peer).expect("UDP does not ask");
        one.send(b"second").expect("it is sent");
        let connection = acceptor.connection(socket, way, own);
        let mut room = [0; 100];
        assert_eq!(connection.try_recv(&mut room), Ok(11));
        assert_eq!(&room[..11], b"firstsecond");
    }
}
