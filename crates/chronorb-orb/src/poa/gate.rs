//! Requests that wait for a POA, and the lanes to notify when it opens.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chronorb_rt::{Key, PiMutex};

use super::Poa;
use super::serial::Serial;
use crate::core::Core;
use crate::lanes::LaneHandle;

/// The reason why a request has to wait for its POA.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WaitCause {
    /// The manager holds requests.
    Held,
    /// The POA is single-threaded, and another thread is in it.
    Busy,
}

/// A parked request, as its POA knows it. Dropped when the request is no longer on its way: another
/// one may go on then.
pub(crate) struct Ticket {
    poa: Poa,
    closed: WaitCause,
    lane: Arc<LaneHandle>,
}

/// The lanes that have parked requests for a manager or a POA.
#[derive(Default)]
pub(super) struct Waiters {
    /// The number of these requests. It is only exchanged. A thread that parks a request then
    /// checks the gate, and a thread that opens the gate then checks the count; so one of them
    /// observes the other.
    count: AtomicUsize,
    lanes: PiMutex<Vec<(Arc<LaneHandle>, usize)>>,
}

impl fmt::Debug for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count.load(Ordering::Relaxed);
        f.debug_tuple("Waiters").field(&count).finish()
    }
}

impl Ticket {
    /// Registers a lane to be notified when the POA at this place lets requests in; `None` if that
    /// is gone.
    pub(crate) fn new(
        core: &Core,
        place: Key,
        closed: WaitCause,
        lane: &Arc<LaneHandle>,
    ) -> Option<Self> {
        let poa = core.poas.held_at(place)?;
        let this = Self {
            poa,
            closed,
            lane: lane.clone(),
        };
        this.waiters()?.add(lane);
        Some(this)
    }

    /// Whether the request need not wait any more.
    pub(crate) fn is_open(&self) -> bool {
        match self.closed {
            WaitCause::Held => !self.poa.manager().is_holding(),
            WaitCause::Busy => self.poa.serial().is_none_or(Serial::is_free),
        }
    }

    fn waiters(&self) -> Option<&Waiters> {
        match self.closed {
            WaitCause::Held => Some(self.poa.manager().waiters()),
            WaitCause::Busy => self.poa.serial().map(Serial::waiters),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(waiters) = self.waiters() {
            waiters.remove(&self.lane);
            waiters.ring();
        }
    }
}

impl Waiters {
    fn add(&self, lane: &Arc<LaneHandle>) {
        {
            let mut lanes = self.lanes.lock();
            match lanes.iter_mut().find(|(known, _)| Arc::ptr_eq(known, lane)) {
                Some((_, parked)) => *parked += 1,
                None => lanes.push((lane.clone(), 1)),
            }
        }
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    fn remove(&self, lane: &Arc<LaneHandle>) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        let mut lanes = self.lanes.lock();
        let at = lanes.iter().position(|(known, _)| Arc::ptr_eq(known, lane));
        let last = at.and_then(|at| {
            lanes[at].1 -= 1;
            (lanes[at].1 == 0).then(|| lanes.swap_remove(at))
        });
        drop(lanes);
        drop(last);
    }

    /// Whether requests wait.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.count.fetch_or(0, Ordering::AcqRel) > 0
    }

    /// Makes the lanes check whether their requests may continue.
    #[inline]
    pub(super) fn ring(&self) {
        if self.any() {
            self.ring_all();
        }
    }

    #[cold]
    fn ring_all(&self) {
        self.lanes
            .lock()
            .iter()
            .for_each(|(lane, _)| lane.bell.notify());
    }
}
