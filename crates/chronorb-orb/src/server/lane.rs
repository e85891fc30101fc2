//! A lane: endpoints, a reactor, connections and threads of one priority,
//! shared with no other lane.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod room;
pub(super) mod setup;

use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_giop::connection::empty_message;
use chronorb_giop::{MessageType, SystemException};
use chronorb_rt::{
    BatonGuard, Deadline, Gate, Key, Monotonic, PiMutex, ReleaseOutcome, RemoveOutcome, SlotRef,
    Slots, Text, Wake, log, poll_unless_contended,
};
use chronorb_transport::{
    AcceptError, Acceptor, AcceptorEvent, Connection, Event, Interest, Reactor, WaitPolicy,
};
#[cfg(feature = "miop")]
use chronorb_transport::{Address, Endpoint};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::setup::LaneSetup;
use super::connection::{ServerConnection, Timeliness};
use super::datagram_peers::{DatagramPeers, is_datagram_peer};
use super::endpoints::{Endpoints, OpenEndpoint, no_resources};
use super::input::Input;
use super::load::Load;
use super::parking::Parking;
use super::queued::QueuedRequest;
use super::scheduler::PoolScheduler;
use super::strategy::LaneStrategy;
use super::watch::{LaneWatch, are_times_wanted};
#[cfg(feature = "access")]
use crate::access::{Judgement, TransportRules};
use crate::core::Core;
use crate::incident::{Incident, Incidents};
use crate::lanes::{LaneHandle, PublishedEndpoint};
use crate::peer::Peer;
use crate::quota::{OriginKey, Shares};
use crate::rtcorba::Priority;
use crate::stage::{Stage, StageProbe};

/// A lane of a thread pool: its endpoints, reactor, connections and threads, for requests of one
/// priority.
pub(crate) struct ServerLane {
    pub(super) setup: LaneSetup,
    reactor: Reactor,
    /// Emptied, and so closed, when the lane ends.
    acceptors: PiMutex<Vec<EndpointSlot>>,
    /// The lane, as POAs know it.
    pub(super) handle: Arc<LaneHandle>,
    /// Whether it reads requests; otherwise another lane does for it.
    reads: bool,
    /// Less urgent lanes for which it reads, the most urgent first. They end after it.
    pub(super) served_lanes: Box<[Arc<Self>]>,
    pub(super) connections: Slots<ServerConnection>,
    /// The quota of its connections.
    pub(super) room: Shares,
    input_timeout: Duration,
    pub(super) load: Arc<Load>,
    pub(super) incidents: Arc<Incidents>,
    /// The access rules for peers.
    #[cfg(feature = "access")]
    rules: TransportRules,
    /// A connection may still wait at an acceptor without a further event: no descriptor was left,
    /// or there were many.
    accept_again: AtomicBool,
    /// The acceptor that has reported input last, by its number from 1, which is called again
    /// before a wait; 0 for none. Only the one thread of such a lane changes it.
    reporter: AtomicUsize,
    /// The number of reports since the last wait.
    reports: AtomicU32,
    /// The time of the next check of slow peers, in nanoseconds.
    next_upkeep: AtomicU64,
    /// The time after which idle connections are closed.
    idle_timeout: Option<Duration>,
    /// The time of the next check for idle connections, in nanoseconds.
    next_idle_look: AtomicU64,
    /// The tick of the last check for idle connections.
    idle_mark: AtomicU32,
    /// The time of the next check for connections without a whole message, in nanoseconds.
    next_silent_look: AtomicU64,
    /// The tick of the last check for connections without a whole message.
    silent_mark: AtomicU32,
    datagram_peers: DatagramPeers,
    /// The requests that it has read and that wait for their POAs.
    pub(super) parking: Parking<QueuedRequest>,
    stop: Wake,
    stopping: AtomicBool,
    /// Threads that have not ended.
    pub(super) running: AtomicUsize,
    ended: Gate,
    /// Set once the log was told that the lane ends because of an error.
    has_failed: AtomicBool,
    /// Set once the log was told that a thread could not be started.
    pub(super) warned: AtomicBool,
    /// The number of the next thread, for its name.
    numbers: AtomicU32,
    pub(super) strategy: LaneStrategy,
    waiting: WaitPolicy,
    pub(super) watch: LaneWatch,
    probe: Option<StageProbe>,
}

