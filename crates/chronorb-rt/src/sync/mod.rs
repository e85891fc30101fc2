//! Locks, wake-ups, and the sets of threads that work and wait.

pub(crate) mod baton;
pub(crate) mod crew;
pub(crate) mod gate;
pub(crate) mod kick;
pub(crate) mod observer;
pub(crate) mod pi_lock;
pub(crate) mod pi_mutex;
pub(crate) mod primitives;
pub(crate) mod stay;
pub(crate) mod wake;
