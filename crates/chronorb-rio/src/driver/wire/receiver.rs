//! Who receives at the end of a way.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use chronorb_rt::{PiMutex, Wake};

use super::way::{Queue, Way};
use crate::class::{ClassId, Rule};
use crate::driver::DriverError;
use crate::path::{Frame, PathError, Received, Receiver};

/// The frames of a class that come by a way.
#[derive(Debug)]
pub(in crate::driver) struct WayReceiver {
    way: Arc<PiMutex<Way>>,
    class: ClassId,
    /// Frames.
    queue: usize,
    event: Arc<Wake>,
    counts: Received,
    /// What the way needs to go on.
    _alive: Arc<dyn fmt::Debug + Send + Sync>,
}

impl WayReceiver {
    /// Opens a class at the end of the way, and lets that live as long.
    pub(in crate::driver) fn open(
        way: &Arc<PiMutex<Way>>,
        class: ClassId,
        rules: &[Rule],
        queue: usize,
        alive: Arc<dyn fmt::Debug + Send + Sync>,
    ) -> Result<Self, DriverError> {
        let event = Wake::new().map_err(|source| DriverError::Failed {
            what: "making an event descriptor",
            source,
        })?;
        let event = Arc::new(event);
        let mut open = way.lock();
        open.table.open(class, rules)?;
        open.queues[class.index()] = Some(Queue::new(queue, event.clone()));
        // One more is with who receives.
        open.add_buffers(queue + 1);
        drop(open);
        Ok(Self {
            way: way.clone(),
            class,
            queue,
            event,
            counts: Received::default(),
            _alive: alive,
        })
    }
}

impl Receiver for WayReceiver {
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<bool, PathError> {
        let Some(buffer) = self.way.lock().take(self.class) else {
            return Ok(false);
        };
        let octets = buffer.octets();
        self.counts.frames += 1;
        self.counts.octets += octets.len() as u64;
        // Nothing is locked here, so that who takes may transmit.
        take(Frame {
            octets,
            is_checked: false,
        });
        self.way.lock().free.push(buffer);
        Ok(true)
    }

    fn waiting(&self) -> usize {
        let way = self.way.lock();
        let queue = way.queues[self.class.index()].as_ref();
        queue.map_or(0, |queue| queue.frames.len())
    }

    fn counts(&self) -> Received {
        let way = self.way.lock();
        let queue = way.queues[self.class.index()].as_ref();
        Received {
            dropped: queue.map_or(0, |queue| queue.dropped),
            failed: 0,
            ..self.counts
        }
    }
}

impl AsFd for WayReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for WayReceiver {
    fn drop(&mut self) {
        let mut way = self.way.lock();
        way.table.close(self.class);
        if let Some(queue) = way.queues[self.class.index()].take() {
            way.free.extend(queue.frames);
        }
        way.take_buffers(self.queue + 1);
    }
}
