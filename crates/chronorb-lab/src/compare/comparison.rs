//! The comparison of two runs.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::change::Change;
use super::claims::{ChangedVerdict, changed_verdicts};
use super::rows::matched;
use super::run::{Fields, RecordedRun};
use crate::error::LabError;

/// Two runs of one experiment, side by side.
#[derive(Clone, Debug)]
pub(super) struct RunComparison {
    pub(super) first: RecordedRun,
    pub(super) second: RecordedRun,
    /// The change, in hundredths, above which a figure is listed by itself.
    pub(super) threshold: f64,
    /// The figures that both runs have, the greatest change first.
    pub(super) changes: Vec<Change>,
    /// The number of rows that both runs have.
    pub(super) rows: usize,
    /// The numbers of rows that only the first run has, and only the second.
    pub(super) unmatched: [usize; 2],
    /// The claims with different verdicts.
    pub(super) claims: Vec<ChangedVerdict>,
    /// The differences of the plans.
    pub(super) plan: Vec<Difference>,
    /// The differences of the machines and their states.
    pub(super) environment: Vec<Difference>,
}

/// A setting that differs between the runs.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Difference {
    pub(super) name: String,
    /// The value in the first run, if it has the setting.
    pub(super) a: Option<String>,
    /// The value in the second run, if it has the setting.
    pub(super) b: Option<String>,
}

impl RunComparison {
    /// Compares these figures, or all if none is named.
    ///
    /// # Errors
    ///
    /// [`LabError::Request`] for files of different experiments, and for a figure that is in no row
    /// of both.
    pub(super) fn new(
        first: RecordedRun,
        second: RecordedRun,
        figures: &[String],
        threshold: f64,
    ) -> Result<Self, LabError> {
        if first.experiment != second.experiment {
            return Err(LabError::Request(format!(
                "the files are of different experiments, {:?} and {:?}",
                first.experiment, second.experiment
            )));
        }
        let [a, mut b] = matched(&first.rows, &second.rows);
        let mut changes = Vec::new();
        let (mut rows, mut only_first) = (0, 0);
        for (row, of_first) in a {
            let Some(of_second) = b.remove(&row) else {
                only_first += 1;
                continue;
            };
            rows += 1;
            changes.extend(of_first.into_iter().filter_map(|(figure, a)| {
                let b = *of_second.get(&figure)?;
                let row = row.clone();
                Some(Change { row, figure, a, b })
            }));
        }
        let known: BTreeSet<String> = changes.iter().map(|change| change.figure.clone()).collect();
        if let Some(name) = figures.iter().find(|name| !known.contains(*name)) {
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(LabError::Request(format!(
                "no row of both files has a figure {name:?}; there are {known}"
            )));
        }
        changes.retain(|change| {
            if figures.is_empty() {
                change.figure != STOLEN
            } else {
                figures.contains(&change.figure)
            }
        });
        changes.sort_by(|one, other| other.size().total_cmp(&one.size()));
        Ok(Self {
            claims: changed_verdicts(&first.claims, &second.claims),
            plan: differences(&first.plan, &second.plan),
            environment: differences(&first.environment, &second.environment),
            unmatched: [only_first, b.len()],
            first,
            second,
            threshold,
            changes,
            rows,
        })
    }

    /// Returns the changes above the threshold.
    pub(super) fn notable(&self) -> &[Change] {
        let notable = self.changes.iter();
        let count = notable.take_while(|change| change.exceeds(self.threshold));
        &self.changes[..count.count()]
    }

    /// Returns the result in one line.
    pub(super) fn headline(&self) -> String {
        let notable = self.notable();
        let judged = |worse: fn(f64) -> bool| {
            let judged = notable.iter().filter_map(Change::worse_by_percent);
            judged.filter(|percent| worse(*percent)).count()
        };
        format!(
            "{}: of {} figures {} changed by more than {} %; {} are better and {} worse",
            self.first.experiment,
            self.changes.len(),
            notable.len(),
            self.threshold,
            judged(|percent| percent < 0.0),
            judged(|percent| percent > 0.0),
        )
    }

    /// Returns the restrictions of the comparison, a sentence each.
    pub(super) fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if self.rows == 0 {
            caveats.push("No row of one file has a match in the other.".to_owned());
        }
        if let [first, second] = self.unmatched
            && first + second > 0
        {
            caveats.push(format!(
                "{} rows are in both files, {first} in the first alone, and {second} in the second \
                 alone.",
                self.rows
            ));
        }
        if !self.plan.is_empty() {
            caveats.push("The runs had different plans.".to_owned());
        }
        caveats
    }

    /// Returns the comparison for programs.
    pub(super) fn figures(&self) -> Value {
        json!({
            "comparison": self.first.experiment,
            "a": self.first.name,
            "b": self.second.name,
            "threshold_percent": self.threshold,
            "rows": self.rows,
            "rows_only_in_a": self.unmatched[0],
            "rows_only_in_b": self.unmatched[1],
            "figures": self.changes.iter().map(Change::figures).collect::<Vec<_>>(),
            "claims": self.claims,
            "plan": self.plan,
            "environment": self.environment,
        })
    }

    /// Checks that no figure is worse by more than so many hundredths.
    ///
    /// # Errors
    ///
    /// [`LabError::Outcome`] if a figure is worse, or if there was nothing to compare.
    pub(super) fn check(&self, percent: f64) -> Result<(), LabError> {
        if self.changes.is_empty() {
            return Err(LabError::Outcome(
                "nothing can be said to be no worse: no row of one file has a match in the other"
                    .to_owned(),
            ));
        }
        let is_worse = |change: &&Change| change.worse_by_percent().is_some_and(|by| by > percent);
        let worse: Vec<&Change> = self.changes.iter().filter(is_worse).collect();
        let Some(worst) = worse.first() else {
            return Ok(());
        };
        let [a, b, _] = worst.cells();
        Err(LabError::Outcome(format!(
            "figures that are worse by more than {percent} %: {}, most of all {} of {}: {a}, then \
             {b}",
            worse.len(),
            worst.figure,
            worst.row_name()
        )))
    }
}

