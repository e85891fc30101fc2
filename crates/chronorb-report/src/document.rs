//! A report: one HTML page that needs nothing else.

use std::borrow::Cow;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use html_escape::encode_quoted_attribute;
use thiserror::Error;

use crate::canvas::PlotError;

/// The report could not be written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A plot could not be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// Nobody has named a place for the report, and the user has no folder for it.
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
pub fn escape(text: &str) -> Cow<'_, str> {
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
            // It may not even exist; the error that counts is the first.
            let _ = fs::remove_file(&unfinished);
            write_error(path, source)
        })
}

/// Finds out whether a report can be written to `path`, before somebody waits for its figures.
///
/// # Errors
///
/// [`ReportError::Write`] if it cannot.
pub fn check_writable(path: &Path) -> Result<(), ReportError> {
    let unfinished = unfinished(path);
    let result = match path.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => fs::write(&unfinished, "").and_then(|()| fs::remove_file(&unfinished)),
    };
    result.map_err(|source| write_error(path, source))
}

/// Where a report is written before it takes its place.
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

/// A page for light and dark screens, without anything from the network. `body` is HTML.
#[must_use]
pub fn document(headline: &str, body: &str) -> String {
    let headline = escape(headline);
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{headline}</title>
<style>{STYLE}</style>
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

/// Formats names and values as a table.
#[must_use]
pub fn pairs(rows: &[(&str, String)]) -> String {
    let mut text = String::from("<table>\n");
    for (name, value) in rows {
        let _ = writeln!(
            text,
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(name),
            escape(value)
        );
    }
    text.push_str("</table>");
    text
}

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1d2126; --soft: #59626d; --line: #d8dde3; --page: #fff; --note: #fff3d6; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7ea; --soft: #9aa4af; --line: #343b43; --page: #15181c; --note: #3b3013; }
}
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
.lead { font-size: 1.1rem; max-width: 46rem; }
.caveat { background: var(--note); padding: .6rem .9rem; border-radius: .4rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: left; font-weight: normal; white-space: nowrap; }
table.figures { width: 100%; margin: 1.5rem 0; font-size: .92rem; }
table.figures td, table.figures th { padding: .3rem .5rem; }
table.figures td:not(:first-child), table.figures thead th { text-align: right; }
table.figures thead th, table:not(.figures) th { color: var(--soft); }
table.figures tbody th { font-weight: 600; padding-top: 1rem; }
td.missed { font-weight: 600; color: #d9622b; }
table:not(.figures) td { white-space: normal; }
table.findings td, table.findings th { vertical-align: top; }
table.findings th { width: 10rem; }
table.findings pre { margin: .3rem 0; padding: .4rem .8rem; }
figure { margin: 2rem 0; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .95rem; }
pre { border: 1px solid var(--line); border-radius: .4rem; padding: .75rem 1rem; overflow-x: auto; }
";
