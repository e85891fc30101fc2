//! The request that the calling thread is serving.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::thread::LocalKey;

use chronorb_rt::Key;
use thiserror::Error;

use super::{ObjectId, Poa};
use crate::call::{Call, Servant};
use crate::core::{Core, Object};
use crate::rtcorba::Priority;

/// `PortableServer::Current`: the target of the request that the calling thread is serving (CORBA
/// 3.3, 15.3.11). A servant's [`Call`](crate::Call) has the same data.
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
        self.innermost()
            .and_then(|upcall| self.poa_of(upcall))
            .ok_or(NoContext)
    }

    /// The id of the target object.
    ///
    /// # Errors
    /// [`NoContext`].
    pub fn object_id(&self) -> Result<ObjectId, NoContext> {
        let upcall = self.innermost().ok_or(NoContext)?;
        let id = match upcall.target {
            Target::Active(slot) => self.poa_of(upcall).and_then(|poa| poa.held_id(slot)),
            Target::Passing(index) => passing(index, |passing| passing.id.clone()),
            Target::None => None,
        };
        id.ok_or(NoContext)
    }

    /// The reference of the target object.
    ///
    /// # Errors
    /// [`NoContext`].
    pub fn reference(&self) -> Result<Object, NoContext> {
        let poa = self.poa()?;
        let id = self.object_id()?;
        let servant = self.servant()?;
        poa.reference_to(&id, self.own_priority(), servant.repository_id())
            .map_err(|_| NoContext)
    }

    /// The servant that serves the request.
    ///
    /// # Errors
    /// [`NoContext`].
    pub fn servant(&self) -> Result<Servant, NoContext> {
        let upcall = self.innermost().ok_or(NoContext)?;
        let servant = match upcall.target {
            Target::Active(slot) => self.poa_of(upcall).and_then(|poa| poa.held_servant(slot)),
            Target::Passing(index) => passing(index, |passing| passing.servant.clone()),
            Target::None => None,
        };
        servant.ok_or(NoContext)
    }

    /// Returns the priority in the reference of a target that the POA does not remember.
    pub(super) fn own_priority(&self) -> Option<Priority> {
        match self.innermost()?.target {
            Target::Passing(index) => passing(index, |passing| passing.priority)?,
            Target::Active(_) | Target::None => None,
        }
    }

    fn poa_of(&self, upcall: Upcall) -> Option<Poa> {
        // The request keeps it, even where its destruction has begun.
        self.core.poas.held_at(upcall.poa)
    }

    /// The innermost request of this ORB.
    fn innermost(&self) -> Option<Upcall> {
        let is_own = |upcall: &Upcall| {
            upcall.orb == self.core.number && !matches!(upcall.target, Target::None)
        };
        let innermost = Some(Innermost::get()).filter(is_own);
        innermost.or_else(|| with(&OUTER, |outer| outer.iter().rev().copied().find(is_own))?)
    }
}

impl<'a> Call<'a> {
    /// The POA in which the target object was activated (`PortableServer::Current`).
    pub fn poa(&self) -> &'a Poa {
        self.poa.downcast_ref().expect("a call knows its POA")
    }
}

/// A request that the thread is serving.
#[derive(Clone, Copy)]
struct Upcall {
    /// The ORB's number; 0 where there is none.
    orb: u64,
    poa: Key,
    target: Target,
}

#[derive(Clone, Copy)]
enum Target {
    /// The object in this slot of the active object map.
    Active(Key),
    /// One that the POA does not remember: its index in [`PASSING`].
    Passing(usize),
    /// A servant manager is asked for the servant, or given it back.
    None,
}

/// A target that its POA does not remember.
pub(super) struct PassedTarget {
    pub(super) id: ObjectId,
    pub(super) servant: Servant,
    /// The priority in its reference.
    pub(super) priority: Option<Priority>,
}

thread_local! {
    /// The innermost request in progress. Every request writes it, so it has no destructor, and is
    /// written field by field.
    static INNERMOST: Innermost = const {
        Innermost {
            orb: Cell::new(NO_UPCALL.orb),
            poa: Cell::new(NO_UPCALL.poa),
            target: Cell::new(NO_UPCALL.target),
        }
    };
    /// The enclosing requests in progress, the outermost first.
    static OUTER: RefCell<Vec<Upcall>> = const { RefCell::new(Vec::new()) };
    /// The targets of those whose POAs do not remember them.
    static PASSING: RefCell<Vec<PassedTarget>> = const { RefCell::new(Vec::new()) };
}

