//! The counters of this process's classes, for any process that may read them.
//!
//! A [`Page`] holds the counters of all classes of an interface in shared memory. Other processes
//! read it without involving this one: there is no file to clean up, no thread that answers, and no
//! blocking. [`find()`] finds the pages, and a [`Snapshot`] is the content of one.

mod counters;
mod find;
mod layout;
mod snapshot;
#[cfg(test)]
mod tests;

pub use counters::{ClassCounters, Page};
pub use find::{FoundPage, HiddenProcess, PageSearch, ProcessPages, find};
pub use layout::{Count, Level};
pub use snapshot::{ClassSnapshot, Latencies, LevelSnapshot, Mode, Snapshot, SnapshotError};
