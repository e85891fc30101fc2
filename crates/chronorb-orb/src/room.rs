//! Bounds of message memory, for clients and servers alike.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::hint::black_box;

use chronorb_cdr::Arena;
use chronorb_rt::{Policy, Scheduling, current};

use crate::config::OrbConfig;

/// Whether a block of this size can be allocated now. The block is freed again.
pub(crate) fn has_memory_for(octets: usize) -> bool {
    let mut trial = Vec::<u8>::new();
    let reserved = trial.try_reserve_exact(octets);
    // The compiler could remove an unused allocation.
    black_box(&mut trial);
    reserved.is_ok()
}

/// Returns the arena of a thread with this scheduling. It is resident as a whole for a real-time
/// thread, and where memory is locked; otherwise the first part of it, because few requests need
/// more.
pub(crate) fn arena_of(config: &OrbConfig, scheduling: Scheduling) -> Arena {
    let whole = scheduling.policy != Policy::Other || config.lock_memory;
    let resident = if whole { usize::MAX } else { RESIDENT_ARENA };
    Arena::with_resident(config.arena_size, resident)
}

/// The scheduling of the calling thread. One that the kernel names otherwise is real-time.
pub(crate) fn own_scheduling() -> Scheduling {
    current().unwrap_or(Scheduling::fifo(1))
}

/// The octets of an arena that are resident from the start in a thread of ordinary scheduling.
const RESIDENT_ARENA: usize = 1 << 16;

/// The capacity that a frame keeps after a large message.
pub(crate) const KEPT_CAPACITY: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The octets of resident memory of this process.
    fn resident() -> usize {
        let statm = fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * rustix::param::page_size()
    }

    #[test]
    fn an_arena_is_resident_from_the_start_only_for_real_time_threads() {
        // Far more than all other tests of this process use meanwhile.
        const SIZE: usize = 1 << 27;
        let config = OrbConfig {
            arena_size: SIZE,
            ..OrbConfig::default()
        };
        let before = resident();
        let ordinary = arena_of(&config, Scheduling::OTHER);
        assert_eq!(ordinary.capacity(), SIZE);
        assert!(resident() < before + SIZE / 2);
        let _urgent = arena_of(&config, Scheduling::fifo(1));
        assert!(resident() > before + SIZE / 2);
    }
}