struct Innermost {
    orb: Cell<u64>,
    poa: Cell<Key>,
    target: Cell<Target>,
}

impl Innermost {
    #[inline]
    fn get() -> Upcall {
        INNERMOST.with(|innermost| Upcall {
            orb: innermost.orb.get(),
            poa: innermost.poa.get(),
            target: innermost.target.get(),
        })
    }

    #[inline]
    fn set(upcall: Upcall) {
        INNERMOST.with(|innermost| {
            innermost.orb.set(upcall.orb);
            innermost.poa.set(upcall.poa);
            innermost.target.set(upcall.target);
        });
    }
}

/// While it lives, the calling thread serves a request.
pub(crate) struct InvocationGuard {
    /// Whether it is within another one.
    is_inner: bool,
    is_passing: bool,
}

impl InvocationGuard {
    /// Makes the entry of an object of the active object map.
    #[inline]
    pub(crate) fn active(core: &Core, poa: &Poa, slot: Key) -> Self {
        Self::begin(core, poa, Target::Active(slot))
    }

    /// Makes the entry of an object that the POA does not remember.
    pub(super) fn passing(poa: &Poa, target: PassedTarget) -> Self {
        let index = with(&PASSING, |passing| {
            passing.push(target);
            passing.len() - 1
        });
        let target = index.map_or(Target::None, Target::Passing);
        let mut running = Self::begin(poa.core(), poa, target);
        running.is_passing = index.is_some();
        running
    }

    /// Marks that the thread calls a servant manager. Operations that wait for the end of requests
    /// must not be called there either.
    pub(super) fn servant_manager(poa: &Poa) -> Self {
        Self::begin(poa.core(), poa, Target::None)
    }

    #[inline(always)]
    fn begin(core: &Core, poa: &Poa, target: Target) -> Self {
        let is_inner = INNERMOST.with(|innermost| innermost.orb.get()) != NO_UPCALL.orb;
        if is_inner {
            enclose();
        }
        Innermost::set(Upcall {
            orb: core.number,
            poa: poa.place(),
            target,
        });
        Self {
            is_inner,
            is_passing: false,
        }
    }
}

impl Drop for InvocationGuard {
    #[inline]
    fn drop(&mut self) {
        if self.is_inner || self.is_passing {
            self.leave();
        } else {
            INNERMOST.with(|innermost| innermost.orb.set(NO_UPCALL.orb));
        }
    }
}

impl InvocationGuard {
    /// Goes back to the enclosing request, and forgets a target that the POA does not remember.
    #[inline(never)]
    fn leave(&self) {
        let outer = self.is_inner.then(|| with(&OUTER, Vec::pop).flatten());
        Innermost::set(outer.flatten().unwrap_or(NO_UPCALL));
        if self.is_passing {
            // Dropping it may run application code, which may access this list.
            let passed = with(&PASSING, Vec::pop);
            drop(passed);
        }
    }
}

/// Keeps the innermost request for the end of one within it.
#[cold]
fn enclose() {
    with(&OUTER, |outer| outer.push(Innermost::get()));
}

/// Whether the calling thread serves a request of this ORB, or is in a servant manager of it.
pub(crate) fn is_in_upcall(core: &Core) -> bool {
    let is_own = |upcall: &Upcall| upcall.orb == core.number;
    is_own(&Innermost::get()) || with(&OUTER, |outer| outer.iter().any(is_own)).unwrap_or_default()
}

fn passing<R>(index: usize, f: impl FnOnce(&PassedTarget) -> R) -> Option<R> {
    with(&PASSING, |passing| passing.get(index).map(f))?
}

/// Uses a list of the calling thread, unless it was destroyed: destructors of other thread-local
/// values may make calls.
fn with<T, R>(
    list: &'static LocalKey<RefCell<Vec<T>>>,
    f: impl FnOnce(&mut Vec<T>) -> R,
) -> Option<R> {
    list.try_with(|list| f(&mut list.borrow_mut())).ok()
}

const NO_UPCALL: Upcall = Upcall {
    orb: 0,
    poa: Key {
        index: 0,
        generation: 0,
    },
    target: Target::None,
};
