//! Clocks, short waits, and bounded busy polling.

pub(crate) mod backoff;
pub(crate) mod clock;
pub(crate) mod spin;
