//! The report: a page with tables, plots and verdicts.

use std::fmt::Write;

use super::outcome::Outcome;
use super::plot::{Kind, bars};
use super::table::{rate, raw, telling};
use super::trial::{System, Trial};
use crate::report::{PlotError, escape, figure};

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut sections = String::new();
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
        let _ = writeln!(sections, "<h2>{}</h2>", escape(&finding(outcome, trial)));
        sections.push_str(&figure(&bars(outcome, kind)?, caption));
    }
    Ok(telling(outcome).html(&headline(outcome), &sections))
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
    use super::*;
    use crate::experiment::Findings;

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
        assert!(outcome.text().contains("NOT MEASURED"));
    }

    #[test]
    fn data_is_told_in_octets() {
        let text = outcome().text();
        assert!(text.contains("95\u{a0}000 MiB/s"), "{text}");
    }
}
