//! Instruments, as other crates use them.

#[cfg(feature = "laboratory")]
mod trace;
