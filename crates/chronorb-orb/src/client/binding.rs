//! From an object reference, a priority and policies to a connection, in the calling
//! thread's own tables: no lock, no sharing between threads or priorities.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use chronorb_giop::{AddressingDisposition, SystemException, SystemExceptionKind, Target, minor};
use chronorb_rt::Deadline;
use chronorb_transport::{Address, SocketOptions};

use super::connection::ClientConnection;
use super::prepared::Prepared;
use super::route::{Carries, Route};
use crate::object::Object;
use crate::profile::Profile;
use crate::rtcorba::policies::{Effective, POLICIES_CONFLICT};
use crate::rtcorba::{ClientPolicy, Priority};

/// How this thread reaches an object at one priority.
pub(super) struct Binding {
    pub(super) connection: Rc<ClientConnection>,
    /// Where requests go: the object itself, or what a location forward named.
    pub(super) target: Object,
    pub(super) forwarded: bool,
    /// The priority that travels with requests, where the server's model wants it.
    pub(super) propagated: Option<Priority>,
    /// How requests name their target; a server may ask for another way.
    pub(super) addressing: Cell<AddressingDisposition>,
    pub(super) prepared: Prepared,
    /// The state of the ORB's policies that it was made by.
    policies: u64,
}

impl Binding {
    /// The profile that the requests go by.
    pub(super) fn profile(&self) -> Result<&Profile, SystemException> {
        self.target.profile().ok_or(NO_USABLE_PROFILE)
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

    fn is_current(&self) -> bool {
        !self.connection.is_closed() && self.policies == self.target.core().policies.generation()
    }
}

/// The tables of one thread.
#[derive(Default)]
struct Bindings {
    bindings: HashMap<BindingKey, Rc<Binding>, BuildHasherDefault<NumberHasher>>,
    connections: HashMap<ConnectionKey, Rc<ClientConnection>>,
}

type BindingKey = (u64, Option<Priority>);

/// What a connection is found by: requests that differ in any of it do not share one.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct ConnectionKey {
    /// The ORB's number.
    orb: u64,
    address: Address,
    carries: Carries,
    /// The reference that it belongs to alone.
    owner: Option<u64>,
    options: SocketOptions,
}

thread_local! {
    static BINDINGS: RefCell<Bindings> = RefCell::default();
}

/// The binding of an object at a priority; connects where there is none yet.
pub(super) fn bind(
    object: &Object,
    priority: Option<Priority>,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    if BINDINGS.try_with(|_| ()).is_err() {
        // The thread is ending, and has let go of its connections already.
        return Err(NO_USABLE_PROFILE);
    }
    let key = (object.number(), priority);
    let present = BINDINGS.with_borrow(|all| all.bindings.get(&key).cloned());
    match present {
        Some(binding) if binding.is_current() => Ok(binding),
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
    priority: Option<Priority>,
    target: Object,
    deadline: Deadline,
) -> Result<(), SystemException> {
    establish((object.number(), priority), target, true, deadline).map(drop)
}

/// Forgets how this thread reaches `object`; the next call finds out anew.
pub(super) fn forget(object: &Object, priority: Option<Priority>) {
    let key = (object.number(), priority);
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

#[allow(clippy::disallowed_methods, reason = "once for each binding")]
fn establish(
    key: BindingKey,
    target: Object,
    forwarded: bool,
    deadline: Deadline,
) -> Result<Rc<Binding>, SystemException> {
    let profile = target.profile().ok_or(NO_USABLE_PROFILE)?;
    let (_, priority) = key;
    // Before they are looked at, so that a change meanwhile is noticed.
    let generation = target.core().policies.generation();
    let effective = policies(&target, profile).map_err(|_| POLICIES_CONFLICT)?;
    let route = Route::of(profile, effective.bands.as_ref(), priority)?;
    let connection = connect(&target, profile, &route, &effective, deadline)?;
    let binding = Rc::new(Binding {
        connection,
        forwarded,
        propagated: route.propagated,
        addressing: Cell::new(AddressingDisposition::Key),
        prepared: Prepared::default(),
        target,
        policies: generation,
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

/// A connection of this thread for the route, to the first address that answers.
#[allow(clippy::disallowed_methods, reason = "once for each binding")]
fn connect(
    target: &Object,
    profile: &Profile,
    route: &Route,
    effective: &Effective,
    deadline: Deadline,
) -> Result<Rc<ClientConnection>, SystemException> {
    let core = target.core();
    let (text, code_sets) = profile.text()?;
    let carries = route.carries;
    let options = effective
        .properties
        .socket_options(carries.network_priority());
    for address in &route.addresses {
        let key = ConnectionKey {
            orb: core.number,
            address: address.clone(),
            carries,
            owner: effective.private.then(|| target.owner()),
            options,
        };
        let present = BINDINGS.with_borrow(|all| all.connections.get(&key).cloned());
        let fits = |c: &Rc<ClientConnection>| !c.is_closed() && c.speaks(text, code_sets);
        if let Some(connection) = present.filter(fits) {
            return Ok(connection);
        }
        tidy();
        let left = deadline.remaining().ok_or(TIMEOUT)?;
        let attempt = Deadline::after(left.min(core.config.connect_timeout));
        let Ok(transport) = core.transport.connect(address, options, attempt) else {
            continue;
        };
        let connection = Rc::new(ClientConnection::new(transport, core, text, code_sets));
        let before =
            BINDINGS.with_borrow_mut(|all| all.connections.insert(key, connection.clone()));
        drop(before);
        return Ok(connection);
    }
    if deadline.has_passed() {
        return Err(TIMEOUT);
    }
    Err(NO_USABLE_PROFILE)
}

/// Forgets what this thread need not know any more, before it makes a new connection:
/// references that nobody has any more, with their private connections, connections that have
/// ended or said goodbye, and those of ORBs that were shut down. A thread that has as many as it
/// may forgets all, and connects again to what it still uses.
fn tidy() {
    forget_dropped();
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

/// Forgets how this thread reaches objects by references of an ORB, but not the connections.
pub(super) fn forget_bindings(number: u64) {
    let forgotten = BINDINGS.try_with(|all| {
        let mut all = all.borrow_mut();
        let of_orb = |binding: &Binding| binding.target.core().number == number;
        let forgotten: Vec<_> = all
            .bindings
            .extract_if(|_, binding| of_orb(binding))
            .collect();
        forgotten
    });
    drop(forgotten);
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
pub(super) const NO_USABLE_PROFILE: SystemException =
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
