//! The connections of an ORB's clients: their number, those that threads share, and the making of
//! new ones.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::HashMap;
#[cfg(feature = "access")]
use std::fmt;
#[cfg(feature = "bidir")]
use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb_cdr::TextForm;
use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, Monotonic, PiMutex};
#[cfg(feature = "access")]
use chronorb_transport::Address;
use chronorb_transport::{ConnectError, Connection, Setup};
use rustix::io::Errno;

#[cfg(feature = "baselines")]
use super::active;
use super::batch::BatchSender;
#[cfg(feature = "bidir")]
use super::bidirectional;
use super::channel::{Channel, ClientConnection, ExclusiveConnection, SharedOwner};
use super::flusher::Flusher;
use super::heartbeat::Heartbeats;
use super::key::{ChannelKind, ConnectionKey};
use super::sending::SendMode;
use super::shared::SharedConnection;
use super::threads::ConnectionThread;
#[cfg(feature = "baselines")]
use super::threads::no_thread;
#[cfg(feature = "access")]
use crate::access::Judgement;
#[cfg(feature = "bidir")]
use crate::bidirectional::{LaneConnection, ListenPoint};
use crate::client_state::{ClientState, ConnectionPermit, OpenConnections};
use crate::core::Core;
use crate::failure::because;
use crate::incident::Incident;
use crate::protocol::{self, Way};

/// The reason why there is no connection.
pub(in crate::client) enum NoConnection {
    /// The address does not answer, for this reason.
    Unreachable(String),
    /// The access rules refuse the address, or the server there.
    #[cfg(feature = "access")]
    Refused,
    /// The ORB has as many connections as it may have.
    TooMany,
    /// No descriptor is left, for this reason.
    Exhausted(String),
    Exception(SystemException),
}

impl From<SystemException> for NoConnection {
    fn from(exception: SystemException) -> Self {
        Self::Exception(exception)
    }
}

#[derive(Default)]
struct Connections {
    shared: PiMutex<HashMap<ConnectionKey, Arc<PiMutex<SharedEntry>>>>,
    heartbeats: Arc<Heartbeats>,
    flusher: Arc<Flusher>,
}

/// The connection of one key, if there is one. The entry is locked while a thread connects, so that
/// the others wait for it.
#[derive(Default)]
struct SharedEntry {
    owner: Weak<SharedOwner>,
    /// The time and the reason of the last failure to connect.
    failed: Option<(Monotonic, String)>,
}

/// The numbers of connections by host. A host with many ports does not use up the connections to
/// others, because its own make room first.
#[derive(Default)]
pub(in crate::client) struct Crowds<'w>(HashMap<&'w str, usize>);

/// The deadline of a call, and the longest time of an attempt to connect if that is not the ORB's.
type ConnectLimits = (Deadline, Option<Duration>);

/// Returns a connection for the calling thread: the shared one, which may exist already, or a new
/// exclusive one.
pub(in crate::client) fn open(
    core: &Arc<Core>,
    key: &ConnectionKey,
    text: (TextForm, Option<[u8; 12]>),
    limits: ConnectLimits,
) -> Result<ClientConnection, NoConnection> {
    let (channel, sender) = if key.kind == ChannelKind::Exclusive {
        let (transport, permit) = connect(core, key, limits)?;
        let (transport, sender) = if key.keeps_oneways {
            let transport: Arc<dyn Connection> = transport.into();
            let own: Box<dyn Connection> = Box::new(transport.clone());
            (own, Some(BatchSender::Exclusive(transport)))
        } else {
            (transport, None)
        };
        let exclusive = ExclusiveConnection::new(transport, permit, &core.config);
        (Channel::Exclusive(exclusive), sender)
    } else {
        let owner = find_or_connect(core, key, text, limits)?;
        let sender = key.keeps_oneways && owner.shared.may_batch();
        let sender = sender.then(|| BatchSender::Shared(owner.clone()));
        (Channel::shared(owner), sender)
    };
    let (text, code_sets) = text;
    let mut connection = ClientConnection::new(channel, core, &key.way, text, code_sets);
    if let Some(sender) = sender
        && connection.link().is_stream()
    {
        connection.keep_oneways(core, key, sender)?;
    }
    Ok(connection)
}

/// Returns the connection by which a client can be called back; `None` if it cannot. The reference
/// arrived on the connection `claimant` if that claims listen points.
#[cfg(feature = "bidir")]
pub(in crate::client) fn call_back(
    core: &Arc<Core>,
    key: &ConnectionKey,
    text: (TextForm, Option<[u8; 12]>),
    claimant: Option<NonZeroU64>,
) -> Result<Option<ClientConnection>, NoConnection> {
    let priority = key.carries.network_priority();
    let point = ListenPoint {
        protocol: key.way.protocol,
        address: key.way.address.clone(),
    };
    let Some(path) = core.bidirectional.path(&point, priority, claimant) else {
        return Ok(None);
    };
    call_back_by(core, key, text, &*path)
}

