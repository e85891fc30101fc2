//! The part of an ORB in dynamic scheduling: its scheduler, and the identities that it gives.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::{FixedPriorityScheduler, Guid, Scheduler};

/// The scheduler of an ORB, and the source of its identities.
pub(crate) struct SchedulingState {
    scheduler: OnceLock<Arc<dyn Scheduler>>,
    /// Differs for each ORB, also for those that start at the same time.
    key: u64,
    next: AtomicU64,
}

impl SchedulingState {
    /// Makes the state of an ORB that has this incarnation.
    pub(crate) fn new(incarnation: u64) -> Self {
        // Its keys are random.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(incarnation);
        Self {
            scheduler: OnceLock::new(),
            key: hasher.finish(),
            next: AtomicU64::new(1),
        }
    }

    /// The scheduler: by fixed priorities, unless the application has set another one.
    pub(super) fn scheduler(&self) -> &dyn Scheduler {
        match self.scheduler.get() {
            Some(scheduler) => &**scheduler,
            None => &FixedPriorityScheduler,
        }
    }

    /// Sets the scheduler; `false` if it was set before.
    pub(crate) fn set_scheduler(&self, scheduler: Arc<dyn Scheduler>) -> bool {
        self.scheduler.set(scheduler).is_ok()
    }

    /// Returns the scheduler for others to keep.
    pub(crate) fn shared_scheduler(&self) -> Arc<dyn Scheduler> {
        let scheduler = self.scheduler.get().cloned();
        scheduler.unwrap_or_else(|| Arc::new(FixedPriorityScheduler))
    }

    /// Returns an identity that no other distributable thread has.
    pub(super) fn next_guid(&self) -> Guid {
        Guid::new(self.key, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_of_orbs_that_start_at_the_same_nanosecond_differ() {
        const EACH: usize = 1_000_000;
        let states = [SchedulingState::new(7), SchedulingState::new(7)];
        let guids = states
            .iter()
            .flat_map(|state| (0..EACH).map(|_| state.next_guid()));
        let mut guids: Vec<_> = guids.collect();
        guids.sort_unstable();
        guids.dedup();
        assert_eq!(guids.len(), 2 * EACH);
    }
}
