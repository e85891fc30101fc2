//! Tables of figures, as text and as HTML.

use std::fmt::Write;

use crate::document::escape;

/// Lines of figures under a heading.
#[derive(Clone, Debug)]
pub struct Table {
    /// The heading of the first column.
    pub heading: String,
    /// The headings of the other columns.
    pub columns: Vec<String>,
    /// Each with its name, and what stands in the columns.
    pub lines: Vec<(String, Vec<String>)>,
}

impl Table {
    /// For a terminal.
    pub fn text(&self) -> String {
        let names = self.lines.iter().map(|(name, _)| width(name) + 2);
        let first = names.chain([width(&self.heading)]).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.lines.iter().filter_map(|(_, cells)| cells.get(column));
                let cells = cells.chain([&self.columns[column]]);
                cells.map(|cell| width(cell)).max().unwrap_or(0) + 2
            })
            .collect();
        let mut text = line(&self.heading, first, &self.columns, &widths);
        for (name, cells) in &self.lines {
            text.push_str(&line(&format!("  {name}"), first, cells, &widths));
        }
        text
    }

    /// For a page.
    pub fn html(&self) -> String {
        let mut text =
            String::from("<div class=\"wide\"><table class=\"figures\">\n<thead><tr><th></th>");
        for column in &self.columns {
            let _ = write!(text, "<th>{}</th>", escape(column));
        }
        let _ = writeln!(
            text,
            "</tr></thead>\n<tbody><tr><th colspan=\"{}\">{}</th></tr>",
            self.columns.len() + 1,
            escape(&self.heading)
        );
        for (name, cells) in &self.lines {
            let _ = write!(text, "<tr><td>{}</td>", escape(name));
            for cell in cells {
                let _ = write!(text, "<td>{}</td>", escape(cell));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody></table></div>\n");
        text
    }
}

/// A plot of a page, and what it says.
pub fn figure(svg: &str, caption: &str) -> String {
    let caption = escape(caption);
    format!("<figure>{svg}\n<figcaption>{caption}</figcaption>\n</figure>\n")
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
