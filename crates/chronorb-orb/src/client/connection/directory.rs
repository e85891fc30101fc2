//! The connections of an ORB's clients: how many there may be, those that threads share, and how
//! a new one is made.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use chronorb_cdr::TextForm;
use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex, Scheduling, ThreadBuilder};
#[cfg(feature = "access")]
use chronorb_transport::Address;
use chronorb_transport::{ConnectError, Connection, Setup};

use super::exclusive::Exclusive;
use super::handle::ChannelKind;
use super::member::{Member, Open};
use super::multiplexed::{Multiplexed, Sending};
use super::own_thread::OwnThread;
use super::permit::{Permit, Permits};
use super::queue::SendQueue;
use super::{ClientConnection, ConnectionKey, active, reader};
#[cfg(feature = "access")]
use crate::access::Judgement;
use crate::config::ConnectionStrategy;
use crate::core::Core;
use crate::failure::because;
use crate::incident::Incident;
use crate::protocol;
use crate::rtcorba::{Priority, request_priority};

/// No connection can be had.
pub(in crate::client) enum NoConnection {
    /// The address does not answer, and why.
    Unreachable(String),
    /// The access rules refuse the address, or the server there.
    #[cfg(feature = "access")]
    Refused,
    /// There are as many as there may be.
    TooMany,
    /// Its thread cannot be had.
    Exception(SystemException),
}

impl From<SystemException> for NoConnection {
    fn from(exception: SystemException) -> Self {
        Self::Exception(exception)
    }
}

/// The connections that an ORB's threads have to servers.
pub(crate) struct ClientConnections {
    permits: Permits,
    shared: PiMutex<HashMap<ConnectionKey, Arc<PiMutex<Place>>>>,
    threads: Arc<Threads>,
}

/// Where threads look for the connection that they share. It is locked while one of them
/// connects, so that the others wait for it.
#[derive(Default)]
struct Place {
    open: Weak<Open>,
    /// When connecting failed last, and why.
    failed: Option<(Monotonic, String)>,
}

/// The threads of connections.
#[derive(Default)]
struct Threads {
    started: AtomicU32,
    running: AtomicUsize,
    ended: Gate,
    /// Those that go on with a call beside the thread that looks after it.
    aside: AtomicUsize,
}

struct Running(Arc<Threads>);

struct Aside(Arc<Threads>);

/// A connection for the calling thread; a shared one may be there already.
pub(in crate::client) fn open(
    core: &Arc<Core>,
    key: &ConnectionKey,
    speech: (TextForm, Option<[u8; 12]>),
    deadline: Deadline,
) -> Result<ClientConnection, NoConnection> {
    let (text, code_sets) = speech;
    let connected = |channel| ClientConnection::new(channel, core, &key.way, text, code_sets);
    if core.config.client_connection == ConnectionStrategy::Exclusive && !key.shares {
        let (transport, permit) = connect(core, key, deadline)?;
        let exclusive = Exclusive::new(transport, permit, &core.config);
        return Ok(connected(ChannelKind::Exclusive(exclusive)));
    }
    let began = Monotonic::now();
    let place = core.client_connections.place(key);
    let too_late = || NoConnection::Unreachable(TOO_LATE.to_owned());
    let left = deadline.remaining().ok_or_else(too_late)?;
    let mut place = place.try_lock_for(left).ok_or_else(too_late)?;
    let usable = |open: &Arc<Open>| !open.shared.is_closed() && open.speech == speech;
    if let Some(open) = place.open.upgrade().filter(usable) {
        return Ok(connected(ChannelKind::Shared(Member::new(open))));
    }
    if let Some((failed, why)) = &place.failed
        && *failed >= began
    {
        // Another thread has tried while this one waited.
        return Err(NoConnection::Unreachable(why.clone()));
    }
    let (transport, permit) = connect(core, key, deadline).inspect_err(|none| {
        // One that only had no more time says nothing to those who have.
        if let NoConnection::Unreachable(why) = none
            && !deadline.has_passed()
        {
            place.failed = Some((Monotonic::now(), why.clone()));
        }
    })?;
    let (shared, thread) = share(core, key, transport, permit)?;
    let open = Arc::new(Open {
        shared,
        thread,
        speech,
        key: key.clone(),
        is_known: AtomicBool::new(false),
    });
    place.open = Arc::downgrade(&open);
    Ok(connected(ChannelKind::Shared(Member::new(open))))
}

