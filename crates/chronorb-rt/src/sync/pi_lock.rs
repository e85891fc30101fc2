//! The lock of a mutex that passes the priority of its waiters on to its owner.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::{futex, gettid};

use crate::mem::tally::{self, ThreadCounts};
use crate::sync::observer;
use crate::time::clock::Deadline;

/// A lock with priority inheritance (`FUTEX_LOCK_PI`), whose locking and unlocking are separate
/// calls. It guards nothing by itself: [`PiMutex`](crate::PiMutex) is the form with a value.
///
/// Without contention neither call makes a system call. The most urgent waiter is next, and gets
/// the lock directly from the kernel. Waiters of one priority get it in the order in which they
/// came, so a thread that unlocks and locks again does not overtake them. The lock is not
/// recursive. A thread that ends while it holds the lock poisons it permanently, because the
/// guarded data may be inconsistent, or still be borrowed by a leaked guard. Every thread that
/// waits or locks later gets [`PiLockError::OwnerEnded`].
pub struct PiLock {
    /// 0, or the thread id of the owner and the kernel's flags.
    owner: AtomicU32,
    /// An owner has ended without unlocking. An owner after it writes this before it unlocks, so
    /// that each later one sees it.
    poisoned: AtomicBool,
}

impl PiLock {
    /// An unlocked lock.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            owner: AtomicU32::new(0),
            poisoned: AtomicBool::new(false),
        }
    }

    /// Locks, and waits as long as it takes.
    ///
    /// # Errors
    /// See [`PiLockError`]: the call could never return. The lock is then as before.
    #[inline]
    pub fn lock(&self) -> Result<(), PiLockError> {
        let _locking = observer::begin();
        if self.take() {
            return self.check();
        }
        self.wait(None).map(|_always| ())
    }

    /// Locks if the lock is free, and returns whether it was; never waits. `false` also if the
    /// calling thread has it, or if an owner has ended without unlocking.
    #[inline]
    #[must_use = "nothing is locked where it returns false"]
    pub fn try_lock(&self) -> bool {
        let _locking = observer::begin();
        self.take() && self.check().is_ok()
    }

    /// Locks, and waits until `deadline` at most; the owner inherits the priority meanwhile.
    /// Returns whether the lock was had in time. A free lock is had whatever the deadline is.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    #[inline]
    #[must_use = "nothing is locked where it returns false"]
    pub fn lock_until(&self, deadline: Deadline) -> Result<bool, PiLockError> {
        let _locking = observer::begin();
        if self.take() {
            return self.check().map(|()| true);
        }
        self.wait(Some(deadline))
    }

    /// Unlocks; the most urgent waiter has the lock when this returns.
    ///
    /// # Errors
    /// [`NotOwner`] where the calling thread does not have the lock, which stays as it is.
    #[inline]
    pub fn unlock(&self) -> Result<(), NotOwner> {
        let _unlocking = observer::begin();
        let unlocked =
            self.owner
                .compare_exchange(thread_id(), 0, Ordering::Release, Ordering::Relaxed);
        match unlocked {
            Ok(_) => Ok(()),
            Err(owner) if owner & TID_MASK == thread_id() => {
                self.hand_over();
                Ok(())
            }
            Err(_) => Err(NotOwner),
        }
    }

    /// Whether the calling thread has the lock.
    #[must_use]
    pub fn is_owned_by_this_thread(&self) -> bool {
        self.owner.load(Ordering::Relaxed) & TID_MASK == thread_id()
    }

    /// Whether the kernel knows of threads that wait.
    #[cfg(test)]
    pub(crate) fn has_waiters(&self) -> bool {
        self.owner.load(Ordering::Relaxed) & WAITERS != 0
    }

    /// Takes the lock if it is free, and returns whether it was.
    #[inline]
    fn take(&self) -> bool {
        tally::locked();
        self.owner
            .compare_exchange(0, thread_id(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Unlocks a poisoned lock that the calling thread has just locked.
    #[inline]
    fn check(&self) -> Result<(), PiLockError> {
        if self.poisoned.load(Ordering::Relaxed) {
            let unlocked = self.unlock();
            debug_assert!(unlocked.is_ok(), "the thread has just locked it");
            Err(PiLockError::OwnerEnded)
        } else {
            Ok(())
        }
    }

    /// Whether the lock was had in time.
    #[cold]
    fn wait(&self, deadline: Option<Deadline>) -> Result<bool, PiLockError> {
        let time_out = deadline.map(|deadline| deadline.instant().to_timespec());
        loop {
            // The id of an owner that has ended may be that of another thread by now.
            if self.poisoned.load(Ordering::Relaxed) {
                return Err(PiLockError::OwnerEnded);
            }
            let locked = match &time_out {
                // By the monotonic clock, since Linux 5.14.
                Some(time_out) => {
                    futex::lock_pi2(&self.owner, futex::Flags::PRIVATE, Some(time_out))
                }
                None => futex::lock_pi(&self.owner, futex::Flags::PRIVATE, None),
            };
            match locked {
                Ok(()) => {
                    // Pairs with the release by the owner before, which handed the lock over.
                    let owner = self.owner.load(Ordering::Acquire);
                    if owner & OWNER_DIED != 0 {
                        self.poisoned.store(true, Ordering::Relaxed);
                    }
                    return self.check().map(|()| true);
                }
                Err(Errno::TIMEDOUT) => return Ok(false),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::DEADLK) => return Err(PiLockError::Deadlock),
                // The owner is gone, or is just going: then the kernel finds its waiters without an
                // owner, and the word with one.
                Err(Errno::SRCH | Errno::INVAL) => self.poisoned.store(true, Ordering::Relaxed),
                Err(other) => return Err(PiLockError::Os(other.raw_os_error())),
            }
        }
    }

    /// Lets the kernel hand the lock over to a waiter.
    #[cold]
    fn hand_over(&self) {
        // The value does not change; everything before is visible to a thread that reads the word
        // from now on.
        self.owner.fetch_or(0, Ordering::Release);
        while let Err(error) = futex::unlock_pi(&self.owner, futex::Flags::PRIVATE) {
            debug_assert!(matches!(error, Errno::AGAIN | Errno::INTR), "{error}");
        }
    }
}

impl Default for PiLock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PiLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = self.owner.load(Ordering::Relaxed) & TID_MASK;
        f.debug_struct("PiLock").field("owner", &owner).finish()
    }
}

