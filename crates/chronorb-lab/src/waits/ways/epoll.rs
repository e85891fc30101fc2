//! Epoll sets, and the loops that do more than wait in one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

use chronorb_rt::Wake;
use rustix::event::epoll::{self, EventFlags};
use rustix::net::RecvFlags;
use rustix::time::Timespec;

use super::{Connections, HotConnection, Receipt};

/// An epoll set with the listener and the idle connections.
pub(super) struct Set {
    set: OwnedFd,
}

impl Set {
    pub(super) fn new(connections: &Connections<'_>, edge: EventFlags) -> io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let all = Self { set };
        all.add(connections.listener, OTHER, EventFlags::IN | edge)?;
        for idle in connections.idle {
            all.add(idle, OTHER, EventFlags::IN | edge)?;
        }
        Ok(all)
    }

    /// A set that has the hot connection too.
    pub(super) fn with_hot(connections: &Connections<'_>, edge: EventFlags) -> io::Result<Self> {
        let set = Self::new(connections, edge & EventFlags::ET)?;
        set.add(connections.hot, HOT, EventFlags::IN | edge)?;
        Ok(set)
    }

    fn add(&self, fd: impl AsFd, token: u64, flags: EventFlags) -> io::Result<()> {
        epoll::add(&self.set, fd, epoll::EventData::new_u64(token), flags)?;
        Ok(())
    }

    /// Sets the events of the hot connection that are reported.
    fn arm(&self, connections: &Connections<'_>, flags: EventFlags) -> io::Result<()> {
        let data = epoll::EventData::new_u64(HOT);
        epoll::modify(&self.set, connections.hot, data, flags)?;
        Ok(())
    }

    /// WaitsExperiment for an event of the hot connection.
    pub(super) fn wait(&self) -> io::Result<()> {
        match self.event(None)? {
            Some(HOT) => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// Polls the set: whether the hot connection has an event.
    pub(super) fn poll(&self) -> io::Result<bool> {
        match self.event(Some(&Timespec::default()))? {
            None => Ok(false),
            Some(HOT) => Ok(true),
            Some(_) => Err(unexpected()),
        }
    }

    /// Takes one event, as the reactor does.
    fn event(&self, time_out: Option<&Timespec>) -> io::Result<Option<u64>> {
        let mut events = [epoll::Event {
            flags: EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }];
        let count = epoll::wait(&self.set, &mut events, time_out)?;
        Ok((count > 0).then(|| events[0].data.u64()))
    }
}

impl AsFd for Set {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

/// Serves as Leader/Followers would have to: the set is armed before the reply, because the next
/// event is for another thread.
pub(super) fn one_shot(
    connections: &Connections<'_>,
    hot: &mut HotConnection<'_>,
) -> io::Result<()> {
    let set = Set::with_hot(connections, EventFlags::ONESHOT)?;
    loop {
        set.wait()?;
        let receipt = hot.receive(RecvFlags::DONTWAIT)?;
        set.arm(connections, EventFlags::IN | EventFlags::ONESHOT)?;
        match receipt {
            Receipt::Request => hot.reply()?,
            Receipt::Nothing => {}
            Receipt::End => return Ok(()),
        }
    }
}

/// Serves the hot connection in `recv`, while another thread waits in the set for all others.
pub(super) fn hot_connection(
    connections: &Connections<'_>,
    hot: &mut HotConnection<'_>,
) -> io::Result<()> {
    let set = Set::with_hot(connections, EventFlags::ET)?;
    set.arm(connections, EventFlags::empty())?;
    let end = Wake::new()?;
    set.add(&end, END, EventFlags::IN)?;
    thread::scope(|scope| {
        // The other thread inherits processor and priority.
        let other = scope.spawn(|| match set.event(None)? {
            Some(END) => Ok(()),
            _ => Err(unexpected()),
        });
        let served = hot.serve(RecvFlags::empty(), || Ok(()), || Ok(()));
        end.notify();
        let other = other.join();
        let other = other.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        served.and(other)
    })
}

/// The error for an event of a connection that should stay idle.
pub(super) fn unexpected() -> io::Error {
    io::Error::other("an event came that belongs to no request")
}

const OTHER: u64 = 0;
const HOT: u64 = 1;
const END: u64 = 2;
