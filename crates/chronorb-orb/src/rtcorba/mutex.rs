//! The standard synchronizers: RT mutexes.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
#[cfg(feature = "schedule")]
use chronorb_rt::CeilingLock;
use chronorb_rt::{Deadline, NotOwner, PiLock, PiLockError, PiMutex};

/// `RTCORBA::Mutex`: mutual exclusion within the process, with priority inheritance (RT-CORBA 1.2,
/// “Mutex Interface”).
///
/// While a thread waits, the owner runs at least at that thread's native priority, so that a thread
/// of high priority waits for the critical section and for no thread of middle priority; the ORB's
/// own locks do the same. The most urgent waiter is next. Without contention no operation makes a
/// system call.
///
/// A named mutex that the schedule of the ORB has as a lock with a ceiling has that instead: its
/// owner runs at the ceiling ([`create_named_mutex`](super::RtOrb::create_named_mutex)).
///
/// A clone is another reference to the same mutex, and two references are equal if their mutex is
/// the same. The standard leaves the effect of misuse open; here it is an exception, and the mutex
/// stays unchanged:
///
/// | misuse | exception |
/// |---|---|
/// | to lock what the thread has locked, or what is had by a thread that waits for this one | `BAD_INV_ORDER`, OMG minor 3 |
/// | to unlock what is not locked, or locked by another thread | `BAD_INV_ORDER`, [`minor::MUTEX_NOT_OWNED`] |
/// | to lock what was locked by a thread that has ended since | `BAD_INV_ORDER`, [`minor::MUTEX_OWNER_ENDED`] |
/// | to destroy what is locked | `BAD_INV_ORDER`, [`minor::MUTEX_IN_USE`] |
/// | to use what is destroyed | `OBJECT_NOT_EXIST`, [`minor::MUTEX_DESTROYED`] |
///
/// Where a thread ends that has the mutex while others wait, the most urgent of them gets it.
///
/// ```
/// # use chronorb_orb::{Orb, OrbConfig, SystemException};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let orb = Orb::with_config(OrbConfig::default())?;
/// use std::time::Duration;
///
/// let mutex = orb.rt().create_mutex();
/// if mutex.try_lock(Duration::from_millis(5))? {
///     // The critical section.
///     mutex.unlock()?;
/// }
/// let section = mutex.guard()?;
/// drop(section);
/// orb.rt().destroy_mutex(&mutex)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RtMutex {
    shared: Arc<MutexState>,
}

struct MutexState {
    lock: MutexLock,
    /// Written by the owner of the lock, or in place of an owner that has ended.
    destroyed: AtomicBool,
    /// The number of its ORB.
    orb: u64,
}

/// The lock of a mutex.
#[derive(Debug)]
enum MutexLock {
    Inheriting(PiLock),
    /// The lock of a schedule with `locks = "ceiling"`.
    #[cfg(feature = "schedule")]
    Ceiling(CeilingLock),
}

impl MutexLock {
    fn lock(&self) -> Result<(), PiLockError> {
        match self {
            Self::Inheriting(lock) => lock.lock(),
            #[cfg(feature = "schedule")]
            Self::Ceiling(lock) => lock.lock(),
        }
    }

    fn lock_until(&self, deadline: Deadline) -> Result<bool, PiLockError> {
        match self {
            Self::Inheriting(lock) => lock.lock_until(deadline),
            #[cfg(feature = "schedule")]
            Self::Ceiling(lock) => lock.lock_until(deadline),
        }
    }

    fn unlock(&self) -> Result<(), NotOwner> {
        match self {
            Self::Inheriting(lock) => lock.unlock(),
            #[cfg(feature = "schedule")]
            Self::Ceiling(lock) => lock.unlock(),
        }
    }
}

/// The named mutexes of an ORB.
pub(crate) type NamedMutexes = PiMutex<BTreeMap<String, RtMutex>>;

impl RtMutex {
    /// Locks, and waits without a limit.
    ///
    /// # Errors
    /// See [`RtMutex`]; `NO_RESOURCES` where the system has no memory for a waiting thread.
    pub fn lock(&self) -> Result<(), SystemException> {
        let locked = self.shared.lock.lock();
        self.outcome(locked.map(|()| true)).map(|_always| ())
    }

