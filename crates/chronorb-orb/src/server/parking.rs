//! Requests that wait for their POA, and keep no thread meanwhile.
//!
//! A POA lets a request wait while its manager holds requests, or while another thread is in a
//! single-threaded one. The request is parked at the lane that it came in by. Its POA knows the
//! lanes that have requests parked for it, and rings them when one may go on.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, PiMutex, Wake};

use super::load::Load;
use crate::config::OrbConfig;
use crate::poa::Ticket;
use crate::rtcorba::Priority;

/// The parked requests of a lane, of type `R`.
pub(super) struct Parking<R> {
    /// `None` once the lane is ending.
    parked: PiMutex<Option<Vec<Parked<R>>>>,
    /// The number of parked requests, to be read without the lock.
    count: AtomicUsize,
    /// Has the lane look at parked requests now and then.
    load: Arc<Load>,
    max: usize,
    octets: AtomicUsize,
    max_octets: usize,
    hold: Duration,
    /// Rung where a request may continue.
    pub(super) bell: Wake,
}

/// A request that waits for its POA. The first of the most urgent continues first.
pub(super) struct Parked<R> {
    pub(super) request: R,
    /// The octets of its message.
    pub(super) octets: usize,
    /// `None` where its POA is gone, which is for the next thread to find out.
    pub(super) ticket: Option<Ticket>,
    pub(super) priority: Option<Priority>,
    /// The end of its patience.
    pub(super) until: Deadline,
}

impl<R> Parking<R> {
    /// No parked requests.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(config: &OrbConfig, load: Arc<Load>) -> io::Result<Self> {
        Ok(Self {
            parked: PiMutex::new(Some(Vec::new())),
            count: AtomicUsize::new(0),
            load,
            max: config.max_held_requests,
            octets: AtomicUsize::new(0),
            max_octets: config.max_buffered_octets,
            hold: config.hold_timeout,
            bell: Wake::new()?,
        })
    }

    /// Whether no more requests can wait.
    pub(super) fn is_full(&self) -> bool {
        self.count() >= self.max || self.octets.load(Ordering::Relaxed) >= self.max_octets
    }

    /// The number of requests that wait.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The end of the patience of a request that is parked now for the first time.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline::after(self.hold)
    }

    /// Lets a request wait. It is dropped where the lane is ending.
    pub(super) fn park(&self, parked: Parked<R>) {
        let mut all = self.parked.lock();
        let Some(waiting) = &mut *all else {
            drop(all);
            // It ends with its connection.
            drop(parked);
            return;
        };
        self.count.fetch_add(1, Ordering::Relaxed);
        self.load.watch(true);
        self.octets.fetch_add(parked.octets, Ordering::Relaxed);
        // Its POA may have become ready since.
        let is_over = parked.is_over();
        let at = waiting.partition_point(|other| other.priority >= parked.priority);
        waiting.insert(at, parked);
        drop(all);
        if is_over {
            self.bell.notify();
        }
    }

    /// Takes out the first request that may continue, or whose time is over; the most urgent first.
    pub(super) fn take(&self) -> Option<Parked<R>> {
        let mut all = self.parked.lock();
        let waiting = all.as_mut()?;
        let at = waiting.iter().position(Parked::is_over)?;
        let parked = waiting.remove(at);
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.load.watch(false);
        self.octets.fetch_sub(parked.octets, Ordering::Relaxed);
        if waiting.iter().any(Parked::is_over) {
            // Another thread continues with that one.
            self.bell.notify();
        }
        Some(parked)
    }

    /// Rings where a request may continue, because its time is over.
    pub(super) fn ring_if_due(&self) {
        if self.count() > 0
            && let Some(all) = &*self.parked.lock()
            && all.iter().any(Parked::is_over)
        {
            self.bell.notify();
        }
    }

    /// Gives back the requests that wait, to be dropped, and lets none wait any more.
    pub(super) fn close(&self, left: &mut Vec<R>) {
        for parked in self.parked.lock().take().unwrap_or_default() {
            left.push(parked.request);
        }
        self.count.store(0, Ordering::Relaxed);
    }
}

impl<R> Parked<R> {
    /// Whether the time of the request is over, and its POA does not let it in.
    pub(super) fn is_late(&self) -> bool {
        self.until.has_passed() && !self.is_open()
    }

    fn is_over(&self) -> bool {
        self.is_open() || self.until.has_passed()
    }

    fn is_open(&self) -> bool {
        self.ticket.as_ref().is_none_or(Ticket::is_open)
    }
}
