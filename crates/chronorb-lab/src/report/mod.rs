//! What an outcome looks like to people: a table for terminals and a page with plots.

pub(crate) mod canvas;
mod document;
mod figures;
pub(crate) mod folder;
mod lines;
mod page;
pub(crate) mod plot;
mod scale;
mod table;
mod telling;

pub use canvas::PlotError;
pub use document::ReportError;
pub(crate) use document::{check_writable, document, environment_table, escape, write_page};
pub(crate) use figures::{Table, figure};
pub(crate) use lines::{COLOURS, Line, lines, lines_with_legend};
pub use page::{html, write_html};
pub(crate) use plot::{LATENCY, course};
pub(crate) use scale::Scale;
pub use table::text_table;
pub(crate) use telling::Telling;
