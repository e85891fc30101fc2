//! A mutex that passes the priority of its waiters on to its owner.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

use crate::sync::pi_lock::{PiLock, PiLockError};
use crate::time::clock::Deadline;

/// A mutex with priority inheritance (`FUTEX_LOCK_PI`): while a thread of high priority waits, the
/// owner runs at that priority, so that no thread of middle priority can delay both.
///
/// Without contention neither locking nor unlocking makes a system call. The most urgent waiter is
/// next, and gets the mutex directly from the kernel. A panic of the owner unlocks and does not
/// poison. A thread that ends while it has the mutex, by a leaked guard, poisons it for good: the
/// leaked guard may still lend the value out. The mutex is not recursive.
pub struct PiMutex<T: ?Sized> {
    lock: PiLock,
    value: UnsafeCell<T>,
}

// SAFETY: the mutex hands out access to one thread at a time, as `std::sync::Mutex` does.
unsafe impl<T: ?Sized + Send> Send for PiMutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for PiMutex<T> {}

impl<T> PiMutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self {
            lock: PiLock::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Returns the value; the mutex is not shared any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> PiMutex<T> {
    /// Locks, and waits as long as it takes.
    ///
    /// # Panics
    /// If the calling thread has the mutex already, if its owner waits for one that the calling
    /// thread has, or if its owner ended without unlocking (a leaked guard): the call could never
    /// return.
    pub fn lock(&self) -> PiMutexGuard<'_, T> {
        if let Err(error) = self.lock.lock() {
            refuse(error);
        }
        self.guard()
    }

    /// Locks if the mutex is free; never waits. `None` also if the calling thread has it, or if an
    /// owner ended without unlocking.
    pub fn try_lock(&self) -> Option<PiMutexGuard<'_, T>> {
        self.lock.try_lock().then(|| self.guard())
    }

    /// Locks, and waits at most for `duration`; the owner inherits the priority meanwhile.
    /// `None` after that time, or at once if the calling thread has the mutex, or its owner waits
    /// for one that the calling thread has.
    ///
    /// # Panics
    /// If the owner ended without unlocking (a leaked guard), or on Linux before 5.14.
    pub fn try_lock_for(&self, duration: Duration) -> Option<PiMutexGuard<'_, T>> {
        match self.lock.lock_until(Deadline::after(duration)) {
            Ok(locked) => locked.then(|| self.guard()),
            Err(PiLockError::Deadlock) => None,
            Err(error) => refuse(error),
        }
    }

    /// Returns the value without locking; the borrow proves that the mutex is not shared.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    fn guard(&self) -> PiMutexGuard<'_, T> {
        PiMutexGuard {
            mutex: self,
            of_this_thread: PhantomData,
        }
    }
}

impl<T: Default> Default for PiMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PiMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PiMutex");
        match self.try_lock() {
            Some(value) => shown.field("value", &&*value),
            None => shown.field("value", &format_args!("<locked>")),
        };
        shown.finish()
    }
}

/// Access to the value of a locked [`PiMutex`]; dropping it unlocks.
///
/// It stays on its thread: the kernel knows the owner by its thread id.
#[must_use = "the mutex is unlocked when the guard is dropped"]
pub struct PiMutexGuard<'a, T: ?Sized> {
    mutex: &'a PiMutex<T>,
    of_this_thread: PhantomData<*mut T>,
}

// SAFETY: a shared guard gives only `&T`.
unsafe impl<T: ?Sized + Sync> Sync for PiMutexGuard<'_, T> {}

