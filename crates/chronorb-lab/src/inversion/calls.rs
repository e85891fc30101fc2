//! The calls of one thread, and their times.

use std::time::Duration;

use chronorb_rt::Monotonic;

use super::order::CallSchedule;
use crate::schedule::Clock;

/// Makes the calls of one of `threads` threads that do the same. Returns two times in ns for each
/// call: to its reply from when it was due, and from when it was made.
///
/// The times at which calls are due are fixed beforehand. A call that is late because the one
/// before it was slow is made at once, and charged for the wait.
pub(super) fn make<E>(
    clock: &impl Clock,
    schedule: &CallSchedule,
    period_ns: u64,
    threads: u32,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<Vec<u64>, E> {
    let start = Monotonic::from_nanos(schedule.start_ns);
    let mut times = Vec::with_capacity(2 * expected(schedule, period_ns, threads));
    let mut due = start;
    for made in 0.. {
        let is_over = match schedule.calls {
            0 => nanos(due.since(start)) >= schedule.length_ns,
            calls => made == calls,
        };
        if is_over {
            break;
        }
        if made == 0 || period_ns > 0 {
            clock.sleep_until(due);
        }
        let called = clock.now();
        call()?;
        let answered = clock.now();
        times.extend([due, called].map(|from| nanos(answered.since(from))));
        due = match period_ns {
            0 => rested(clock, start, answered),
            period_ns => due + Duration::from_nanos(period_ns),
        };
    }
    Ok(times)
}

/// Returns an upper bound of the number of calls of a thread: calls back to back of all threads
/// together are no faster than one in [`LEAST_CALL_NS`].
fn expected(schedule: &CallSchedule, period_ns: u64, threads: u32) -> usize {
    let period_ns = match period_ns {
        0 => LEAST_CALL_NS * u64::from(threads.max(1)),
        period_ns => period_ns,
    };
    let due = schedule.length_ns / period_ns + 1;
    usize::try_from(due.max(schedule.calls)).unwrap_or(usize::MAX)
}

/// Returns the time of the next of calls back to back: at once, except for a rest at the end of
/// each [`ROUND`].
///
/// Without the rest, real-time threads would leave nothing of a processor, and the kernel would
/// take it from those of all priorities for 50 ms of each second.
fn rested(clock: &impl Clock, start: Monotonic, now: Monotonic) -> Monotonic {
    let round = now.since(start).as_nanos() / ROUND.as_nanos();
    let begun = start + ROUND * u32::try_from(round).unwrap_or(u32::MAX);
    if now.since(begun) < BUSY {
        return now;
    }
    clock.sleep_until(begun + ROUND);
    clock.now()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Calls back to back fill the first part of each round. omniORB's client does the same.
const ROUND: Duration = Duration::from_millis(100);
const BUSY: Duration = Duration::from_millis(85);
/// Less than the time of any call.
const LEAST_CALL_NS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    /// A clock that only calls and sleeps move.
    struct VirtualClock(Cell<u64>);

    impl Clock for VirtualClock {
        fn now(&self) -> Monotonic {
            Monotonic::from_nanos(self.0.get())
        }

        fn sleep_until(&self, instant: Monotonic) {
            self.0.set(self.0.get().max(instant.as_nanos()));
        }
    }

    /// The times of calls of these lengths, one after the other.
    fn calls(start: CallSchedule, lengths: &[u64]) -> Vec<u64> {
        let clock = VirtualClock(Cell::new(0));
        let mut lengths = lengths.iter();
        make(&clock, &start, start.low_period_ns, 1, || {
            let length = lengths.next().expect("no more calls");
            clock.0.set(clock.0.get() + length);
            Ok::<_, Infallible>(())
        })
        .unwrap()
    }

    fn start(low_period_ns: u64, length_ns: u64, calls: u64) -> CallSchedule {
        CallSchedule {
            start_ns: 1_000,
            length_ns,
            high_period_ns: 1,
            low_period_ns,
            calls,
        }
    }

    #[test]
    fn a_call_that_was_held_up_is_charged_from_when_it_was_due() {
        assert_eq!(calls(start(10, 30, 0), &[15, 2, 2]), [15, 15, 7, 2, 2, 2]);
    }

    #[test]
    fn calls_that_are_due_are_made_however_late() {
        assert_eq!(calls(start(10, 20, 0), &[90, 3]), [90, 90, 83, 3]);
    }

    #[test]
    fn a_number_of_calls_counts_more_than_the_length() {
        assert_eq!(calls(start(10, 1_000, 2), &[1, 1]), [1, 1, 1, 1]);
        assert_eq!(calls(start(10, 5, 2), &[1, 1]), [1, 1, 1, 1]);
    }

    #[test]
    fn calls_back_to_back_begin_when_the_one_before_is_answered() {
        assert_eq!(calls(start(0, 10, 0), &[4, 5, 6]), [4, 4, 5, 5, 6, 6]);
    }

    #[test]
    fn calls_back_to_back_rest_for_a_while_of_each_round() {
        let ms = 1_000_000;
        let clock = VirtualClock(Cell::new(0));
        let mut begun = Vec::new();
        let schedule = start(0, 220 * ms, 0);
        make(&clock, &schedule, 0, 1, || {
            begun.push(clock.0.get() / ms);
            clock.0.set(clock.0.get() + 45 * ms);
            Ok::<_, Infallible>(())
        })
        .unwrap();
        assert_eq!(begun, [0, 45, 100, 145, 200]);
    }

    #[test]
    fn a_failing_call_ends_them() {
        let clock = VirtualClock(Cell::new(0));
        let schedule = start(1, 10, 0);
        assert_eq!(make(&clock, &schedule, 1, 1, || Err("gone")), Err("gone"));
    }
}
