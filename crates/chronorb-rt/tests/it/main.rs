//! Tests of the public threads, signals, locks and tables.

mod again;
mod hash_index;
mod kick;
mod memory;
mod slots;
mod termination;
mod threads;
