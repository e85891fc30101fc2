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
    let result = if path.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        fs::write(&unfinished, "").and_then(|()| fs::remove_file(&unfinished))
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

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1d2126; --soft: #59626d; --line: #d8dde3; --page: #fff;
  --card: #f6f7f9; --note: #fff3d6; --good: #1a7f4b; --bad: #c4421a; --c0: #2478b5; --c1: #d9622b;
  --c2: #23916a; --c3: #b04a92; --c4: #a67c0c; --c5: #7a5cc9; --c6: #80695a; --c7: #c93a4b; --c8: #8a939d; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7ea; --soft: #9aa4af; --line: #343b43; --page: #15181c; --card: #1d2126;
    --note: #3b3013; --good: #5fc48f; --bad: #f08a5d; --c0: #5aa9e0; --c1: #ee8650; --c2: #4cc199;
    --c3: #d97fc0; --c4: #d9b13f; --c5: #a892ec; --c6: #b39d8e; --c7: #ee6f7d; --c8: #8a939d; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.2rem; line-height: 1.35; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .25rem; }
h1, h2, h3, p { overflow-wrap: anywhere; }
p { max-width: 46rem; }
a { color: var(--c0); }
.lead { font-size: 1.1rem; }
.caveat { background: var(--note); padding: .6rem .9rem; border-radius: .4rem; max-width: none; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: left; font-weight: normal; }
table:not(.figures) th { color: var(--soft); vertical-align: top; }
table.figures { width: 100%; margin: 1.25rem 0; font-size: .92rem; }
table.figures td, table.figures th { padding: .3rem .5rem; white-space: nowrap; }
table.figures td:not(:first-child), table.figures th:not(:first-child) { text-align: right; }
table.figures thead th { color: var(--soft); vertical-align: bottom; white-space: normal; }
table.figures th:first-child { font-weight: 600; color: var(--text); }
table.figures tbody th { padding-top: .8rem; }
td pre { margin: .3rem 0; padding: .4rem .8rem; }
figure { margin: 1.5rem 0; }
figure svg { display: block; width: 100%; min-width: 34rem; height: auto; font-size: 12px; }
figcaption { color: var(--soft); font-size: .95rem; max-width: 46rem; margin-top: .4rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; margin: 0 0 .5rem; padding: 0; font-size: .92rem; }
.legend i { display: inline-block; width: 1.4rem; margin-right: .45rem; vertical-align: .25em; border-top: .3rem solid; }
.legend i.dashed { border-top-style: dashed; }
svg text { fill: var(--text); text-anchor: middle; }
svg text.end { text-anchor: end; }
svg text.name { fill: var(--soft); }
svg text.name:not(.end) { text-anchor: start; }
svg text.part { fill: var(--page); font-weight: 600; }
svg .axes path { stroke: var(--line); }
svg polyline, svg path { fill: none; stroke: currentColor; stroke-width: 2.5; }
svg .axes path { stroke-width: 1; }
svg path.range { stroke-width: 5; opacity: .45; }
svg circle, svg rect { fill: currentColor; }
svg circle.ring { fill: none; stroke: var(--text); stroke-width: 1.5; }
svg circle.dot { opacity: .65; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.c8 { color: var(--c8); }
.score { display: flex; flex-wrap: wrap; gap: .4rem; margin: .5rem 0; }
.verdict { border: 1px solid; border-radius: 1rem; padding: 0 .6rem; font-size: .85rem; white-space: nowrap; color: var(--soft); }
.verdict.reproduced, .verdict.met { color: var(--good); }
.verdict.missed { color: var(--bad); font-weight: 600; }
.claims { list-style: none; padding: 0; margin: 1rem 0; }
.claims li { display: grid; grid-template-columns: 7.5rem 1fr; gap: 0 .8rem; padding: .5rem 0; border-bottom: 1px solid var(--line); }
.claims .verdict { justify-self: start; align-self: start; margin-top: .1rem; }
.claims small { display: block; color: var(--soft); font-size: .9rem; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: .8rem; margin: 1rem 0; }
.tiles article { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .9rem; }
.tiles h3 { margin: 0; }
.tiles p { margin: .35rem 0; font-size: .93rem; }
.tiles small { color: var(--soft); }
nav ol { columns: 22rem; column-gap: 2rem; padding-left: 1.4rem; font-size: .95rem; }
nav li { break-inside: avoid; }
pre { border: 1px solid var(--line); border-radius: .4rem; padding: .75rem 1rem; overflow-x: auto; }
@media (max-width: 34rem) {
  main { padding: 1.2rem .9rem 3rem; }
  h1 { font-size: 1.35rem; }
  .claims li { display: block; }
  .claims .verdict { display: inline-block; margin-bottom: .25rem; }
}
";

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
