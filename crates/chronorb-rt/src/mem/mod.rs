//! Memory: mappings, locking, counted allocation, bounded texts, and words for other processes.

pub(crate) mod alloc;
pub(crate) mod mapping;
pub(crate) mod memory;
pub(crate) mod published;
pub(crate) mod tally;
pub(crate) mod text;
