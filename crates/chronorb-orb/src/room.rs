//! Bounds of message memory, for clients and servers alike.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::hint::black_box;

/// Whether a block of this size can be allocated now. The block is freed again.
pub(crate) fn has_memory_for(octets: usize) -> bool {
    let mut trial = Vec::<u8>::new();
    let reserved = trial.try_reserve_exact(octets);
    // The compiler could remove an unused allocation.
    black_box(&mut trial);
    reserved.is_ok()
}

/// The capacity that a frame keeps after a large message.
pub(crate) const KEPT_CAPACITY: usize = 1 << 20;
