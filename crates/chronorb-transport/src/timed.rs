//! Sockets whose waits have an end, as all connections by sockets have them.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io::IoSlice;
#[cfg(feature = "udp")]
use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chronorb_probe::{Activity, doing};
use chronorb_rt::Deadline;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags, sockopt};
#[cfg(feature = "udp")]
use rustix::net::{RecvAncillaryBuffer, SocketAddrAny};

use crate::{IoError, SendError, unsent};

/// A connected socket in blocking mode; non-blocking calls are flagged one by one.
#[derive(Debug)]
pub(crate) struct TimedSocket {
    socket: OwnedFd,
    /// The socket's time-outs in nanoseconds, 0 before the first is set. They
    /// spare a `poll` for each wait, and are set only when they change.
    receive_time_out: AtomicU64,
    send_time_out: AtomicU64,
    /// Whether a message was sent without a wait, and nothing was received since.
    sent_at_once: AtomicBool,
}

impl TimedSocket {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            receive_time_out: AtomicU64::new(0),
            send_time_out: AtomicU64::new(0),
            sent_at_once: AtomicBool::new(false),
        }
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    #[cfg(feature = "shm")]
    pub(crate) fn into_socket(self) -> OwnedFd {
        self.socket
    }

    /// Receives; 0 is the end of a stream. A call that may wait does so once, within the last
    /// time-out that was set; see [`waited`].
    #[allow(clippy::disallowed_methods, reason = "its result is that of `waited`")]
    pub(crate) fn receive(&self, room: &mut [u8], flags: RecvFlags) -> Result<usize, IoError> {
        let _receiving = doing(Activity::InputOutput);
        waited(net::recv(&self.socket, room, flags)).map(|(n, _)| n)
    }

    /// Receives a datagram into several rooms as [`receive`](Self::receive) does, with the address
    /// of its sender.
    #[allow(clippy::disallowed_methods, reason = "its result is that of `waited`")]
    #[cfg(feature = "udp")]
    pub(crate) fn receive_datagram(
        &self,
        rooms: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
    ) -> Result<(usize, Option<SocketAddrAny>), IoError> {
        let _receiving = doing(Activity::InputOutput);
        let mut nothing_else = RecvAncillaryBuffer::default();
        let received = waited(net::recvmsg(&self.socket, rooms, &mut nothing_else, flags))?;
        Ok((received.bytes, received.address))
    }

    /// Receives as [`receive`](Self::receive) does, once: `None` if a signal or the time-out has
    /// ended the wait.
    pub(crate) fn receive_until_interrupted(
        &self,
        room: &mut [u8],
    ) -> Result<Option<usize>, IoError> {
        // A signal that begins the call anew finds that it must not wait.
        match self.receive(room, RecvFlags::empty()) {
            Err(IoError::WouldBlock) => Ok(None),
            received => received.map(Some),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "its result is that of `waited`")]
    pub(crate) fn send(&self, octets: &[u8], flags: SendFlags) -> Result<usize, IoError> {
        let _sending = doing(Activity::InputOutput);
        waited(net::send(&self.socket, octets, flags | SendFlags::NOSIGNAL))
    }

    /// Sends as much as fits of slices, of which `sent` octets were sent before. Slices after the
    /// first [`MOST_SLICES`] with octets are left out.
    pub(crate) fn send_slices(
        &self,
        slices: &[IoSlice<'_>],
        sent: usize,
        flags: SendFlags,
    ) -> Result<usize, IoError> {
        let (mut list, mut len) = ([IoSlice::new(&[]); MOST_SLICES], 0);
        for (place, rest) in list.iter_mut().zip(unsent(slices, sent)) {
            *place = IoSlice::new(rest);
            len += 1;
        }
        self.send_vector(&list[..len], flags)
    }

    #[allow(clippy::disallowed_methods, reason = "its result is that of `waited`")]
    fn send_vector(&self, slices: &[IoSlice<'_>], flags: SendFlags) -> Result<usize, IoError> {
        let _sending = doing(Activity::InputOutput);
        let flags = flags | SendFlags::NOSIGNAL;
        let mut nothing_else = SendAncillaryBuffer::default();
        waited(net::sendmsg(&self.socket, slices, &mut nothing_else, flags))
    }

    /// Sends by `step`, which gets the number of octets sent before, until `len` octets are sent.
    ///
    /// Normally the socket has room for a small message, so the first step does not wait, and
    /// needs neither a time-out nor, unless little time was left from the start, the clock.
    #[inline]
    pub(crate) fn send_until(
        &self,
        len: usize,
        deadline: Deadline,
        step: impl Fn(usize, SendFlags) -> Result<usize, IoError>,
    ) -> Result<(), SendError> {
        if len > SMALL_MESSAGE || !deadline.is_long() {
            return self.send_rest(0, len, deadline, step);
        }
        match step(0, SendFlags::DONTWAIT) {
            Ok(sent) if sent == len => {
                self.sent_at_once.store(true, Ordering::Relaxed);
                Ok(())
            }
            Ok(sent) => self.send_rest(sent, len, deadline, step),
            Err(IoError::WouldBlock) => self.send_rest(0, len, deadline, step),
            Err(cause) => Err(SendError { sent: 0, cause }),
        }
    }

    /// Sends as [`send_until`](Self::send_until) does, of which `sent` octets are sent, and waits
    /// for room.
    #[cold]
    #[inline(never)]
    fn send_rest(
        &self,
        mut sent: usize,
        len: usize,
        deadline: Deadline,
        step: impl Fn(usize, SendFlags) -> Result<usize, IoError>,
    ) -> Result<(), SendError> {
        self.sent_at_once.store(false, Ordering::Relaxed);
        while sent < len {
            let limited = self.end_sending(deadline);
            match limited.and_then(|()| step(sent, SendFlags::empty())) {
                Ok(n) => sent += n,
                Err(IoError::WouldBlock) => {}
                Err(cause) => return Err(SendError { sent, cause }),
            }
        }
        Ok(())
    }

    /// Lets the next wait to receive end at the deadline.
    pub(crate) fn end_receiving(&self, deadline: Deadline) -> Result<(), IoError> {
        self.sent_at_once.store(false, Ordering::Relaxed);
        let remaining = deadline.remaining().ok_or(IoError::TimedOut)?;
        self.limit_receiving(remaining)
    }

    /// Whether the next wait to receive ends `whole` nanoseconds from now, and a message was sent
    /// directly before without a wait. Such a wait ends as those with a deadline do that was
    /// `whole` nanoseconds ahead before the message was sent. 0 stands for an unknown time.
    #[inline]
    pub(crate) fn ends_receiving_after(&self, whole: u64) -> bool {
        let at_once = self.sent_at_once.load(Ordering::Relaxed);
        self.sent_at_once.store(false, Ordering::Relaxed);
        at_once && whole != 0 && time_out_fits(self.receive_time_out.load(Ordering::Relaxed), whole)
    }

    /// Lets waits to receive end after so long.
    pub(crate) fn limit_receiving(&self, remaining: Duration) -> Result<(), IoError> {
        self.limit(remaining, &self.receive_time_out, sockopt::Timeout::Recv)
    }

    /// Lets the next wait to send, or to connect where the kernel counts that as sending, end at
    /// the deadline.
    pub(crate) fn end_sending(&self, deadline: Deadline) -> Result<(), IoError> {
        let remaining = deadline.remaining().ok_or(IoError::TimedOut)?;
        self.limit(remaining, &self.send_time_out, sockopt::Timeout::Send)
    }

    /// Lets no receiver wait, or all of them.
    pub(crate) fn set_interrupted(&self, interrupted: bool) {
        // It is refused only where the socket is none.
        let _ = rustix::io::ioctl_fionbio(&self.socket, interrupted);
    }

    /// Whether a look at it, which takes nothing out, finds anything but nothing.
    pub(crate) fn has_news(&self) -> bool {
        let looked = self.receive(&mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        looked != Err(IoError::WouldBlock)
    }

    /// Sets the socket's time-out to the time that is left, where the old one is too far off.
    fn limit(
        &self,
        remaining: Duration,
        set: &AtomicU64,
        which: sockopt::Timeout,
    ) -> Result<(), IoError> {
        let remaining = u64::try_from(remaining.as_nanos()).unwrap_or(u64::MAX);
        let remaining = remaining.max(SHORTEST_TIME_OUT);
        if time_out_fits(set.load(Ordering::Relaxed), remaining) {
            return Ok(());
        }
        // A little more than the rest, so that the next call with the same time-out fits.
        let generous = remaining.saturating_add(remaining / 16);
        sockopt::set_socket_timeout(&self.socket, which, Some(Duration::from_nanos(generous)))
            .map_err(IoError::from_errno)?;
        set.store(generous, Ordering::Relaxed);
        Ok(())
    }
}

/// The result of a system call that may have waited. [`IoError::WouldBlock`] if the time-out or a
/// signal has ended the wait.
///
/// A signal also ends the waits of a socket with a time-out where its handler has `SA_RESTART`, and
/// so does a stop of the process (signal(7)). The call must not be made again as it was: that wait
/// would have the whole time-out, and end never if signals arrive more often. The caller computes
/// the rest of its time anew.
#[inline]
fn waited<T>(result: Result<T, Errno>) -> Result<T, IoError> {
    match result {
        Err(Errno::INTR) => Err(IoError::WouldBlock),
        result => result.map_err(IoError::from_errno),
    }
}

/// Whether a wait that ends after `set` nanoseconds is not much longer than one of `wanted`.
///
/// Setting it costs a system call; a call with the same time-out as the one before must not pay it.
fn time_out_fits(set: u64, wanted: u64) -> bool {
    set >= wanted && set - wanted <= wanted / 8
}

impl AsFd for TimedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Octets of a message that is sent without waiting first. A longer one often needs to wait, and
/// would need a further system call for it.
const SMALL_MESSAGE: usize = 16 << 10;
/// The most slices of one system call.
const MOST_SLICES: usize = 64;
/// The shortest time-out, in nanoseconds: one of 0 would mean for ever (socket(7)).
const SHORTEST_TIME_OUT: u64 = 1_000;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn slices_are_sent_in_order_from_any_octet_on() {
        let (socket, peer) = UnixStream::pair().expect("two sockets");
        let socket = TimedSocket::new(socket.into());
        let octets: Vec<u8> = (0..200).collect();
        // More slices than one call takes, some of them empty.
        let slices: Vec<_> = octets.chunks(2).flat_map(|two| [two, &[]]).collect();
        let slices: Vec<_> = slices.into_iter().map(IoSlice::new).collect();
        for begin in [0, 1, 2, 101, 199] {
            let mut sent = begin;
            while sent < octets.len() {
                let more = socket.send_slices(&slices, sent, SendFlags::DONTWAIT);
                sent += more.expect("there is room");
            }
            let mut received = [0; 200];
            let received = &mut received[begin..];
            (&peer).read_exact(received).expect("they have come");
            assert_eq!(*received, octets[begin..]);
        }
    }

    #[test]
    fn only_a_wait_directly_after_a_send_may_do_without_the_clock() {
        let (socket, peer) = UnixStream::pair().expect("two sockets");
        let socket = TimedSocket::new(socket.into());
        let whole = 60_000_000_000;
        let deadline = Deadline::after_nanos(whole);
        let send = || {
            let sent = socket.send_until(1, deadline, |_, flags| socket.send(&[7], flags));
            assert_eq!(sent, Ok(()));
        };
        send();
        assert!(!socket.ends_receiving_after(whole), "no time-out is set");
        socket.end_receiving(deadline).expect("there is time");
        assert!(!socket.ends_receiving_after(whole), "nothing was sent");
        send();
        assert!(!socket.ends_receiving_after(0), "the call has waited");
        send();
        assert!(!socket.ends_receiving_after(2 * whole), "too early");
        send();
        assert!(!socket.ends_receiving_after(whole / 2), "too late");
        send();
        socket.end_receiving(deadline).expect("there is time");
        assert!(!socket.ends_receiving_after(whole), "a wait has begun");
        send();
        assert!(socket.ends_receiving_after(whole));
        assert!(!socket.ends_receiving_after(whole), "a wait has begun");
        drop(peer);
    }
}
