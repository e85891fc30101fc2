//! The calls of one thread, and what each took.

use std::time::Duration;

use chronorb_rt::Monotonic;

use super::order::Start;
use crate::schedule::Clock;

/// When a thread calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    start: Monotonic,
    length: Duration,
    /// Zero for calls back to back.
    period: Duration,
    /// Zero for as many as are due within the length.
    calls: u64,
}

impl Times {
    pub(super) const fn of_high(start: Start) -> Self {
        Self::new(start, start.high_period_ns)
    }

    pub(super) const fn of_low(start: Start) -> Self {
        Self::new(start, start.low_period_ns)
    }

    const fn new(start: Start, period_ns: u64) -> Self {
        Self {
            start: Monotonic::from_nanos(start.start_ns),
            length: Duration::from_nanos(start.length_ns),
            period: Duration::from_nanos(period_ns),
            calls: start.calls,
        }
    }

    /// How many calls one of so many threads that do the same will make, about: all of them together make no more than
    /// one in [`BRISK`].
    fn expected(&self, threads: u32) -> usize {
        let each = match self.period {
            Duration::ZERO => BRISK * threads.max(1),
            period => period,
        };
        let due = self.length.as_nanos() / each.as_nanos() + 1;
        usize::try_from(due.max(self.calls.into())).unwrap_or(usize::MAX)
    }
}

/// Makes the calls of one of so many threads, and returns two times of each in ns: that from when it was due to its
/// answer, and that from when it was made.
///
/// The times when calls are due are fixed beforehand: one that is late because the one before it was slow is made at
/// once, and charged for the wait.
pub(super) fn make<E>(
    clock: &impl Clock,
    times: Times,
    threads: u32,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<Vec<u64>, E> {
    let mut taken = Vec::with_capacity(2 * times.expected(threads));
    let mut due = times.start;
    for made in 0.. {
        let is_over = match times.calls {
            0 => due.since(times.start) >= times.length,
            calls => made == calls,
        };
        if is_over {
            break;
        }
        if made == 0 || !times.period.is_zero() {
            clock.sleep_until(due);
        }
        let called = clock.now();
        call()?;
        let answered = clock.now();
        taken.extend([due, called].map(|from| nanos(answered.since(from))));
        due = match times.period {
            Duration::ZERO => rested(clock, times.start, answered),
            period => due + period,
        };
    }
    Ok(taken)
}

/// When a thread whose calls are back to back makes its next one: at once, but for a rest at the end of each
/// [`ROUND`]. Otherwise real-time threads would leave nothing of a processor, and the kernel would take it from those of
/// all priorities for 50 ms of each second.
fn rested(clock: &impl Clock, start: Monotonic, now: Monotonic) -> Monotonic {
    let round = now.since(start).as_nanos() / ROUND.as_nanos();
    let begun = start + ROUND * u32::try_from(round).unwrap_or(u32::MAX);
    match now.since(begun) < BUSY {
        true => now,
        false => {
            clock.sleep_until(begun + ROUND);
            clock.now()
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Calls back to back are made for the first part of this, over and over. omniORB's client does the same.
const ROUND: Duration = Duration::from_millis(100);
const BUSY: Duration = Duration::from_millis(85);
/// No server answers more often than this.
const BRISK: Duration = Duration::from_micros(10);

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

    /// Calls that take so long, one after the other.
    fn calls(start: Start, lengths: &[u64]) -> Vec<u64> {
        let clock = VirtualClock(Cell::new(0));
        let mut lengths = lengths.iter();
        make(&clock, Times::of_low(start), 1, || {
            let length = lengths.next().expect("no more calls");
            clock.0.set(clock.0.get() + length);
            Ok::<_, Infallible>(())
        })
        .unwrap()
    }

    fn start(low_period_ns: u64, length_ns: u64, calls: u64) -> Start {
        Start {
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
        let times = Times::of_low(start(0, 220 * ms, 0));
        make(&clock, times, 1, || {
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
        let times = Times::of_high(start(1, 10, 0));
        assert_eq!(make(&clock, times, 1, || Err("gone")), Err("gone"));
    }
}
