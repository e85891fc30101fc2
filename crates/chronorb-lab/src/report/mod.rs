//! What an outcome looks like to people: a table for terminals and a page with plots.

pub(crate) mod folder;
mod page;
pub(crate) mod plot;
mod table;
mod telling;

pub(crate) use chronorb_report::canvas::LATENCY;
pub(crate) use chronorb_report::{
    COLOURS, Line, Scale, Table, canvas, check_writable, document, escape, figure, lines,
    lines_with_legend, write_page,
};
pub use chronorb_report::{PlotError, ReportError};
pub use page::{html, write_html};
pub use table::text_table;
pub(crate) use telling::Telling;

use crate::environment::Environment;

/// Where it was measured.
pub(crate) fn environment_table(environment: &Environment) -> String {
    chronorb_report::pairs(&environment.rows())
}
