//! The laboratory of chronorb: experiments that show whether priorities hold, and what
//! calls cost.
//!
//! An experiment runs the real thing, describes the machine ([`Environment`]) and reports what it
//! found, for people and for programs. [`demo`] runs a server and clients, and measures each call
//! ([`Record`], [`Comparison`]); [`demux`] measures, within one process, what it costs to find the
//! target of a request; [`doctor`] looks for what costs latency on the machine, and how to mend it.

pub mod demo;
pub mod demux;
pub mod doctor;

mod comparison;
mod environment;
mod idl;
mod progress;
mod report;
mod series;
mod stats;
mod units;

pub use comparison::{Comparison, Figures, Phase, Setup};
pub use environment::Environment;
pub use report::{PlotError, ReportError, html, text_table, write_html};
pub use series::Point;
pub use stats::{Record, Summary};
