//! The binding of an object at a priority to a connection, in tables of the calling thread: no
//! lock, and nothing is shared between threads or priorities.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "once for each failure"
)]
mod causes;
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "once for each failure"
)]
pub(super) mod failover;
mod upkeep;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

#[cfg(feature = "bidir")]
use chronorb_cdr::TextForm;
use chronorb_giop::{
    AddressingDisposition, EndTimes, ResponseFlags, SystemException, SystemExceptionKind, Target,
    Version, minor,
};
use chronorb_rt::{Deadline, Monotonic, Text};
use chronorb_transport::SocketOptions;

use self::causes::{conflict, note_cause, unroutable, unusable};
use super::attempt::{Destination, FORWARD_FORBIDDEN, FailoverState, may_move, share};
use super::connection::{
    ChannelKind, ClientConnection, ConnectionKey, Failure, NoConnection, open,
};
#[cfg(feature = "bidir")]
use super::connection::{call_back, call_back_by};
use super::request::{NumberHasher, PreparedHeaders};
use super::route::{Carries, Route};
use crate::call::Operation;
use crate::client_state::FirstBinding;
use crate::core::{Core, Object};
use crate::failure::because;
use crate::fork;
use crate::profile::{Effective, POLICY_UNREADABLE, Profile};
use crate::protocol::Way;
use crate::riders::{self, Riders};
use crate::rtcorba::policies::{EndPolicies, utc_now};
use crate::rtcorba::{
    ClientPolicy, OnewayBuffering, Priority, Protocols, RebindMode, SyncScope, request_priority,
};
pub(super) use upkeep::drop_connection;
use upkeep::{close_unused, forget_orb, make_room, tidy};

/// The connection of a thread for requests to an object at one priority, and the form of these.
pub(super) struct Binding {
    pub(super) connection: Rc<ClientConnection>,
    /// The target of requests: the object itself, or the one that a location forward named.
    pub(super) target: Object,
    pub(super) forwarded: bool,
    /// The GIOP version of the messages: the highest one that both sides support.
    pub(super) version: Version,
    /// The priority that requests propagate, if the server's model wants it.
    pub(super) propagated: Option<Priority>,
    /// The form in which requests name their target; a server may ask for another one.
    pub(super) addressing: Cell<AddressingDisposition>,
    pub(super) prepared: PreparedHeaders,
    /// Whether the location of the object is known: a reference that is only an address may lead to
    /// another one.
    pub(super) is_located: Cell<bool>,
    /// The generation of the ORB's policies that it was made with.
    generation: u64,
    /// The same, or [`u64::MAX`] if calls have more to do than to send and to receive: then the
    /// binding is never [usual](usual).
    usual_in: u64,
    /// The longest duration of a call, in nanoseconds.
    time_out: u64,
    pub(super) failover: Option<Arc<FailoverState>>,
    /// Connections to further addresses, for fail-over.
    standbys: RefCell<Vec<Rc<ClientConnection>>>,
    pub(super) rebind: RebindMode,
    /// The answers that oneway requests have.
    pub(super) oneways: ResponseFlags,
    /// Whether the headers of requests that name an object by its key differ only in their ids.
    pub(super) keeps_headers: bool,
    /// The policies about end times, if there are any.
    pub(super) ends: Option<EndPolicies>,
    /// The end times of the present call.
    pub(super) present_ends: Cell<EndTimes>,
    /// The bounds within which oneways are kept.
    pub(super) buffering: Option<OnewayBuffering>,
}

impl Binding {
    /// The profile that the requests go by.
    pub(super) fn profile(&self) -> Result<&Profile, SystemException> {
        usable_profile(&self.target)
    }

    /// The target of requests, in the form that the server asked for.
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

    pub(super) fn destination(&self) -> Destination {
        Destination {
            target: self.target.clone(),
            forwarded: self.forwarded,
            rebind: self.rebind,
            addressing: self.addressing.get(),
            failover: self.failover.clone(),
        }
    }