/// The arrivals that a thread takes from an acceptor.
#[derive(Clone, Copy)]
enum Accepts {
    /// Connections alone.
    Connections,
    /// Also input of a connection, which the thread serves next.
    Arrivals,
}

/// An entry for an endpoint of a lane; `None` once the lane has left that multicast group.
type EndpointSlot = Option<OpenEndpoint>;

/// The reason why a lane's thread woke up.
pub(super) enum Work {
    Serve {
        key: Key,
        event: Event,
    },
    /// A parked request may continue.
    Resume,
    Stop,
    Nothing,
}

impl ServerLane {
    /// Returns a lane without threads yet. It also reads requests for the `served_lanes`.
    #[expect(clippy::disallowed_methods, reason = "once for each lane")]
    pub(super) fn open(
        core: &Core,
        setup: LaneSetup,
        endpoints: Endpoints,
        served_lanes: Box<[Arc<Self>]>,
        scheduler: Option<&Arc<PoolScheduler>>,
    ) -> Result<Self, SystemException> {
        let Endpoints {
            acceptors,
            published,
        } = endpoints;
        let load = Arc::new(Load::new(&core.config));
        let made = (|| {
            let reactor = Reactor::new()?;
            let stop = Wake::new()?;
            reactor.add(&stop, STOP, Interest::Everyone)?;
            let config = &core.config;
            let handle = Arc::new(LaneHandle {
                priority: setup.priority,
                published,
                bell: Wake::new()?,
            });
            let parking = Parking::new(config, load.clone(), handle.clone());
            reactor.add(&handle.bell, PARKED, Interest::Read)?;
            for (i, endpoint) in acceptors.iter().enumerate() {
                reactor.add(&endpoint.acceptor, ACCEPTORS + i as u64, Interest::Read)?;
            }
            Ok((reactor, stop, handle, parking))
        })();
        let no_descriptor =
            |e: io::Error| no_resources(&core.incidents, &setup, "no descriptor", &e);
        let (reactor, stop, handle, parking) = made.map_err(no_descriptor)?;
        let strategy = LaneStrategy::new(&core.config, &setup, scheduler);
        let what = "threads cannot be called";
        let strategy = strategy.map_err(|e| no_resources(&core.incidents, &setup, what, &e))?;
        Ok(Self {
            reactor,
            stop,
            parking,
            handle,
            served_lanes,
            reads: !acceptors.is_empty(),
            acceptors: PiMutex::new(acceptors.into_iter().map(Some).collect()),
            // Connections that are ending hold their slots for a moment longer.
            connections: Slots::new(core.config.max_connections.saturating_mul(2)),
            room: Shares::new(core.config.connection_limits()),
            input_timeout: core.config.input_timeout,
            next_upkeep: AtomicU64::new(0),
            idle_timeout: core.config.server_idle_timeout,
            next_idle_look: AtomicU64::new(0),
            idle_mark: AtomicU32::new(0),
            next_silent_look: AtomicU64::new(0),
            silent_mark: AtomicU32::new(0),
            datagram_peers: DatagramPeers::default(),
            load,
            incidents: core.incidents.clone(),
            #[cfg(feature = "access")]
            rules: core.config.server_transport_rules.clone(),
            accept_again: AtomicBool::new(false),
            reporter: AtomicUsize::new(0),
            reports: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            ended: Gate::new(0),
            has_failed: AtomicBool::new(false),
            warned: AtomicBool::new(false),
            numbers: AtomicU32::new(0),
            strategy,
            waiting: core.config.server_wait,
            watch: LaneWatch::new(are_times_wanted(core)),
            probe: core.config.stage_probe.clone(),
            setup,
        })
    }

