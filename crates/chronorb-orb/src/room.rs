//! Memory for messages, the same for clients and servers.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::hint::black_box;

/// Whether there is memory for a block of so many octets now. It is given back.
pub(crate) fn has_memory_for(octets: usize) -> bool {
    let mut trial = Vec::<u8>::new();
    let reserved = trial.try_reserve_exact(octets);
    // An allocation that nothing looks at could be left out.
    black_box(&mut trial);
    reserved.is_ok()
}

/// What a frame keeps at any rate that once held a great message.
pub(crate) const KEPT_CAPACITY: usize = 1 << 20;
