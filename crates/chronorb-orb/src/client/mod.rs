//! The client's half of the way of a request: binding, connection, exchange.

mod asynchronous;
mod binding;
mod collocated;
mod connection;
mod explicit;
mod inbox;
mod invocation;
mod outbox;
mod prepared;
mod route;
mod speech;

pub use asynchronous::Pending;
pub(crate) use asynchronous::is_in_handler;
pub(crate) use collocated::direct;
pub(crate) use connection::ClientConnections;
pub(crate) use explicit::bind_explicitly;
#[cfg(feature = "miop")]
pub(crate) use explicit::bind_group;
pub(crate) use invocation::{invoke, invoke_oneway};

use chronorb_rt::Deadline;

use crate::core::Core;

/// Ends an ORB's connections, as far as the calling thread has them alone, or threads share them.
pub(crate) fn shut_down(core: &Core) {
    binding::forget_orb(core.number);
    core.client_connections.leave();
}

/// Waits until the threads of an ORB's connections have ended.
pub(crate) fn wait_until_ended(core: &Core, deadline: Deadline) {
    core.client_connections.wait_until_ended(deadline);
}
