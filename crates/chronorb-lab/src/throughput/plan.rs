//! What is run, and how often.

use serde::Serialize;

use super::trial::Trial;

/// What is run, and how often.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// How many times everyone has a turn.
    pub rounds: u32,
    /// The small calls of a turn, of all clients together.
    pub calls: u32,
    /// The data that goes each way in a turn, in MiB.
    pub mebioctets: u32,
    /// A part in so many is called besides, before the time counts.
    pub warm_up_part: u32,
}

impl Plan {
    /// All of it, in some minutes.
    #[must_use]
    pub const fn full() -> Self {
        Self {
            rounds: 15,
            calls: 24_000,
            mebioctets: 128,
            warm_up_part: 10,
        }
    }

    /// The same in some seconds.
    #[must_use]
    pub const fn short() -> Self {
        Self {
            rounds: 3,
            calls: 4_000,
            mebioctets: 16,
            ..Self::full()
        }
    }

    /// As little as shows that it works; its figures mean nothing.
    #[must_use]
    pub const fn tiny() -> Self {
        Self {
            rounds: 2,
            calls: 160,
            mebioctets: 2,
            ..Self::full()
        }
    }

    /// The calls of a turn, of all clients together.
    pub(super) const fn calls(&self, trial: Trial) -> u32 {
        match trial.octets() {
            0 => self.calls,
            octets => (self.mebioctets << 10) / (octets >> 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trial_moves_as_much_data() {
        let plan = Plan::full();
        for trial in Trial::ALL {
            match trial {
                Trial::Clients(_) => assert_eq!(plan.calls(trial), plan.calls),
                Trial::Data(_) => {
                    let octets = u64::from(plan.calls(trial)) * u64::from(trial.octets());
                    assert_eq!(octets, u64::from(plan.mebioctets) << 20);
                }
            }
        }
    }
}
