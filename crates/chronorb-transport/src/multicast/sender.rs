//! A connection to a group.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_probe::{Activity, doing};
use chronorb_rt::{Deadline, Monotonic, sleep_until};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use rustix::time::Timespec;

use super::options::{Interface, MulticastOptions, socket};
use super::packet::{HEADER_LEN, header, unique_id};
use crate::ip_options;
use crate::timed::TimedSocket;
use crate::{Carriage, Connection, IoError, Messages, Remote, SendError, Setup, SocketOptions};

/// A socket that sends to a group, and receives nothing.
#[derive(Debug)]
pub(super) struct Sender {
    socket: TimedSocket,
    group: SocketAddr,
    messages: Messages,
    /// Octets of the longest message.
    largest: usize,
    /// Octets of a message in each packet.
    part: usize,
    /// Nanoseconds that an octet takes at least.
    pace: f64,
    /// The number that distinguishes its messages from those of other senders.
    number: u64,
    progress: Progress,
    is_shut_down: AtomicBool,
}

/// The progress of the sending thread, of which there is one at a time.
#[derive(Debug, Default)]
struct Progress {
    /// The number of messages begun.
    count: AtomicU32,
    /// Octets of the last one that are not sent yet, and its packets.
    left: AtomicUsize,
    next: AtomicU32,
    total: AtomicU32,
    /// When the next packet may go.
    due: AtomicU64,
}

impl Sender {
    pub(super) fn connect(
        group: SocketAddr,
        options: &MulticastOptions,
        setup: Setup,
    ) -> io::Result<Self> {
        let socket = socket(group)?;
        ip_options::set(&socket, setup.options)?;
        let interface = Interface::of(options, &socket)?;
        interface.send_by(&socket, group.ip(), options)?;
        net::connect(&socket, &interface.scoped(group))?;
        let headers = match group {
            SocketAddr::V4(_) => IPV4_HEADERS,
            SocketAddr::V6(_) => IPV6_HEADERS,
        };
        Ok(Self {
            socket: TimedSocket::new(socket),
            group,
            messages: setup.messages,
            largest: setup.messages.max.min(options.max as usize),
            part: usize::from(options.mtu) - headers - HEADER_LEN,
            pace: match options.rate {
                0 => 0.0,
                rate => 1e9 / f64::from(rate),
            },
            // Keys that differ from those of any other process, and from one to the next.
            number: RandomState::new().hash_one(group),
            progress: Progress::default(),
            is_shut_down: AtomicBool::new(false),
        })
    }

    /// Sends the next packet of the message that was begun, or of the next one, which is in two
    /// pieces. Returns the number of octets that it took.
    #[allow(clippy::disallowed_methods, reason = "the caller has the deadline")]
    fn step(&self, first: &[u8], second: &[u8], flags: SendFlags) -> Result<usize, IoError> {
        if self.is_shut_down.load(Ordering::Acquire) {
            return Err(IoError::Closed);
        }
        let progress = &self.progress;
        let left = match progress.left.load(Ordering::Relaxed) {
            0 => self.begin(first, second)?,
            left => left,
        };
        let len = left.min(self.part).min(first.len() + second.len());
        let (number, total) = (
            progress.next.load(Ordering::Relaxed),
            progress.total.load(Ordering::Relaxed),
        );
        let id = unique_id(self.number, progress.count.load(Ordering::Relaxed));
        let header = header(id, len as u16, number, total);
        let first = &first[..len.min(first.len())];
        let second = &second[..len - first.len()];
        let pieces = [&header[..], first, second].map(IoSlice::new);
        match net::sendmsg(
            &self.socket,
            &pieces,
            &mut SendAncillaryBuffer::default(),
            flags,
        ) {
            Ok(_) => {
                progress.left.store(left - len, Ordering::Relaxed);
                progress.next.store(number + 1, Ordering::Relaxed);
                Ok(len)
            }
            Err(Errno::INTR) => Ok(0),
            Err(Errno::NOBUFS) => Err(IoError::WouldBlock),
            Err(error) => Err(IoError::from_errno(error)),
        }
    }

    /// Begins a message; returns its length.
    fn begin(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        let len = match second {
            // One or more messages. Other octets are not checked further here.
            [] => (self.messages.len)(first).map_or(first.len(), |len| len.min(first.len())),
            // One in two pieces.
            _ => first.len() + second.len(),
        };
        if len > self.largest {
            return Err(IoError::TooLarge);
        }
        let progress = &self.progress;
        let count = progress.count.load(Ordering::Relaxed);
        progress
            .count
            .store(count.wrapping_add(1), Ordering::Relaxed);
        progress.left.store(len, Ordering::Relaxed);
        progress.next.store(0, Ordering::Relaxed);
        let total = len.div_ceil(self.part) as u32;
        progress.total.store(total, Ordering::Relaxed);
        Ok(len)
    }

