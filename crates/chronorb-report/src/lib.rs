//! Reports of measurements: tables, charts and claims as HTML and text, figures with fitting units.
//!
//! The crate knows nothing of CORBA or of any experiment. [`stats`] keeps latencies in records of
//! bounded size, [`units`] formats quantities, [`claim`] compares expectations with figures,
//! [`progress`] shows how far a measurement is, and the other modules render figures.

pub mod canvas;
pub mod claim;
mod document;
mod lines;
pub mod progress;
mod scale;
mod series;
pub mod stats;
mod table;
pub mod units;
mod verdict;

pub use canvas::PlotError;
pub use claim::Claim;
pub use document::{ReportError, check_writable, document, escape, pairs, write_page};
pub use lines::{COLOURS, Line, lines, lines_with_legend};
pub use scale::Scale;
pub use table::{Table, figure};
pub use verdict::Verdict;
