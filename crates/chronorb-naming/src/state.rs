//! The state that all servants of a name server share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chronorb::poa::{ObjectId, Poa};
use chronorb::quota::{Origin, Quota, QuotaError};
use chronorb::{Interface, Ior, Object, Orb, SystemException, SystemExceptionKind};
use chronorb_rt::{Monotonic, PiMutex, with_causes};

use crate::change::{Change, Journal, JournalError, Target};
use crate::failure::system;
use crate::idl::cos_naming::{BindingIterator, NamingContext, NamingContextExt};
use crate::iterator::Iterators;
use crate::limits::Limits;
use crate::owners::{Claim, Owners};
use crate::tree::{ChangePosition, Release, Tree, TreeError};

/// The state and the POAs of a name server.
pub(crate) struct ServerState {
    pub(crate) orb: Orb,
    pub(crate) limits: Limits,
    /// Locked for the time of a look-up or of an application, never for that of I/O.
    tree: PiMutex<Tree>,
    /// Locked for the whole of a change, before the tree: one change is made at a time.
    writer: PiMutex<Writer>,
    last_failure: PiMutex<Option<String>>,
    /// Whether the last change was not kept by the journal.
    is_failing: AtomicBool,
    contexts: Poa,
    listings: Poa,
    pub(crate) iterators: PiMutex<Iterators>,
    /// Calls to other servers.
    pub(crate) federated: Arc<Quota>,
    clock: fn() -> Monotonic,
}

/// The parts of the state that changes need alone.
struct Writer {
    journal: Box<dyn Journal>,
    owners: Owners,
}

impl ServerState {
    pub(crate) fn new(
        orb: Orb,
        limits: Limits,
        mut tree: Tree,
        journal: Box<dyn Journal>,
        (contexts, listings): (Poa, Poa),
        clock: fn() -> Monotonic,
    ) -> Self {
        tree.set_limits(limits.clone());
        let owners = Owners::new(&orb, &limits);
        let shared = limits.shared_iterators();
        let iterators = Iterators::new(orb.quota("binding iterators", shared), shared);
        let federated = orb.quota("federated calls", limits.shared_federated_calls());
        Self {
            orb,
            limits,
            tree: PiMutex::new(tree),
            writer: PiMutex::new(Writer { journal, owners }),
            last_failure: PiMutex::new(None),
            is_failing: AtomicBool::new(false),
            contexts,
            listings,
            iterators: PiMutex::new(iterators),
            federated,
            clock,
        }
    }

    pub(crate) fn now(&self) -> Monotonic {
        (self.clock)()
    }

