//! The client's half of the way of a request: binding, connection, exchange.

mod asynchronous;
mod attempt;
mod binding;
mod collocated;
mod connection;
mod explicit;
mod inbox;
mod invocation;
mod outbox;
mod prepared;
mod route;

pub use asynchronous::PendingReply;
pub(crate) use asynchronous::is_in_handler;
pub(crate) use binding::forget_orb;
pub(crate) use collocated::direct;
pub(crate) use connection::ClientConnections;
pub(crate) use explicit::bind_explicitly;
#[cfg(feature = "miop")]
pub(crate) use explicit::bind_group;
pub(crate) use invocation::{invoke, invoke_oneway};
