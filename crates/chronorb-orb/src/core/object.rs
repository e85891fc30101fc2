//! Object references.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::size_of;
#[cfg(feature = "bidir")]
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chronorb_cdr::{CdrError, Decoder, Encoder, Reference};
#[cfg(feature = "bidir")]
use chronorb_giop::Version;
use chronorb_giop::{
    AddressingDisposition, Ior, ServiceContext, SystemException, TAG_UIPMC, TaggedProfile,
};
use thiserror::Error;

use super::Core;
#[cfg(feature = "miop")]
use super::group::Group;
use super::host::Host;
#[cfg(feature = "bidir")]
use crate::bidirectional::{LaneConnection, ListenPoint};
use crate::config::Collocation;
use crate::lanes::PriorityModel;
use crate::poa::ObjectKey;
use crate::profile::{MAX_WAYS, Profile, effective_policy};
use crate::protocol::Source;
#[cfg(feature = "access")]
use crate::rtcorba::policies::CallContext;
use crate::rtcorba::policies::{Overrides, effective_overrides, effective_time_out};
use crate::rtcorba::{ClientPolicy, ClientPolicyKind, Priority, RebindMode, SetOverride};

/// A reference to an object of any interface (`CORBA::Object`). Never nil: nil is `Option`.
///
/// A handle: clones are the same reference and share what is known about its addresses.
#[derive(Clone)]
pub struct Object {
    inner: Arc<Inner>,
}

struct Inner {
    /// Identifies this reference in the binding tables of threads.
    number: u64,
    core: Arc<Core>,
    ior: Ior,
    source: Source,
    /// The connection by which all calls go, if they may go by no other.
    #[cfg(feature = "bidir")]
    path: Option<Arc<dyn LaneConnection>>,
    /// The usable profile, decoded on first use: most references in messages are only stored or
    /// passed on. `None` where this ORB can use no profile.
    profile: OnceLock<Option<Box<Profile>>>,
    overrides: Overrides,
    collocation: Collocation,
    /// The number of the reference that owns the private connections: this one, or the one that
    /// was forwarded to it.
    owner: u64,
    /// The group of objects that it refers to, if it refers to a group.
    #[cfg(feature = "miop")]
    group: Option<Box<Group>>,
    /// The place of the object, as far as it is known: a [`Place`].
    place: AtomicU8,
}

/// The place of an object, as its calls see it.
#[repr(u8)]
enum Place {
    /// Not known, or not the same for all calls: that of a group.
    Unknown,
    /// Outside of this ORB, or to be called as if it were.
    Outside,
    /// In this ORB.
    Within,
}

/// An error in binding a reference explicitly.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum BindError {
    /// Calls would fail with `INV_POLICY`: these policies contradict each other, the server or the
    /// present priority. The list may be incomplete.
    #[error("{} of the policies cannot be followed", .0.len())]
    Inconsistent(Vec<ClientPolicy>),
    /// The server cannot be reached, or does not have the object.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// A typed reference, as generated for each IDL interface.
pub trait Interface: Clone + Send + Sync + 'static {
    /// The interface's repository identifier.
    const REPOSITORY_ID: &'static str;

    /// Converts an object to a reference of this interface, without asking the object.
    fn from_object(object: Object) -> Self;

    /// The untyped reference.
    fn as_object(&self) -> &Object;

    /// The untyped reference.
    fn into_object(self) -> Object;
}

/// Converts an object to a reference of interface `I`; `None` if it does not have the interface.
///
/// Asks the object (`_is_a`) unless its reference already names the interface.
///
/// # Errors
/// Those of the call to the object.
pub fn narrow<I: Interface>(object: &Object) -> Result<Option<I>, SystemException> {
    if object.type_id() == I::REPOSITORY_ID || object.is_a(I::REPOSITORY_ID)? {
        Ok(Some(I::from_object(object.clone())))
    } else {
        Ok(None)
    }
}

impl Object {
    /// Makes the object of a reference; `None` where that is nil.
    pub(crate) fn from_ior(core: &Arc<Core>, ior: Ior) -> Option<Self> {
        Self::from_source(core.clone(), ior, Source::Application)
    }

