//! Authorization: whether a peer may call an operation of an object.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use chronorb_giop::{SystemException, SystemExceptionKind, minor};

use super::Poa;
use super::adapter::{ALIVE, GUARDED};
use crate::incident::Incident;
use crate::peer::Peer;

/// A decision whether requests to the objects of a POA are served.
///
/// The thread that read the request calls the authorizer, before the servant or a servant manager.
/// Several threads may call it at once, and a request that changes threads may be checked again.
/// Closures of this form are authorizers:
///
/// ```no_run
/// # use chronorb_orb::poa::{AuthorizationRequest, Poa};
/// # fn example(poa: Poa) -> Result<(), Box<dyn std::error::Error>> {
/// poa.set_authorizer(|request: &AuthorizationRequest<'_>| {
///     let user = request.peer().and_then(|peer| peer.credentials()).map(|process| process.uid);
///     request.operation() != b"shutdown" || user == Some(0)
/// })?;
/// # Ok(())
/// # }
/// ```
pub trait Authorizer: Send + Sync + 'static {
    /// Returns whether the request is served. Else, and where this panics, the client gets
    /// `NO_PERMISSION` (chronorb minor 7).
    fn permits(&self, request: &AuthorizationRequest<'_>) -> bool;
}

impl<F> Authorizer for F
where
    F: Fn(&AuthorizationRequest<'_>) -> bool + Send + Sync + 'static,
{
    fn permits(&self, request: &AuthorizationRequest<'_>) -> bool {
        self(request)
    }
}

/// A request as an [`Authorizer`] sees it.
#[derive(Clone, Copy)]
pub struct AuthorizationRequest<'r> {
    pub(crate) peer: Option<Peer<'r>>,
    pub(crate) poa: &'r Poa,
    pub(crate) object_id: &'r [u8],
    pub(crate) operation: &'r [u8],
}

impl<'r> AuthorizationRequest<'r> {
    /// The other side of the connection; `None` for calls from within the process.
    pub fn peer(&self) -> Option<Peer<'r>> {
        self.peer
    }

    /// The POA of the object.
    pub fn poa(&self) -> &'r Poa {
        self.poa
    }

    /// The id of the object.
    pub fn object_id(&self) -> &'r [u8] {
        self.object_id
    }

    /// The name of the operation on the wire; `_locate` where a client asks whether the object is
    /// here.
    pub fn operation(&self) -> &'r [u8] {
        self.operation
    }
}

impl fmt::Debug for AuthorizationRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationRequest")
            .field("peer", &self.peer)
            .field("poa", &self.poa.name())
            .field("object_id", &self.object_id)
            .field("operation", &String::from_utf8_lossy(self.operation))
            .finish()
    }
}

/// The check of a POA with an authorizer before it lets a request in. A program that never sets an
/// authorizer does not contain it.
pub(super) trait Guard: Send + Sync {
    /// Asks the authorizer.
    ///
    /// # Errors
    /// `NO_PERMISSION` (chronorb minor 7) where it refuses.
    fn check(&self, request: &AuthorizationRequest<'_>) -> Result<(), SystemException>;
}

/// The authorizer of a POA.
struct Present<A>(A);

impl<A: Authorizer> Guard for Present<A> {
    fn check(&self, request: &AuthorizationRequest<'_>) -> Result<(), SystemException> {
        let permits = catch_unwind(AssertUnwindSafe(|| self.0.permits(request)));
        if permits.unwrap_or(false) {
            Ok(())
        } else {
            Err(refused(request))
        }
    }
}

#[cold]
fn refused(request: &AuthorizationRequest<'_>) -> SystemException {
    let incidents = &request.poa.core().incidents;
    match &request.peer {
        Some(peer) => incidents.note(Incident::RequestNotAuthorized, peer, 0),
        None => incidents.note(Incident::RequestNotAuthorized, &"this process", 0),
    }
    NOT_AUTHORIZED
}

impl Poa {
    /// Sets the authorizer of the requests to the objects of this POA, once for its life; children
    /// have their own. It applies to all requests that are read after this returns.
    ///
    /// An authorizer that has a handle of this POA keeps both in memory for good;
    /// [`AuthorizationRequest::poa`] is the same POA.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` where the POA has one already.
    pub fn set_authorizer(&self, authorizer: impl Authorizer) -> Result<(), SystemException> {
        let guard = Box::new(Present(authorizer));
        self.inner.guard.set(guard).map_err(|_| HAS_ONE)?;
        // At the end of its initialisation, where that goes on.
        let _writing = self.inner.writing.lock();
        let _ = self.inner.state.compare_set(ALIVE, GUARDED);
        Ok(())
    }

    /// Returns the state in which requests may enter it: guarded with an authorizer or
    /// authenticated keys.
    pub(super) fn open_state(&self) -> u32 {
        match self.inner.guard.get() {
            Some(_) => GUARDED,
            None => self.policies().state_of_life(),
        }
    }

    /// Asks the authorizer, if there is one.
    ///
    /// # Errors
    /// `NO_PERMISSION` (chronorb minor 7) where it refuses.
    #[inline]
    pub(crate) fn authorize(
        &self,
        peer: Option<Peer<'_>>,
        object_id: &[u8],
        operation: &[u8],
    ) -> Result<(), SystemException> {
        let Some(guard) = self.inner.guard.get() else {
            return Ok(());
        };
        guard.check(&AuthorizationRequest {
            peer,
            poa: self,
            object_id,
            operation,
        })
    }
}

const HAS_ONE: SystemException = SystemException::no(SystemExceptionKind::BadInvOrder, 0);
const NOT_AUTHORIZED: SystemException =
    SystemException::no(SystemExceptionKind::NoPermission, minor::NOT_AUTHORIZED);
