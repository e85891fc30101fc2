//! The plan of the experiment.

use serde::{Deserialize, Serialize};

use super::case::{Processors, Setting, WaitsClass};

/// The amount of measurements.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WaitsPlan {
    /// The number of rounds; in each, all ways are measured in all settings.
    pub rounds: u32,
    /// The measured calls of a way in a round.
    pub calls: u32,
    /// The unmeasured calls before them.
    pub warm_up: u32,
    /// The numbers of idle connections that are compared.
    pub idle: Vec<u32>,
}

impl WaitsPlan {
    /// The least plan, for tests of the experiment itself.
    #[must_use]
    pub fn tiny() -> Self {
        Self::of(2, 20, 5, 3)
    }

    pub(super) fn of(rounds: u32, calls: u32, warm_up: u32, most_idle: u32) -> Self {
        Self {
            rounds,
            calls,
            warm_up,
            idle: vec![0, most_idle],
        }
    }

    /// The settings for which there are processors and rights.
    pub(super) fn settings(&self, processors: usize, real_time: bool) -> Vec<Setting> {
        Setting::places()
            .filter(|place| place.processors == Processors::One || processors > 1)
            .filter(|place| place.class == WaitsClass::Ordinary || real_time)
            .flat_map(|place| self.idle.iter().map(move |idle| place.with_idle(*idle)))
            .collect()
    }

    /// The greatest number of idle connections.
    pub(super) fn most_idle(&self) -> u32 {
        self.idle.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::WaitsExperiment;
    use super::super::case::WaitMethod;
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn nothing_is_tried_that_the_machine_does_not_have() {
        let plan = WaitsExperiment::full();
        assert_eq!(plan.settings(2, true).len(), 2 * 2 * 2);
        let poor = plan.settings(1, false);
        assert_eq!(poor.len(), 2);
        for setting in poor {
            assert_eq!(setting.class, WaitsClass::Ordinary);
            assert!(setting.ways().all(|way| !way.spins()));
            assert_eq!(setting.ways().next(), Some(WaitMethod::Blocking));
        }
    }
}