fn differences(first: &Fields, second: &Fields) -> Vec<Difference> {
    let names: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let shown = |fields: &Fields, name: &String| fields.get(name).map(|field| field.shown());
    let all = names.into_iter().map(|name| Difference {
        name: name.clone(),
        a: shown(first, name),
        b: shown(second, name),
    });
    all.filter(|difference| difference.a != difference.b)
        .collect()
}

/// The share of time that the hypervisor took. A change from zero to hardly more does not matter,
/// so it is compared only by request.
const STOLEN: &str = "stolen_percent";

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a run whose calls of high priority take so many µs, on a machine with this name.
    pub(in super::super) fn run(
        name: &str,
        high_us: f64,
        machine: &str,
        verdict: &str,
    ) -> RecordedRun {
        let low_per_s = 300_000.0 / (high_us + 50.0);
        let value = json!({
            "experiment": "overtake",
            "environment": {"cpu": machine, "cpus": 2},
            "plan": {"rounds": 3},
            "rows": [
                {"class": "high", "p50_us": 50.0, "p99_us": high_us, "calls_per_s": 2_000.0},
                {"class": "low", "p50_us": 90.0, "p99_us": 100.5, "calls_per_s": low_per_s},
                {"class": machine, "p50_us": 1.5},
            ],
            "claims": [{"paper": "chronorb", "claim": "<quick>", "verdict": verdict}],
        });
        RecordedRun::parse(name, &value).unwrap()
    }

    /// Returns a comparison with one slower latency and one lower rate.
    pub(in super::super) fn comparison() -> RunComparison {
        let first = run("a.json", 100.0, "<b>old</b>", "PASS");
        let second = run("b.json", 150.0, "new", "MISSED");
        RunComparison::new(first, second, &[], 10.0).unwrap()
    }

    #[test]
    fn the_greatest_change_comes_first() {
        let comparison = comparison();
        assert_eq!((comparison.rows, comparison.unmatched), (2, [1, 1]));
        assert_eq!(comparison.changes.len(), 6);
        let notable: Vec<&str> = comparison
            .notable()
            .iter()
            .map(|c| c.figure.as_str())
            .collect();
        assert_eq!(notable, ["p99_us", "calls_per_s"]);
        assert_eq!(
            comparison.headline(),
            "overtake: of 6 figures 2 changed by more than 10 %; 0 are better and 2 worse"
        );
        assert_eq!(comparison.claims[0].b, "MISSED");
        assert_eq!(comparison.environment.len(), 1);
        assert_eq!(comparison.environment[0].b.as_deref(), Some("new"));
        assert!(comparison.plan.is_empty());
    }

    #[test]
    fn a_worse_figure_fails_the_check() {
        let comparison = comparison();
        assert!(comparison.check(51.0).is_ok());
        let error = comparison.check(49.0).unwrap_err().to_string();
        let worst = "figures that are worse by more than 49 %: 1, most of all p99_us of high: \
                     100 µs, then 150 µs";
        assert_eq!(error, worst);

        let mut nothing = comparison;
        nothing.changes.clear();
        let error = nothing.check(49.0).unwrap_err().to_string();
        assert!(error.starts_with("nothing can be said"), "{error}");
    }

    #[test]
    fn some_figures_can_be_compared_alone() {
        let with = |figure: &str| {
            let runs = ["a", "b"].map(|name| run(name, 100.0, "m", "PASS"));
            let [first, second] = runs;
            RunComparison::new(first, second, &[figure.to_owned()], 10.0)
        };
        let comparison = with("p50_us").unwrap();
        assert_eq!(comparison.changes.len(), 3);
        assert!(comparison.notable().is_empty());
        let error = with("p5_us").unwrap_err().to_string();
        assert!(
            error.contains("\"p5_us\"") && error.contains("p50_us, p99_us"),
            "{error}"
        );
    }

    #[test]
    fn different_experiments_are_not_compared() {
        let mut other = run("b.json", 1.0, "m", "PASS");
        other.experiment = "waits".to_owned();
        let error = RunComparison::new(run("a", 1.0, "m", "PASS"), other, &[], 10.0).unwrap_err();
        let text = "the files are of different experiments, \"overtake\" and \"waits\"";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn programs_read_each_change_with_its_row() {
        let figures = comparison().figures();
        assert_eq!(figures["comparison"], "overtake");
        assert_eq!(
            (&figures["a"], &figures["b"]),
            (&"a.json".into(), &"b.json".into())
        );
        let first = &figures["figures"][0];
        assert_eq!(first["row"]["class"], "high");
        assert_eq!(first["figure"], "p99_us");
        assert_eq!(
            (&first["ratio"], &first["worse"]),
            (&1.5.into(), &true.into())
        );
        assert_eq!(figures["claims"][0]["a"], "PASS");
        assert_eq!(figures["environment"][0]["name"], "cpu");
        assert_eq!(figures["rows_only_in_b"], 1);
    }
}
