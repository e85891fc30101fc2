//! What all experiments found.

use std::time::Duration;

use chronorb_report::{Document, Score};
use serde::Serialize;
use serde_json::Value;

use super::report;
use crate::Claim;
use crate::environment::Environment;
use crate::experiment::{Findings, plain_data};

/// The experiments that were run, and what came of them.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) environment: Environment,
    /// Whether the short plans were run.
    pub(super) short: bool,
    pub(super) visits: Vec<Visit>,
}

/// One experiment that was run.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) took: Duration,
    /// What it found, or why it failed.
    pub(super) outcome: Result<Told, String>,
}

/// What an experiment found, as far as the index tells it.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) headline: String,
    pub(super) caveats: Vec<String>,
    pub(super) claims: Vec<Claim>,
}

impl Visit {
    /// What it claims, and whether that is so; nothing where it failed.
    pub(super) fn claims(&self) -> &[Claim] {
        self.outcome.as_ref().map_or(&[], |told| &told.claims)
    }
}

impl Index {
    /// The experiments that failed, by name.
    pub(super) fn failed(&self) -> Vec<&'static str> {
        let failed = self.visits.iter().filter(|visit| visit.outcome.is_err());
        failed.map(|visit| visit.name).collect()
    }

    /// All claims, each with the experiment that makes it.
    pub(super) fn all_claims(&self) -> impl Iterator<Item = (&Visit, &Claim)> {
        let of = |visit| Visit::claims(visit).iter().map(move |claim| (visit, claim));
        self.visits.iter().flat_map(of)
    }

    /// What became of all claims.
    pub(super) fn score(&self) -> Score {
        Score::of(self.all_claims().map(|(_, claim)| claim))
    }

    /// What is run to repeat it.
    pub(super) fn command(&self) -> String {
        format!("chronorb lab all{}", self.flag())
    }

    /// The argument of an experiment's command.
    pub(super) const fn flag(&self) -> &'static str {
        if self.short { " --short" } else { "" }
    }
}

impl Findings for Index {
    fn headline(&self) -> String {
        let score = self.score();
        let told =
            |what: &str, became: String| (!became.is_empty()).then(|| format!("{what}: {became}"));
        let failed = self.failed();
        let parts = [
            told("claims of the papers", score.of_papers()),
            told("aims of chronorb", score.of_aims()),
            (!failed.is_empty()).then(|| format!("failed: {}", failed.join(", "))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let experiments = match self.visits.len() {
            1 => "1 experiment".to_owned(),
            count => format!("{count} experiments"),
        };
        match parts.is_empty() {
            true => experiments,
            false => format!("{experiments}; {}", parts.join("; ")),
        }
    }

    fn caveats(&self) -> Vec<String> {
        let short = "These were short runs, with few calls of each kind: enough to see what is so, and not for figures \
                     that are quoted.";
        let short = self.short.then(|| short.to_owned());
        short
            .into_iter()
            .chain(self.environment.stolen_caveat())
            .collect()
    }

    fn claims(&self) -> Vec<Claim> {
        self.all_claims().map(|(_, claim)| claim.clone()).collect()
    }

    fn figures(&self) -> Value {
        let claims = self.all_claims().map(|(visit, claim)| ClaimFigures {
            of: visit.name,
            claim,
        });
        plain_data(&Figures {
            experiment: "all",
            environment: &self.environment,
            short: self.short,
            experiments: self.visits.iter().map(VisitFigures::of).collect(),
            claims: claims.collect(),
        })
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

/// The index for programs.
#[derive(Serialize)]
struct Figures<'a> {
    experiment: &'static str,
    environment: &'a Environment,
    short: bool,
    experiments: Vec<VisitFigures<'a>>,
    claims: Vec<ClaimFigures<'a>>,
}

#[derive(Serialize)]
struct VisitFigures<'a> {
    name: &'static str,
    title: &'static str,
    headline: Option<&'a str>,
    failure: Option<&'a str>,
    caveats: &'a [String],
    took_s: f64,
    report: String,
    figures: String,
    #[serde(flatten)]
    score: Score,
}

#[derive(Serialize)]
struct ClaimFigures<'a> {
    /// The experiment.
    of: &'static str,
    #[serde(flatten)]
    claim: &'a Claim,
}

impl<'a> VisitFigures<'a> {
    fn of(visit: &'a Visit) -> Self {
        let told = visit.outcome.as_ref();
        Self {
            name: visit.name,
            title: visit.title,
            headline: told.ok().map(|told| told.headline.as_str()),
            failure: told.err().map(String::as_str),
            caveats: told.map_or(&[], |told| &told.caveats),
            took_s: (visit.took.as_secs_f64() * 10.0).round() / 10.0,
            report: format!("{}.html", visit.name),
            figures: format!("{}.json", visit.name),
            score: Score::of(visit.claims()),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two that ran, of which one claims what papers do, and one that failed.
    pub(in super::super) fn index() -> Index {
        let claims = vec![
            Claim::of_paper("RTAS 1998, figure 7", "inverted")
                .published("7 times")
                .holds(Some((true, "8 times".to_owned()))),
            Claim::of_paper("tutorial slides 1999, demultiplexing", "costly")
                .published("costly")
                .holds(Some((false, "as quick".to_owned())))
                .because("there is one <object> only"),
            Claim::of_paper("RTAS 1998, figure 8", "jitter").published("25 times"),
        ];
        let visit = |name, seconds, outcome| Visit {
            name,
            title: "What is measured",
            took: Duration::from_millis(seconds),
            outcome,
        };
        let told = |headline: &str, claims| Told {
            headline: headline.to_owned(),
            caveats: Vec::new(),
            claims,
        };
        let aims = vec![
            Claim::aim("quick").holds(Some((true, "1 µs".to_owned()))),
            Claim::aim("quicker").holds(Some((false, "2 µs".to_owned()))),
        ];
        Index {
            environment: Environment::example(),
            short: true,
            visits: vec![
                visit("inversion", 61_000, Ok(told("Nothing is inverted", claims))),
                visit("latency", 3_210, Ok(told("Calls are quick", aims))),
                visit("waits", 40, Err("no <socket> can be had".to_owned())),
            ],
        }
    }

    #[test]
    fn the_headline_counts_what_became_of_all_claims() {
        assert_eq!(
            index().headline(),
            "3 experiments; claims of the papers: 1 reproduced, 1 missed, 1 not measured; aims of chronorb: \
             1 met, 1 missed; failed: waits"
        );
        let mut index = index();
        index.visits.truncate(1);
        index.visits[0].outcome.as_mut().unwrap().claims.clear();
        assert_eq!(index.headline(), "1 experiment");
    }

    #[test]
    fn the_index_for_programs_has_the_documented_shape() {
        let figures = index().figures();
        assert_eq!(figures["experiment"], "all");
        assert!(figures["environment"].is_object() && figures["short"] == true);
        let first = &figures["experiments"][0];
        assert_eq!(first["name"], "inversion");
        assert_eq!(first["report"], "inversion.html");
        assert_eq!(first["figures"], "inversion.json");
        assert_eq!(
            (&first["reproduced"], &first["took_s"]),
            (&1.into(), &61.0.into())
        );
        assert!(first["failure"].is_null());
        let failed = &figures["experiments"][2];
        assert_eq!(failed["failure"], "no <socket> can be had");
        assert!(failed["headline"].is_null());
        let claim = &figures["claims"][1];
        assert_eq!(
            (&claim["of"], &claim["verdict"]),
            (&"inversion".into(), &"not reproduced".into())
        );
        assert_eq!(claim["why"], "there is one <object> only");
    }
}
