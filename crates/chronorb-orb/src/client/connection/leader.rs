//! A shared connection that a leader among the waiting threads reads from: it hands the replies
//! of others over, and once it has its own, the most urgent thread that waits leads on.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::Frame;
use chronorb_giop::MessageHeader;
use chronorb_rt::Deadline;

use super::Failure;
use super::multiplexed::Multiplexed;

/// Reads for all, until the reply to the leader's own request is there; `None` where its time is over before.
pub(super) fn lead(
    shared: &Multiplexed,
    request_id: u32,
    frame: &mut Frame,
    deadline: Deadline,
) -> Option<Result<MessageHeader, Failure>> {
    loop {
        // Nobody else reads meanwhile, so that the lock is free.
        let read = shared.read(&mut shared.inbox.lock(), frame, deadline);
        let handed = match read {
            Ok(Some((id, header))) if id == request_id => {
                shared.step_down(request_id);
                return Some(Ok(header));
            }
            Ok(Some((id, header))) => shared.hand_over(id, header, frame),
            Ok(None) => {
                shared.stop_reading();
                return None;
            }
            Err(failure) => Err(failure),
        };
        if let Err(failure) = handed {
            shared.end(failure);
            shared.forget(request_id);
            return Some(Err(failure));
        }
    }
}
