//! The report: a page with plots and a table for each setting.

use std::fmt::Write;

use super::case::{Setting, Way};
use super::outcome::{Outcome, P50, P99, places};
use super::plot::by_way;
use super::table::{COLUMNS, RANGE, lines, notes};
use crate::claim;
use crate::experiment::Findings;
use crate::report::{PlotError, document, environment_table, escape};

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut body = format!("<p class=\"lead\">{LEAD}</p>\n");
    for caveat in outcome.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    body.push_str(&claim::table(&outcome.claims()));
    for (title, quantile) in [("The median", P50), ("The tail: p99", P99)] {
        let _ = write!(
            body,
            "<h2>{title}</h2>\n<figure>{}\n<figcaption>{title} of each way by that of blocking recv in \
             the same round: dots are medians over the rounds, bars reach from the least to the \
             greatest. No idle connections. s: spinning, u: io_uring.</figcaption>\n</figure>\n",
            by_way(outcome, quantile)?,
        );
    }
    for setting in outcome.settings() {
        let _ = write!(
            body,
            "<h2>{}</h2>\n{}\n",
            escape(&setting.name()),
            table(outcome, setting)
        );
    }
    body.push_str("<h2>How it was measured</h2>\n");
    for note in notes(outcome) {
        let _ = writeln!(body, "<p>{}</p>", escape(&note));
    }
    let _ = write!(
        body,
        "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>cargo run --release -- lab waits\n\
         cargo run --release -- lab waits --json</pre>\n",
        environment_table(&outcome.environment)
    );
    Ok(document(&headline(outcome), &body))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let ratios = |way| {
        let medians = places().filter_map(|place| outcome.by_blocking(place, way));
        let medians: Vec<f64> = medians.map(|ratio| ratio.median).collect();
        let ends = |pick: fn(f64, f64) -> f64| medians.iter().copied().reduce(pick);
        ends(f64::min).zip(ends(f64::max))
    };
    let told = |name: &str, way| {
        ratios(way).map(|(least, most)| format!("{name} {least:.2} to {most:.2}"))
    };
    let edge = told("edge-triggered epoll takes", Way::EdgeTriggered);
    let Some(edge) = edge else {
        return "Ways to wait for a request".to_owned();
    };
    let ring = told(", io_uring", Way::Ring).unwrap_or_default();
    format!("Ways to wait for a request: {edge}{ring} of what blocking recv takes")
}

fn table(outcome: &Outcome, setting: Setting) -> String {
    let mut text =
        String::from("<div class=\"wide\"><table class=\"figures\">\n<thead><tr><th></th>");
    for head in COLUMNS.into_iter().chain([RANGE]) {
        let _ = write!(text, "<th>{head}</th>");
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for (way, cells) in lines(outcome, setting) {
        let _ = write!(text, "<tr><td>{}</td>", escape(way.name()));
        for cell in cells {
            let _ = write!(text, "<td>{}</td>", escape(&cell));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>");
    text
}

const LEAD: &str = "A thread of a server waits for the next request, receives it, and replies. Each way \
                    to wait was measured on raw sockets beside the plainest: a thread that blocks in \
                    recv on one connection.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&outcome()).unwrap();
        assert!(page.contains(
            "<title>Ways to wait for a request: edge-triggered epoll takes 1.04 to 1.04, io_uring 0.90 to 0.90 \
             of what blocking recv takes</title>"
        ));
        assert_eq!(page.matches("<svg").count(), 2);
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(!page.contains("class=\"missed\"") && !page.contains("class=\"caveat\""));
        assert!(page.ends_with("</html>\n"));
    }

    #[test]
    fn an_experiment_without_any_figure_can_be_told() {
        let mut outcome = outcome();
        outcome.rows.clear();
        assert!(html(&outcome).unwrap().contains("NOT MEASURED"));
    }
}
