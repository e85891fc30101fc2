//! The time of the protocol.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::time::Duration;

use chronorb_rt::Monotonic;
use smoltcp::time::{Duration as TcpDuration, Instant};

/// How much faster the protocol's clock runs.
///
/// smoltcp's constants are those of wide-area networks: 1 s before a segment is sent again at the
/// earliest, 10 s in TIME-WAIT. On the networks that an interface is attached to they are eighths
/// of that, 125 ms and 1.25 s, and round trips are measured in eighths of milliseconds.
const RATE: u64 = 8;

/// The protocol's time at a point in time.
pub(super) fn protocol_time(at: Monotonic) -> Instant {
    Instant::from_micros((at.as_nanos() / (1000 / RATE)) as i64)
}

/// The point in time of the protocol's time; not before it.
pub(super) fn real_time(at: Instant) -> Monotonic {
    Monotonic::from_nanos(at.total_micros().max(0) as u64 * (1000 / RATE))
}

/// So much time by the protocol's clock.
pub(super) fn protocol_duration(time: Duration) -> TcpDuration {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    TcpDuration::from_micros(micros.saturating_mul(RATE))
}
