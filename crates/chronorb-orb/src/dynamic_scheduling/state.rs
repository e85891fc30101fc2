//! The part of an ORB in dynamic scheduling: its scheduler, and the identities that it gives.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::{FixedPriorityScheduler, Guid, Scheduler};

/// The scheduler of an ORB, and the source of its identities.
pub(crate) struct SchedulingState {
    scheduler: OnceLock<Arc<dyn Scheduler>>,
    /// The secret key of identities, random for each ORB.
    key: RandomState,
    next: AtomicU64,
}

impl SchedulingState {
    pub(crate) fn new() -> Self {
        Self {
            scheduler: OnceLock::new(),
            key: RandomState::new(),
            next: AtomicU64::new(1),
        }
    }

    /// The scheduler: by fixed priorities, unless the application has set another one.
    pub(crate) fn scheduler(&self) -> &dyn Scheduler {
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
    ///
    /// Both halves are hashes of a number under a secret key, by a pseudorandom function (SipHash),
    /// so identities that a peer has seen tell no others. No system call is made.
    pub(crate) fn next_guid(&self) -> Guid {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let [first, second] = [0_u64, 1].map(|half| self.key.hash_one((half, number)));
        Guid::new(first, second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_differ_in_all_their_bits() {
        const EACH: usize = 100_000;
        let states = [SchedulingState::new(), SchedulingState::new()];
        let guids = states
            .iter()
            .flat_map(|state| (0..EACH).map(|_| state.next_guid()));
        let guids: Vec<_> = guids.collect();
        // Each bit is set in half of them: more than 11 standard deviations are left to either
        // side.
        let half = EACH as u32;
        for bit in 0..128 {
            let has_bit = |guid: &&Guid| u128::from_be_bytes(guid.0) >> bit & 1 == 1;
            let set = guids.iter().filter(has_bit).count() as u32;
            assert!(set.abs_diff(half) < half / 40, "bit {bit}: {set}");
        }
        for half in 0..2 {
            let mut halves: Vec<_> = guids
                .iter()
                .map(|guid| <[u64; 2]>::from(guid.halves())[half])
                .collect();
            halves.sort_unstable();
            halves.dedup();
            assert_eq!(halves.len(), 2 * EACH);
        }
    }
}