/// Returns the handle of a client's connection, to call the client back; `None` if it has just
/// ended, or is used for text of another form.
#[cfg(feature = "bidir")]
pub(in crate::client) fn call_back_by(
    core: &Arc<Core>,
    key: &ConnectionKey,
    text: (TextForm, Option<[u8; 12]>),
    path: &dyn LaneConnection,
) -> Result<Option<ClientConnection>, NoConnection> {
    let owner = bidirectional::call_back(core, key, text, path)?;
    Ok(owner.map(|owner| {
        let (channel, (text, code_sets)) = (Channel::shared(owner), text);
        ClientConnection::new(channel, core, &key.way, text, code_sets)
    }))
}

/// Returns the connection that threads share, which the first of them opens.
fn find_or_connect(
    core: &Core,
    key: &ConnectionKey,
    text: (TextForm, Option<[u8; 12]>),
    (deadline, longest): ConnectLimits,
) -> Result<Arc<SharedOwner>, NoConnection> {
    let began = Monotonic::now();
    let entry = core.client.connections().entry(key);
    let too_late = || NoConnection::Unreachable(TOO_LATE.to_owned());
    let left = deadline.remaining().ok_or_else(too_late)?;
    let mut entry = entry.try_lock_for(left).ok_or_else(too_late)?;
    // A connection with text of another form stays for those that have it.
    let fits = |owner: &Arc<SharedOwner>| owner.text == text;
    if let Some(owner) = entry.owner.upgrade().filter(fits) {
        let shared = &owner.shared;
        if !shared.is_stale() {
            return Ok(owner);
        }
        // The other threads that have it find it closed. Calls may be under way on a retired one.
        if !shared.link.is_closed() {
            shared.close();
        }
    }
    if let Some((failed, why)) = &entry.failed
        && *failed >= began
    {
        // Another thread has tried while this one waited.
        return Err(NoConnection::Unreachable(why.clone()));
    }
    let (transport, permit) = connect(core, key, (deadline, longest)).inspect_err(|none| {
        // A lack of time says nothing to threads that have more.
        if let NoConnection::Unreachable(why) = none
            && !deadline.has_passed()
        {
            entry.failed = Some((Monotonic::now(), why.clone()));
        }
    })?;
    #[cfg(feature = "bidir")]
    if key.kind == ChannelKind::Bidirectional {
        let owner = bidirectional::originate(core, key, text, transport, permit)?;
        entry.owner = Arc::downgrade(&owner);
        return Ok(owner);
    }
    let (shared, thread) = share(core, key, transport, permit)?;
    let owner = Arc::new(SharedOwner {
        shared,
        thread,
        text,
        key: key.clone(),
        is_known: AtomicBool::new(false),
        #[cfg(feature = "bidir")]
        announcement: None,
    });
    entry.owner = Arc::downgrade(&owner);
    Ok(owner)
}

fn connect(
    core: &Core,
    key: &ConnectionKey,
    (deadline, longest): ConnectLimits,
) -> Result<(Box<dyn Connection>, ConnectionPermit), NoConnection> {
    let permit = core.client.permits.take();
    let permit = permit.ok_or(NoConnection::TooMany)?;
    let unreachable = |why: &str| NoConnection::Unreachable(why.to_owned());
    let left = deadline.remaining().ok_or_else(|| unreachable(TOO_LATE))?;
    let longest = longest.unwrap_or(core.config.connect_timeout);
    let attempt = Deadline::after(left.min(longest));
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
            // An attacker on the path may want the client to use another address.
            ConnectError::Unacceptable { .. } => {
                because(NO_PROTECTION, format_args!("{scheme}: {error}")).into()
            }
            _ if is_exhausted(errno) => NoConnection::Exhausted(format!("{scheme}: {error}")),
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
    if key.is_watched {
        let transport: Arc<dyn Connection> = transport.into();
        core.client.heartbeats().add(&key.way, &transport);
        return Ok((Box::new(transport), permit));
    }
    Ok((transport, permit))
}

/// The error number of the system; 0 if there is none.
fn errno_of(error: &ConnectError) -> i64 {
    let of_system = match error {
        ConnectError::Unresolved { source, .. } | ConnectError::Refused { source, .. } => {
            source.raw_os_error()
        }
        _ => None,
    };
    i64::from(of_system.unwrap_or(0))
}

/// Whether the error of this number is a lack of descriptors.
fn is_exhausted(errno: i64) -> bool {
    [Errno::MFILE, Errno::NFILE]
        .map(|lack| i64::from(lack.raw_os_error()))
        .contains(&errno)
}

/// Whether the judgement of the access rules on an address stays open until a connection exists.
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

/// Records an address, or a server, that the access rules refuse.
#[cfg(feature = "access")]
fn refused(core: &Core, server: &dyn fmt::Display, rule: usize) -> NoConnection {
    let incident = Incident::AddressRefused;
    core.incidents.note(incident, server, rule as i64);
    NoConnection::Refused
}

