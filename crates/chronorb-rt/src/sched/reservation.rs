//! Processor time that is reserved for a thread.

use core::fmt;
use core::time::Duration;

use rustix::io::Errno;

use crate::sys;

/// Processor time that is reserved for a thread in each period, with a deadline (`SCHED_DEADLINE`),
/// sched(7).
///
/// The thread whose deadline is next runs before all other threads with a reservation, and before
/// every thread of another policy. A thread that has used up its time sleeps until its next period.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Reservation {
    /// The runtime in each period; 1024 ns or more.
    pub runtime: Duration,
    /// The time from the start of a period within which it gets the runtime.
    pub deadline: Duration,
    /// The distance between the starts of periods; not less than the deadline. The system bounds it
    /// (`sched_deadline_period_min_us` and `_max_us`), usually to 100 µs and 4 s.
    pub period: Duration,
}

impl Reservation {
    /// Whether a system might grant it.
    #[must_use]
    pub fn is_valid(self) -> bool {
        LEAST_RUNTIME <= self.runtime
            && self.runtime <= self.deadline
            && self.deadline <= self.period
    }

    /// The share of one processor that it takes, 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        self.runtime.as_secs_f64() / self.period.as_secs_f64()
    }
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            runtime,
            deadline,
            period,
        } = self;
        write!(f, "{runtime:?} within {deadline:?} of each {period:?}")
    }
}

/// Reserves processor time for the thread `tid` of this process, by the kernel's thread id:
/// [`thread_id`](crate::thread_id), [`Thread::tid`](crate::Thread::tid).
///
/// The system grants it only where all reservations together leave something to others, and only to
/// a thread that may run on all CPUs of its scheduling domain: a thread with a reservation is not
/// pinned. Threads that it makes start with time sharing. Setting another scheduling ends the
/// reservation. The thread's id can be given to a new thread as soon as it has ended, so that the
/// caller must know that it runs.
///
/// # Errors
/// See [`ReservationError`]; the thread is then scheduled as before.
pub fn reserve_for(tid: u32, reservation: Reservation) -> Result<(), ReservationError> {
    if !reservation.is_valid() {
        return Err(ReservationError::Invalid);
    }
    let tid = i32::try_from(tid)
        .ok()
        .filter(|&tid| tid > 0)
        .ok_or(ReservationError::NoSuchThread)?;
    sys::signal_thread(tid, 0)?;
    // A period has 4 s at most, so that nothing is cut off that would have been granted.
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    sys::set_deadline(
        tid,
        ns(reservation.runtime),
        ns(reservation.deadline),
        ns(reservation.period),
    )?;
    Ok(())
}

/// The reason why a thread does not get the requested processor time.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ReservationError {
    /// The process lacks the right, or the thread may not run on all CPUs of its scheduling domain.
    #[error(
        "not permitted to reserve processor time: it needs CAP_SYS_NICE (setcap cap_sys_nice=ep, \
         or AmbientCapabilities= of the service), and a thread that is pinned to no CPU"
    )]
    NotPermitted,
    /// The sum of all reservations would exceed the system's limit.
    #[error(
        "the system does not reserve so much processor time: ask for less, or for less often, or \
         raise kernel.sched_rt_runtime_us"
    )]
    TooMuch,
    /// The times are inconsistent, or beyond the system's bounds.
    #[error(
        "the reservation is not valid: 1024 ns <= runtime <= deadline <= period, which is within \
         kernel.sched_deadline_period_min_us and _max_us"
    )]
    Invalid,
    /// The process has no such thread, or no longer.
    #[error("the process has no such thread")]
    NoSuchThread,
    /// The system gave another error number.
    #[error("processor time could not be reserved: system error {0}")]
    Os(i32),
}

impl From<Errno> for ReservationError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::PERM => Self::NotPermitted,
            Errno::BUSY => Self::TooMuch,
            Errno::INVAL => Self::Invalid,
            Errno::SRCH => Self::NoSuchThread,
            other => Self::Os(other.raw_os_error()),
        }
    }
}

/// The least runtime that the kernel's arithmetic allows.
const LEAST_RUNTIME: Duration = Duration::from_nanos(1024);

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::{Rights, Scheduling, current, set_current, thread_id};

    const MS: Duration = Duration::from_millis(1);
    const TENTH: Reservation = Reservation {
        runtime: MS,
        deadline: Duration::from_millis(5),
        period: Duration::from_millis(10),
    };

    #[test]
    fn times_that_do_not_fit_together_are_refused() {
        let wrong = [
            Reservation {
                runtime: Duration::ZERO,
                ..TENTH
            },
            Reservation {
                runtime: 6 * MS,
                ..TENTH
            },
            Reservation {
                deadline: 11 * MS,
                ..TENTH
            },
            Reservation {
                runtime: MS,
                deadline: Duration::MAX,
                period: Duration::MAX,
            },
        ];
        for reservation in wrong {
            let refused = reserve_for(thread_id(), reservation);
            assert_eq!(refused, Err(ReservationError::Invalid), "{reservation}");
        }
        assert!((TENTH.share() - 0.1).abs() < 1e-9);
        assert_eq!(TENTH.to_string(), "1ms within 5ms of each 10ms");
    }

    #[test]
    fn a_thread_has_its_reservation_until_it_is_scheduled_otherwise() {
        thread::spawn(|| match reserve_for(thread_id(), TENTH) {
            Ok(()) => {
                assert!(current().is_err(), "it is of no policy that has a name");
                let child = thread::spawn(|| current().unwrap());
                assert_eq!(child.join().unwrap(), Scheduling::OTHER);
                set_current(Scheduling::OTHER).unwrap();
                assert_eq!(current().unwrap(), Scheduling::OTHER);
            }
            Err(error) => {
                assert_eq!(current().unwrap(), Scheduling::OTHER);
                let may = Rights::probe().max_fifo.is_some();
                assert!(!may || error != ReservationError::Invalid, "{error}");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn there_is_not_more_than_there_is() {
        let all = Reservation {
            runtime: 10 * MS,
            deadline: 10 * MS,
            period: 10 * MS,
        };
        // A thread for each CPU, and one more, cannot have all of their time.
        let threads = thread::available_parallelism().unwrap().get() + 1;
        let asked = Barrier::new(threads);
        let ask = || {
            let granted = reserve_for(thread_id(), all);
            asked.wait();
            granted
        };
        let granted = thread::scope(|scope| {
            let asking: Vec<_> = (0..threads).map(|_| scope.spawn(ask)).collect();
            let answers = asking.into_iter().map(|thread| thread.join().unwrap());
            answers.collect::<Vec<_>>()
        });
        assert!(granted.iter().any(Result::is_err), "{granted:?}");
    }

    #[test]
    fn a_thread_of_another_process_gets_nothing() {
        let parent = std::os::unix::process::parent_id();
        for tid in [parent, 0, u32::MAX] {
            let refused = reserve_for(tid, TENTH);
            assert_eq!(refused, Err(ReservationError::NoSuchThread), "{tid}");
        }
    }
}
