//! Tables whose columns are figures of one kind of row.

use chronorb_report::Table;

/// A column: its heading, and the cell of a row.
pub(crate) type Column<R> = (&'static str, fn(&R) -> String);

/// Returns a table with a line for each row: its label, and a cell for each column.
pub(crate) fn by_columns<'a, R: 'a, const N: usize>(
    heading: impl Into<String>,
    rows: impl IntoIterator<Item = &'a R>,
    label: impl Fn(&R) -> String,
    columns: [Column<R>; N],
) -> Table {
    let lines = rows.into_iter().map(|row| {
        let cells = columns.iter().map(|(_, cell)| cell(row));
        (label(row), cells.collect())
    });
    Table::new(heading, columns.map(|(heading, _)| heading), lines)
}