    /// Locks, and waits at most for `max_wait`; [`Duration::ZERO`] does not wait. Returns whether
    /// the mutex is locked.
    ///
    /// The `TimeT` of the standard counts 100 ns: `Duration::from_nanos(100 * max_wait)`.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn try_lock(&self, max_wait: Duration) -> Result<bool, SystemException> {
        let locked = self.shared.lock.lock_until(Deadline::after(max_wait));
        self.outcome(locked)
    }

    /// Unlocks; the most urgent waiter has the mutex when this returns.
    ///
    /// # Errors
    /// See [`RtMutex`].
    pub fn unlock(&self) -> Result<(), SystemException> {
        self.shared.lock.unlock().map_err(|NotOwner| {
            if self.is_destroyed() {
                destroyed()
            } else {
                bad_inv_order(minor::MUTEX_NOT_OWNED)
            }
        })
    }

    /// Locks as [`lock`](Self::lock), until the guard is dropped.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn guard(&self) -> Result<RtMutexGuard<'_>, SystemException> {
        self.lock()?;
        Ok(RtMutexGuard {
            mutex: self,
            of_this_thread: PhantomData,
        })
    }

    /// The number of its ORB.
    pub(crate) fn orb(&self) -> u64 {
        self.shared.orb
    }

    /// Makes a mutex of an ORB, without a name and unlocked.
    pub(crate) fn inheriting(orb: u64) -> Self {
        Self::new(orb, MutexLock::Inheriting(PiLock::new()))
    }

    /// Makes a mutex of an ORB, whose owner runs at this ceiling.
    #[cfg(feature = "schedule")]
    pub(crate) fn with_ceiling(orb: u64, ceiling: chronorb_rt::Scheduling) -> Self {
        Self::new(orb, MutexLock::Ceiling(CeilingLock::new(ceiling)))
    }

    fn new(orb: u64, lock: MutexLock) -> Self {
        Self {
            shared: Arc::new(MutexState {
                lock,
                destroyed: AtomicBool::new(false),
                orb,
            }),
        }
    }

    /// Returns the outcome of locking, if the mutex still exists.
    fn outcome(&self, locked: Result<bool, PiLockError>) -> Result<bool, SystemException> {
        if self.is_destroyed() {
            if locked == Ok(true) {
                // This thread has just locked it, for the next one that waits to see the same.
                let _ = self.shared.lock.unlock();
            }
            return Err(destroyed());
        }
        locked.map_err(|error| match error {
            PiLockError::Deadlock => bad_inv_order(minor::WOULD_DEADLOCK),
            PiLockError::OwnerEnded => bad_inv_order(minor::MUTEX_OWNER_ENDED),
            PiLockError::Os(_) => SystemException::no(SystemExceptionKind::NoResources, 0),
        })
    }

    /// Ends a mutex that is not locked, or whose owner has ended.
    pub(crate) fn destroy(&self) -> Result<(), SystemException> {
        let lock = &self.shared.lock;
        let locked = lock.lock_until(Deadline::after(Duration::ZERO));
        if self.is_destroyed() {
            return self.outcome(locked).map(|_never| ());
        }
        match locked {
            Ok(true) => {
                self.shared.destroyed.store(true, Ordering::Relaxed);
                lock.unlock()
                    .map_err(|NotOwner| bad_inv_order(minor::MUTEX_NOT_OWNED))
            }
            Err(PiLockError::OwnerEnded) => {
                self.shared.destroyed.store(true, Ordering::Relaxed);
                Ok(())
            }
            Ok(false) | Err(PiLockError::Deadlock | PiLockError::Os(_)) => {
                Err(bad_inv_order(minor::MUTEX_IN_USE))
            }
        }
    }

    fn is_destroyed(&self) -> bool {
        self.shared.destroyed.load(Ordering::Relaxed)
    }
}

impl PartialEq for RtMutex {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for RtMutex {}

impl fmt::Debug for RtMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtMutex")
            .field("lock", &self.shared.lock)
            .field("destroyed", &self.is_destroyed())
            .finish_non_exhaustive()
    }
}

/// A critical section of an [`RtMutex`]; dropping it unlocks. It stays on its thread.
#[derive(Debug)]
#[must_use = "the mutex is unlocked when the guard is dropped"]
pub struct RtMutexGuard<'a> {
    mutex: &'a RtMutex,
    of_this_thread: PhantomData<*const ()>,
}

impl Drop for RtMutexGuard<'_> {
    fn drop(&mut self) {
        // A section that was unlocked by hand has ended already.
        let _ = self.mutex.unlock();
    }
}

/// There is no mutex of this name (`RTCORBA::RTORB::MutexNotFound`).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("there is no mutex of this name")]
pub struct MutexNotFound;

fn bad_inv_order(minor: u32) -> SystemException {
    SystemException::no(SystemExceptionKind::BadInvOrder, minor)
}

fn destroyed() -> SystemException {
    SystemException::no(SystemExceptionKind::ObjectNotExist, minor::MUTEX_DESTROYED)
}
