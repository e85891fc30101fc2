//! Tests of connections, and a peer for them.

#[cfg(feature = "baselines")]
mod active;
pub(in crate::client) mod endless;
