//! One ring of messages with one publisher and many readers, which are in other processes.
//!
//! The publisher writes each message once, and never waits. A reader has a cursor of its own, and
//! copies messages out. One that is too slow is lapped, and told the number of messages that it
//! lost. Readers that poll cost the publisher nothing. While readers sleep, a message costs one
//! system call, which wakes one of them; each reader that was woken wakes two others.
//!
//! Readers map the ring for reading alone, and the kernel permits nothing else. The only thing
//! that they share for writing is a note that a reader sleeps. The worst that a reader can do with
//! it is to cost the publisher one system call for each message, and to delay the wake-up of other
//! readers by [`LONGEST_SLEEP`]. A reader that wakes no others in its turn delays them as much. A
//! reader trusts the publisher no more than any peer: whatever it writes, a reader gets wrong
//! octets, a count of losses, or [`FanOutError::Violated`].
//!
//! The files of a ring go over a connected Unix-domain socket, whose access rights are those of the
//! ring; [`FanOutListener`] makes it. The socket stays, and shows readers that the publisher lives.
//! A reader states the size that it permits and the time that it waits ([`ReaderLimits`]).
//!
//! ```
//! use std::os::unix::net::UnixStream;
//!
//! use chronorb_transport::shm::fan_out::{FanOutOptions, Publisher, Reader, Reading};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut publisher = Publisher::create(FanOutOptions { slots: 64, octets: 256 })?;
//! let (here, there) = UnixStream::pair()?;
//! publisher.offer().send(&here)?;
//! // In another process.
//! let mut reader = Reader::receive(there.into())?;
//! publisher.publish(&[b"hello, ", b"readers"])?;
//! assert_eq!(reader.poll()?, Some(Reading::Message(b"hello, readers")));
//! # Ok(())
//! # }
//! ```

mod listener;
mod memory;
mod rendezvous;
mod ring;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::Deadline;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

pub use self::listener::FanOutListener;
use self::memory::{FanOutFiles, FanOutMemory};
use self::ring::{BadPublisher, Cursor, Next, Writer};
use super::word::{self, Woken};
use super::{memory as memory_of_peers, sync};

/// The size of a ring.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FanOutOptions {
    /// The messages that the ring holds: a power of two from 2 to 65,536.
    pub slots: u32,
    /// The octets of the longest message: a power of two from 16 to 1 MiB.
    pub octets: u32,
}

/// The most that a reader takes and waits, whatever a publisher offers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReaderLimits {
    /// The octets of the ring, with its slots' states.
    pub octets: usize,
    /// The time until the publisher has sent the ring.
    pub patience: Duration,
}

impl Default for ReaderLimits {
    /// A ring of 64 MiB, and 10 seconds.
    fn default() -> Self {
        Self {
            octets: 64 << 20,
            patience: Duration::from_secs(10),
        }
    }
}

/// The publisher of a ring. Dropping it ends the ring.
pub struct Publisher {
    writer: Writer,
    memory: Arc<FanOutMemory>,
    files: Arc<FanOutFiles>,
}

/// The files of a ring, for threads that accept readers.
#[derive(Clone)]
pub struct FanOutOffer {
    files: Arc<FanOutFiles>,
    options: FanOutOptions,
}

/// A reader of a ring. A clone has a cursor of its own, at the same place.
pub struct Reader {
    cursor: Cursor,
    source: Arc<ReaderSource>,
    room: Box<[u8]>,
}

struct ReaderSource {
    memory: FanOutMemory,
    socket: OwnedFd,
}

/// The next item of a ring.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reading<'r> {
    /// A message.
    Message(&'r [u8]),
    /// So many messages were lost, because the reader was too slow.
    Lost(u64),
}