    /// Whether requests for an operation have an answer.
    #[inline]
    pub(super) fn has_answer(&self, operation: &Operation) -> bool {
        !operation.oneway || self.oneways != ResponseFlags::None
    }

    /// The answer that requests for an operation have.
    pub(super) fn response(&self, operation: &Operation) -> ResponseFlags {
        if operation.oneway {
            self.oneways
        } else {
            ResponseFlags::SyncWithTarget
        }
    }

    fn is_current(&self, deadline: Deadline) -> bool {
        self.connection.is_usable(deadline)
            && self.generation == self.target.core().rt.policies.generation()
    }
}

/// The time limits of an attempt.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The deadline by which its request must be sent.
    pub(super) until: Deadline,
    /// The deadline of its reply.
    pub(super) deadline: Deadline,
    /// The time from the beginning of the call to that, in nanoseconds; 0 if the call has waited
    /// already.
    pub(super) whole: u64,
}

/// The tables of one thread.
#[derive(Default)]
struct Bindings {
    /// The time of the next check for unused connections, on the clock.
    next_check: u64,
    /// One of the `bindings`, which was used last.
    last: Option<(BindingKey, Rc<Binding>)>,
    bindings: HashMap<BindingKey, Rc<Binding>, BuildHasherDefault<NumberHasher>>,
    connections: HashMap<ConnectionKey, Rc<ClientConnection>>,
}

/// The key of a binding in the tables of a thread.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) struct BindingKey {
    /// The number of the object.
    object: u64,
    pub(super) priority: Option<Priority>,
    kind: ChannelKind,
}

impl BindingKey {
    /// The key for calls whose thread waits for the reply.
    #[inline]
    pub(super) fn of_calls(object: &Object, priority: Option<Priority>) -> Self {
        let kind = ChannelKind::of_calls(&object.core().config);
        Self::new(object, priority, kind)
    }

    /// The key for asynchronous calls. They have the same bindings, unless the connections of other
    /// calls are exclusive.
    pub(super) fn of_asynchronous_calls(object: &Object, priority: Option<Priority>) -> Self {
        let kind = ChannelKind::of_asynchronous_calls(&object.core().config);
        Self::new(object, priority, kind)
    }

    pub(super) fn new(object: &Object, priority: Option<Priority>, kind: ChannelKind) -> Self {
        Self {
            object: object.number(),
            priority,
            kind,
        }
    }
}

/// Hashes one number, whose parts overlap only with very many objects. The priority stands low in
/// it, since a multiplication spreads bits upwards only.
impl Hash for BindingKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let priority = self.priority.map_or(0, |p| p.value() as u64 + 1);
        state.write_u64(self.object ^ (priority << 24) ^ ((self.kind as u64) << 40));
    }
}

