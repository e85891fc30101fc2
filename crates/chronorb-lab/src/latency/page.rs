//! The report: a page with tables, plots and verdicts.

use std::fmt::Write;

use super::outcome::{Outcome, Row, summary};
use super::plot::by_percentile;
use super::system::System;
use super::table::telling;
use crate::bench::Placement;
use crate::report::{PlotError, escape, figure};
use crate::units;

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut sections = String::new();
    for placement in Placement::ALL {
        let Some(finding) = finding(outcome, placement) else {
            continue;
        };
        let _ = writeln!(sections, "<h2>{}</h2>", escape(&finding));
        sections.push_str(&figure(
            &by_percentile(outcome, placement)?,
            "Latency by percentile, all rounds together. To the right each step is ten times rarer; a \
             line ends at the longest call.",
        ));
    }
    Ok(telling(outcome).html(&headline(outcome), &sections))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    Placement::ALL
        .into_iter()
        .find_map(|placement| finding(outcome, placement))
        .unwrap_or_else(|| "What a call takes".to_owned())
}

/// What the plot of a place shows; nothing where nobody called.
fn finding(outcome: &Outcome, placement: Placement) -> Option<String> {
    let p50 = |row: &Row| row.latency.p50_us;
    let told = [System::Chronorb, System::ChronorbSpinning]
        .into_iter()
        .filter_map(|system| {
            let (_, figures) = summary(&outcome.rounds(system, placement))?;
            let by_raw = outcome.ratio(system, system.raw(), placement, p50)?;
            Some(format!(
                "{}: p50 {}, {by_raw:.2} of raw TCP",
                system.name(),
                units::time(figures.p50_us)
            ))
        })
        .collect::<Vec<_>>();
    (!told.is_empty()).then(|| format!("A call, {}: {}", placement.name(), told.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;
    use crate::bench::OmniOrb;
    use crate::experiment::Findings;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&outcome()).unwrap();
        assert!(page.contains(
            "<title>A call, same CPU: chronorb, blocking: p50 10.8 µs, 1.08 of raw TCP</title>"
        ));
        assert_eq!(page.matches("<svg").count(), 3);
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(!page.contains("class=\"missed\"") && !page.contains("class=\"caveat\""));
    }

    #[test]
    fn who_took_no_part_is_named_with_what_to_do_about_it() {
        let mut outcome = outcome();
        outcome.rows.retain(|row| row.system != System::OmniOrb);
        outcome.omniorb = OmniOrb::without("g++ is not installed. apt-get install g++".to_owned());
        for told in [html(&outcome).unwrap(), outcome.text()] {
            for part in ["takes no part", "apt-get install", "NOT MEASURED"] {
                assert!(told.contains(part), "{part}");
            }
        }
    }

    #[test]
    fn the_memory_of_a_connection_is_told() {
        assert!(
            outcome()
                .text()
                .contains("2\u{a0}000 octets of the server's resident memory each")
        );
    }
}
