//! The plot: lock operations for each request, ours beside the papers'.

use super::bars::{Bars, LOGARITHMIC, bars};
use super::outcome::Outcome;
use super::published::PUBLISHED;
use super::table::beside_the_papers;
use crate::report::PlotError;

/// Lock operations of client and server for each two-way request of one client, as bars on a logarithmic scale.
pub(super) fn lock_operations(outcome: &Outcome) -> Result<String, PlotError> {
    let ours = beside_the_papers(outcome).map(|(name, counts)| {
        let name = name.trim_start_matches("chronorb, ");
        (name.to_owned(), counts)
    });
    let published = PUBLISHED.iter().map(|of| {
        let counts = [of.client, of.server].map(|count| Some(f64::from(count)));
        (of.orb.to_owned(), counts)
    });
    bars(&Bars {
        name: "lock-operations",
        groups: &ours.into_iter().chain(published).collect::<Vec<_>>(),
        across: "chronorb, by strategy; and the ORBs of 1998",
        upwards: LOGARITHMIC,
    })
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn the_plot_names_its_axes_orbs_and_sides() {
        let svg = lock_operations(&outcome()).unwrap();
        for text in [
            "Leader/Followers",
            "Half-Sync/Half-Async",
            "MT-Orbix",
            "599",
            "lock operations (logarithmic)",
            "1000",
            "client",
            "server",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }
}
