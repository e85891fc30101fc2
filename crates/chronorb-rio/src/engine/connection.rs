//! A connection: its own small TCP/IP stack, and the notification of its holder.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chronorb_rt::{Monotonic, PiMutex, Wake};
use chronorb_transport::IoError;
use rustix::io::Errno;
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::wire::{HardwareAddress, IpCidr};

use super::clock::{protocol_duration, protocol_time, real_time};
use super::device::{Egress, Envelope, Port};
use super::send_position::SendPosition;
use super::table::Flow;

/// A slot for a connection, with the parts that are accessible without its lock.
pub(super) struct Slot {
    pub(super) connection: PiMutex<Connection>,
    /// The event descriptor for input, and for room if no thread blocks until there is room. It is
    /// new for each connection. Otherwise a set that still watches the former connection's
    /// descriptor would observe the new one.
    bell: PiMutex<Option<Arc<Wake>>>,
    /// The event descriptor for room if a thread blocks to send.
    room_bell: OnceLock<Wake>,
    /// The token by which a thread that does the work of the class reports input; [`NO_TOKEN`]
    /// leaves that to the bell. It is read after the connection's lock was released, and so a
    /// holder that has changed it sees all input of which the bell was not notified.
    token: AtomicU64,
    /// The listener that has accepted the connection. The lock of the ingress guards it.
    listener: AtomicUsize,
}

/// The thread that takes a step, as far as it needs no notification.
#[derive(Clone, Copy, Debug)]
pub(super) enum Attendant<'a> {
    /// A thread that serves no connection.
    Nobody,
    /// A thread that checks this connection anyway.
    Of(usize),
    /// A thread that serves connections of this listener that have tokens, which the step puts
    /// here.
    AtListener(usize, &'a InputTokens),
}

/// The tokens of some connections that have input, in the order in which they got it.
#[derive(Debug, Default)]
pub(super) struct InputTokens {
    tokens: [Cell<u64>; TOKENS],
    first: Cell<usize>,
    end: Cell<usize>,
}

impl InputTokens {
    /// Adds a token. Returns whether there is room for it.
    fn push(&self, token: u64) -> bool {
        let end = self.end.get();
        let room = self.tokens.get(end);
        if let Some(room) = room {
            room.set(token);
            self.end.set(end + 1);
        }
        room.is_some()
    }

    /// Takes the next token.
    pub(super) fn pop(&self) -> Option<u64> {
        let first = self.first.get();
        if first == self.end.get() {
            self.first.set(0);
            self.end.set(0);
            return None;
        }
        self.first.set(first + 1);
        Some(self.tokens[first].get())
    }
}

impl Attendant<'_> {
    /// Returns whether the thread serves the input of a slot, so that its bell need not ring.
    fn takes(self, index: usize, slot: &Slot, changes: Changes) -> bool {
        match self {
            Self::Nobody => false,
            Self::Of(attended) => attended == index,
            Self::AtListener(listener, tokens) => {
                let token = slot.token.load(Ordering::Relaxed);
                let is_own = slot.listener.load(Ordering::Relaxed) == listener;
                changes.input && is_own && token != NO_TOKEN && tokens.push(token)
            }
        }
    }
}

/// The state of a connection's protocol, which any thread can drive.
pub(super) struct Connection {
    stack: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    envelope: Envelope,
    mtu: usize,
    position: SendPosition,
    patience: Patience,
    pub(super) flow: Option<Flow>,
    pub(super) role: Role,
    /// Whether the peer established the connection.
    is_inward: bool,
    /// The time at which the last segment arrived.
    heard: Monotonic,
    /// The last time at which data was transferred or waited.
    moved: Monotonic,
    /// Whether the peer has sent data.
    has_received: bool,
    /// Whether nothing was sent since the peer last sent data.
    owes_answer: bool,
    /// The time since which the peer owes an acknowledgement.
    owed: Option<Monotonic>,
    wants_input: bool,
    wants_room: bool,
    sender_waits: bool,
    is_shut: bool,
    /// The error that ended the connection, if there was one.
    cause: Option<IoError>,
}

