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

use super::handed::Handed;
use super::load::Load;
use crate::config::OrbConfig;
use crate::poa::Ticket;
use crate::rtcorba::Priority;

/// The parked requests of a lane.
pub(super) struct Parking {
    /// `None` once the lane is ending.
    parked: PiMutex<Option<Vec<Parked>>>,
    /// How many they are, to be asked without the lock.
    count: AtomicUsize,
    /// The lane looks at them now and then.
    load: Arc<Load>,
    max: usize,
    octets: AtomicUsize,
    max_octets: usize,
    hold: Duration,
    /// Rung where one may go on.
    pub(super) bell: Wake,
}

/// A request that waits. The first of the most urgent goes on first.
struct Parked {
    handed: Handed,
    /// None where its POA is gone, which is for the next thread to say.
    ticket: Option<Ticket>,
    priority: Option<Priority>,
    until: Deadline,
}

/// A request that does not wait any more.
pub(super) enum Unparked {
    /// Its POA may let it in.
    Ready(Handed, Option<Priority>),
    /// It has waited for too long.
    Late(Handed),
}

impl Parking {
    /// The place of a lane.
    ///
    /// # Errors
    /// Where no descriptor is left.
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

    /// How many requests wait.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Lets a request wait at the lane that it came in by; it is dropped where that is ending.
    pub(super) fn park(&self, handed: Handed, ticket: Option<Ticket>, priority: Option<Priority>) {
        let until = handed.until();
        let parked = Parked {
            until: until.unwrap_or_else(|| Deadline::after(self.hold)),
            handed,
            ticket,
            priority,
        };
        let mut all = self.parked.lock();
        let Some(waiting) = &mut *all else {
            drop(all);
            // It ends with its connection.
            drop(parked);
            return;
        };
        self.count.fetch_add(1, Ordering::Relaxed);
        self.load.watch(true);
        self.octets
            .fetch_add(parked.handed.octets(), Ordering::Relaxed);
        // It may have been let in since.
        let is_over = parked.is_over();
        let at = waiting.partition_point(|other| other.priority >= parked.priority);
        waiting.insert(at, parked);
        drop(all);
        if is_over {
            self.bell.notify();
        }
    }

    /// Takes a request back that nobody could serve.
    pub(super) fn put_back(&self, mut handed: Handed, priority: Option<Priority>) {
        let ticket = handed.take_ticket();
        self.park(handed, ticket, priority);
    }

    /// Takes out the first request that may go on, or whose time is over; the most urgent first.
    pub(super) fn take(&self) -> Option<Unparked> {
        let mut all = self.parked.lock();
        let waiting = all.as_mut()?;
        let at = waiting.iter().position(Parked::is_over)?;
        let Parked {
            mut handed,
            ticket,
            priority,
            until,
        } = waiting.remove(at);
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.load.watch(false);
        self.octets.fetch_sub(handed.octets(), Ordering::Relaxed);
        if waiting.iter().any(Parked::is_over) {
            // Another thread goes on with that one.
            self.bell.notify();
        }
        drop(all);
        // Where it may go on, another thread may be faster: then it is parked again.
        let is_late = until.has_passed() && !is_open(ticket.as_ref());
        handed.set_waited(ticket, until);
        Some(match is_late {
            true => Unparked::Late(handed),
            false => Unparked::Ready(handed, priority),
        })
    }

    /// Rings where there is something to be taken; for those whose time is over.
    pub(super) fn ring_if_due(&self) {
        if self.count() > 0
            && let Some(all) = &*self.parked.lock()
            && all.iter().any(Parked::is_over)
        {
            self.bell.notify();
        }
    }

    /// Gives back what waits, to be dropped, and lets nothing wait any more.
    pub(super) fn close(&self, left: &mut Vec<Handed>) {
        for parked in self.parked.lock().take().unwrap_or_default() {
            left.push(parked.handed);
        }
        self.count.store(0, Ordering::Relaxed);
    }
}

impl Parked {
    fn is_over(&self) -> bool {
        is_open(self.ticket.as_ref()) || self.until.has_passed()
    }
}

fn is_open(ticket: Option<&Ticket>) -> bool {
    ticket.is_none_or(Ticket::is_open)
}
