//! The contexts and bindings of a name server, without I/O and calls.
//!
//! Contexts and the bindings of each context are B-trees, so the cost of a look-up is the logarithm
//! of the number of bindings for each component of the name, and no operation moves all entries.
//! Operations are checked first, which gives the changes, and applied later.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chronorb_rt::Monotonic;
use thiserror::Error;

use crate::change::{Binding, BindingKind, Change, Lease, Target};
use crate::idl::cos_naming::NameComponent;
use crate::idl::cos_naming::naming_context::NotFoundReason;
use crate::limits::Limits;

/// The octets that a binding takes beside those of component and reference. Without a lease it
/// takes some 170.
const BINDING_OCTETS: u64 = 256;

/// The number of the root context.
pub const ROOT: u64 = 0;

/// The state of a name server.
#[derive(Debug)]
pub struct Tree {
    contexts: BTreeMap<u64, Context>,
    next_context: u64,
    next_lease: u64,
    /// The ends of leases, the earliest first.
    ends: BTreeSet<(Monotonic, u64, Key)>,
    /// The octets of all bindings, as [`binding_octets`] counts them.
    octets: u64,
    limits: Limits,
}

/// The number of the client that a context or a binding is charged to.
pub(crate) type Owner = u32;

/// The owner of what was loaded, which no origin is charged with.
pub(crate) const NOBODY: Owner = 0;

/// The memory that a change has given back, and its owner.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Release {
    pub(crate) owner: Owner,
    pub(crate) contexts: u64,
    pub(crate) octets: u64,
}

/// Returns a number that no earlier run has used for a context: the time in nanoseconds.
#[must_use]
pub fn unused_number() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.map_or(1, |time| time.as_nanos() as u64)
}

/// A component as the key of its binding: the identifier, NUL, the kind. Its order is that of
/// (identifier, kind), because neither contains NUL.
type Key = Arc<[u8]>;

#[derive(Debug, Default)]
struct Context {
    bindings: BTreeMap<Key, Entry>,
    owner: Owner,
}

/// A binding. It has no [`Binding`], which would make it longer.
#[derive(Debug)]
struct Entry {
    target: Target,
    leased: Option<LeaseEntry>,
    kind: BindingKind,
    owner: Owner,
}

/// A lease, and the time at which it ends.
#[derive(Clone, Copy, Debug)]
struct LeaseEntry {
    lease: Lease,
    end: Monotonic,
}

impl Entry {
    fn is_alive(&self, now: Monotonic) -> bool {
        self.leased.is_none_or(|leased| now < leased.end)
    }

    fn binding(&self) -> Binding {
        Binding {
            kind: self.kind,
            target: self.target.clone(),
            lease: self.leased.map(|leased| leased.lease),
        }
    }

    fn freed(&self, key: &[u8]) -> Release {
        Release {
            owner: self.owner,
            contexts: 0,
            octets: binding_octets(key, &self.target),
        }
    }
}

/// The place to which the contexts of a name lead.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place<'n> {
    /// A component of a context of this server.
    Here(u64, &'n NameComponent<'n>),
    /// A context of another server, and the rest of the name, which begins there.
    Elsewhere(Arc<[u8]>, &'n [NameComponent<'n>]),
}

/// The reason why an operation is refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TreeError<'n> {
    /// The context of the request does not exist.
    NoContext,
    /// The name is empty, or a component contains NUL.
    InvalidName,
    /// The name leads nowhere; the rest begins with the component that failed.
    NotFound(NotFoundReason, &'n [NameComponent<'n>]),
    /// The name leads through a context that is destroyed; the rest begins after it.
    Destroyed(u64, &'n [NameComponent<'n>]),
    /// The name is bound.
    AlreadyBound,
    /// The context has bindings.
    NotEmpty,
    /// The root context cannot be destroyed.
    Root,
    /// The binding has another lease or none.
    LeaseLost,
    /// Another context or binding, or its octets, would exceed a limit.
    TooMany,
    /// The name or the reference is too long.
    TooLong,
}

