//! The work that the server does: arithmetic that takes a known time.

use std::hint::black_box;
use std::time::Duration;

use chronorb_rt::Monotonic;
use serde::{Deserialize, Serialize};

use crate::comparison::Setup;

/// How many steps of work the calls of each class ask for.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Steps {
    pub(super) high: u32,
    pub(super) low: u32,
}

impl Steps {
    /// Finds out how long a step takes on this machine.
    pub(super) fn calibrate(setup: &Setup) -> Self {
        // The quickest of several runs is the one that nobody interrupted.
        let quickest = (0..CALIBRATION_RUNS)
            .map(|_| {
                let start = Monotonic::now();
                black_box(cube(7, CALIBRATION_STEPS));
                Monotonic::now().since(start)
            })
            .min()
            .unwrap_or_default();
        Self {
            high: steps(setup.high_work, quickest),
            low: steps(setup.low_work, quickest),
        }
    }
}

/// Computes for `steps` steps; returns the cube of `value`.
pub(super) fn cube(value: u8, steps: u32) -> i32 {
    let mut state = u64::from(value);
    for _ in 0..steps {
        // Keeps the compiler from finding out the end without going the way.
        state = black_box(
            state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f),
        );
    }
    black_box(state);
    i32::from(value).pow(3)
}

fn steps(work: Duration, calibration: Duration) -> u32 {
    let runs = work.as_secs_f64() / calibration.as_secs_f64().max(1e-9);
    // The cast saturates, and a call always works a little.
    ((runs * f64::from(CALIBRATION_STEPS)) as u32).max(1)
}

const CALIBRATION_STEPS: u32 = 100_000;
const CALIBRATION_RUNS: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_does_not_depend_on_the_work() {
        for steps in [0, 1, 1000] {
            assert_eq!(cube(255, steps), 16_581_375);
            assert_eq!(cube(0, steps), 0);
        }
    }

    #[test]
    fn steps_follow_the_time_that_the_work_shall_take() {
        let calibration = Duration::from_micros(250);
        assert_eq!(steps(Duration::from_millis(1), calibration), 400_000);
        assert_eq!(steps(Duration::from_micros(20), calibration), 8_000);
        assert_eq!(steps(Duration::ZERO, calibration), 1);
        assert_eq!(steps(Duration::MAX, Duration::ZERO), u32::MAX);
    }
}
