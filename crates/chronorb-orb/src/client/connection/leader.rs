//! A shared connection that a leader among the waiting threads reads from: it hands the replies
//! of others over, and once it has its own, the most urgent thread that waits leads on.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::Frame;
use chronorb_giop::{CompletionStatus, MessageHeader};
use chronorb_rt::Deadline;

use super::multiplexed::Multiplexed;
use super::{Failure, timeout};

/// Reads for all, until the reply to the leader's own request is there, or its time is over.
pub(super) fn lead(
    shared: &Multiplexed,
    request_id: u32,
    frame: &mut Frame,
    deadline: Deadline,
) -> Result<MessageHeader, Failure> {
    loop {
        // Nobody else reads meanwhile, so that the lock is free.
        let read = shared.read(&mut shared.inbox.lock(), frame, deadline);
        match read {
            Ok(Some((id, header))) if id == request_id => {
                shared.step_down(request_id);
                return Ok(header);
            }
            Ok(Some((id, header))) => shared.hand_over(id, header, frame),
            Ok(None) => {
                shared.step_down_without_reply(request_id, frame);
                return Err(timeout(CompletionStatus::Maybe).into());
            }
            Err(failure) => {
                shared.end(failure);
                shared.forget(request_id);
                return Err(failure);
            }
        }
    }
}
