//! A lane: endpoints, a reactor, connections and threads of one priority,
//! shared with no other.

pub(super) mod origin;
mod room;
pub(super) mod setup;

use std::fmt::{self, Write};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_giop::connection::empty_message;
use chronorb_giop::{MessageType, SystemException};
use chronorb_rt::{
    Deadline, Gate, Key, Monotonic, PiMutex, Released, Removed, Slots, Text, Wake, log,
    look_unless_wanted,
};
use chronorb_transport::{AcceptError, Acceptor, Connection, Event, Interest, Reactor, Waiting};
#[cfg(feature = "miop")]
use chronorb_transport::{Address, Endpoint};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::origin::Origin;
use self::setup::LaneSetup;
use super::connection::{ServerConnection, Timeliness};
use super::doors::{Doors, OpenDoor, Published, no_resources};
use super::load::Load;
use super::parking::Parking;
use super::place::{Places, is_place};
use super::queued::QueuedRequest;
use super::scheduler::PoolScheduler;
use super::strategy::LaneStrategy;
use super::watch::{LaneWatch, are_times_wanted};
#[cfg(feature = "access")]
use crate::access::{Judgement, TransportRules};
use crate::core::Core;
use crate::incident::{Incident, Incidents};
use crate::observe::{Stage, StageProbe};
use crate::rtcorba::Priority;

/// A lane of a thread pool.
pub(crate) struct Lane {
    setup: LaneSetup,
    reactor: Reactor,
    /// Emptied, and so closed, with the lane.
    acceptors: PiMutex<Vec<Door>>,
    published: Arc<[Published]>,
    /// Whether it reads; else another lane does for it.
    has_doors: bool,
    /// Lanes for which it reads, the most urgent first, all of them less urgent. They end after it.
    behind: Box<[Arc<Self>]>,
    pub(super) connections: Slots<ServerConnection>,
    max_connections: u32,
    /// How many of them one peer may have.
    max_per_peer: usize,
    input_timeout: Duration,
    pub(super) load: Arc<Load>,
    pub(super) incidents: Arc<Incidents>,
    /// Which peers may connect.
    #[cfg(feature = "access")]
    rules: TransportRules,
    /// A connection may still wait at an acceptor, which tells of it no more: no descriptor was left, or
    /// there were many.
    accept_again: AtomicBool,
    /// When slow peers are looked at next, in nanoseconds.
    next_upkeep: AtomicU64,
    /// After which idle connections are closed.
    idle_timeout: Option<Duration>,
    /// When they are looked at next, in nanoseconds.
    next_idle_look: AtomicU64,
    /// The tick of the last look.
    idle_mark: AtomicU32,
    /// When connections are looked at next on which no whole message has come, in nanoseconds.
    next_silent_look: AtomicU64,
    /// The tick of the last look.
    silent_mark: AtomicU32,
    places: Places,
    parking: Parking<QueuedRequest>,
    stop: Wake,
    stopping: AtomicBool,
    /// Threads that have not ended.
    pub(super) running: AtomicUsize,
    ended: Gate,
    /// It was said that the lane ends by an error.
    has_failed: AtomicBool,
    /// It was said that a thread could not be had.
    pub(super) warned: AtomicBool,
    /// The number of the next thread, for its name.
    numbers: AtomicU32,
    strategy: LaneStrategy,
    waiting: Waiting,
    watch: LaneWatch,
    probe: Option<StageProbe>,
}

/// An endpoint of a lane; none in the place of a group that it has left.
type Door = Option<OpenDoor>;

/// What a lane's thread woke up for.
pub(super) enum Work {
    Serve {
        key: Key,
        event: Event,
    },
    /// A parked request may go on.
    Resume,
    Stop,
    Nothing,
}

