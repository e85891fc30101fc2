//! Exclusive ownership without waiting: a thread that finds the value taken leaves a claim, and the
//! owner works on its behalf. No wake-up is lost.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::sync::primitives::UnsafeCell;
use crate::sync::primitives::atomic::{AtomicU32, Ordering};

/// A value that one thread at a time works on, passed between threads without waiting.
///
/// A thread that learns of work [claims](Self::claim) the baton. If another thread holds it, the
/// claim is recorded and the claimant continues with other work. The holder finds the record when
/// it [releases](BatonGuard::release), keeps the baton, and looks for work once more. So after
/// every claim some holder looks for work. All operations are wait-free.
///
/// ```
/// use chronorb_rt::{Baton, ReleaseOutcome};
///
/// let connection = Baton::new(Vec::new());
/// if let Some(mut holder) = connection.claim() {
///     loop {
///         holder.push("what the socket had to read");
///         match holder.release() {
///             ReleaseOutcome::Done => break,
///             ReleaseOutcome::Again(still_held) => holder = still_held,
///         }
///     }
/// }
/// ```
pub struct Baton<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one holder at a time, and moves between threads with it.
unsafe impl<T: Send> Sync for Baton<T> {}

/// The baton is held.
const HELD: u32 = 1;
/// The baton was claimed since the holder last checked. The bit has no meaning without [`HELD`].
const AGAIN: u32 = 2;

impl<T> Baton<T> {
    /// Makes a free baton.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the baton if it is free. Otherwise records that the holder must look for work once
    /// more, and returns `None`. The caller's earlier writes are visible to the holder when it
    /// does.
    pub fn claim(&self) -> Option<BatonGuard<'_, T>> {
        let state = &self.state;
        let free = state.compare_exchange(0, HELD, Ordering::AcqRel, Ordering::Relaxed);
        if free.is_ok() {
            return Some(self.guard());
        }
        let before = state.fetch_or(HELD | AGAIN, Ordering::AcqRel);
        if before & HELD != 0 {
            return None;
        }
        // The caller is the holder now and has yet to look for work, which serves its own claim and
        // later ones of other threads.
        state.fetch_and(!AGAIN, Ordering::AcqRel);
        Some(self.guard())
    }

    fn guard(&self) -> BatonGuard<'_, T> {
        BatonGuard {
            baton: self,
            access: PhantomData,
        }
    }

    /// Returns the value; the borrow proves that the baton is not held.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: the exclusive borrow excludes any holder.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> fmt::Debug for Baton<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Baton").finish_non_exhaustive()
    }
}

/// The ownership of a baton.
///
/// Dropping it without [`release`](Self::release), as a panic does, frees the baton too, but
/// forgets a claim that was recorded meanwhile. The code that catches the panic claims again, or
/// gives the value up.
#[must_use = "the baton is to be released"]
pub struct BatonGuard<'a, T> {
    baton: &'a Baton<T>,
    access: PhantomData<&'a mut T>,
}

/// The outcome of releasing a baton.
#[derive(Debug)]
#[must_use = "a baton that was claimed meanwhile is still held"]
pub enum ReleaseOutcome<'a, T> {
    /// The baton is free.
    Done,
    /// The baton was claimed meanwhile. The holder keeps it and must look for work once more; the
    /// record of the claim is cleared.
    Again(BatonGuard<'a, T>),
}

impl<'a, T> BatonGuard<'a, T> {
    /// Frees the baton, unless it was claimed meanwhile.
    pub fn release(self) -> ReleaseOutcome<'a, T> {
        let state = &self.baton.state;
        match state.compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => {
                core::mem::forget(self);
                ReleaseOutcome::Done
            }
            Err(_) => {
                state.fetch_and(!AGAIN, Ordering::AcqRel);
                ReleaseOutcome::Again(self)
            }
        }
    }
}

impl<T> Deref for BatonGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one, and is borrowed as long as the value.
        self.baton.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for BatonGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one, and is borrowed mutably as long as the value.
        self.baton.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for BatonGuard<'_, T> {
    fn drop(&mut self) {
        self.baton.state.store(0, Ordering::Release);
    }
}

impl<T: fmt::Debug> fmt::Debug for BatonGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    #[test]
    fn a_claim_during_the_work_makes_the_holder_look_once_more() {
        let baton = Baton::new(());
        let holder = baton.claim().unwrap();
        assert!(baton.claim().is_none());
        assert!(baton.claim().is_none());
        let ReleaseOutcome::Again(holder) = holder.release() else {
            panic!("the two claims were lost");
        };
        let ReleaseOutcome::Done = holder.release() else {
            panic!("the claims were seen already");
        };
    }

    #[test]
    fn a_released_baton_can_be_claimed() {
        let mut baton = Baton::new(1);
        let mut holder = baton.claim().unwrap();
        *holder += 1;
        assert!(matches!(holder.release(), ReleaseOutcome::Done));
        assert_eq!(*baton.claim().unwrap(), 2);
        assert_eq!(*baton.get_mut(), 2);
    }

    #[test]
    fn a_panic_of_the_holder_frees_the_baton() {
        let baton = Baton::new(());
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _holder = baton.claim().unwrap();
            panic!("in the work");
        }));
        assert!(caught.is_err());
        let holder = baton.claim().unwrap();
        assert!(matches!(holder.release(), ReleaseOutcome::Done));
    }

    #[test]
    fn all_work_is_done_and_by_one_thread_at_a_time() {
        let announced = AtomicUsize::new(0);
        let done = Baton::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        announced.fetch_add(1, Ordering::Relaxed);
                        let Some(mut holder) = done.claim() else {
                            continue;
                        };
                        loop {
                            *holder += announced.swap(0, Ordering::Relaxed);
                            match holder.release() {
                                ReleaseOutcome::Done => break,
                                ReleaseOutcome::Again(still_held) => holder = still_held,
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(*done.claim().unwrap(), 20_000);
    }
}