    /// Like [`from_ior`](Self::from_ior), for a reference from the given source.
    fn from_source(core: Arc<Core>, ior: Ior, source: Source) -> Option<Self> {
        if ior.is_nil() {
            return None;
        }
        let collocation = core.config.collocation;
        let overrides = Overrides::default();
        let reference = (ior, source);
        Some(Self::new(core, reference, overrides, collocation, None))
    }

    /// Makes the object that a server named instead of this one; it has the same policies.
    pub(crate) fn forwarded_to(&self, ior: Ior) -> Option<Self> {
        if ior.is_nil() {
            return None;
        }
        let inner = &self.inner;
        let (core, overrides) = (inner.core.clone(), inner.overrides.clone());
        let owner = Some(inner.owner);
        let told = (ior, Source::Message(None));
        let forwarded = Self::new(core, told, overrides, inner.collocation, owner);
        Some(forwarded.by_path_of(inner))
    }

    #[expect(clippy::disallowed_methods, reason = "once for each reference")]
    fn new(
        core: Arc<Core>,
        (ior, source): (Ior, Source),
        overrides: Overrides,
        collocation: Collocation,
        owner: Option<u64>,
    ) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let owner = owner.unwrap_or(number);
        #[cfg(feature = "miop")]
        let group = Group::of(&ior, |ior| {
            let (core, overrides) = (core.clone(), overrides.clone());
            Self::new(core, (ior, source), overrides, collocation, Some(owner))
        });
        Self {
            inner: Arc::new(Inner {
                number,
                owner,
                #[cfg(feature = "miop")]
                group: group.map(Box::new),
                profile: OnceLock::new(),
                core,
                ior,
                source,
                #[cfg(feature = "bidir")]
                path: None,
                overrides,
                collocation,
                place: AtomicU8::new(Place::Unknown as u8),
            }),
        }
    }

    /// The repository identifier of the most derived interface that the reference names; may be
    /// empty.
    pub fn type_id(&self) -> &str {
        &self.inner.ior.type_id
    }

    /// The content of the reference.
    pub fn ior(&self) -> &Ior {
        &self.inner.ior
    }

    /// Returns the same object with another limit for the total time of a call: only the policy
    /// [`ClientPolicy::RelativeRoundtripTimeout`] changes.
    #[must_use]
    pub fn with_timeout(&self, time_out: Duration) -> Self {
        self.with_overrides(self.inner.overrides.with_time_out(time_out))
    }

    /// Returns the same object with a service context that each request by it has, in place of the
    /// one that it had. Peers that do not know the identifier ignore it.
    #[cfg(feature = "access")]
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "once for each reference")]
    pub fn with_service_context(&self, id: u32, data: &[u8]) -> Self {
        let data = data.into();
        self.with_overrides(self.inner.overrides.with_context(CallContext { id, data }))
    }

    /// Returns the same object with other policies (`Object::_set_policy_overrides`). This
    /// reference and its connections do not change.
    ///
    /// # Errors
    /// `BAD_PARAM` (OMG minor 30) for two policies of one kind; `INV_POLICY` (chronorb's minor 3)
    /// for a [fail-over policy](crate::rtcorba::FailoverPolicy) that cannot be followed.
    pub fn with_policy_overrides(
        &self,
        policies: &[ClientPolicy],
        how: SetOverride,
    ) -> Result<Self, SystemException> {
        let overrides = self.inner.overrides.changed(policies, how)?;
        Ok(self.with_overrides(overrides))
    }

    /// The policies of these kinds that are set for this reference; all of them where no kind is
    /// named (`Object::_get_policy_overrides`).
    pub fn policy_overrides(&self, kinds: &[ClientPolicyKind]) -> Vec<ClientPolicy> {
        self.inner.overrides.list(kinds)
    }

    /// The effective policy of the client side for calls of the calling thread by this reference
    /// (`Object::_get_client_policy`): the reference's own, else the thread's, else the ORB's, else
    /// the default, which only the time-out has.
    pub fn client_policy(&self, kind: ClientPolicyKind) -> Option<ClientPolicy> {
        if kind == ClientPolicyKind::RelativeRoundtripTimeout {
            let time_out = Duration::from_nanos(self.time_out());
            return Some(ClientPolicy::RelativeRoundtripTimeout(time_out));
        }
        self.effective_overrides().get(kind)
    }

    /// The effective policy of such calls, reconciled with the server's policy in the reference
    /// (`Object::_get_policy`).
    ///
    /// # Errors
    /// `INV_POLICY` (OMG minor 1) where both sides set a policy that only one side may set.
    pub fn policy(&self, kind: ClientPolicyKind) -> Result<Option<ClientPolicy>, SystemException> {
        if kind == ClientPolicyKind::RelativeRoundtripTimeout {
            return Ok(self.client_policy(kind));
        }
        effective_policy(&self.effective_overrides(), self.profile(), kind)
    }

    /// The priority model of the object's server and the server's priority, as the reference
    /// states them; `None` without a priority model.
    pub fn priority_model(&self) -> Option<(PriorityModel, Priority)> {
        self.profile()?.priority_model
    }

    /// Returns the same object with another kind of calls within the process.
    #[must_use]
    pub fn with_collocation(&self, collocation: Collocation) -> Self {
        self.changed(self.inner.overrides.clone(), collocation)
    }

    fn with_overrides(&self, overrides: Overrides) -> Self {
        self.changed(overrides, self.inner.collocation)
    }

    fn changed(&self, overrides: Overrides, collocation: Collocation) -> Self {
        let inner = &self.inner;
        let reference = (inner.ior.clone(), inner.source);
        inner.core.rt.policies.note_ends(&overrides);
        let changed = Self::new(inner.core.clone(), reference, overrides, collocation, None);
        changed.by_path_of(inner)
    }

    /// Lets the calls of a new reference go by the only connection of another one, if that has one.
    #[cfg_attr(not(feature = "bidir"), expect(unused_variables))]
    fn by_path_of(self, other: &Inner) -> Self {
        #[cfg(feature = "bidir")]
        return self.by_path(other.path.clone());
        #[cfg(not(feature = "bidir"))]
        self
    }

    /// Lets the calls of a new reference go by this connection alone, if there is one.
    #[cfg(feature = "bidir")]
    fn by_path(mut self, path: Option<Arc<dyn LaneConnection>>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.path = path;
        }
        self
    }

    /// Returns the same object by the connection of a request alone, if its client can be called
    /// back there at an address of the reference (bidirectional GIOP). `None` otherwise, as for
    /// calls from within the process.
    ///
    /// A client may name any address as its own, and gets no more by it than messages on the
    /// connection that it has made itself: calls by the result never connect. Once the connection
    /// has ended, or if they are forwarded, they fail with `REBIND`. Outboxes do not take it.
    #[cfg(feature = "bidir")]
    #[cfg_attr(docsrs, doc(cfg(feature = "bidir")))]
    #[allow(clippy::disallowed_methods, reason = "once for each reference")]
    pub fn by_connection_of(&self, call: &crate::call::Call<'_>) -> Option<Self> {
        let transport = call.incoming.peer?;
        let (core, profile) = (&self.inner.core, self.profile()?);
        if !core.config.bidirectional.accepts() || profile.version < Version::V1_2 {
            return None;
        }
        let path = profile.ways.iter().find_map(|way| {
            let point = ListenPoint {
                protocol: way.protocol,
                address: way.address.clone(),
            };
            core.bidirectional.path_by(&point, transport)
        })?;
        // Neither a forward nor the end of the connection leads elsewhere.
        let once = ClientPolicy::Rebind(RebindMode::NoReconnect);
        let overrides = self.inner.overrides.changed(&[once], SetOverride::Add);
        Some(self.with_overrides(overrides.ok()?).by_path(Some(path)))
    }

    /// The connection by which all calls go, if they may go by no other.
    #[cfg(feature = "bidir")]
    #[cold]
    pub(crate) fn path(&self) -> Option<&dyn LaneConnection> {
        self.inner.path.as_deref()
    }

    /// The other objects that the reference names: those of profiles that are not
    /// [like](Profile::is_like) the one that calls use. They have the same policies.
    #[cold]
    #[expect(clippy::disallowed_macros, reason = "once for each binding")]
    pub(crate) fn replicas(&self) -> Vec<Self> {
        let inner = &*self.inner;
        let profiles = inner.ior.profiles.iter().take(MAX_WAYS);
        let replica = |profile: &TaggedProfile| {
            let ior = Ior {
                type_id: inner.ior.type_id.clone(),
                profiles: vec![profile.clone()],
            };
            let (core, overrides) = (inner.core.clone(), inner.overrides.clone());
            let (told, owner) = ((ior, inner.source), Some(inner.owner));
            Self::new(core, told, overrides, inner.collocation, owner)
        };
        let own = self.profile();
        let mut replicas: Vec<_> = profiles.map(replica).collect();
        replicas.retain(|replica| {
            let profile = replica.profile();
            profile.is_some_and(|profile| own.is_none_or(|own| !own.is_like(profile)))
        });
        replicas
    }

    /// Whether this ORB made the reference, or made it in an earlier run of the program: its key
    /// names a POA, and its address is one of this ORB. A reference with a plain key, as of
    /// `corbaloc:`, is never local. Makes no call.
    pub fn is_local(&self) -> bool {
        self.profile()
            .is_some_and(|profile| self.is_of_this_orb(profile))
    }

    /// Returns the key of an object in this process whose servant is to be called directly.
    #[inline]
    pub(crate) fn key_of_direct_calls(&self) -> Option<&[u8]> {
        if self.inner.collocation != Collocation::Direct {
            return None;
        }
        self.key_within()
    }

    /// Whether this and another reference are known to refer to the same object
    /// (`Object::_is_equivalent`). The same as `==`.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self == other
    }

    /// Writes a reference; `None` is nil.
    ///
    /// # Errors
    /// The message is full.
    pub fn encode_reference(this: Option<&Self>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        match this {
            Some(object) => object.ior().encode(e),
            None => Ior::nil().encode(e),
        }
    }

    /// Reads a reference; nil is `None`.
    ///
    /// # Errors
    /// [`CdrError::TooManyReferences`] where the references of the message take more memory than
    /// `-ORBMaxMessageSize` octets; other errors where the octets are malformed.
    pub fn decode_reference(d: &mut Decoder<'_>) -> Result<Option<Self>, CdrError> {
        let ior = Ior::decode(d)?;
        let (core, claimant) = Host::admit(d, octets_kept(&ior))?;
        Ok(Self::from_source(core, ior, Source::Message(claimant)))
    }

    /// The object that answers questions: this one, or the group's reference for them.
    ///
    /// # Errors
    /// `BAD_OPERATION` (chronorb minor 1) where it is a group without such a reference.
    #[inline]
    pub(crate) fn answering(&self) -> Result<&Self, SystemException> {
        #[cfg(feature = "miop")]
        if let Some(group) = self.group() {
            return group.answering();
        }
        Ok(self)
    }

    /// The group of objects that it refers to, if it refers to a group.
    #[cfg(feature = "miop")]
    pub(crate) fn group(&self) -> Option<&Group> {
        self.inner.group.as_deref()
    }

    /// The form in which requests name the target, unless the server asks for another.
    pub(crate) fn addressing(&self) -> AddressingDisposition {
        #[cfg(feature = "miop")]
        if self.group().is_some() {
            return AddressingDisposition::Profile;
        }
        AddressingDisposition::Key
    }

    pub(crate) fn number(&self) -> u64 {
        self.inner.number
    }

    /// The number of the connection that the reference arrived on, if its client claims listen
    /// points.
    #[cfg(feature = "bidir")]
    #[cold]
    pub(crate) fn claimant(&self) -> Option<NonZeroU64> {
        self.inner.source.claimant()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    #[inline]
    #[expect(clippy::disallowed_methods, reason = "once for each reference")]
    pub(crate) fn profile(&self) -> Option<&Profile> {
        let inner = &*self.inner;
        let read = || {
            Profile::from_ior(&inner.ior, inner.source, inner.core.profile_reader()).map(Box::new)
        };
        inner.profile.get_or_init(read).as_deref()
    }

    /// Whether it is known that the object itself is called by a connection.
    #[inline]
    pub(crate) fn is_outside(&self) -> bool {
        self.inner.place.load(Ordering::Relaxed) == Place::Outside as u8
    }

    /// The object key, if the object is in this ORB and is to be called within the process.
    #[inline]
    pub(crate) fn key_within(&self) -> Option<&[u8]> {
        if self.is_outside() {
            return None;
        }
        let profile = self.profile()?;
        let known = self.inner.place.load(Ordering::Relaxed);
        let is_within = known == Place::Within as u8 || self.is_within(profile);
        is_within.then_some(&*profile.key)
    }

    /// Finds out whether the object is to be called within the process.
    #[cold]
    #[inline(never)]
    fn is_within(&self, profile: &Profile) -> bool {
        let is_within = self.inner.collocation != Collocation::Off && self.is_of_this_orb(profile);
        #[cfg(feature = "miop")]
        if self.group().is_some() {
            return is_within;
        }
        let place = if is_within {
            Place::Within
        } else {
            Place::Outside
        };
        self.inner.place.store(place as u8, Ordering::Relaxed);
        is_within
    }

    fn is_of_this_orb(&self, profile: &Profile) -> bool {
        let core = &self.inner.core;
        match ObjectKey::parse(&profile.key) {
            // No other ORB has this number, whatever address the reference names.
            Some(key) => key.poa.run().map_or_else(
                || core.server.is_published(&profile.ways),
                |run| run == core.incarnation,
            ),
            None => false,
        }
    }

    /// Whether the reference consists only of addresses and a key, like one of `corbaloc:`.
    pub(crate) fn is_only_an_address(&self) -> bool {
        let tells_nothing = |profile: &Profile| profile.code_sets.is_none();
        self.type_id().is_empty() && self.profile().is_some_and(tells_nothing)
    }

    /// The longest duration of a call, in nanoseconds.
    #[inline]
    pub(crate) fn time_out(&self) -> u64 {
        effective_time_out(&self.inner.core.rt.policies, &self.inner.overrides)
    }

    /// The service context that requests by this reference have.
    pub(crate) fn service_context(&self) -> Option<ServiceContext<'_>> {
        #[cfg(feature = "access")]
        return self.inner.overrides.context();
        #[cfg(not(feature = "access"))]
        None
    }

    pub(crate) fn effective_overrides(&self) -> Overrides {
        effective_overrides(&self.inner.core.rt.policies, &self.inner.overrides)
    }

    /// The changes of its bindings that are permitted without the application's consent.
    pub(crate) fn rebind_mode(&self) -> RebindMode {
        self.effective_overrides().rebind_mode()
    }

    /// The number of the reference whose private connections it uses.
    pub(crate) fn owner(&self) -> u64 {
        self.inner.owner
    }

    /// The number of handles of this reference, those in tables included.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.inner)
    }
}

