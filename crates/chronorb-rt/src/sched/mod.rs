//! Threads, their scheduling, the rights that it needs, and signals.

pub(crate) mod budget;
pub(crate) mod ceiling_lock;
pub(crate) mod reservation;
pub(crate) mod rights;
pub(crate) mod scheduling;
pub(crate) mod signal;
pub(crate) mod thread;
pub(crate) mod time_sharing;