/// A change that does not fit to the state.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ChangeError {
    /// The context of the change does not exist.
    #[error("context {0} does not exist")]
    NoContext(u64),
    /// The context that is to be created exists already.
    #[error("context {0} exists already")]
    ContextExists(u64),
    /// The context that is to be destroyed is the root or has bindings.
    #[error("context {0} cannot be destroyed")]
    Indestructible(u64),
    /// The binding that is to be removed does not exist.
    #[error("a binding of context {0} that is to be removed does not exist")]
    NotBound(u64),
    /// A component contains NUL.
    #[error("a component of a binding of context {0} contains NUL")]
    Nul(u64),
}

/// A position in the changes that make a state.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ChangePosition {
    /// Contexts whose numbers are at least this one; the root is not created.
    Contexts(u64),
    /// Bindings of contexts whose numbers are at least this one, behind the key in the first.
    Bindings(u64, Option<Key>),
    End,
}

impl ChangePosition {
    pub(crate) const START: Self = Self::Contexts(ROOT + 1);
}

/// An entry of a listing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ListEntry {
    pub(crate) key: Key,
    pub(crate) kind: BindingKind,
    pub(crate) target: Target,
}

impl ListEntry {
    /// The component; both parts are empty if they are not UTF-8.
    pub(crate) fn component(&self) -> NameComponent<'_> {
        let (id, kind) = split(&self.key);
        NameComponent {
            id: std::str::from_utf8(id).unwrap_or_default(),
            kind: std::str::from_utf8(kind).unwrap_or_default(),
        }
    }
}

impl Tree {
    /// Returns the state with one empty root context. New contexts and leases get numbers from
    /// `first` on, which is at least 1. An [unused number](unused_number) makes references of an
    /// earlier run invalid.
    #[must_use]
    pub fn new(first: u64) -> Self {
        Self {
            contexts: BTreeMap::from([(ROOT, Context::default())]),
            next_context: first.max(ROOT + 1),
            next_lease: first.max(1),
            ends: BTreeSet::new(),
            octets: 0,
            limits: Limits::default(),
        }
    }

    /// Applies a change; leases begin at `now`.
    ///
    /// # Errors
    /// [`ChangeError`] for a change that was not valid; the state does not change.
    pub fn apply(&mut self, change: &Change, now: Monotonic) -> Result<(), ChangeError> {
        self.apply_for(NOBODY, change, now).map(drop)
    }

    /// Applies a change for the owner of what it makes, and returns what it frees.
    pub(crate) fn apply_for(
        &mut self,
        owner: Owner,
        change: &Change,
        now: Monotonic,
    ) -> Result<Release, ChangeError> {
        match change {
            Change::CreateContext { context } => self.create(*context, owner),
            Change::DestroyContext { context } => {
                let found = self.contexts.get(context);
                let found = found.ok_or(ChangeError::NoContext(*context))?;
                if *context == ROOT || !found.bindings.is_empty() {
                    return Err(ChangeError::Indestructible(*context));
                }
                let owner = found.owner;
                self.contexts.remove(context);
                Ok(Release {
                    owner,
                    contexts: 1,
                    octets: 0,
                })
            }
            Change::Bind {
                context,
                id,
                kind,
                binding,
            } => self.insert(owner, (*context, id, kind), binding, now),
            Change::Unbind { context, id, kind } => {
                let key = join(id, kind);
                let found = self.contexts.get_mut(context);
                let found = found.ok_or(ChangeError::NoContext(*context))?;
                let before = found.bindings.remove(&*key);
                let before = before.ok_or(ChangeError::NotBound(*context))?;
                Ok(self.removed(*context, key.into(), &before))
            }
        }
    }

