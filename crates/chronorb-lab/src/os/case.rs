//! One measurement of the ORB: a scheduling class, a load, a placement, and locked memory or not.

use serde::{Deserialize, Serialize};

use super::class::SchedulingClass;
use super::load::CompetingLoad;
use crate::bench::Placement;

/// The scheduling and the placement of client and server, and the load beside them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OsCase {
    /// The scheduling class of all their threads.
    pub class: SchedulingClass,
    /// The load that competes with them.
    pub load: CompetingLoad,
    /// The CPUs of both. A thread with a reservation cannot be pinned.
    pub placement: Placement,
    /// Whether the memory of both is locked.
    pub memory_locked: bool,
}

impl OsCase {
    /// Returns all cases for a machine with several CPUs or one, on which memory may be locked or
    /// not.
    pub(super) fn all(several_cpus: bool, may_lock: bool) -> Vec<Self> {
        use SchedulingClass::{Fifo, Other, Rr};
        let cases = |classes: &[SchedulingClass], loads: &[CompetingLoad], placement, locked| {
            let pairs = classes
                .iter()
                .flat_map(|class| loads.iter().map(move |load| (*class, *load)));
            let case = |(class, load)| Self::new(class, load, placement, locked);
            pairs.map(case).collect::<Vec<_>>()
        };
        let pair = [CompetingLoad::Idle, CompetingLoad::Hogs];
        let all = &SchedulingClass::ALL;
        let mut every = cases(all, &CompetingLoad::ALL, Placement::Unpinned, may_lock);
        if several_cpus {
            every.extend(cases(
                &[Other, Fifo, Rr],
                &pair,
                Placement::AcrossCpus,
                may_lock,
            ));
        }
        if may_lock {
            every.extend(cases(&[Other, Fifo], &pair, Placement::Unpinned, false));
        }
        every
    }

    pub(super) const fn new(
        class: SchedulingClass,
        load: CompetingLoad,
        placement: Placement,
        memory_locked: bool,
    ) -> Self {
        Self {
            class,
            load,
            placement,
            memory_locked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_a_reservation_is_not_pinned() {
        let cases = OsCase::all(true, true);
        assert_eq!(cases.len(), 22);
        let reserved = cases
            .iter()
            .filter(|case| case.class == SchedulingClass::Deadline);
        let places: Vec<_> = reserved.map(|case| case.placement).collect();
        assert_eq!(places, [Placement::Unpinned; 3]);
    }

    #[test]
    fn cases_beyond_the_machine_are_left_out() {
        let cases = OsCase::all(false, false);
        assert_eq!(cases.len(), 12);
        assert!(cases.iter().all(|case| !case.memory_locked));
        let pinned = |case: &OsCase| case.placement != Placement::Unpinned;
        assert!(!cases.iter().any(pinned));
    }
}
