//! Object references.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::size_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chronorb_cdr::{CdrError, Decoder, Encoder, Reference};
use chronorb_giop::{AddressingDisposition, Ior, SystemException, TAG_UIPMC, TaggedProfile};
use thiserror::Error;

use crate::call::{Operation, Reply};
use crate::client;
use crate::config::Collocation;
use crate::core::Core;
#[cfg(feature = "miop")]
use crate::groups::Group;
use crate::host::Host;
use crate::poa::{ObjectKey, PriorityModel};
use crate::profile::Profile;
use crate::protocol::Source;
use crate::rtcorba::policies::{
    Overrides, effective_overrides, effective_policy, effective_time_out,
};
use crate::rtcorba::{ClientPolicy, ClientPolicyKind, Priority, RebindMode, SetOverride};
use crate::scope::Scope;
use crate::server;

/// A reference to an object of any interface (`CORBA::Object`). Never nil: nil is `Option`.
///
/// A handle: clones are the same reference and share what was learned about the way to it.
#[derive(Clone)]
pub struct Object {
    inner: Arc<Inner>,
}

struct Inner {
    /// Names this reference in the tables that threads keep of their bindings.
    number: u64,
    core: Arc<Core>,
    ior: Ior,
    source: Source,
    /// The usable profile, decoded when it is first needed: most references that come in messages
    /// are only kept or passed on. `None` where no profile can be used here.
    profile: OnceLock<Option<Box<Profile>>>,
    overrides: Overrides,
    collocation: Collocation,
    /// The number of the reference that private connections belong to: this one's, or that of
    /// the one that was forwarded to it.
    owner: u64,
    /// The group of objects that it stands for, if it is none by itself.
    #[cfg(feature = "miop")]
    group: Option<Box<Group>>,
    /// Whether it is an object of this ORB; found out when that is first asked.
    within: OnceLock<bool>,
}

/// A reference could not be bound explicitly.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum BindError {
    /// Calls would be `INV_POLICY`: these policies contradict each other, the server or the
    /// present priority. Not all of them may be named.
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

    /// Takes the object for one of this interface, without asking it.
    fn from_object(object: Object) -> Self;

    /// The untyped reference.
    fn as_object(&self) -> &Object;

    /// The untyped reference.
    fn into_object(self) -> Object;
}

