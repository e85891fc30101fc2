//! A real driver with the faults of a wire.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_rt::PiMutex;

use super::faults::{Buffer, Disturbance};
use super::{FaultCounts, Faults};
use crate::class::{ClassId, Rule, Unknown};
use crate::driver::{Driver, DriverError, Link, longest_frame};
use crate::path::{Path, PathError, TransmitCounts, TransmitError, Transmitter};

/// A driver whose outgoing frames are subject to [`Faults`]. Incoming frames are not, since the
/// driver at the other end can be a faulty one too. Delay and rate are ignored.
#[derive(Debug)]
pub(crate) struct FaultyDriver<D> {
    inner: D,
    faults: Faults,
    seed: AtomicU64,
    counts: Arc<PiMutex<FaultCounts>>,
}

impl<D: Driver> FaultyDriver<D> {
    /// Wraps `inner`. Each opened path has its own sequence of random numbers, derived from `seed`.
    pub(crate) fn new(inner: D, faults: Faults, seed: u64) -> Self {
        Self {
            inner,
            faults,
            seed: seed.into(),
            counts: Arc::default(),
        }
    }

    /// Returns the counts over all paths.
    pub(crate) fn counts(&self) -> FaultCounts {
        *self.counts.lock()
    }
}

impl<D: Driver> Driver for FaultyDriver<D> {
    fn link(&self) -> &Link {
        self.inner.link()
    }

    fn open(&self, class: ClassId, rules: &[Rule], queue: usize) -> Result<Path, DriverError> {
        let Path {
            receiver,
            transmitter,
        } = self.inner.open(class, rules, queue)?;
        let longest = longest_frame(self.link());
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        let buffers = 2 * Disturbance::BURST;
        let transmitter = Box::new(FaultyTransmitter {
            inner: transmitter,
            longest,
            disturbance: Disturbance::new(self.faults, seed),
            free: (0..buffers).map(|_| Buffer::new(longest)).collect(),
            ready: VecDeque::with_capacity(buffers),
            all: self.counts.clone(),
            counts: TransmitCounts::default(),
        });
        Ok(Path {
            receiver,
            transmitter,
        })
    }

    fn add(&self, rule: &Rule) -> Result<(), DriverError> {
        self.inner.add(rule)
    }

    fn remove(&self, rule: &Rule) {
        self.inner.remove(rule);
    }

    fn set_unknown(&self, unknown: Unknown) -> Result<(), DriverError> {
        self.inner.set_unknown(unknown)
    }
}

#[derive(Debug)]
struct FaultyTransmitter {
    inner: Box<dyn Transmitter>,
    longest: usize,
    disturbance: Disturbance,
    free: Vec<Buffer>,
    /// The frames that `inner` is to send next.
    ready: VecDeque<Buffer>,
    all: Arc<PiMutex<FaultCounts>>,
    counts: TransmitCounts,
}

impl FaultyTransmitter {
    /// Passes ready frames to `inner` as far as it has room.
    fn hand_on(&mut self) -> Result<(), TransmitError> {
        while let Some(frame) = self.ready.front() {
            let octets = frame.octets();
            let handed_on = self
                .inner
                .transmit(octets.len(), &mut |room| room.copy_from_slice(octets));
            match handed_on {
                // A frame that is longer than `inner` accepts is dropped.
                Ok(()) | Err(TransmitError::TooLong { .. }) => {
                    self.free.extend(self.ready.pop_front());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Transmitter for FaultyTransmitter {
    fn transmit(
        &mut self,
        len: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), TransmitError> {
        if len > self.longest {
            let max = self.longest;
            return Err(TransmitError::TooLong { len, max });
        }
        let buffer = if self.has_room() {
            self.free.pop()
        } else {
            None
        };
        let Some(mut buffer) = buffer else {
            self.counts.full += 1;
            return Err(TransmitError::Full);
        };
        write(buffer.resize(len));
        self.counts.frames += 1;
        self.counts.octets += len as u64;
        let (ready, before) = (&mut self.ready, self.disturbance.counts);
        self.disturbance
            .pass(buffer, &mut self.free, |frame| ready.push_back(frame));
        self.all
            .lock()
            .add_difference(before, self.disturbance.counts);
        match self.hand_on() {
            // The remaining frames are passed on later.
            Err(TransmitError::Full) => Ok(()),
            handed_on => handed_on,
        }
    }

    fn has_room(&mut self) -> bool {
        self.ready.is_empty() && self.inner.has_room()
    }

    fn flush(&mut self) -> Result<(), PathError> {
        self.inner.flush()?;
        if let Err(TransmitError::Failed(error)) = self.hand_on() {
            return Err(error);
        }
        self.inner.flush()
    }

    fn is_pending(&self) -> bool {
        !self.ready.is_empty() || self.inner.is_pending()
    }

    fn set_priority(&mut self, priority: u32) -> Result<(), PathError> {
        self.inner.set_priority(priority)
    }

    fn counts(&self) -> TransmitCounts {
        self.counts
    }
}
