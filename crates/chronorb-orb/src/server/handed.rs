//! A request that one thread has read and another one serves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::Frame;
use chronorb_giop::MessageHeader;
use chronorb_rt::Key;

use super::connection::{AtWork, ServerConnection};
use super::dispatch::Handled;
use super::intake::End;
use super::lane::Lane;
use super::threads;
use super::worker::{self, Worker};
use crate::core::Core;

/// A whole message on its way to the thread that serves it. It keeps its lane from ending, and its
/// connection from being over.
pub(super) struct Handed {
    core: Arc<Core>,
    lane: Arc<Lane>,
    connection: Key,
    header: MessageHeader,
    message: Frame,
}

impl Handed {
    pub(super) fn new(
        core: &Arc<Core>,
        lane: &Arc<Lane>,
        connection: Key,
        at_work: AtWork<'_>,
        header: MessageHeader,
        message: Frame,
    ) -> Self {
        at_work.goes_on();
        lane.running.fetch_add(1, Ordering::AcqRel);
        Self {
            core: core.clone(),
            lane: lane.clone(),
            connection,
            header,
            message,
        }
    }

    /// The lane that it came in by, and is served for.
    pub(super) fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }

    /// How much memory it takes.
    pub(super) fn octets(&self) -> usize {
        self.message.len()
    }

    /// Serves it. The worker's own frame for requests comes back in exchange.
    pub(super) fn serve_by(self, worker: &mut Worker) -> Frame {
        self.conclude_with(worker, Worker::handle)
    }

    /// Tells the client that it is not served: the ORB has no room for it.
    pub(super) fn refuse_by(self, worker: &mut Worker) -> Frame {
        self.conclude_with(worker, |worker, connection, key, header| {
            worker.refuse(connection, key, header)
        })
    }

    fn conclude_with(
        mut self,
        worker: &mut Worker,
        handle: impl FnOnce(&mut Worker, &ServerConnection, Key, MessageHeader) -> Result<Handled, End>,
    ) -> Frame {
        let message = std::mem::replace(&mut self.message, Frame::new(0, 0));
        let (lane, key, header) = (self.lane.clone(), self.connection, self.header);
        let own = worker.exchange_request(message);
        let Some(connection) = lane.connections.get(key) else {
            return worker.exchange_request(own);
        };
        // As for a request that a thread has read itself, a panic of what the application left is
        // the end of the connection: the client must not wait for an answer.
        let handled = catch_unwind(AssertUnwindSafe(|| {
            handle(worker, &connection, key, header)
        }))
        .unwrap_or(Err(End::Gone));
        let outcome = match handled {
            Ok(Handled::ForMainThread(priority)) => {
                let message = worker.exchange_request(Frame::new(0, 0));
                self.message = message;
                let core = self.core.clone();
                core.main.take_over(&core, priority, self);
                Ok(())
            }
            handled => {
                // The work ends before it is asked whether the connection is over.
                drop(self);
                handled.map(drop)
            }
        };
        worker::conclude(&lane, &connection, key, outcome);
        worker.exchange_request(own)
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if let Some(connection) = self.lane.connections.get(self.connection) {
            drop(connection.resume_work());
        }
        threads::leave(&self.core, &self.lane);
    }
}
