//! A connection by shared memory.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::time::Duration;

use chronorb_rt::{Deadline, PiMutex};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, Shutdown, sockopt};

use super::channel::Channel;
use super::memory::Memory;
use super::ring::{Rubbish, Wait, WakeRequest, rouse};
use super::sync::AtomicU32 as Word;
use super::word::{self, Woken};
use super::{LONGEST_DELAY, rendezvous};
use crate::timed::TimedSocket;
use crate::{Connection, IoError, Remote, SendError, SocketOptions};

/// A connection whose octets go by shared memory; the socket is its doorbell and sign of life.
#[derive(Debug)]
pub(super) struct ShmConnection {
    socket: TimedSocket,
    /// From when the memory is there.
    channel: OnceLock<Channel>,
    /// The largest rings that the peer may create.
    largest_ring: usize,
    is_joining: AtomicBool,
    /// The connection has ended: nothing can be sent, and only octets in the ring can be received.
    ended: AtomicBool,
    /// Whether the octets of the peer may be read.
    trust: AtomicU32,
    /// The file of the memory, until the peer has sealed it.
    file: PiMutex<Option<OwnedFd>>,
    interrupted: AtomicBool,
    /// The number of rings that the peer is permitted, less those that were taken.
    rings: AtomicU32,
    /// The number of polls in vain.
    looks: AtomicU32,
}

impl ShmConnection {
    /// Makes the connecting side, which has created the memory.
    pub(super) fn connected(socket: TimedSocket, memory: Memory, file: OwnedFd) -> Self {
        let mut connection = Self::accepted(socket, 0);
        connection.trust = AtomicU32::new(UNSEALED);
        connection.file = PiMutex::new(Some(file));
        let _ = connection.channel.set(Channel::of_maker(memory));
        connection
    }

    /// Makes the accepting side, which has not received the memory yet.
    pub(super) fn accepted(socket: TimedSocket, largest_ring: usize) -> Self {
        Self {
            socket,
            channel: OnceLock::new(),
            largest_ring,
            is_joining: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            trust: AtomicU32::new(SEALED),
            file: PiMutex::new(None),
            interrupted: AtomicBool::new(false),
            // Both sides begin as if they waited for the doorbell.
            rings: AtomicU32::new(1),
            looks: AtomicU32::new(0),
        }
    }

    #[inline]
    fn channel(&self) -> Result<&Channel, IoError> {
        match self.channel.get() {
            Some(channel) => Ok(channel),
            None => self.join(),
        }
    }