/// The state of a connection in its class.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    /// Unused.
    Free,
    /// A peer connects to this listener.
    HalfOpen { listener: usize },
    /// The connection waits to be accepted.
    Queued,
    /// This side connects.
    Connecting,
    /// The connection has a holder.
    Open,
    /// The handle was dropped, and the connection is closing.
    Lingering { until: Monotonic },
}

/// The classes of connections for eviction, the best candidates first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Idleness {
    /// The peer has never sent data, though it had the time.
    Silent,
    /// No data was transferred for a while.
    Idle,
    Busy,
}

/// The timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// For an acknowledgement.
    pub(super) acknowledgement: Duration,
    /// For a sign of life, if keep-alive is on. Probes are sent four times as often.
    pub(super) life: Option<Duration>,
    /// For closing, after the handle was dropped.
    pub(super) end: Duration,
}

/// The changes that one call into the TCP stack has made to a connection. Threads may wait for
/// them, so the caller has to notify these threads.
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "a thread may wait for it"]
pub(super) struct Changes {
    /// The holder, which found no input before, has to be notified of input or the end.
    input: bool,
    /// The holder, which found no room before, has to be notified of room.
    room: bool,
    /// As `room`, for a thread that blocks until there is room.
    room_for_waiting: bool,
    /// The handshake with this listener is complete.
    pub(super) established: Option<usize>,
    /// The connection is in TIME-WAIT and only waits for late segments.
    pub(super) is_waiting_out: bool,
    /// The connection is closed and has no holder.
    pub(super) is_over: bool,
}

impl Changes {
    /// Returns whether the holder gets input, or the end.
    pub(super) const fn has_input(&self) -> bool {
        self.input
    }

    /// Returns the changes of a connection that has ended: nothing is left to wait for.
    pub(super) fn of_end() -> Self {
        Self {
            input: true,
            room_for_waiting: true,
            ..Self::default()
        }
    }
}

impl Slot {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection: PiMutex::new(connection),
            bell: PiMutex::new(None),
            room_bell: OnceLock::new(),
            token: AtomicU64::new(NO_TOKEN),
            listener: AtomicUsize::new(0),
        }
    }

    /// Notes the listener that accepts the connection. The caller has the lock of the ingress.
    pub(super) fn set_listener(&self, listener: usize) {
        self.listener.store(listener, Ordering::Relaxed);
    }

    /// Permits reports of input by a token.
    pub(super) fn set_token(&self, token: u64) {
        self.token.store(token, Ordering::Relaxed);
    }

    /// Creates the event descriptor for a new holder of the connection.
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    pub(super) fn open_bell(&self) -> io::Result<Arc<Wake>> {
        let bell = Arc::new(Wake::new()?);
        *self.bell.lock() = Some(bell.clone());
        Ok(bell)
    }

    /// Returns the present event descriptor.
    #[cfg(test)]
    pub(super) fn bell(&self) -> Arc<Wake> {
        self.bell.lock().clone().expect("it was opened")
    }

    /// Removes the event descriptor and the token because the holder is gone.
    pub(super) fn close_bell(&self) {
        self.set_token(NO_TOKEN);
        self.bell.lock().take();
    }

    /// Returns the descriptor that notifies a blocked thread of room. It is created on first use,
    /// so that unused slots take no descriptors.
    pub(super) fn room_bell(&self) -> io::Result<&Wake> {
        match self.room_bell.get() {
            Some(made) => Ok(made),
            None => {
                let made = Wake::new()?;
                Ok(self.room_bell.get_or_init(|| made))
            }
        }
    }

    /// Notifies the threads concerned. Must be called without the connection's lock, which they
    /// need.
    pub(super) fn ring(&self, index: usize, changes: Changes, attendant: Attendant<'_>) {
        let is_attended = attendant.takes(index, self, changes);
        if changes.input && !is_attended || changes.room {
            // The notified thread may close the bell of this slot meanwhile.
            let bell = self.bell.lock().clone();
            bell.inspect(|bell| bell.notify());
        }
        if changes.room_for_waiting {
            self.room_bell.get().inspect(|bell| bell.notify());
        }
    }
}

