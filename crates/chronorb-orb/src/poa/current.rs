//! The request that the calling thread is serving.

use std::cell::RefCell;
use std::sync::Arc;

use chronorb_rt::Key;
use thiserror::Error;

use super::{ObjectError, ObjectId, Poa};
use crate::call::Servant;
use crate::core::Core;
use crate::object::Object as Reference;

/// `PortableServer::Current`: what the request that the calling thread is serving is for (CORBA
/// 3.3, 15.3.11). Servants that have their [`Call`](crate::Call) at hand find it there too.
#[derive(Clone, Debug)]
pub struct PoaCurrent {
    core: Arc<Core>,
}

/// The calling thread serves no request of this ORB.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the calling thread serves no request of this ORB")]
pub struct NoContext;

impl PoaCurrent {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The POA of the target object.
    ///
    /// # Errors
    /// [`NoContext`].
    pub fn poa(&self) -> Result<Poa, NoContext> {
        self.innermost(|upcall| self.poa_of(upcall))
            .ok_or(NoContext)
    }

    /// The id of the target object.
    ///
    /// # Errors
    /// [`NoContext`].
    pub fn object_id(&self) -> Result<ObjectId, NoContext> {
        let id = self.innermost(|upcall| match upcall.object.as_ref()? {
            Object::Active(slot) => self.poa_of(upcall)?.held_id(*slot),
            Object::Other { id, .. } => Some(id.clone()),
        });
        id.ok_or(NoContext)
    }

    /// The reference of the target object.
    ///
    /// # Errors
    /// [`NoContext`].
    pub fn reference(&self) -> Result<Reference, NoContext> {
        let poa = self.poa()?;
        let id = self.object_id()?;
        let servant = self.servant()?;
        let reference: Result<_, ObjectError> = poa.reference_to(&id, servant.repository_id());
        reference.map_err(|_| NoContext)
    }

    /// The servant that serves the request.
    ///
    /// # Errors
    /// [`NoContext`].
    pub fn servant(&self) -> Result<Servant, NoContext> {
        let servant = self.innermost(|upcall| match upcall.object.as_ref()? {
            Object::Active(slot) => self.poa_of(upcall)?.held_servant(*slot),
            Object::Other { servant, .. } => Some(servant.clone()),
        });
        servant.ok_or(NoContext)
    }

    fn poa_of(&self, upcall: &Upcall) -> Option<Poa> {
        // The request keeps it, even where its destruction has begun.
        self.core.poas.held_at(upcall.poa)
    }

    fn innermost<R>(&self, f: impl FnOnce(&Upcall) -> Option<R>) -> Option<R> {
        UPCALLS.with_borrow(|upcalls| {
            let mut own = upcalls.iter().rev().filter(|u| u.orb == self.core.number);
            own.find(|upcall| upcall.object.is_some()).and_then(f)
        })
    }
}

/// A request that the thread is serving.
struct Upcall {
    orb: u64,
    poa: Key,
    /// Its target; `None` while a servant manager is asked for the servant, or given it back.
    object: Option<Object>,
}

/// The target of a request.
pub(crate) enum Object {
    /// The one in this slot of the active object map.
    Active(Key),
    /// One that the POA does not remember.
    Other { id: ObjectId, servant: Servant },
}

thread_local! {
    /// Those in progress, the innermost last.
    static UPCALLS: RefCell<Vec<Upcall>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, the calling thread serves a request.
pub(crate) struct Running(());

impl Running {
    pub(crate) fn begin(core: &Core, poa: &Poa, object: Object) -> Self {
        Self::of(core, poa, Some(object))
    }

    /// The thread calls a servant manager. What waits for the end of requests must not be called
    /// there either.
    pub(super) fn servant_manager(poa: &Poa) -> Self {
        Self::of(poa.core(), poa, None)
    }

    #[inline]
    fn of(core: &Core, poa: &Poa, object: Option<Object>) -> Self {
        UPCALLS.with_borrow_mut(|upcalls| {
            upcalls.push(Upcall {
                orb: core.number,
                poa: poa.place(),
                object,
            });
        });
        Self(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What is dropped may be application code, which may look here.
        let ended = UPCALLS.with_borrow_mut(Vec::pop);
        drop(ended);
    }
}

/// Whether the calling thread serves a request of this ORB, or is in a servant manager of it.
pub(crate) fn is_in_upcall(core: &Core) -> bool {
    UPCALLS.with_borrow(|upcalls| upcalls.iter().any(|upcall| upcall.orb == core.number))
}
