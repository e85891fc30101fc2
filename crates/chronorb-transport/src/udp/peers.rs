//! The share of the process's descriptors that sockets for peers may take.
//!
//! A peer costs a descriptor, and nothing proves that its address exists. So the acceptors of the
//! process together have peers for a quarter of the descriptors that the process may have
//! (`RLIMIT_NOFILE`). Beyond that only an acceptor may have another one that has less than an equal
//! part of them: a flood at one endpoint does not shut out the peers of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit};

/// The peers of an acceptor.
#[derive(Debug)]
pub(super) struct Peers(Arc<AtomicUsize>);

/// A peer that counts; dropped with its connection.
#[derive(Debug)]
pub(super) struct Share(Arc<AtomicUsize>);

impl Peers {
    pub(super) fn new() -> Self {
        ACCEPTORS.fetch_add(1, Ordering::Relaxed);
        Self(Arc::default())
    }

    /// Returns whether the acceptor may have another peer.
    pub(super) fn has_room(&self) -> bool {
        // The limit can be changed while the process runs.
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let of_all = usize::try_from(descriptors).unwrap_or(usize::MAX) / PART;
        let own = (of_all / ACCEPTORS.load(Ordering::Relaxed).max(1)).max(1);
        ALL.load(Ordering::Relaxed) < of_all || self.0.load(Ordering::Relaxed) < own
    }

    /// Counts a peer for as long as the share exists.
    pub(super) fn add(&self) -> Share {
        ALL.fetch_add(1, Ordering::Relaxed);
        self.0.fetch_add(1, Ordering::Relaxed);
        Share(self.0.clone())
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        ACCEPTORS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        ALL.fetch_sub(1, Ordering::Relaxed);
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The peers of all acceptors of the process.
static ALL: AtomicUsize = AtomicUsize::new(0);
/// The acceptors of the process.
static ACCEPTORS: AtomicUsize = AtomicUsize::new(0);
/// The part of the descriptors that peers may take, as a divisor.
const PART: usize = 4;