    /// Reads the tree; `read` does no I/O.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Tree, Monotonic) -> T) -> T {
        let now = self.now();
        read(&self.tree.lock(), now)
    }

    /// Changes what is not part of the journal.
    pub(crate) fn touch<T>(&self, touch: impl FnOnce(&mut Tree, Monotonic) -> T) -> T {
        let now = self.now();
        touch(&mut self.tree.lock(), now)
    }

    /// Makes the changes that `plan` finds: charges the client's origin, keeps them in the journal,
    /// then applies them.
    pub(crate) fn change<'n, T>(
        &self,
        origin: impl FnOnce() -> Origin,
        plan: impl FnOnce(&Tree, Monotonic) -> Result<(Vec<Change>, T), TreeError<'n>>,
    ) -> Result<T, ChangeFailure<'n>> {
        let Writer { journal, owners } = &mut *self.writer.lock();
        let now = self.now();
        let tree = self.tree.lock();
        let (changes, result) = plan(&tree, now).map_err(ChangeFailure::Refused)?;
        if changes.is_empty() {
            return Ok(result);
        }
        let needs = needs(&tree, &changes);
        drop(tree);
        // A refusal is logged, for which the tree is not locked.
        let claim = claim(needs, owners, origin).map_err(ChangeFailure::Quota)?;
        if let Err(error) = journal.append(&changes) {
            owners.undo(claim);
            let failure = self.note(&error);
            // A full disk fails each change; the log has the beginning and the end of that.
            if !self.is_failing.swap(true, Ordering::Relaxed) {
                tracing::error!(failure, "the journal of the name server failed");
            }
            return Err(ChangeFailure::Journal);
        }
        if self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("the journal of the name server works again");
        }
        let mut tree = self.tree.lock();
        for change in &changes {
            // Only the holder of the journal changes the tree, so the plan is still valid.
            let freed = tree.apply_for(claim.owner, change, now);
            owners.free(claim, freed.map_err(|_| ChangeFailure::Inconsistent)?);
        }
        if journal.wants_snapshot() {
            drop(tree);
            if let Err(error) = journal.write_snapshot(&mut self.snapshot()) {
                // The change is kept in the log, so this is no failure of the operation.
                let failure = self.note(&error);
                tracing::error!(failure, "the journal of the name server was not shortened");
            }
        }
        Ok(result)
    }

    /// Returns the changes that make the present state. The tree is locked for one page at a time;
    /// the caller holds the lock of the journal, so the tree does not change between pages.
    fn snapshot(&self) -> impl Iterator<Item = Change> + '_ {
        let mut position = ChangePosition::START;
        let pages = std::iter::from_fn(move || {
            let is_over = position == ChangePosition::End;
            (!is_over).then(|| self.tree.lock().changes_from(&mut position, SNAPSHOT_PAGE))
        });
        pages.flatten()
    }

    /// Keeps a failure of the journal for [`last_failure`](Self::last_failure), and returns its
    /// text.
    #[cold]
    fn note(&self, error: &JournalError) -> String {
        let failure = with_causes(error);
        *self.last_failure.lock() = Some(failure.clone());
        failure
    }

    pub(crate) fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().clone()
    }

    /// Returns the reference of a context.
    pub(crate) fn context(&self, context: u64) -> Result<NamingContext, SystemException> {
        let object = reference(&self.contexts, context, NamingContextExt::REPOSITORY_ID)?;
        Ok(NamingContext::from_object(object))
    }

    /// Returns the reference of an iterator.
    pub(crate) fn iterator(&self, iterator: u64) -> Result<BindingIterator, SystemException> {
        let object = reference(&self.listings, iterator, BindingIterator::REPOSITORY_ID)?;
        Ok(BindingIterator::from_object(object))
    }

    /// Returns the target of a binding to this object; a context of this server is kept by its
    /// number.
    pub(crate) fn target(&self, object: Option<&Object>) -> Result<Target, SystemException> {
        if let Some(object) = object
            && object.is_local()
            && let Ok(id) = self.contexts.reference_to_id(object)
            && let Some(context) = number(&id)
        {
            return Ok(Target::Context(context));
        }
        let nil = Ior::nil();
        let ior = object.map_or(&nil, Object::ior);
        // The tree checks the exact length; nothing that is far longer is copied.
        let profiles: usize = ior.profiles.iter().map(|profile| profile.data.len()).sum();
        if ior.type_id.len() + profiles > self.limits.reference_octets {
            return Err(system(SystemExceptionKind::ImpLimit));
        }
        Ok(Target::Reference(ior.to_encapsulation()?.into()))
    }

    /// Returns the object of a target; `None` if it is nil.
    pub(crate) fn object(&self, target: &Target) -> Result<Option<Object>, SystemException> {
        match target {
            Target::Context(context) => Ok(Some(self.context(*context)?.into_object())),
            Target::Reference(octets) => {
                let ior = Ior::from_encapsulation(octets)?;
                if ior.is_nil() {
                    return Ok(None);
                }
                self.orb.ior_to_object(ior).map(Some)
            }
        }
    }
}

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerState").finish_non_exhaustive()
    }
}

/// The reason why a change was not made.
#[derive(Debug)]
pub(crate) enum ChangeFailure<'n> {
    Refused(TreeError<'n>),
    /// The client or all clients together have too much.
    Quota(QuotaError),
    /// The journal failed; the state is unchanged.
    Journal,
    /// A plan did not fit to the tree.
    Inconsistent,
}

/// Returns the contexts and octets that the changes take, and the binding that they replace: a
/// group has one new binding at most.
fn needs(tree: &Tree, changes: &[Change]) -> (u64, u64, Release) {
    let of_each = changes.iter().map(|change| tree.needs(change));
    let none = (0, 0, Release::default());
    of_each.fold(none, |(contexts, octets, replaced), needs| {
        let replaced = if needs.1 > 0 { needs.2 } else { replaced };
        (contexts + needs.0, octets + needs.1, replaced)
    })
}

/// Charges an origin with what changes take, if they take anything.
fn claim(
    (contexts, octets, replaced): (u64, u64, Release),
    owners: &mut Owners,
    origin: impl FnOnce() -> Origin,
) -> Result<Claim, QuotaError> {
    if (contexts, octets) == (0, 0) {
        return Ok(Claim::default());
    }
    owners.claim(origin(), (contexts, octets), replaced)
}

/// The number in an object id of a context or iterator.
pub(crate) fn number(id: &ObjectId) -> Option<u64> {
    id.as_bytes().try_into().ok().map(u64::from_be_bytes)
}

/// The number of the target of a request, which the servant locator has checked.
pub(crate) fn target_of(call: &chronorb::Call<'_>) -> Result<u64, SystemException> {
    number(call.object_id()).ok_or(system(SystemExceptionKind::ObjectNotExist))
}

/// The changes of a snapshot that are copied under one lock of the tree.
const SNAPSHOT_PAGE: usize = 256;

fn reference(poa: &Poa, number: u64, type_id: &str) -> Result<Object, SystemException> {
    let id = ObjectId::new(number.to_be_bytes());
    let reference = poa.create_reference_with_id(&id, type_id);
    // The POA takes these ids, so only the end of the ORB is left as a cause.
    reference.map_err(|_| system(SystemExceptionKind::Transient))
}
