//! The report: a page with a plot, tables and verdicts.

use super::outcome::Outcome;
use super::path::Layer;
use super::plot;
use super::table::telling;
use crate::report::{PlotError, figure};
use crate::units;

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut sections = String::new();
    sections.push_str("<h2>In whose code a call is</h2>\n");
    sections.push_str(&figure(
        &plot::layers(outcome)?,
        "What is usual of a call. Each bar is a transport: at the left with client and server on one CPU, at the right on \
         two.",
    ));
    sections.push_str(&figure(
        &plot::own_layers(outcome)?,
        "The same without the operating system: what the two programs do themselves.",
    ));
    Ok(telling(outcome).html(&headline(outcome), &sections))
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
