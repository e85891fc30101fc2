//! From an object reference, a priority and policies to a connection, in the calling
//! thread's own tables: no lock, no sharing between threads or priorities.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;
use std::time::Duration;

use chronorb_giop::{
    AddressingDisposition, SystemException, SystemExceptionKind, Target, Version, minor,
};
use chronorb_rt::{Deadline, Monotonic, Text};

use super::attempt::{Destination, FORWARD_FORBIDDEN, may_move};
use super::connection::{ClientConnection, ConnectionKey, NoConnection, open};
use super::prepared::Prepared;
use super::route::{Carries, NoRoute, Route};
use crate::config::ConnectionStrategy;
use crate::core::Core;
use crate::failure::because;
use crate::object::Object;
use crate::order::sort_by_rank;
use crate::profile::Profile;
use crate::protocol::Way;
use crate::rtcorba::policies::{Effective, POLICIES_CONFLICT, POLICY_UNREADABLE};
use crate::rtcorba::{ClientPolicy, Priority, Protocols, RebindMode, request_priority};

/// How this thread reaches an object at one priority.
pub(super) struct Binding {
    pub(super) connection: Rc<ClientConnection>,
    /// Where requests go: the object itself, or what a location forward named.
    pub(super) target: Object,
    pub(super) forwarded: bool,
    /// The GIOP version of the messages: the highest one that both sides support.
    pub(super) version: Version,
    /// The priority that travels with requests, where the server's model wants it.
    pub(super) propagated: Option<Priority>,
    /// How requests name their target; a server may ask for another way.
    pub(super) addressing: Cell<AddressingDisposition>,
    pub(super) prepared: Prepared,
    /// Whether it is known where the object is: a reference that is only an address may lead elsewhere.
    pub(super) is_located: Cell<bool>,
    /// The state of the ORB's policies that it was made by.
    policies: u64,
    pub(super) rebind: RebindMode,
}

impl Binding {
    /// The profile that the requests go by.
    pub(super) fn profile(&self) -> Result<&Profile, SystemException> {
        usable_profile(&self.target)
    }

    /// How requests name the object.
    #[inline]
    pub(super) fn target(&self) -> Result<Target<'_>, SystemException> {
        let profile = self.profile()?;
        let ior = self.target.ior();
        Ok(match self.addressing.get() {
            AddressingDisposition::Key => Target::Key(&profile.key),
            AddressingDisposition::Profile => {
                Target::Profile(ior.profiles[profile.index].as_view())
            }
            AddressingDisposition::Reference => Target::Reference {
                index: profile.index as u32,
                ior,
            },
        })
    }

    pub(super) fn destination(&self) -> Destination<'_> {
        Destination {
            target: &self.target,
            forwarded: self.forwarded,
            rebind: self.rebind,
            addressing: self.addressing.get(),
        }
    }

    #[inline(always)]
    fn is_current(&self, deadline: Deadline) -> bool {
        self.connection.is_usable(deadline)
            && self.policies == self.target.core().rt.policies.generation()
    }
}

/// The tables of one thread.
#[derive(Default)]
struct Bindings {
    /// When to look next for connections that nobody uses, on the clock.
    next_look: u64,
    bindings: HashMap<BindingKey, Rc<Binding>, BuildHasherDefault<NumberHasher>>,
    connections: HashMap<ConnectionKey, Rc<ClientConnection>>,
}

/// An object, and a priority.
pub(super) type BindingKey = (u64, Option<Priority>);