    /// The priority of its threads; `None` for the default pool.
    pub(crate) fn priority(&self) -> Option<Priority> {
        self.setup.priority
    }

    /// The endpoints at which clients reach it.
    pub(crate) fn published(&self) -> impl Iterator<Item = &PublishedEndpoint> {
        self.handle.published.iter()
    }

    /// Whether it reads its requests itself.
    pub(crate) fn reads(&self) -> bool {
        self.reads
    }

    /// The lane of a priority, among this one and those that it serves; the least urgent lane if
    /// none has the priority.
    #[cfg(feature = "baselines")]
    pub(super) fn lane_of(self: &Arc<Self>, priority: Option<Priority>) -> &Arc<Self> {
        let mut lanes = std::iter::once(self).chain(&self.served_lanes);
        let own = lanes.find(|lane| priority.is_some() && lane.priority() == priority);
        own.unwrap_or_else(|| self.served_lanes.last().unwrap_or(self))
    }

    /// The index of the lane in its pool.
    pub(super) fn index(&self) -> usize {
        self.setup.id.1 as usize
    }

    /// Whether neither the lane nor the connection has ended.
    pub(super) fn is_live(&self, key: Key) -> bool {
        !self.is_stopping() && self.connections.get(key).is_some()
    }

    pub(super) fn next_number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Reports that its threads serve, and at which endpoints.
    pub(super) fn report_started(&self) {
        let setup = &self.setup;
        let priority = setup
            .priority
            .map_or(-1, |priority| i64::from(priority.value()));
        let lane = format_args!("lane {}", setup.name);
        let mut detail = Text::<256>::new();
        if log::is_wanted(log::Level::Info) {
            let scheduling = setup.scheduling;
            let _ = write!(detail, "{} threads, {scheduling}", setup.static_threads);
            for published in self.published() {
                let (scheme, way) = (&published.endpoint.scheme, &published.way);
                let _ = write!(detail, ", {scheme}://{way}");
            }
        }
        let incidents = &self.incidents;
        incidents.tell(Incident::StartedLane, &lane, priority, &detail);
    }