fn connect(
    core: &Core,
    key: &ConnectionKey,
    deadline: Deadline,
) -> Result<(Box<dyn Connection>, Permit), NoConnection> {
    let permit = core.client_connections.permits.take();
    let permit = permit.ok_or(NoConnection::TooMany)?;
    let unreachable = |why: &str| NoConnection::Unreachable(why.to_owned());
    let left = deadline.remaining().ok_or_else(|| unreachable(TOO_LATE))?;
    let attempt = Deadline::after(left.min(core.config.connect_timeout));
    let protocol = core.protocols.of_way(&key.way);
    let protocol = protocol.ok_or_else(|| unreachable("the protocol is not there any more"))?;
    let transport = protocol.transport();
    #[cfg(feature = "access")]
    let is_open = permits(core, transport.scheme(), &key.way.address, attempt)?;
    let priority = key.carries.network_priority();
    let urgency = priority.map(|priority| core.rt.real_time.scheduling(priority));
    let setup = Setup {
        options: key.options,
        messages: protocol::messages(core.config.max_message_size),
        urgency: urgency.transpose()?,
    };
    let transport = transport.connect(&key.way.address, setup, attempt);
    let transport = transport.map_err(|error| {
        let (scheme, errno) = (protocol.scheme(), errno_of(&error));
        let peer = format_args!("{scheme}://{}", key.way);
        let incidents = &core.incidents;
        incidents.tell(Incident::FailedConnection, &peer, errno, &error);
        match error {
            // To go another way would be what somebody in between may want.
            ConnectError::Unacceptable { .. } => {
                because(NO_PROTECTION, format_args!("{scheme}: {error}")).into()
            }
            _ => NoConnection::Unreachable(format!("{scheme}: {error}")),
        }
    })?;
    #[cfg(feature = "access")]
    if is_open
        && let Judgement::Refused(rule) = core
            .config
            .client_transport_rules
            .judge_as(protocol.scheme(), &*transport)
    {
        return Err(refused(core, &transport.peer(), rule));
    }
    Ok((transport, permit))
}

/// The error number of the system; 0 where there is none.
fn errno_of(error: &ConnectError) -> i64 {
    let of_system = match error {
        ConnectError::Unresolved { source, .. } | ConnectError::Refused { source, .. } => {
            source.raw_os_error()
        }
        _ => None,
    };
    i64::from(of_system.unwrap_or(0))
}

/// Whether the judgement of the access rules on an address is open until a connection to it is made.
#[cfg(feature = "access")]
fn permits(
    core: &Core,
    scheme: &str,
    address: &Address,
    deadline: Deadline,
) -> Result<bool, NoConnection> {
    let rules = &core.config.client_transport_rules;
    match rules.judge_address(scheme, address, deadline) {
        Judgement::Permitted => Ok(false),
        Judgement::Open => Ok(true),
        Judgement::Refused(rule) => Err(refused(core, address, rule)),
    }
}

/// Notes an address, or a server, that the access rules refuse.
#[cfg(feature = "access")]
fn refused(core: &Core, server: &dyn fmt::Display, rule: usize) -> NoConnection {
    let incident = Incident::AddressRefused;
    core.incidents.note(incident, server, rule as i64);
    NoConnection::Refused
}

/// A connection for the threads of the process, with its own thread where the strategy is so.
fn share(
    core: &Core,
    key: &ConnectionKey,
    transport: Box<dyn Connection>,
    permit: Permit,
) -> Result<(Arc<Multiplexed>, Option<OwnThread>), NoConnection> {
    let strategy = core.config.client_connection;
    let has_thread = matches!(
        strategy,
        ConnectionStrategy::Thread | ConnectionStrategy::Active
    );
    let shared = |sending| {
        Arc::new(Multiplexed::new(
            transport,
            permit,
            &core.config,
            sending,
            has_thread,
        ))
    };
    if strategy == ConnectionStrategy::Active {
        let no_thread = |error| NoConnection::from(no_thread(key, error));
        let queue = SendQueue::new().map_err(no_thread)?;
        let queue = Arc::new(queue);
        let shared = shared(Sending::Queued(queue.clone()));
        let reactor = active::reactor(&shared, &queue).map_err(no_thread)?;
        let thread = start_thread(core, key, &shared, "conn", move |shared| {
            active::serve(shared, &queue, &reactor);
        })?;
        return Ok((shared, Some(thread)));
    }
    let shared = shared(Sending::InTurn(PiMutex::new(())));
    let thread = match has_thread {
        true => Some(start_thread(core, key, &shared, "conn", reader::read_on)?),
        false => None,
    };
    Ok((shared, thread))
}

/// Starts a thread of a connection, at the priority that the connection is for, or that of the calling thread where
/// that is more urgent.
pub(in crate::client) fn start_thread(
    core: &Core,
    key: &ConnectionKey,
    shared: &Arc<Multiplexed>,
    what: &str,
    work: impl FnOnce(&Multiplexed) + Send + 'static,
) -> Result<OwnThread, SystemException> {
    let priority = key.carries.network_priority().max(request_priority());
    let scheduling = priority.map_or(Ok(Scheduling::OTHER), |p| core.rt.real_time.scheduling(p))?;
    let threads = &core.client_connections.threads;
    let number = threads.started.fetch_add(1, Ordering::Relaxed);
    threads.running.fetch_add(1, Ordering::AcqRel);
    let running = Running(threads.clone());
    let name = format!("{what}.{number} {}", core.config.orb_id);
    OwnThread::start(shared.clone(), name, (priority, scheduling), work, running)
        .map_err(|error| no_thread(key, error))
}

