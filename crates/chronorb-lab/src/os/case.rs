//! The ORB under a scheduling class and a load.

use serde::Serialize;

use super::class::Class;
use super::load::Load;
use crate::bench::Placement;

/// How client and server are scheduled, where they are, and what competes with them.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Case {
    /// How all their threads are scheduled.
    pub class: Class,
    /// What others do meanwhile.
    pub load: Load,
    /// Where they are. A thread with a reservation cannot be pinned.
    pub placement: Placement,
    /// Whether the memory of both is locked.
    pub memory_locked: bool,
}

impl Case {
    /// All that can be measured on a machine: with several processors or one, where memory may be locked or not.
    pub(super) fn all(several_cpus: bool, may_lock: bool) -> Vec<Self> {
        let free = Class::ALL
            .into_iter()
            .flat_map(|class| Load::ALL.map(|load| Self::new(class, load, Placement::Unpinned)));
        let apart = [Class::Other, Class::Fifo, Class::Rr]
            .into_iter()
            .flat_map(|class| PAIR.map(|load| Self::new(class, load, Placement::AcrossCpus)));
        let unlocked = [Class::Other, Class::Fifo]
            .into_iter()
            .flat_map(|class| PAIR.map(|load| Self::new(class, load, Placement::Unpinned)))
            .map(Self::unlocked);
        let mut cases: Vec<_> = free.collect();
        if several_cpus {
            cases.extend(apart);
        }
        match may_lock {
            true => cases.extend(unlocked),
            false => cases.iter_mut().for_each(|case| *case = case.unlocked()),
        }
        cases
    }

    /// With memory locked.
    pub(super) const fn new(class: Class, load: Load, placement: Placement) -> Self {
        Self {
            class,
            load,
            placement,
            memory_locked: true,
        }
    }

    pub(super) const fn unlocked(self) -> Self {
        Self {
            memory_locked: false,
            ..self
        }
    }

    /// The same under another load.
    pub(super) const fn under(self, load: Load) -> Self {
        Self { load, ..self }
    }

    /// Where and how, in words.
    pub(super) fn setting(self) -> String {
        let place = match self.placement {
            Placement::SameCpu => "same CPU",
            Placement::AcrossCpus => "pinned apart",
            Placement::Unpinned => "free",
        };
        match self.memory_locked {
            true => place.to_owned(),
            false => format!("{place}, memory not locked"),
        }
    }
}

const PAIR: [Load; 2] = [Load::Idle, Load::Hogs];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_with_a_reservation_is_pinned() {
        let cases = Case::all(true, true);
        assert_eq!(cases.len(), 22);
        let reserved = cases.iter().filter(|case| case.class == Class::Deadline);
        let places: Vec<_> = reserved.map(|case| case.placement).collect();
        assert_eq!(places, [Placement::Unpinned; 3]);
    }

    #[test]
    fn what_a_machine_cannot_do_is_left_out() {
        let cases = Case::all(false, false);
        assert_eq!(cases.len(), 12);
        assert!(cases.iter().all(|case| !case.memory_locked));
        let pinned = |case: &Case| case.placement != Placement::Unpinned;
        assert!(!cases.iter().any(pinned));
    }
}
