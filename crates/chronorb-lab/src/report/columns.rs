//! Tables that are described by their columns.

use std::borrow::Borrow;

use chronorb_report::Table;

/// A column of a table: its heading, and its cell for the subject of a line.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// Returns a table with a line for each subject; a line without one has its name alone.
pub(crate) fn table_of<T, S: Borrow<T>>(
    heading: impl Into<String>,
    columns: &[Column<T>],
    lines: impl IntoIterator<Item = (String, Option<S>)>,
) -> Table {
    let lines = lines.into_iter().map(|(name, subject)| {
        let cells = columns.iter();
        let cells = subject.map(|of| cells.map(|(_, cell)| cell(of.borrow())).collect());
        (name, cells.unwrap_or_default())
    });
    Table::new(heading, columns.iter().map(|(name, _)| *name), lines)
}

/// Returns a table with a line for each row: its label, and a cell for each column.
pub(crate) fn by_columns<'a, R: 'a, const N: usize>(
    heading: impl Into<String>,
    rows: impl IntoIterator<Item = &'a R>,
    label: impl Fn(&R) -> String,
    columns: [Column<R>; N],
) -> Table {
    let lines = rows.into_iter().map(|row| (label(row), Some(row)));
    table_of(heading, &columns, lines)
}
