//! The client's half of the way of a request: binding, connection, exchange.

mod binding;
mod collocated;
mod connection;
mod explicit;
mod inbox;
mod invocation;
mod outbox;
mod prepared;
mod route;

pub(crate) use collocated::direct;
pub(crate) use explicit::bind_explicitly;
pub(crate) use invocation::{invoke, invoke_oneway};

/// Lets the calling thread find out anew how it reaches the objects that it knows.
pub(crate) fn forget_bindings(core: &crate::core::Core) {
    binding::forget_bindings(core.number);
}

/// Forgets what the calling thread knows of an ORB; at its end.
pub(crate) fn forget_orb(core: &crate::core::Core) {
    binding::forget_orb(core.number);
}