    /// Maps the peer's memory, if it has arrived.
    #[cold]
    pub(super) fn join(&self) -> Result<&Channel, IoError> {
        if self.has_ended() {
            return Err(IoError::Ended);
        }
        // The sender and the receiver may call this at the same time.
        if !self.is_joining.swap(true, Ordering::AcqRel) {
            if self.channel.get().is_none() {
                match rendezvous::accept(self.socket.socket(), self.largest_ring) {
                    Ok(memory) => drop(self.channel.set(Channel::of_receiver(memory))),
                    Err(IoError::WouldBlock) => {}
                    Err(error) => {
                        self.shutdown();
                        return Err(error);
                    }
                }
            }
            self.is_joining.store(false, Ordering::Release);
        }
        self.channel.get().ok_or(IoError::WouldBlock)
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends the connection, whose peer broke the protocol.
    #[cold]
    fn violated(&self, _: Rubbish) -> IoError {
        self.trust.store(BROKEN, Ordering::Relaxed);
        self.shutdown();
        IoError::Violated
    }

    /// Wakes the other side, as it waits at a word.
    #[inline]
    fn wake(&self, at: &Word, wait: Wait) -> Result<(), IoError> {
        match wait {
            Wait::Not => Ok(()),
            Wait::Word => {
                word::wake(at);
                Ok(())
            }
            Wait::Doorbell => rendezvous::ring_bell(self.socket.socket()),
            Wait::Gone => Err(IoError::Closed),
        }
    }

    /// Takes available octets.
    #[inline]
    fn take(&self, channel: &Channel, room: &mut [u8]) -> Result<usize, IoError> {
        if self.trust.load(Ordering::Relaxed) != SEALED {
            self.gain_trust(channel)?;
        }
        let ring = channel.back();
        let taken = channel.consumer.take(ring, room);
        let taken = taken.map_err(|rubbish| self.violated(rubbish))?;
        if channel.consumer.owes_much(ring) {
            self.release(channel)?;
        }
        Ok(taken)
    }

    /// Checks that the peer has sealed the memory permanently, which it does before it writes
    /// anything.
    #[cold]
    fn gain_trust(&self, channel: &Channel) -> Result<(), IoError> {
        if self.trust.load(Ordering::Relaxed) == BROKEN {
            return Err(IoError::Ended);
        }
        if channel.consumer.has_something(channel.back()) {
            let file = self.file.lock().take();
            if !file.is_some_and(|file| channel.is_sealed(&file)) {
                return Err(self.violated(Rubbish));
            }
            self.trust.store(SEALED, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Tells the peer how many octets were consumed.
    #[inline]
    fn release(&self, channel: &Channel) -> Result<(), IoError> {
        let ring = channel.back();
        let wait = channel.consumer.release(ring);
        let wait = wait.map_err(|rubbish| self.violated(rubbish))?;
        // A peer that has ended needs no room.
        let _ = self.wake(&ring.words.head.0, wait);
        Ok(())
    }

    /// Requests a wake-up of this kind from the peer for the next octets.
    fn ask_for_octets(&self, channel: &Channel, wait: Wait) -> Result<WakeRequest, IoError> {
        self.release(channel)?;
        if wait == Wait::Doorbell && !channel.consumer.waits(wait) {
            self.rings.fetch_add(1, Ordering::Relaxed);
        }
        let armed = channel.consumer.arm(channel.back(), wait);
        armed.map_err(|rubbish| self.violated(rubbish))
    }

    /// Takes available octets as far as there is room, and requests the doorbell for later ones.
    fn take_to_the_edge(&self, channel: &Channel, room: &mut [u8]) -> Result<usize, IoError> {
        let mut taken = 0;
        loop {
            taken += self.take(channel, &mut room[taken..])?;
            if taken == room.len() {
                return Ok(taken);
            }
            if self.ask_for_octets(channel, Wait::Doorbell)? == WakeRequest::Needless {
                continue;
            }
            if taken == 0 || self.rings.load(Ordering::Relaxed) <= MANY_RINGS {
                return Ok(taken);
            }
            self.answer_bell()?;
            // A ring since the request has just been taken from the socket, so no thread is told of
            // it any more.
            if !channel.consumer.has_something(channel.back()) {
                return Ok(taken);
            }
        }
    }

    /// Takes the octets that rang from the socket, and notices its end there. Returns whether there
    /// were some, and there may be more.
    ///
    /// The octets may announce data that is in the ring by now: the next thread that waits for the
    /// doorbell first checks the ring.
    fn answer_bell(&self) -> Result<bool, IoError> {
        let asked = self.rings.load(Ordering::Relaxed);
        match rendezvous::answer_bell(self.socket.socket(), RecvFlags::DONTWAIT) {
            Ok(answered) => self.has_rung(asked, answered).map(|()| answered.is_some()),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(IoError::from_errno(error)),
        }
    }

    /// Accounts so many octets of the doorbell; `None` if the socket has ended. `asked` is the
    /// value of `rings` before they were taken.
    fn has_rung(&self, asked: u32, answered: Option<usize>) -> Result<(), IoError> {
        let Some(octets) = answered else {
            self.ended.store(true, Ordering::Relaxed);
            return Ok(());
        };
        // At most `MOST_RINGS` are taken at a time.
        let octets = octets as u32;
        let before = self.rings.fetch_sub(octets, Ordering::Relaxed);
        let Some(left) = before.checked_sub(octets) else {
            return Err(self.violated(Rubbish));
        };
        // If that was all, the other requests were void, except for the last ones and those that a
        // sending thread has made since.
        if octets < rendezvous::MOST_RINGS as u32 {
            let may_ring = MOST_ON_THE_WAY + before.saturating_sub(asked);
            let surplus = left.saturating_sub(may_ring);
            self.rings.fetch_sub(surplus, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Receives after the ring was found empty. Returns `WouldBlock` unless the peer has ended the
    /// stream; its last octets may have arrived meanwhile.
    fn unless_ended(&self, channel: &Channel, room: &mut [u8]) -> Result<usize, IoError> {
        if !self.has_ended() && !channel.back().words.has_ended() {
            return Err(IoError::WouldBlock);
        }
        self.ended.store(true, Ordering::Relaxed);
        // Octets written before the end are in the ring by now.
        match self.take(channel, room)? {
            0 => Err(IoError::Ended),
            taken => Ok(taken),
        }
    }

    /// Receives as [`try_recv`](Connection::try_recv) does, before a wait: it does not check the
    /// socket.
    fn take_before_wait(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let channel = self.channel()?;
        match self.take(channel, room)? {
            0 if room.is_empty() => Ok(0),
            0 => self.unless_ended(channel, room),
            taken if taken == room.len() => Ok(taken),
            taken => Ok(taken + self.take_to_the_edge(channel, &mut room[taken..])?),
        }
    }

    /// Sleeps until octets arrive, at most for the given time.
    fn sleep(&self, sleep: &mut Sleep, remaining: Duration) -> Result<(), IoError> {
        let Some(channel) = self.channel.get() else {
            return self.await_bell(remaining);
        };
        if *sleep != Sleep::AtSocket {
            return self.sleep_at_word(channel, sleep, remaining);
        }
        if self.begin_sleep_at_socket(channel)? {
            self.await_bell(remaining)
        } else {
            Ok(())
        }
    }

    /// Sleeps at the word that the peer moves on; after a while at the socket, which ends with the
    /// peer.
    fn sleep_at_word(
        &self,
        channel: &Channel,
        sleep: &mut Sleep,
        remaining: Duration,
    ) -> Result<(), IoError> {
        let WakeRequest::Until(value) = self.ask_for_octets(channel, Wait::Word)? else {
            return Ok(());
        };
        fence(Ordering::SeqCst);
        if sleep.is_interruptible() && self.interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let words = channel.back().words;
        if words.has_ended() {
            return Ok(());
        }
        let woken = word::sleep(&words.tail.0, value, remaining.min(LONGEST_DELAY));
        if sleep.is_over_at_word(woken) {
            *sleep = Sleep::AtSocket;
            self.answer_bell()?;
        }
        Ok(())
    }

    /// Whether there is something to wait for at the socket.
    fn begin_sleep_at_socket(&self, channel: &Channel) -> Result<bool, IoError> {
        if self.ask_for_octets(channel, Wait::Doorbell)? != WakeRequest::Needless {
            // Octets that rang before would end the wait.
            self.answer_bell()?;
            return Ok(!self.has_ended() && !channel.consumer.has_something(channel.back()));
        }
        Ok(false)
    }

    /// Waits until the socket has something, which stays there.
    fn await_bell(&self, remaining: Duration) -> Result<(), IoError> {
        let time_out = word::timespec(remaining);
        rendezvous::await_bell(self.socket.socket(), Some(&time_out)).map_err(IoError::from_errno)
    }

    /// Sleeps as [`sleep`](Self::sleep) does, unless it is interrupted.
    fn sleep_until_interrupted(
        &self,
        sleep: &mut Sleep,
        remaining: Option<Duration>,
    ) -> Result<(), IoError> {
        if let Some(channel) = self.channel.get() {
            if *sleep != Sleep::AtSocket {
                return self.sleep_at_word(channel, sleep, remaining.unwrap_or(Duration::MAX));
            }
            if !self.begin_sleep_at_socket(channel)? {
                return Ok(());
            }
            if let Some(remaining) = remaining {
                self.socket.limit_receiving(remaining)?;
            }
            let asked = self.rings.load(Ordering::Relaxed);
            // The socket never makes an interrupted thread wait.
            return match rendezvous::answer_bell(self.socket.socket(), RecvFlags::empty()) {
                Ok(answered) => self.has_rung(asked, answered),
                Err(Errno::AGAIN | Errno::INTR) => Ok(()),
                Err(error) => Err(IoError::from_errno(error)),
            };
        }
        // The message with the memory, which may follow, must not be mistaken for an octet.
        self.await_bell(remaining.map_or(LONGEST_DELAY, |left| left.min(LONGEST_DELAY)))
    }

    /// Writes as much of two pieces as fits, and wakes the peer.
    #[inline]
    fn put(&self, channel: &Channel, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        if self.has_ended() {
            return Err(IoError::Closed);
        }
        let ring = channel.out();
        let put = channel.producer.put(ring, first, second);
        let (put, wait) = put.map_err(|rubbish| self.violated(rubbish))?;
        if self.wake(&ring.words.tail.0, wait).is_err() {
            // The octets are with the peer, which may have read them before it ended: they were
            // sent.
            self.ended.store(true, Ordering::Relaxed);
        }
        Ok(put)
    }

    /// Asks the peer to wake this side like this when there is room.
    fn ask_for_room(&self, channel: &Channel, wait: Wait) -> Result<WakeRequest, IoError> {
        if wait == Wait::Doorbell && !channel.producer.waits(wait) {
            self.rings.fetch_add(1, Ordering::Relaxed);
        }
        let armed = channel.producer.arm(channel.out(), wait);
        armed.map_err(|rubbish| self.violated(rubbish))
    }

    /// Waits for room.
    #[cold]
    fn await_room(&self, remaining: Duration) -> Result<(), IoError> {
        let remaining = remaining.min(LONGEST_DELAY);
        let Some(channel) = self.channel.get() else {
            return self.await_bell(remaining);
        };
        let WakeRequest::Until(value) = self.ask_for_room(channel, Wait::Word)? else {
            return Ok(());
        };
        let head = &channel.out().words.head.0;
        let is_late = word::sleep(head, value, remaining) == Woken::ByTime;
        if is_late && rendezvous::has_ended(self.socket.socket()) {
            self.ended.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes as much as fits; nothing, if the memory has not been received yet.
    fn put_if_joined(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        match self.channel() {
            Ok(channel) => self.put(channel, first, second),
            Err(IoError::WouldBlock) => Ok(0),
            Err(_) => Err(IoError::Closed),
        }
    }
}

impl Connection for ShmConnection {
    fn is_established(&self) -> bool {
        self.channel.get().is_some()
    }

    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let channel = self.channel()?;
        let taken = self.take_to_the_edge(channel, room)?;
        if taken > 0 || room.is_empty() {
            return Ok(taken);
        }
        // The end comes after all rings, and is reported once.
        while self.answer_bell()? {}
        if !channel.consumer.has_something(channel.back()) {
            return self.unless_ended(channel, room);
        }
        match self.take_to_the_edge(channel, room)? {
            // Octets in the ring are never taken back.
            0 => Err(self.violated(Rubbish)),
            taken => Ok(taken),
        }
    }

    fn look(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let channel = self.channel()?;
        let taken = self.take(channel, room)?;
        if taken > 0 || room.is_empty() {
            return Ok(taken);
        }
        self.release(channel)?;
        if !channel.consumer.waits(Wait::Not) {
            // A doorbell is not needed any more.
            self.ask_for_octets(channel, Wait::Not)?;
        }
        let looks = self.looks.load(Ordering::Relaxed).wrapping_add(1);
        self.looks.store(looks, Ordering::Relaxed);
        if looks.is_multiple_of(LOOKS_AT_RING) {
            self.answer_bell()?;
        }
        self.unless_ended(channel, room)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.try_send_both(octets, &[])
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        let channel = self.channel()?;
        let mut sent = 0;
        loop {
            let (first, second) = rest_of(first, second, sent);
            sent += self.put(channel, first, second)?;
            let rest = first.len() + second.len();
            if rest == 0 || sent == rest {
                return Ok(sent);
            }
            if self.ask_for_room(channel, Wait::Doorbell)? != WakeRequest::Needless {
                break;
            }
        }
        match sent {
            0 => Err(IoError::WouldBlock),
            sent => Ok(sent),
        }
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        let mut sleep = Sleep::AtWord {
            in_vain: 0,
            interruptible: false,
        };
        loop {
            match self.take_before_wait(room) {
                Err(IoError::WouldBlock) => {}
                other => return other,
            }
            let remaining = deadline.remaining().ok_or(IoError::TimedOut)?;
            self.sleep(&mut sleep, remaining)?;
        }
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        let deadline = limit.map(Deadline::after);
        let mut sleep = Sleep::AtWord {
            in_vain: 0,
            interruptible: true,
        };
        loop {
            match self.take_before_wait(room) {
                Err(IoError::WouldBlock) => {}
                other => return other.map(Some),
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let remaining = match deadline {
                None => None,
                Some(deadline) => match deadline.remaining() {
                    None => return Ok(None),
                    remaining => remaining,
                },
            };
            self.sleep_until_interrupted(&mut sleep, remaining)?;
        }
    }

    fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
        self.socket.set_interrupted(true);
        fence(Ordering::SeqCst);
        if let Some(channel) = self.channel.get() {
            let at = &channel.back().words.tail.0;
            if rouse(at) {
                word::wake(at);
            }
        }
    }

    fn resume(&self) {
        self.interrupted.store(false, Ordering::Relaxed);
        self.socket.set_interrupted(false);
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.send_both(octets, &[], deadline)
    }

    #[inline]
    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        let mut sent = 0;
        while sent < first.len() + second.len() {
            let step = deadline.remaining().ok_or(IoError::TimedOut);
            let step = step.and_then(|remaining| {
                let (first, second) = rest_of(first, second, sent);
                let put = self.put_if_joined(first, second)?;
                if put == 0 {
                    self.await_room(remaining)?;
                }
                Ok(put)
            });
            match step {
                Ok(put) => sent += put,
                Err(cause) => return Err(SendError { sent, cause }),
            }
        }
        Ok(())
    }

    fn is_stale(&self) -> bool {
        if self.has_ended() || rendezvous::has_ended(self.socket.socket()) {
            return true;
        }
        self.channel.get().is_some_and(|channel| {
            let ring = channel.back();
            channel.consumer.has_something(ring) || ring.words.has_ended()
        })
    }

    fn shutdown(&self) {
        self.ended.store(true, Ordering::Relaxed);
        // A connection that has ended already needs no end.
        let _ = net::shutdown(self.socket.socket(), Shutdown::Both);
        if let Some(channel) = self.channel.get() {
            channel.end();
        }
    }

    fn options(&self) -> io::Result<SocketOptions> {
        let ring = self
            .channel
            .get()
            .map_or(0, |channel| channel.out().octets.len());
        let ring = u32::try_from(ring).unwrap_or(u32::MAX);
        Ok(SocketOptions {
            no_delay: true,
            keep_alive: false,
            peer_timeout: None,
            dont_route: true,
            dscp: None,
            priority: None,
            send_buffer: Some(ring),
            receive_buffer: Some(ring),
        })
    }

    #[allow(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        reason = "for messages to people"
    )]
    fn peer(&self) -> String {
        match sockopt::socket_peercred(self.socket.socket()) {
            Ok(peer) => format!(
                "process {} of user {}, by shared memory",
                peer.pid.as_raw_pid(),
                peer.uid.as_raw()
            ),
            Err(_) => "a peer that is gone".to_owned(),
        }
    }

    fn remote(&self) -> Remote {
        Remote::of_unix_socket("shmiop", self.socket.socket())
    }
}

impl Drop for ShmConnection {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl AsFd for ShmConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The place where a thread that waits for octets sleeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sleep {
    /// At the word that the peer advances: the wake-up is fastest there, but the death of the peer
    /// causes none.
    AtWord { in_vain: u32, interruptible: bool },
    /// At the socket, for a long sleep.
    AtSocket,
}

impl Sleep {
    fn is_interruptible(self) -> bool {
        matches!(
            self,
            Self::AtWord {
                interruptible: true,
                ..
            }
        )
    }

    /// Whether it slept long enough at the word, or was woken too often for nothing, which a peer
    /// can do without end.
    fn is_over_at_word(&mut self, woken: Woken) -> bool {
        match self {
            Self::AtWord { in_vain, .. } => {
                *in_vain += 1;
                woken == Woken::ByTime || *in_vain > MOST_IN_VAIN
            }
            Self::AtSocket => false,
        }
    }
}

/// Returns the remainder of two pieces after `sent` octets.
#[inline]
fn rest_of<'o>(first: &'o [u8], second: &'o [u8], sent: usize) -> (&'o [u8], &'o [u8]) {
    match first.get(sent..) {
        Some(first) => (first, second),
        None => (&[], &second[sent - first.len()..]),
    }
}

/// The memory is sealed and may be accessed.
const SEALED: u32 = 0;
/// The peer has put in nothing yet, and perhaps not sealed the memory.
const UNSEALED: u32 = 1;
/// The peer violated the protocol: its octets are not read any more.
const BROKEN: u32 = 2;
/// The number of rings after which they are taken without another reason, long before the socket is
/// full.
const MANY_RINGS: u32 = 16;
/// Octets that may be on their way at a time, or are asked for: one for each direction, and each of
/// the two.
const MOST_ON_THE_WAY: u32 = 4;
/// After so many looks in vain a thread looks at the socket too: some hundred microseconds.
const LOOKS_AT_RING: u32 = 1 << 14;
/// The number of wake-ups in vain that a thread tolerates at a word.
const MOST_IN_VAIN: u32 = 64;
