//! What a comparison looks like to people: a table for terminals and a page with plots.

mod page;
mod plot;
mod table;

pub(crate) use page::check_writable;
pub use page::{ReportError, html, write_html};
pub use plot::PlotError;
pub use table::text_table;
