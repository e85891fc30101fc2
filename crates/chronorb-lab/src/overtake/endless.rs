//! Work that ends only with the time that it is given.

use std::time::Duration;

use chronorb_rt::{Monotonic, sleep_until};

use crate::work;

/// Computes for `compute`, rests for `rest`, and so on until `until`. Returns the longest time for
/// which it was kept from computing when it was not at rest.
pub(super) fn work_until(until: Monotonic, compute: Duration, rest: Duration) -> Duration {
    let mut longest = Duration::ZERO;
    let mut seen = Monotonic::now();
    let mut rest_from = seen + compute;
    while seen < until {
        work::cube(7, STEPS);
        let now = Monotonic::now();
        longest = longest.max(now.since(seen));
        seen = now;
        if seen >= rest_from {
            if !rest.is_zero() {
                sleep_until(until.min(seen + rest));
                seen = Monotonic::now();
            }
            rest_from = seen + compute;
        }
    }
    longest
}

/// Work between two looks at the clock: some µs.
const STEPS: u32 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_its_time_has_come_and_not_before() {
        let until = Monotonic::now() + Duration::from_millis(5);
        work_until(until, Duration::from_millis(1), Duration::from_millis(1));
        assert!(Monotonic::now() >= until);
        let longest = work_until(until, Duration::ZERO, Duration::ZERO);
        assert_eq!(longest, Duration::ZERO, "there is nothing left to do");
    }
}