/// The reason why a lock cannot be acquired.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PiLockError {
    /// The calling thread has the lock already, or the owner waits, directly or through others,
    /// for a lock that the calling thread has.
    #[error("the thread has the lock already, or its owner waits for this thread")]
    Deadlock,
    /// The owner ended without unlocking.
    #[error("the owner of the lock has ended without unlocking it")]
    OwnerEnded,
    /// The system gave another error number: no memory, or a Linux before 5.14.
    #[error("the lock could not be had: system error {0}")]
    Os(i32),
}

/// The calling thread does not have the lock that it wants to unlock.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the thread does not have the lock")]
pub struct NotOwner;

/// Returns the number of times that the calling thread has locked, or tried to lock, any [`PiLock`]
/// or [`PiMutex`](crate::PiMutex).
///
/// Tests use the difference to show how many locks a path takes.
#[must_use]
pub fn lock_operations() -> u64 {
    ThreadCounts::of_this_thread().lock_operations
}

/// The kernel's id of the calling thread, which costs a system call only the first time.
#[must_use]
pub fn thread_id() -> u32 {
    match THREAD_ID.get() {
        0 => {
            let id = gettid().as_raw_nonzero().get().unsigned_abs();
            THREAD_ID.set(id);
            id
        }
        id => id,
    }
}

/// Threads wait for the lock.
#[cfg(test)]
const WAITERS: u32 = 0x8000_0000;
/// The kernel gave the lock to its present owner because the one before has ended.
const OWNER_DIED: u32 = 0x4000_0000;
/// The part of the word that is the owner's thread id.
const TID_MASK: u32 = 0x3fff_ffff;