/// Looks at an object as one of interface `I`.
///
/// Asks the object (`_is_a`) unless its reference says already that it is one.
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
    /// The object that a reference stands for; `None` where it is nil.
    pub(crate) fn from_ior(core: &Arc<Core>, ior: Ior) -> Option<Self> {
        Self::from_source(core, ior, Source::Application)
    }

    /// As [`from_ior`](Self::from_ior), of a reference that comes from there.
    fn from_source(core: &Arc<Core>, ior: Ior, source: Source) -> Option<Self> {
        if ior.is_nil() {
            return None;
        }
        let collocation = core.config.collocation;
        let overrides = Overrides::default();
        Some(Self::new(
            core.clone(),
            (ior, source),
            overrides,
            collocation,
            None,
        ))
    }

    /// The object that a server named instead of this one; it is called by the same policies.
    pub(crate) fn forwarded_to(&self, ior: Ior) -> Option<Self> {
        if ior.is_nil() {
            return None;
        }
        let inner = &self.inner;
        let (core, overrides) = (inner.core.clone(), inner.overrides.clone());
        let owner = Some(inner.owner);
        let told = (ior, Source::Message);
        Some(Self::new(core, told, overrides, inner.collocation, owner))
    }

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
                overrides,
                collocation,
                within: OnceLock::new(),
            }),
        }
    }

    /// The repository identifier of its most derived interface, as far as the reference says; may be empty.
    pub fn type_id(&self) -> &str {
        &self.inner.ior.type_id
    }

    /// The reference's content.
    pub fn ior(&self) -> &Ior {
        &self.inner.ior
    }

    /// Asks the object whether it has this interface (`_is_a`).
    ///
    /// # Errors
    /// Those of any call.
    pub fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        if repository_id == OBJECT_ID {
            return Ok(true);
        }
        #[cfg(feature = "miop")]
        if let Some(group) = self.group()
            && self.type_id() == repository_id
            && group.answering().is_err()
        {
            return Ok(true);
        }
        let operation = Operation::twoway("_is_a");
        self.ask(&operation, &|e| e.write_str(repository_id))
    }

    /// Asks whether the object is gone for good (`_non_existent`).
    ///
    /// # Errors
    /// Those of any call but `OBJECT_NOT_EXIST`, which is the answer `true`.
    pub fn non_existent(&self) -> Result<bool, SystemException> {
        use chronorb_giop::SystemExceptionKind::ObjectNotExist;
        #[cfg(feature = "miop")]
        if self.group().is_some_and(|group| group.answering().is_err()) {
            // Who is in it, nobody knows: there may always be somebody.
            return Ok(false);
        }
        match self.ask(&Operation::twoway("_non_existent"), &|_| Ok(())) {
            Err(exception) if exception.kind == ObjectNotExist => Ok(true),
            other => other,
        }
    }

    /// The same object, with another bound on the time that a call may take in all: the policy
    /// [`ClientPolicy::RelativeRoundtripTimeout`] alone.
    #[must_use]
    pub fn with_timeout(&self, time_out: Duration) -> Self {
        self.with_overrides(self.inner.overrides.with_time_out(time_out))
    }

    /// The same object, called by other policies (`Object::_set_policy_overrides`). This reference
    /// stays as it is, with its connections.
    ///
    /// # Errors
    /// `BAD_PARAM` (OMG minor 30) for two policies of a kind.
    pub fn with_policy_overrides(
        &self,
        policies: &[ClientPolicy],
        how: SetOverride,
    ) -> Result<Self, SystemException> {
        let overrides = self.inner.overrides.changed(policies, how)?;
        Ok(self.with_overrides(overrides))
    }

    /// The policies of these kinds that this reference has itself; all, where no kind is named
    /// (`Object::_get_policy_overrides`).
    pub fn policy_overrides(&self, kinds: &[ClientPolicyKind]) -> Vec<ClientPolicy> {
        self.inner.overrides.list(kinds)
    }

    /// The policy that holds at this side for calls that the calling thread makes by this
    /// reference (`Object::_get_client_policy`): the reference's own, else the thread's, else the
    /// ORB's, else the default, which only the time-out has.
    pub fn client_policy(&self, kind: ClientPolicyKind) -> Option<ClientPolicy> {
        if kind == ClientPolicyKind::RelativeRoundtripTimeout {
            return Some(ClientPolicy::RelativeRoundtripTimeout(self.time_out()));
        }
        self.effective_overrides().get(kind)
    }

    /// The policy that such calls go by, once reconciled with what the server says in the
    /// reference (`Object::_get_policy`).
    ///
    /// # Errors
    /// `INV_POLICY` (OMG minor 1) where both sides have the policy, and only one may.
    pub fn policy(&self, kind: ClientPolicyKind) -> Result<Option<ClientPolicy>, SystemException> {
        if kind == ClientPolicyKind::RelativeRoundtripTimeout {
            return Ok(self.client_policy(kind));
        }
        effective_policy(&self.effective_overrides(), self.profile(), kind)
    }

    /// The priority model of the object's server, and the server's priority, as the reference
    /// says them; `None` where priorities play no part.
    pub fn priority_model(&self) -> Option<(PriorityModel, Priority)> {
        self.profile()?.priority_model
    }

    /// Makes ready what the calling thread's calls of this object need, so that none of them
    /// has to connect (`Object::_validate_connection`).
    ///
    /// At the thread's present priority; with priority bands, for each band that a call may be
    /// in, at each lane in it (one band only, where the server declares the priority). Each
    /// connection is tried by a locate request, and forwards are followed. An object that is
    /// called within the process needs none, but for oneway operations.
    ///
    /// # Errors
    /// [`BindError::Inconsistent`] where a call would be `INV_POLICY`, with the policies that are
    /// at fault; [`BindError::System`] with the exception of a call: `TRANSIENT` (OMG minor 2)
    /// where the server cannot be reached, `TIMEOUT` where the time of one call is over,
    /// `NO_RESOURCES` (OMG minor 2) where the server has no endpoint for a priority or band,
    /// `OBJECT_NOT_EXIST` where the server has no such object.
    pub fn validate_connection(&self) -> Result<(), BindError> {
        #[cfg(feature = "miop")]
        if self.group().is_some() {
            return Ok(client::bind_group(self)?);
        }
        client::bind_explicitly(self)
    }

    /// The same object, called in this way where it is one of this ORB.
    #[must_use]
    pub fn with_collocation(&self, collocation: Collocation) -> Self {
        let inner = &self.inner;
        let (core, ior) = (inner.core.clone(), inner.ior.clone());
        let told = (ior, inner.source);
        Self::new(core, told, inner.overrides.clone(), collocation, None)
    }

    fn with_overrides(&self, overrides: Overrides) -> Self {
        let inner = &self.inner;
        let (core, ior) = (inner.core.clone(), inner.ior.clone());
        let told = (ior, inner.source);
        Self::new(core, told, overrides, inner.collocation, None)
    }

    /// Calls an operation and waits for the reply, which borrows from `scope`.
    ///
    /// Generated stubs call this. `arguments` may run more than once: after a location forward
    /// the request is made anew.
    ///
    /// # Errors
    /// Every system exception of the server, and `TRANSIENT` where it cannot be reached,
    /// `COMM_FAILURE` where the connection broke during the call, `TIMEOUT` where the call took
    /// too long, `MARSHAL` where a message is malformed, `NO_RESOURCES` (OMG minor 2) where the
    /// server has no endpoint for this thread's priority, `INV_POLICY` (OMG minor 1) where the
    /// policies cannot be followed, or the priority is in none of the bands, `BAD_INV_ORDER`
    /// (OMG minor 4) after shutdown; `REBIND` where its [policy](ClientPolicy::Rebind) forbids
    /// a forward or a new connection, `NO_RESOURCES` where there are too many connections.
    pub fn invoke<'s>(
        &self,
        scope: &'s mut Scope,
        operation: &Operation,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<Reply<'s>, SystemException> {
        let answer = client::invoke(self.answering()?, scope, operation, arguments)?;
        scope.open(&self.inner.core, answer)
    }

    /// Calls the servant itself, where it is in this process and calls within it are direct;
    /// `None` otherwise, and where the servant is none of `S`: then the call is to be made by
    /// [`invoke`](Self::invoke).
    ///
    /// Generated stubs call this. `S` is an `Arc<dyn …Servant>`; the last parameter of `upcall`
    /// only says that `'x`, the life of the arguments, is longer than the call's.
    #[doc(hidden)]
    pub fn direct<'x, S: 'static, R>(
        &self,
        scope: &mut Scope,
        operation: &Operation,
        upcall: impl for<'a> FnOnce(&S, &crate::call::Call<'a>, [&'a &'x (); 0]) -> R,
    ) -> Option<Result<R, SystemException>> {
        if self.inner.collocation != Collocation::Direct {
            return None;
        }
        let key = self.key_within()?;
        client::direct(&self.inner.core, key, scope, operation, upcall)
    }

    /// Calls a oneway operation; returns when the transport has taken the request.
    ///
    /// # Errors
    /// As far as they show before the request is sent.
    pub fn invoke_oneway(
        &self,
        operation: &Operation,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<(), SystemException> {
        Scope::with(|scope| client::invoke_oneway(self, scope, operation, arguments))
    }

    /// Whether this and another reference are known to be of the same object (`Object::_is_equivalent`). That is what
    /// `==` says.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self == other
    }

    /// Writes a reference, nil as `None`.
    ///
    /// # Errors
    /// Where the message is full.
    pub fn encode_reference(this: Option<&Self>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        match this {
            Some(object) => object.ior().encode(e),
            None => Ior::nil().encode(e),
        }
    }

    /// Reads a reference, nil as `None`.
    ///
    /// # Errors
    /// [`CdrError::TooManyReferences`] where the references of the message take more memory than a
    /// message may have octets (`-ORBMaxMessageSize`); other errors where the octets are malformed.
    pub fn decode_reference(d: &mut Decoder<'_>) -> Result<Option<Self>, CdrError> {
        let ior = Ior::decode(d)?;
        let core = Host::admit(d, octets_kept(&ior))?;
        Ok(Self::from_source(core, ior, Source::Message))
    }

    fn ask(
        &self,
        operation: &Operation,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<bool, SystemException> {
        Scope::with(|scope| match self.invoke(scope, operation, arguments)? {
            Reply::Normal(mut d) => Ok(d.read_bool()?),
            Reply::UserException(..) => Err(crate::call::unknown_user_exception()),
        })
    }

    /// The object that answers for it: itself, or what does for a group.
    ///
    /// # Errors
    /// `BAD_OPERATION` (chronorb minor 1) where it is a group, and nothing does.
    #[inline]
    pub(crate) fn answering(&self) -> Result<&Self, SystemException> {
        #[cfg(feature = "miop")]
        if let Some(group) = self.group() {
            return group.answering();
        }
        Ok(self)
    }

    /// The group of objects that it stands for, if it is none by itself.
    #[cfg(feature = "miop")]
    pub(crate) fn group(&self) -> Option<&Group> {
        self.inner.group.as_deref()
    }

    /// How requests name it, where the server does not ask for another way.
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

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    #[inline]
    pub(crate) fn profile(&self) -> Option<&Profile> {
        let inner = &*self.inner;
        let read = || Profile::of(&inner.ior, inner.source, &inner.core).map(Box::new);
        inner.profile.get_or_init(read).as_deref()
    }

    /// The object key, where this is an object of this ORB that is to be called within it.
    #[inline]
    pub(crate) fn key_within(&self) -> Option<&[u8]> {
        let known = self.inner.within.get();
        if self.inner.collocation == Collocation::Off || known == Some(&false) {
            return None;
        }
        let profile = self.profile()?;
        let within = self.inner.within.get_or_init(|| {
            let core = &self.inner.core;
            match ObjectKey::parse(&profile.key) {
                // No other ORB has this number, wherever the reference says it is.
                Some(key) => key.poa.run().map_or_else(
                    || server::is_published(core, &profile.ways),
                    |run| run == core.incarnation,
                ),
                None => false,
            }
        });
        within.then_some(&*profile.key)
    }

    /// Whether it says nothing of its object but an address and a key, as that of a `corbaloc:` does.
    pub(crate) fn is_only_an_address(&self) -> bool {
        let tells_nothing = |profile: &Profile| profile.code_sets.is_none();
        self.type_id().is_empty() && self.profile().is_some_and(tells_nothing)
    }

    pub(crate) fn time_out(&self) -> Duration {
        effective_time_out(&self.inner.core, &self.inner.overrides)
    }

    pub(crate) fn effective_overrides(&self) -> Overrides {
        effective_overrides(&self.inner.core, &self.inner.overrides)
    }

    /// What may happen to its bindings without being asked for.
    pub(crate) fn rebind_mode(&self) -> RebindMode {
        self.effective_overrides().rebind_mode()
    }

    /// Whose private connections it uses.
    pub(crate) fn owner(&self) -> u64 {
        self.inner.owner
    }

    /// How many handles of this reference there are, those that tables hold included.
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

/// Equal where the profiles of the references say the same, in whatever byte order, with whatever padding and order of
/// components: an ORB that passes a reference on may write it anew. Different references may still lead to the same
/// object. The interface that a reference names is no part of the object's identity.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        let (this, other) = (&*self.inner, &*other.inner);
        std::ptr::eq(this, other) || this.core.protocols.say_the_same(&this.ior, &other.ior)
    }
}

impl Eq for Object {}

/// By the object key: equal references have the same.
impl Hash for Object {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.profile().map(|profile| &profile.key).hash(state);
    }
}

/// The memory that an object takes which was made of this reference and of which nothing else was asked yet.
fn octets_kept(ior: &Ior) -> usize {
    let profile =
        |profile: &TaggedProfile| size_of::<TaggedProfile>() + profile.data.len() + ALLOCATION;
    let profiles: usize = ior.profiles.iter().map(profile).sum();
    let own = size_of::<Inner>() + ior.type_id.len() + profiles + 3 * ALLOCATION;
    // A group has a reference to what answers for it.
    match ior.profiles.iter().any(|profile| profile.tag == TAG_UIPMC) {
        true => 2 * own,
        false => own,
    }
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

/// The repository identifier that every object answers to.
pub(crate) const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";
