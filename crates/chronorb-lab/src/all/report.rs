//! The report of all experiments.

use chronorb_report::{Document, Score, Tile, units};

use super::index::{ExperimentIndex, Visit};
use crate::Claim;
use crate::Verdict;
use crate::experiment::Findings;

/// Returns the index, with links to the reports beside it.
pub(super) fn document(index: &ExperimentIndex) -> Document {
    let mut document = Document::new(index.headline())
        .lead(LEAD)
        .caveats(index.caveats())
        .section("The experiments")
        .tiles(index.visits.iter().map(tile).collect());
    for (paper, claims) in by_paper(index) {
        document = document.section(capitalised(paper)).claims_of(claims);
    }
    let missed = index.all_claims();
    let missed =
        missed.filter(|(_, claim)| claim.paper.is_none() && claim.verdict() == Verdict::Missed);
    let missed: Vec<_> = missed.map(sourced).collect();
    if !missed.is_empty() {
        document = document
            .section("Aims of chronorb that are missed here")
            .claims_of(missed);
    }
    let names = index.visits.iter().map(|visit| visit.name);
    let commands = ["all"].into_iter().chain(names);
    let commands = commands.map(|name| format!("chronorb lab {name}{}", index.flag()));
    document
        .environment(index.environment.rows())
        .commands(commands.collect::<Vec<_>>().join("\n"))
}

fn tile(visit: &Visit) -> Tile {
    let outcome = visit.outcome.as_ref();
    Tile {
        name: visit.name.to_owned(),
        title: visit.title.to_owned(),
        finding: outcome
            .map(|summary| summary.headline.clone())
            .map_err(Clone::clone),
        score: Score::of(visit.claims()),
        took: units::span(visit.took),
    }
}

/// Returns a claim with the name of its experiment.
fn sourced((visit, claim): (&Visit, &Claim)) -> (Option<String>, Claim) {
    (Some(visit.name.to_owned()), claim.clone())
}

/// Returns a name with a capital at its beginning, for a heading.
fn capitalised(name: &str) -> String {
    let mut characters = name.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}

/// A paper with its claims.
type Paper = (&'static str, Vec<(Option<String>, Claim)>);

/// Returns the papers in the order of their first claims.
fn by_paper(index: &ExperimentIndex) -> Vec<Paper> {
    let mut papers: Vec<Paper> = Vec::new();
    for (visit, claim) in index.all_claims() {
        // `RTAS 1998, figure 7` is a paper and a place in it.
        let Some(paper) = claim.paper.and_then(|paper| paper.split(", ").next()) else {
            continue;
        };
        let claim = sourced((visit, claim));
        match papers.iter_mut().find(|(of, _)| *of == paper) {
            Some((_, claims)) => claims.push(claim),
            None => papers.push((paper, vec![claim])),
        }
    }
    papers
}

const LEAD: &str = "The experiments of the papers on real-time CORBA, and some more, run on this \
                    machine: the claims of the papers beside the figures here, and a report of \
                    each.";

#[cfg(test)]
mod tests {
    use super::super::index::tests::index;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("all", &index());
    }
}
