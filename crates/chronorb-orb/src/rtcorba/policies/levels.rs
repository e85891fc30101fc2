//! The levels of the ORB and of the thread.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind};
use chronorb_rt::PiMutex;

use super::{ClientPolicy, ClientPolicyKind, Overrides, Protocols, SetOverride};

/// The policies of an ORB, for all its threads and references (`CORBA::PolicyManager`).
#[derive(Clone, Debug)]
pub struct PolicyManager {
    policies: Arc<OrbPolicies>,
}

/// The policies of the calling thread, for all references of an ORB that it calls
/// (`CORBA::PolicyCurrent`).
///
/// They stay with the thread; a servant that sets them sets them for whatever its thread serves
/// next.
#[derive(Clone, Debug)]
pub struct PolicyCurrent {
    policies: Arc<OrbPolicies>,
}

impl PolicyManager {
    pub(crate) fn new(policies: Arc<OrbPolicies>) -> Self {
        Self { policies }
    }

    /// The policies of these kinds that are set here; all, where no kind is named.
    pub fn policy_overrides(&self, kinds: &[ClientPolicyKind]) -> Vec<ClientPolicy> {
        self.policies.overrides.lock().list(kinds)
    }

    /// Sets policies. They hold for calls that begin after this; connections that fit stay.
    ///
    /// # Errors
    /// `BAD_PARAM` (OMG minor 30) for two of a kind; `INV_POLICY` (chronorb's minor 3) for a
    /// [fail-over policy](super::FailoverPolicy) that cannot be followed. Nothing is changed then.
    pub fn set_policy_overrides(
        &self,
        policies: &[ClientPolicy],
        how: SetOverride,
    ) -> Result<(), SystemException> {
        let orb = &self.policies;
        let mut overrides = orb.overrides.lock();
        let changed = overrides.changed(policies, how)?;
        orb.time_out.store(
            changed.time_out().map_or(NO_TIME_OUT, nanoseconds),
            Ordering::Relaxed,
        );
        let before = std::mem::replace(&mut *overrides, changed);
        orb.note_ends(&overrides);
        // After the change, so that a thread that reads the number sees the policies.
        orb.generation.fetch_add(1, Ordering::Release);
        drop(overrides);
        drop(before);
        Ok(())
    }

    /// Sets the protocols that the ORB listens by, and the properties of the accepted connections
    /// (`RTCORBA::ServerProtocolPolicy`). Thread pools without endpoints of their own listen by all
    /// of them, and references publish only those, in this order. The default is IIOP, and all
    /// configured endpoints.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` if the first thread pool has opened its endpoints, a POA has asked for
    /// server protocols, or they were set; `INV_POLICY` if this ORB has none of the protocols.
    pub fn set_server_protocol(&self, protocols: Protocols) -> Result<(), SystemException> {
        let orb = &self.policies;
        if !protocols.are_usable(|tag| orb.known_protocols.contains(&tag)) {
            return Err(SystemException::no(SystemExceptionKind::InvPolicy, 0));
        }
        let set = orb.server_protocols.set(Some(protocols));
        set.map_err(|_| SystemException::no(SystemExceptionKind::BadInvOrder, 0))
    }
}

impl PolicyCurrent {
    pub(crate) fn new(policies: Arc<OrbPolicies>) -> Self {
        Self { policies }
    }

    /// The policies of these kinds that are set here; all, where no kind is named.
    pub fn policy_overrides(&self, kinds: &[ClientPolicyKind]) -> Vec<ClientPolicy> {
        read_thread_overrides(&self.policies, |overrides| overrides.list(kinds)).unwrap_or_default()
    }

    /// Sets policies. They hold for the thread's next calls; connections that fit stay.
    ///
    /// # Errors
    /// `BAD_PARAM` (OMG minor 30) for two of a kind; `INV_POLICY` (chronorb's minor 3) for a
    /// [fail-over policy](super::FailoverPolicy) that cannot be followed. Nothing is changed then.
    pub fn set_policy_overrides(
        &self,
        policies: &[ClientPolicy],
        how: SetOverride,
    ) -> Result<(), SystemException> {
        let present = read_thread_overrides(&self.policies, Overrides::clone).unwrap_or_default();
        let changed = present.changed(policies, how)?;
        self.policies.note_ends(&changed);
        let before = OF_THREADS.try_with(|all| {
            let mut all = all.borrow_mut();
            let gone =
                |(orb, _): &PoliciesOfThread| orb.strong_count() == 0 || is_of(orb, &self.policies);
            let before: Vec<_> = all.extract_if(.., |entry| gone(entry)).collect();
            if !changed.is_empty() {
                all.push((Arc::downgrade(&self.policies), changed));
            }
            before
        });
        drop(before);
        CHANGES.set(CHANGES.get().wrapping_add(1));
        Ok(())
    }
}

