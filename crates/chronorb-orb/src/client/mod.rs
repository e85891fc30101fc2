//! The client's half of the way of a request: binding, connection, exchange.

mod binding;
mod collocated;
mod connection;
mod invocation;

pub(crate) use collocated::direct;
pub(crate) use invocation::{invoke, invoke_oneway};

/// Forgets what the calling thread knows of an ORB; at its end.
pub(crate) fn forget_orb(core: &crate::core::Core) {
    binding::forget_orb(core.number);
}