thread_local! {
    static BINDINGS: RefCell<Bindings> = RefCell::default();
    /// Counts the thread's calls, to tell which connection was used last.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// The binding of an object at a priority; connects where there is none yet.
///
/// Only an explicit binding may do what the rebind policy forbids.
pub(super) fn bind(
    object: &Object,
    priority: Option<Priority>,
    is_explicit: bool,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    bind_by((object.number(), priority), object, is_explicit, deadline)
}

/// What the binding of an object is found by that goes by a connection on which several requests can
/// be under way: that of all calls, unless those have connections of their own.
pub(super) fn key_of_shared(object: &Object, priority: Option<Priority>) -> BindingKey {
    let strategy = object.core().config.client_connection;
    let mark = match strategy == ConnectionStrategy::Exclusive {
        true => SHARES,
        false => 0,
    };
    (object.number() | mark, priority)
}

/// As [`bind`], by such a key.
pub(super) fn bind_shared(
    key: BindingKey,
    object: &Object,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    bind_by(key, object, false, deadline)
}

#[inline(always)]
fn bind_by(
    key: BindingKey,
    object: &Object,
    is_explicit: bool,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    if BINDINGS.try_with(|_| ()).is_err() {
        // The thread is ending, and has let go of its connections already.
        return Err(NO_USABLE_PROFILE);
    }
    let now = begin_call(object.core());
    let present = BINDINGS.with_borrow(|all| all.bindings.get(&key).cloned());
    let binding = match present {
        Some(binding) if binding.is_current(deadline) => binding,
        Some(binding) => renew(&binding, key, object, is_explicit, deadline)?,
        None => establish(key, object.clone(), false, deadline)?,
    };
    binding.connection.take_up(key.1, now);
    Ok(binding)
}

/// A binding in the place of one whose connection has ended, or whose policies have changed.
#[cold]
fn renew(
    binding: &Binding,
    key: BindingKey,
    object: &Object,
    is_explicit: bool,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    let reconnects = is_explicit || object.rebind_mode() != RebindMode::NoReconnect;
    if binding.connection.is_closed() && !reconnects {
        return Err(RECONNECT_FORBIDDEN);
    }
    if !binding.forwarded {
        return establish(key, object.clone(), false, deadline);
    }
    // The way to the new place is made again from there.
    establish(key, binding.target.clone(), true, deadline).or_else(|_| {
        if is_explicit || may_move(object.rebind_mode(), &binding.target, object) {
            establish(key, object.clone(), false, deadline)
        } else {
            Err(FORWARD_FORBIDDEN)
        }
    })
}

/// Sends further calls of this thread on `object` to `target`.
pub(super) fn forward(
    object: &Object,
    priority: Option<Priority>,
    target: Object,
    deadline: Deadline,
) -> Result<(), SystemException> {
    forward_by((object.number(), priority), target, deadline)
}

/// As [`forward`], of the binding with this key.
pub(super) fn forward_by(
    key: BindingKey,
    target: Object,
    deadline: Deadline,
) -> Result<(), SystemException> {
    establish(key, target, true, deadline).map(drop)
}

/// Forgets how this thread reaches `object`; the next call finds out anew.
pub(super) fn forget(object: &Object, priority: Option<Priority>) {
    forget_by((object.number(), priority));
}

/// As [`forget`], of the binding with this key.
pub(super) fn forget_by(key: BindingKey) {
    let forgotten = BINDINGS.with_borrow_mut(|all| all.bindings.remove(&key));
    drop(forgotten);
}

/// The policies that calls of this thread by the reference go by.
///
/// # Errors
/// Those that cannot be followed.
pub(super) fn policies(object: &Object, profile: &Profile) -> Result<Effective, Vec<ClientPolicy>> {
    Effective::of(&object.effective_overrides(), profile)
}

#[cold]
#[inline(never)]
#[allow(clippy::disallowed_methods, reason = "once for each binding")]
fn establish(
    key: BindingKey,
    target: Object,
    forwarded: bool,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    let profile = usable_profile(&target)?;
    let (object, priority) = key;
    // Before they are looked at, so that a change meanwhile is noticed.
    let generation = target.core().rt.policies.generation();
    let effective = policies(&target, profile).map_err(|policies| conflict(&policies))?;
    let route = Route::of(profile, effective.bands.as_ref(), priority)
        .map_err(|none| unroutable(none, profile, priority))?;
    let way = (&route, object & SHARES != 0);
    let connection = connect(&target, profile, way, &effective, deadline)?;
    connection.begin_use(deadline);
    let binding = Rc::new(Binding {
        is_located: Cell::new(forwarded || !target.is_only_an_address()),
        connection,
        forwarded,
        version: profile.version,
        propagated: route.propagated,
        addressing: Cell::new(target.addressing()),
        prepared: Prepared::new(),
        target,
        policies: generation,
        rebind: effective.rebind,
    });
    if binding.rebind == RebindMode::NoReconnect {
        binding.connection.keep();
    }
    let forgotten = BINDINGS.with_borrow_mut(|all| {
        let full = all.bindings.len() >= MAX_BINDINGS;
        let may_be_made_again = |b: &Binding| b.rebind != RebindMode::NoReconnect;
        let forgotten = full.then(|| {
            let bindings = all.bindings.extract_if(|_, b| may_be_made_again(b));
            bindings.collect::<Vec<_>>()
        });
        (forgotten, all.bindings.insert(key, binding.clone()))
    });
    // As in `forget_where`: nothing is dropped while the tables are borrowed.
    drop(forgotten);
    Ok(binding)
}

/// A connection of this thread for the route, to the first address that answers; whether it shares it in any case.
#[allow(clippy::disallowed_methods, reason = "once for each binding")]
fn connect(
    target: &Object,
    profile: &Profile,
    (route, shares): (&Route, bool),
    effective: &Effective,
    deadline: Deadline,
) -> Result<Rc<ClientConnection>, SystemException> {
    let core = target.core();
    let (text, code_sets) = profile.text(&core.config.code_sets())?;
    let carries = match core.config.share_connections_across_priorities {
        true => Carries::Priority(None),
        false => route.carries,
    };
    let urgency = request_priority().max(route.propagated);
    let mut reasons = Text::<320>::new();
    let mut failure = None;
    for way in in_order(&route.ways, effective.protocols.as_ref()) {
        let (protocols, urgent) = (effective.protocols.as_ref(), carries.network_priority());
        let options = Protocols::socket_options(protocols, way.protocol, urgent);
        let key = ConnectionKey {
            orb: core.number,
            way: way.clone(),
            carries,
            owner: effective.private.then(|| target.owner()),
            options,
            shares,
        };
        let present = BINDINGS.with_borrow(|all| all.connections.get(&key).cloned());
        let fits = |c: &Rc<ClientConnection>| !c.is_closed() && c.speaks(text, code_sets);
        if let Some(connection) = present.filter(fits) {
            // The thread may have become more urgent since it has it.
            connection.work_for(core, urgency)?;
            return Ok(connection);
        }
        tidy();
        if deadline.has_passed() {
            return Err(because(TIMEOUT, format_args!("{TOO_LATE}{reasons}")));
        }
        let mut opened = open(core, &key, (text, code_sets), deadline);
        if matches!(opened, Err(NoConnection::TooMany)) && make_room(core) {
            opened = open(core, &key, (text, code_sets), deadline);
        }
        let connection = match opened {
            Ok(connection) => Rc::new(connection),
            Err(NoConnection::Unreachable(why)) => {
                let is_first = failure != Some(NO_USABLE_PROFILE);
                let part = if is_first { "" } else { "; " };
                let _ = write!(reasons, "{part}{why}");
                failure = Some(NO_USABLE_PROFILE);
                continue;
            }
            #[cfg(feature = "access")]
            Err(NoConnection::Refused) => {
                failure.get_or_insert(REFUSED_BY_RULES);
                continue;
            }
            Err(NoConnection::TooMany) => {
                let most = core.config.max_client_connections;
                let bound = format_args!("there are {most} connections (-ORBMaxClientConnections)");
                return Err(because(TOO_MANY_CONNECTIONS, bound));
            }
            Err(NoConnection::Exception(exception)) => return Err(exception),
        };
        connection.work_for(core, urgency)?;
        let before =
            BINDINGS.with_borrow_mut(|all| all.connections.insert(key, connection.clone()));
        drop(before);
        return Ok(connection);
    }
    match failure {
        None => {
            reasons = Text::of("the protocols that the policies allow are none of the reference's");
        }
        Some(NO_USABLE_PROFILE) => {}
        Some(_) => {
            reasons = Text::of("-ORBClientTransportRule permits none of the reference's addresses");
        }
    }
    if deadline.has_passed() {
        return Err(because(TIMEOUT, format_args!("{reasons}")));
    }
    let failure = failure.unwrap_or(NO_USABLE_PROFILE);
    Err(because(failure, format_args!("{reasons}")))
}

/// Says why a call has no route.
#[cold]
fn unroutable(none: NoRoute, profile: &Profile, priority: Option<Priority>) -> SystemException {
    let mut cause = Text::<256>::new();
    let _ = match none {
        NoRoute::OutsideOfBands => {
            cause.write_str("the priority of the call is in none of the bands")
        }
        NoRoute::NoEndpoint => {
            cause.write_str("the server has no lane for the priority of the call")
        }
        NoRoute::TooManyWays => {
            cause.write_str("the reference has more addresses than a call tries")
        }
    };
    if let Some(priority) = priority {
        let _ = write!(cause, ", {}", priority.value());
    }
    let lanes = profile.lanes.iter().filter_map(|(lane, _)| *lane);
    for (index, lane) in lanes.enumerate() {
        let part = if index == 0 { "; its lanes are" } else { "," };
        let _ = write!(cause, "{part} {}", lane.value());
    }
    because(none.into(), format_args!("{cause}"))
}

/// Says which policies cannot be followed.
#[cold]
fn conflict(policies: &[ClientPolicy]) -> SystemException {
    let what = "the client's policies that the server, or this ORB, cannot follow";
    because(POLICIES_CONFLICT, format_args!("{what}: {policies:?}"))
}

/// The ways that may be taken, the preferred one first.
fn in_order<'w>(ways: &'w [Way], protocols: Option<&Protocols>) -> Vec<&'w Way> {
    let mut ways: Vec<_> = ways.iter().collect();
    if let Some(protocols) = protocols {
        ways.retain(|way| protocols.rank(way.protocol).is_some());
        sort_by_rank(&mut ways, |way| protocols.rank(way.protocol));
    }
    ways
}

