//! Threads, signals, locks and tables, as other crates use them.

mod again;
mod hash_index;
mod kick;
mod memory;
mod slots;
mod termination;
mod threads;
