//! Requests that wait for their POA without occupying a thread.
//!
//! A POA lets a request wait while its manager holds requests, or while another thread is in a
//! single-threaded POA. The request is parked at the lane that read it. Its POA knows the lanes
//! with requests parked for it, and notifies them when one may continue.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, PiMutex};

use super::load::Load;
use crate::config::OrbConfig;
use crate::lanes::LaneHandle;
use crate::poa::Ticket;
use crate::rtcorba::Priority;

/// The parked requests of a lane, of type `R`.
pub(super) struct Parking<R> {
    /// `None` once the lane is ending.
    parked: PiMutex<Option<Vec<ParkedRequest<R>>>>,
    /// The number of parked requests, to be read without the lock.
    count: AtomicUsize,
    /// Makes the lane check parked requests at intervals.
    load: Arc<Load>,
    max: usize,
    octets: AtomicUsize,
    max_octets: usize,
    hold: Duration,
    /// Notified when a request may continue.
    lane: Arc<LaneHandle>,
}

/// A request that waits for its POA. Requests continue by priority, then in order of arrival.
pub(super) struct ParkedRequest<R> {
    pub(super) request: R,
    /// The octets of its message.
    pub(super) octets: usize,
    /// `None` where its POA is destroyed, which the next thread finds out.
    pub(super) ticket: Option<Ticket>,
    pub(super) priority: Option<Priority>,
    /// The time until which it may wait.
    pub(super) until: Deadline,
}

impl<R> Parking<R> {
    /// Returns an empty set of parked requests of a lane.
    pub(super) fn new(config: &OrbConfig, load: Arc<Load>, lane: Arc<LaneHandle>) -> Self {
        Self {
            parked: PiMutex::new(Some(Vec::new())),
            count: AtomicUsize::new(0),
            load,
            max: config.max_held_requests,
            octets: AtomicUsize::new(0),
            max_octets: config.max_buffered_octets,
            hold: config.hold_timeout,
            lane,
        }
    }

    /// Whether no further request can be parked.
    pub(super) fn is_full(&self) -> bool {
        self.count() >= self.max || self.octets.load(Ordering::Relaxed) >= self.max_octets
    }

    /// The number of requests that wait.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The time until which a request may wait that is parked now for the first time.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline::after(self.hold)
    }

    /// Parks a request. It is dropped where the lane is ending.
    pub(super) fn park(&self, parked: ParkedRequest<R>) {
        let mut all = self.parked.lock();
        let Some(waiting) = &mut *all else {
            drop(all);
            // The client learns this from the end of its connection.
            drop(parked);
            return;
        };
        let is_first = self.count.fetch_add(1, Ordering::Relaxed) == 0;
        self.load.watch(true);
        self.octets.fetch_add(parked.octets, Ordering::Relaxed);
        // Its POA may have become ready meanwhile. The first request also needs a thread that wakes
        // when its time expires, and the thread that parks it may never wait on the reactor.
        let rings = is_first || parked.is_over();
        let at = waiting.partition_point(|other| other.priority >= parked.priority);
        waiting.insert(at, parked);
        drop(all);
        if rings {
            self.lane.bell.notify();
        }
    }

    /// Takes out the most urgent request that may continue or whose time has expired.
    pub(super) fn take(&self) -> Option<ParkedRequest<R>> {
        let mut all = self.parked.lock();
        let waiting = all.as_mut()?;
        let at = waiting.iter().position(ParkedRequest::is_over)?;
        let parked = waiting.remove(at);
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.load.watch(false);
        self.octets.fetch_sub(parked.octets, Ordering::Relaxed);
        if waiting.iter().any(ParkedRequest::is_over) {
            // Another thread continues with that one.
            self.lane.bell.notify();
        }
        Some(parked)
    }

    /// Notifies the lane if a request may continue or its time has expired.
    pub(super) fn ring_if_due(&self) {
        if self.count() > 0
            && let Some(all) = &*self.parked.lock()
            && all.iter().any(ParkedRequest::is_over)
        {
            self.lane.bell.notify();
        }
    }

    /// Gives back the parked requests, to be dropped, and parks none from now on.
    pub(super) fn close(&self, left: &mut Vec<R>) {
        for parked in self.parked.lock().take().unwrap_or_default() {
            left.push(parked.request);
        }
        self.count.store(0, Ordering::Relaxed);
    }
}

impl<R> ParkedRequest<R> {
    /// Whether the time of the request has expired while its POA does not admit it.
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
