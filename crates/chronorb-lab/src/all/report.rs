//! The report of all experiments.

use chronorb_report::{Document, Score, Tile, units};
use serde_json::{Value, json};

use super::index::{ExperimentIndex, Visit};
use crate::Claim;
use crate::Verdict;
use crate::experiment::{Findings, plain_data};
use crate::report::capitalised;

impl Findings for ExperimentIndex {
    fn headline(&self) -> String {
        let score = Score::of(self.all_claims().map(|(_, claim)| claim));
        let experiments = match self.visits.len() {
            1 => "1 experiment".to_owned(),
            count => format!("{count} experiments"),
        };
        let parts = [
            ("claims of the papers", score.of_papers()),
            ("aims of chronorb", score.of_aims()),
            ("failed", self.failed().join(", ")),
        ];
        let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
        parts.fold(experiments, |line, (name, text)| {
            format!("{line}; {name}: {text}")
        })
    }

    fn caveats(&self) -> Vec<String> {
        let short = self.short.then(|| SHORT.to_owned());
        let stolen = self.environment.stolen_caveat();
        short.into_iter().chain(stolen).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        self.all_claims().map(|(_, claim)| claim.clone()).collect()
    }

    fn figures(&self) -> Value {
        let claims = self.all_claims().map(|(visit, claim)| {
            let mut figures = plain_data(claim);
            figures["of"] = visit.name.into();
            figures
        });
        json!({
            "experiment": "all",
            "environment": self.environment,
            "short": self.short,
            "experiments": self.visits.iter().map(Visit::figures).collect::<Vec<_>>(),
            "claims": claims.collect::<Vec<_>>(),
        })
    }

    fn document(&self) -> Document {
        let mut document = Document::new(self.headline())
            .lead(LEAD)
            .caveats(self.caveats())
            .section("The experiments")
            .tiles(self.visits.iter().map(tile).collect());
        for (paper, claims) in by_paper(self) {
            document = document.section(capitalised(paper)).claims_of(claims);
        }
        let missed = self.all_claims();
        let missed =
            missed.filter(|(_, claim)| claim.paper.is_none() && claim.verdict() == Verdict::Missed);
        let missed: Vec<_> = missed.map(sourced).collect();
        if !missed.is_empty() {
            document = document
                .section("Aims of chronorb that are missed here")
                .claims_of(missed);
        }
        let names = self.visits.iter().map(|visit| visit.name);
        let commands = ["all"].into_iter().chain(names);
        let commands = commands.map(|name| format!("chronorb lab {name}{}", self.flag()));
        document
            .environment(self.environment.rows())
            .commands(commands.collect::<Vec<_>>().join("\n"))
    }
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

const SHORT: &str = "These were short runs, with few calls of each kind: their verdicts are \
                     indications, and their figures are not for quotation.";
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
