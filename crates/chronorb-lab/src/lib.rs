//! The laboratory of chronorb: experiments that show whether priorities hold.
//!
//! An experiment runs real processes, measures each call ([`Record`]), describes the machine
//! ([`Environment`]) and reports what it found, for people ([`text_table`], [`html`]) and for programs
//! ([`Figures`]). The first one is [`demo`].

pub mod demo;

mod comparison;
mod environment;
mod idl;
mod report;
mod series;
mod stats;
mod units;

pub use comparison::{Comparison, Figures, Phase, Setup};
pub use environment::Environment;
pub use report::{PlotError, ReportError, html, text_table, write_html};
pub use series::Point;
pub use stats::{Record, Summary};
