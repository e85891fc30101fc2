//! The receiver at the end of a wire's direction.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use chronorb_rt::{PiMutex, Wake};

use super::pipe::{Pipe, PipeQueue};
use crate::class::{ClassId, Rule};
use crate::driver::DriverError;
use crate::path::{Frame, PathError, ReceiveCounts, Receiver};

/// The incoming frames of a class.
#[derive(Debug)]
pub(in crate::driver) struct PipeReceiver {
    pipe: Arc<PiMutex<Pipe>>,
    class: ClassId,
    /// The length of the queue in frames.
    queue: usize,
    event: Arc<Wake>,
    counts: ReceiveCounts,
    /// Keeps the delivering side alive.
    _alive: Arc<dyn fmt::Debug + Send + Sync>,
}

impl PipeReceiver {
    /// Opens a class at the end of the direction, and keeps `alive` with it.
    pub(in crate::driver) fn open(
        pipe: &Arc<PiMutex<Pipe>>,
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
        let mut open = pipe.lock();
        open.table.open(class, rules)?;
        open.queues[class.index()] = Some(PipeQueue::new(queue, event.clone()));
        // One more buffer is held by the receiver itself.
        open.add_buffers(queue + 1);
        drop(open);
        Ok(Self {
            pipe: pipe.clone(),
            class,
            queue,
            event,
            counts: ReceiveCounts::default(),
            _alive: alive,
        })
    }
}

impl Receiver for PipeReceiver {
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<bool, PathError> {
        let Some(buffer) = self.pipe.lock().take(self.class) else {
            return Ok(false);
        };
        let octets = buffer.octets();
        self.counts.frames += 1;
        self.counts.octets += octets.len() as u64;
        // No lock is held here, so `take` may transmit.
        take(Frame {
            octets,
            is_checked: false,
        });
        self.pipe.lock().free.push(buffer);
        Ok(true)
    }

    fn waiting(&self) -> usize {
        let pipe = self.pipe.lock();
        let queue = pipe.queues[self.class.index()].as_ref();
        queue.map_or(0, |queue| queue.frames.len())
    }

    fn counts(&self) -> ReceiveCounts {
        let pipe = self.pipe.lock();
        let queue = pipe.queues[self.class.index()].as_ref();
        ReceiveCounts {
            dropped: queue.map_or(0, |queue| queue.dropped),
            failed: 0,
            ..self.counts
        }
    }
}

impl AsFd for PipeReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for PipeReceiver {
    fn drop(&mut self) {
        let mut pipe = self.pipe.lock();
        pipe.table.close(self.class);
        if let Some(queue) = pipe.queues[self.class.index()].take() {
            pipe.free.extend(queue.frames);
        }
        pipe.take_buffers(self.queue + 1);
    }
}
