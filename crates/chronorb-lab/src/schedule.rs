//! The times at which a client calls, and from which its latencies count.

use std::time::Duration;

use chronorb_rt::{Monotonic, sleep_until};

use crate::stats::Record;

/// The time during which calls are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: Monotonic,
    pub(crate) length: Duration,
}

/// A clock that a client can sleep on.
pub(crate) trait Clock {
    fn now(&self) -> Monotonic;
    fn sleep_until(&self, instant: Monotonic);
}

/// `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Monotonic {
        Monotonic::now()
    }

    fn sleep_until(&self, instant: Monotonic) {
        sleep_until(instant);
    }
}

/// Makes a call at each multiple of `period`.
///
/// The times are fixed beforehand, and a latency counts from the time when its call was due: a call
/// that is late because the one before it was slow includes the wait. Otherwise a slow server would
/// hide the delay of later calls ("coordinated omission").
pub(crate) fn periodic<E>(
    clock: &impl Clock,
    window: Window,
    period: Duration,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<Record, E> {
    let mut record = Record::new();
    let mut due = window.start;
    while due.since(window.start) < window.length {
        clock.sleep_until(due);
        call()?;
        record.add(due.since(window.start), clock.now().since(due));
        due = due + period;
    }
    Ok(record)
}

/// Makes each call as soon as the one before it is answered.
pub(crate) fn closed_loop<E>(
    clock: &impl Clock,
    window: Window,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<Record, E> {
    let mut record = Record::new();
    clock.sleep_until(window.start);
    let mut sent = clock.now();
    while sent.since(window.start) < window.length {
        call()?;
        let answered = clock.now();
        record.add(sent.since(window.start), answered.since(sent));
        sent = answered;
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    /// A clock that only calls and sleeps move.
    struct VirtualClock(Cell<u64>);

    impl VirtualClock {
        fn take(&self, time: Duration) {
            self.0.set(self.0.get() + time.as_nanos() as u64);
        }
    }

    impl Clock for VirtualClock {
        fn now(&self) -> Monotonic {
            Monotonic::from_nanos(self.0.get())
        }

        fn sleep_until(&self, instant: Monotonic) {
            self.0.set(self.0.get().max(instant.as_nanos()));
        }
    }

    const MS: Duration = Duration::from_millis(1);

    fn window(length: Duration) -> Window {
        Window {
            start: Monotonic::from_nanos(1_000_000_000),
            length,
        }
    }

    fn latencies_ms(record: &Record) -> Vec<u64> {
        record
            .points()
            .iter()
            .map(|point| point.latency_ns / 1_000_000)
            .collect()
    }

    #[test]
    fn periodic_calls_are_made_at_their_times() {
        let clock = VirtualClock(Cell::new(0));
        let mut times = Vec::new();
        let record = periodic(&clock, window(200 * MS), 50 * MS, || {
            times.push(clock.now().as_nanos() / 1_000_000);
            clock.take(2 * MS);
            Ok::<_, Infallible>(())
        })
        .unwrap();
        assert_eq!(times, [1000, 1050, 1100, 1150]);
        assert_eq!(latencies_ms(&record), [2, 2, 2, 2]);
    }

    #[test]
    fn a_slow_call_is_charged_to_those_that_it_held_up() {
        let clock = VirtualClock(Cell::new(0));
        let mut calls = 0;
        let record = periodic(&clock, window(250 * MS), 50 * MS, || {
            calls += 1;
            clock.take(if calls == 2 { 120 * MS } else { MS });
            Ok::<_, Infallible>(())
        })
        .unwrap();
        // The second call takes from 50 to 170; the third was due at 100, the fourth at 150.
        assert_eq!(latencies_ms(&record), [1, 120, 71, 22, 1]);
    }

    #[test]
    fn a_closed_loop_calls_again_at_once() {
        let clock = VirtualClock(Cell::new(0));
        let record = closed_loop(&clock, window(10 * MS), || {
            clock.take(3 * MS);
            Ok::<_, Infallible>(())
        })
        .unwrap();
        assert_eq!(latencies_ms(&record), [3, 3, 3, 3]);
    }

    #[test]
    fn a_failing_call_ends_the_measurement() {
        let clock = VirtualClock(Cell::new(0));
        assert_eq!(
            closed_loop(&clock, window(10 * MS), || Err("gone")).unwrap_err(),
            "gone"
        );
        assert_eq!(
            periodic(&clock, window(10 * MS), MS, || Err("gone")).unwrap_err(),
            "gone"
        );
    }
}