impl Connection {
    /// Creates a slot's connection with a buffer of this length in each direction. Nothing is
    /// allocated later.
    #[allow(clippy::disallowed_methods, reason = "when a class opens")]
    pub(super) fn new(envelope: Envelope, mtu: usize, buffer: usize, patience: Patience) -> Self {
        let room = || SocketBuffer::new([0].repeat(buffer));
        let mut socket = Socket::new(room(), room());
        socket.set_nagle_enabled(false);
        socket.set_ack_delay(Some(protocol_duration(ACK_DELAY)));
        socket.set_keep_alive(patience.life.map(|life| protocol_duration(life / 4)));
        let mut sockets = SocketSet::new(Vec::from([SocketStorage::EMPTY]));
        let socket = sockets.add(socket);
        Self {
            stack: stack(envelope, mtu, (random(), Monotonic::from_nanos(0))),
            sockets,
            socket,
            envelope,
            mtu,
            position: SendPosition::default(),
            patience,
            flow: None,
            role: Role::Free,
            is_inward: false,
            heard: Monotonic::from_nanos(0),
            moved: Monotonic::from_nanos(0),
            has_received: false,
            owes_answer: false,
            owed: None,
            wants_input: false,
            wants_room: false,
            sender_waits: false,
            is_shut: false,
            cause: None,
        }
    }

    /// Starts to listen for the next segment. The initial sequence number is derived from the seed.
    pub(super) fn await_peer(
        &mut self,
        flow: Flow,
        envelope: Envelope,
        listener: usize,
        seed: u64,
        now: Monotonic,
    ) {
        let role = Role::HalfOpen { listener };
        self.begin(flow, envelope, role, (seed, now));
        self.is_inward = true;
        let listening = self.socket().listen(flow.local);
        debug_assert!(listening.is_ok(), "it was closed");
    }

    /// Starts to connect.
    pub(super) fn connect(&mut self, flow: Flow, envelope: Envelope, now: Monotonic) {
        self.begin(flow, envelope, Role::Connecting, (random(), now));
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        let connecting = socket.connect(self.stack.context(), flow.remote, flow.local);
        debug_assert!(connecting.is_ok(), "it was closed, and both ends are known");
    }

    fn begin(&mut self, flow: Flow, envelope: Envelope, role: Role, (seed, now): (u64, Monotonic)) {
        self.socket().abort();
        // A new stack, because the random state of the old one could be inferred from numbers that
        // former peers have seen.
        self.stack = stack(envelope, self.mtu, (seed, now));
        self.stack.update_ip_addrs(|addresses| {
            addresses.clear();
            // The list has a capacity of two.
            let _ = addresses.push(host(flow.local.ip()));
        });
        self.envelope = envelope;
        self.position = SendPosition::default();
        self.flow = Some(flow);
        self.role = role;
        self.is_inward = false;
        self.heard = now;
        self.moved = now;
        self.has_received = false;
        self.owes_answer = false;
        self.owed = None;
        self.wants_input = true;
        self.wants_room = false;
        self.sender_waits = false;
        self.is_shut = false;
        self.cause = None;
    }

    /// Frees the connection without notice to the peer. Returns its flow.
    pub(super) fn forget(&mut self) -> Option<Flow> {
        self.socket().abort();
        self.role = Role::Free;
        self.flow.take()
    }