thread_local! {
    static BINDINGS: RefCell<Bindings> = RefCell::default();
    /// The number of the thread's calls, which orders its connections by their last use.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the binding of an object outside of this process with the limits of a call, if the
/// thread has used it last, and the call has nothing to do but to send and to receive.
///
/// All other calls [bind](bind) the object, so that what they need costs this one nothing.
#[inline(always)]
pub(super) fn usual(object: &Object) -> Option<(Rc<Binding>, Limits)> {
    let core = object.core();
    let key = BindingKey::of_calls(object, request_priority());
    let last = BINDINGS.try_with(|all| match &all.borrow().last {
        Some((last, binding))
            if *last == key && binding.usual_in == core.rt.policies.generation() =>
        {
            Some(binding.clone())
        }
        _ => None,
    });
    let binding = last.ok().flatten()?;
    let deadline = Deadline::after_nanos(binding.time_out);
    if !binding.connection.is_usable(deadline) || core.check_running().is_err() {
        return None;
    }
    binding.connection.take_up(key.priority, count_call());
    let limits = Limits {
        until: deadline,
        deadline,
        whole: binding.time_out,
    };
    Some((binding, limits))
}

/// Returns the binding of an object; connects if there is none yet.
///
/// Only an explicit binding may do what the rebind policy forbids. `has_waited` is set if a
/// connection may have been made.
pub(super) fn bind(
    key: BindingKey,
    object: &Object,
    is_explicit: bool,
    deadline: Deadline,
    has_waited: &Cell<bool>,
) -> Result<Rc<Binding>, SystemException> {
    let now = begin_call(object.core());
    let present = BINDINGS.try_with(|all| {
        let all = all.borrow();
        let last = all.last.as_ref().filter(|(last, _)| *last == key);
        let last = last.map(|(_, binding)| binding);
        last.or_else(|| all.bindings.get(&key)).cloned()
    });
    // The thread is ending, and has dropped its connections already.
    let present = present.map_err(|_| NO_USABLE_PROFILE)?;
    let binding = match present {
        Some(binding) if binding.is_current(deadline) => {
            // The table has the one that was used before, so this does not drop it.
            BINDINGS.with_borrow_mut(|all| all.last = Some((key, binding.clone())));
            binding
        }
        present => {
            has_waited.set(true);
            match present {
                Some(binding) => renew(&binding, key, object, is_explicit, deadline)?,
                None => establish(key, object.clone(), false, deadline)?,
            }
        }
    };
    binding.connection.take_up(key.priority, now);
    Ok(binding)
}

/// Replaces a binding whose connection has ended, or whose policies have changed. If the target of
/// a forward cannot be bound again, the object that was called is.
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
    // The object that was forwarded to is bound again.
    establish(key, binding.target.clone(), true, deadline).or_else(|_| {
        if is_explicit || may_move(object.rebind_mode(), &binding.target, object) {
            establish(key, object.clone(), false, deadline)
        } else {
            Err(FORWARD_FORBIDDEN)
        }
    })
}

/// Binds further calls of this thread to `target` instead.
pub(super) fn forward(
    key: BindingKey,
    target: Object,
    deadline: Deadline,
) -> Result<(), SystemException> {
    establish(key, target, true, deadline).map(drop)
}

/// Sends the oneways that the thread has kept for an object.
pub(super) fn flush_oneways(object: &Object, deadline: Deadline) -> Result<(), Failure> {
    let all = BINDINGS.try_with(|all| {
        let all = all.borrow();
        let bindings = all.bindings.iter();
        let own = bindings.filter(|(key, _)| key.object == object.number());
        let connections = own.map(|(_, binding)| binding.connection.clone());
        connections.collect::<Vec<_>>()
    });
    // The tables of a thread that ends are gone, with their connections.
    let mut all = all.unwrap_or_default().into_iter();
    all.try_for_each(|connection| connection.flush(deadline))
}

/// Removes the binding, so that the next call binds anew.
pub(super) fn forget(key: BindingKey) {
    let forgotten = BINDINGS.with_borrow_mut(|all| (all.last.take(), all.bindings.remove(&key)));
    drop(forgotten);
}

/// The effective policies of calls of this thread by the reference.
///
/// # Errors
/// The policies that contradict each other.
pub(super) fn policies(object: &Object, profile: &Profile) -> Result<Effective, Vec<ClientPolicy>> {
    Effective::of(&object.effective_overrides(), profile)
}

/// The addresses at which a binding is made.
#[derive(Default)]
struct Selection {
    /// Those that are out of the question. With fail-over those that cannot be reached are added.
    tried: Vec<Way>,
    takes_suspects: bool,
    /// Whether the policies let the binding be made at other addresses.
    fails_over: bool,
}

/// Binds further calls of this thread to `target`.
#[cold]
#[inline(never)]
fn establish(
    key: BindingKey,
    target: Object,
    forwarded: bool,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    let mut selection = Selection::default();
    let bound = establish_at(key, target.clone(), forwarded, &mut selection, deadline);
    match bound {
        Err(exception) if selection.fails_over => {
            let others = target.replicas().into_iter().map(|replica| (replica, true));
            let targets = std::iter::once((target, forwarded)).chain(others);
            let mut targets: Vec<_> = targets.collect();
            establish_at_any(key, &mut targets, &mut selection, deadline).map_err(|other| {
                let is_skipped = exception == NO_USABLE_PROFILE;
                if is_skipped { other } else { exception }
            })
        }
        // A lack of time says nothing about other addresses, and there is none for them.
        Err(NO_USABLE_PROFILE) => establish_at_replica(key, &target, deadline),
        bound => bound,
    }
}