/// Makes a connection for the threads of the process, with a thread of its own if its kind has one.
fn share(
    core: &Core,
    key: &ConnectionKey,
    transport: Box<dyn Connection>,
    permit: ConnectionPermit,
) -> Result<(Arc<SharedConnection>, Option<ConnectionThread>), NoConnection> {
    let with = |sending| {
        let (config, kind) = (&core.config, key.kind);
        Arc::new(SharedConnection::new(
            transport, permit, config, sending, kind,
        ))
    };
    #[cfg(feature = "baselines")]
    if key.kind == ChannelKind::Active {
        let no_thread = |error| no_thread(key, error);
        let queue = Arc::new(active::SendQueue::new().map_err(no_thread)?);
        let shared = with(SendMode::Queued(queue.clone()));
        let reactor = active::reactor(&shared.link, &queue).map_err(no_thread)?;
        let work = move |shared: &SharedConnection| active::serve(shared, &queue, &reactor);
        let thread = ConnectionThread::start(core, key, &shared, "conn", work)?;
        return Ok((shared, Some(thread)));
    }
    let shared = with(SendMode::in_turn());
    let thread = if key.kind.has_own_thread() {
        let work = SharedConnection::read_to_end;
        Some(ConnectionThread::start(core, key, &shared, "conn", work)?)
    } else {
        None
    };
    Ok((shared, thread))
}

impl<'w> Crowds<'w> {
    /// Counts connections with these ways.
    pub(in crate::client) fn of(ways: impl Iterator<Item = &'w Way>) -> Self {
        let mut this = Self::default();
        for way in ways {
            *this.0.entry(way.host()).or_default() += 1;
        }
        this
    }

    /// The rank of a connection by its host: the least where most connections are.
    pub(in crate::client) fn rank(&self, way: &Way) -> Reverse<usize> {
        Reverse(self.0.get(way.host()).copied().unwrap_or_default())
    }
}

impl ClientState {
    fn connections(&self) -> &Connections {
        let made = self
            .connections
            .get_or_init(|| Box::<Connections>::default());
        let made: &dyn Any = &**made;
        made.downcast_ref().expect("nothing else is put there")
    }

    pub(in crate::client) fn heartbeats(&self) -> &Arc<Heartbeats> {
        &self.connections().heartbeats
    }

    pub(super) fn flusher(&self) -> &Arc<Flusher> {
        &self.connections().flusher
    }

    /// Closes a shared connection that is idle: of those to the host with the most connections, the
    /// one that has been idle longest. Returns whether there was one.
    pub(in crate::client) fn close_idlest(&self) -> bool {
        self.flusher().send_all();
        loop {
            let all = self.connections().all_shared();
            let crowds = Crowds::of(all.iter().map(|owner| &owner.key.way));
            let rank = |owner: &SharedOwner| {
                let since = owner.shared.idle_since()?;
                Some((crowds.rank(&owner.key.way), since))
            };
            let idle = all.iter().filter_map(|owner| Some((rank(owner)?, owner)));
            let mut idle: Vec<_> = idle.collect();
            idle.sort_unstable_by_key(|(rank, _)| *rank);
            if idle.is_empty() {
                return false;
            }
            // One that is in use by now is skipped. Where all are, other threads have proceeded.
            let mut idle = idle.into_iter();
            if idle.any(|((_, since), owner)| owner.shared.close_unused_since(since)) {
                return true;
            }
        }
    }

    /// Closes the shared connections that no thread has used since `time`.
    pub(in crate::client) fn close_unused_since(&self, time: Monotonic) {
        for owner in self.connections().all_shared() {
            owner.shared.close_unused_since(time);
        }
    }
}

impl Connections {
    fn all_shared(&self) -> Vec<Arc<SharedOwner>> {
        let entries: Vec<_> = self.shared.lock().values().cloned().collect();
        let present = |entry: &Arc<PiMutex<SharedEntry>>| entry.try_lock()?.owner.upgrade();
        entries.iter().filter_map(present).collect()
    }

    /// The entry of the connection.
    fn entry(&self, key: &ConnectionKey) -> Arc<PiMutex<SharedEntry>> {
        let mut shared = self.shared.lock();
        if let Some(entry) = shared.get(key) {
            return entry.clone();
        }
        // Entries that no thread uses, and whose connections have ended, are removed.
        shared.retain(|_, entry| {
            let entry = Arc::get_mut(entry);
            entry.is_none_or(|entry| entry.get_mut().owner.strong_count() > 0)
        });
        shared.entry(key.clone()).or_default().clone()
    }
}

impl OpenConnections for Connections {
    fn leave(&self) {
        self.heartbeats.end();
        self.flusher.end();
        for owner in self.all_shared() {
            owner.shared.leave();
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.heartbeats.end();
        self.flusher.end();
    }
}

const TOO_LATE: &str = "the time of the call was over before it was connected";

/// There is no connection that both sides find safe enough.
pub(in crate::client) const NO_PROTECTION: SystemException =
    SystemException::no(SystemExceptionKind::NoPermission, minor::NO_PROTECTION);
