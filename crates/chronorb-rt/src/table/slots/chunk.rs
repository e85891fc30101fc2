//! The chunks of slots, which double in size, and their bookkeeping.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use crate::sync::primitives::atomic::AtomicU32;

/// The state protected by the lock among writers, besides that of chunks and free slots. Sets of
/// chunks are sets of bits.
#[derive(Default)]
pub(super) struct Writers {
    /// Chunks that have memory.
    pub(super) allocated: u32,
    /// The allocated chunks with vacant slots.
    pub(super) roomy: u32,
    /// The allocated chunks in which all slots are vacant, except for the first chunk.
    pub(super) empty: u32,
    /// Slots that are not vacant.
    pub(super) taken: u32,
    pub(super) live: u32,
}

/// The head of a chunk. Changes only under the lock.
#[derive(Default)]
pub(super) struct Counts {
    /// The first free slot that was used before, counted from 1, or [`NONE`](super::slot::NONE).
    pub(super) free: AtomicU32,
    /// The number of slots that were ever used; those after them are fresh.
    pub(super) used: AtomicU32,
    /// Slots that are not vacant.
    pub(super) taken: AtomicU32,
    /// The highest generation of a slot.
    pub(super) newest: AtomicU32,
}

/// Slots of the first chunk; each further chunk is twice as large. The model checker pays for each.
pub(super) const FIRST_CHUNK: usize = if cfg!(loom) { 2 } else { 8 };
/// Enough chunks for every index of 32 bits, which fit into the sets of [`Writers`].
pub(super) const CHUNKS: usize = if cfg!(loom) {
    3
} else {
    33 - FIRST_CHUNK.ilog2() as usize
};

/// The chunk of a slot, and its place there.
#[inline]
pub(super) fn place(index: u32) -> (usize, usize) {
    let position = u64::from(index) + FIRST_CHUNK as u64;
    let chunk = (position.ilog2() - FIRST_CHUNK.ilog2()) as usize;
    (chunk, (position - ((FIRST_CHUNK as u64) << chunk)) as usize)
}

/// The first slot of a chunk.
pub(super) fn first_index(chunk: usize) -> u32 {
    (((FIRST_CHUNK as u64) << chunk) - FIRST_CHUNK as u64) as u32
}

/// A set of one chunk.
pub(super) fn bit(chunk: usize) -> u32 {
    1 << chunk
}
