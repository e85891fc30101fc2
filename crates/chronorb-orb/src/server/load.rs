//! The memory of a lane: what it keeps for slow peers, with its bound, and spare frames.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use chronorb_cdr::Frame;
use chronorb_rt::{Baton, Monotonic};

use crate::config::OrbConfig;

/// The accounts of a lane for all its connections, and their bounds.
pub(super) struct Load {
    octets: AtomicUsize,
    max_octets: usize,
    tick: AtomicU32,
    /// Octets of a reply that a peer has to take in each second; 0 for no least rate.
    pub(super) least_rate: u32,
    /// The greatest message of one connection.
    pub(super) max_message: usize,
    /// Longer replies are sent in fragments; 0 for no fragments.
    pub(super) fragment_size: usize,
    /// The requests of a connection are served in the order of arrival.
    pub(super) in_order: bool,
    /// Connections with a slow peer: it has not completed a message, or not taken a reply.
    slow: AtomicUsize,
    /// Connections on which no whole message has arrived.
    silent: AtomicUsize,
    /// Things that the lane checks at intervals: connections of both kinds, and parked requests.
    watched: AtomicUsize,
    /// Frames for threads that left theirs to a part of a large message.
    pub(super) spares: Spares,
}

impl Load {
    pub(super) fn new(config: &OrbConfig) -> Self {
        Self {
            octets: AtomicUsize::new(0),
            max_octets: config.max_buffered_octets,
            tick: AtomicU32::new(0),
            least_rate: config.min_reply_rate,
            max_message: config.max_message_size,
            fragment_size: config.fragment_size,
            in_order: config.ordered_connections,
            slow: AtomicUsize::new(0),
            silent: AtomicUsize::new(0),
            watched: AtomicUsize::new(0),
            spares: Spares::new(),
        }
    }

    /// Adds or removes a slow peer.
    pub(super) fn count_slow(&self, more: bool) {
        count(&self.slow, more);
        self.watch(more);
    }

    /// Adds or removes a connection on which no whole message has arrived.
    #[cold]
    pub(super) fn count_silent(&self, more: bool) {
        count(&self.silent, more);
        self.watch(more);
    }

    /// Adds or removes a thing that the lane checks at intervals.
    pub(super) fn watch(&self, more: bool) {
        count(&self.watched, more);
    }

    /// Whether the lane has to check anything at intervals.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed) > 0
    }

    /// Whether there is a connection on which no whole message has arrived.
    pub(super) fn has_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed) > 0
    }

    /// Whether any peer is slow, so that its time must be checked.
    pub(super) fn has_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed) > 0
    }

    /// Whether the lane stays within half of its bound with this number of further octets.
    pub(super) fn has_half_for(&self, octets: usize) -> bool {
        let kept = self.octets.load(Ordering::Relaxed);
        kept.saturating_add(octets) <= self.max_octets / 2
    }

    /// Whether all connections together keep more than the lane's bound.
    pub(super) fn is_over(&self) -> bool {
        self.octets.load(Ordering::Relaxed) > self.max_octets
    }

    /// The present tick, which advances with each accepted connection and each look at idle
    /// connections.
    #[inline]
    pub(super) fn tick(&self) -> u32 {
        self.tick.load(Ordering::Relaxed)
    }

    /// Begins the next tick and returns it.
    pub(super) fn advance(&self) -> u32 {
        self.tick.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}

fn count(counter: &AtomicUsize, more: bool) {
    let _ = if more {
        counter.fetch_add(1, Ordering::Relaxed)
    } else {
        counter.fetch_sub(1, Ordering::Relaxed)
    };
}

/// The memory that one connection of a lane keeps for its peer.
pub(super) struct Account {
    pub(super) load: Arc<Load>,
    /// Octets; with [`WRITTEN_OFF`] they no longer count for the lane.
    octets: AtomicUsize,
    /// The time since which it keeps anything, in nanoseconds.
    since: AtomicU64,
}

impl Account {
    pub(super) fn open(load: Arc<Load>) -> Arc<Self> {
        Arc::new(Self {
            load,
            octets: AtomicUsize::new(0),
            since: AtomicU64::new(0),
        })
    }

    /// The number of octets that the connection keeps.
    pub(super) fn octets(&self) -> usize {
        self.octets.load(Ordering::Relaxed) & !WRITTEN_OFF
    }

    /// Removes the connection's octets from the lane's account, because they are about to be freed,
    /// and returns their number; `None` where that was done before.
    pub(super) fn write_off(&self) -> Option<usize> {
        let octets = self.octets.fetch_or(WRITTEN_OFF, Ordering::Relaxed);
        if octets & WRITTEN_OFF != 0 {
            return None;
        }
        self.load.octets.fetch_sub(octets, Ordering::Relaxed);
        Some(octets)
    }

    /// The octets that count against the lane's bound, and the time of the first of them. The
    /// connection with the greatest rank is aborted first.
    pub(super) fn rank(&self) -> (usize, Reverse<u64>) {
        let octets = match self.octets.load(Ordering::Relaxed) {
            off if off & WRITTEN_OFF != 0 => 0,
            octets => octets,
        };
        (octets, Reverse(self.since.load(Ordering::Relaxed)))
    }

