//! The connection of a group's listener.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_probe::{Activity, doing};
use chronorb_rt::{Deadline, Monotonic, PiMutex};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, Shutdown};

use super::acceptor::Vacancy;
use super::collections::Collections;
use super::counts::{Counters, Drop as Dropped};
use super::packet::Packet;
use crate::ip_options;
use crate::timed::TimedSocket;
use crate::{Carriage, Connection, IoError, Remote, SendError, SocketOptions};

/// A socket that has joined a group, with its unread packets.
#[derive(Debug)]
pub(super) struct Receiver {
    socket: TimedSocket,
    group: SocketAddr,
    intake: PiMutex<Intake>,
    counters: Arc<Counters>,
    is_shut_down: AtomicBool,
    vacancy: Arc<Vacancy>,
}

#[derive(Debug)]
struct Intake {
    datagram: Box<[u8]>,
    collections: Collections,
    /// The end of a message that was longer than the room it was to be received into.
    rest: Vec<u8>,
    rest_start: usize,
}

impl Receiver {
    #[allow(clippy::disallowed_macros, reason = "once for each listener")]
    pub(super) fn new(
        socket: OwnedFd,
        group: SocketAddr,
        collections: Collections,
        counters: Arc<Counters>,
        vacancy: Arc<Vacancy>,
    ) -> Self {
        Self {
            socket: TimedSocket::new(socket),
            group,
            intake: PiMutex::new(Intake {
                datagram: vec![0; LONGEST_DATAGRAM].into_boxed_slice(),
                collections,
                rest: Vec::new(),
                rest_start: 0,
            }),
            counters,
            is_shut_down: AtomicBool::new(false),
            vacancy,
        }
    }

    /// Receives one datagram; how many octets of a message that gave.
    #[allow(clippy::disallowed_methods, reason = "the caller has the deadline")]
    fn step(&self, room: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
        let mut intake = self.intake.lock();
        let Intake {
            datagram,
            collections,
            rest,
            rest_start,
        } = &mut *intake;
        let left = &rest[*rest_start..];
        if !left.is_empty() {
            let n = left.len().min(room.len());
            room[..n].copy_from_slice(&left[..n]);
            *rest_start += n;
            if *rest_start == rest.len() {
                // A long message must not keep its memory after it was delivered.
                *rest = Vec::new();
                *rest_start = 0;
            }
            return Ok(n);
        }
        let (len, _, sender) = net::recvfrom(&self.socket, &mut **datagram, flags)?;
        let sender = sender.and_then(|sender| SocketAddr::try_from(sender).ok());
        let (Some(sender), Ok(packet)) = (sender, Packet::parse(&datagram[..len])) else {
            self.counters.count(Dropped::Malformed);
            return Ok(0);
        };
        let now = Monotonic::now();
        let Some(message) = collections.push(sender, packet, now, &self.counters) else {
            return Ok(0);
        };
        let (here, later) = message.split_at(message.len().min(room.len()));
        room[..here.len()].copy_from_slice(here);
        rest.extend_from_slice(later);
        Ok(here.len())
    }

    /// Decides whether an error of the socket ends the connection. 0 octets were received.
    fn ended(&self, error: Errno) -> Result<(), IoError> {
        match error {
            _ if self.is_shut_down.load(Ordering::Acquire) => Err(IoError::Ended),
            // An error report on a packet sent from this port, which is unrelated to the group.
            Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::INTR => Ok(()),
            other => Err(IoError::from_errno(other)),
        }
    }
}

impl Connection for Receiver {
    fn carriage(&self) -> Carriage {
        Carriage::Messages {
            largest: 0,
            many_peers: true,
        }
    }

    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let _receiving = doing(Activity::InputOutput);
        for _ in 0..PATIENCE {
            self.check_open()?;
            match self.step(room, RecvFlags::DONTWAIT) {
                Ok(0) => {}
                Ok(n) => return Ok(n),
                Err(error) => self.ended(error)?,
            }
        }
        Ok(0)
    }

    fn try_send(&self, _: &[u8]) -> Result<usize, IoError> {
        Err(SENDS_NOTHING)
    }

    fn try_send_both(&self, _: &[u8], _: &[u8]) -> Result<usize, IoError> {
        Err(SENDS_NOTHING)
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        let _receiving = doing(Activity::InputOutput);
        loop {
            self.check_open()?;
            self.socket.end_receiving(deadline)?;
            match self.step(room, RecvFlags::empty()) {
                Ok(0) | Err(Errno::AGAIN) => {}
                Ok(n) => return Ok(n),
                Err(error) => self.ended(error)?,
            }
        }
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        let _receiving = doing(Activity::InputOutput);
        if let Some(limit) = limit {
            self.socket.limit_receiving(limit)?;
        }
        loop {
            self.check_open()?;
            match self.step(room, RecvFlags::empty()) {
                Ok(0) => {}
                Ok(n) => return Ok(Some(n)),
                // A signal that begins the call anew finds that it must not wait.
                Err(Errno::INTR | Errno::AGAIN) => return Ok(None),
                Err(error) => self.ended(error)?,
            }
        }
    }

    fn interrupt(&self) {
        self.socket.set_interrupted(true);
    }

    fn resume(&self) {
        self.socket.set_interrupted(false);
    }

    fn send_all(&self, _: &[u8], _: Deadline) -> Result<(), SendError> {
        Err(SendError {
            sent: 0,
            cause: SENDS_NOTHING,
        })
    }

    fn send_both(&self, _: &[u8], _: &[u8], _: Deadline) -> Result<(), SendError> {
        Err(SendError {
            sent: 0,
            cause: SENDS_NOTHING,
        })
    }

    fn is_stale(&self) -> bool {
        let intake = self.intake.lock();
        let is_read = intake.rest_start == intake.rest.len();
        !is_read || self.check_open().is_err() || self.socket.has_news()
    }

    fn shutdown(&self) {
        self.is_shut_down.store(true, Ordering::Release);
        // It wakes the waiters, and reports all the same that there is no peer.
        let _ = net::shutdown(&self.socket, Shutdown::Both);
    }

    fn options(&self) -> io::Result<SocketOptions> {
        ip_options::get(self.socket.socket())
    }

    #[allow(clippy::disallowed_macros, reason = "for messages to people")]
    fn peer(&self) -> String {
        format!("the group {}", self.group)
    }

    fn remote(&self) -> Remote {
        Remote {
            scheme: "miop",
            ..Remote::UNKNOWN
        }
    }
}

impl Receiver {
    fn check_open(&self) -> Result<(), IoError> {
        if self.is_shut_down.load(Ordering::Acquire) {
            Err(IoError::Ended)
        } else {
            Ok(())
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.vacancy.tell();
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The longest that UDP has.
const LONGEST_DATAGRAM: usize = 1 << 16;
/// The datagrams without a message that are read at a time; then other connections get the thread.
const PATIENCE: u32 = 256;
/// A listener has no peer to answer to.
const SENDS_NOTHING: IoError = IoError::Broken(Errno::OPNOTSUPP);