    /// Processes a packet of the connection, and sends immediate answers.
    pub(super) fn feed(
        &mut self,
        packet: &[u8],
        egress: &PiMutex<Egress>,
        now: Monotonic,
    ) -> Changes {
        let mut port = Port::new(
            Some(packet),
            egress,
            self.envelope,
            self.mtu,
            &mut self.position,
        );
        self.stack
            .poll_ingress_single(protocol_time(now), &mut port, &mut self.sockets);
        drop(port);
        self.heard = now;
        if self.socket().can_recv() {
            self.has_received = true;
            self.owes_answer = true;
        }
        self.settle(now)
    }

    /// Sends what can be sent, and handles expired timers.
    pub(super) fn run(&mut self, egress: &PiMutex<Egress>, now: Monotonic) -> Changes {
        self.give_up_in_time(now);
        if self.role == Role::Free {
            return self.settle(now);
        }
        // If the peer's window ends within a segment, the segment waits until it fits as a whole,
        // because partial packets use up the peer's budget. The last segment of the data is sent at
        // once.
        let goes_on = self.position.left() >= self.mtu;
        self.socket().set_nagle_enabled(goes_on);
        self.send_all(egress, now);
        if goes_on && self.position.left() < self.mtu {
            self.socket().set_nagle_enabled(false);
            self.send_all(egress, now);
        }
        self.settle(now)
    }

    fn send_all(&mut self, egress: &PiMutex<Egress>, now: Monotonic) {
        let time = protocol_time(now);
        let mut port = Port::new(None, egress, self.envelope, self.mtu, &mut self.position);
        for _ in 0..BURST {
            let polled = self.stack.poll_egress(time, &mut port, &mut self.sockets);
            if polled == PollResult::None {
                break;
            }
        }
    }

    /// Returns the time of the next timer in nanoseconds.
    pub(super) fn due(&mut self, now: Monotonic) -> u64 {
        if self.role == Role::Free {
            return u64::MAX;
        }
        let by_protocol = self.stack.poll_at(protocol_time(now), &self.sockets);
        // Packets that could not be sent now are tried again soon.
        let by_protocol =
            by_protocol.map_or(u64::MAX, |at| real_time(at).max(now + RETRY).as_nanos());
        let by_patience = self.patience_ends().map_or(u64::MAX, Monotonic::as_nanos);
        by_protocol.min(by_patience)
    }

    fn patience_ends(&mut self) -> Option<Monotonic> {
        let is_open = self.socket().state() != State::Closed;
        let acknowledgement = self
            .owed
            .map(|owed| owed.max(self.heard) + self.patience.acknowledgement);
        let life = self.patience.life.filter(|_| is_open);
        let life = life.map(|life| self.heard + life);
        let by_role = match self.role {
            Role::Lingering { until } => Some(until),
            Role::Free => return None,
            Role::HalfOpen { .. } | Role::Queued | Role::Connecting | Role::Open => None,
        };
        [acknowledgement, life, by_role].into_iter().flatten().min()
    }

    /// Breaks the connection if the peer was silent for too long.
    fn give_up_in_time(&mut self, now: Monotonic) {
        if self.socket().state() == State::Closed
            || self.patience_ends().is_none_or(|end| now < end)
        {
            return;
        }
        self.cause = Some(IoError::Broken(Errno::TIMEDOUT));
        self.socket().abort();
    }

