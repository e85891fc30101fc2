//! The client's half of the way of a request: binding, connection, exchange.

mod binding;
mod connection;
mod invocation;

pub(crate) use invocation::{invoke, invoke_oneway};