/// Binds at the first other object of a reference that can be reached, after its own addresses were
/// tried in vain: replicas and gateways have profiles with keys of their own.
#[cold]
#[inline(never)]
fn establish_at_replica(
    key: BindingKey,
    target: &Object,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    let mut replicas = target.replicas();
    replicas.retain(|replica| may_move(target.rebind_mode(), target, replica));
    let mut causes = Text::<384>::new();
    for replica in replicas {
        note_cause(&mut causes);
        match establish_at(key, replica, true, &mut Selection::default(), deadline) {
            Err(NO_USABLE_PROFILE) => {}
            bound => return bound,
        }
    }
    if causes.is_empty() {
        return Err(NO_USABLE_PROFILE);
    }
    note_cause(&mut causes);
    Err(because(NO_USABLE_PROFILE, format_args!("{causes}")))
}

/// Binds at the first of the targets that can be reached. Addresses that are suspected are tried
/// last, the one that was suspected first before others.
#[cold]
#[inline(never)]
fn establish_at_any(
    key: BindingKey,
    targets: &mut [(Object, bool)],
    selection: &mut Selection,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    let mut failure = NO_USABLE_PROFILE;
    let suspected_until = |target: &Object| {
        let ways = target.profile().map(|profile| &profile.ways);
        let ways = ways.into_iter().flatten();
        ways.map(|way| target.core().client.health.suspected_until(way))
            .min()
            .unwrap_or_default()
    };
    for takes_suspects in [false, true] {
        selection.takes_suspects = takes_suspects;
        if takes_suspects {
            begin_with_least(targets, |(target, _)| suspected_until(target));
        }
        for (target, forwarded) in &*targets {
            match establish_at(key, target.clone(), *forwarded, selection, deadline) {
                Ok(binding) => return Ok(binding),
                Err(exception) => failure = exception,
            }
        }
    }
    Err(failure)
}

#[cold]
#[inline(never)]
#[allow(clippy::disallowed_methods, reason = "once for each binding")]
fn establish_at(
    key: BindingKey,
    target: Object,
    forwarded: bool,
    selection: &mut Selection,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    let binding = Rc::new(prepare(key, target, forwarded, selection, deadline)?);
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
        let last = all.last.replace((key, binding.clone()));
        let before = all.bindings.insert(key, binding.clone());
        if let Some(before) = &before {
            binding.standbys.swap(&before.standbys);
        }
        (last, forgotten, before)
    });
    // As in `forget_where`, nothing is dropped while the tables are borrowed.
    drop(forgotten);
    Ok(binding)
}

