//! The report: a page with a plot, tables and verdicts.

use std::fmt::Write;

use super::outcome::Outcome;
use super::path::Layer;
use super::plot;
use super::table::{LEAD, notes, tables};
use crate::claim;
use crate::contest::table::figure;
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
    body.push_str("<h2>In whose code a call is</h2>\n");
    body.push_str(&figure(
        &plot::layers(outcome)?,
        "What is usual of a call. Each bar is a transport: at the left with client and server on one CPU, at the right on \
         two.",
    ));
    body.push_str(&figure(
        &plot::own_layers(outcome)?,
        "The same without the operating system: what the two programs do themselves.",
    ));
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
        "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>cargo run --release -- lab timeprobes</pre>\n",
        environment_table(&outcome.environment)
    );
    Ok(document(&headline(outcome), &body))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let cases = outcome.cases().into_iter();
    let told = cases.filter_map(|case| {
        let whole = outcome.whole(case)?;
        let orb = outcome.layer(case, Layer::Orb)?;
        let (transport, place) = case;
        Some(format!(
            "Of a call by {transport}, {}, the ORB takes {:.0} % of {}",
            place.name(),
            orb.percent,
            units::time(whole.usual_us),
        ))
    });
    // What everybody knows before what is quicker.
    let mut told: Vec<_> = told.collect();
    let iiop = told.iter().position(|told| told.contains("iiop"));
    match told.len() {
        0 => "Where the time of a call goes".to_owned(),
        _ => told.swap_remove(iiop.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&outcome()).unwrap();
        let title = "<title>Of a call by iiop, same CPU, the ORB takes 6 % of ";
        assert!(page.contains(title), "{page}");
        assert_eq!(page.matches("<svg").count(), 2);
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(!page.contains("class=\"missed\""));
    }
}