    /// The changes that make this state of an empty one, with contexts before their bindings: for
    /// snapshots. Contexts that are destroyed but still bound are not among them.
    pub fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        let created = self.contexts.keys().filter(|context| **context != ROOT);
        let created = created.map(|context| Change::CreateContext { context: *context });
        let bound = self.contexts.iter().flat_map(|(context, of_context)| {
            let bindings = of_context.bindings.iter();
            bindings.map(|(key, entry)| binding_change(*context, key, entry))
        });
        created.chain(bound)
    }

    /// Returns the next of these changes, at most `how_many` of them, and advances the position.
    /// There are none at its end, and there may be none before it: the work is bounded as well.
    ///
    /// The pages are those of one state if the tree is not changed between them.
    pub(crate) fn changes_from(
        &self,
        position: &mut ChangePosition,
        how_many: usize,
    ) -> Vec<Change> {
        match position {
            ChangePosition::Contexts(first) => {
                let page = self.contexts_from(*first, how_many);
                *position = match page.last() {
                    Some(last) => ChangePosition::Contexts(last + 1),
                    None => ChangePosition::Bindings(ROOT, None),
                };
                let created = page.into_iter();
                created
                    .map(|context| Change::CreateContext { context })
                    .collect()
            }
            ChangePosition::Bindings(first, after) => {
                let Some((context, found)) = self.contexts.range(*first..).next() else {
                    *position = ChangePosition::End;
                    return Vec::new();
                };
                let after = after.as_deref().filter(|_| context == first);
                let from = after.map_or(Bound::Unbounded, Bound::Excluded);
                let range = found.bindings.range::<[u8], _>((from, Bound::Unbounded));
                let page: Vec<_> = range.take(how_many).collect();
                *position = match page.last() {
                    Some((last, _)) => ChangePosition::Bindings(*context, Some((*last).clone())),
                    None => ChangePosition::Bindings(context + 1, None),
                };
                let bound = page.into_iter();
                bound
                    .map(|(key, entry)| binding_change(*context, key, entry))
                    .collect()
            }
            ChangePosition::End => Vec::new(),
        }
    }

    fn create(&mut self, context: u64, owner: Owner) -> Result<Release, ChangeError> {
        if context == ROOT || self.contexts.contains_key(&context) {
            return Err(ChangeError::ContextExists(context));
        }
        let created = Context {
            bindings: BTreeMap::new(),
            owner,
        };
        self.contexts.insert(context, created);
        self.next_context = self.next_context.max(context.saturating_add(1));
        Ok(Release::default())
    }

    fn insert(
        &mut self,
        owner: Owner,
        (context, id, kind): (u64, &[u8], &[u8]),
        binding: &Binding,
        now: Monotonic,
    ) -> Result<Release, ChangeError> {
        if id.contains(&0) || kind.contains(&0) {
            return Err(ChangeError::Nul(context));
        }
        let key: Key = join(id, kind).into();
        let found = self.contexts.get_mut(&context);
        let found = found.ok_or(ChangeError::NoContext(context))?;
        let leased = binding.lease.map(|lease| LeaseEntry {
            lease,
            end: end_of(lease, now),
        });
        let entry = Entry {
            target: binding.target.clone(),
            leased,
            kind: binding.kind,
            owner,
        };
        self.octets += binding_octets(&key, &entry.target);
        let before = found.bindings.insert(key.clone(), entry);
        let freed = before.map_or_else(Release::default, |before| {
            self.removed(context, key.clone(), &before)
        });
        if let Some(LeaseEntry { lease, end }) = leased {
            self.next_lease = self.next_lease.max(lease.id.saturating_add(1));
            self.ends.insert((end, context, key));
        }
        Ok(freed)
    }

    /// Completes the removal of a binding.
    fn removed(&mut self, context: u64, key: Key, entry: &Entry) -> Release {
        let freed = entry.freed(&key);
        self.octets -= freed.octets;
        if let Some(LeaseEntry { end, .. }) = entry.leased {
            self.ends.remove(&(end, context, key));
        }
        freed
    }

    /// Returns what the application of a change takes: contexts and octets. With it is what a new
    /// binding replaces.
    pub(crate) fn needs(&self, change: &Change) -> (u64, u64, Release) {
        match change {
            Change::CreateContext { .. } => (1, 0, Release::default()),
            Change::Bind {
                context,
                id,
                kind,
                binding,
            } => {
                let key = join(id, kind);
                let found = self.contexts.get(context);
                let before = found.and_then(|found| found.bindings.get(&*key));
                let freed = before.map(|before| before.freed(&key));
                let octets = binding_octets(&key, &binding.target);
                (0, octets, freed.unwrap_or_default())
            }
            Change::DestroyContext { .. } | Change::Unbind { .. } => (0, 0, Release::default()),
        }
    }

    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    pub(crate) fn contains(&self, context: u64) -> bool {
        self.contexts.contains_key(&context)
    }

    /// Returns the target of a name in the root context; `None` if the name is not bound, or leads
    /// to another server.
    #[must_use]
    pub fn look_up(&self, name: &[NameComponent<'_>], now: Monotonic) -> Option<Target> {
        match self.walk(ROOT, name, now).ok()? {
            Place::Here(context, last) => self.resolve(context, last, now).ok(),
            Place::Elsewhere(..) => None,
        }
    }

    /// The number of contexts, with the root.
    #[must_use]
    pub fn context_count(&self) -> usize {
        self.contexts.len()
    }

    /// The number of bindings of a context, with those whose leases have ended.
    pub(crate) fn binding_count(&self, context: u64) -> usize {
        let found = self.contexts.get(&context);
        found.map_or(0, |found| found.bindings.len())
    }

    /// Follows the contexts of a name, which are all components but the last one.
    pub(crate) fn walk<'n>(
        &self,
        context: u64,
        name: &'n [NameComponent<'n>],
        now: Monotonic,
    ) -> Result<Place<'n>, TreeError<'n>> {
        self.check_name(name)?;
        let mut context = context;
        let mut found = self.contexts.get(&context).ok_or(TreeError::NoContext)?;
        let mut rest = name;
        while let [component, after @ ..] = rest
            && !after.is_empty()
        {
            let entry = found.alive(component, now);
            let entry = entry.ok_or(TreeError::NotFound(NotFoundReason::MissingNode, rest))?;
            if entry.kind == BindingKind::Object {
                return Err(TreeError::NotFound(NotFoundReason::NotContext, rest));
            }
            match &entry.target {
                Target::Reference(octets) => return Ok(Place::Elsewhere(octets.clone(), after)),
                Target::Context(next) => context = *next,
            }
            let next = self.contexts.get(&context);
            found = next.ok_or(TreeError::Destroyed(context, after))?;
            rest = after;
        }
        Ok(Place::Here(context, &rest[0]))
    }

    /// Returns the target of a component.
    pub(crate) fn resolve<'n>(
        &self,
        context: u64,
        component: &'n NameComponent<'n>,
        now: Monotonic,
    ) -> Result<Target, TreeError<'n>> {
        let entry = self.entry(context, component, now)?;
        Ok(entry.target.clone())
    }

    /// Checks a binding, in place of one of the same kind if `replace` is set.
    pub(crate) fn bind<'n>(
        &self,
        context: u64,
        component: &'n NameComponent<'n>,
        binding: Binding,
        replace: bool,
        now: Monotonic,
    ) -> Result<Change, TreeError<'n>> {
        let of_context = self.contexts.get(&context).ok_or(TreeError::NoContext)?;
        if let Target::Reference(octets) = &binding.target
            && octets.len() > self.limits.reference_octets
        {
            return Err(TreeError::TooLong);
        }
        let key = join(component.id.as_bytes(), component.kind.as_bytes());
        let found = of_context.bindings.get(&*key);
        let before = found.filter(|entry| entry.is_alive(now));
        match before.map(|entry| entry.kind) {
            None if of_context.bindings.len() >= self.limits.bindings => {
                return Err(TreeError::TooMany);
            }
            None => {}
            Some(_) if !replace => return Err(TreeError::AlreadyBound),
            Some(kind) if kind == binding.kind => {}
            Some(kind) => {
                let why = match kind {
                    BindingKind::Context => NotFoundReason::NotObject,
                    BindingKind::Object => NotFoundReason::NotContext,
                };
                return Err(TreeError::NotFound(why, std::slice::from_ref(component)));
            }
        }
        // A binding whose lease has ended is replaced as well.
        let freed = found.map_or(0, |entry| entry.freed(&key).octets);
        let octets = self.octets - freed + binding_octets(&key, &binding.target);
        if octets > self.limits.octets {
            return Err(TreeError::TooMany);
        }
        Ok(Change::Bind {
            context,
            id: component.id.into(),
            kind: component.kind.into(),
            binding,
        })
    }

    /// Checks the removal of a binding.
    pub(crate) fn unbind<'n>(
        &self,
        context: u64,
        component: &'n NameComponent<'n>,
        now: Monotonic,
    ) -> Result<Change, TreeError<'n>> {
        self.entry(context, component, now)?;
        Ok(Change::Unbind {
            context,
            id: component.id.into(),
            kind: component.kind.into(),
        })
    }

    /// Checks that a binding has a lease.
    pub(crate) fn leased<'n>(
        &self,
        context: u64,
        component: &'n NameComponent<'n>,
        lease: u64,
        now: Monotonic,
    ) -> Result<Lease, TreeError<'n>> {
        let entry = self.entry(context, component, now)?;
        let of_binding = entry.leased.map(|leased| leased.lease);
        let of_binding = of_binding.filter(|found| found.id == lease);
        of_binding.ok_or(TreeError::LeaseLost)
    }

    /// Lets a lease begin anew.
    pub(crate) fn renew<'n>(
        &mut self,
        context: u64,
        component: &'n NameComponent<'n>,
        lease: u64,
        now: Monotonic,
    ) -> Result<(), TreeError<'n>> {
        let lease = self.leased(context, component, lease, now)?;
        let key: Key = join(component.id.as_bytes(), component.kind.as_bytes()).into();
        let entry = self.contexts.get_mut(&context);
        let entry = entry.and_then(|found| found.bindings.get_mut(&key));
        if let Some(entry) = entry {
            let end = end_of(lease, now);
            if let Some(before) = entry.leased.replace(LeaseEntry { lease, end }) {
                self.ends.remove(&(before.end, context, key.clone()));
            }
            self.ends.insert((end, context, key));
        }
        Ok(())
    }

    /// Checks the creation of a context.
    pub(crate) fn create_context<'n>(&self) -> Result<(u64, Change), TreeError<'n>> {
        if self.contexts.len() >= self.limits.contexts {
            return Err(TreeError::TooMany);
        }
        let context = self.next_context;
        Ok((context, Change::CreateContext { context }))
    }

    /// Returns the lease of a new binding.
    pub(crate) fn new_lease(&self, time_to_live: u32) -> Lease {
        Lease {
            id: self.next_lease,
            time_to_live,
        }
    }

    /// Checks the destruction of a context. The changes begin with the removal of bindings whose
    /// leases have ended.
    pub(crate) fn destroy<'n>(
        &self,
        context: u64,
        now: Monotonic,
    ) -> Result<Vec<Change>, TreeError<'n>> {
        let found = self.contexts.get(&context).ok_or(TreeError::NoContext)?;
        if context == ROOT {
            return Err(TreeError::Root);
        }
        if found.bindings.values().any(|entry| entry.is_alive(now)) {
            return Err(TreeError::NotEmpty);
        }
        let ended = found.bindings.keys().map(|key| removal(context, key));
        let destroyed = Change::DestroyContext { context };
        Ok(ended.chain([destroyed]).collect())
    }

    /// Returns up to `how_many` bindings of a context in their order, from the first one behind
    /// `after` on, and whether there are others.
    pub(crate) fn page(
        &self,
        context: u64,
        after: Option<&[u8]>,
        how_many: usize,
        now: Monotonic,
    ) -> (Vec<ListEntry>, bool) {
        let Some(found) = self.contexts.get(&context) else {
            return (Vec::new(), false);
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = found.bindings.range::<[u8], _>((from, Bound::Unbounded));
        let mut alive = range.filter(|(_, entry)| entry.is_alive(now));
        let page = alive.by_ref().take(how_many);
        let page = page.map(|(key, entry)| ListEntry {
            key: key.clone(),
            kind: entry.kind,
            target: entry.target.clone(),
        });
        let page = page.collect();
        (page, alive.next().is_some())
    }

    /// The first `how_many` contexts whose numbers are at least `first`.
    pub(crate) fn contexts_from(&self, first: u64, how_many: usize) -> Vec<u64> {
        let contexts = self.contexts.range(first..);
        contexts
            .take(how_many)
            .map(|(context, _)| *context)
            .collect()
    }

    /// The first context behind `after`.
    pub(crate) fn context_after(&self, after: Option<u64>) -> Option<u64> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut range = self.contexts.range((from, Bound::Unbounded));
        range.next().map(|(context, _)| *context)
    }

    /// Returns the removals of up to `how_many` bindings whose leases have ended.
    pub(crate) fn ended(&self, how_many: usize, now: Monotonic) -> Vec<Change> {
        let ended = self.ends.iter().take_while(|(end, ..)| *end <= now);
        let ended = ended.take(how_many);
        ended
            .map(|(_, context, key)| removal(*context, key))
            .collect()
    }

    /// The removal of a binding, if it still has this target.
    pub(crate) fn removal_of(&self, context: u64, seen: &ListEntry) -> Option<Change> {
        let entry = self.contexts.get(&context)?.bindings.get(&seen.key)?;
        (entry.target == seen.target).then(|| removal(context, &seen.key))
    }

    fn entry<'n>(
        &self,
        context: u64,
        component: &'n NameComponent<'n>,
        now: Monotonic,
    ) -> Result<&Entry, TreeError<'n>> {
        let found = self.contexts.get(&context).ok_or(TreeError::NoContext)?;
        let rest = std::slice::from_ref(component);
        let entry = found.alive(component, now);
        entry.ok_or(TreeError::NotFound(NotFoundReason::MissingNode, rest))
    }

    fn check_name<'n>(&self, name: &'n [NameComponent<'n>]) -> Result<(), TreeError<'n>> {
        if name.is_empty() {
            return Err(TreeError::InvalidName);
        }
        if name.len() > self.limits.components {
            return Err(TreeError::TooLong);
        }
        for component in name {
            if component.id.len() + component.kind.len() > self.limits.component_octets {
                return Err(TreeError::TooLong);
            }
            if component.id.contains('\0') || component.kind.contains('\0') {
                return Err(TreeError::InvalidName);
            }
        }
        Ok(())
    }
}

