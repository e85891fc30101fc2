//! The architectures' part of the report.

use std::fmt::Write;
use std::ops::Range;

use super::outcome::ArchitectureRow;
use super::plot;
use super::table::{COLUMNS, COUNTS, by_architecture, cells, lead, per_call};
use crate::report::{PlotError, escape};

/// The part of the page: plots and tables.
pub(in super::super) fn section(rows: &[ArchitectureRow]) -> Result<String, PlotError> {
    let mut text = format!(
        "<h2>Ten clients, by architecture</h2>\n<p>{}</p>\n",
        escape(&lead(rows))
    );
    let figures = [
        (
            plot::lock_operations(rows)?,
            "User-level lock operations (lock and unlock) for each request, at client and server, beside those of the \
             ORBs of 1998 (figure 13 of the paper). None is a bar of no height.",
        ),
        (
            plot::futex_calls(rows)?,
            "Calls of the kernel for locks, waits and wake-ups between threads (futex) for each request (figure 14 of \
             the paper, which gives no numbers).",
        ),
        (
            plot::shares(rows)?,
            "What processor time is spent on (figures 9 to 12 of the paper).",
        ),
    ];
    for (svg, caption) in figures {
        let _ = write!(
            text,
            "<figure>{svg}\n<figcaption>{caption}</figcaption>\n</figure>\n"
        );
    }
    text.push_str(&table(rows, 0..COUNTS));
    text.push_str(&table(rows, COUNTS..COLUMNS.len()));
    text.push_str("<div class=\"wide\"><table>\n");
    for row in rows {
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(row.configuration.title),
            row.side.name(),
            escape(&per_call(row)),
        );
    }
    text.push_str("</table></div>\n");
    Ok(text)
}

/// Some of the columns.
fn table(rows: &[ArchitectureRow], columns: Range<usize>) -> String {
    let mut text =
        String::from("<div class=\"wide\"><table class=\"figures\">\n<thead><tr><th></th>");
    for column in &COLUMNS[columns.clone()] {
        let _ = write!(text, "<th>{column}</th>");
    }
    text.push_str("</tr></thead>\n");
    for sides in by_architecture(rows) {
        let _ = writeln!(
            text,
            "<tbody><tr><th colspan=\"{}\">{}</th></tr>",
            columns.len() + 1,
            escape(&sides[0].configuration.long_title())
        );
        for row in sides {
            let _ = write!(text, "<tr><td>{}</td>", row.side.name());
            for cell in &cells(row)[columns.clone()] {
                let _ = write!(text, "<td>{}</td>", escape(&cell));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody>\n");
    }
    text.push_str("</table></div>\n");
    text
}
