//! A shared connection that a thread of its own reads from, and hands all replies over.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::time::Duration;

use chronorb_rt::Deadline;

use super::multiplexed::Multiplexed;
use crate::scope;

/// Reads until the connection ends.
pub(super) fn read_on(shared: &Multiplexed) {
    let mut inbox = shared.inbox.lock();
    let mut frame = scope::frame();
    loop {
        let read = shared.read(&mut inbox, &mut frame, Deadline::after(LOOK_AGAIN));
        let handed = read.and_then(|reply| match reply {
            Some((id, header)) => shared.hand_over(id, header, &mut frame),
            None => Ok(()),
        });
        if let Err(failure) = handed {
            return shared.end(failure);
        }
    }
}

/// The wait for a reply has no end but that of the connection.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
