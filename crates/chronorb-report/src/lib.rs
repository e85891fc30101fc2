//! Reports of measurements as HTML pages and text.
//!
//! A [`Document`] consists of blocks: text, [`Table`]s, [`Chart`]s, [`Claim`]s. [`units`] formats
//! quantities, [`stats`] keeps latencies in records of bounded size, and [`progress`] shows the
//! progress of a measurement. The crate knows nothing of CORBA or of any experiment.

mod axis;
pub mod chart;
mod claim;
mod course;
mod document;
mod page;
pub mod progress;
pub mod stats;
mod table;
pub mod units;
mod verdict;

pub use axis::Axis;
pub use chart::{Chart, Mark, Series};
pub use claim::{Claim, Score};
pub use document::{Document, Target, Tile};
pub use page::{ReportError, check_writable, write_page};
pub use table::{Table, counted};
pub use units::Unit;
pub use verdict::Verdict;