/// Makes a binding, which is not in the table yet.
#[allow(clippy::disallowed_methods, reason = "once for each binding")]
fn prepare(
    key: BindingKey,
    target: Object,
    forwarded: bool,
    selection: &mut Selection,
    deadline: Deadline,
) -> Result<Binding, SystemException> {
    check_process(target.core())?;
    let profile = usable_profile(&target)?;
    // Before the policies are read, so that a change meanwhile is noticed.
    let generation = target.core().rt.policies.generation();
    let effective = policies(&target, profile).map_err(|policies| conflict(&policies))?;
    let route = Route::of(profile, effective.bands.as_ref(), key.priority)
        .map_err(|none| unroutable(none, profile, key.priority))?;
    let way = (&route, key.kind);
    selection.fails_over = effective.failover.is_some();
    let until = effective.ends.bound(deadline, utc_now())?;
    let (connection, connection_key) =
        pick_connection(&target, profile, way, &effective, selection, until)?;
    connection.begin_use(deadline);
    let failover = effective.failover.map(|policy| {
        let addresses = route.ways.len().max(target.ior().profiles.len());
        Arc::new(FailoverState {
            policy,
            addresses,
            tried: selection.tried.clone(),
        })
    });
    let shares_time = failover.as_ref().is_some_and(|f| f.shares_time());
    let oneways = match effective.sync_scope {
        // The members of a group do not answer.
        #[cfg(feature = "miop")]
        _ if target.group().is_some() => ResponseFlags::None,
        SyncScope::None | SyncScope::WithTransport => ResponseFlags::None,
        SyncScope::WithServer => ResponseFlags::SyncWithServer,
        SyncScope::WithTarget => ResponseFlags::SyncWithTarget,
    };
    let ends = (!effective.ends.is_empty()).then_some(effective.ends);
    let core = target.core();
    let is_usual = ends.is_none()
        && effective.buffering.is_none()
        && !shares_time
        && core.config.client_idle_timeout.is_none()
        && core.rt.transform.is_none();
    let binding = Binding {
        keeps_headers: profile.version >= Version::V1_2 && ends.is_none() && !riders::All::VARIES,
        ends,
        buffering: effective.buffering,
        present_ends: Cell::default(),
        is_located: Cell::new(forwarded || !target.is_only_an_address()),
        connection,
        forwarded,
        version: profile.version,
        propagated: route.propagated,
        addressing: Cell::new(target.addressing()),
        prepared: PreparedHeaders::new(),
        time_out: target.time_out(),
        target,
        generation,
        usual_in: if is_usual { generation } else { u64::MAX },
        failover,
        standbys: RefCell::default(),
        rebind: effective.rebind,
        oneways,
    };
    if let Some(policy) = effective.failover {
        failover::watch(&binding, connection_key, &policy, deadline)?;
    }
    Ok(binding)
}

/// Checks that the process was not forked since the first binding of the ORB.
fn check_process(core: &Core) -> Result<(), SystemException> {
    let first = core.client.first_binding.get_or_init(|| {
        fork::begin_count();
        chronorb_transport::look_up_aside();
        FirstBinding {
            forget: forget_orb,
            forks: fork::count(),
        }
    });
    if first.forks == fork::count() {
        Ok(())
    } else {
        Err(FORKED)
    }
}