thread_local! {
    static THREAD_ID: Cell<u32> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_micros(100))
    }

    fn late() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    #[test]
    fn the_owner_alone_unlocks() {
        let lock = PiLock::new();
        assert_eq!(lock.unlock(), Err(NotOwner));
        lock.lock().unwrap();
        assert!(lock.is_owned_by_this_thread());
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!(!lock.is_owned_by_this_thread());
                assert_eq!(lock.unlock(), Err(NotOwner));
                assert!(!lock.try_lock());
                assert_eq!(lock.lock_until(soon()), Ok(false));
            });
        });
        assert_eq!(lock.unlock(), Ok(()));
        assert!(!lock.is_owned_by_this_thread());
        assert_eq!(lock.unlock(), Err(NotOwner));
    }

    #[test]
    fn a_waiter_gets_the_lock_that_is_unlocked() {
        let lock = PiLock::new();
        assert!(lock.try_lock());
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                assert_eq!(lock.lock_until(late()), Ok(true));
                assert!(lock.is_owned_by_this_thread());
                lock.unlock().unwrap();
            });
            while !lock.has_waiters() {
                thread::yield_now();
            }
            assert!(
                lock.is_owned_by_this_thread(),
                "the kernel's flags are no owner"
            );
            lock.unlock().unwrap();
            waiter.join().unwrap();
        });
        assert_eq!(lock.lock_until(Deadline::after(Duration::ZERO)), Ok(true));
    }

    #[test]
    fn waiters_of_one_priority_get_the_lock_in_their_order() {
        let (lock, last) = (PiLock::new(), AtomicU32::new(0));
        let waiters = [const { AtomicU32::new(0) }; 3];
        thread::scope(|scope| {
            lock.lock().unwrap();
            for (waiter, number) in waiters.iter().zip(1..) {
                let (lock, last) = (&lock, &last);
                scope.spawn(move || {
                    waiter.store(thread_id(), Ordering::Release);
                    lock.lock().unwrap();
                    let before = last.swap(number, Ordering::Relaxed);
                    assert_eq!(before, number - 1);
                    lock.unlock().unwrap();
                });
                // The next one comes when this one sleeps.
                while !sleeps(waiter.load(Ordering::Acquire)) {
                    thread::yield_now();
                }
            }
            lock.unlock().unwrap();
            lock.lock().unwrap();
            assert_eq!(last.load(Ordering::Relaxed), 3, "it came after them");
            lock.unlock().unwrap();
        });
    }

    fn sleeps(thread: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
        thread != 0 && stat.is_ok_and(|stat| stat.contains(") S "))
    }

    #[test]
    fn locking_twice_is_refused() {
        let lock = PiLock::new();
        lock.lock().unwrap();
        assert!(!lock.try_lock());
        assert_eq!(lock.lock(), Err(PiLockError::Deadlock));
        assert_eq!(lock.lock_until(late()), Err(PiLockError::Deadlock));
        lock.unlock().unwrap();
    }

    #[test]
    fn threads_that_would_wait_for_each_other_are_refused() {
        let (first, second) = (PiLock::new(), PiLock::new());
        first.lock().unwrap();
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                second.lock().unwrap();
                assert_eq!(first.lock_until(late()), Ok(true));
                first.unlock().unwrap();
                second.unlock().unwrap();
            });
            while !first.has_waiters() {
                thread::yield_now();
            }
            assert_eq!(second.lock(), Err(PiLockError::Deadlock));
            first.unlock().unwrap();
            other.join().unwrap();
        });
    }

    #[test]
    fn what_nobody_can_unlock_is_refused() {
        let lock = PiLock::new();
        thread::scope(|scope| scope.spawn(|| lock.lock().unwrap()).join().unwrap());
        // The kernel keeps the owner for a moment after its end.
        let refused = loop {
            match lock.lock_until(soon()) {
                Ok(false) => thread::yield_now(),
                other => break other,
            }
        };
        assert_eq!(refused, Err(PiLockError::OwnerEnded));
        assert_eq!(lock.lock(), Err(PiLockError::OwnerEnded));
    }

    #[test]
    fn all_that_wait_while_the_owner_ends_are_refused() {
        let lock = PiLock::new();
        let waiting = AtomicU32::new(0);
        thread::scope(|scope| {
            let owner = scope.spawn(|| {
                lock.lock().unwrap();
                while waiting.load(Ordering::Relaxed) < 2 || !lock.has_waiters() {
                    thread::yield_now();
                }
            });
            while lock.owner.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            let wait = || {
                waiting.fetch_add(1, Ordering::Relaxed);
                assert_eq!(lock.lock(), Err(PiLockError::OwnerEnded));
                assert!(!lock.is_owned_by_this_thread());
            };
            let waiters = [scope.spawn(wait), scope.spawn(wait)];
            owner.join().unwrap();
            for waiter in waiters {
                waiter.join().unwrap();
            }
        });
        assert!(!lock.try_lock());
        assert_eq!(lock.lock(), Err(PiLockError::OwnerEnded));
        assert_eq!(lock.lock_until(late()), Err(PiLockError::OwnerEnded));
    }
}