impl Context {
    fn alive(&self, component: &NameComponent<'_>, now: Monotonic) -> Option<&Entry> {
        let key = join(component.id.as_bytes(), component.kind.as_bytes());
        let entry = self.bindings.get(&*key);
        entry.filter(|entry| entry.is_alive(now))
    }
}

fn binding_change(context: u64, key: &[u8], entry: &Entry) -> Change {
    let (id, kind) = split(key);
    Change::Bind {
        context,
        id: id.to_vec(),
        kind: kind.to_vec(),
        binding: entry.binding(),
    }
}

/// The octets of a binding for the limits: those that it has, and about those of the trees.
pub(crate) fn binding_octets(key: &[u8], target: &Target) -> u64 {
    let reference = match target {
        Target::Reference(octets) => octets.len(),
        Target::Context(_) => 0,
    };
    (key.len() + reference) as u64 + BINDING_OCTETS
}

fn removal(context: u64, key: &[u8]) -> Change {
    let (id, kind) = split(key);
    Change::Unbind {
        context,
        id: id.to_vec(),
        kind: kind.to_vec(),
    }
}

fn join(id: &[u8], kind: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(id.len() + 1 + kind.len());
    key.extend_from_slice(id);
    key.push(0);
    key.extend_from_slice(kind);
    key
}

fn split(key: &[u8]) -> (&[u8], &[u8]) {
    let nul = key.iter().position(|octet| *octet == 0);
    let nul = nul.unwrap_or(key.len());
    (&key[..nul], key.get(nul + 1..).unwrap_or_default())
}

fn end_of(lease: Lease, now: Monotonic) -> Monotonic {
    now + Duration::from_secs(lease.time_to_live.into())
}

#[cfg(test)]
mod tests;