    /// Tells all its threads to end after their present work.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.stop.notify();
        if let Some(affinity) = self.strategy.affinity() {
            affinity.call_all_back(&self.connections);
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Waits for an event for at most `patience`, and accepts new connections itself.
    /// `called` says that the thread may be called by a kick. A thread with a request that leaves
    /// the reactor empty may `grow` the lane, which returns whether another thread comes.
    pub(super) fn next_work(
        &self,
        patience: Option<Duration>,
        called: bool,
        grow: impl FnOnce() -> bool,
    ) -> Work {
        let reporter = self.reporter.load(Ordering::Relaxed);
        if reporter != 0
            && let Some(work) = self.next_report(reporter)
        {
            return work;
        }
        let patience = match (patience, self.idle_look()) {
            (Some(patience), Some(idle)) => Some(patience.min(idle)),
            (patience, idle) => patience.or(idle),
        };
        let watched = self.is_watched();
        let time_out = match (patience, watched) {
            (Some(patience), true) => Some(patience.min(UPKEEP_PAUSE)),
            (None, true) => Some(UPKEEP_PAUSE),
            (patience, false) => patience,
        };
        let waited = match self.strategy.affinity() {
            None => self.wait(time_out, called),
            Some(affinity) => {
                affinity.stays.come();
                let waited = self.wait(time_out, called);
                if affinity.stays.go()
                    && matches!(waited, Ok(Some(event)) if event.token < ACCEPTORS)
                    && !grow()
                    && affinity.stays.has_stayers()
                {
                    affinity.call_one_back(&self.connections);
                }
                waited
            }
        };
        let event = match waited {
            Ok(event) => event,
            // The epoll set itself is broken: no request can be served any more.
            Err(error) => return self.fail(&error),
        };
        self.upkeep(self.input_timeout);
        event.map_or(Work::Nothing, |event| self.work_of(event))
    }

    /// Returns the work of an event. Accepts new connections itself.
    fn work_of(&self, event: Event) -> Work {
        match event.token {
            STOP => Work::Stop,
            PARKED => Work::Resume,
            token if token >= ACCEPTORS => {
                let reported = self.reported_input((token - ACCEPTORS) as usize);
                reported.unwrap_or(Work::Nothing)
            }
            token => Work::Serve {
                key: key_of(token),
                event,
            },
        }
    }

    /// Accepts connections that wait at an acceptor, or takes input that it reports.
    fn reported_input(&self, index: usize) -> Option<Work> {
        let token = self.accept(index, Accepts::Arrivals);
        let reporter = token.map_or(0, |_| index + 1);
        self.reporter.store(reporter, Ordering::Relaxed);
        token.map(|token| Work::Serve {
            key: key_of(token),
            event: Event::of_input(token),
        })
    }

    /// Takes further input of the acceptor that has reported some last. After some reports another
    /// event of the lane has a turn.
    #[inline(never)]
    fn next_report(&self, reporter: usize) -> Option<Work> {
        let reports = self.reports.load(Ordering::Relaxed);
        self.reports.store(reports + 1, Ordering::Relaxed);
        if reports >= MOST_REPORTS {
            self.reports.store(0, Ordering::Relaxed);
            let present = ACCEPTORS + (reporter - 1) as u64;
            match self.reactor.wait(Some(Duration::ZERO)) {
                Ok(Some(event))
                    if (ACCEPTORS..PARKED).contains(&event.token) && event.token != present =>
                {
                    // Its input is reported by events of the connections, because the thread has
                    // to call the present reporter again.
                    self.accept((event.token - ACCEPTORS) as usize, Accepts::Connections);
                    return Some(Work::Nothing);
                }
                Ok(Some(event)) => return Some(self.work_of(event)),
                Ok(None) => {}
                Err(error) => return Some(self.fail(&error)),
            }
        }
        self.upkeep(self.input_timeout);
        let work = self.reported_input(reporter - 1);
        if work.is_none() {
            self.reports.store(0, Ordering::Relaxed);
        }
        work
    }

    /// Ends the part of the calling thread, which was idle, in the lane, if the lane has grown and
    /// another thread is at the reactor. Calls threads back from idle connections.
    #[cold]
    pub(super) fn shrink(&self) -> bool {
        let (Some(growth), Some(affinity)) = (self.strategy.growth(), self.strategy.affinity())
        else {
            return false;
        };
        if is_turn(&growth.next_look, growth.idle_timeout) {
            let before = growth.mark.swap(self.load.advance(), Ordering::Relaxed);
            affinity.call_idle_back(&self.connections, before);
        }
        affinity.stays.is_attended() && growth.shrink()
    }

    /// Reports why the lane ends, once for all its threads.
    #[cold]
    fn fail(&self, error: &io::Error) -> Work {
        if !self.is_stopping() && !self.has_failed.swap(true, Ordering::Relaxed) {
            let number = i64::from(error.raw_os_error().unwrap_or(0));
            let lane = format_args!("lane {}", self.setup.name);
            let detail = format_args!("its threads end, since the epoll set is broken: {error}");
            let incidents = &self.incidents;
            incidents.tell(Incident::FailedLane, &lane, number, &detail);
        }
        Work::Stop
    }

    /// Waits on the reactor.
    fn wait(&self, time_out: Option<Duration>, called: bool) -> io::Result<Option<Event>> {
        // A thread that may be called by a kick has to be in the wait that the kick ends.
        if self.waiting != WaitPolicy::Block && !called {
            let bound = self.waiting.bound().min(time_out.unwrap_or(Duration::MAX));
            // Threads that poll a connection of their own take precedence: their poll is cheaper.
            let looked = poll_unless_contended(bound, || {
                let event = self.reactor.wait(Some(Duration::ZERO));
                event.transpose()
            });
            if let Some(event) = looked {
                return event.map(Some);
            }
        }
        if called {
            self.reactor.wait_or_kick(time_out)
        } else {
            self.reactor.wait(time_out)
        }
    }

    /// Whether the lane has to check peers or acceptors at intervals.
    fn is_watched(&self) -> bool {
        self.load.is_watched() || self.accept_again.load(Ordering::Relaxed)
    }

    /// Leaves an event that woke this thread to another thread.
    pub(super) fn put_back(&self, key: Key, event: Event) {
        if let Some(connection) = self.connections.get(key) {
            if event.hang_up {
                connection.set_hung_up();
            }
            self.rearm(&connection, key);
        }
    }

    /// Checks the times of slow peers, and accepts connections for which no descriptor was left: at
    /// intervals, also on a busy lane whose waits never time out.
    pub(super) fn upkeep(&self, input_timeout: Duration) {
        if let Some(pause) = self.idle_look()
            && is_turn(&self.next_idle_look, pause)
        {
            self.close_idle();
        }
        if !self.is_watched() {
            return;
        }
        if self.load.is_over() {
            self.relieve();
        }
        if !is_turn(&self.next_upkeep, UPKEEP_PAUSE) {
            return;
        }
        self.parking.ring_if_due();
        if self.load.has_silent() && is_turn(&self.next_silent_look, input_timeout) {
            self.close_silent();
        }
        if self.accept_again.swap(false, Ordering::Relaxed) {
            let slots = self.acceptors.lock().len();
            for index in 0..slots {
                self.accept(index, Accepts::Connections);
            }
        }
        if self.load.has_slow() {
            self.sweep(input_timeout);
        }
    }

    /// The interval of checks for idle connections, if they are closed.
    fn idle_look(&self) -> Option<Duration> {
        self.idle_timeout
            .or_else(|| self.datagram_peers.idle_look())
    }

    /// The connections, and their keys.
    fn present(&self) -> impl Iterator<Item = (Key, SlotRef<'_, ServerConnection>)> {
        (0..self.connections.bound()).filter_map(|index| self.connections.get_at(index))
    }

    /// Releases the input of a connection, and leaves to another thread what that one has missed.
    fn release(&self, input: BatonGuard<'_, Input>, connection: &ServerConnection, key: Key) {
        if matches!(input.release(), ReleaseOutcome::Again(_)) {
            self.rearm(connection, key);
        }
    }

    /// Closes connections without a message since the last check, in order: a client that has just
    /// sent a request sends it again on a new connection.
    #[cold]
    fn close_idle(&self) {
        let before = self.idle_mark.swap(self.load.advance(), Ordering::Relaxed);
        for (key, connection) in self.present() {
            // A thread that has the input is reading, or waits on the connection for a while yet.
            let Some(mut input) = connection.input.claim() else {
                continue;
            };
            let is_idle = connection.was_used_before(before) && connection.is_quiet();
            if input.idle_timeout.is_some() && is_idle && input.is_empty() {
                // A later request is not served; the client sends it again on a new connection.
                input.closed = true;
                connection.say_goodbye(MessageType::CloseConnection);
                self.end(key);
            } else {
                self.release(input, &connection, key);
            }
        }
    }

    /// Suspends events of a connection until it is [armed](Self::rearm) again. Returns whether that
    /// succeeded.
    pub(super) fn disarm(&self, connection: &ServerConnection, key: Key) -> bool {
        let disarmed = self.reactor.disarm(connection.transport(), token_of(key));
        disarmed.is_ok()
    }

    /// Arms a connection although no octet arrived: another thread is to continue with it.
    pub(super) fn rearm(&self, connection: &ServerConnection, key: Key) {
        let armed = self
            .reactor
            .rearm(connection.transport(), token_of(key), Interest::ReadWrite);
        if armed.is_err() {
            self.end(key);
        }
    }

    /// Takes over a connection that this ORB has opened, without reading it yet; `None` if there is
    /// no room.
    #[cfg(feature = "bidir")]
    pub(super) fn adopt(&self, transport: Box<dyn Connection>) -> Option<Key> {
        if self.is_stopping() || self.take_room(OriginKey::NONE).is_err() {
            return None;
        }
        let acceptors = self.acceptors.lock();
        let ceiling = acceptors.iter().flatten().find_map(|open| open.ceiling);
        drop(acceptors);
        let load = self.load.clone();
        let mut connection =
            ServerConnection::new(transport, load, self.idle_timeout, ceiling, OriginKey::NONE);
        connection.originate();
        self.insert(connection)
    }

    /// Begins to read a connection that was adopted.
    #[cfg(feature = "bidir")]
    pub(super) fn begin_reading(&self, connection: &ServerConnection, key: Key) {
        let interest = self.strategy.first_interest();
        let added = self
            .reactor
            .add(connection.transport(), token_of(key), interest);
        if added.is_err() {
            self.end(key);
        }
    }

    /// Adds a connection for which [room](Self::take_room) was taken.
    fn insert(&self, connection: ServerConnection) -> Option<Key> {
        let origin = connection.origin;
        let inserted = self.connections.insert(connection);
        if inserted.is_err() {
            self.room.give_back(origin, 1);
        }
        inserted.ok()
    }

    /// Ends a connection after the messages in progress. Its room is free at once, although a
    /// thread may still have the connection.
    pub(super) fn end(&self, key: Key) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        let origin = connection.origin;
        // Held, so that its calls are ended after it was removed.
        #[cfg(feature = "bidir")]
        let ending = self.strategy.scheduler().map(|_| connection);
        #[cfg(not(feature = "bidir"))]
        drop(connection);
        let removed = self.connections.remove(key);
        if removed.was_there() {
            self.room.give_back(origin, 1);
        }
        if matches!(removed, RemoveOutcome::InUse)
            && let Some(affinity) = self.strategy.affinity()
        {
            // Otherwise a thread that waits on the connection would go on waiting.
            affinity.call_from(&self.connections, key);
        }
        #[cfg(feature = "bidir")]
        if let Some(connection) = ending {
            connection.end_calls(false);
        }
    }

