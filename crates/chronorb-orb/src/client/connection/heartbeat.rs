//! The heartbeats of servers: one thread of the ORB asks all watched addresses, each by a
//! connection of its own, and ends the connections to one that does not answer.

use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_giop::{
    CompletionStatus, MessageHeader, MessageType, SystemException, SystemExceptionKind,
};
use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex};
use chronorb_transport::Connection;

use super::channel::ClientConnection;
use super::key::ConnectionKey;
use super::link::{Failure, timeout};
use super::threads::ConnectionThread;
use crate::core::Core;
use crate::incident::Incident;
use crate::protocol::Way;
use crate::rtcorba::{FailoverPolicy, Heartbeat, request_priority};
use crate::scope;

/// The heartbeats of an ORB.
#[derive(Default)]
pub(in crate::client) struct Heartbeats {
    state: PiMutex<HeartbeatState>,
    /// Advanced when the thread has something to do.
    changes: Gate,
}

#[derive(Default)]
struct HeartbeatState {
    thread: Option<ConnectionThread>,
    watched: Vec<WatchedAddress>,
    /// The peers that the thread does not know yet.
    new: Vec<HeartbeatPeer>,
    is_over: bool,
}

/// The connections to an address, which end together.
struct WatchedAddress {
    way: Way,
    connections: Vec<Weak<dyn Connection>>,
    /// Whether heartbeats are sent.
    has_peer: bool,
}

/// A server that the thread asks.
pub(in crate::client) struct HeartbeatPeer {
    pub(in crate::client) connection: ClientConnection,
    /// A locate request with this id.
    pub(in crate::client) message: Frame,
    pub(in crate::client) request_id: u32,
    pub(in crate::client) heartbeat: Heartbeat,
    /// The time for which the address is suspected if there is no answer.
    pub(in crate::client) suspicion: Duration,
    next: Monotonic,
}

impl HeartbeatPeer {
    pub(in crate::client) fn new(
        connection: ClientConnection,
        (message, request_id): (Frame, u32),
        heartbeat: Heartbeat,
        policy: &FailoverPolicy,
    ) -> Self {
        Self {
            connection,
            message,
            request_id,
            heartbeat,
            suspicion: policy.suspicion,
            next: Monotonic::now(),
        }
    }

    fn way(&self) -> &Way {
        &self.connection.way
    }

    /// Sends the question; returns the limit for the answer.
    fn ask(&mut self) -> Deadline {
        self.next = after(Monotonic::now(), self.heartbeat.interval);
        let until = Deadline::after(self.heartbeat.time_out);
        if self.connection.send(&mut self.message, until).is_err() {
            // Then there is no answer either.
            self.connection.close();
        }
        until
    }

    /// Receives the answer. One that arrived while the thread waited for another peer is in time.
    fn listen(&self, frame: &mut Frame, until: Deadline) -> Result<MessageHeader, Failure> {
        if !self.connection.link().await_input(until) {
            return Err(timeout(CompletionStatus::Maybe).into());
        }
        let until = until.max(Deadline::after(LOOK));
        let (id, kind) = (self.request_id, MessageType::LocateReply);
        self.connection.receive(id, kind, frame, (until, 0))
    }
}

impl HeartbeatState {
    fn watched(&mut self, way: &Way) -> &mut WatchedAddress {
        let i = self.watched.iter().position(|watched| watched.way == *way);
        let i = i.unwrap_or_else(|| {
            self.watched.push(WatchedAddress {
                way: way.clone(),
                connections: Vec::new(),
                has_peer: false,
            });
            self.watched.len() - 1
        });
        &mut self.watched[i]
    }
}

