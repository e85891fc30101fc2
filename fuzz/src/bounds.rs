//! Bounds of memory and work as failure conditions of targets.

use chronorb_rt::{allocations, peak_octets};

/// Does a part of what a target does with its input, of so many octets.
///
/// # Panics
/// See [`within_its_octets`].
pub(crate) fn within<T>(what: &str, octets: usize, work: impl FnOnce() -> T) -> T {
    within_its_octets(what, || (work(), octets))
}

/// Does a part of what a target does with its input, which returns its octets.
///
/// # Panics
/// If it holds more than [`MEMORY`] times the octets at any time, and a constant, or makes more
/// than [`ALLOCATIONS`] for each octet, and a constant. Allocations are the steps of work that all
/// code has; times depend on the machine.
pub(crate) fn within_its_octets<T>(what: &str, work: impl FnOnce() -> (T, usize)) -> T {
    let before = allocations();
    let ((result, octets), held) = peak_octets(work);
    let made = allocations() - before;
    let octets = octets as u64;
    let most = MEMORY * octets + MEMORY_CONSTANT;
    assert!(held <= most, "{what}: {held} octets of memory for {octets}");
    let most = ALLOCATIONS * octets + ALLOCATIONS_CONSTANT;
    assert!(
        made <= most,
        "{what}: {made} allocations for {octets} octets"
    );
    result
}

const MEMORY: u64 = 4;
/// For the first use of tables and arenas by a thread.
const MEMORY_CONSTANT: u64 = 64 << 10;
const ALLOCATIONS: u64 = 2;
const ALLOCATIONS_CONSTANT: u64 = 1_000;
