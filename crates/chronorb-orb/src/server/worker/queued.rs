//! Service of a request that another thread has read.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use chronorb_cdr::Frame;
use chronorb_giop::SystemException;

use super::Worker;
use crate::server::at::At;
use crate::server::dispatch::{DISCARDED, MessageOutcome};
use crate::server::end::End;
use crate::server::queued::QueuedRequest;

impl QueuedRequest {
    /// Serves the request. Returns the worker's own frame for requests.
    pub(in crate::server) fn serve_by(self, worker: &mut Worker) -> Frame {
        self.conclude(worker, None)
    }

    /// Tells the client that the request is not served because the ORB has no room for it.
    pub(super) fn refuse_by(self, worker: &mut Worker) -> Frame {
        self.conclude(worker, Some(DISCARDED))
    }

    /// Serves the request, or tells the client why it is not served.
    fn conclude(mut self, worker: &mut Worker, refusal: Option<SystemException>) -> Frame {
        let message = self.take_message();
        let (lane, key, header) = self.source();
        let own = worker.exchange_request(message);
        let Some(connection) = lane.connections.get(key) else {
            return worker.exchange_request(own);
        };
        let at = At::new(&lane, &connection, key);
        let parks = worker.begin_parked(self.was_parked());
        // As for a request that a thread has read itself, a panic of application code ends the
        // connection: the client must not wait for an answer.
        let handled = catch_unwind(AssertUnwindSafe(|| match refusal {
            None => worker.handle(at, header),
            Some(exception) => worker.refuse(at, header, exception),
        }))
        .unwrap_or(Err(End::Lost));
        worker.end_parked(parks);
        let outcome = match handled {
            Ok(MessageOutcome::ForMainThread(priority)) => {
                self.set_message(worker.exchange_request(Frame::new(0, 0)));
                let core = worker.core().clone();
                core.main.take_over(&core, priority, self);
                Ok(())
            }
            Ok(MessageOutcome::Parked) => {
                self.set_message(worker.exchange_request(Frame::new(0, 0)));
                self.park(worker.take_wait());
                Ok(())
            }
            handled => {
                // The work must end before `conclude` checks whether the connection is over.
                drop(self);
                handled.map(drop)
            }
        };
        at.conclude(outcome);
        worker.exchange_request(own)
    }
}