    /// Sets the octets that one direction of the connection keeps. Where the lane exceeds its bound
    /// by that, it [aborts connections](super::lane::ServerLane::relieve).
    pub(super) fn set(&self, accounted: &mut usize, octets: usize) {
        let books = &self.load.octets;
        if octets > *accounted {
            let more = octets - *accounted;
            // The lane's account first, so that no thread writes off octets that are not in it.
            books.fetch_add(more, Ordering::Relaxed);
            let before = self.octets.fetch_add(more, Ordering::Relaxed);
            if before == 0 {
                self.since
                    .store(Monotonic::now().as_nanos(), Ordering::Relaxed);
            } else if before & WRITTEN_OFF != 0 {
                books.fetch_sub(more, Ordering::Relaxed);
            }
        } else if octets < *accounted {
            let less = *accounted - octets;
            let before = self.octets.fetch_sub(less, Ordering::Relaxed);
            if before & WRITTEN_OFF == 0 {
                books.fetch_sub(less, Ordering::Relaxed);
            }
        }
        *accounted = octets;
    }
}

/// A bit that is set once the connection is about to be aborted.
const WRITTEN_OFF: usize = 1 << (usize::BITS - 1);

/// A few spare frames of a lane, for threads that leave theirs to a large message that is still
/// arriving. They save repeated allocation. No thread waits for them: if another thread has the
/// set, the thread allocates a new frame.
pub(super) struct Spares(Baton<Vec<Frame>>);

impl Spares {
    pub(super) fn new() -> Self {
        Self(Baton::new(Vec::with_capacity(MAX_SPARES)))
    }

    /// Returns an empty frame.
    pub(super) fn take(&self) -> Frame {
        let spare = self.0.claim().and_then(|mut spares| spares.pop());
        spare.unwrap_or_else(|| Frame::new(FRAME_CAPACITY, usize::MAX))
    }

    /// Takes a frame back. A frame that is too small or too large for most threads is freed.
    pub(super) fn give(&self, mut frame: Frame) {
        if !(FRAME_CAPACITY..=MAX_CAPACITY).contains(&frame.capacity()) {
            return;
        }
        if let Some(mut spares) = self.0.claim()
            && spares.len() < MAX_SPARES
        {
            frame.clear();
            spares.push(frame);
        }
    }
}

const MAX_SPARES: usize = 4;
const MAX_CAPACITY: usize = 4 << 20;

/// The octets that the frames of a thread hold without growing.
pub(super) const FRAME_CAPACITY: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(load: &Load) -> usize {
        load.octets.load(Ordering::Relaxed)
    }

    #[test]
    fn what_is_written_off_is_none_of_the_lanes() {
        let load = Arc::new(Load::new(&OrbConfig::default()));
        let [first, second] = [(); 2].map(|()| Account::open(load.clone()));
        let mut accounted = [0; 2];
        first.set(&mut accounted[0], 700);
        second.set(&mut accounted[1], 40);
        assert_eq!(kept(&load), 740);
        assert_eq!(first.write_off(), Some(700));
        assert_eq!(first.write_off(), None, "by one thread");
        assert_eq!(kept(&load), 40);
        // The thread that has it goes on for a while.
        for octets in [900, 100, 0] {
            first.set(&mut accounted[0], octets);
            assert_eq!((first.octets(), kept(&load)), (octets, 40));
        }
        second.set(&mut accounted[1], 0);
        assert_eq!(kept(&load), 0);
    }

    #[test]
    fn a_frame_comes_back_empty() {
        let spares = Spares::new();
        let mut frame = Frame::new(2 * FRAME_CAPACITY, usize::MAX);
        frame.commit(1);
        spares.give(frame);
        let frame = spares.take();
        assert_eq!((frame.len(), frame.capacity()), (0, 2 * FRAME_CAPACITY));
        assert_eq!(spares.take().capacity(), FRAME_CAPACITY, "a new one");
    }

    #[test]
    fn few_frames_of_moderate_size_are_kept() {
        let spares = Spares::new();
        spares.give(Frame::new(FRAME_CAPACITY - 1, usize::MAX));
        spares.give(Frame::new(MAX_CAPACITY + 1, usize::MAX));
        for _ in 0..=MAX_SPARES {
            spares.give(Frame::new(2 * FRAME_CAPACITY, usize::MAX));
        }
        let taken = (0..=MAX_SPARES).map(|_| spares.take().capacity());
        let kept = taken.filter(|&capacity| capacity == 2 * FRAME_CAPACITY);
        assert_eq!(kept.count(), MAX_SPARES);
    }

    #[test]
    fn no_thread_waits_for_spares() {
        let spares = Spares::new();
        spares.give(Frame::new(2 * FRAME_CAPACITY, usize::MAX));
        let held = spares.0.claim();
        assert_eq!(spares.take().capacity(), FRAME_CAPACITY);
        drop(held);
    }
}