    /// Determines the changes that a call of the protocol has caused.
    fn settle(&mut self, now: Monotonic) -> Changes {
        let mut changes = Changes::default();
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        let state = socket.state();
        let is_owed = match state {
            State::Closed | State::Listen => false,
            State::SynSent | State::FinWait1 | State::Closing | State::LastAck => true,
            _ => socket.send_queue() > 0,
        };
        if socket.send_queue() > 0 || socket.recv_queue() > 0 {
            self.moved = now;
        }
        self.owed = is_owed.then(|| self.owed.unwrap_or(now));
        // A refused connection sends nothing more.
        let is_over = state == State::Closed && socket.remote_endpoint().is_none();
        match self.role {
            Role::Free => changes.is_over = true,
            Role::HalfOpen { listener, .. } => match state {
                State::SynReceived => {}
                State::Listen | State::Closed => changes.is_over = true,
                _ => {
                    self.role = Role::Queued;
                    changes.established = Some(listener);
                }
            },
            Role::Lingering { until } => {
                if socket.can_recv() {
                    // The data will never be read; a reset tells the peer.
                    socket.abort();
                }
                changes.is_waiting_out = state == State::TimeWait;
                changes.is_over = is_over || now >= until + self.patience.end;
            }
            Role::Queued => {}
            Role::Connecting if state == State::SynSent => {}
            Role::Connecting | Role::Open => {
                let has_input = socket.can_recv() || !socket.may_recv();
                changes.input = has_input && std::mem::take(&mut self.wants_input);
                if self.role == Role::Connecting && state != State::SynReceived {
                    self.role = Role::Open;
                    // The connecting thread waits for this.
                    changes.input = true;
                }
                let free = socket.send_capacity() - socket.send_queue();
                if self.wants_room && (free >= socket.send_capacity() / 4 || !socket.may_send()) {
                    self.wants_room = false;
                    changes.room_for_waiting = std::mem::take(&mut self.sender_waits);
                    changes.room = !changes.room_for_waiting;
                }
            }
        }
        changes
    }

    /// Returns whether the connection is usable.
    pub(super) fn is_there(&mut self) -> bool {
        self.socket().state() != State::Closed
    }

    /// Returns whether the peer has not yet acknowledged all sent data, including the end.
    pub(super) fn is_owed(&self) -> bool {
        self.role != Role::Free && self.owed.is_some()
    }

    /// Returns whether an outgoing connection is established; `None` if that is undecided.
    pub(super) fn is_connected(&mut self) -> Option<Result<(), IoError>> {
        if self.role == Role::Connecting {
            return None;
        }
        Some(match self.socket().state() {
            State::Closed => Err(self.cause.unwrap_or(IoError::Closed)),
            _ => Ok(()),
        })
    }

    /// Receives octets. If there are none, `drain` is called before notification of the next ones
    /// is enabled.
    pub(super) fn receive(
        &mut self,
        room: &mut [u8],
        drain: impl FnOnce(),
    ) -> Result<usize, IoError> {
        if room.is_empty() {
            return Ok(0);
        }
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        let received = socket.recv_slice(room);
        match received {
            Ok(taken @ 1..) => {
                self.wants_input = socket.recv_queue() == 0;
                Ok(taken)
            }
            // The peer's end comes after all of its data.
            Err(smoltcp::socket::tcp::RecvError::Finished) => Err(IoError::Ended),
            _ if self.is_shut => Err(IoError::Ended),
            Ok(_) => {
                drain();
                self.wants_input = true;
                Err(IoError::WouldBlock)
            }
            Err(_) => Err(self.cause.unwrap_or(IoError::Closed)),
        }
    }

    /// Queues as much of two pieces as fits.
    pub(super) fn send(&mut self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        let is_shut = self.is_shut;
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        if is_shut || !socket.may_send() {
            return Err(self.cause.unwrap_or(IoError::Closed));
        }
        let mut sent = socket.send_slice(first).unwrap_or(0);
        if sent == first.len() {
            sent += socket.send_slice(second).unwrap_or(0);
        }
        self.position.give(sent);
        self.owes_answer &= sent == 0;
        let len = first.len() + second.len();
        self.wants_room = sent < len;
        match sent {
            0 if len > 0 => Err(IoError::WouldBlock),
            sent => Ok(sent),
        }
    }

    /// Registers a blocked sender after it has `drain`ed the notification. Returns whether there is
    /// still no room.
    pub(super) fn await_room(&mut self, drain: impl FnOnce()) -> bool {
        drain();
        self.sender_waits = true;
        self.wants_room && !self.is_shut
    }