/// Picks the connection for the calls of a binding. Tries the addresses of the route in order of
/// preference. For each it reuses a connection of this thread; otherwise [`open`] finds one that
/// threads share, or makes one.
#[allow(clippy::disallowed_methods, reason = "once for each binding")]
fn pick_connection(
    target: &Object,
    profile: &Profile,
    (route, kind): (&Route, ChannelKind),
    effective: &Effective,
    selection: &mut Selection,
    deadline: Deadline,
) -> Result<(Rc<ClientConnection>, ConnectionKey), SystemException> {
    let core = target.core();
    let (text, code_sets) = profile.text(&core.config.code_sets())?;
    let carries = if core.config.share_connections_across_priorities {
        Carries::Priority(None)
    } else {
        route.carries
    };
    let urgency = request_priority().max(route.propagated);
    let mut reasons = Text::<320>::new();
    let mut failure = None;
    let mut ways = in_order(&route.ways, effective.protocols.as_ref());
    let failover = effective.failover.as_ref();
    if failover.is_some() {
        let health = &core.client.health;
        let is_taken = |way: &&Way| {
            !selection.tried.contains(way) && (selection.takes_suspects || !health.is_suspect(way))
        };
        ways.retain(is_taken);
        begin_with_least(&mut ways, |way| health.suspected_until(way));
        if ways.is_empty() {
            return Err(NO_USABLE_PROFILE);
        }
    }
    let number = ways.len();
    for (index, way) in ways.into_iter().enumerate() {
        let (protocols, urgent) = (effective.protocols.as_ref(), carries.network_priority());
        let options = SocketOptions {
            peer_timeout: core.config.peer_timeout,
            ..Protocols::socket_options(protocols, way.protocol, urgent)
        };
        let key = ConnectionKey {
            orb: core.number,
            way: way.clone(),
            carries,
            owner: effective.private.then(|| target.owner()),
            options,
            kind,
            is_watched: failover.is_some_and(|policy| policy.heartbeat.is_some()),
            keeps_oneways: effective.buffering.is_some(),
        };
        #[cfg(feature = "bidir")]
        let key = if core.config.is_bidirectional() {
            match bidirectional(target, key, profile, effective, (text, code_sets))? {
                (Some(connection), key) => return Ok((connection, key)),
                (None, key) => key,
            }
        } else {
            key
        };
        let present = BINDINGS.with_borrow(|all| all.connections.get(&key).cloned());
        // The thread may not have used it for long.
        let fits =
            |c: &Rc<ClientConnection>| !c.is_stale() && (c.text, c.code_sets) == (text, code_sets);
        if let Some(connection) = present.filter(fits) {
            // The thread may have become more urgent meanwhile.
            connection.work_for(core, urgency)?;
            return Ok((connection, key));
        }
        tidy();
        if deadline.has_passed() {
            return Err(because(TIMEOUT, format_args!("{TOO_LATE}{reasons}")));
        }
        let limit = failover.map_or(deadline, |policy| {
            share(deadline, policy.attempt_timeout, number - index)
        });
        let limits = (limit, effective.connect_timeout);
        let mut opened = open(core, &key, (text, code_sets), limits);
        // Another thread may take what was made room for.
        while let Err(no_room @ (NoConnection::TooMany | NoConnection::Exhausted(_))) = &opened {
            let lacks_files = matches!(no_room, NoConnection::Exhausted(_));
            let has_room = (lacks_files && core.server.make_room_for_file()) || make_room(core);
            if !has_room {
                break;
            }
            opened = open(core, &key, (text, code_sets), limits);
        }
        let connection = match opened {
            Ok(connection) => Rc::new(connection),
            Err(NoConnection::Unreachable(why) | NoConnection::Exhausted(why)) => {
                let is_first = failure != Some(NO_USABLE_PROFILE);
                let part = if is_first { "" } else { "; " };
                let _ = write!(reasons, "{part}{why}");
                failure = Some(NO_USABLE_PROFILE);
                if let Some(policy) = failover {
                    selection.tried.push(way.clone());
                    // A lack of time says nothing to calls that have more.
                    if !deadline.has_passed() {
                        core.suspect(way, policy.suspicion);
                    }
                }
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
            BINDINGS.with_borrow_mut(|all| all.connections.insert(key.clone(), connection.clone()));
        drop(before);
        return Ok((connection, key));
    }
    if failure != Some(NO_USABLE_PROFILE) {
        reasons = Text::of(match failure {
            None => "the protocols that the policies allow are none of the reference's",
            Some(_) => "-ORBClientTransportRule permits none of the reference's addresses",
        });
    }
    if deadline.has_passed() {
        return Err(because(TIMEOUT, format_args!("{reasons}")));
    }
    let failure = failure.unwrap_or(NO_USABLE_PROFILE);
    Err(because(failure, format_args!("{reasons}")))
}

/// Makes the connection of a key bidirectional if the policies ask for that. If the address is a
/// listen point of a client, returns the connection by which the client is called back.
///
/// # Errors
/// `REBIND` if the reference's only connection has ended.
#[cfg(feature = "bidir")]
#[cold]
#[allow(clippy::disallowed_methods, reason = "once for each binding")]
fn bidirectional(
    target: &Object,
    mut key: ConnectionKey,
    profile: &Profile,
    effective: &Effective,
    text: (TextForm, Option<[u8; 12]>),
) -> Result<(Option<Rc<ClientConnection>>, ConnectionKey), SystemException> {
    let core = target.core();
    let config = &core.config.bidirectional;
    if let Some(path) = target.path() {
        key.kind = ChannelKind::Bidirectional;
        return match call_back_by(core, &key, text, path) {
            Ok(Some(connection)) => Ok((Some(Rc::new(connection)), key)),
            _ => Err(RECONNECT_FORBIDDEN),
        };
    }
    let protocol = core.protocols.of_way(&key.way);
    let is_tcp = protocol.is_some_and(|protocol| matches!(protocol.scheme(), "iiop" | "ssliop"));
    if !is_tcp || profile.version < Version::V1_2 {
        return Ok((None, key));
    }
    let is_present = BINDINGS.with_borrow(|all| {
        let present = all.connections.get(&key);
        present.is_some_and(|connection| !connection.is_stale())
    });
    let claimant = target.claimant();
    // A client's address never replaces a connection that this ORB has made. A claim replaces none,
    // because it counts for references that arrived on its connection.
    if config.accepts() && key.owner.is_none() && (!is_present || claimant.is_some()) {
        let mut by_client = key.clone();
        by_client.kind = ChannelKind::Bidirectional;
        if let Ok(Some(connection)) = call_back(core, &by_client, text, claimant) {
            return Ok((Some(Rc::new(connection)), key));
        }
    }
    if config.offers() && effective.is_bidirectional && core.bidirectional.pool().is_some() {
        key.kind = ChannelKind::Bidirectional;
    }
    Ok((None, key))
}

/// Moves the first of the things with the least rank to the front.
fn begin_with_least<T>(things: &mut [T], rank: impl Fn(&T) -> u64) {
    let ranked = things.iter().map(rank).enumerate();
    if let Some((least, _)) = ranked.min_by_key(|(_, rank)| *rank) {
        things.swap(0, least);
    }
}

/// The addresses that may be used, the preferred one first.
fn in_order<'w>(ways: &'w [Way], protocols: Option<&Protocols>) -> Vec<&'w Way> {
    let mut ways: Vec<_> = ways.iter().collect();
    if let Some(protocols) = protocols {
        ways.retain(|way| protocols.rank(way.protocol).is_some());
        ways.sort_by_key(|way| protocols.rank(way.protocol));
    }
    ways
}

