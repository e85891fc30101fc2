//! The scheduling classes of Linux, and how a thread comes into one.

use std::time::Duration;

use chronorb_rt::{Reservation, Scheduling, list, reserve_for, set_current, thread_id};
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// How the threads of client and server are scheduled, all alike.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// `SCHED_OTHER`: time sharing. Priorities are those of CORBA alone.
    Other,
    /// `SCHED_FIFO`, at the native priorities that are the CORBA priorities.
    Fifo,
    /// `SCHED_RR`, at the same priorities.
    Rr,
    /// `SCHED_DEADLINE`: each thread has a reservation, that of an urgent one with an earlier deadline.
    Deadline,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Other, Self::Fifo, Self::Rr, Self::Deadline];

    /// The name that Linux has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "SCHED_OTHER",
            Self::Fifo => "SCHED_FIFO",
            Self::Rr => "SCHED_RR",
            Self::Deadline => "SCHED_DEADLINE",
        }
    }

    /// The value of `-ORBSchedulingPolicy`. An ORB gives nobody a reservation: its threads get that afterwards.
    pub(super) const fn option(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Fifo | Self::Deadline => "fifo",
            Self::Rr => "rr",
        }
    }

    /// Why this process cannot use it; nothing where it can.
    pub(super) fn refusal(self) -> Option<String> {
        let trial = std::thread::spawn(move || match self {
            Self::Other => None,
            Self::Fifo => set_current(Scheduling::fifo(HIGH))
                .err()
                .map(|error| error.to_string()),
            Self::Rr => set_current(Scheduling::rr(HIGH))
                .err()
                .map(|error| error.to_string()),
            Self::Deadline => reserve_for(thread_id(), URGENT)
                .err()
                .map(|error| error.to_string()),
        });
        trial
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Gives the calling thread what a priority cannot: a reservation, where that is the class.
    pub(super) fn finish_this_thread(self, priority: u8) -> Result<(), LabError> {
        match self {
            Self::Deadline => reserve_for(thread_id(), reservation(priority))
                .map_err(LabError::work("reserving processor time for a client")),
            _ => Ok(()),
        }
    }

    /// The same for the threads that the ORB has made for its lanes. Those that only wait for connections and signals
    /// stay as they are.
    pub(super) fn finish_lanes(self, priorities: &[u8]) -> Result<(), LabError> {
        if self != Self::Deadline {
            return Ok(());
        }
        for thread in list() {
            let mut priorities = priorities.iter();
            let of_lane = |priority: &&u8| thread.scheduling == Scheduling::fifo(**priority);
            if let Some(priority) = priorities.find(of_lane) {
                reserve_for(thread.tid, reservation(*priority))
                    .map_err(LabError::work("reserving processor time for a lane"))?;
            }
        }
        Ok(())
    }
}

const fn reservation(priority: u8) -> Reservation {
    match priority >= HIGH {
        true => URGENT,
        false => PATIENT,
    }
}

/// What the threads of the high class have under `SCHED_DEADLINE`: a quarter of a processor each, in periods of its calls.
///
/// A deadline before the end of the period would let a thread rest until the next one whenever it woke between both.
pub(super) const URGENT: Reservation = Reservation {
    runtime: Duration::from_micros(500),
    deadline: Duration::from_millis(2),
    period: Duration::from_millis(2),
};
/// And those of the low class: a twentieth.
pub(super) const PATIENT: Reservation = Reservation {
    runtime: Duration::from_micros(200),
    deadline: Duration::from_millis(4),
    period: Duration::from_millis(4),
};
/// The priority of the high class.
pub(super) const HIGH: u8 = 60;
/// The priority of the low class.
pub(super) const LOW: u8 = 20;
