//! The name server as programs make it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chronorb::poa::{
    CreatePoaError, IdAssignment, IdUniqueness, Lifespan, Poa, Policy, RequestProcessing,
    ServantManagerError, ServantRetention,
};
use chronorb::{Interface, Object, ResolveError, SystemException};
use chronorb_rt::{Monotonic, SpawnError};
use thiserror::Error;

use crate::change::{Change, Journal, JournalError};
use crate::context::ContextLocator;
use crate::housekeeping::Housekeeper;
use crate::iterator::ListingLocator;
use crate::limits::Limits;
use crate::state::ServerState;
use crate::tree::{ROOT, Tree, unused_number};

/// A name server that is to be served.
///
/// ```
/// use chronorb::prelude::*;
/// use chronorb_naming::{Limits, NameServer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut args = vec!["p".into(), "-ORBListenEndpoints".into(), "iiop://127.0.0.1:0".into()];
/// let orb = Orb::init(&mut args)?;
/// let root = orb.root_poa()?;
/// let limits = Limits { contexts: 1_000, ..Limits::default() };
/// let service = NameServer::new().limits(limits).serve_in(&root)?;
/// root.manager().activate()?;
/// assert!(service.root().is_a("IDL:omg.org/CosNaming/NamingContextExt:1.0")?);
/// # orb.shutdown(true)?;
/// # Ok(())
/// # }
/// ```
pub struct NameServer {
    limits: Limits,
    state: Option<(Tree, Box<dyn Journal>)>,
    reaping: Option<ReapPolicy>,
    policies: Vec<Policy>,
    clock: fn() -> Monotonic,
}

/// The regular check of bound objects.
///
/// An object is unbound if three checks in a row do not find it: it does not exist, or its server
/// cannot be reached. A server that does not answer in time is there.
///
/// Sixteen objects are checked at a time. The check connects to whatever clients bind, so
/// `-ORBClientTransportRule` should say which addresses that may be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReapPolicy {
    /// The time from the end of a check of all objects to the next one.
    pub interval: Duration,
    /// The time limit for each object.
    pub timeout: Duration,
}

/// An error in serving a name server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A POA for the contexts or the iterators cannot be made.
    #[error("the POA of the name server cannot be made")]
    Poa(#[from] CreatePoaError),
    /// The POA does not take the servants.
    #[error("the servants of the name server cannot be set")]
    Servants(#[from] ServantManagerError),
    /// The initial reference `NameService` cannot be registered.
    #[error("the initial reference NameService cannot be registered")]
    Name(#[from] ResolveError),
    /// There is no thread for leases, or for the check of objects.
    #[error("a thread of the name server cannot be made")]
    Thread(#[from] SpawnError),
    /// The root context has no reference.
    #[error("the root context has no reference")]
    Root(#[from] SystemException),
}

impl NameServer {
    /// Returns a name server without bindings that keeps its state in memory only.
    #[must_use]
    pub fn new() -> Self {
        Self {
            limits: Limits::default(),
            state: None,
            reaping: None,
            policies: Vec::new(),
            clock: Monotonic::now,
        }
    }

    /// Sets the bounds of memory and work.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Begins with this state, and keeps changes in this journal.
    #[must_use]
    pub fn state(mut self, tree: Tree, journal: impl Journal + 'static) -> Self {
        self.state = Some((tree, Box::new(journal)));
        self
    }

    /// Checks bound objects regularly; by default none is checked.
    #[must_use]
    pub fn reap(mut self, reaping: ReapPolicy) -> Self {
        self.reaping = Some(reaping);
        self
    }

    /// Adds policies to those of the POA of the contexts, such as a thread pool and a priority
    /// model.
    #[must_use]
    pub fn policies(mut self, policies: &[Policy]) -> Self {
        self.policies = policies.to_vec();
        self
    }

    #[cfg(test)]
    pub(crate) fn clock(mut self, clock: fn() -> Monotonic) -> Self {
        self.clock = clock;
        self
    }

    /// Serves in a child of `poa`, with its manager, and registers the root context as the initial
    /// reference `NameService`. Clients reach it by `corbaloc:iiop:HOST:PORT/NameService`.
    ///
    /// References of contexts stay valid across restarts if the endpoint and `poa` stay the same,
    /// and the journal keeps the contexts.
    ///
    /// # Errors
    /// [`ServeError::Poa`] if the policies do not go together or `poa` has such a child;
    /// [`ServeError::Name`] if the name is taken; others for a lack of resources.
    pub fn serve_in(self, poa: &Poa) -> Result<NamingService, ServeError> {
        let manager = poa.manager();
        let common = [
            Policy::IdAssignment(IdAssignment::User),
            Policy::IdUniqueness(IdUniqueness::Multiple),
            Policy::ServantRetention(ServantRetention::NonRetain),
            Policy::RequestProcessing(RequestProcessing::ServantManager),
        ];
        let mut policies = common.to_vec();
        policies.extend(self.policies);
        let mut persistent = policies.clone();
        persistent.push(Policy::Lifespan(Lifespan::Persistent));
        let contexts = poa.create_poa("NameService", Some(manager), &persistent)?;
        let listings = contexts.create_poa("Iterators", Some(manager), &policies)?;
        let orb = contexts.orb();
        let (tree, journal) = self
            .state
            .unwrap_or_else(|| (Tree::new(unused_number()), Box::new(NoJournal)));
        let poas = (contexts.clone(), listings.clone());
        let shared = ServerState::new(orb.clone(), self.limits, tree, journal, poas, self.clock);
        let shared = Arc::new(shared);
        contexts.set_servant_locator(ContextLocator::new(shared.clone()))?;
        listings.set_servant_locator(ListingLocator::new(shared.clone()))?;
        let root = shared.context(ROOT)?.into_object();
        orb.register_initial_reference("NameService", &root)?;
        let housekeeping = Housekeeper::start(shared.clone(), self.reaping)?;
        Ok(NamingService {
            shared,
            root,
            _housekeeping: housekeeping,
        })
    }
}

impl Default for NameServer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameServer")
            .field("limits", &self.limits)
            .field("reaping", &self.reaping)
            .finish_non_exhaustive()
    }
}

/// A name server that is served until its ORB is shut down.
///
/// Dropping it ends the regular work: bindings whose leases have ended stay in memory but are not
/// found, and objects are not checked.
#[derive(Debug)]
pub struct NamingService {
    shared: Arc<ServerState>,
    root: Object,
    _housekeeping: Housekeeper,
}

impl NamingService {
    /// The root context.
    #[must_use]
    pub fn root(&self) -> &Object {
        &self.root
    }

    /// The number of contexts, with the root.
    #[must_use]
    pub fn context_count(&self) -> usize {
        self.shared.read(|tree, _| tree.context_count())
    }

    /// The last failure of the journal, of which the client got `PERSIST_STORE`.
    #[must_use]
    pub fn last_journal_failure(&self) -> Option<String> {
        self.shared.last_failure()
    }
}

/// The journal of a name server that keeps its state in memory only.
struct NoJournal;

impl Journal for NoJournal {
    fn append(&mut self, _: &[Change]) -> Result<(), JournalError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
