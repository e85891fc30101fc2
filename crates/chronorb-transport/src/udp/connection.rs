//! Messages to and from one peer.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::RefCell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, PiMutex};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, Shutdown, SocketAddrAny};

use super::acceptor::Peer;
use super::arrivals::Arrivals;
use super::peers::Share;
use super::{MAX_IN_VAIN, ROOM, count_dropped};
use crate::timed::TimedSocket;
use crate::{
    Carriage, Connection, IoError, Messages, Remote, SendError, SocketOptions, ip_options,
};

/// A connected UDP socket.
#[derive(Debug)]
pub(super) struct UdpConnection {
    socket: TimedSocket,
    messages: Messages,
    largest: usize,
    /// Whether it was shut down, which looks like a datagram of no octets.
    ended: AtomicBool,
    /// There is something in `kept`, which is looked at before the socket.
    has_kept: AtomicBool,
    kept: PiMutex<Leftover>,
    /// The peer, and the share of its acceptor's peers that it takes; a client's connection has
    /// none.
    accepted: Option<(Peer, Share)>,
}

/// The octets that have left the kernel already.
#[derive(Debug)]
struct Leftover {
    /// The message that was received in part, and how much of it was.
    present: Vec<u8>,
    taken: usize,
    later: Arrivals<()>,
    /// Set once an empty datagram in the kernel has announced the first arrivals.
    announced: bool,
}

impl UdpConnection {
    /// Makes a connection of a connected socket; `arrivals` have been received from its peer
    /// already, and an empty datagram announces them.
    pub(super) fn new(
        socket: TimedSocket,
        messages: Messages,
        largest: usize,
        arrivals: Arrivals<()>,
    ) -> Self {
        Self {
            socket,
            messages,
            largest,
            ended: AtomicBool::new(false),
            has_kept: AtomicBool::new(!arrivals.is_empty()),
            kept: PiMutex::new(Leftover {
                announced: !arrivals.is_empty(),
                present: Vec::new(),
                taken: 0,
                later: arrivals,
            }),
            accepted: None,
        }
    }

    /// Makes it one of an acceptor, which receives what others than the peer send, and counts it.
    pub(super) fn accepted_from(self, peer: Peer, share: Share) -> Self {
        Self {
            accepted: Some((peer, share)),
            ..self
        }
    }

    /// Takes octets that were received before.
    fn take_kept(&self, room: &mut [u8]) -> usize {
        if !self.has_kept.load(Ordering::Relaxed) {
            return 0;
        }
        let mut kept = self.kept.lock();
        let mut filled = 0;
        loop {
            let rest = &kept.present[kept.taken..];
            let n = rest.len().min(room.len() - filled);
            room[filled..filled + n].copy_from_slice(&rest[..n]);
            filled += n;
            kept.taken += n;
            if kept.taken < kept.present.len() {
                return filled;
            }
            let Some(((), next)) = kept.later.pop() else {
                break;
            };
            (kept.present, kept.taken) = (next.into_vec(), 0);
        }
        self.has_kept.store(false, Ordering::Relaxed);
        if std::mem::take(&mut kept.announced) {
            self.take_announcement();
        }
        filled
    }

    /// Takes the empty datagram, if it is the next one. Behind messages it is dropped later.
    fn take_announcement(&self) {
        // Without room a message would look empty, too.
        let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        if self.socket.receive(&mut [0], peek) == Ok(0) {
            let _ = self.socket.receive(&mut [], RecvFlags::DONTWAIT);
        }
    }

    /// Keeps the rest of a message, if no other one is kept.
    fn keep(&self, rest: &[u8]) {
        let mut kept = self.kept.lock();
        kept.present.clear();
        kept.present.extend_from_slice(rest);
        kept.taken = 0;
        self.has_kept.store(true, Ordering::Relaxed);
    }

    /// Moves a received datagram into the room, and the rest into the beginning of `more`; `None`
    /// if it is not a message of the peer.
    fn take(
        &self,
        (n, sender): Datagram,
        room: &[u8],
        more: &mut [u8],
    ) -> Result<Option<usize>, IoError> {
        if self.ended.load(Ordering::Relaxed) {
            return Err(IoError::Ended);
        }
        let fitting = room.len();
        let whole = match room.get(..n) {
            Some(whole) => whole,
            None => {
                more.copy_within(..n - fitting, fitting);
                more[..fitting].copy_from_slice(room);
                &more[..n]
            }
        };
        if !is_message(&self.messages, whole) {
            count_dropped();
            return Ok(None);
        }
        if let Some((peer, _)) = &self.accepted
            && !peer.is(sender.as_ref())
        {
            peer.hand_on(sender, whole);
            return Ok(None);
        }
        if n > fitting {
            self.keep(&more[fitting..n]);
        }
        Ok(Some(n.min(fitting)))
    }

    /// Receives a datagram by `receive`, which is given two rooms, one after the other.
    fn receive_into(
        &self,
        room: &mut [u8],
        receive: impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<Option<Datagram>, IoError>,
    ) -> Result<Option<usize>, IoError> {
        if self.ended.load(Ordering::Relaxed) {
            return Err(IoError::Ended);
        }
        SPARE.with_borrow_mut(|spare| {
            let mut rooms = [IoSliceMut::new(&mut *room), IoSliceMut::new(&mut spare[..])];
            match receive(&mut rooms).map_err(of_datagrams)? {
                Some(datagram) => self.take(datagram, room, spare),
                None => Ok(None),
            }
        })
    }