    /// Accepts connections that wait at an acceptor; after some of them other work may proceed.
    /// Returns the token of a connection with input, if the acceptor reports one.
    fn accept(&self, index: usize, what: Accepts) -> Option<u64> {
        if let Some(probe) = &self.probe {
            probe.at(Stage::Accept);
        }
        let acceptors = self.acceptors.lock();
        let Some(Some(OpenEndpoint { acceptor, ceiling })) = acceptors.get(index) else {
            return None;
        };
        for _ in 0..MAX_ACCEPTED {
            let arrival = match what {
                Accepts::Connections => acceptor
                    .accept()
                    .map(|of| of.map(AcceptorEvent::Connection)),
                Accepts::Arrivals => acceptor.next_arrival(),
            };
            match arrival {
                Ok(Some(AcceptorEvent::Connection(transport))) => self.admit(transport, *ceiling),
                Ok(Some(AcceptorEvent::Input(token))) => return Some(token),
                Ok(None) => return None,
                // An evicted connection leaves its descriptor to one that waits.
                Err(AcceptError::Exhausted)
                    if self.evict_datagram_peer()
                        || (is_waited_at(&**acceptor) && self.make_room(OriginKey::NONE)) => {}
                // A waiting connection may have failed, and no event reports those behind it.
                Err(error) => {
                    let lane = format_args!("lane {}", self.setup.name);
                    let incidents = &self.incidents;
                    incidents.tell(Incident::FailedAccept, &lane, 0, &error);
                    self.accept_again.store(true, Ordering::Relaxed);
                    return None;
                }
            }
        }
        // No event reports connections that the transport has accepted already.
        self.accept_again.store(true, Ordering::Relaxed);
        let token = ACCEPTORS + index as u64;
        let _ = self.reactor.rearm(acceptor, token, Interest::Read);
        None
    }