    /// Returns whether there is input, or the end.
    pub(super) fn has_input(&mut self) -> bool {
        let is_shut = self.is_shut;
        let socket = self.socket();
        is_shut || socket.can_recv() || !socket.may_recv()
    }

    /// Closes both directions.
    pub(super) fn shut_down(&mut self) -> Changes {
        self.is_shut = true;
        self.socket().close();
        Changes::of_end()
    }

    /// Closes the connection after its handle was dropped.
    pub(super) fn let_go(&mut self, now: Monotonic) {
        let has_unread = self.socket().can_recv();
        if has_unread {
            // A reset, as the kernel does it: the peer's data was not read.
            self.socket().abort();
        } else {
            self.socket().close();
        }
        let until = now + self.patience.end;
        self.role = Role::Lingering { until };
    }

    /// Ends the connection at once by a reset.
    pub(super) fn abort(&mut self, now: Monotonic) {
        self.socket().abort();
        let until = now + self.patience.end;
        self.role = Role::Lingering { until };
    }

    /// Returns the eviction class and the time of the last transfer; `None` if the connection is
    /// never evicted.
    pub(super) fn idleness(&self, now: Monotonic) -> Option<(Idleness, Monotonic)> {
        if !self.is_inward || !matches!(self.role, Role::Queued | Role::Open) {
            return None;
        }
        let idle = now.since(self.moved);
        let patience = match (self.has_received, self.owes_answer) {
            (false, _) => FIRST_OCTET,
            (true, false) => IDLE,
            (true, true) => SERVING,
        };
        let idleness = if idle < patience {
            Idleness::Busy
        } else if self.has_received {
            Idleness::Idle
        } else {
            Idleness::Silent
        };
        Some((idleness, self.moved))
    }

    /// Breaks the connection to make room for another. Both ends are notified.
    pub(super) fn give_way(&mut self) {
        self.cause = Some(IoError::Broken(Errno::CONNABORTED));
        self.socket().abort();
    }

    /// Returns the peer's address.
    pub(super) fn remote(&self) -> Option<SocketAddr> {
        self.flow.map(|flow| flow.remote)
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("role", &self.role)
            .field("flow", &self.flow)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connection.fmt(f)
    }
}

/// Returns an address as a network of a single host.
fn host(address: IpAddr) -> IpCidr {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    IpCidr::new(address.into(), bits)
}

/// Creates the protocol stack below the socket of one connection.
fn stack(envelope: Envelope, mtu: usize, (seed, now): (u64, Monotonic)) -> Interface {
    let nowhere = PiMutex::new(Egress::nowhere());
    let mut position = SendPosition::default();
    let mut port = Port::new(None, &nowhere, envelope, mtu, &mut position);
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = seed;
    Interface::new(config, &mut port, protocol_time(now))
}

/// Returns an unpredictable number from which sequence numbers are derived.
pub(super) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Monotonic::now().as_nanos())
}

/// The token of a connection whose bell reports its input.
const NO_TOKEN: u64 = u64::MAX;
/// The maximum number of connections that the thread of a listener serves after a step. The bells
/// of the others ring.
const TOKENS: usize = 16;
/// The maximum delay of an acknowledgement, which can travel with an answer meanwhile. Independent
/// of it, every second full-size segment is acknowledged at once.
const ACK_DELAY: Duration = Duration::from_millis(2);
/// The time that a peer has for its first octet before its connection can be evicted.
const FIRST_OCTET: Duration = Duration::from_secs(1);
/// The time after which a connection counts as idle if its peer has been answered.
const IDLE: Duration = Duration::from_secs(5);
/// The time after which a connection counts as idle if its peer may still wait for an answer.
const SERVING: Duration = Duration::from_secs(60);
/// The maximum number of frames sent at a time. A window of the smallest segments would have more.
const BURST: usize = 1024;
/// The time after which frames that found no room at the interface are tried again.
const RETRY: Duration = Duration::from_millis(1);
