//! One HTML page that needs nothing else, and its file.

use std::borrow::Cow;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use html_escape::encode_quoted_attribute;
use thiserror::Error;

/// The report could not be written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// No place for the report was given, and the user has no folder for it.
    #[error(
        "there is no folder for reports: neither XDG_STATE_HOME nor HOME is an absolute path; \
         name a place by --report FILE, or --out DIR for all experiments"
    )]
    NoFolder,
    /// The folder for reports could not be made.
    #[error(
        "the folder {path} cannot be made: {source}; name another place by --report FILE, or \
         --out DIR for all experiments"
    )]
    Folder {
        /// The folder.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file could not be written: the folder is missing, or not writable, or the disk is full.
    #[error("the report cannot be written to {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// Escapes text for HTML elements and quoted attributes.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    encode_quoted_attribute(text)
}

/// Writes a page to `path`, whole or not at all.
///
/// # Errors
///
/// [`ReportError::Write`] if the file cannot be written.
pub fn write_page(page: &str, path: &Path) -> Result<(), ReportError> {
    let unfinished = unfinished(path);
    fs::write(&unfinished, page)
        .and_then(|()| fs::rename(&unfinished, path))
        .map_err(|source| {
            // The file may not exist; only the first error matters.
            let _ = fs::remove_file(&unfinished);
            write_error(path, source)
        })
}

/// Checks that a report can be written to `path`, before its figures are measured.
///
/// # Errors
///
/// [`ReportError::Write`] if it cannot.
pub fn check_writable(path: &Path) -> Result<(), ReportError> {
    let unfinished = unfinished(path);
    let result = if path.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        fs::write(&unfinished, "").and_then(|()| fs::remove_file(&unfinished))
    };
    result.map_err(|source| write_error(path, source))
}

/// Returns the file to which a report is written before it is renamed.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn write_error(path: &Path, source: io::Error) -> ReportError {
    ReportError::Write {
        path: path.display().to_string(),
        source,
    }
}

/// Renders a page for light and dark screens, without anything from the network. `body` is HTML.
pub(crate) fn document(headline: &str, body: &str) -> String {
    let headline = escape(headline);
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{headline}</title>
<style>
{STYLE}</style>
</head>
<body>
<main>
<h1>{headline}</h1>
{body}</main>
</body>
</html>
"#
    )
}

/// Formats names and values as a table. Lines of a value that begin with two spaces are listings.
pub(crate) fn pairs(rows: &[(&str, String)]) -> String {
    let mut text = String::from("<table>\n");
    for (name, value) in rows {
        let _ = writeln!(
            text,
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(name),
            value_html(value)
        );
    }
    text.push_str("</table>");
    text
}

/// Formats a value with its line breaks and listings.
fn value_html(value: &str) -> String {
    let mut html = String::new();
    let mut was_listing = None;
    for line in value.lines() {
        let listing = line.strip_prefix("  ");
        html.push_str(match (was_listing, listing.is_some()) {
            (None | Some(false), true) => "<pre>",
            (Some(true), true) => "\n",
            (Some(true), false) => "</pre>",
            (Some(false), false) => "<br>",
            (None, false) => "",
        });
        html.push_str(&escape(listing.unwrap_or(line)));
        was_listing = Some(listing.is_some());
    }
    if was_listing == Some(true) {
        html.push_str("</pre>");
    }
    html
}

const STYLE: &str = include_str!("page.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_stand_apart_and_nothing_becomes_markup() {
        let html = value_html("<b>\none:\n  a > b\n  c\nor two:\n  d");
        let expected = "&lt;b&gt;<br>one:<pre>a &gt; b\nc</pre>or two:<pre>d</pre>";
        assert_eq!(html, expected);
        assert_eq!(value_html(""), "");
    }
}
