//! What is measured, and how often.

use serde::{Deserialize, Serialize};

use super::case::{Class, Processors, Setting};

/// What is measured, and how often.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// How many times every way is measured in every setting, one after the other.
    pub rounds: u32,
    /// The calls of each of these times.
    pub calls: u32,
    /// The calls before them, which are not measured.
    pub warm_up: u32,
    /// How many connections the server waits for besides the measured one, by turns.
    pub idle: Vec<u32>,
}

impl Plan {
    /// All of it, in some minutes.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rounds: 11,
            calls: 5_000,
            warm_up: 500,
            idle: vec![0, 1_000],
        }
    }

    /// The same in some seconds: few rounds, and few calls.
    #[must_use]
    pub fn short() -> Self {
        Self {
            rounds: 7,
            calls: 500,
            warm_up: 50,
            ..Self::full()
        }
    }

    /// As little as shows that it works; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            rounds: 2,
            calls: 20,
            warm_up: 5,
            idle: vec![0, 3],
        }
    }

    /// Whether everything that the full plan has is in it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let full = Self::full();
        self.rounds >= full.rounds && self.calls >= full.calls
    }

    /// The settings, as far as there are processors and rights for them.
    pub(super) fn settings(&self, processors: usize, real_time: bool) -> Vec<Setting> {
        let mut settings = Vec::new();
        for class in [Class::Ordinary, Class::RealTime] {
            for at in [Processors::One, Processors::Two] {
                let is_there = at == Processors::One || processors > 1;
                if is_there && (real_time || class == Class::Ordinary) {
                    settings.extend(self.idle.iter().map(|idle| Setting {
                        processors: at,
                        class,
                        idle: *idle,
                    }));
                }
            }
        }
        settings
    }

    /// The most idle connections.
    pub(super) fn most_idle(&self) -> u32 {
        self.idle.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Way;
    use super::*;

    #[test]
    fn nothing_is_tried_that_the_machine_does_not_have() {
        let plan = Plan::full();
        assert_eq!(plan.settings(2, true).len(), 2 * 2 * 2);
        let poor = plan.settings(1, false);
        assert_eq!(poor.len(), 2);
        for setting in poor {
            assert_eq!(setting.class, Class::Ordinary);
            assert!(setting.ways().all(|way| !way.spins()));
            assert_eq!(setting.ways().next(), Some(Way::Blocking));
        }
    }

    #[test]
    fn short_plans_are_told_from_the_full_one() {
        assert!(Plan::full().is_full());
        assert!(!Plan::short().is_full() && !Plan::tiny().is_full());
    }
}