impl Heartbeats {
    /// Adds a connection to those that end when its server does not answer.
    pub(super) fn add(&self, way: &Way, connection: &Arc<dyn Connection>) {
        let mut state = self.state.lock();
        let connections = &mut state.watched(way).connections;
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(connection));
    }

    /// Whether the address gets no heartbeats yet.
    pub(in crate::client) fn lacks_peer(&self, way: &Way) -> bool {
        !self.state.lock().watched(way).has_peer
    }

    /// Sends heartbeats to a peer as long as there are connections to it.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(in crate::client) fn watch(
        self: &Arc<Self>,
        core: &Arc<Core>,
        key: &ConnectionKey,
        peer: HeartbeatPeer,
    ) -> Result<(), SystemException> {
        let mut state = self.state.lock();
        let watched = state.watched(peer.way());
        if std::mem::replace(&mut watched.has_peer, true) || state.is_over {
            return Ok(());
        }
        let thread = match &state.thread {
            Some(thread) => thread.clone(),
            None => {
                let (this, of) = (self.clone(), Arc::downgrade(core));
                let name = format!("heartbeat {}", core.config.orb_id);
                let thread = ConnectionThread::spawn(core, key, name, move |_| this.run(&of))?;
                state.thread = Some(thread.clone());
                thread
            }
        };
        state.new.push(peer);
        drop(state);
        self.changes.advance();
        thread.work_for(core, key.carries.network_priority().max(request_priority()))
    }

    /// Ends the thread, with the ORB.
    pub(super) fn end(&self) {
        self.state.lock().is_over = true;
        self.changes.advance();
    }

    fn run(&self, core: &Weak<Core>) {
        let mut frame = scope::frame();
        let mut peers = Vec::new();
        loop {
            let seen = self.changes.get();
            {
                let mut state = self.state.lock();
                if state.is_over {
                    return;
                }
                peers.append(&mut state.new);
            }
            let now = Monotonic::now();
            let mut due: Vec<_> = peers.extract_if(.., |peer| peer.next <= now).collect();
            if due.is_empty() {
                let next = peers.iter().map(|peer| peer.next).min();
                let until = next.map_or_else(|| Deadline::after(LONG), Deadline::at);
                self.changes.wait_while(seen, until);
                continue;
            }
            due.retain(|peer| self.is_in_use(peer.way()));
            // All are asked before the first answer is awaited, so they share the time.
            let mut asked: Vec<_> = due.into_iter().map(|mut p| (p.ask(), p)).collect();
            asked.sort_by_key(|(until, _)| until.instant());
            for (until, peer) in asked {
                match peer.listen(&mut frame, until) {
                    Ok(_) => peers.push(peer),
                    Err(failure) => self.give_up(&peer, failure, core),
                }
            }
        }
    }

    /// Whether there are connections to the address; if not, it is no longer watched.
    fn is_in_use(&self, way: &Way) -> bool {
        let mut state = self.state.lock();
        let connections = &state.watched(way).connections;
        let is_in_use = connections.iter().any(|c| c.strong_count() > 0);
        if !is_in_use {
            state.watched.retain(|watched| watched.way != *way);
        }
        is_in_use
    }

    /// Gives up a peer. If it did not answer in time, its address is suspected, and the connections
    /// to it end. If it ended the connection, it has ended the others as well, or has no room for
    /// this one: the next call by each binding finds out.
    fn give_up(&self, peer: &HeartbeatPeer, failure: Failure, core: &Weak<Core>) {
        let Some(core) = core.upgrade() else {
            return;
        };
        let is_silent = matches!(
            failure,
            Failure::Exception(e) if e.kind == SystemExceptionKind::Timeout
        );
        let silent = {
            let mut state = self.state.lock();
            let watched = state.watched(peer.way());
            watched.has_peer = false;
            let silent = is_silent.then(|| std::mem::take(&mut watched.connections));
            let silent = silent.unwrap_or_default();
            state
                .watched
                .retain(|w| w.has_peer || !w.connections.is_empty());
            silent
        };
        if is_silent {
            // Before the waiting calls go on, so that they prefer another address.
            core.client.health.suspect(peer.way(), peer.suspicion);
            let why = "no answer to a heartbeat";
            let incidents = &core.incidents;
            incidents.tell(Incident::FailedConnection, peer.way(), 0, &why);
        }
        core.rt.policies.renew_bindings();
        for connection in silent.iter().filter_map(Weak::upgrade) {
            connection.shutdown();
        }
    }
}

fn after(time: Monotonic, duration: Duration) -> Monotonic {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Monotonic::from_nanos(time.as_nanos().saturating_add(nanos))
}

/// The time to receive an answer that has arrived.
const LOOK: Duration = Duration::from_millis(1);
/// The limit of a wait without peers.
const LONG: Duration = Duration::from_secs(3600);