/// What a call that begins now is said to use its connection at: numbers that rise, of the clock
/// where idle connections are closed. Looks for those from time to time.
#[inline]
fn begin_call(core: &Core) -> u64 {
    match core.config.client_idle_timeout {
        None => {
            CALLS.set(CALLS.get().wrapping_add(1));
            CALLS.get()
        }
        Some(time_out) => {
            let now = Monotonic::now().as_nanos();
            close_unused(core, now, time_out);
            now
        }
    }
}

/// Closes what has been idle for as long as the ORB allows: this thread's connections, and those
/// that threads share.
fn close_unused(core: &Core, now: u64, time_out: Duration) {
    let time_out = u64::try_from(time_out.as_nanos()).unwrap_or(u64::MAX);
    let is_due = BINDINGS.with_borrow_mut(|all| {
        let is_due = now >= all.next_look;
        if is_due {
            all.next_look = now.saturating_add(time_out / LOOKS);
        }
        is_due
    });
    if !is_due {
        return;
    }
    let before = now.saturating_sub(time_out);
    for connection in disposable(core) {
        if connection.last_use() <= before {
            let_go(&connection);
        }
    }
    core.client_connections
        .close_unused_since(Monotonic::from_nanos(before));
}

/// Closes the connection that was used least recently, of this thread or of those that threads
/// share; returns whether there was one. Those that other threads have alone are theirs.
#[cold]
fn make_room(core: &Core) -> bool {
    if core.client_connections.close_idlest() {
        forget_closed();
        return true;
    }
    let idlest = disposable(core).into_iter().min_by_key(|c| c.last_use());
    idlest.is_some_and(|connection| {
        let_go(&connection);
        true
    })
}

