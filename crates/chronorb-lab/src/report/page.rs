//! The report: one HTML page that needs nothing else.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::plot::{PlotError, latency_by_percentile, latency_over_time};
use super::table::{COLUMNS, rows};
use crate::comparison::{Comparison, Setup};
use crate::units;

/// The report could not be written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A plot could not be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// The file could not be written: the folder is missing, or not writable, or the disk is full.
    #[error("the report cannot be written to {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// Writes the report to `path`, whole or not at all.
///
/// # Errors
///
/// See [`ReportError`].
pub fn write_html(comparison: &Comparison, path: &Path) -> Result<(), ReportError> {
    let page = html(comparison)?;
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
pub(crate) fn check_writable(path: &Path) -> Result<(), ReportError> {
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

/// The report as one HTML page, for light and dark screens, without anything from the network.
///
/// # Errors
///
/// [`PlotError`] when a plot cannot be drawn.
pub fn html(comparison: &Comparison) -> Result<String, PlotError> {
    let headline = escape(&comparison.headline());
    let meaning = escape(&comparison.meaning());
    let caveats: String = comparison
        .caveats()
        .iter()
        .map(|caveat| format!("<p class=\"caveat\">{}</p>\n", escape(caveat)))
        .collect();
    let figures = figure_table(comparison);
    let percentiles = latency_by_percentile(comparison)?;
    let course = latency_over_time(comparison)?;
    let method = method(&comparison.setup, comparison.real_time);
    let environment = environment_table(comparison);
    Ok(format!(
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
<p class="lead">{meaning}</p>
{caveats}{figures}
<figure>{percentiles}
<figcaption>Latency by percentile. To the right each step is ten times rarer. A line ends at the longest call; the flatter it is, the more predictable the calls.</figcaption>
</figure>
<figure>{course}
<figcaption>Each call of the high-priority client, from the moment when it was due.</figcaption>
</figure>
<h2>How it was measured</h2>
{method}
<h2>Where</h2>
{environment}
<h2>To repeat it</h2>
<pre>cargo run --release
cargo run --release -- demo --json</pre>
</main>
</body>
</html>
"#
    ))
}

fn figure_table(comparison: &Comparison) -> String {
    let mut text =
        String::from("<div class=\"wide\"><table class=\"figures\">\n<thead><tr><th></th>");
    for column in COLUMNS {
        let _ = write!(text, "<th>{column}</th>");
    }
    text.push_str("</tr></thead>\n");
    for (phase, classes) in rows(comparison) {
        let _ = writeln!(
            text,
            "<tbody><tr><th colspan=\"{}\">{phase}</th></tr>",
            COLUMNS.len() + 1
        );
        for (class, cells) in classes {
            let _ = write!(text, "<tr><td>{}</td>", escape(&class));
            for cell in cells {
                let _ = write!(text, "<td>{}</td>", escape(&cell));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody>\n");
    }
    text.push_str("</table></div>");
    text
}

fn method(setup: &Setup, real_time: bool) -> String {
    let scheduling = if real_time {
        "The threads of the high class, in the client and in the server, run under SCHED_FIFO. Those of \
         the low class stay under SCHED_OTHER: work that saturates the processors does not belong into \
         SCHED_FIFO, where the kernel's throttling stops it, and whatever else is real-time with it."
    } else {
        "All threads run under SCHED_OTHER, since real-time priorities are not permitted: only the lanes \
         and connections are apart."
    };
    format!(
        "<ul>\n\
         <li>One server process, one high-priority client process and {clients} low-priority client \
         processes on this machine, over TCP. Each low-priority client has {per_client} threads; each \
         calls, waits for the answer and calls again, so the server is saturated.</li>\n\
         <li>A low-priority call makes the server compute for {low}, a high-priority call for {high}.</li>\n\
         <li>The high-priority client sends a call every {period}, at times fixed beforehand. Its latency \
         counts from the moment when the call was due, not from when it was sent: a call that had to wait \
         for the one before it is charged for the wait (no coordinated omission).</li>\n\
         <li>Without priorities: one pool of {threads} threads serves everyone; all threads run under \
         SCHED_OTHER.</li>\n\
         <li>With priorities: the same {threads} threads in two lanes, {low_lane} low and {high_lane} high, \
         each with its own connections; the client's priority goes with each request. {scheduling}</li>\n\
         <li>Each phase lasted {phase}. Jitter is the standard deviation. With fewer than 1000 calls, \
         p99.9 is the longest.</li>\n</ul>",
        clients = setup.low_clients,
        per_client = setup.threads_per_low_client,
        low = units::setting(setup.low_work),
        high = units::setting(setup.high_work),
        period = units::setting(setup.period),
        threads = setup.low_lane_threads + setup.high_lane_threads,
        low_lane = setup.low_lane_threads,
        high_lane = setup.high_lane_threads,
        phase = units::setting(setup.phase),
    )
}

fn environment_table(comparison: &Comparison) -> String {
    let mut text = String::from("<table>\n");
    for (name, value) in comparison.environment.rows() {
        let _ = writeln!(
            text,
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(name),
            escape(&value)
        );
    }
    text.push_str("</table>");
    text
}

/// Text as HTML, in elements and in quoted attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
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
table.figures { width: 100%; margin: 1.5rem 0; }
table.figures td:not(:first-child), table.figures thead th { text-align: right; }
table.figures thead th, table:not(.figures) th { color: var(--soft); }
table.figures tbody th { font-weight: 600; padding-top: 1rem; }
table:not(.figures) td { white-space: normal; }
figure { margin: 2rem 0; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .95rem; }
pre { border: 1px solid var(--line); border-radius: .4rem; padding: .75rem 1rem; overflow-x: auto; }
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::comparison;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&comparison(10_000, 100)).unwrap();
        assert!(page.contains("<title>High-priority p99: 13.0 ms without priorities, 130 µs with: 100 times lower</title>"));
        assert_eq!(page.matches("<svg").count(), 2);
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn a_report_is_written_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let comparison = comparison(10_000, 100);
        let path = folder.path().join("report.html");
        write_html(&comparison, &path).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            html(&comparison).unwrap()
        );

        let occupied = folder.path().join("folder.html");
        fs::create_dir(&occupied).unwrap();
        let error = write_html(&comparison, &occupied).unwrap_err();
        assert!(error.to_string().contains("folder.html"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_place_where_no_report_can_be_written_is_known_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        check_writable(&folder.path().join("report.html")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        for wrong in [
            folder.path().to_owned(),
            folder.path().join("missing/report.html"),
        ] {
            let error = check_writable(&wrong).unwrap_err();
            assert!(
                error.to_string().contains(&wrong.display().to_string()),
                "{error}"
            );
        }
    }

    #[test]
    fn what_the_machine_says_of_itself_cannot_become_markup() {
        let mut comparison = comparison(10_000, 100);
        comparison.environment.cpu = "<script>alert('1') & \"2\"</script>".to_owned();
        let page = html(&comparison).unwrap();
        assert!(!page.contains("<script"));
        assert!(
            page.contains("&lt;script&gt;alert(&#39;1&#39;) &amp; &quot;2&quot;&lt;/script&gt;")
        );
    }

    #[test]
    fn figures_that_are_not_real_time_are_marked() {
        let mut comparison = comparison(10_000, 100);
        assert!(!html(&comparison).unwrap().contains("not real-time"));
        comparison.real_time = false;
        assert!(html(&comparison).unwrap().contains("not real-time"));
    }
}
