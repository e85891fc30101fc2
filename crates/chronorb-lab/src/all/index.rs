//! The results of all experiments.

use std::time::Duration;

use chronorb_report::Score;
use serde_json::{Value, json};

use crate::Claim;
use crate::environment::Environment;
use crate::experiment::{merge, plain_data};

/// The experiments that were run, and their results.
#[derive(Clone, Debug)]
pub(super) struct ExperimentIndex {
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
    /// The result, or the reason of the failure.
    pub(super) outcome: Result<ResultSummary, String>,
}

/// The part of an experiment's result that the index shows.
#[derive(Clone, Debug)]
pub(super) struct ResultSummary {
    pub(super) headline: String,
    pub(super) caveats: Vec<String>,
    pub(super) claims: Vec<Claim>,
}

impl Visit {
    /// Returns the claims of the experiment; none if it failed.
    pub(super) fn claims(&self) -> &[Claim] {
        let summary = self.outcome.as_ref();
        summary.map_or(&[], |summary| &summary.claims)
    }

    /// Returns the visit for programs.
    pub(super) fn figures(&self) -> Value {
        let summary = self.outcome.as_ref();
        let mut figures = plain_data(&Score::of(self.claims()));
        let more = json!({
            "name": self.name,
            "title": self.title,
            "headline": summary.ok().map(|summary| &summary.headline),
            "failure": summary.err(),
            "caveats": summary.map_or(&[][..], |summary| &summary.caveats),
            "took_s": (self.took.as_secs_f64() * 10.0).round() / 10.0,
            "report": format!("{}.html", self.name),
            "figures": format!("{}.json", self.name),
        });
        merge(&mut figures, more);
        figures
    }
}

impl ExperimentIndex {
    /// Returns the names of the experiments that failed.
    pub(super) fn failed(&self) -> Vec<&'static str> {
        let failed = self.visits.iter().filter(|visit| visit.outcome.is_err());
        failed.map(|visit| visit.name).collect()
    }

    /// Returns all claims, each with its experiment.
    pub(super) fn all_claims(&self) -> impl Iterator<Item = (&Visit, &Claim)> {
        let of = |visit| Visit::claims(visit).iter().map(move |claim| (visit, claim));
        self.visits.iter().flat_map(of)
    }

    /// Returns the argument of an experiment's command.
    pub(super) const fn flag(&self) -> &'static str {
        if self.short { " --short" } else { "" }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::experiment::Findings;

    /// Returns two experiments with results and one that failed.
    pub(in super::super) fn index() -> ExperimentIndex {
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
        let summary = |headline: &str, claims| ResultSummary {
            headline: headline.to_owned(),
            caveats: Vec::new(),
            claims,
        };
        let aims = vec![
            Claim::aim("quick").holds(Some((true, "1 µs".to_owned()))),
            Claim::aim("quicker").holds(Some((false, "2 µs".to_owned()))),
        ];
        ExperimentIndex {
            environment: Environment::example(),
            short: true,
            visits: vec![
                visit(
                    "inversion",
                    61_000,
                    Ok(summary("Nothing is inverted", claims)),
                ),
                visit("latency", 3_210, Ok(summary("Calls are quick", aims))),
                visit("waits", 40, Err("no <socket> can be had".to_owned())),
            ],
        }
    }

    #[test]
    fn the_headline_counts_all_verdicts() {
        assert_eq!(
            index().headline(),
            "3 experiments; claims of the papers: 1 reproduced, 1 missed, 1 not measured; aims of \
             chronorb: 1 met, 1 missed; failed: waits"
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
