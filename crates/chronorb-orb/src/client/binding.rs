//! From an object reference and a priority to a connection, in the calling
//! thread's own tables: no lock, no sharing between threads or priorities.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use chronorb_giop::{AddressingDisposition, SystemException, SystemExceptionKind, minor};
use chronorb_rt::Deadline;
use chronorb_transport::Address;

use super::connection::ClientConnection;
use crate::object::Object;
use crate::poa::PriorityModel;
use crate::profile::Profile;
use crate::rtcorba::{Priority, onward_priority};

/// How this thread reaches an object at its present priority.
pub(super) struct Binding {
    pub(super) connection: Rc<ClientConnection>,
    /// Where requests go: the object itself, or what a location forward named.
    pub(super) target: Object,
    pub(super) forwarded: bool,
    /// The priority that travels with requests, where the server's model wants it.
    pub(super) propagated: Option<Priority>,
    /// How requests name their target; a server may ask for another way.
    pub(super) addressing: Cell<AddressingDisposition>,
}

impl Binding {
    /// The profile that the requests go by.
    pub(super) fn profile(&self) -> Result<&Profile, SystemException> {
        self.target.profile().ok_or(NO_USABLE_PROFILE)
    }
}

/// The tables of one thread.
#[derive(Default)]
struct Bindings {
    bindings: HashMap<BindingKey, Rc<Binding>, BuildHasherDefault<NumberHasher>>,
    connections: HashMap<ConnectionKey, Rc<ClientConnection>>,
}

type BindingKey = (u64, Option<Priority>);
/// The ORB's number, where to, and the priority that the connection belongs to.
type ConnectionKey = (u64, Address, Option<Priority>);

thread_local! {
    static BINDINGS: RefCell<Bindings> = RefCell::default();
}

/// The binding of an object at this thread's priority; connects where there is none yet.
pub(super) fn bind(object: &Object, deadline: Deadline) -> Result<Rc<Binding>, SystemException> {
    if BINDINGS.try_with(|_| ()).is_err() {
        // The thread is ending, and has let go of its connections already.
        return Err(NO_USABLE_PROFILE);
    }
    let key = (object.number(), onward_priority(object.core())?);
    let present = BINDINGS.with_borrow(|all| all.bindings.get(&key).cloned());
    match present {
        Some(binding) if !binding.connection.is_closed() => Ok(binding),
        Some(binding) if binding.forwarded => {
            // The way to the new place is made again from there.
            establish(key, binding.target.clone(), true, deadline)
                .or_else(|_| establish(key, object.clone(), false, deadline))
        }
        _ => establish(key, object.clone(), false, deadline),
    }
}

/// Sends further calls of this thread on `object` to `target`.
pub(super) fn forward(
    object: &Object,
    target: Object,
    deadline: Deadline,
) -> Result<(), SystemException> {
    let key = (object.number(), onward_priority(object.core())?);
    establish(key, target, true, deadline).map(drop)
}

/// Forgets how this thread reaches `object`; the next call finds out anew.
pub(super) fn forget(object: &Object) {
    let Ok(priority) = onward_priority(object.core()) else {
        return;
    };
    let key = (object.number(), priority);
    BINDINGS.with_borrow_mut(|all| all.bindings.remove(&key));
}

#[allow(clippy::disallowed_methods, reason = "once for each binding")]
fn establish(
    key: BindingKey,
    target: Object,
    forwarded: bool,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    let profile = target.profile().ok_or(NO_USABLE_PROFILE)?;
    let (_, priority) = key;
    let addresses = addresses(profile, priority)?;
    let propagated = match profile.priority_model {
        Some((PriorityModel::ClientPropagated, _)) => priority,
        _ => None,
    };
    let connection = connect(&target, profile, &addresses, priority, deadline)?;
    let binding = Rc::new(Binding {
        connection,
        forwarded,
        propagated,
        addressing: Cell::new(AddressingDisposition::Key),
        target,
    });
    let forgotten = BINDINGS.with_borrow_mut(|all| {
        let full = all.bindings.len() >= MAX_BINDINGS;
        let forgotten = full.then(|| std::mem::take(&mut all.bindings));
        (forgotten, all.bindings.insert(key, binding.clone()))
    });
    // As in `forget_where`: nothing is dropped while the tables are borrowed.
    drop(forgotten);
    Ok(binding)
}

