//! Clocks, and bounded busy polling.

pub(crate) mod clock;
pub(crate) mod spin;
