//! The jobs that are too dear for each change: they run once a night, one after the other.

use std::time::Instant;

use crate::run::{self, Failure};
use crate::{arm, asan, deny, fuzz, packages, tsan};

/// A job, by the name of its command.
type Job = (&'static str, fn() -> Result<(), Failure>);

/// All jobs, in their order.
const JOBS: &[Job] = &[
    ("tsan", tsan::tsan),
    ("asan", asan::asan),
    ("replay", fuzz::replay),
    ("arm", arm::arm),
    ("rio-streams", crate::rio_streams),
    ("schedules", crate::schedules),
    ("package", packages::package),
    ("integrations", crate::integrations),
    ("deny", || deny::deny(&[])),
];

/// The outcome of a job.
struct Outcome {
    name: &'static str,
    seconds: f64,
    /// User and system time of its processes.
    processor_seconds: f64,
    result: Result<(), Failure>,
}

/// Runs the jobs that `names` has, or all of them, though some fail. Prints a table of outcomes.
pub(crate) fn nightly(names: &[&str]) -> Result<(), Failure> {
    let jobs = chosen(names)?;
    let mut outcomes = Vec::new();
    for (number, (name, job)) in (1..).zip(&jobs) {
        println!("nightly: {number} of {}, {name}", jobs.len());
        let outcome = measure(name, *job);
        println!("nightly: {}", outcome.row());
        outcomes.push(outcome);
    }
    println!("\n{TITLES}");
    for outcome in &outcomes {
        println!("{}", outcome.row());
    }
    let failures = outcomes.iter().filter_map(Outcome::failure);
    let failures: Vec<_> = failures.collect();
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure(failures.join("\n")))
}

fn chosen(names: &[&str]) -> Result<Vec<Job>, Failure> {
    if let Some(unknown) = names
        .iter()
        .find(|name| JOBS.iter().all(|(job, _)| job != *name))
    {
        let jobs: Vec<_> = JOBS.iter().map(|(job, _)| *job).collect();
        let jobs = jobs.join(", ");
        return Err(Failure(format!(
            "no job is called {unknown:?}; the jobs are {jobs}"
        )));
    }
    let jobs = JOBS.iter().copied();
    Ok(jobs
        .filter(|(job, _)| names.is_empty() || names.contains(job))
        .collect())
}

fn measure(name: &'static str, job: fn() -> Result<(), Failure>) -> Outcome {
    let (began, used) = (Instant::now(), run::own_processor_seconds());
    let result = job();
    Outcome {
        name,
        seconds: began.elapsed().as_secs_f64(),
        processor_seconds: run::own_processor_seconds() - used,
        result,
    }
}

impl Outcome {
    fn row(&self) -> String {
        let result = if self.result.is_ok() {
            "passed"
        } else {
            "failed"
        };
        format!(
            "{:<14} {:>9.0} {:>19.0}  {result}",
            self.name, self.seconds, self.processor_seconds
        )
    }

    fn failure(&self) -> Option<String> {
        let failure = self.result.as_ref().err()?;
        Some(format!("{}: {failure}", self.name))
    }
}

const TITLES: &str = "job              seconds   processor seconds  outcome";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_commands() {
        for (name, _) in JOBS {
            assert!(
                crate::USAGE.contains(&format!("\n  {name} "))
                    || crate::USAGE.contains(&format!("\n  {name}\n"))
            );
        }
    }

    #[test]
    fn jobs_are_chosen_by_name() {
        assert_eq!(chosen(&[]).expect("all").len(), JOBS.len());
        let chosen_ones = chosen(&["deny", "asan"]).expect("two");
        let names: Vec<_> = chosen_ones.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["asan", "deny"]);
        assert!(chosen(&["den"]).is_err());
    }

    #[test]
    fn outcomes_are_rows_below_their_titles() {
        let result = Err(Failure("cargo test: exit status: 101".to_owned()));
        let outcome = Outcome {
            name: "tsan",
            seconds: 61.4,
            processor_seconds: 100.0,
            result,
        };
        let row = outcome.row();
        assert_eq!(row.find("failed"), TITLES.find("outcome"), "{row}");
        let failure = outcome.failure();
        assert_eq!(
            failure.as_deref(),
            Some("tsan: cargo test: exit status: 101")
        );
    }
}
