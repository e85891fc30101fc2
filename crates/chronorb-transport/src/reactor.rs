//! Waiting for many connections at once: an epoll set.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use chronorb_probe::{Activity, doing};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::time::Timespec;

/// An edge-triggered epoll set that several threads may wait on.
///
/// The kernel acts as the baton of Leader/Followers: for each event it wakes one of the waiting
/// threads, and the others continue to wait. A thread takes one event at a time, so that the next
/// one is left for the next thread. Level-triggered sets are polled again at each wait,
/// edge-triggered ones are not. A thread that gets an event must therefore read until nothing is
/// left, or [`rearm`](Self::rearm).
#[derive(Debug)]
pub struct Reactor {
    set: OwnedFd,
}

/// The kinds of events to wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Interest {
    /// Octets to receive, or connections to accept.
    Read,
    /// Input, and room to send.
    ReadWrite,
    /// A descriptor that stays readable and shall wake every thread: level-triggered.
    Everyone,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Self::Read => epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET,
            Self::ReadWrite => Self::Read.flags() | epoll::EventFlags::OUT,
            Self::Everyone => epoll::EventFlags::IN,
        }
    }
}

/// An event of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event {
    /// The token that the descriptor was added with.
    pub token: u64,
    /// There may be room to send.
    pub writable: bool,
    /// The peer will send no more octets: the present ones must be read to the end, since no
    /// further event follows.
    pub hang_up: bool,
}

impl Reactor {
    /// An empty set.
    ///
    /// # Errors
    /// Where no descriptor is left.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            set: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        })
    }

    /// Adds a descriptor. It leaves the set when it is closed.
    ///
    /// # Errors
    /// Where the kernel's memory or the user's limit of watches is exhausted.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let _telling = doing(Activity::InputOutput);
        let data = epoll::EventData::new_u64(token);
        epoll::add(&self.set, fd, data, interest.flags())?;
        Ok(())
    }

    /// Looks at the descriptor again: if it is ready, or has room to send where that is asked
    /// for, an event follows at once.
    ///
    /// # Errors
    /// Where the descriptor is not in the set.
    pub fn rearm(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let _telling = doing(Activity::InputOutput);
        let data = epoll::EventData::new_u64(token);
        epoll::modify(&self.set, fd, data, interest.flags())?;
        Ok(())
    }

    /// Leaves the descriptor in the set without reporting its events until it is [armed
    /// again](Self::rearm), except for its end, which the kernel always reports, once. An event
    /// that a thread has taken already stays with it.
    ///
    /// # Errors
    /// Where the descriptor is not in the set.
    pub fn disarm(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        let _telling = doing(Activity::InputOutput);
        let data = epoll::EventData::new_u64(token);
        // With a level-triggered end, threads at the set would loop until it is read.
        epoll::modify(&self.set, fd, data, epoll::EventFlags::ET)?;
        Ok(())
    }

    /// Waits for one event; `None` when the time is over, or a signal arrived.
    ///
    /// # Errors
    /// Where the set is broken, which only a bug can do.
    pub fn wait(&self, time_out: Option<Duration>) -> io::Result<Option<Event>> {
        let _waiting = doing(Activity::InputOutput);
        let time_out = time_out.map(|t| Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: t.subsec_nanos().into(),
        });
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }];
        match epoll::wait(&self.set, &mut events, time_out.as_ref()) {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => Ok(Some(Event::new(events[0].flags, events[0].data.u64()))),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits as [`wait`](Self::wait) does, on a thread that can be kicked. A
    /// [`Kick`](chronorb_rt::Kick) since the thread's last wait, or during this one, ends it with
    /// `None`. A pending event comes first, and the kick ends the next wait.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_or_kick(&self, time_out: Option<Duration>) -> io::Result<Option<Event>> {
        let _waiting = doing(Activity::InputOutput);
        let event = chronorb_rt::epoll_wait_or_kick(&self.set, time_out)?;
        Ok(event
            .map(|(flags, token)| Event::new(epoll::EventFlags::from_bits_retain(flags), token)))
    }
}

impl Event {
    /// Input of a connection, found without the set.
    #[must_use]
    pub const fn of_input(token: u64) -> Self {
        Self {
            token,
            writable: false,
            hang_up: false,
        }
    }

    fn new(flags: epoll::EventFlags, token: u64) -> Self {
        Self {
            token,
            writable: flags.contains(epoll::EventFlags::OUT),
            hang_up: flags.intersects(HANG_UP),
        }
    }
}

const HANG_UP: epoll::EventFlags = epoll::EventFlags::RDHUP
    .union(epoll::EventFlags::HUP)
    .union(epoll::EventFlags::ERR);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    const NOW: Option<Duration> = Some(Duration::ZERO);

    #[test]
    fn an_edge_is_told_once_and_again_after_rearming() -> io::Result<()> {
        let reactor = Reactor::new()?;
        let (mut near, far) = UnixStream::pair()?;
        reactor.add(&far, 7, Interest::Read)?;
        assert_eq!(reactor.wait(NOW)?, None);

        near.write_all(b"x")?;
        assert_eq!(reactor.wait(NOW)?.map(|e| e.token), Some(7));
        assert_eq!(reactor.wait(NOW)?, None, "the edge was taken");

        reactor.rearm(&far, 7, Interest::Read)?;
        assert_eq!(reactor.wait(NOW)?.map(|e| e.token), Some(7));
        Ok(())
    }

    #[test]
    fn a_disarmed_descriptor_tells_of_its_end_alone_and_once() -> io::Result<()> {
        let reactor = Reactor::new()?;
        let (mut near, far) = UnixStream::pair()?;
        reactor.add(&far, 7, Interest::ReadWrite)?;
        reactor.disarm(&far, 7)?;
        near.write_all(b"x")?;
        assert_eq!(reactor.wait(NOW)?, None, "the event is not wanted");

        drop(near);
        let end = reactor.wait(NOW)?.expect("it has ended");
        assert!(end.hang_up);
        assert_eq!(reactor.wait(NOW)?, None, "it was told");

        reactor.rearm(&far, 7, Interest::Read)?;
        let end = reactor.wait(NOW)?.expect("there is an octet, and the end");
        assert!(end.hang_up);
        Ok(())
    }

    #[test]
    fn rearming_for_room_tells_at_once() -> io::Result<()> {
        let reactor = Reactor::new()?;
        let (_near, far) = UnixStream::pair()?;
        reactor.add(&far, 7, Interest::Read)?;
        reactor.rearm(&far, 7, Interest::ReadWrite)?;
        let event = reactor.wait(NOW)?.expect("there is room");
        assert!(event.writable);
        Ok(())
    }
}
