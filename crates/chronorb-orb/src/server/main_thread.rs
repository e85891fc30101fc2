//! Requests of lanes on the main thread.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::{Arena, Frame};

use super::load::FRAME_CAPACITY;
use super::queued::QueuedRequest;
use super::worker::{self, Worker};
use crate::core::Core;
use crate::room::own_scheduling;
use crate::rtcorba::{OwnPriority, Priority};
use crate::upcall::{Parks, Role, Thread};

/// Queues a request of a lane for the main thread. It is dropped where the ORB is ending.
pub(super) fn post(core: &Arc<Core>, priority: Option<Priority>, request: QueuedRequest) {
    let taken = MainThreadRequest::new(core, &request);
    core.main.post(priority, Box::new(|| taken.serve(request)));
}

/// A lane's request on the main thread, counted while it waits or is served.
struct MainThreadRequest {
    core: Arc<Core>,
    octets: usize,
}

impl MainThreadRequest {
    fn new(core: &Arc<Core>, request: &QueuedRequest) -> Self {
        let octets = request.message.len().max(FRAME_CAPACITY);
        core.main.add_octets(octets);
        Self {
            core: core.clone(),
            octets,
        }
    }

    /// Serves the request on the main thread.
    fn serve(self, request: QueuedRequest) {
        let (reply, arena) = SPARE
            .take()
            .unwrap_or_else(|| worker::reply_parts(&self.core, own_scheduling()));
        let thread = Thread {
            own: OwnPriority::of_caller(),
            // A POA that holds requests again must not block other requests.
            patience: Duration::ZERO,
            parks: Parks::No,
            role: Role::Main,
        };
        let mut worker = Worker::with_parts(&self.core, request.lane(), thread, reply, arena);
        worker.complete(request, None);
        let (reply, mut arena) = worker.into_reply_parts();
        // The next request may be far off.
        arena.reset();
        SPARE.set(Some((reply, arena)));
    }
}

impl Drop for MainThreadRequest {
    fn drop(&mut self) {
        self.core.main.remove_octets(self.octets);
    }
}

thread_local! {
    /// The frame and the arena of the last request, for the next one.
    static SPARE: Cell<Option<(Frame, Arena)>> = const { Cell::new(None) };
}
