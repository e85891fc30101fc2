//! A lock whose owner runs at a ceiling, for threads on several CPUs.

use core::cell::RefCell;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::sched::scheduling::{Scheduling, SchedulingError, current, set_current};
use crate::sync::gate::{wait_while, wake_all};
use crate::sync::pi_lock::{NotOwner, PiLockError, thread_id};
use crate::sync::pi_mutex::PiMutex;
use crate::time::clock::Deadline;

/// A lock with a priority ceiling, as of the multiprocessor priority ceiling protocol (Rajkumar
/// 1990).
///
/// Its owner runs at the ceiling, or at its own scheduling if that is more urgent. A thread has the
/// ceiling from before it locks until it has unlocked. So a thread that waits begins its section at
/// once when the lock is handed over, whatever else its CPU executes below the ceiling. The most
/// urgent waiter is next, by the native priority that it had before; equally urgent ones in the
/// order in which they came. Locking and unlocking make system calls.
///
/// The lock is not recursive. Two threads that wait for each other's locks are not detected. A
/// thread that ends while it holds the lock poisons it permanently, as a [`PiLock`](crate::PiLock).
pub struct CeilingLock {
    ceiling: Scheduling,
    queue: Arc<PiMutex<Queue>>,
}

/// The owner and the waiters of a lock.
#[derive(Debug, Default)]
struct Queue {
    /// The thread id of the owner; 0 without one.
    owner: u32,
    /// The scheduling of the owner to which unlocking returns.
    before: Option<Scheduling>,
    is_poisoned: bool,
    /// The most urgent one first.
    waiting: VecDeque<Arc<Waiter>>,
}

/// A thread that waits.
#[derive(Debug)]
struct Waiter {
    thread: u32,
    urgency: u8,
    before: Option<Scheduling>,
    state: AtomicU32,
}

const WAITING: u32 = 0;
const GRANTED: u32 = 1;
const POISONED: u32 = 2;
/// A time that is longer than any wait.
const FOREVER: Duration = Duration::from_secs(1 << 32);

impl CeilingLock {
    /// An unlocked lock.
    #[must_use]
    pub fn new(ceiling: Scheduling) -> Self {
        Self {
            ceiling,
            queue: Arc::default(),
        }
    }

    /// Returns the scheduling of its owners.
    #[must_use]
    pub const fn ceiling(&self) -> Scheduling {
        self.ceiling
    }

    /// Locks, and waits as long as it takes.
    ///
    /// # Errors
    /// As [`lock_until`](Self::lock_until).
    pub fn lock(&self) -> Result<(), PiLockError> {
        while !self.lock_until(Deadline::after(FOREVER))? {}
        Ok(())
    }

    /// Locks, and waits until `deadline` at most. Returns whether the lock was had in time. A free
    /// lock is had whatever the deadline is.
    ///
    /// # Errors
    /// [`PiLockError::Deadlock`] if the calling thread has the lock already,
    /// [`PiLockError::OwnerEnded`], and [`PiLockError::Os`] if the system refuses the ceiling. The
    /// lock is then as before.
    #[must_use = "nothing is locked where it returns false"]
    pub fn lock_until(&self, deadline: Deadline) -> Result<bool, PiLockError> {
        let own = current().unwrap_or(Scheduling::OTHER);
        let before = (own.priority < self.ceiling.priority).then_some(own);
        if before.is_some() {
            set_current(self.ceiling).map_err(refused)?;
        }
        let locked = self.take(own.priority, before, deadline);
        if locked != Ok(true) {
            restore(before);
        }
        locked
    }

    /// Unlocks, and takes the ceiling back; the most urgent waiter has the lock when this returns.
    ///
    /// # Errors
    /// [`NotOwner`] where the calling thread does not have the lock, which stays as it is.
    pub fn unlock(&self) -> Result<(), NotOwner> {
        let before = {
            let mut queue = self.queue.lock();
            if queue.owner != thread_id() {
                return Err(NotOwner);
            }
            let before = queue.before;
            queue.hand_over();
            before
        };
        HELD.with_borrow_mut(|held| held.remove(&self.queue));
        restore(before);
        Ok(())
    }