/// Starts a thread that goes on with a call of this priority, while the one that looks after it looks after others.
/// Returns whether there is one.
pub(in crate::client) fn start_aside(
    core: &Core,
    urgency: Option<Priority>,
    work: impl FnOnce() + Send + 'static,
) -> bool {
    let threads = &core.client_connections.threads;
    let more = |aside: usize| (aside < MOST_ASIDE).then_some(aside + 1);
    let order = Ordering::AcqRel;
    if threads
        .aside
        .fetch_update(order, Ordering::Acquire, more)
        .is_err()
    {
        return false;
    }
    threads.running.fetch_add(1, Ordering::AcqRel);
    let ended = (Aside(threads.clone()), Running(threads.clone()));
    let scheduling = urgency.map_or(Ok(Scheduling::OTHER), |p| core.rt.real_time.scheduling(p));
    let Ok(scheduling) = scheduling else {
        return false;
    };
    let thread = ThreadBuilder::new(format!("aside {}", core.config.orb_id));
    let thread = thread.scheduling(scheduling).stack_size(STACK_SIZE);
    let started = thread.spawn(move || {
        work();
        drop(ended);
    });
    started.is_ok()
}

pub(in crate::client) fn no_thread(
    key: &ConnectionKey,
    error: impl fmt::Display,
) -> SystemException {
    let exception = SystemException::no(SystemExceptionKind::NoResources, 0);
    let what = format_args!("connection to {}: no thread", key.way);
    because(exception, format_args!("{what}: {error}"))
}

impl ClientConnections {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            permits: Permits::new(limit as usize),
            shared: PiMutex::default(),
            threads: Arc::default(),
        }
    }

    /// Closes the shared connection that has been idle longest; returns whether there was one.
    pub(in crate::client) fn close_idlest(&self) -> bool {
        let idle = self.all_shared().into_iter();
        let idle = idle.filter_map(|open| Some((open.shared.idle_since()?, open)));
        let mut idle: Vec<_> = idle.collect();
        let idlest = |idle: &Vec<(Monotonic, Arc<Open>)>| {
            let numbered = idle.iter().enumerate();
            let idlest = numbered.min_by_key(|(_, (since, _))| *since);
            idlest.map(|(index, _)| index)
        };
        while let Some(index) = idlest(&idle) {
            let (since, open) = idle.swap_remove(index);
            // One that is in use by now is passed over.
            if open.shared.close_unused_since(since) {
                return true;
            }
        }
        false
    }

    /// Closes the shared connections that nobody has used since `time`.
    pub(in crate::client) fn close_unused_since(&self, time: Monotonic) {
        for open in self.all_shared() {
            open.shared.close_unused_since(time);
        }
    }

    /// Ends shared connections as soon as no call is under way on them.
    pub(crate) fn leave(&self) {
        for open in self.all_shared() {
            open.shared.leave();
        }
    }

    /// Waits until the threads of connections have ended, with the last calls.
    pub(crate) fn wait_until_ended(&self, deadline: Deadline) {
        let threads = &self.threads;
        loop {
            let seen = threads.ended.get();
            if threads.running.load(Ordering::Acquire) == 0 || deadline.has_passed() {
                return;
            }
            threads.ended.wait_while(seen, deadline);
        }
    }

    fn all_shared(&self) -> Vec<Arc<Open>> {
        let places: Vec<_> = self.shared.lock().values().cloned().collect();
        let present = |place: &Arc<PiMutex<Place>>| place.try_lock()?.open.upgrade();
        places.iter().filter_map(present).collect()
    }

    /// Where the connection is, or will be.
    fn place(&self, key: &ConnectionKey) -> Arc<PiMutex<Place>> {
        let mut shared = self.shared.lock();
        if let Some(place) = shared.get(key) {
            return place.clone();
        }
        // Nobody looks there, and nothing is there any more.
        let is_left = |place: &mut Arc<PiMutex<Place>>| {
            let place = Arc::get_mut(place);
            place.is_none_or(|place| place.get_mut().open.strong_count() > 0)
        };
        shared.retain(|_, place| is_left(place));
        shared.entry(key.clone()).or_default().clone()
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.0.aside.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.advance();
    }
}

const TOO_LATE: &str = "the time of the call was over before it was connected";
/// Calls that threads go on with aside, at a time.
const MOST_ASIDE: usize = 16;
const STACK_SIZE: usize = 256 << 10;

/// There is no connection that both sides find safe enough.
pub(in crate::client) const NO_PROTECTION: SystemException =
    SystemException::no(SystemExceptionKind::NoPermission, minor::NO_PROTECTION);
