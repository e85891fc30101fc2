//! What a lane keeps for slow peers: its books and its bound.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::connection::Gone;
use super::spares::Spares;
use crate::config::OrbConfig;

/// What the connections of a lane keep for slow peers, together.
pub(super) struct Load {
    octets: AtomicUsize,
    max_octets: usize,
    /// The greatest message of one connection.
    pub(super) max_message: usize,
    /// Replies of more octets go out in fragments; 0 for none.
    pub(super) fragment_size: usize,
    /// Connections whose peer is slow: it has not completed a message, or not taken a reply.
    pub(super) slow: AtomicUsize,
    /// Frames of threads that received a part of a great message.
    pub(super) spares: Spares,
}

impl Load {
    pub(super) fn new(config: &OrbConfig) -> Self {
        Self {
            octets: AtomicUsize::new(0),
            max_octets: config.max_buffered_octets,
            max_message: config.max_message_size,
            fragment_size: config.fragment_size,
            slow: AtomicUsize::new(0),
            spares: Spares::new(),
        }
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

    /// Changes what one connection keeps; more than the lane may keep ends the connection.
    pub(super) fn account(&self, accounted: &mut usize, octets: usize) -> Result<(), Gone> {
        if octets > *accounted {
            let more = octets - *accounted;
            let before = self.octets.fetch_add(more, Ordering::Relaxed);
            if before + more > self.max_octets {
                self.octets.fetch_sub(more, Ordering::Relaxed);
                return Err(Gone);
            }
            *accounted = octets;
        } else {
            self.octets
                .fetch_sub(*accounted - octets, Ordering::Relaxed);
            *accounted = octets;
        }
        Ok(())
    }
}
