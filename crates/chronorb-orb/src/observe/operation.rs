//! Snapshots of measured operations.

use std::time::Duration;

#[cfg(feature = "monitor-client")]
use serde::{Deserialize, Serialize};

/// The measurements of an operation since the ORB was made: execution, response and lateness.
///
/// The **execution time** is the processor time of the thread in the servant and its skeleton, by
/// `CLOCK_THREAD_CPUTIME_ID`; reading the request and sending its reply are not in it. The
/// **response time** lasts from the whole request to the sent reply, with all waiting between. The
/// **lateness** is the time by which a response exceeds the deadline of the operation.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "monitor-client", derive(Deserialize, Serialize))]
#[non_exhaustive]
pub struct OperationSnapshot {
    /// The interface of its servants without the prefix of its identifier, as `Flight::Navigator`.
    pub interface: String,
    /// The name on the wire.
    pub operation: String,
    /// The name in the [schedule](crate::schedule), if it is in one.
    pub scheduled_as: Option<String>,
    /// Requests since it is measured, sampled or not, without those that were skipped.
    pub requests: u64,
    /// Execution times: the exclusive upper bounds of classes, and the counts.
    #[cfg_attr(feature = "monitor-client", serde(with = "super::snapshot::times"))]
    pub execution: Vec<(Duration, u64)>,
    /// The greatest execution time.
    #[cfg_attr(
        feature = "monitor-client",
        serde(rename = "worst_execution_ns", with = "nanoseconds")
    )]
    pub worst_execution: Duration,
    /// Response times, in the same form.
    #[cfg_attr(feature = "monitor-client", serde(with = "super::snapshot::times"))]
    pub response: Vec<(Duration, u64)>,
    /// The greatest response time.
    #[cfg_attr(
        feature = "monitor-client",
        serde(rename = "worst_response_ns", with = "nanoseconds")
    )]
    pub worst_response: Duration,
    /// The lateness of responses after the deadline, in the same form.
    #[cfg_attr(feature = "monitor-client", serde(with = "super::snapshot::times"))]
    pub lateness: Vec<(Duration, u64)>,
    /// The execution time that the schedule grants it.
    #[cfg_attr(
        feature = "monitor-client",
        serde(rename = "budget_ns", with = "maybe_nanoseconds")
    )]
    pub budget: Option<Duration>,
    /// The deadline of its responses in the schedule.
    #[cfg_attr(
        feature = "monitor-client",
        serde(rename = "deadline_ns", with = "maybe_nanoseconds")
    )]
    pub deadline: Option<Duration>,
    /// Measured executions above the budget.
    pub overruns: u64,
    /// Executions whose thread was lowered at the end of the budget.
    pub demoted: u64,
    /// Requests that were refused to make up for overruns.
    pub skipped: u64,
}

/// The form of a time in a monitor's report.
#[cfg(feature = "monitor-client")]
mod nanoseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.as_nanos() as u64)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}

/// The form of a time that may be missing.
#[cfg(feature = "monitor-client")]
mod maybe_nanoseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.as_nanos() as u64)
            .serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let time = Option::<u64>::deserialize(deserializer)?;
        Ok(time.map(Duration::from_nanos))
    }
}
