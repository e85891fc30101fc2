//! Mutexes whose operations are scheduling points.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chronorb_giop::{CompletionStatus, SystemException};

use super::thread::{self, PriorityBefore};
use crate::core::Core;
use crate::rtcorba::{Priority, RtMutex, request_priority};

/// A mutex for distributable threads (`RTScheduling::ResourceManager`), with an optional priority
/// ceiling.
///
/// Its owner runs at least at the ceiling, so that one section at most delays it. The mutex itself
/// passes on the priorities of its waiters, as every [`RtMutex`] does.
pub struct ResourceManager {
    core: Arc<Core>,
    mutex: RtMutex,
    ceiling: Option<Priority>,
}

/// A locked [`ResourceManager`]; dropping it unlocks, and takes the ceiling back.
#[must_use = "the resource is unlocked when the guard is dropped"]
pub struct ResourceGuard<'r> {
    resource: &'r ResourceManager,
    before: Option<PriorityBefore>,
}

impl ResourceManager {
    pub(super) fn new(core: Arc<Core>, mutex: RtMutex, ceiling: Option<Priority>) -> Self {
        Self {
            core,
            mutex,
            ceiling,
        }
    }

    /// Locks, and waits without a limit.
    ///
    /// # Errors
    /// `THREAD_CANCELLED`; those of [`RtMutex::lock`], and of the ceiling's priority.
    pub fn lock(&self) -> Result<ResourceGuard<'_>, SystemException> {
        self.lock_by(|mutex| mutex.lock().map(|()| true))?
            .ok_or(thread::cancelled(CompletionStatus::No))
    }

    /// Locks, and waits at most for `max_wait`. `None` is for a mutex that is not free in time.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn try_lock(
        &self,
        max_wait: Duration,
    ) -> Result<Option<ResourceGuard<'_>>, SystemException> {
        self.lock_by(|mutex| mutex.try_lock(max_wait))
    }

    fn lock_by(
        &self,
        lock: impl FnOnce(&RtMutex) -> Result<bool, SystemException>,
    ) -> Result<Option<ResourceGuard<'_>>, SystemException> {
        pass_point()?;
        let raised = self
            .ceiling
            .filter(|ceiling| request_priority() < Some(*ceiling));
        let before = PriorityBefore::change(&self.core, raised)?;
        let restore = || {
            if let Some(before) = before {
                before.restore(&self.core);
            }
        };
        match lock(&self.mutex) {
            Ok(true) => {
                let guard = ResourceGuard {
                    resource: self,
                    before,
                };
                // It may have waited for long.
                pass_point()?;
                Ok(Some(guard))
            }
            Ok(false) => {
                restore();
                Ok(None)
            }
            Err(exception) => {
                restore();
                Err(exception)
            }
        }
    }
}

/// Raises `THREAD_CANCELLED` if the calling thread is a distributable thread that was cancelled.
fn pass_point() -> Result<(), SystemException> {
    match thread::present() {
        Some(present) if present.is_cancelled => Err(thread::unwind(CompletionStatus::No)),
        _ => Ok(()),
    }
}

impl Drop for ResourceGuard<'_> {
    fn drop(&mut self) {
        // This thread has locked it.
        let _ = self.resource.mutex.unlock();
        if let Some(before) = self.before {
            before.restore(&self.resource.core);
        }
    }
}

impl fmt::Debug for ResourceManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceManager")
            .field("ceiling", &self.ceiling)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ResourceGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceGuard").finish_non_exhaustive()
    }
}