    /// Sends one message, or nothing.
    fn send_message(&self, message: &[u8], flags: SendFlags) -> Result<usize, IoError> {
        if message.len() > self.largest {
            return Err(IoError::TooLarge);
        }
        self.socket.send(message, flags).map_err(of_datagrams)
    }

    fn send_pieces(&self, first: &[u8], second: &[u8], flags: SendFlags) -> Result<usize, IoError> {
        if first.len() + second.len() > self.largest {
            return Err(IoError::TooLarge);
        }
        let pieces = [IoSlice::new(first), IoSlice::new(second)];
        let sent = self.socket.send_slices(&pieces, 0, flags);
        sent.map_err(of_datagrams)
    }

    /// The first of several messages.
    fn first_of<'o>(&self, octets: &'o [u8]) -> &'o [u8] {
        let len = (self.messages.len)(octets).filter(|len| *len > 0);
        len.and_then(|len| octets.get(..len)).unwrap_or(octets)
    }
}

impl Connection for UdpConnection {
    fn carriage(&self) -> Carriage {
        Carriage::Messages {
            largest: self.largest,
            many_peers: false,
        }
    }

    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let mut filled = self.take_kept(room);
        let mut in_vain = 0;
        // To the end: a read that does not fill its room shows that there is nothing else.
        while filled < room.len() {
            let received = self.receive_into(&mut room[filled..], |rooms| {
                self.socket
                    .receive_datagram(rooms, RecvFlags::DONTWAIT)
                    .map(Some)
            });
            match received {
                Ok(Some(n)) => filled += n,
                Ok(None) if in_vain < MAX_IN_VAIN => in_vain += 1,
                Ok(None) | Err(_) if filled > 0 => break,
                Ok(None) => return Err(IoError::WouldBlock),
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        let mut sent = 0;
        while sent < octets.len() {
            let message = self.first_of(&octets[sent..]);
            match self.send_message(message, SendFlags::DONTWAIT) {
                Ok(n) => sent += n,
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        self.send_pieces(first, second, SendFlags::DONTWAIT)
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        let filled = self.take_kept(room);
        if filled > 0 {
            return Ok(filled);
        }
        loop {
            self.socket.end_receiving(deadline)?;
            let received = self.receive_into(room, |rooms| {
                self.socket
                    .receive_datagram(rooms, RecvFlags::empty())
                    .map(Some)
            });
            match received {
                Ok(Some(n)) => return Ok(n),
                Ok(None) | Err(IoError::WouldBlock) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        let filled = self.take_kept(room);
        if filled > 0 {
            return Ok(Some(filled));
        }
        if let Some(limit) = limit {
            self.socket.limit_receiving(limit)?;
        }
        self.receive_into(room, |rooms| {
            match self.socket.receive_datagram(rooms, RecvFlags::empty()) {
                Err(IoError::WouldBlock) => Ok(None),
                received => received.map(Some),
            }
        })
    }

    fn interrupt(&self) {
        self.socket.set_interrupted(true);
    }

    fn resume(&self) {
        self.socket.set_interrupted(false);
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.socket
            .send_until(octets.len(), deadline, |sent, flags| {
                let message = self.first_of(&octets[sent..]);
                self.send_message(message, flags)
            })
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        let len = first.len() + second.len();
        self.socket.send_until(len, deadline, |_, flags| {
            self.send_pieces(first, second, flags)
        })
    }

    fn is_stale(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
            || self.has_kept.load(Ordering::Relaxed)
            || self.socket.has_news()
    }

    fn shutdown(&self) {
        self.ended.store(true, Ordering::Relaxed);
        // The peer is not told, because the protocol has no message for it.
        let _ = net::shutdown(&self.socket, Shutdown::Both);
    }

    fn options(&self) -> io::Result<SocketOptions> {
        ip_options::get(self.socket.socket())
    }

    #[allow(clippy::disallowed_methods, reason = "for messages to people")]
    fn peer(&self) -> String {
        net::getpeername(&self.socket)
            .ok()
            .flatten()
            .and_then(|address| SocketAddr::try_from(address).ok())
            .map_or_else(|| "a peer that is gone".to_owned(), |a| a.to_string())
    }

    fn remote(&self) -> Remote {
        Remote::of_socket("diop", &self.socket)
    }
}

impl AsFd for UdpConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The length of a received datagram, and its sender.
type Datagram = (usize, Option<SocketAddrAny>);

/// Whether a datagram is exactly one message.
pub(super) fn is_message(messages: &Messages, datagram: &[u8]) -> bool {
    !datagram.is_empty()
        && datagram.len() <= messages.max
        && (messages.len)(datagram) == Some(datagram.len())
}

/// Converts an error between datagrams.
fn of_datagrams(error: IoError) -> IoError {
    match error {
        // The port is not in use any more: the peer's machine reported it.
        IoError::Broken(Errno::CONNREFUSED) => IoError::Closed,
        IoError::Broken(Errno::MSGSIZE) => IoError::TooLarge,
        other => other,
    }
}

thread_local! {
    /// The buffer for the rest of a datagram that is longer than the given room. That rest would be
    /// lost.
    static SPARE: RefCell<Box<[u8]>> = RefCell::new(spare());
}

#[allow(clippy::disallowed_macros, reason = "once for each thread")]
fn spare() -> Box<[u8]> {
    vec![0; ROOM].into_boxed_slice()
}
