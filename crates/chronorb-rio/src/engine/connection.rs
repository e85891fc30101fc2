//! A connection: its own small TCP/IP stack, and who waits for it.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
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
use super::sent::Sent;
use super::table::Flow;

/// Room for a connection, with what can be reached without its lock.
pub(super) struct Slot {
    pub(super) connection: PiMutex<Connection>,
    /// Rung for what comes in, and for room where nobody waits for it. Each connection has one of
    /// its own: a set that waited for the last one would take its descriptor for that.
    bell: PiMutex<Option<Arc<Wake>>>,
    /// Rung for room where a thread waits to send.
    room_bell: OnceLock<Wake>,
}

/// A connection; its protocol, whatever thread drives it.
pub(super) struct Connection {
    stack: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    envelope: Envelope,
    mtu: usize,
    sent: Sent,
    patience: Patience,
    pub(super) flow: Option<Flow>,
    pub(super) role: Role,
    /// The peer has made it.
    is_inward: bool,
    /// When the last segment came.
    heard: Monotonic,
    /// When octets last went either way, or waited to.
    moved: Monotonic,
    /// The peer has sent octets.
    has_received: bool,
    /// Nothing was sent since the peer has sent octets.
    owes_answer: bool,
    /// Since when the peer owes an acknowledgement.
    owed: Option<Monotonic>,
    wants_input: bool,
    wants_room: bool,
    sender_waits: bool,
    is_shut: bool,
    /// Why it has ended, where that was not in order.
    cause: Option<IoError>,
}

/// What a connection is to its class.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    /// None.
    Free,
    /// A peer connects to this listener.
    HalfOpen { listener: usize },
    /// It waits to be taken in.
    Queued,
    /// This side has begun to connect.
    Connecting,
    /// Somebody has it.
    Open,
    /// Nobody has it any more, and it ends in order.
    Lingering { until: Monotonic },
}

/// How well the peer of a connection can do without it, the best first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Idleness {
    /// It has never sent an octet, though it had the time.
    Silent,
    /// No octet has gone either way for a while.
    Idle,
    Busy,
}

/// How long a connection waits for its peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// With an acknowledgement.
    pub(super) acknowledgement: Duration,
    /// With a sign of life, where the connection asks for one; it asks four times as often.
    pub(super) life: Option<Duration>,
    /// With the end, when nobody has the connection any more.
    pub(super) end: Duration,
}

/// What a call of the protocol has changed.
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "somebody waits for it"]
pub(super) struct News {
    /// Who was told of no input has to be told of some, or of the end.
    input: bool,
    /// Who found no room has to be told.
    room: bool,
    /// The same, and it waits.
    room_for_waiting: bool,
    /// A handshake with this listener is over.
    pub(super) established: Option<usize>,
    /// The connection only waits for late segments.
    pub(super) is_waiting_out: bool,
    /// The connection is over, and nobody has it.
    pub(super) is_over: bool,
}

impl News {
    /// There is nothing any more to wait for.
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
        }
    }

    /// A new descriptor that tells of input, for who has the connection from now on.
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    pub(super) fn open_bell(&self) -> io::Result<Arc<Wake>> {
        let bell = Arc::new(Wake::new()?);
        *self.bell.lock() = Some(bell.clone());
        Ok(bell)
    }

    /// The present one.
    #[cfg(test)]
    pub(super) fn bell(&self) -> Arc<Wake> {
        self.bell.lock().clone().expect("it was opened")
    }

    /// Nobody listens to it any more.
    pub(super) fn close_bell(&self) {
        self.bell.lock().take();
    }

    /// The descriptor that tells a waiting thread of room. It is made when it is needed first: a
    /// class does not take descriptors for connections that nobody makes.
    pub(super) fn room_bell(&self) -> io::Result<&Wake> {
        match self.room_bell.get() {
            Some(made) => Ok(made),
            None => {
                let made = Wake::new()?;
                Ok(self.room_bell.get_or_init(|| made))
            }
        }
    }

    /// Tells who has to be told. Not under the lock, which they would wait for.
    pub(super) fn ring(&self, news: News, is_attended: bool) {
        if news.input && !is_attended || news.room {
            // Who hears it may have a bell of this slot to close.
            let bell = self.bell.lock().clone();
            bell.inspect(|bell| bell.notify());
        }
        if news.room_for_waiting {
            self.room_bell.get().inspect(|bell| bell.notify());
        }
    }
}

