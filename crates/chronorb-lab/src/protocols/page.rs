//! The report: a page with tables, plots and verdicts.

use std::fmt::Write;

use super::outcome::Outcome;
use super::plot;
use super::protocol::Protocol;
use super::system::System;
use super::table::telling;
use super::trial::{Cell, Trial};
use crate::contest::{Placement, Waits};
use crate::report::{PlotError, escape, figure};
use crate::units;

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut sections = String::new();
    for cell in plot::drawn(outcome) {
        let _ = writeln!(sections, "<h2>{}</h2>", escape(&finding(outcome, cell)));
        sections.push_str(&figure(&plot::p50(outcome, cell)?, BARS));
        sections.push_str(&figure(&plot::by_percentile(outcome, cell)?, CURVES));
    }
    Ok(telling(outcome).html(&headline(outcome), &sections))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let one_cpu = Cell::of_calls(Placement::SameCpu, Waits::Block);
    let spinning = Cell::of_calls(Placement::AcrossCpus, Waits::Spin);
    let told: Vec<String> = [one_cpu, spinning]
        .into_iter()
        .filter(|cell| Cell::all(&outcome.plan).contains(cell))
        .map(|cell| finding(outcome, cell))
        .filter(|finding| finding.contains(':'))
        .collect();
    match told.is_empty() {
        true => "What an ORB adds to what a protocol stands on".to_owned(),
        false => told.join(". "),
    }
}

/// What the plots of a cell show.
fn finding(outcome: &Outcome, cell: Cell) -> String {
    let told: Vec<String> = Protocol::ALL
        .into_iter()
        .filter_map(|protocol| {
            let key = (protocol, System::Giop, cell);
            let p50 = units::time(outcome.rounds(key)?.latency.p50_us);
            let by_raw = outcome.by_raw(key)?.ratio;
            Some(format!("{} {p50}, {by_raw:.2} of raw", protocol.scheme()))
        })
        .collect();
    let what = match cell.trial {
        Trial::Oneway(_) | Trial::Flood(_) => "A message without an answer",
        Trial::Call(_) | Trial::Clients(_) => "A call",
    };
    match told.is_empty() {
        true => format!("{what}, {}", cell.place()),
        false => format!("{what}, {}: {}", cell.place(), told.join("; ")),
    }
}

const BARS: &str = "The median call of each protocol, with what the protocol stands on and with what is beside it.";
const CURVES: &str = "Latency by percentile, all rounds together; dashed what a protocol stands on. To the right each \
     step is ten times rarer; a line ends at the longest call.";

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use super::*;
    use crate::experiment::Findings;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&outcome()).unwrap();
        assert!(
            page.contains("<title>A call, same CPU, blocking: iiop"),
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