impl Lane {
    /// A lane without threads yet. Requests for the lanes `behind` it come in by its doors too.
    pub(super) fn open(
        core: &Core,
        setup: LaneSetup,
        doors: Doors,
        behind: Box<[Arc<Self>]>,
        scheduler: Option<&Arc<PoolScheduler>>,
    ) -> Result<Self, SystemException> {
        let Doors {
            acceptors,
            published,
        } = doors;
        let load = Arc::new(Load::new(&core.config));
        let made = (|| {
            let reactor = Reactor::new()?;
            let stop = Wake::new()?;
            reactor.add(&stop, STOP, Interest::Everyone)?;
            let config = &core.config;
            let parking = Parking::new(config, load.clone())?;
            reactor.add(&parking.bell, PARKED, Interest::Read)?;
            for (i, door) in acceptors.iter().enumerate() {
                reactor.add(&door.acceptor, ACCEPTORS + i as u64, Interest::Read)?;
            }
            Ok((reactor, stop, parking))
        })();
        let no_descriptor =
            |e: io::Error| no_resources(&core.incidents, &setup, "no descriptor", &e);
        let (reactor, stop, parking) = made.map_err(no_descriptor)?;
        let strategy = core.config.threadpool_strategy;
        let strategy = LaneStrategy::new(strategy, setup.static_threads, scheduler);
        let what = "threads cannot be called";
        let strategy = strategy.map_err(|e| no_resources(&core.incidents, &setup, what, &e))?;
        Ok(Self {
            reactor,
            stop,
            parking,
            published,
            behind,
            has_doors: !acceptors.is_empty(),
            acceptors: PiMutex::new(acceptors.into_iter().map(Some).collect()),
            // Those that are ending hold their slots for a moment longer.
            connections: Slots::new(core.config.max_connections.saturating_mul(2)),
            max_connections: core.config.max_connections,
            max_per_peer: core.config.most_of_a_peer(),
            input_timeout: core.config.input_timeout,
            next_upkeep: AtomicU64::new(0),
            idle_timeout: core.config.server_idle_timeout,
            next_idle_look: AtomicU64::new(0),
            idle_mark: AtomicU32::new(0),
            next_silent_look: AtomicU64::new(0),
            silent_mark: AtomicU32::new(0),
            places: Places::default(),
            load,
            incidents: core.incidents.clone(),
            #[cfg(feature = "access")]
            rules: core.config.server_transport_rules.clone(),
            accept_again: AtomicBool::new(false),
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

    /// Its priority; `None` for the default pool.
    pub(crate) fn priority(&self) -> Option<Priority> {
        self.setup.priority
    }

    /// Where clients reach it.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Published> {
        self.published.iter()
    }

    /// Whether it reads what comes for it itself.
    pub(crate) fn has_doors(&self) -> bool {
        self.has_doors
    }

    /// The lanes for which it reads beside itself.
    pub(super) fn behind(&self) -> &[Arc<Self>] {
        &self.behind
    }

    /// The lane of a priority, of this one and those behind it; the least urgent, where none has it.
    #[cfg(feature = "baselines")]
    pub(super) fn lane_of(self: &Arc<Self>, priority: Option<Priority>) -> &Arc<Self> {
        let mut lanes = std::iter::once(self).chain(&self.behind);
        let own = lanes.find(|lane| priority.is_some() && lane.priority() == priority);
        own.unwrap_or_else(|| self.behind.last().unwrap_or(self))
    }

    pub(super) fn setup(&self) -> &LaneSetup {
        &self.setup
    }

    /// Its place in its pool.
    pub(super) fn index(&self) -> usize {
        self.setup.id.1 as usize
    }

    #[inline]
    pub(super) fn strategy(&self) -> &LaneStrategy {
        &self.strategy
    }

    /// Whether neither the lane nor the connection has ended.
    pub(super) fn is_live(&self, key: Key) -> bool {
        !self.is_stopping() && self.connections.get(key).is_some()
    }

    /// The requests that came in by it and wait for their POAs.
    pub(super) fn parking(&self) -> &Parking<QueuedRequest> {
        &self.parking
    }

    /// Has a thread look whether parked requests may go on.
    pub(crate) fn ring(&self) {
        self.parking.bell.notify();
    }

    pub(super) fn watch(&self) -> &LaneWatch {
        &self.watch
    }

    pub(super) fn next_number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Says that its threads serve, and where.
    pub(super) fn tell_started(&self) {
        let setup = &self.setup;
        let priority = setup
            .priority
            .map_or(-1, |priority| i64::from(priority.value()));
        let lane = format_args!("lane {}", setup.name);
        let mut detail = Text::<256>::new();
        if log::is_wanted(log::Level::Info) {
            let scheduling = setup.scheduling;
            let _ = write!(detail, "{} threads, {scheduling}", setup.static_threads);
            for place in self.published() {
                let _ = write!(detail, ", {}://{}", place.endpoint.scheme, place.way);
            }
        }
        let incidents = &self.incidents;
        incidents.tell(Incident::StartedLane, &lane, priority, &detail);
    }

    /// Tells all its threads to end after what they are doing.
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

    /// Waits for something to do, at most for `patience`; connections that only need to be taken in are.
    /// `called` says that the thread may be called by a kick.
    pub(super) fn next_work(&self, patience: Option<Duration>, called: bool) -> Work {
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
                {
                    affinity.call_one_back(&self.connections);
                }
                waited
            }
        };
        let event = match waited {
            Ok(event) => event,
            // The set itself is broken: nothing can be served any more.
            Err(error) => return self.fail(&error),
        };
        self.upkeep(self.input_timeout);
        match event {
            None => Work::Nothing,
            Some(event) => match event.token {
                STOP => Work::Stop,
                PARKED => Work::Resume,
                token if token >= ACCEPTORS => {
                    self.accept((token - ACCEPTORS) as usize);
                    Work::Nothing
                }
                token => Work::Serve {
                    key: key_of(token),
                    event,
                },
            },
        }
    }

