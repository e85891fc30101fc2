//! The second part: calls of ten clients at a time, by the architecture of client and server.
//!
//! One client of high priority and nine of low call as fast as they can, as in the papers' experiment. Each architecture
//! is run three times with processes of its own, since what is found out in one way would disturb the other: once the
//! threads count for themselves, once they look at their clocks, and once their system calls are traced.

mod claims;
mod client;
mod configuration;
mod crowd;
mod order;
mod outcome;
mod report;
mod server;
mod trial;

pub(super) use claims::of as claims;
pub(super) use client::call;
pub use configuration::{CONFIGURATIONS, Configuration, Pool};
pub(super) use order::{ClientOrder, ServerOrder, Times};
pub(super) use outcome::RowFigures;
pub use outcome::{ArchitectureRow, Shares, Use};
pub(super) use report::{notes, sections};
pub(super) use server::serve;
pub(super) use trial::{RUNS, measure};

/// The clients: one of high priority, and nine of low.
pub const CLIENTS: u32 = 10;

#[cfg(test)]
pub(super) use claims::tests::rows;