    /// Takes the lock for a thread that has the ceiling.
    fn take(
        &self,
        urgency: u8,
        before: Option<Scheduling>,
        deadline: Deadline,
    ) -> Result<bool, PiLockError> {
        let thread = thread_id();
        let waiter = {
            let mut queue = self.queue.lock();
            if queue.is_poisoned {
                return Err(PiLockError::OwnerEnded);
            }
            if queue.owner == thread {
                return Err(PiLockError::Deadlock);
            }
            if queue.owner == 0 {
                (queue.owner, queue.before) = (thread, before);
                None
            } else {
                let waiter = Arc::new(Waiter {
                    thread,
                    urgency,
                    before,
                    state: AtomicU32::new(WAITING),
                });
                queue.add(waiter.clone());
                Some(waiter)
            }
        };
        if let Some(waiter) = waiter
            && !self.wait(&waiter, deadline)?
        {
            return Ok(false);
        }
        HELD.with_borrow_mut(|held| held.0.push(self.queue.clone()));
        Ok(true)
    }

    /// Waits for the lock. Returns whether it was handed over in time.
    fn wait(&self, waiter: &Arc<Waiter>, deadline: Deadline) -> Result<bool, PiLockError> {
        let mut state = wait_while(&waiter.state, WAITING, deadline);
        if state == WAITING {
            let mut queue = self.queue.lock();
            // It may have been handed over since.
            state = waiter.state.load(Ordering::Acquire);
            if state == WAITING {
                queue.waiting.retain(|it| !Arc::ptr_eq(it, waiter));
                return Ok(false);
            }
        }
        if state == POISONED {
            return Err(PiLockError::OwnerEnded);
        }
        Ok(true)
    }
}

impl Queue {
    /// Adds a waiter behind those that are as urgent.
    fn add(&mut self, waiter: Arc<Waiter>) {
        let urgency = waiter.urgency;
        let place = self.waiting.partition_point(|it| it.urgency >= urgency);
        self.waiting.insert(place, waiter);
    }

    /// Makes the most urgent waiter the owner.
    fn hand_over(&mut self) {
        (self.owner, self.before) = (0, None);
        if let Some(next) = self.waiting.pop_front() {
            (self.owner, self.before) = (next.thread, next.before);
            next.end(GRANTED);
        }
    }
}

impl Waiter {
    fn end(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        wake_all(&self.state);
    }
}

impl fmt::Debug for CeilingLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CeilingLock")
            .field("ceiling", &self.ceiling)
            .finish_non_exhaustive()
    }
}

/// Takes the ceiling back.
fn restore(before: Option<Scheduling>) {
    // The thread had this scheduling before, so that it is permitted.
    let _ = before.map(set_current);
}

fn refused(error: SchedulingError) -> PiLockError {
    PiLockError::Os(match error {
        SchedulingError::NotPermitted => libc::EPERM,
        SchedulingError::InvalidPriority => libc::EINVAL,
        SchedulingError::NoSuchThread => libc::ESRCH,
        SchedulingError::Os(error) => error,
    })
}

/// The locks that a thread holds, which its end poisons.
#[derive(Debug)]
struct HeldLocks(Vec<Arc<PiMutex<Queue>>>);

impl HeldLocks {
    fn remove(&mut self, queue: &Arc<PiMutex<Queue>>) {
        if let Some(place) = self.0.iter().rposition(|it| Arc::ptr_eq(it, queue)) {
            self.0.swap_remove(place);
        }
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        for queue in self.0.drain(..) {
            let mut queue = queue.lock();
            (queue.owner, queue.is_poisoned) = (0, true);
            for waiter in queue.waiting.drain(..) {
                waiter.end(POISONED);
            }
        }
    }
}

