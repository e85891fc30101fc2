//! Tables that readers enter without a lock.

pub mod epoch;
pub(crate) mod hash_index;
mod memory;
mod row;
pub(crate) mod slots;