    /// Says why the lane ends, once for all its threads.
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

    /// Waits on the set.
    fn wait(&self, time_out: Option<Duration>, called: bool) -> io::Result<Option<Event>> {
        // Who may be called by a kick has to be in the wait that it ends.
        if self.waiting != Waiting::Block && !called {
            let bound = self.waiting.bound().min(time_out.unwrap_or(Duration::MAX));
            // Who has a connection to itself has less far to look.
            let looked = look_unless_wanted(bound, || {
                let event = self.reactor.wait(Some(Duration::ZERO));
                event.transpose()
            });
            if let Some(event) = looked {
                return event.map(Some);
            }
        }
        match called {
            true => self.reactor.wait_or_kick(time_out),
            false => self.reactor.wait(time_out),
        }
    }

    /// Whether something is to be looked at now and then.
    fn is_watched(&self) -> bool {
        self.load.is_watched() || self.accept_again.load(Ordering::Relaxed)
    }

    /// Leaves what a thread was woken for to another one.
    pub(super) fn put_back(&self, key: Key, event: Event) {
        if let Some(connection) = self.connections.get(key) {
            if event.hang_up {
                connection.set_hung_up();
            }
            self.rearm(&connection, key);
        }
    }

    /// Watches the time of slow peers, and takes in connections for which no descriptor was
    /// left: now and then, and on a busy lane too, whose waits never time out.
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
            let doors = self.acceptors.lock().len();
            (0..doors).for_each(|index| self.accept(index));
        }
        if self.load.has_slow() {
            self.sweep(input_timeout);
        }
    }

    /// How often it looks for idle connections, if it does.
    fn idle_look(&self) -> Option<Duration> {
        self.idle_timeout.or_else(|| self.places.look())
    }

    /// Closes the connections on which nothing has come since the last look, in order: a client that
    /// has just sent a request sends it again, on a new one.
    #[cold]
    fn close_idle(&self) {
        let before = self.idle_mark.swap(self.load.advance(), Ordering::Relaxed);
        for index in 0..self.connections.bound() {
            let Some((key, connection)) = self.connections.get_at(index) else {
                continue;
            };
            // Who has the input is reading, or stays with the connection for a while yet.
            let Some(mut input) = connection.input.claim() else {
                continue;
            };
            let is_idle = connection.was_used_before(before) && connection.is_quiet();
            if input.idle_timeout.is_some() && is_idle && input.is_empty() {
                // What comes too late is not served, since the client sends it again.
                input.closed = true;
                connection.say_goodbye(MessageType::CloseConnection);
                self.end(key);
            } else if matches!(input.release(), Released::Again(_)) {
                self.rearm(&connection, key);
            }
        }
    }

    /// Suspends events of a connection until it is [armed](Self::rearm) again. Returns whether that
    /// succeeded.
    pub(super) fn disarm(&self, connection: &ServerConnection, key: Key) -> bool {
        let disarmed = self.reactor.disarm(connection.transport(), token_of(key));
        disarmed.is_ok()
    }

    /// Arms a connection, although no octet arrived: another thread is to continue with it.
    pub(super) fn rearm(&self, connection: &ServerConnection, key: Key) {
        let armed = self
            .reactor
            .rearm(connection.transport(), token_of(key), Interest::ReadWrite);
        if armed.is_err() {
            self.end(key);
        }
    }

    /// Ends a connection, after what is in progress.
    pub(super) fn end(&self, key: Key) {
        let removed = self.connections.remove(key);
        if let (Removed::InUse, Some(affinity)) = (removed, self.strategy.affinity()) {
            // A thread that stays with it would wait on.
            affinity.call_from(&self.connections, key);
        }
    }

    /// Takes in connections that wait at an acceptor; after some of them others have a right to the thread too.
    fn accept(&self, index: usize) {
        if let Some(probe) = &self.probe {
            probe.at(Stage::Accept);
        }
        let acceptors = self.acceptors.lock();
        let Some(Some(OpenDoor { acceptor, ceiling })) = acceptors.get(index) else {
            return;
        };
        for _ in 0..MAX_ACCEPTED {
            match acceptor.accept() {
                Ok(Some(transport)) => self.admit(transport, *ceiling),
                Ok(None) => return,
                // The descriptor of a connection that nobody uses serves one that waits.
                Err(AcceptError::Exhausted)
                    if self.free_place() || (is_waited_at(&**acceptor) && self.make_room(None)) => {
                }
                // What has failed may be a connection that waits, and no event tells of those behind
                // it.
                Err(error) => {
                    let lane = format_args!("lane {}", self.setup.name);
                    let incidents = &self.incidents;
                    incidents.tell(Incident::FailedAccept, &lane, 0, &error);
                    self.accept_again.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
        // What has left the kernel already is told by no event.
        self.accept_again.store(true, Ordering::Relaxed);
        let token = ACCEPTORS + index as u64;
        let _ = self.reactor.rearm(acceptor, token, Interest::Read);
    }

    /// Listens at a group too, unless it does already.
    ///
    /// # Errors
    /// `NO_RESOURCES` where that cannot be had.
    #[cfg(feature = "miop")]
    pub(crate) fn join(&self, core: &Core, endpoint: &Endpoint) -> Result<(), SystemException> {
        let mut acceptors = self.acceptors.lock();
        let is_group = |door: &Door| {
            door.as_ref()
                .is_some_and(|door| is_at(&*door.acceptor, &endpoint.address))
        };
        if self.is_stopping() || acceptors.iter().any(is_group) {
            return Ok(());
        }
        let opened = Doors::open(core, &self.setup, std::slice::from_ref(endpoint))?;
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

    /// Does not listen at a group any more.
    #[cfg(feature = "miop")]
    pub(crate) fn leave(&self, group: &Address) {
        let mut acceptors = self.acceptors.lock();
        for door in acceptors.iter_mut() {
            door.take_if(|door| is_at(&*door.acceptor, group));
        }
        drop(acceptors);
        for key in self.connections.keys() {
            let hears = |connection: &ServerConnection| {
                connection.has_many_peers() && is_bound_to(connection.transport(), group)
            };
            if self.connections.get(key).is_some_and(|c| hears(&c)) {
                self.end(key);
            }
        }
    }

    /// Whether the access rules permit a peer, as far as its identity is known. Notes a peer that they
    /// refuse.
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
        let is_place = is_place(transport.carriage());
        let origin = Origin::of(&*transport);
        if let Some(incident) = self.no_room_for(origin) {
            self.incidents.note(incident, &Peer(&*transport), 0);
            // In order, so that the peer knows that nothing was processed.
            let _ = transport.try_send(&empty_message(MessageType::CloseConnection));
            return;
        }
        self.load.advance();
        if is_place {
            self.places.add();
        }
        let load = self.load.clone();
        let connection = ServerConnection::new(transport, load, self.idle_timeout, ceiling, origin);
        let Ok(key) = self.connections.insert(connection) else {
            return;
        };
        if let Some(connection) = self.connections.get(key) {
            let interest = self.strategy.first_interest();
            let added = self
                .reactor
                .add(connection.transport(), token_of(key), interest);
            if added.is_err() {
                self.end(key);
            }
        }
    }

    /// Why there is no room for a connection more of an origin, after others have made room.
    fn no_room_for(&self, origin: Option<Origin>) -> Option<Incident> {
        if let Some(its) = origin
            && self.connections_of(its) >= self.max_per_peer
            && !self.make_room(origin)
        {
            return Some(Incident::TooManyOfPeer);
        }
        let is_full = self.connections.len() as u64 >= u64::from(self.max_connections);
        (is_full && !self.make_room(None)).then_some(Incident::ServerFull)
    }

    /// Closes connections whose peers began a message or were sent one, and did not go on with it.
    fn sweep(&self, input_timeout: Duration) {
        for index in 0..self.connections.bound() {
            let Some((key, connection)) = self.connections.get_at(index) else {
                continue;
            };
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

    /// Notes that a connection ends since its peer is too slow.
    #[cold]
    pub(super) fn note_late(&self, connection: &ServerConnection) {
        let incident = match connection.transport().is_established() {
            true => Incident::LatePeer,
            false => Incident::FailedHandshake,
        };
        let seconds = self.input_timeout.as_secs() as i64;
        self.incidents.note(incident, connection, seconds);
    }

    /// Waits until all its threads have ended, and it is closed; returns whether that is so in time.
    pub(super) fn wait_until_ended(&self, deadline: Deadline) -> bool {
        self.ended.wait_while(0, deadline) != 0
    }

    /// A thread, or a request that it handed on, leaves the lane; the last one closes it.
    pub(super) fn leave_one(&self, core: &Core) {
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.close();
            self.behind.iter().for_each(|lane| lane.leave_one(core));
            core.lane_ended();
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

/// The peer of a connection, for messages.
struct Peer<'c>(&'c dyn Connection);

impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.peer())
    }
}

/// Whether a connection waits to be taken in: accept(2) finds that no descriptor is left before it
/// looks.
fn is_waited_at(acceptor: &dyn Acceptor) -> bool {
    let mut waited = [PollFd::new(&acceptor, PollFlags::IN)];
    poll(&mut waited, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Whether it is the endpoint of a group.
#[cfg(feature = "miop")]
fn is_at(acceptor: &dyn Acceptor, group: &Address) -> bool {
    acceptor.published() == std::slice::from_ref(group)
}

/// Whether what is sent to a group comes by the connection.
#[cfg(feature = "miop")]
fn is_bound_to(connection: &dyn Connection, group: &Address) -> bool {
    let local = rustix::net::getsockname(connection).ok();
    let local = local.and_then(|local| std::net::SocketAddr::try_from(local).ok());
    local.is_some_and(|local| Address::host(local.ip().to_string(), local.port()) == *group)
}

/// Whether it is the calling thread's turn to do what is done once in each `pause`.
fn is_turn(next: &AtomicU64, pause: Duration) -> bool {
    let now = Monotonic::now();
    let due = next.load(Ordering::Relaxed);
    let then = (now + pause).as_nanos();
    let exchange = || next.compare_exchange(due, then, Ordering::Relaxed, Ordering::Relaxed);
    now.as_nanos() >= due && exchange().is_ok()
}

/// The token of a connection in the reactor of its lane.
fn token_of(key: Key) -> u64 {
    (u64::from(key.index) << 32) | u64::from(key.generation)
}

/// The connection of a token.
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
/// How often slow peers, and acceptors without a descriptor, are looked at.
pub(super) const UPKEEP_PAUSE: Duration = Duration::from_millis(100);
/// Connections that are taken in at a time.
const MAX_ACCEPTED: usize = 16;
/// How long all peers of a lane together have to take their last replies at its end.
const LINGER: Duration = Duration::from_secs(2);
