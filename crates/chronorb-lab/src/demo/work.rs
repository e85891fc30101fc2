//! How much work the calls of each class ask for.

use serde::{Deserialize, Serialize};

use crate::comparison::Setup;
use crate::work::Speed;

/// How many steps of work the calls of each class ask for.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Steps {
    pub(super) high: u32,
    pub(super) low: u32,
}

impl Steps {
    /// Finds out how long a step takes on this machine.
    pub(super) fn calibrate(setup: &Setup) -> Self {
        let speed = Speed::measure();
        Self {
            high: speed.steps(setup.high_work),
            low: speed.steps(setup.low_work),
        }
    }
}
