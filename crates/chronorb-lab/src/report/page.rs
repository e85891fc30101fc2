//! The report of a comparison.

use std::fmt::Write;
use std::path::Path;

use super::plot::{latency_by_percentile, latency_over_time};
use super::table::{COLUMNS, rows};
use super::{ReportError, document, environment_table, escape, write_page};
use crate::comparison::{Comparison, Setup};
use crate::units;
use chronorb_report::canvas::PlotError;

/// Writes the report to `path`, whole or not at all.
///
/// # Errors
///
/// See [`ReportError`].
pub fn write_html(comparison: &Comparison, path: &Path) -> Result<(), ReportError> {
    write_page(&html(comparison)?, path)
}

/// The report as one HTML page, for light and dark screens, without anything from the network.
///
/// # Errors
///
/// [`PlotError`] when a plot cannot be drawn.
pub fn html(comparison: &Comparison) -> Result<String, PlotError> {
    let meaning = comparison.meaning();
    let meaning = escape(&meaning);
    let caveats: String = comparison
        .caveats()
        .iter()
        .map(|caveat| format!("<p class=\"caveat\">{}</p>\n", escape(caveat)))
        .collect();
    let figures = figure_table(comparison);
    let percentiles = latency_by_percentile(comparison)?;
    let course = latency_over_time(comparison)?;
    let method = method(&comparison.setup, comparison.real_time);
    let environment = environment_table(&comparison.environment);
    let body = format!(
        r#"<p class="lead">{meaning}</p>
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
"#
    );
    Ok(document(&comparison.headline(), &body))
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::check_writable;
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
            page.contains("&lt;script&gt;alert(&#x27;1&#x27;) &amp; &quot;2&quot;&lt;/script&gt;")
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