thread_local! {
    static HELD: RefCell<HeldLocks> = const { RefCell::new(HeldLocks(Vec::new())) };
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, mpsc};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_micros(100);

    fn lock() -> CeilingLock {
        CeilingLock::new(Scheduling::OTHER)
    }

    fn waiting(lock: &CeilingLock) -> usize {
        lock.queue.lock().waiting.len()
    }

    #[test]
    fn one_thread_at_a_time_has_the_lock() {
        let lock = lock();
        // Separate load and store: concurrent threads would lose additions.
        let count = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        lock.lock().unwrap();
                        let before = count.load(Ordering::Relaxed);
                        count.store(before + 1, Ordering::Relaxed);
                        lock.unlock().unwrap();
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 8_000);
    }

    #[test]
    fn the_most_urgent_waiter_is_next_and_equal_ones_in_their_order() {
        let lock = lock();
        let (send, taken) = mpsc::channel();
        lock.lock().unwrap();
        thread::scope(|scope| {
            for (number, urgency) in [3, 7, 3, 9, 7].into_iter().enumerate() {
                let (lock, send) = (&lock, send.clone());
                scope.spawn(move || {
                    assert_eq!(lock.take(urgency, None, Deadline::after(LONG)), Ok(true));
                    send.send(number).unwrap();
                    lock.unlock().unwrap();
                });
                while waiting(lock) <= number {
                    thread::yield_now();
                }
            }
            lock.unlock().unwrap();
        });
        drop(send);
        assert_eq!(taken.iter().collect::<Vec<_>>(), [3, 1, 4, 0, 2]);
    }

    #[test]
    fn a_waiter_that_gives_up_does_not_get_the_lock() {
        let lock = lock();
        lock.lock().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(lock.lock_until(Deadline::after(SHORT)), Ok(false)));
        });
        assert_eq!(waiting(&lock), 0);
        lock.unlock().unwrap();
        assert_eq!(lock.lock_until(Deadline::after(Duration::ZERO)), Ok(true));
    }

    #[test]
    fn misuse_is_refused() {
        let lock = lock();
        assert_eq!(lock.unlock(), Err(NotOwner));
        lock.lock().unwrap();
        assert_eq!(lock.lock(), Err(PiLockError::Deadlock));
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(lock.unlock(), Err(NotOwner)));
        });
        assert_eq!(lock.unlock(), Ok(()));
    }

    #[test]
    fn an_owner_that_ends_poisons_the_lock_for_waiters_and_later_ones() {
        let lock = lock();
        let locked = Barrier::new(2);
        thread::scope(|scope| {
            let owner = scope.spawn(|| {
                lock.lock().unwrap();
                locked.wait();
                while waiting(&lock) == 0 {
                    thread::yield_now();
                }
            });
            locked.wait();
            scope.spawn(|| assert_eq!(lock.lock(), Err(PiLockError::OwnerEnded)));
            owner.join().unwrap();
        });
        assert_eq!(lock.lock(), Err(PiLockError::OwnerEnded));
    }

    /// Without the right to real-time scheduling there are no ceilings.
    #[test]
    fn the_owner_has_the_ceiling_until_it_unlocks() {
        let ceiling = Scheduling::fifo(2);
        let low = Scheduling::fifo(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                let lock = CeilingLock::new(ceiling);
                if set_current(low).is_err() {
                    assert_eq!(lock.lock(), Err(PiLockError::Os(libc::EPERM)));
                    return;
                }
                lock.lock().unwrap();
                assert_eq!(current().unwrap(), ceiling);
                assert_eq!(lock.lock(), Err(PiLockError::Deadlock));
                assert_eq!(current().unwrap(), ceiling);
                lock.unlock().unwrap();
                assert_eq!(current().unwrap(), low);
            });
        });
    }

    /// A thread that waits has the ceiling when the lock is handed over, and returns to its own.
    #[test]
    fn a_waiter_begins_its_section_at_the_ceiling() {
        let (ceiling, low) = (Scheduling::fifo(3), Scheduling::fifo(1));
        let lock = CeilingLock::new(ceiling);
        thread::scope(|scope| {
            let is_permitted = scope.spawn(|| set_current(ceiling).is_ok());
            if !is_permitted.join().unwrap() {
                return;
            }
            let (send, tid) = mpsc::channel();
            lock.lock().unwrap();
            let lock = &lock;
            let waiter = scope.spawn(move || {
                set_current(low).unwrap();
                send.send(thread_id()).unwrap();
                lock.lock().unwrap();
                let within = current().unwrap();
                lock.unlock().unwrap();
                (within, current().unwrap())
            });
            let tid = tid.recv().unwrap();
            while waiting(lock) == 0 {
                thread::yield_now();
            }
            let while_waiting = crate::scheduling_of_process(tid).unwrap();
            lock.unlock().unwrap();
            assert_eq!(while_waiting, ceiling);
            assert_eq!(waiter.join().unwrap(), (ceiling, low));
        });
    }
}
