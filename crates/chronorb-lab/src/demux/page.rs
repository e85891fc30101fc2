//! The report: a page with a table and a plot for each stage.

use std::fmt::Write;

use super::outcome::{Outcome, Stage};
use super::plot::by_entries;
use super::table::{StageTable, notes, scale};
use crate::claim;
use crate::experiment::Findings;
use crate::report::{PlotError, document, environment_table, escape};
use crate::units;

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut body = format!("<p class=\"lead\">{LEAD}</p>\n");
    for caveat in outcome.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    body.push_str(&claim::table(&outcome.claims()));
    for stage in Stage::ALL {
        let _ = write!(
            body,
            "<h2>{}</h2>\n{}\n<figure>{}\n<figcaption>The median for one, in ns, by the number of {}. \
             The slides of 1999 give {}.</figcaption>\n</figure>\n",
            escape(stage.title()),
            stage_table(outcome, stage),
            by_entries(outcome, stage)?,
            escape(stage.entries()),
            units::time(stage.published_ns() / 1e3),
        );
    }
    body.push_str("<h2>Very many objects and POAs</h2>\n");
    paragraphs(&mut body, &scale(outcome));
    body.push_str("<h2>How it was measured</h2>\n");
    paragraphs(&mut body, &notes(outcome));
    let _ = write!(
        body,
        "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>cargo run --release -- lab demux\n\
         cargo run --release -- lab demux --json</pre>\n",
        environment_table(&outcome.environment)
    );
    Ok(document(&headline(outcome), &body))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let rows = outcome.series(Stage::Total, "active");
    let ends = rows.first().zip(rows.last());
    let Some((first, last)) = ends else {
        return "From a request's octets to its skeleton".to_owned();
    };
    format!(
        "From a request's octets to its skeleton: {:.0} ns with {} object, {:.0} ns with {}",
        first.p50_ns,
        units::count(first.entries.into()),
        last.p50_ns,
        units::count(last.entries.into()),
    )
}

fn stage_table(outcome: &Outcome, stage: Stage) -> String {
    let table = StageTable::new(outcome, stage);
    let mut text =
        String::from("<div class=\"wide\"><table class=\"figures\">\n<thead><tr><th></th>");
    for size in &table.sizes {
        let _ = write!(text, "<th>{}</th>", units::count((*size).into()));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for (name, cells) in &table.lines {
        let _ = write!(text, "<tr><td>{}</td>", escape(name));
        for cell in cells {
            let _ = write!(text, "<td>{}</td>", escape(cell.as_deref().unwrap_or("")));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>");
    text
}

fn paragraphs(text: &mut String, paragraphs: &[String]) {
    for paragraph in paragraphs {
        let _ = writeln!(text, "<p>{}</p>", escape(paragraph));
    }
}

const LEAD: &str = "An ORB has to find, for each request, the POA, the servant and the operation that it \
                    names. Each stage was measured for one entry and for many, by each strategy: median \
                    and 99th percentile, in nanoseconds for one request.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&outcome()).unwrap();
        assert!(page.contains(
            "<title>From a request&#x27;s octets to its skeleton: 100 ns with 1 object, 140 ns with 10\u{a0}000</title>"
        ));
        assert_eq!(page.matches("<svg").count(), Stage::ALL.len());
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("prefers-color-scheme: dark"));
        assert!(page.ends_with("</html>\n"));
    }

    #[test]
    fn a_claim_that_was_missed_stands_out() {
        let mut outcome = outcome();
        assert!(!html(&outcome).unwrap().contains("class=\"missed\""));
        for row in &mut outcome.rows {
            row.p50_ns *= 2.0;
        }
        assert!(
            html(&outcome)
                .unwrap()
                .contains("<td class=\"missed\">MISSED</td>")
        );
    }
}
