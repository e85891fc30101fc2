//! Locks, wake-ups, and the sets of threads that work and wait.

pub(crate) mod baton;
pub(crate) mod cancellable;
pub(crate) mod gate;
pub(crate) mod kick;
pub(crate) mod observer;
pub(crate) mod pi_lock;
pub(crate) mod pi_mutex;
pub(crate) mod primitives;
pub(crate) mod source_affinity;
pub(crate) mod wake;
pub(crate) mod worker_set;
