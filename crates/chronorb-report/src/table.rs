//! Tables of figures, as text and as HTML.

use std::fmt::Write;

use crate::page::escape;
use crate::units;

/// Lines of figures under a heading.
#[derive(Clone, Debug)]
pub struct Table {
    /// The heading of the first column.
    pub heading: String,
    /// The headings of the other columns.
    pub columns: Vec<String>,
    /// Each with its name and its cells.
    pub lines: Vec<(String, Vec<String>)>,
}

impl Table {
    /// A table with lines of cells. A line without cells is a heading of those below it.
    pub fn new<'a>(
        heading: impl Into<String>,
        columns: impl IntoIterator<Item = &'a str>,
        lines: impl IntoIterator<Item = (String, Vec<String>)>,
    ) -> Self {
        Self {
            heading: heading.into(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            lines: lines.into_iter().collect(),
        }
    }

    /// Renders the table as text.
    #[must_use]
    pub fn text(&self) -> String {
        let figures = || self.lines.iter().filter(|(_, cells)| !cells.is_empty());
        let names = figures().map(|(name, _)| width(name) + 2);
        let first = names.chain([width(&self.heading)]).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = figures().filter_map(|(_, cells)| cells.get(column));
                let cells = cells.chain([&self.columns[column]]);
                cells.map(|cell| width(cell)).max().unwrap_or(0) + 2
            })
            .collect();
        let mut text = line(&self.heading, first, &self.columns, &widths);
        for (name, cells) in &self.lines {
            if cells.is_empty() {
                text.push_str(&format!("{name}\n"))
            } else {
                text.push_str(&line(&format!("  {name}"), first, cells, &widths))
            }
        }
        text
    }

    /// Renders the table as HTML, in a box of its own where it is wide.
    #[must_use]
    pub fn html(&self) -> String {
        let mut text = String::from("<div class=\"wide\"><table class=\"figures\">\n<thead><tr>");
        for heading in [&self.heading].into_iter().chain(&self.columns) {
            let _ = write!(text, "<th>{}</th>", escape(heading));
        }
        text.push_str("</tr></thead>\n<tbody>\n");
        for (name, cells) in &self.lines {
            let name = escape(name);
            if cells.is_empty() {
                let span = self.columns.len() + 1;
                let _ = writeln!(text, "<tr><th colspan=\"{span}\">{name}</th></tr>");
                continue;
            }
            let _ = write!(text, "<tr><td>{name}</td>");
            for cell in cells {
                let _ = write!(text, "<td>{}</td>", escape(cell));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody></table></div>\n");
        text
    }
}

/// The cells of a number of calls and times in µs.
#[must_use]
pub fn counted<const N: usize>(calls: u64, times: [f64; N]) -> Vec<String> {
    let times = times.map(units::time);
    [units::count(calls)].into_iter().chain(times).collect()
}

fn line(name: &str, first: usize, cells: &[String], widths: &[usize]) -> String {
    let mut text = format!("{name:first$}");
    for (cell, width) in cells.iter().zip(widths) {
        let _ = write!(text, "{cell:>width$}");
    }
    text.push('\n');
    text
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            heading: "Calls, <unpinned>".to_owned(),
            columns: vec!["p50".to_owned(), "longest of all".to_owned()],
            lines: vec![
                (
                    "raw".to_owned(),
                    vec!["9.1 µs".to_owned(), "1 ms".to_owned()],
                ),
                (
                    "a name that is longer than the heading".to_owned(),
                    vec!["10.25 µs".to_owned(), String::new()],
                ),
            ],
        }
    }

    #[test]
    fn columns_line_up() {
        let text = table().text();
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths.len(), 3);
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }

    #[test]
    fn names_cannot_become_markup() {
        let html = table().html();
        assert!(html.contains("Calls, &lt;unpinned&gt;"), "{html}");
    }
}