/// Where requests of this priority may go.
///
/// A server with lanes and client-propagated priorities has an endpoint for each lane. A
/// priority without a lane is refused and not rounded: it would share the queue of another.
/// Requests of threads without a priority are served at the server's, whose endpoint is the profile's own.
fn addresses(
    profile: &Profile,
    priority: Option<Priority>,
) -> Result<Vec<Address>, SystemException> {
    let propagates = matches!(
        profile.priority_model,
        Some((PriorityModel::ClientPropagated, _))
    );
    let Some(priority) = priority.filter(|_| propagates && !profile.lanes.is_empty()) else {
        return Ok(profile.addresses.clone());
    };
    let of_lane = profile.lanes.iter().filter(|(lane, _)| *lane == priority);
    let addresses: Vec<Address> = of_lane.map(|(_, address)| address.clone()).collect();
    if addresses.is_empty() {
        return Err(SystemException::no(
            SystemExceptionKind::NoResources,
            minor::NO_CONNECTION_FOR_PRIORITY,
        ));
    }
    Ok(addresses)
}

/// A connection of this thread and priority to the first address that answers.
#[allow(clippy::disallowed_methods, reason = "once for each binding")]
fn connect(
    target: &Object,
    profile: &Profile,
    addresses: &[Address],
    priority: Option<Priority>,
    deadline: Deadline,
) -> Result<Rc<ClientConnection>, SystemException> {
    let core = target.core();
    let (text, code_sets) = profile.text()?;
    for address in addresses {
        let key = (core.number, address.clone(), priority);
        let present = BINDINGS.with_borrow(|all| all.connections.get(&key).cloned());
        let fits = |c: &Rc<ClientConnection>| !c.is_closed() && c.speaks(text, code_sets);
        if let Some(connection) = present.filter(fits) {
            return Ok(connection);
        }
        tidy();
        let left = deadline.remaining().ok_or(TIMEOUT)?;
        let attempt = Deadline::after(left.min(core.config.connect_timeout));
        let Ok(transport) = core
            .transport
            .connect(address, core.socket_options(), attempt)
        else {
            continue;
        };
        let connection = Rc::new(ClientConnection::new(transport, core, text, code_sets));
        BINDINGS.with_borrow_mut(|all| all.connections.insert(key, connection.clone()));
        return Ok(connection);
    }
    if deadline.has_passed() {
        return Err(TIMEOUT);
    }
    Err(NO_USABLE_PROFILE)
}

/// Forgets what this thread need not know any more, before it makes a new connection:
/// connections that have ended or said goodbye, and those of ORBs that were shut down. A thread
/// that has as many as it may forgets all, and connects again to what it still uses.
fn tidy() {
    BINDINGS.with_borrow(|all| {
        for connection in all.connections.values() {
            if connection.is_stale() {
                connection.close();
            }
        }
    });
    let full = BINDINGS.with_borrow(|all| all.connections.len() >= MAX_CONNECTIONS);
    forget_where(|connection| full || connection.is_closed());
}

/// Forgets all connections of an ORB that this thread has.
pub(super) fn forget_orb(number: u64) {
    forget_where(|connection| connection.orb() == Some(number));
}

fn forget_where(gone: impl Fn(&ClientConnection) -> bool) {
    if BINDINGS.try_with(|_| ()).is_err() {
        return;
    }
    let forgotten = BINDINGS.with_borrow_mut(|all| {
        let bindings: Vec<_> = all
            .bindings
            .extract_if(|_, binding| gone(&binding.connection))
            .collect();
        let connections: Vec<_> = all.connections.extract_if(|_, c| gone(c)).collect();
        (bindings, connections)
    });
    // What is dropped here may be the last of an ORB, and must not meet the tables borrowed.
    drop(forgotten);
}

/// Every profile was tried, and none could be reached.
const NO_USABLE_PROFILE: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::NO_USABLE_PROFILE);
/// The time was over before a connection was made.
const TIMEOUT: SystemException =
    SystemException::no(SystemExceptionKind::Timeout, minor::TIMEOUT_REQUEST_END);
/// Bindings that a thread remembers; beyond, it forgets all and finds out anew.
const MAX_BINDINGS: usize = 4096;
/// Connections that a thread has at a time.
const MAX_CONNECTIONS: usize = 256;

/// Object numbers are small and all different: they are their own hash, spread by one multiplication.
#[derive(Default)]
struct NumberHasher(u64);

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

    fn write_i16(&mut self, n: i16) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}
