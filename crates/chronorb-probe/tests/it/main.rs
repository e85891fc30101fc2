//! Instruments, as other crates use them.

mod trace;