/// This thread's connections of an ORB, but for those that may not be made again.
fn disposable(core: &Core) -> Vec<Rc<ClientConnection>> {
    BINDINGS.with_borrow(|all| {
        let bindings = all.bindings.values();
        let kept: Vec<_> = bindings
            .filter(|binding| binding.rebind == RebindMode::NoReconnect)
            .map(|binding| &binding.connection)
            .collect();
        let connections = all.connections.iter();
        connections
            .filter(|(key, _)| key.orb == core.number)
            .map(|(_, connection)| connection)
            .filter(|connection| !kept.iter().any(|kept| Rc::ptr_eq(kept, connection)))
            .cloned()
            .collect()
    })
}

fn let_go(connection: &Rc<ClientConnection>) {
    let is_it = |other: &ClientConnection| std::ptr::eq(other, &**connection);
    forget_where(|binding| is_it(&binding.connection), is_it);
}

/// Forgets what this thread need not know any more, before it makes a new connection:
/// references that nobody has any more, with their private connections, connections that have
/// ended or said goodbye, and those of ORBs that were shut down.
fn tidy() {
    forget_dropped();
    BINDINGS.with_borrow(|all| {
        for connection in all.connections.values() {
            if connection.is_stale() {
                connection.close();
            }
        }
    });
    forget_closed();
}

/// Forgets connections that have ended. Of bindings those stay that may not be made again, to
/// tell the next call so.
fn forget_closed() {
    forget_where(
        |binding| binding.connection.is_closed() && binding.rebind != RebindMode::NoReconnect,
        ClientConnection::is_closed,
    );
}

