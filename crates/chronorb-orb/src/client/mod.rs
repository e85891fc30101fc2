//! The client's half of the request path: binding, connection, exchange.

mod asynchronous;
mod attempt;
mod binding;
mod calls;
mod collocated;
mod connection;
mod explicit;
mod invocation;
mod oneway_path;
mod request;
mod route;
#[cfg(feature = "distributable-threads")]
mod segment;

pub use asynchronous::PendingReply;
pub(crate) use asynchronous::is_in_handler;
pub(crate) use oneway_path::{OnewayPath, RequestHead};
