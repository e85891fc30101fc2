//! The health of servers: addresses that are suspected, and the budget of repeated requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb_rt::{Monotonic, PiMutex};

use crate::protocol::Way;
use crate::rtcorba::RetryBudget;

/// The addresses that an ORB suspects, and its budget of repeated requests.
#[derive(Default)]
pub(crate) struct Health {
    /// The addresses, each with the end of its suspicion.
    suspects: PiMutex<Vec<(Way, Monotonic)>>,
    /// The time at which the budget is whole again, in nanoseconds.
    whole_at: AtomicU64,
}

impl Health {
    /// Whether another address is to be preferred.
    pub(crate) fn is_suspect(&self, way: &Way) -> bool {
        self.suspected_until(way) > 0
    }

    /// The end of the suspicion of an address, in nanoseconds; 0 if it is not suspected. Of two
    /// that are, the one whose suspicion ends earlier is to be preferred: the other one failed more
    /// recently.
    pub(crate) fn suspected_until(&self, way: &Way) -> u64 {
        let suspects = self.suspects.lock();
        let mut of_way = suspects.iter().filter(|(suspect, _)| suspect == way);
        let until = of_way.next().map(|(_, until)| *until);
        until
            .filter(|until| Monotonic::now() < *until)
            .map_or(0, Monotonic::as_nanos)
    }

    /// Suspects an address for a time from now on. Returns whether it was not suspected before.
    pub(crate) fn suspect(&self, way: &Way, time: Duration) -> bool {
        let now = Monotonic::now();
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let until = Monotonic::from_nanos(now.as_nanos().saturating_add(time));
        let mut suspects = self.suspects.lock();
        suspects.retain(|(_, until)| now < *until);
        if let Some((_, present)) = suspects.iter_mut().find(|(suspect, _)| suspect == way) {
            *present = until;
            return false;
        }
        if suspects.len() == MAX_SUSPECTS {
            suspects.swap_remove(0);
        }
        suspects.push((way.clone(), until));
        true
    }

    /// Takes a repeated request from the budget; returns whether there was one left.
    pub(crate) fn may_retry(&self, budget: RetryBudget) -> bool {
        let now = Monotonic::now().as_nanos();
        let order = Ordering::Relaxed;
        let taken = self
            .whole_at
            .fetch_update(order, order, |whole_at| take_one(budget, whole_at, now));
        taken.is_ok()
    }
}

/// Takes one token from a bucket that is full at `full_at`; returns the time at which it is full
/// afterwards, or `None` if it is empty.
fn take_one(budget: RetryBudget, full_at: u64, now: u64) -> Option<u64> {
    let period = 1_000_000_000_u64.checked_div(budget.per_second.into())?;
    let full_at = full_at.max(now).saturating_add(period);
    (full_at - now <= period.saturating_mul(budget.burst.into())).then_some(full_at)
}

/// The most addresses that are suspected at a time.
const MAX_SUSPECTS: usize = 256;

#[cfg(test)]
mod tests {
    use chronorb_transport::Address;

    use super::*;

    fn way(port: u16) -> Way {
        Way {
            protocol: 0,
            rank: 0,
            address: Address::host("192.0.2.1".to_owned(), port),
        }
    }

    #[test]
    fn a_budget_permits_a_burst_and_then_its_rate() {
        let budget = RetryBudget {
            per_second: 10,
            burst: 3,
        };
        const TENTH: u64 = 100_000_000;
        let (mut full_at, mut taken) = (0, Vec::new());
        for tenths in [50, 50, 50, 50, 51, 51, 52, 90, 90, 90, 90] {
            let after = take_one(budget, full_at, tenths * TENTH);
            taken.push(after.is_some());
            full_at = after.unwrap_or(full_at);
        }
        let (yes, no) = (true, false);
        assert_eq!(taken, [yes, yes, yes, no, yes, no, yes, yes, yes, yes, no]);
    }

    #[test]
    fn a_budget_without_rate_or_burst_permits_nothing() {
        for (per_second, burst) in [(0, 9), (9, 0)] {
            let budget = RetryBudget { per_second, burst };
            assert_eq!(take_one(budget, 0, 1), None);
        }
    }

    #[test]
    fn suspicion_is_of_one_address_and_ends() {
        let health = Health::default();
        let long = Duration::from_secs(3600);
        assert!(health.suspect(&way(1), long), "it is new");
        assert!(!health.suspect(&way(1), long), "it is known");
        assert!(health.is_suspect(&way(1)));
        assert!(!health.is_suspect(&way(2)));
        assert!(!health.suspect(&way(1), Duration::ZERO));
        assert!(!health.is_suspect(&way(1)), "its time is over");
    }

    #[test]
    fn the_number_of_suspects_is_bounded() {
        let health = Health::default();
        let all = (0..2 * MAX_SUSPECTS).map(|port| way(port as u16));
        for way in all {
            health.suspect(&way, Duration::MAX);
        }
        assert_eq!(health.suspects.lock().len(), MAX_SUSPECTS);
    }
}
