//! The client of the experiment: one thread of high priority, and many of low.
//!
//! The programs of omniORB send and receive the same messages.

use std::time::Duration;

use chronorb::rtcorba::{LinearMapping, Priority, PriorityMapping};
use chronorb_rt::Monotonic;
use serde::{Deserialize, Serialize};

use crate::bench::work::{VALUE, check, set_priority};
use crate::bench::{self, real_time_options, start_orb, with_callers};
use crate::error::LabError;
use crate::idl::peers::Power;
use crate::process::{self, Parent, Ready};
use crate::schedule::{Clock, SystemClock};

/// Returns the priority of `SCHED_FIFO` to which an ORB maps a CORBA priority.
pub(super) fn fifo(priority: Priority) -> u8 {
    LinearMapping.to_native(priority).unwrap_or_default()
}

/// Returns the options of the ORBs: no thread polls.
pub(super) fn orb_options(architecture: &str, lock_memory: bool) -> Vec<String> {
    let mut options = real_time_options(lock_memory);
    let wait = ["-ORBClientWait", "block", "-ORBServerWait", "block"];
    options.extend(bench::options(&wait));
    options.extend(bench::options(&["-ORBArchitecture", architecture]));
    options
}

/// The objects of a server, as `IOR:…`.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServantReferences {
    pub(super) high: String,
    pub(super) low: String,
    /// The object for bulk data, if there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bulk: Option<String>,
}

/// The argument of a client process.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct InversionClient {
    /// The value of `-ORBArchitecture`.
    pub(super) architecture: String,
    pub(super) lock_memory: bool,
    pub(super) serving: ServantReferences,
    pub(super) low_clients: u32,
}

/// The times at which a client calls.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct CallSchedule {
    /// The beginning, by the monotonic clock.
    pub(super) start_ns: u64,
    /// The time within which calls are due.
    pub(super) length_ns: u64,
    /// The period of the high thread; 0 for calls back to back, as in the next field.
    pub(super) high_period_ns: u64,
    /// The period of the low threads.
    pub(super) low_period_ns: u64,
    /// The number of calls of each thread, whatever the length; 0 for as many as are due in it.
    pub(super) calls: u64,
}

/// Two times in ns for each call: to its reply from when it was due, and from when it was made.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct CallTimes {
    pub(super) high: Vec<u64>,
    /// The times of all low threads, one thread after the other.
    pub(super) low: Vec<u64>,
}

/// Runs the client.
///
/// # Errors
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a call fails.
pub(crate) fn client_main(order: &str) -> Result<(), LabError> {
    let order: InversionClient = process::order(order)?;
    let parent = Parent::or_exit();
    let orb = start_orb(&orb_options(&order.architecture, order.lock_memory))?;
    let connect = |number| {
        let (priority, reference) = match number {
            0 => (HIGH, &order.serving.high),
            _ => (LOW, &order.serving.low),
        };
        set_priority(&orb, priority)?;
        let finding = LabError::work("finding the object");
        let object = orb.string_to_object(reference).map_err(&finding)?;
        let connected = object.validate_connection();
        connected.map_err(LabError::work("connecting to the server"))?;
        let power = Power::narrow(&object).map_err(&finding)?;
        let power = power.ok_or_else(|| LabError::work("finding the object")("it is no power"))?;
        // All threads do this at once, so the resources for a burst of calls are allocated.
        (0..WARM_UP_CALLS).try_for_each(|_| check(VALUE, power.cube(VALUE)))?;
        Ok(power)
    };
    let call = |power: &mut Power, number: usize, schedule: &CallSchedule| {
        let (period_ns, threads) = match number {
            0 => (schedule.high_period_ns, 1),
            _ => (schedule.low_period_ns, order.low_clients),
        };
        make(&SystemClock, schedule, period_ns, threads, || {
            check(VALUE, power.cube(VALUE))
        })
    };
    let threads = order.low_clients as usize + 1;
    let times = with_callers(threads, connect, call, |callers| {
        process::tell(&Ready {})?;
        let mut times = callers.run(&parent.hear()?)?;
        let low = times.split_off(1).concat();
        Ok(CallTimes {
            high: times.concat(),
            low,
        })
    })?;
    Ok(parent.conclude(&times)?)
}

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

/// The part of a process that is a client of this experiment.
pub(crate) const CLIENT: &str = "inversion-client";
/// The calls of each thread that are not measured.
const WARM_UP_CALLS: u32 = 20;
/// Real-time priorities of Linux, where they may be used.
pub(super) const HIGH: Priority = Priority::new(24_000).expect("not negative");
pub(super) const LOW: Priority = Priority::new(8_000).expect("not negative");
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
