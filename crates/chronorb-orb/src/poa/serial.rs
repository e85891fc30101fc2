//! One thread at a time: the single-thread model.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use chronorb_giop::SystemException;
use chronorb_rt::{PiMutex, PiMutexGuard};

use super::gate::Waiters;
use super::{Poa, ThreadModel, is_in_upcall};
use crate::failure::DISCARDED;
use crate::rtcorba::{Priority, request_priority};
use crate::thread_number::{NOBODY, this_thread};

/// A recursive lock for one thread at a time. A waiter lends its priority to the owner.
pub(super) struct Serial {
    mutex: PiMutex<()>,
    owner: AtomicU64,
    /// Deferred work, which the owner does when it leaves.
    left: PiMutex<Vec<Work>>,
    /// Whether there is deferred work, to be read without the lock. It is only exchanged. So of a
    /// thread that defers work and an owner that leaves, one observes the other.
    has_left: AtomicBool,
    /// The priority of the owner, and of those waiters that lend it theirs.
    urgency: AtomicI32,
    /// Lanes with requests that wait for their turn.
    waiters: Waiters,
}

type Work = Box<dyn FnOnce() + Send>;

/// The calling thread is in.
pub(crate) struct SerialGuard<'p> {
    serial: &'p Serial,
    /// Until it leaves.
    entered: Option<PiMutexGuard<'p, ()>>,
}

impl Drop for SerialGuard<'_> {
    fn drop(&mut self) {
        let serial = self.serial;
        loop {
            serial.owner.store(NOBODY, Ordering::Relaxed);
            drop(self.entered.take());
            // A thread that has deferred work since then finds no owner, and enters itself.
            if !serial.has_left.fetch_or(false, Ordering::AcqRel) {
                serial.waiters.ring();
                return;
            }
            self.entered = serial.mutex.try_lock();
            if self.entered.is_none() {
                // The present owner checks when it leaves.
                return;
            }
            serial.owner.store(this_thread(), Ordering::Relaxed);
            serial.take_left().into_iter().for_each(|work| work());
        }
    }
}

impl Serial {
    pub(super) fn of(model: ThreadModel) -> Option<Self> {
        (model == ThreadModel::SingleThread).then(|| Self {
            mutex: PiMutex::new(()),
            owner: AtomicU64::new(NOBODY),
            left: PiMutex::new(Vec::new()),
            has_left: AtomicBool::new(false),
            urgency: AtomicI32::new(0),
            waiters: Waiters::default(),
        })
    }

    /// Whether no thread is in.
    pub(super) fn is_free(&self) -> bool {
        self.mutex.try_lock().is_some()
    }

    pub(super) fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// Decides how a request enters; see [`Poa::entry`].
    fn entry(&self, priority: Option<Priority>, was_parked: bool) -> Entry {
        if self.is_here() {
            return Entry::Now;
        }
        if self.is_free() {
            // Others were there before.
            return if !was_parked && self.waiters.any() {
                Entry::Parks
            } else {
                Entry::Now
            };
        }
        let rank = rank(priority);
        if self.urgency.fetch_max(rank, Ordering::Relaxed) < rank {
            Entry::Waits
        } else {
            Entry::Parks
        }
    }

    /// Whether the calling thread is in. Only it writes its own number there.
    fn is_here(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    fn leave(&self, work: Work) {
        let mut left = self.left.lock();
        left.push(work);
        self.has_left.swap(true, Ordering::AcqRel);
    }

    fn take_left(&self) -> Vec<Work> {
        let mut left = self.left.lock();
        self.has_left.swap(false, Ordering::AcqRel);
        mem::take(&mut *left)
    }

    fn wait(&self, time_out: Duration) -> Result<Option<SerialGuard<'_>>, SystemException> {
        if self.is_here() {
            return Ok(None);
        }
        let entered = match time_out {
            Duration::ZERO => self.mutex.try_lock(),
            time_out => self.mutex.try_lock_for(time_out),
        };
        Ok(Some(self.enter(entered.ok_or(DISCARDED)?)))
    }

    fn enter<'p>(&'p self, mutex: PiMutexGuard<'p, ()>) -> SerialGuard<'p> {
        self.owner.store(this_thread(), Ordering::Relaxed);
        self.urgency
            .store(rank(request_priority()), Ordering::Relaxed);
        SerialGuard {
            serial: self,
            entered: Some(mutex),
        }
    }
}

/// The way in which a request enters a POA.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Entry {
    /// The request enters at once; if another thread is faster, it is parked.
    Now,
    /// The request waits on its thread and lends the owner its priority, because it is more urgent
    /// than the owner and all such waiters.
    Waits,
    /// The request is parked.
    Parks,
}

/// Returns the rank of a priority; requests without one have the least.
fn rank(priority: Option<Priority>) -> i32 {
    priority.map_or(-1, |priority| priority.value().into())
}

impl Poa {
    /// Whether one thread at a time is in it.
    #[inline]
    pub(crate) fn is_serial(&self) -> bool {
        self.inner.serial.is_some()
    }

    /// Decides how a request of this priority enters, in a lane whose threads do not wait for a
    /// POA. A request that was parked before precedes those that were not.
    #[inline]
    pub(crate) fn entry(&self, priority: Option<Priority>, was_parked: bool) -> Entry {
        match &self.inner.serial {
            Some(serial) => serial.entry(priority, was_parked),
            None => Entry::Now,
        }
    }

    /// Makes sure that no other thread is in this POA's application code, where it is
    /// single-threaded.
    ///
    /// # Errors
    /// `TRANSIENT` (OMG minor 1) where another one did not leave in time.
    #[inline]
    pub(crate) fn enter(
        &self,
        time_out: Duration,
    ) -> Result<Option<SerialGuard<'_>>, SystemException> {
        match &self.inner.serial {
            Some(serial) => serial.wait(time_out),
            None => Ok(None),
        }
    }

    /// Runs work that must be done, by one thread at a time if the POA is single-threaded: on the
    /// calling thread when it can enter, or on the owner when that leaves. A thread in an upcall
    /// does not wait, since the owner may wait for it. The work must not panic.
    pub(super) fn take_turn(&self, work: impl FnOnce() + Send + 'static) {
        let others = self.inner.serial.as_ref();
        let Some(serial) = others.filter(|serial| !serial.is_here()) else {
            work();
            return;
        };
        let patience = if is_in_upcall(self.core()) {
            Duration::ZERO
        } else {
            self.core().config.hold_timeout
        };
        if let Some(entered) = serial.mutex.try_lock_for(patience) {
            let _in = serial.enter(entered);
            work();
        } else {
            serial.leave(Box::new(work));
            let entered = serial.mutex.try_lock();
            drop(entered.map(|entered| serial.enter(entered)));
        }
    }
}