    /// Listens at a multicast group, unless the lane already does.
    ///
    /// # Errors
    /// `NO_RESOURCES` where the endpoint cannot be opened.
    #[cfg(feature = "miop")]
    pub(crate) fn join(&self, core: &Core, endpoint: &Endpoint) -> Result<(), SystemException> {
        let mut acceptors = self.acceptors.lock();
        let is_group = |slot: &EndpointSlot| {
            slot.as_ref()
                .is_some_and(|open| is_at(&*open.acceptor, &endpoint.address))
        };
        if self.is_stopping() || acceptors.iter().any(is_group) {
            return Ok(());
        }
        let opened = Endpoints::open(core, &self.setup, std::slice::from_ref(endpoint))?;
        for opened in opened.acceptors {
            let free = acceptors.iter().position(Option::is_none);
            let index = free.unwrap_or_else(|| {
                acceptors.push(None);
                acceptors.len() - 1
            });
            let token = ACCEPTORS + index as u64;
            let added = self.reactor.add(&opened.acceptor, token, Interest::Read);
            added.map_err(|e| no_resources(&self.incidents, &self.setup, "no endpoint", &e))?;
            acceptors[index] = Some(opened);
        }
        Ok(())
    }

    /// Stops listening at a multicast group.
    #[cfg(feature = "miop")]
    pub(crate) fn leave(&self, group: &Address) {
        let mut acceptors = self.acceptors.lock();
        for slot in acceptors.iter_mut() {
            slot.take_if(|endpoint| is_at(&*endpoint.acceptor, group));
        }
        drop(acceptors);
        for key in self.connections.keys() {
            let hears = |connection: &ServerConnection| {
                connection.many_peers && is_bound_to(connection.transport(), group)
            };
            if self.connections.get(key).is_some_and(|c| hears(&c)) {
                self.end(key);
            }
        }
    }

