//! Connections of clients to servers: exclusive ones, and those that threads share.

#[cfg(feature = "baselines")]
mod active;
mod batch;
#[cfg(feature = "bidir")]
mod bidirectional;
mod channel;
mod completions;
mod directory;
mod flusher;
mod heartbeat;
mod key;
mod link;
mod sending;
mod shared;
mod shared_wait;
#[cfg(test)]
pub(super) mod tests;
mod threads;

pub(super) use channel::{ClientConnection, SharedOwner};
pub(super) use completions::{CompletionStep, CompletionThread};
#[cfg(feature = "ssliop")]
pub(super) use directory::NO_PROTECTION;
pub(super) use directory::{Crowds, NoConnection, open};
#[cfg(feature = "bidir")]
pub(super) use directory::{call_back, call_back_by};
pub(super) use heartbeat::HeartbeatPeer;
pub(super) use key::{ChannelKind, ConnectionKey};
pub(super) use link::{Failure, Link, MALFORMED, MAX_STRAYS, comm_failure};
pub(super) use shared::SharedConnection;
pub(super) use shared_wait::SharedWait;
pub(super) use threads::{ConnectionThread, no_thread, start_aside};
