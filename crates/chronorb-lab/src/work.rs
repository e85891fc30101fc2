//! The work that servers do: arithmetic that takes a known time.

use std::hint::black_box;
use std::time::Duration;

use chronorb_rt::Monotonic;

/// The speed of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed {
    /// The time of [`CALIBRATION_STEPS`].
    calibration: Duration,
}

impl Speed {
    /// Measures the time of a step on this machine.
    pub(crate) fn measure() -> Self {
        // The shortest of several runs is the one without interruptions.
        let calibration = (0..CALIBRATION_RUNS)
            .map(|_| {
                let start = Monotonic::now();
                black_box(cube(7, CALIBRATION_STEPS));
                Monotonic::now().since(start)
            })
            .min()
            .unwrap_or_default();
        Self { calibration }
    }

    /// Returns the number of steps that take so long.
    pub(crate) fn steps(self, work: Duration) -> u32 {
        let runs = work.as_secs_f64() / self.calibration.as_secs_f64().max(1e-9);
        // The cast saturates, and a call always works a little.
        ((runs * f64::from(CALIBRATION_STEPS)) as u32).max(1)
    }
}

/// Computes for so many steps, and returns the cube of `value`.
pub(crate) fn cube(value: u8, steps: u32) -> i32 {
    let mut state = u64::from(value);
    for _ in 0..steps {
        // Keeps the compiler from computing the result without the steps.
        state = black_box(
            state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f),
        );
    }
    black_box(state);
    i32::from(value).pow(3)
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
        let speed = Speed {
            calibration: Duration::from_micros(250),
        };
        assert_eq!(speed.steps(Duration::from_millis(1)), 400_000);
        assert_eq!(speed.steps(Duration::from_micros(20)), 8_000);
        assert_eq!(speed.steps(Duration::ZERO), 1);
        let speed = Speed {
            calibration: Duration::ZERO,
        };
        assert_eq!(speed.steps(Duration::MAX), u32::MAX);
    }
}
