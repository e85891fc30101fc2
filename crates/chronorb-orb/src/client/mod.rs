//! The client's half of the request path: binding, connection, exchange.

mod asynchronous;
mod attempt;
mod binding;
mod collocated;
mod connection;
mod explicit;
mod invocation;
mod oneway_path;
mod onward;
mod request;
mod route;
#[cfg(feature = "distributable-threads")]
mod segment;

pub use asynchronous::PendingReply;
pub(crate) use asynchronous::is_in_handler;
pub(crate) use collocated::{DirectCall, serve_directly};
pub(crate) use connection::ClientState;
pub(crate) use explicit::bind_explicitly;
#[cfg(feature = "miop")]
pub(crate) use explicit::bind_group;
pub(crate) use invocation::{flush_oneways, invoke, invoke_oneway};
pub(crate) use oneway_path::{OnewayPath, RequestHead};
