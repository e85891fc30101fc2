//! One thread at a time: the single-thread model.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{PiMutex, PiMutexGuard};

use super::in_progress::{NOBODY, this_thread};
use super::{Poa, ThreadModel};

/// Lets one thread in at a time, and that one again. Who waits lends its priority to who is in.
pub(super) struct Serial {
    mutex: PiMutex<()>,
    owner: AtomicU64,
}

/// The calling thread is in.
pub(crate) struct SerialGuard<'p> {
    owner: &'p AtomicU64,
    _in: PiMutexGuard<'p, ()>,
}

impl Drop for SerialGuard<'_> {
    fn drop(&mut self) {
        self.owner.store(NOBODY, Ordering::Relaxed);
    }
}

impl Serial {
    pub(super) fn of(model: ThreadModel) -> Option<Self> {
        (model == ThreadModel::SingleThread).then(|| Self {
            mutex: PiMutex::new(()),
            owner: AtomicU64::new(NOBODY),
        })
    }
}

impl Poa {
    /// Makes sure that no other thread is in this POA's application code, where it is single-threaded.
    ///
    /// # Errors
    /// `TRANSIENT` (OMG minor 1) where another one did not leave in time.
    pub(crate) fn enter(
        &self,
        time_out: Duration,
    ) -> Result<Option<SerialGuard<'_>>, SystemException> {
        let Some(serial) = &self.inner.serial else {
            return Ok(None);
        };
        // Only this thread writes its own number there.
        if serial.owner.load(Ordering::Relaxed) == this_thread() {
            return Ok(None);
        }
        let entered = serial.mutex.try_lock_for(time_out);
        let entered = entered.ok_or(SystemException::no(
            SystemExceptionKind::Transient,
            minor::REQUEST_DISCARDED,
        ))?;
        serial.owner.store(this_thread(), Ordering::Relaxed);
        Ok(Some(SerialGuard {
            owner: &serial.owner,
            _in: entered,
        }))
    }
}