    /// Whether the access rules permit a peer, as far as its identity is known. Notes a refused
    /// peer.
    #[cfg(feature = "access")]
    pub(super) fn permits(&self, transport: &dyn Connection) -> bool {
        let Judgement::Refused(rule) = self.rules.judge(transport) else {
            return true;
        };
        let peer = transport.peer();
        self.incidents
            .note(Incident::PeerRefused, &peer, rule as i64);
        false
    }

    #[cfg(not(feature = "access"))]
    pub(super) fn permits(&self, _: &dyn Connection) -> bool {
        true
    }

    fn admit(&self, transport: Box<dyn Connection>, ceiling: Option<Priority>) {
        if !self.permits(&*transport) {
            return;
        }
        self.watch.accepted.fetch_add(1, Ordering::Relaxed);
        let is_datagram_peer = is_datagram_peer(transport.carriage());
        let origin = OriginKey::for_limits(&*transport);
        if let Err(incident) = self.take_room(origin) {
            self.incidents.note(incident, &Peer::new(&*transport), 0);
            // In order, so that the peer knows that no request was processed.
            let _ = transport.try_send(&empty_message(MessageType::CloseConnection));
            return;
        }
        self.load.advance();
        if is_datagram_peer {
            self.datagram_peers.add();
        }
        let load = self.load.clone();
        let connection = ServerConnection::new(transport, load, self.idle_timeout, ceiling, origin);
        let Some(key) = self.insert(connection) else {
            return;
        };
        if let Some(connection) = self.connections.get(key) {
            let interest = self.strategy.first_interest();
            let added = self
                .reactor
                .add(connection.transport(), token_of(key), interest);
            if added.is_err() {
                self.end(key);
            } else if self.strategy.serves_arrivals() {
                connection.transport().set_token(token_of(key));
            }
        }
    }

    /// Closes connections whose peers have neither completed a message nor taken a reply in time.
    fn sweep(&self, input_timeout: Duration) {
        for (key, connection) in self.present() {
            match connection.timeliness(input_timeout) {
                Timeliness::Fine => {}
                Timeliness::Late => {
                    self.note_late(&connection);
                    self.end(key);
                }
                Timeliness::Disturbed => self.rearm(&connection, key),
            }
        }
    }

