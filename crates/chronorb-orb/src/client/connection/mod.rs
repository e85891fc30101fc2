//! A client's connections: what all of them have in common, and the strategies by which threads
//! have one each or share them.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod active;
mod channel;
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "it makes connections"
)]
mod directory;
#[cfg(test)]
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests may allocate"
)]
pub(super) mod endless;
mod exclusive;
mod failure;
mod handle;
mod key;
mod leader;
mod member;
mod multiplexed;
#[allow(clippy::disallowed_methods, reason = "once for each connection")]
mod own_thread;
mod permit;
mod queue;
mod reader;

pub(super) use channel::Awaited;
pub(crate) use directory::ClientConnections;
#[cfg(feature = "ssliop")]
pub(super) use directory::NO_PROTECTION;
pub(super) use directory::{NoConnection, no_thread, open, start_aside, start_thread};
pub(super) use exclusive::Exclusive;
pub(super) use failure::{Failure, comm_failure, timeout};
pub(super) use handle::ClientConnection;
pub(super) use key::ConnectionKey;
pub(super) use member::Open;
pub(super) use multiplexed::{Attendant, MALFORMED, MAX_STRAYS, Multiplexed, Rest};
pub(super) use own_thread::OwnThread;
