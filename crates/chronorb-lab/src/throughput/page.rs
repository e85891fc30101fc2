//! The report: a page with tables, plots and verdicts.

use std::fmt::Write;

use super::outcome::Outcome;
use super::plot::{Kind, bars};
use super::table::{LEAD, notes, rate, raw, tables};
use super::trial::{System, Trial};
use crate::claim;
use crate::contest::table::figure;
use crate::experiment::Findings;
use crate::report::{PlotError, document, environment_table, escape};

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut body = format!("<p class=\"lead\">{LEAD}</p>\n");
    for caveat in outcome.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    body.push_str(&claim::table(&outcome.claims()));
    for (kind, trial, caption) in [
        (
            Kind::Calls,
            CALLS,
            "Small calls in a second, of all clients together: medians of the rounds.",
        ),
        (
            Kind::Data,
            DATA,
            "Data that goes each way in a second: medians of the rounds.",
        ),
    ] {
        let _ = writeln!(body, "<h2>{}</h2>", escape(&finding(outcome, trial)));
        body.push_str(&figure(&bars(outcome, kind)?, caption));
    }
    body.push_str("<h2>The figures</h2>\n");
    for table in tables(outcome) {
        body.push_str(&table.html());
    }
    body.push_str("<h2>How it was measured</h2>\n");
    for note in notes(outcome) {
        let _ = writeln!(body, "<p>{}</p>", escape(&note));
    }
    let _ = write!(
        body,
        "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>cargo run --release -- lab throughput</pre>\n",
        environment_table(&outcome.environment)
    );
    Ok(document(&headline(outcome), &body))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    finding(outcome, CALLS)
}

/// What a trial shows.
fn finding(outcome: &Outcome, trial: Trial) -> String {
    let placement = trial.placements()[0];
    let told = || {
        let median = outcome.rate(trial, placement, System::Chronorb)?;
        let ratio = outcome.ratio(trial, placement, System::Chronorb, raw(trial))?;
        Some(format!(
            "{}, {}: {} on chronorb, {ratio:.2} of {}",
            trial.name(),
            placement.name(),
            rate(trial, median),
            raw(trial).name(),
        ))
    };
    told().unwrap_or_else(|| format!("{}: not measured", trial.name()))
}

const CALLS: Trial = Trial::ALL[2];
const DATA: Trial = Trial::ALL[3];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::super::table::text;
    use super::*;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&outcome()).unwrap();
        let title =
            "<title>16 clients, unpinned: 95\u{a0}000/s on chronorb, 0.95 of raw epoll, 1 thread";
        assert!(page.contains(title), "{page}");
        assert_eq!(page.matches("<svg").count(), 2);
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(!page.contains("class=\"missed\""));
    }

    #[test]
    fn an_experiment_without_any_row_can_be_told() {
        let mut outcome = outcome();
        outcome.rows.clear();
        assert!(html(&outcome).unwrap().contains("not measured"));
        assert!(text(&outcome).contains("NOT MEASURED"));
    }

    #[test]
    fn data_is_told_in_octets() {
        let text = text(&outcome());
        assert!(text.contains("95\u{a0}000 MiB/s"), "{text}");
    }
}
