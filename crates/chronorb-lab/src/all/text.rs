//! The index as text.

use std::fmt::Write;

use super::index::{Index, Score};
use crate::Verdict;
use crate::claim::{self, Claim};
use crate::experiment::Findings;
use crate::units;

/// A line for each experiment, what papers say, and what chronorb aims at and misses.
pub(super) fn text(index: &Index) -> String {
    let mut text = format!("{}\n", index.headline());
    for caveat in index.caveats() {
        let _ = writeln!(text, "{caveat}");
    }
    for visit in &index.visits {
        let _ = writeln!(text, "\n{}, in {}", visit.name, units::span(visit.took));
        let score = Score::of(visit.claims());
        let lines = match &visit.outcome {
            Ok(told) => [
                told.headline.clone(),
                prefixed("claims of the papers", score.of_papers()),
                prefixed("aims", score.of_aims()),
            ],
            Err(failure) => [format!("FAILED: {failure}"), String::new(), String::new()],
        };
        for line in lines.iter().filter(|line| !line.is_empty()) {
            let _ = writeln!(text, "  {line}");
        }
    }
    let claims = |which: fn(&Claim) -> bool| {
        let claims = index.all_claims().map(|(_, claim)| claim);
        let claims: Vec<Claim> = claims.filter(|claim| which(claim)).cloned().collect();
        claims
    };
    for (heading, claims) in [
        ("What papers say", claims(|claim| claim.paper.is_some())),
        ("What chronorb aims at and misses", claims(is_missed_aim)),
    ] {
        if !claims.is_empty() {
            let _ = write!(text, "\n{heading}\n\n{}", claim::text(&claims));
        }
    }
    text
}

/// Whether it is an aim of chronorb's own that is missed.
pub(super) fn is_missed_aim(claim: &Claim) -> bool {
    claim.paper.is_none() && claim.verdict() == Verdict::Missed
}

fn prefixed(what: &str, became: String) -> String {
    match became.is_empty() {
        true => became,
        false => format!("{what}: {became}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::tests::index;
    use super::*;

    #[test]
    fn each_experiment_is_told_with_what_became_of_its_claims() {
        let text = text(&index());
        for part in [
            "\ninversion, in 1 min 1 s\n  Nothing is inverted\n  claims of the papers: 1 reproduced, 1 not reproduced, \
             1 not measured\n",
            "\nlatency, in 3 s\n  Calls are quick\n  aims: 1 met, 1 missed\n",
            "\nwaits, in less than 1 s\n  FAILED: no <socket> can be had\n",
            "reproduced      inverted\n                RTAS 1998, figure 7: 7 times\n                8 times\n",
            "What chronorb aims at and misses\n\nMISSED          quicker\n",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
        assert!(
            !text.contains("PASS"),
            "what is met is counted only:\n{text}"
        );
    }
}