/// Forgets the bindings of references that only this thread's table still has, and the private
/// connections that no binding is left of.
#[allow(clippy::disallowed_methods, reason = "once for each connection")]
fn forget_dropped() {
    let forgotten = BINDINGS.with_borrow_mut(|all| {
        let mut held: HashMap<u64, usize> = HashMap::new();
        for binding in all.bindings.values() {
            *held.entry(binding.target.number()).or_default() += 1;
        }
        let is_dropped = |binding: &Binding| {
            let number = binding.target.number();
            !binding.forwarded && held.get(&number) == Some(&binding.target.handles())
        };
        let bindings: Vec<_> = all
            .bindings
            .extract_if(|_, binding| is_dropped(binding))
            .collect();
        bindings
    });
    drop(forgotten);
    let forgotten = BINDINGS.with_borrow_mut(|all| {
        let unused = |key: &ConnectionKey, c: &Rc<ClientConnection>| {
            key.owner.is_some() && Rc::strong_count(c) == 1
        };
        let connections: Vec<_> = all.connections.extract_if(|k, c| unused(k, c)).collect();
        connections
    });
    drop(forgotten);
}

/// Forgets all connections of an ORB that this thread has.
pub(crate) fn forget_orb(number: u64) {
    let is_gone = |connection: &ClientConnection| connection.orb() == Some(number);
    forget_where(|binding| is_gone(&binding.connection), is_gone);
}

fn forget_where(
    binding_is_gone: impl Fn(&Binding) -> bool,
    connection_is_gone: impl Fn(&ClientConnection) -> bool,
) {
    if BINDINGS.try_with(|_| ()).is_err() {
        return;
    }
    let forgotten = BINDINGS.with_borrow_mut(|all| {
        let bindings: Vec<_> = all
            .bindings
            .extract_if(|_, binding| binding_is_gone(binding))
            .collect();
        let connections: Vec<_> = all
            .connections
            .extract_if(|_, c| connection_is_gone(c))
            .collect();
        (bindings, connections)
    });
    // What is dropped here may be the last of an ORB, and must not meet the tables borrowed.
    drop(forgotten);
}

/// The profile that requests by a reference go by.
///
/// # Errors
/// `TRANSIENT` where there is none; `NO_PERMISSION` where there is one, and protection forbids it;
/// `INV_POLICY` where a policy in it cannot be read.
pub(super) fn usable_profile(object: &Object) -> Result<&Profile, SystemException> {
    match object.profile() {
        Some(profile) if profile.has_unreadable_policy => Err(POLICY_UNREADABLE),
        Some(profile) => Ok(profile),
        #[cfg(feature = "ssliop")]
        None if crate::protocol::is_forbidden(object.ior(), &object.core().protocols) => {
            Err(super::connection::NO_PROTECTION)
        }
        None => Err(unusable(object)),
    }
}

/// Says of a reference what its profiles are, none of which this ORB can use.
#[cold]
fn unusable(object: &Object) -> SystemException {
    let mut cause = Text::<256>::of("the reference has no profile that this ORB can use");
    for (index, profile) in object.ior().profiles.iter().enumerate() {
        let part = if index == 0 {
            "; the tags of its profiles are"
        } else {
            ","
        };
        let _ = write!(cause, "{part} {:#x}", profile.tag);
    }
    because(NO_USABLE_PROFILE, format_args!("{cause} (-ORBProtocols)"))
}

/// Every profile was tried, and none could be reached.
pub(super) const NO_USABLE_PROFILE: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::NO_USABLE_PROFILE);
/// The access rules permit none of the addresses.
#[cfg(feature = "access")]
const REFUSED_BY_RULES: SystemException =
    SystemException::no(SystemExceptionKind::NoPermission, minor::REFUSED_BY_RULES);
/// The time was over before a connection was made.
const TIMEOUT: SystemException =
    SystemException::no(SystemExceptionKind::Timeout, minor::TIMEOUT_REQUEST_END);
/// There are as many connections as there may be, and none of them is idle.
const TOO_MANY_CONNECTIONS: SystemException = SystemException::no(
    SystemExceptionKind::NoResources,
    minor::TOO_MANY_CONNECTIONS,
);
/// The connection has ended, and the rebind policy lets nobody but the application make another.
const RECONNECT_FORBIDDEN: SystemException =
    SystemException::no(SystemExceptionKind::Rebind, minor::RECONNECT_FORBIDDEN);
/// Bindings that a thread remembers; beyond, it forgets all that it may find out anew.
const TOO_LATE: &str = "the time of the call was over before it was connected: ";
const MAX_BINDINGS: usize = 4096;
/// In the number of an object: bound by a connection that is shared although others are not. There
/// are not as many objects.
const SHARES: u64 = 1 << 63;
/// How often in the idle time-out a thread looks for idle connections.
const LOOKS: u64 = 4;

/// Object numbers are small and all different: they are their own hash, spread by one multiplication.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.write_u64(u64::from(*octet));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_i16(&mut self, n: i16) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}
