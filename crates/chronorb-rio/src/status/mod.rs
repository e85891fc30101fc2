//! What the classes of this process have done, for anyone who may look.
//!
//! A [`Page`] holds the counters of all classes of an interface, in memory that other processes
//! read without this one knowing: no file is left, no thread answers and nobody waits. [`Snapshot`]
//! is what they read, and [`find`] finds it.

mod counters;
mod find;
mod layout;
mod snapshot;
#[cfg(test)]
mod tests;

pub use counters::{ClassCounters, Page};
pub use find::{Found, FoundPage, Looked, Unseen, find};
pub use layout::{Count, Level};
pub use snapshot::{ClassSnapshot, Latencies, LevelSnapshot, Mode, Snapshot, SnapshotError};
