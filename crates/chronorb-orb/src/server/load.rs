//! What a lane keeps for slow peers: its books and its bound.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use chronorb_rt::Monotonic;

use super::spares::Spares;
use crate::config::OrbConfig;

/// What the connections of a lane keep for slow peers, together.
pub(super) struct Load {
    octets: AtomicUsize,
    max_octets: usize,
    tick: AtomicU32,
    /// Octets of a reply that a peer has to take in each second; 0 for none.
    pub(super) least_rate: u32,
    /// The greatest message of one connection.
    pub(super) max_message: usize,
    /// Replies of more octets go out in fragments; 0 for none.
    pub(super) fragment_size: usize,
    /// Connections whose peer is slow: it has not completed a message, or not taken a reply.
    slow: AtomicUsize,
    /// Connections on which no whole message has come.
    silent: AtomicUsize,
    /// All that the lane has to look at now and then: those of both kinds, and parked requests.
    watched: AtomicUsize,
    /// Frames of threads that received a part of a great message.
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
            slow: AtomicUsize::new(0),
            silent: AtomicUsize::new(0),
            watched: AtomicUsize::new(0),
            spares: Spares::new(),
        }
    }

    /// Counts one more, or one less, slow peer.
    pub(super) fn count_slow(&self, more: bool) {
        count(&self.slow, more);
        self.watch(more);
    }

    /// Counts one more, or one less, connection on which no whole message has come.
    #[cold]
    pub(super) fn count_silent(&self, more: bool) {
        count(&self.silent, more);
        self.watch(more);
    }

    /// Counts one more, or one less, thing that the lane has to look at now and then.
    pub(super) fn watch(&self, more: bool) {
        count(&self.watched, more);
    }

    /// Whether there is anything that the lane has to look at now and then.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed) > 0
    }

    /// Whether no whole message has come on some connection.
    pub(super) fn has_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed) > 0
    }

    /// Whether any peer is slow, so that its time must be watched.
    pub(super) fn has_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed) > 0
    }

    /// Whether so many octets more are not over half of what the lane may keep.
    pub(super) fn has_half_for(&self, octets: usize) -> bool {
        let kept = self.octets.load(Ordering::Relaxed);
        kept.saturating_add(octets) <= self.max_octets / 2
    }

    /// Whether all connections together keep more than they may.
    pub(super) fn is_over(&self) -> bool {
        self.octets.load(Ordering::Relaxed) > self.max_octets
    }

    /// The present tick, which grows with each connection that comes, and with each look at those
    /// that are idle.
    #[inline]
    pub(super) fn tick(&self) -> u32 {
        self.tick.load(Ordering::Relaxed)
    }

    /// Begins the next tick, and returns it.
    pub(super) fn advance(&self) -> u32 {
        self.tick.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}

fn count(counter: &AtomicUsize, more: bool) {
    match more {
        true => counter.fetch_add(1, Ordering::Relaxed),
        false => counter.fetch_sub(1, Ordering::Relaxed),
    };
}

/// What one connection of a lane keeps for its peer.
pub(super) struct Account {
    pub(super) load: Arc<Load>,
    /// Octets; with [`WRITTEN_OFF`] they are none of the lane's any more.
    octets: AtomicUsize,
    /// Since when it keeps anything, in nanoseconds.
    since: AtomicU64,
}

impl Account {
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    pub(super) fn open(load: Arc<Load>) -> Arc<Self> {
        Arc::new(Self {
            load,
            octets: AtomicUsize::new(0),
            since: AtomicU64::new(0),
        })
    }

    /// How much the connection keeps.
    pub(super) fn octets(&self) -> usize {
        self.octets.load(Ordering::Relaxed) & !WRITTEN_OFF
    }

    /// Takes what it keeps out of the books of the lane, since it is about to be given back, and returns
    /// how much that was; nothing where that was done before.
    pub(super) fn write_off(&self) -> Option<usize> {
        let octets = self.octets.fetch_or(WRITTEN_OFF, Ordering::Relaxed);
        if octets & WRITTEN_OFF != 0 {
            return None;
        }
        self.load.octets.fetch_sub(octets, Ordering::Relaxed);
        Some(octets)
    }

    /// The octets that count against the bound of the lane, and the time of the first of them. The
    /// connection with the greatest rank is cut off first.
    pub(super) fn rank(&self) -> (usize, Reverse<u64>) {
        let octets = match self.octets.load(Ordering::Relaxed) {
            off if off & WRITTEN_OFF != 0 => 0,
            octets => octets,
        };
        (octets, Reverse(self.since.load(Ordering::Relaxed)))
    }

    /// Changes what one direction of the connection keeps. Where that is more than the lane may
    /// keep, the lane [makes up for it](super::lane::Lane::relieve).
    pub(super) fn set(&self, accounted: &mut usize, octets: usize) {
        let books = &self.load.octets;
        if octets > *accounted {
            let more = octets - *accounted;
            // First there, so that nobody writes off what is not in it.
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

/// The connection was cut off, or is about to be.
const WRITTEN_OFF: usize = 1 << (usize::BITS - 1);

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
}
