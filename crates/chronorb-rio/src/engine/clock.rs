//! The time of the protocol.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::time::Duration;

use chronorb_rt::Monotonic;
use smoltcp::time::{Duration as TcpDuration, Instant};

/// The factor by which the protocol's clock runs faster than real time.
///
/// smoltcp's constants suit wide-area networks: at least 1 s before a retransmission, and 10 s in
/// TIME-WAIT. On the networks of an interface they become eighths of that, 125 ms and 1.25 s. Round
/// trips are measured in eighths of milliseconds.
const RATE: u64 = 8;

/// Converts a point in time to the protocol's time.
pub(super) fn protocol_time(at: Monotonic) -> Instant {
    Instant::from_micros((at.as_nanos() / (1000 / RATE)) as i64)
}

/// Converts the protocol's time to a point in time, rounded up.
pub(super) fn real_time(at: Instant) -> Monotonic {
    Monotonic::from_nanos(at.total_micros().max(0) as u64 * (1000 / RATE))
}

/// Converts a duration to the protocol's clock.
pub(super) fn protocol_duration(time: Duration) -> TcpDuration {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    TcpDuration::from_micros(micros.saturating_mul(RATE))
}
