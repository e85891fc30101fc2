//! Waiting in an epoll set.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

use chronorb_rt::Wake;
use rustix::event::epoll::{self, EventFlags};
use rustix::net::RecvFlags;
use rustix::time::Timespec;

use super::{Got, Hot, Site, blocking};

/// An epoll set with the listener and the idle connections.
pub(super) struct Set {
    set: OwnedFd,
}

impl Set {
    pub(super) fn new(site: &Site<'_>, edge: EventFlags) -> io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let all = Self { set };
        all.add(site.listener, OTHER, EventFlags::IN | edge)?;
        for idle in site.idle {
            all.add(idle, OTHER, EventFlags::IN | edge)?;
        }
        Ok(all)
    }

    /// The same, with the connection that is served.
    fn with_hot(site: &Site<'_>, edge: EventFlags) -> io::Result<Self> {
        let set = Self::new(site, edge & EventFlags::ET)?;
        set.add(site.hot, HOT, EventFlags::IN | edge)?;
        Ok(set)
    }

    /// The same, edge-triggered.
    pub(super) fn edge_triggered(site: &Site<'_>) -> io::Result<Self> {
        Self::with_hot(site, EventFlags::ET)
    }

    fn add(&self, fd: impl AsFd, token: u64, flags: EventFlags) -> io::Result<()> {
        epoll::add(&self.set, fd, epoll::EventData::new_u64(token), flags)?;
        Ok(())
    }

    fn arm(&self, site: &Site<'_>, flags: EventFlags) -> io::Result<()> {
        let data = epoll::EventData::new_u64(HOT);
        epoll::modify(&self.set, site.hot, data, flags)?;
        Ok(())
    }

    /// Waits for the connection that is served.
    fn wait(&self) -> io::Result<()> {
        match self.event(None)? {
            Some(HOT) => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// Whether something happened on the connection that is served.
    pub(super) fn look(&self) -> io::Result<bool> {
        match self.event(Some(&Timespec::default()))? {
            None => Ok(false),
            Some(HOT) => Ok(true),
            Some(_) => Err(unexpected()),
        }
    }

    /// One event, as the reactor takes them.
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

pub(super) fn level_triggered(site: &Site<'_>) -> io::Result<()> {
    serve_events(&Set::with_hot(site, EventFlags::empty())?, site)
}

pub(super) fn edge_triggered(site: &Site<'_>) -> io::Result<()> {
    serve_events(&Set::edge_triggered(site)?, site)
}

fn serve_events(set: &Set, site: &Site<'_>) -> io::Result<()> {
    let mut hot = Hot::new(site);
    loop {
        set.wait()?;
        match hot.receive(RecvFlags::DONTWAIT)? {
            Got::Request => hot.reply()?,
            Got::Nothing => {}
            Got::End => return Ok(()),
        }
    }
}

/// As Leader/Followers would have to: the next event is for another thread, which is why the set is
/// armed before the reply.
pub(super) fn one_shot(site: &Site<'_>) -> io::Result<()> {
    let set = Set::with_hot(site, EventFlags::ONESHOT)?;
    let mut hot = Hot::new(site);
    loop {
        set.wait()?;
        let got = hot.receive(RecvFlags::DONTWAIT)?;
        set.arm(site, EventFlags::IN | EventFlags::ONESHOT)?;
        match got {
            Got::Request => hot.reply()?,
            Got::Nothing => {}
            Got::End => return Ok(()),
        }
    }
}

pub(super) fn receive_first(site: &Site<'_>) -> io::Result<()> {
    let set = Set::edge_triggered(site)?;
    let mut hot = Hot::new(site);
    loop {
        match hot.receive(RecvFlags::DONTWAIT)? {
            Got::Request => hot.reply()?,
            Got::Nothing => set.wait()?,
            Got::End => return Ok(()),
        }
    }
}

pub(super) fn hot_connection(site: &Site<'_>) -> io::Result<()> {
    let set = Set::edge_triggered(site)?;
    set.arm(site, EventFlags::empty())?;
    let end = Wake::new()?;
    set.add(&end, END, EventFlags::IN)?;
    thread::scope(|scope| {
        // It inherits processor and priority.
        let other = scope.spawn(|| match set.event(None)? {
            Some(END) => Ok(()),
            _ => Err(unexpected()),
        });
        let served = blocking(&mut Hot::new(site));
        end.notify();
        let other = other
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        served.and(other)
    })
}

/// Of all but the connection that is served nothing is heard.
pub(super) fn unexpected() -> io::Error {
    io::Error::other("an event came that belongs to no request")
}

const OTHER: u64 = 0;
const HOT: u64 = 1;
const END: u64 = 2;
