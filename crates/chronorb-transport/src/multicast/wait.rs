//! The time-out of a socket's receives, which is set only when it changes.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb_rt::Deadline;
use rustix::net::sockopt;

use crate::{IoError, time_out_fits};

/// In nanoseconds, 0 before the first is set.
#[derive(Debug, Default)]
pub(super) struct ReceiveTimeOut(AtomicU64);

impl ReceiveTimeOut {
    /// Lets a wait end at the deadline.
    pub(super) fn arm(&self, socket: &OwnedFd, deadline: Deadline) -> Result<(), IoError> {
        let remaining = deadline.remaining().ok_or(IoError::TimedOut)?;
        self.limit(socket, remaining)
    }

    /// Lets a wait end after this time, or a little later.
    pub(super) fn limit(&self, socket: &OwnedFd, limit: Duration) -> Result<(), IoError> {
        let limit = limit.max(SHORTEST);
        if !time_out_fits(Duration::from_nanos(self.0.load(Ordering::Relaxed)), limit) {
            let generous = limit + limit / 16;
            let which = sockopt::Timeout::Recv;
            sockopt::set_socket_timeout(socket, which, Some(generous))
                .map_err(IoError::from_errno)?;
            let nanoseconds = u64::try_from(generous.as_nanos()).unwrap_or(u64::MAX);
            self.0.store(nanoseconds, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// A socket time-out of 0 would mean for ever (socket(7)).
const SHORTEST: Duration = Duration::from_micros(1);
