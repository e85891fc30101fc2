//! The second part: calls of ten clients at a time, by the architecture of client and server.
//!
//! One client of high priority and nine of low call as fast as they can, as in the papers'
//! experiment. Each architecture runs three times with processes of its own, because each way to
//! measure disturbs the others: once the threads count for themselves, once they read their
//! clocks, and once their system calls are traced.

mod claims;
mod client;
mod report;

pub(super) use claims::of as claims;
pub(super) use client::call;
pub(super) use report::{notes, sections};

#[cfg(test)]
pub(super) use claims::tests::rows;
