//! What parent and children say to each other.

use chronorb_probe::ActivityTimes;
use serde::{Deserialize, Serialize};

use super::super::counts::Counts;
use crate::idl::whitebox;

/// What a server is to do.
#[derive(Debug, Deserialize, Serialize)]
pub(in super::super) struct ServerOrder {
    /// The name of the architecture.
    pub(super) architecture: String,
    pub(super) pass: Pass,
}

/// What a client is to do.
#[derive(Debug, Deserialize, Serialize)]
pub(in super::super) struct ClientOrder {
    pub(super) server: ServerOrder,
    /// The server's objects, as `IOR:…`.
    pub(super) objects: Objects,
    /// How many calls each thread makes.
    pub(super) calls: u32,
}

/// How it is run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Pass {
    /// Threads count for themselves.
    Counted,
    /// Threads look at their clocks whenever they turn to something else.
    Timed,
    /// System calls are traced, and nothing more is done than must be.
    Traced,
}

/// From a server, when it serves: its objects.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Objects {
    pub(super) high: String,
    pub(super) low: String,
}

/// From a client, when all its calls are made.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Done {
    /// Zeros where this was not counted.
    pub(super) client: Found,
    pub(super) server: Found,
}

/// What was found of one side.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Found {
    pub(super) counts: Counts,
    pub(super) times: Times,
}

/// What processor time was spent on, as [`ActivityTimes`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(in super::super) struct Times {
    pub(super) nanoseconds: [u64; 5],
    pub(super) intervals: [u64; 5],
}

impl Times {
    pub(super) fn since(self, before: Self) -> Self {
        (ActivityTimes::from(self) - ActivityTimes::from(before)).into()
    }

    /// As the server said it.
    pub(super) fn of_idl(times: &whitebox::Times) -> Self {
        Self {
            nanoseconds: times.nanoseconds,
            intervals: times.intervals,
        }
    }
}

impl From<ActivityTimes> for Times {
    fn from(times: ActivityTimes) -> Self {
        Self {
            nanoseconds: times.nanoseconds,
            intervals: times.intervals,
        }
    }
}

impl From<Times> for ActivityTimes {
    fn from(times: Times) -> Self {
        Self {
            nanoseconds: times.nanoseconds,
            intervals: times.intervals,
        }
    }
}

impl From<Times> for whitebox::Times {
    fn from(times: Times) -> Self {
        Self {
            nanoseconds: times.nanoseconds,
            intervals: times.intervals,
        }
    }
}