    /// Sends as much as fits, without waiting.
    fn try_steps(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        let _sending = doing(Activity::InputOutput);
        let mut sent = 0;
        while sent < first.len() + second.len() {
            let (first, second) = rest(first, second, sent);
            match self.step(first, second, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(n) => sent += n,
                Err(_) if sent > 0 => return Ok(sent),
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    fn all_steps(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        let _sending = doing(Activity::InputOutput);
        let mut sent = 0;
        while sent < first.len() + second.len() {
            let (first, second) = rest(first, second, sent);
            let step = self
                .keep_pace(deadline)
                .and_then(|()| self.step(first, second, SendFlags::DONTWAIT | SendFlags::NOSIGNAL));
            match step {
                Ok(n) => {
                    sent += n;
                    self.count_pace(n);
                }
                Err(IoError::WouldBlock) => self
                    .wait_for_room(deadline)
                    .map_err(|cause| SendError { sent, cause })?,
                Err(cause) => return Err(SendError { sent, cause }),
            }
        }
        Ok(())
    }

    /// Waits until the next packet may go.
    fn keep_pace(&self, deadline: Deadline) -> Result<(), IoError> {
        if self.pace == 0.0 {
            return Ok(());
        }
        let due = Monotonic::from_nanos(self.progress.due.load(Ordering::Relaxed));
        if due > deadline.instant() {
            return Err(IoError::TimedOut);
        }
        sleep_until(due);
        Ok(())
    }

    fn count_pace(&self, octets: usize) {
        if self.pace > 0.0 {
            let taken = Duration::from_nanos((octets as f64 * self.pace) as u64);
            let due = Monotonic::from_nanos(self.progress.due.load(Ordering::Relaxed));
            let due = due.max(Monotonic::now()) + taken;
            self.progress.due.store(due.as_nanos(), Ordering::Relaxed);
        }
    }

    #[cold]
    fn wait_for_room(&self, deadline: Deadline) -> Result<(), IoError> {
        let remaining = deadline.remaining().ok_or(IoError::TimedOut)?;
        let time_out = Timespec {
            tv_sec: i64::try_from(remaining.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: remaining.subsec_nanos().into(),
        };
        match poll(
            &mut [PollFd::new(&self.socket, PollFlags::OUT)],
            Some(&time_out),
        ) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(IoError::from_errno(error)),
        }
    }

    fn check_open(&self) -> Result<(), IoError> {
        if self.is_shut_down.load(Ordering::Acquire) {
            Err(IoError::Ended)
        } else {
            Ok(())
        }
    }
}

/// Returns the remainder of two pieces after the first octets.
fn rest<'a>(first: &'a [u8], second: &'a [u8], sent: usize) -> (&'a [u8], &'a [u8]) {
    match first.get(sent..) {
        Some(first) => (first, second),
        None => (&[], &second[sent - first.len()..]),
    }
}

impl Connection for Sender {
    fn carriage(&self) -> Carriage {
        Carriage::Messages {
            largest: self.largest,
            many_peers: true,
        }
    }

    fn try_recv(&self, _: &mut [u8]) -> Result<usize, IoError> {
        loop {
            self.check_open()?;
            // There is nothing to receive from a group.
            self.socket.receive(&mut [0], RecvFlags::DONTWAIT)?;
        }
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.try_steps(octets, &[])
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        self.try_steps(first, second)
    }

    fn recv(&self, _: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        loop {
            self.check_open()?;
            self.socket.end_receiving(deadline)?;
            match self.socket.receive(&mut [0], RecvFlags::empty()) {
                Ok(_) | Err(IoError::WouldBlock) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn recv_until_interrupted(
        &self,
        _: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        if let Some(limit) = limit {
            self.socket.limit_receiving(limit)?;
        }
        loop {
            self.check_open()?;
            if self.socket.receive_until_interrupted(&mut [0])?.is_none() {
                return Ok(None);
            }
        }
    }

    fn interrupt(&self) {
        self.socket.set_interrupted(true);
    }

    fn resume(&self) {
        self.socket.set_interrupted(false);
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.all_steps(octets, &[], deadline)
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.all_steps(first, second, deadline)
    }

    fn is_stale(&self) -> bool {
        self.check_open().is_err()
    }

    fn shutdown(&self) {
        self.is_shut_down.store(true, Ordering::Release);
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

impl AsFd for Sender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Octets of the headers of IP and UDP.
const IPV4_HEADERS: usize = 20 + 8;
const IPV6_HEADERS: usize = 40 + 8;