    /// Notes that a connection ends because its peer is too slow.
    #[cold]
    pub(super) fn note_late(&self, connection: &ServerConnection) {
        let incident = if connection.transport().is_established() {
            Incident::LatePeer
        } else {
            Incident::FailedHandshake
        };
        let seconds = self.input_timeout.as_secs() as i64;
        self.incidents.note(incident, connection, seconds);
    }

    /// Waits until all its threads have ended and it is closed; returns whether that was in time.
    pub(super) fn wait_until_ended(&self, deadline: Deadline) -> bool {
        self.ended.wait_while(0, deadline) != 0
    }

    /// Removes a thread, or a request that it handed off, from the lane; the last one closes it.
    pub(super) fn leave_one(&self, core: &Core) {
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.close();
            self.served_lanes
                .iter()
                .for_each(|lane| lane.leave_one(core));
            super::state::lane_ended(core);
        }
    }

    /// Closes the endpoints and says goodbye to all peers.
    fn close(&self) {
        let lane = format_args!("lane {}", self.setup.name);
        self.incidents.note(Incident::EndedLane, &lane, 0);
        self.acceptors.lock().clear();
        let deadline = Deadline::after(LINGER);
        for key in self.connections.keys() {
            if let Some(connection) = self.connections.get(key) {
                connection.drain(deadline);
                connection.say_goodbye(MessageType::CloseConnection);
            }
            self.end(key);
        }
        self.ended.set(1);
    }
}

/// Whether a connection waits to be accepted: accept(2) reports a lack of descriptors before it
/// looks for one.
fn is_waited_at(acceptor: &dyn Acceptor) -> bool {
    let mut waited = [PollFd::new(&acceptor, PollFlags::IN)];
    poll(&mut waited, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Whether an acceptor is the endpoint of a group.
#[cfg(feature = "miop")]
fn is_at(acceptor: &dyn Acceptor, group: &Address) -> bool {
    acceptor.published() == std::slice::from_ref(group)
}

/// Whether messages to a group arrive by the connection.
#[cfg(feature = "miop")]
#[expect(clippy::disallowed_methods, reason = "once for each connection")]
fn is_bound_to(connection: &dyn Connection, group: &Address) -> bool {
    let local = rustix::net::getsockname(connection).ok();
    let local = local.and_then(|local| std::net::SocketAddr::try_from(local).ok());
    local.is_some_and(|local| Address::host(local.ip().to_string(), local.port()) == *group)
}

/// Whether the calling thread has to do the work that is done once in each `pause`.
fn is_turn(next: &AtomicU64, pause: Duration) -> bool {
    let now = Monotonic::now();
    let due = next.load(Ordering::Relaxed);
    let then = (now + pause).as_nanos();
    let exchange = || next.compare_exchange(due, then, Ordering::Relaxed, Ordering::Relaxed);
    now.as_nanos() >= due && exchange().is_ok()
}

/// The reactor token of a connection.
fn token_of(key: Key) -> u64 {
    (u64::from(key.index) << 32) | u64::from(key.generation)
}

/// The connection of a reactor token.
fn key_of(token: u64) -> Key {
    Key {
        index: (token >> 32) as u32,
        generation: token as u32,
    }
}

/// Tokens above those of connections, whose indices are small.
const STOP: u64 = u64::MAX;
const PARKED: u64 = u64::MAX - 1;
const ACCEPTORS: u64 = 0xffff_ffff_0000_0000;
/// The interval of checks of slow peers, and of acceptors without a descriptor.
pub(super) const UPKEEP_PAUSE: Duration = Duration::from_millis(100);
/// The number of connections that are accepted in one go.
const MAX_ACCEPTED: usize = 16;
/// The number of successive reports of input after which other events have a turn.
const MOST_REPORTS: u32 = 16;
/// The time that all peers of a lane together have to take their last replies at its end.
const LINGER: Duration = Duration::from_secs(2);