/// Returns the mark of use that this call leaves on its binding: the number of the thread's call,
/// or the time, if idle connections are closed. In that case it also closes them when it is due.
#[inline]
fn begin_call(core: &Core) -> u64 {
    match core.config.client_idle_timeout {
        None => count_call(),
        Some(time_out) => {
            let now = Monotonic::now().as_nanos();
            close_unused(core, now, time_out);
            now
        }
    }
}

/// Returns the number of a call of this thread.
#[inline]
fn count_call() -> u64 {
    let number = CALLS.get().wrapping_add(1);
    CALLS.set(number);
    number
}

/// The profile that requests by a reference use.
///
/// # Errors
/// `TRANSIENT` if there is none; `NO_PERMISSION` if protection forbids the only one; `INV_POLICY`
/// if a policy in it cannot be read.
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

/// Every profile was tried, and none could be reached.
pub(super) const NO_USABLE_PROFILE: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::NO_USABLE_PROFILE);
/// The access rules permit none of the addresses.
#[cfg(feature = "access")]
const REFUSED_BY_RULES: SystemException =
    SystemException::no(SystemExceptionKind::NoPermission, minor::REFUSED_BY_RULES);
/// The connections, and the threads, of the ORB are those of the process that this one was forked
/// from.
const FORKED: SystemException =
    SystemException::no(SystemExceptionKind::BadInvOrder, minor::PROCESS_FORKED);
/// The time was over before a connection was made.
const TIMEOUT: SystemException =
    SystemException::no(SystemExceptionKind::Timeout, minor::TIMEOUT_REQUEST_END);
/// The ORB has as many connections as it may have, and none of them is idle.
const TOO_MANY_CONNECTIONS: SystemException = SystemException::no(
    SystemExceptionKind::NoResources,
    minor::TOO_MANY_CONNECTIONS,
);
/// The connection has ended, and the rebind policy lets only the application make another one.
const RECONNECT_FORBIDDEN: SystemException =
    SystemException::no(SystemExceptionKind::Rebind, minor::RECONNECT_FORBIDDEN);
const TOO_LATE: &str = "the time of the call was over before it was connected: ";
/// The most bindings of a thread; beyond, it drops all that may be made again.
const MAX_BINDINGS: usize = 4096;