/// The policies that a thread has set, for one ORB.
type PoliciesOfThread = (Weak<OrbPolicies>, Overrides);

/// Has the calling thread renew its bindings before their next use. Neither locks nor allocates.
pub(crate) fn renew_bindings() {
    CHANGES.set(CHANGES.get().wrapping_add(1));
}

thread_local! {
    /// The policies that this thread has set, for each ORB.
    static OF_THREADS: RefCell<Vec<PoliciesOfThread>> = const { RefCell::new(Vec::new()) };
    /// Counts the changes of this thread's policies.
    static CHANGES: Cell<u64> = const { Cell::new(0) };
}

/// The policies at the level of the ORB, in a form that calls read without a lock.
#[derive(Debug)]
pub(crate) struct OrbPolicies {
    overrides: PiMutex<Overrides>,
    /// Counts changes.
    generation: AtomicU64,
    /// In nanoseconds, or [`NO_TIME_OUT`].
    time_out: AtomicU64,
    /// The time-out of the configuration, in nanoseconds.
    default_time_out: u64,
    /// Whether an end time has been set at any level.
    uses_ends: AtomicBool,
    /// Fixed at the first use, since every endpoint has them; `None` for the default.
    server_protocols: OnceLock<Option<Protocols>>,
    /// The tags of the protocols that the ORB has.
    known_protocols: Vec<u32>,
}

impl OrbPolicies {
    /// Makes the policies of an ORB with this time-out and the protocols of these tags.
    pub(crate) fn new(time_out: Duration, known_protocols: Vec<u32>) -> Self {
        Self {
            overrides: PiMutex::new(Overrides::default()),
            generation: AtomicU64::new(0),
            time_out: AtomicU64::new(NO_TIME_OUT),
            default_time_out: nanoseconds(time_out),
            uses_ends: AtomicBool::new(false),
            server_protocols: OnceLock::new(),
            known_protocols,
        }
    }

    /// Notes a change of the ORB by which connections that fitted may fit no longer.
    #[cfg(feature = "bidir")]
    pub(crate) fn note_change(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns a number that changes, on the calling thread, whenever the policies of the ORB or of
    /// the thread change, or an address becomes suspected.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        // Both only grow, and so does their sum.
        self.generation
            .load(Ordering::Acquire)
            .wrapping_add(CHANGES.get())
    }

    /// Notes whether policies about end times are in use.
    pub(crate) fn note_ends(&self, overrides: &Overrides) {
        if !overrides.ends().is_empty() {
            self.uses_ends.store(true, Ordering::Relaxed);
        }
    }

    /// Whether calls may have end times.
    #[inline]
    pub(crate) fn uses_ends(&self) -> bool {
        self.uses_ends.load(Ordering::Relaxed)
    }

    /// Has all threads bind anew before their next calls, since an address is suspected, or calls
    /// have something to do that they did not have.
    pub(crate) fn renew_bindings(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Returns the protocol properties for opening the server's endpoints; they are fixed from now
    /// on.
    pub(crate) fn server_protocols(&self) -> Option<&Protocols> {
        self.server_protocols.get_or_init(|| None).as_ref()
    }
}

/// Returns the policies in effect for a reference with these own ones, on the calling thread.
pub(crate) fn effective_overrides(orb: &OrbPolicies, own: &Overrides) -> Overrides {
    let inner = read_thread_overrides(orb, |of_thread| own.clone().or(of_thread));
    let inner = inner.unwrap_or_else(|| own.clone());
    inner.or(&orb.overrides.lock())
}

/// Returns the longest duration of a call by such a reference, in nanoseconds.
#[inline]
pub(crate) fn effective_time_out(orb: &OrbPolicies, own: &Overrides) -> u64 {
    own.time_out()
        .or_else(|| read_thread_overrides(orb, Overrides::time_out).flatten())
        .map_or_else(
            || match orb.time_out.load(Ordering::Relaxed) {
                NO_TIME_OUT => orb.default_time_out,
                nanoseconds => nanoseconds,
            },
            nanoseconds,
        )
}

/// Reads the policies of the calling thread; `None` if it has none.
#[inline]
fn read_thread_overrides<R>(orb: &OrbPolicies, read: impl FnOnce(&Overrides) -> R) -> Option<R> {
    let found = OF_THREADS.try_with(|all| {
        let all = all.borrow();
        let entry = all.iter().find(|(of, _)| is_of(of, orb))?;
        Some(read(&entry.1))
    });
    found.ok().flatten()
}

fn is_of(entry: &Weak<OrbPolicies>, orb: &OrbPolicies) -> bool {
    std::ptr::eq(entry.as_ptr(), orb)
}

/// Saturates after 584 years.
#[inline]
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).map_or(NO_TIME_OUT - 1, |n| n.min(NO_TIME_OUT - 1))
}

const NO_TIME_OUT: u64 = u64::MAX;