/// An error of a ring.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FanOutError {
    /// A ring cannot have this size.
    #[error("a ring has 2 to 65,536 slots of 16 octets to 1 MiB, at most 1 GiB, powers of two")]
    Size,
    /// A message is longer than a slot.
    #[error("the message has {octets} octets, and a slot {most}")]
    TooLong {
        /// The octets of the message.
        octets: usize,
        /// The octets of a slot.
        most: usize,
    },
    /// The ring is larger than a reader permits.
    #[error("the ring has {octets} octets, and the reader permits {most}")]
    TooLarge {
        /// The octets of the ring.
        octets: usize,
        /// The limit of the reader.
        most: usize,
    },
    /// The publisher did not accept the reader, or sent no ring, within the reader's patience.
    #[error("the publisher of the ring has sent nothing in time")]
    Late,
    /// There is no memory for the ring.
    #[error("there is no memory for the ring: {0}")]
    Memory(#[source] io::Error),
    /// The socket fails.
    #[error("the socket of the ring fails: {0}")]
    Socket(#[source] io::Error),
    /// The publisher has ended, and all its messages were read.
    #[error("the publisher of the ring has ended")]
    Ended,
    /// The publisher broke the protocol.
    #[error("the publisher of the ring broke the protocol")]
    Violated,
}

impl FanOutOptions {
    fn check(self) -> Result<(), FanOutError> {
        let is_possible = self.slots.is_power_of_two()
            && self.octets.is_power_of_two()
            && (2..=1 << 16).contains(&self.slots)
            && (16..=1 << 20).contains(&self.octets)
            && u64::from(self.slots) * u64::from(self.octets) <= MOST_OCTETS;
        is_possible.then_some(()).ok_or(FanOutError::Size)
    }
}

impl Publisher {
    /// Creates a ring.
    ///
    /// # Errors
    /// [`FanOutError::Size`], [`FanOutError::Memory`].
    pub fn create(options: FanOutOptions) -> Result<Self, FanOutError> {
        options.check()?;
        let made = FanOutMemory::create(options);
        let (memory, files) = made.map_err(|error| FanOutError::Memory(error.into()))?;
        Ok(Self {
            writer: Writer::default(),
            memory: Arc::new(memory),
            files: Arc::new(files),
        })
    }

    /// Publishes a message, which consists of these parts. Makes no system call, unless a reader
    /// sleeps.
    ///
    /// # Errors
    /// [`FanOutError::TooLong`].
    pub fn publish(&mut self, parts: &[&[u8]]) -> Result<(), FanOutError> {
        let octets = parts.iter().map(|part| part.len()).sum();
        let most = self.memory.options().octets as usize;
        if octets > most {
            return Err(FanOutError::TooLong { octets, most });
        }
        let ring = self.memory.ring();
        if self.writer.publish(ring, self.memory.note(), parts) {
            word::wake_others(&ring.words.bell, 1);
        }
        Ok(())
    }

    /// The ring, as it is sent to readers.
    #[must_use]
    pub fn offer(&self) -> FanOutOffer {
        FanOutOffer {
            files: self.files.clone(),
            options: self.memory.options(),
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let ring = self.memory.ring();
        if self.writer.end(ring, self.memory.note()) {
            word::wake_others(&ring.words.bell, 1);
        }
    }
}

impl FanOutOffer {
    /// Sends the ring over a connected Unix-domain socket. The socket stays open as long as the
    /// publisher lives, by which readers see that it does.
    ///
    /// # Errors
    /// [`FanOutError::Socket`].
    pub fn send(&self, socket: impl AsFd) -> Result<(), FanOutError> {
        let sent = rendezvous::offer(socket, &self.files, self.options);
        sent.map_err(|error| FanOutError::Socket(error.into()))
    }
}

impl Reader {
    /// Joins the ring of a [`FanOutListener`] by the path of its socket. The first message is the
    /// next one that is published.
    ///
    /// # Errors
    /// [`FanOutError::Socket`] if there is no listener; those of
    /// [`receive_within`](Self::receive_within).
    pub fn join(path: &Path, limits: &ReaderLimits) -> Result<Self, FanOutError> {
        let deadline = Deadline::after(limits.patience);
        let socket = listener::connect(path, deadline)?;
        Self::receive_until(socket, limits.octets, deadline)
    }

    /// Receives a ring over a connected Unix-domain socket within the [default
    /// limits](ReaderLimits::default).
    ///
    /// # Errors
    /// Those of [`receive_within`](Self::receive_within).
    pub fn receive(socket: OwnedFd) -> Result<Self, FanOutError> {
        Self::receive_within(socket, &ReaderLimits::default())
    }

    /// Receives a ring over a connected Unix-domain socket, and waits for it. The first message is
    /// the next one that is published.
    ///
    /// The memory of the ring is the publisher's: a ring that has no memory yet is refused.
    ///
    /// # Errors
    /// [`FanOutError::Violated`] if the peer sent anything else; [`FanOutError::Ended`] if it ended
    /// the socket; [`FanOutError::TooLarge`], [`FanOutError::Late`], [`FanOutError::Memory`],
    /// [`FanOutError::Socket`].
    pub fn receive_within(socket: OwnedFd, limits: &ReaderLimits) -> Result<Self, FanOutError> {
        let deadline = Deadline::after(limits.patience);
        Self::receive_until(socket, limits.octets, deadline)
    }

    fn receive_until(
        socket: OwnedFd,
        most: usize,
        deadline: Deadline,
    ) -> Result<Self, FanOutError> {
        let (files, options) = rendezvous::accept(&socket, deadline)?;
        let octets = memory::len(options);
        if octets > most {
            return Err(FanOutError::TooLarge { octets, most });
        }
        let memory = FanOutMemory::adopt(&files, options).map_err(rendezvous::mapping_error)?;
        Ok(Self {
            cursor: Cursor::at_end(memory.ring()),
            room: vec![0; options.octets as usize].into(),
            source: Arc::new(ReaderSource { memory, socket }),
        })
    }

    /// Returns the next message or loss, if there is one. Makes no system call.
    ///
    /// # Errors
    /// [`FanOutError::Ended`], [`FanOutError::Violated`].
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Reading<'_>>, FanOutError> {
        let ring = self.source.memory.ring();
        // Before the messages: those that are there at the end are read.
        let has_ended = ring.has_ended();
        sync::fence(sync::Ordering::Acquire);
        match self.cursor.take(ring, &mut self.room) {
            Ok(Some(Next::Message(octets))) => Ok(Some(Reading::Message(&self.room[..octets]))),
            Ok(Some(Next::Lost(number))) => Ok(Some(Reading::Lost(number))),
            Ok(None) if has_ended => Err(FanOutError::Ended),
            Ok(None) => Ok(None),
            Err(BadPublisher) => Err(FanOutError::Violated),
        }
    }

    /// Sleeps until there may be a message, or the deadline.
    ///
    /// # Errors
    /// [`FanOutError::Ended`] if the process of the publisher has ended. Its last messages can
    /// still be polled.
    pub fn wait(&self, deadline: Deadline) -> Result<(), FanOutError> {
        let ReaderSource { memory, socket } = &*self.source;
        while let Some(seen) = self.cursor.arm(memory.ring(), memory.note()) {
            let Some(remaining) = deadline.remaining().filter(|left| !left.is_zero()) else {
                return Ok(());
            };
            let limit = remaining.min(LONGEST_SLEEP);
            let woken = word::sleep_in_chain(&memory.ring().words.bell, seen, limit);
            if woken == Woken::ByTime && has_ended(socket) {
                return Err(FanOutError::Ended);
            }
        }
        Ok(())
    }
}

/// Whether the other side of a socket has ended.
fn has_ended(socket: &OwnedFd) -> bool {
    let mut looked = [PollFd::new(socket, PollFlags::RDHUP)];
    poll(&mut looked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

impl Clone for Reader {
    fn clone(&self) -> Self {
        Self {
            cursor: self.cursor.clone(),
            source: self.source.clone(),
            room: self.room.clone(),
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("options", &self.memory.options())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FanOutOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FanOutOffer")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("options", &self.source.memory.options())
            .finish_non_exhaustive()
    }
}

/// The time after which a reader that sleeps looks by itself.
pub const LONGEST_SLEEP: Duration = super::LONGEST_DELAY;
/// The most octets of all slots; positions have 32 bits.
const MOST_OCTETS: u64 = 1 << 30;

#[cfg(test)]
mod tests;
