//! The report: a page with tables, plots and verdicts.

use std::fmt::Write;

use super::Protocols;
use super::outcome::Outcome;
use super::plot;
use super::protocol::Protocol;
use super::system::System;
use super::table::telling;
use super::trial::Cell;
use crate::experiment::Experiment;
use crate::report::{PlotError, escape, figure};
use crate::units;

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut sections = String::new();
    for cell in plot::drawn(outcome) {
        let _ = writeln!(sections, "<h2>{}</h2>", escape(&finding(outcome, cell)));
        let what = cell.trial.noun();
        let bars = format!(
            "The median {what} of each protocol, with what the protocol stands on and with what is beside it."
        );
        sections.push_str(&figure(&plot::p50(outcome, cell)?, &bars));
        let curves = format!("{CURVES} {what}.");
        sections.push_str(&figure(&plot::by_percentile(outcome, cell)?, &curves));
    }
    Ok(telling(outcome).html(&headline(outcome), &sections))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let told = plot::drawn(outcome).into_iter().find_map(|cell| {
        let told: Vec<String> = giop(outcome, cell)
            .map(|(protocol, _, by_raw)| format!("{} {by_raw:.2}", protocol.scheme()))
            .collect();
        let (what, place) = (what(cell), cell.place());
        (!told.is_empty()).then(|| format!("{what}, {place}, by raw: {}", told.join(", ")))
    });
    told.unwrap_or_else(|| Protocols::TITLE.to_owned())
}

/// What the plots of a cell show.
fn finding(outcome: &Outcome, cell: Cell) -> String {
    let told: Vec<String> = giop(outcome, cell)
        .map(|(protocol, p50_us, by_raw)| {
            let (name, p50) = (protocol.scheme(), units::time(p50_us));
            format!("{name} {p50}, {by_raw:.2} of raw")
        })
        .collect();
    let what = what(cell);
    match told.is_empty() {
        true => format!("{what}, {}", cell.place()),
        false => format!("{what}, {}: {}", cell.place(), told.join("; ")),
    }
}

/// The p50 of each protocol with GIOP, in µs, and by raw.
fn giop(outcome: &Outcome, cell: Cell) -> impl Iterator<Item = (Protocol, f64, f64)> {
    Protocol::ALL.into_iter().filter_map(move |protocol| {
        let key = (protocol, System::Giop, cell);
        let p50_us = outcome.rounds(key)?.latency.p50_us;
        Some((protocol, p50_us, outcome.by_raw(key)?.ratio))
    })
}

const fn what(cell: Cell) -> &'static str {
    match cell.trial.is_oneway() {
        true => "A message without an answer",
        false => "A call",
    }
}

const CURVES: &str = "Latency by percentile, all rounds together; dashed what a protocol stands on. To the right each \
     step is ten times rarer; a line ends at the longest";

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use super::*;
    use crate::experiment::Findings;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&outcome()).unwrap();
        assert!(
            page.contains("<title>A call, same CPU, blocking, by raw: iiop 1.1"),
            "{page}"
        );
        assert!(page.contains("shmiop 0.25 µs, 1.1"), "{page}");
        assert_eq!(page.matches("<svg").count(), 2 * 6);
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn who_took_no_part_is_named_with_why() {
        let mut outcome = outcome();
        outcome.missing.push(super::super::Missing {
            protocol: Protocol::Ssliop,
            system: System::Raw,
            why: "openssl cannot be run".to_owned(),
        });
        for told in [html(&outcome).unwrap(), outcome.text()] {
            assert!(told.contains("raw rustls/TCP takes no part: openssl cannot be run"));
        }
    }

    #[test]
    fn nothing_found_is_told_as_such() {
        let mut outcome = outcome();
        outcome.rows.clear();
        assert_eq!(
            headline(&outcome),
            "What an ORB adds to what a protocol stands on"
        );
    }
}
