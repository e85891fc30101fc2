//! The monitor's thread.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb_rt::{Gate, Monotonic, Wake};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use super::place::Socket;
use super::report::{Report, refusal};
use super::session::{MonitorAnswer, Session};
use crate::core::Core;
use crate::server::{self, Watcher};

/// The state of the monitor's thread.
pub(super) struct Server {
    /// The application and the lanes keep the ORB; a monitor alone does not.
    core: Weak<Core>,
    socket: Socket,
    switch: Arc<Switch>,
    sessions: Vec<Session>,
    /// The time at which connections are accepted again, after a lack of descriptors.
    accepts_from: Monotonic,
    /// Whether the lanes take times for the clients.
    takes_times: bool,
}

impl Server {
    pub(super) fn new(core: Weak<Core>, socket: Socket, switch: Arc<Switch>) -> Self {
        Self {
            core,
            socket,
            switch,
            sessions: Vec::new(),
            accepts_from: Monotonic::now(),
            takes_times: false,
        }
    }

    /// Serves clients until the monitor is stopped.
    pub(super) fn run(self) {
        let _ended = EndSignal(self.switch.clone());
        // The socket is removed before the end is signalled.
        let mut server = self;
        while server.switch.state.get() == RUNNING && server.turn() {}
    }

    /// Waits for something to do and does it; returns whether there can be more.
    fn turn(&mut self) -> bool {
        let Some(ready) = self.wait() else {
            return false;
        };
        let now = Monotonic::now();
        let core = &self.core;
        let mut events = ready.sessions.into_iter();
        self.sessions.retain_mut(|session| {
            let events = events.next().unwrap_or(PollFlags::empty());
            session.turn(events, now, |line| answer(core, line)).is_ok()
        });
        if ready.listener {
            self.accept(now);
        }
        self.have_times_taken(!self.sessions.is_empty());
        true
    }

    /// Waits until there is something to do; `None` where that is not possible any more.
    fn wait(&self) -> Option<Ready> {
        let now = Monotonic::now();
        let is_accepting = now >= self.accepts_from;
        let connections = if is_accepting {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        let mut descriptors = vec![
            PollFd::new(&self.switch.wake, PollFlags::IN),
            PollFd::new(self.socket.listener(), connections),
        ];
        let sessions = self.sessions.iter();
        descriptors.extend(sessions.map(|s| PollFd::new(s.stream(), s.awaits(now))));
        let turns = self.sessions.iter().map(|session| session.next_turn(now));
        let next = turns.chain((!is_accepting).then_some(self.accepts_from));
        let time_out = next.min().map(|next| {
            if next > now {
                next - now
            } else {
                Duration::ZERO
            }
        });
        let time_out = time_out.and_then(|time_out| Timespec::try_from(time_out).ok());
        match poll(&mut descriptors, time_out.as_ref()) {
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return None,
        }
        let mut events = descriptors.iter().skip(1).map(PollFd::revents);
        Some(Ready {
            listener: events.next().is_some_and(|e| e.intersects(PollFlags::IN)),
            sessions: events.collect(),
        })
    }

    /// Accepts waiting clients.
    fn accept(&mut self, now: Monotonic) {
        for _ in 0..CONNECTIONS_IN_A_TURN {
            match self.socket.listener().accept() {
                Ok((stream, _)) => self.admit(stream, now),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    _ => {
                        self.accepts_from = now + ACCEPT_PAUSE;
                        return;
                    }
                },
            }
        }
    }

    fn admit(&mut self, stream: UnixStream, now: Monotonic) {
        if !is_permitted(&stream) {
            return;
        }
        let Ok(mut session) = Session::new(stream, now) else {
            return;
        };
        if self.sessions.len() < MAX_CLIENTS {
            self.sessions.push(session);
        } else {
            let why = format!("it has {MAX_CLIENTS} clients already");
            // It is sent at once or not at all.
            let _ = session.answer(MonitorAnswer::last(refusal(&why)), now);
        }
    }

    fn have_times_taken(&mut self, take: bool) {
        if take != self.takes_times
            && let Some(core) = self.core.upgrade()
        {
            server::take_times(&core, Watcher::Monitor, take);
            self.takes_times = take;
        }
    }
}

/// The events for which the thread was woken.
struct Ready {
    listener: bool,
    /// In the order of the sessions.
    sessions: Vec<PollFlags>,
}

/// A signal to the thread to end, and from it that it has ended.
pub(super) struct Switch {
    /// [`RUNNING`], [`STOPPING`] or [`ENDED`].
    pub(super) state: Gate,
    pub(super) wake: Wake,
}

pub(super) const RUNNING: u32 = 0;
pub(super) const STOPPING: u32 = 1;
pub(super) const ENDED: u32 = 2;

/// Signals the end to its waiter on every path, when it is dropped.
struct EndSignal(Arc<Switch>);

impl Drop for EndSignal {
    fn drop(&mut self) {
        self.0.state.set(ENDED);
    }
}

/// Whether the peer is of this user, or root.
fn is_permitted(stream: &UnixStream) -> bool {
    let peer = socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid == geteuid() || peer.uid.is_root())
}

/// Returns the answer to a client's line.
fn answer(core: &Weak<Core>, line: &[u8]) -> MonitorAnswer {
    match (line.trim_ascii(), core.upgrade()) {
        (b"snapshot", Some(core)) => MonitorAnswer::one(Report::take(&core).to_line()),
        (b"snapshot", None) => MonitorAnswer::last(refusal("the ORB has ended")),
        _ => MonitorAnswer::last(refusal("it understands snapshot, and nothing else")),
    }
}

/// The number of clients at a time.
const MAX_CLIENTS: usize = 8;
/// The number of clients that are accepted, or turned away, before the others are served again.
const CONNECTIONS_IN_A_TURN: usize = 32;
/// The time without accepting connections after a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