impl Connection {
    /// Room for one, with a buffer of so many octets in each direction. All of it is there
    /// afterwards.
    #[allow(clippy::disallowed_methods, reason = "when a class opens")]
    pub(super) fn new(envelope: Envelope, mtu: usize, buffer: usize, patience: Patience) -> Self {
        let room = || SocketBuffer::new(std::iter::repeat_n(0, buffer).collect::<Vec<u8>>());
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
            sent: Sent::default(),
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

    /// Begins to listen for the segment that comes next. What its numbers begin with follows from
    /// the seed.
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

    /// Begins to connect.
    pub(super) fn connect(&mut self, flow: Flow, envelope: Envelope, now: Monotonic) {
        self.begin(flow, envelope, Role::Connecting, (random(), now));
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        let connecting = socket.connect(self.stack.context(), flow.remote, flow.local);
        debug_assert!(connecting.is_ok(), "it was closed, and both ends are known");
    }

    fn begin(&mut self, flow: Flow, envelope: Envelope, role: Role, (seed, now): (u64, Monotonic)) {
        self.socket().abort();
        // What follows from numbers that the peers before have seen could be guessed by them.
        self.stack = stack(envelope, self.mtu, (seed, now));
        self.stack.update_ip_addrs(|addresses| {
            addresses.clear();
            // There is room for two.
            let _ = addresses.push(host(flow.local.ip()));
        });
        self.envelope = envelope;
        self.sent = Sent::default();
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

    /// Forgets it, without a word to the peer. Returns which it was.
    pub(super) fn forget(&mut self) -> Option<Flow> {
        self.socket().abort();
        self.role = Role::Free;
        self.flow.take()
    }

    /// Takes in a packet of the connection. What is to be answered at once is.
    pub(super) fn feed(&mut self, packet: &[u8], egress: &PiMutex<Egress>, now: Monotonic) -> News {
        let mut port = Port::new(
            Some(packet),
            egress,
            self.envelope,
            self.mtu,
            &mut self.sent,
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

    /// Sends what can be sent, and does what it is time for.
    pub(super) fn run(&mut self, egress: &PiMutex<Egress>, now: Monotonic) -> News {
        self.give_up_in_time(now);
        if self.role == Role::Free {
            return self.settle(now);
        }
        // Where the peer's window ends within a segment, the whole one goes when there is room for
        // it: packets that are not full use up its budget. The last one of what there is goes as it
        // is.
        let goes_on = self.sent.left() >= self.mtu;
        self.socket().set_nagle_enabled(goes_on);
        self.send_all(egress, now);
        if goes_on && self.sent.left() < self.mtu {
            self.socket().set_nagle_enabled(false);
            self.send_all(egress, now);
        }
        self.settle(now)
    }

    fn send_all(&mut self, egress: &PiMutex<Egress>, now: Monotonic) {
        let time = protocol_time(now);
        let mut port = Port::new(None, egress, self.envelope, self.mtu, &mut self.sent);
        for _ in 0..BURST {
            let polled = self.stack.poll_egress(time, &mut port, &mut self.sockets);
            if polled == PollResult::None {
                break;
            }
        }
    }

    /// When it has something to do by itself, in nanoseconds.
    pub(super) fn due(&mut self, now: Monotonic) -> u64 {
        if self.role == Role::Free {
            return u64::MAX;
        }
        let by_protocol = self.stack.poll_at(protocol_time(now), &self.sockets);
        // What could not go out now may go out soon.
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

    /// Ends the connection where the peer has been silent for too long.
    fn give_up_in_time(&mut self, now: Monotonic) {
        if self.socket().state() == State::Closed
            || self.patience_ends().is_none_or(|end| now < end)
        {
            return;
        }
        self.cause = Some(IoError::Broken(Errno::TIMEDOUT));
        self.socket().abort();
    }

    /// Looks at what a call of the protocol has changed.
    fn settle(&mut self, now: Monotonic) -> News {
        let mut news = News::default();
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
        // A connection that was refused has nothing to say any more.
        let is_over = state == State::Closed && socket.remote_endpoint().is_none();
        match self.role {
            Role::Free => news.is_over = true,
            Role::HalfOpen { listener, .. } => match state {
                State::SynReceived => {}
                State::Listen | State::Closed => news.is_over = true,
                _ => {
                    self.role = Role::Queued;
                    news.established = Some(listener);
                }
            },
            Role::Lingering { until } => {
                if socket.can_recv() {
                    // Nobody will ever read it, which the peer should know.
                    socket.abort();
                }
                news.is_waiting_out = state == State::TimeWait;
                news.is_over = is_over || now >= until + self.patience.end;
            }
            Role::Queued => {}
            Role::Connecting if state == State::SynSent => {}
            Role::Connecting | Role::Open => {
                let has_input = socket.can_recv() || !socket.may_recv();
                news.input = has_input && std::mem::take(&mut self.wants_input);
                if self.role == Role::Connecting && state != State::SynReceived {
                    self.role = Role::Open;
                    // Who connects waits for it.
                    news.input = true;
                }
                let free = socket.send_capacity() - socket.send_queue();
                if self.wants_room && (free >= socket.send_capacity() / 4 || !socket.may_send()) {
                    self.wants_room = false;
                    news.room_for_waiting = std::mem::take(&mut self.sender_waits);
                    news.room = !news.room_for_waiting;
                }
            }
        }
        news
    }

    /// Whether it can still be used.
    pub(super) fn is_there(&mut self) -> bool {
        self.socket().state() != State::Closed
    }

    /// Whether the peer has not got all yet that was sent to it, the end included.
    pub(super) fn is_owed(&self) -> bool {
        self.role != Role::Free && self.owed.is_some()
    }

    /// Whether a connection that was begun is there: `None` while it is not known.
    pub(super) fn is_connected(&mut self) -> Option<Result<(), IoError>> {
        if self.role == Role::Connecting {
            return None;
        }
        Some(match self.socket().state() {
            State::Closed => Err(self.cause.unwrap_or(IoError::Closed)),
            _ => Ok(()),
        })
    }

    /// Takes octets out. Where there are none, `drain` is called before it is sure that the next
    /// ones ring.
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
            // The peer's end comes after all that was sent.
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

    /// Puts in what fits of two pieces.
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
        self.sent.give(sent);
        self.owes_answer &= sent == 0;
        let len = first.len() + second.len();
        self.wants_room = sent < len;
        match sent {
            0 if len > 0 => Err(IoError::WouldBlock),
            sent => Ok(sent),
        }
    }

    /// A thread waits for room from now on, or `drain`s what told of it. Whether there is none yet.
    pub(super) fn await_room(&mut self, drain: impl FnOnce()) -> bool {
        drain();
        self.sender_waits = true;
        self.wants_room && !self.is_shut
    }

    /// Whether something is there, or the end.
    pub(super) fn has_input(&mut self) -> bool {
        let is_shut = self.is_shut;
        let socket = self.socket();
        is_shut || socket.can_recv() || !socket.may_recv()
    }

    /// Has the protocol end both directions.
    pub(super) fn shut_down(&mut self) -> News {
        self.is_shut = true;
        self.socket().close();
        News::of_end()
    }

    /// Nobody has it any more.
    pub(super) fn let_go(&mut self, now: Monotonic) {
        let has_unread = self.socket().can_recv();
        if has_unread {
            // As the kernel does it: what was sent was not taken.
            self.socket().abort();
        } else {
            self.socket().close();
        }
        let until = now + self.patience.end;
        self.role = Role::Lingering { until };
    }

    /// Ends it at once; the peer is told.
    pub(super) fn abort(&mut self, now: Monotonic) {
        self.socket().abort();
        let until = now + self.patience.end;
        self.role = Role::Lingering { until };
    }

    /// How well its peer can do without it, and since when; `None` where it does not give way.
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
        let idleness = match self.has_received {
            _ if idle < patience => Idleness::Busy,
            false => Idleness::Silent,
            true => Idleness::Idle,
        };
        Some((idleness, self.moved))
    }

    /// Breaks it, to make room for another; both ends are told.
    pub(super) fn give_way(&mut self) {
        self.cause = Some(IoError::Broken(Errno::CONNABORTED));
        self.socket().abort();
    }

    /// The peer.
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

/// An address as the only one of a host.
fn host(address: IpAddr) -> IpCidr {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    IpCidr::new(address.into(), bits)
}

/// The protocol below the socket of one connection.
fn stack(envelope: Envelope, mtu: usize, (seed, now): (u64, Monotonic)) -> Interface {
    let nowhere = PiMutex::new(Egress::nowhere());
    let mut sent = Sent::default();
    let mut port = Port::new(None, &nowhere, envelope, mtu, &mut sent);
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = seed;
    Interface::new(config, &mut port, protocol_time(now))
}

/// What a connection's numbers begin with, which nobody should guess.
pub(super) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Monotonic::now().as_nanos())
}

/// How long an acknowledgement waits for an answer that it can go with. Of segments of full size
/// every second one is acknowledged at once, whatever this is.
const ACK_DELAY: Duration = Duration::from_millis(2);
/// How long a peer has for its first octet before its connection may give way to another.
const FIRST_OCTET: Duration = Duration::from_secs(1);
/// After which a connection whose peer has its answers is idle.
const IDLE: Duration = Duration::from_secs(5);
/// The same, of one whose peer may still wait for an answer.
const SERVING: Duration = Duration::from_secs(60);
/// Frames that go out at a time; a window of the smallest segments has more.
const BURST: usize = 1024;
/// After which what found no room at the interface is tried again.
const RETRY: Duration = Duration::from_millis(1);