impl Reference for Object {
    fn encode_reference(this: Option<&Self>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        Self::encode_reference(this, e)
    }

    fn decode_reference(d: &mut Decoder<'_>) -> Result<Option<Self>, CdrError> {
        Self::decode_reference(d)
    }
}

/// Equal where the profiles of the references have the same content, whatever their byte order,
/// padding and order of components: an ORB that passes a reference on may encode it anew. Unequal
/// references may still lead to the same object. The interface that a reference names is no part
/// of the object's identity.
///
/// A reference by which calls go to a client at an address that the server cannot check
/// (bidirectional GIOP) is equal only to those that arrived on the same connection.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        let (this, other) = (&*self.inner, &*other.inner);
        std::ptr::eq(this, other)
            || (this.source.claimant() == other.source.claimant()
                && this.core.protocols.say_the_same(&this.ior, &other.ior))
    }
}

impl Eq for Object {}

/// Hashes the object key, which is the same for equal references.
impl Hash for Object {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.profile().map(|profile| &profile.key).hash(state);
    }
}

/// The memory of a new object that is made from this reference, before its profile is decoded.
fn octets_kept(ior: &Ior) -> usize {
    let profile =
        |profile: &TaggedProfile| size_of::<TaggedProfile>() + profile.data.len() + ALLOCATION;
    let profiles: usize = ior.profiles.iter().map(profile).sum();
    let own = size_of::<Inner>() + ior.type_id.len() + profiles + 3 * ALLOCATION;
    // A group also keeps a reference that answers questions.
    let is_group = ior.profiles.iter().any(|profile| profile.tag == TAG_UIPMC);
    if is_group { 2 * own } else { own }
}

/// The overhead of the allocator for each block, in bytes.
const ALLOCATION: usize = 16;

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Object");
        shown.field("type_id", &self.type_id());
        if let Some(way) = self.profile().and_then(|p| p.ways.first()) {
            shown.field("address", &format_args!("{way}"));
        }
        shown.finish_non_exhaustive()
    }
}

/// The repository identifier of the interface that every object has.
pub(crate) const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";