impl<T: ?Sized> Deref for PiMutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its thread owns the mutex.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for PiMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists only while its thread owns the mutex, and is borrowed mutably.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for PiMutexGuard<'_, T> {
    fn drop(&mut self) {
        let unlocked = self.mutex.lock.unlock();
        debug_assert!(unlocked.is_ok(), "a guard stays on its thread");
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PiMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cold]
fn refuse(error: PiLockError) -> ! {
    match error {
        PiLockError::Deadlock => panic!(
            "the thread locks a PiMutex that it has locked already, or whose owner waits for it"
        ),
        PiLockError::OwnerEnded => panic!("the owner of a PiMutex has ended without unlocking it"),
        PiLockError::Os(error) => {
            panic!("the kernel refuses to lock a PiMutex: system error {error}")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;
    use std::{mem, thread};

    use super::*;
    use crate::lock_operations;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_micros(100);

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        // Not atomic: two threads at once would lose additions.
        let count = PiMutex::new(0_u64);
        thread::scope(|scope| {
            for thread in 0..4 {
                let count = &count;
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        match thread % 2 {
                            0 => *count.lock() += 1,
                            _ => *count.try_lock_for(LONG).unwrap() += 1,
                        }
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 80_000);
    }

    #[test]
    fn a_locked_mutex_refuses_other_threads() {
        let mutex = PiMutex::new(());
        let guard = mutex.lock();
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!(mutex.try_lock().is_none());
                assert!(mutex.try_lock_for(SHORT).is_none());
            });
        });
        drop(guard);
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn the_mutex_can_be_used_after_a_waiter_gave_up() {
        let mutex = PiMutex::new(0);
        let guard = mutex.lock();
        thread::scope(|scope| {
            scope.spawn(|| assert!(mutex.try_lock_for(SHORT).is_none()));
        });
        drop(guard);
        thread::scope(|scope| {
            scope.spawn(|| *mutex.lock() += 1);
        });
        assert_eq!(*mutex.lock(), 1);
    }

    #[test]
    fn the_mutex_passes_from_a_running_owner_to_a_waiting_thread() {
        let mutex = PiMutex::new(0);
        let guard = mutex.lock();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| *mutex.lock() += 1);
            while !mutex.lock.has_waiters() {
                thread::yield_now();
            }
            drop(guard);
            waiter.join().unwrap();
        });
        assert_eq!(mutex.try_lock().map(|value| *value), Some(1));
    }

    #[test]
    #[should_panic(expected = "locks a PiMutex that it has locked already")]
    fn locking_twice_panics() {
        let mutex = PiMutex::new(());
        let _guard = mutex.lock();
        let _never = mutex.lock();
    }

    #[test]
    fn trying_to_lock_twice_gives_none() {
        let mutex = PiMutex::new(());
        let _guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        assert!(mutex.try_lock_for(LONG).is_none());
    }

    #[test]
    #[should_panic(expected = "has ended without unlocking")]
    fn locking_what_nobody_can_unlock_panics() {
        let mutex = PiMutex::new(());
        thread::scope(|scope| {
            // Not the scope's end but `join` shows that the thread has left the kernel.
            let leaker = scope.spawn(|| mem::forget(mutex.lock()));
            leaker.join().unwrap();
        });
        let _never = mutex.lock();
    }

    #[test]
    fn a_leaked_guard_is_never_joined_by_a_second() {
        let mutex = PiMutex::new(7);
        let (send, leaked) = mpsc::channel();
        thread::scope(|scope| {
            let leaker = scope.spawn(|| {
                let guard: &mut PiMutexGuard<'_, i32> = Box::leak(Box::new(mutex.lock()));
                send.send(&mut **guard).unwrap();
                while !mutex.lock.has_waiters() {
                    thread::yield_now();
                }
            });
            let first: &mut i32 = leaked.recv().unwrap();
            let waited = catch_unwind(AssertUnwindSafe(|| *mutex.lock()));
            assert!(waited.is_err(), "the value is still lent out");
            leaker.join().unwrap();
            assert!(mutex.try_lock().is_none());
            let tried = catch_unwind(AssertUnwindSafe(|| mutex.try_lock_for(LONG).is_some()));
            assert!(tried.is_err());
            *first += 1;
            assert_eq!(*first, 8);
        });
    }

    #[test]
    fn a_panic_unlocks() {
        let mutex = PiMutex::new(());
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _guard = mutex.lock();
            panic!("in the critical section");
        }));
        assert!(caught.is_err());
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn each_operation_is_counted_on_its_thread() {
        let mutex = PiMutex::new(());
        let before = lock_operations();
        drop(mutex.lock());
        drop(mutex.try_lock());
        drop(mutex.try_lock_for(SHORT));
        thread::scope(|scope| {
            scope.spawn(|| drop(mutex.lock()));
        });
        assert_eq!(lock_operations() - before, 3);
    }

    #[test]
    fn debug_shows_the_value_or_that_it_is_locked() {
        let mutex = PiMutex::new(7);
        assert_eq!(format!("{mutex:?}"), "PiMutex { value: 7 }");
        let _guard = mutex.lock();
        assert_eq!(format!("{mutex:?}"), "PiMutex { value: <locked> }");
    }
}
