//! The scheduling classes of Linux, and how a thread gets into one.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use chronorb_rt::{Policy, Reservation, Scheduling, list, reserve_for, set_current, thread_id};
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// The scheduling class of all threads of client and server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulingClass {
    /// `SCHED_OTHER`: time sharing. Priorities exist for CORBA only.
    Other,
    /// `SCHED_FIFO`, with native priorities equal to the CORBA priorities.
    Fifo,
    /// `SCHED_RR`, with the same priorities.
    Rr,
    /// `SCHED_DEADLINE`: each thread has a reservation. An urgent thread has an earlier deadline.
    Deadline,
}

impl SchedulingClass {
    /// All scheduling classes.
    pub const ALL: [Self; 4] = [Self::Other, Self::Fifo, Self::Rr, Self::Deadline];

    /// Returns the name of the class in Linux.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "SCHED_OTHER",
            Self::Fifo => "SCHED_FIFO",
            Self::Rr => "SCHED_RR",
            Self::Deadline => "SCHED_DEADLINE",
        }
    }

    /// Returns the value of `-ORBSchedulingPolicy`. The ORB makes no reservations: its threads get
    /// them after they have started.
    pub(super) const fn option(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Fifo | Self::Deadline => "fifo",
            Self::Rr => "rr",
        }
    }

    /// Returns the reason why this process cannot use the class, or `None` if it can.
    pub(super) fn refusal(self) -> Option<String> {
        let set = |scheduling| set_current(scheduling).map_err(|error| error.to_string());
        let trial = thread::spawn(move || match self {
            Self::Other => Ok(()),
            Self::Fifo => set(Scheduling::fifo(HIGH)),
            Self::Rr => set(Scheduling::rr(HIGH)),
            Self::Deadline => reserve_for(thread_id(), URGENT).map_err(|error| error.to_string()),
        });
        let outcome = trial.join().unwrap_or_else(|panic| resume_unwind(panic));
        outcome.err()
    }

    /// Reserves processor time for a thread of this process if the class has reservations.
    pub(super) fn reserve(self, tid: u32, priority: u8) -> Result<(), LabError> {
        let reservation = if priority >= HIGH { URGENT } else { PATIENT };
        match self {
            Self::Deadline => {
                reserve_for(tid, reservation).map_err(LabError::work("reserving processor time"))
            }
            _ => Ok(()),
        }
    }

    /// Reserves processor time for the threads that the ORB has started for its lanes. Acceptors
    /// and the thread for signals keep their scheduling.
    pub(super) fn reserve_for_lanes(self, lanes: &[(u8, u32)]) -> Result<(), LabError> {
        let is_lane = |priority| lanes.iter().any(|(lane, _)| *lane == priority);
        let threads = list().into_iter().filter(|thread| {
            let Scheduling { policy, priority } = thread.scheduling;
            policy == Policy::Fifo && is_lane(priority)
        });
        for thread in threads {
            self.reserve(thread.tid, thread.scheduling.priority)?;
        }
        Ok(())
    }
}

/// The reservation of an urgent thread under `SCHED_DEADLINE`: a quarter of a CPU, in periods of
/// its calls.
///
/// With a deadline before the end of the period, a thread that wakes between both would rest until
/// the next period.
pub(super) const URGENT: Reservation = Reservation {
    runtime: Duration::from_micros(500),
    deadline: Duration::from_millis(2),
    period: Duration::from_millis(2),
};
/// The reservation of a thread of low priority: a twentieth of a CPU.
pub(super) const PATIENT: Reservation = Reservation {
    runtime: Duration::from_micros(200),
    deadline: Duration::from_millis(4),
    period: Duration::from_millis(4),
};
/// The priority of urgent calls.
pub(super) const HIGH: u8 = 60;
/// The priority of all other calls.
pub(super) const LOW: u8 = 20;
