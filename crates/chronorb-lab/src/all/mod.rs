//! `chronorb lab all`: every experiment, one after the other, and an index of the results.
//!
//! Each experiment leaves its report and its figures in one folder, as in a run of its own. The
//! index shows the result of each, and the claims of the papers beside the figures here. A failed
//! experiment is reported, and does not stop the others.

mod index;
mod registry;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use chronorb_report::{check_writable, write_page};
use chronorb_rt::Monotonic;

use crate::environment::Environment;
use crate::error::LabError;
use crate::experiment::{Findings, print_json, print_text};
use crate::report::folder;
use crate::units;

use index::{ExperimentIndex, Visit};
use registry::{EXPERIMENTS, RegistryEntry};

/// The settings of `chronorb lab all`.
#[derive(Clone, Debug)]
pub struct AllOptions {
    /// Whether the index is printed as one JSON object instead of tables.
    pub json: bool,
    /// The folder of reports, figures and index. Without it, `chronorb/reports/all` in the user's
    /// folder for state (`XDG_STATE_HOME`, or `.local/state` in `HOME`).
    pub out: Option<PathBuf>,
    /// Whether each experiment runs its short plan.
    pub short: bool,
    /// The names of the experiments that run; all if it is empty.
    pub only: Vec<String>,
    /// The names of experiments that are left out.
    pub skip: Vec<String>,
}

/// Returns the names of all experiments, in the order in which they run.
pub fn names() -> impl Iterator<Item = &'static str> {
    EXPERIMENTS.iter().map(|entry| entry.name)
}

/// Runs experiments, writes their reports and an index, and prints the index on standard output.
///
/// Progress goes to standard error. With [`AllOptions::json`], standard output gets exactly one
/// JSON object. A claim that does not hold is reported, and is no error.
///
/// The program that calls this passes [`CHILD_COMMAND`](crate::CHILD_COMMAND) to
/// [`child_main`](crate::child_main).
///
/// # Errors
///
/// [`LabError::Request`] before anything is measured, [`LabError::Outcome`] after an experiment
/// failed and all others were measured, and otherwise the reason why nothing can be written.
pub fn run(options: &AllOptions) -> Result<(), LabError> {
    let chosen = choose(&options.only, &options.skip)?;
    let out = folder::folder(options.out.as_deref(), "all")?;
    let page = out.join("index.html");
    check_writable(&page)?;
    let mut index = ExperimentIndex {
        environment: Environment::probe(),
        short: options.short,
        visits: Vec::new(),
    };
    for (at, entry) in chosen.iter().enumerate() {
        announce(&chosen, at, options.short);
        let start = Monotonic::now();
        let report = out.join(format!("{}.html", entry.name));
        let outcome = entry.run(options.short, &report);
        if let Err(failure) = &outcome {
            eprintln!("{} failed: {failure}", entry.name);
        }
        index.visits.push(Visit {
            name: entry.name,
            title: entry.title,
            took: Monotonic::now().since(start),
            outcome,
        });
        index.environment.finish();
        // The index is complete so far, also if the user interrupts the rest.
        write_page(&index.html(), &page)?;
    }
    let files = [("Index of the reports", page.as_path())];
    if options.json {
        print_json(&index.figures(), &index.caveats(), &files)
    } else {
        print_text(index.text() + "\n", &files)
    }
    .map_err(LabError::Output)?;
    let failed = index.failed();
    if failed.is_empty() {
        return Ok(());
    }
    let failed = failed.join(", ");
    Err(LabError::Outcome(format!(
        "not all experiments could be measured: {failed} failed"
    )))
}

/// Returns the chosen experiments, each once, in the order in which they run.
fn choose(only: &[String], skip: &[String]) -> Result<Vec<&'static RegistryEntry>, LabError> {
    let mut asked = only.iter().chain(skip);
    if let Some(name) = asked.find(|name| !names().any(|known| known == *name)) {
        let known = names().collect::<Vec<_>>().join(", ");
        return Err(LabError::Request(format!(
            "no experiment is called {name:?}; there are {known}"
        )));
    }
    let is_in = |list: &[String], entry: &RegistryEntry| list.iter().any(|of| of == entry.name);
    let is_chosen =
        |entry: &&RegistryEntry| (only.is_empty() || is_in(only, entry)) && !is_in(skip, entry);
    let chosen: Vec<_> = EXPERIMENTS.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        let none = "there is no experiment to run: all that were asked for are to be skipped";
        return Err(LabError::Request(none.to_owned()));
    }
    Ok(chosen)
}

/// Prints the experiment that begins, its expected duration, and that of all that remain.
fn announce(chosen: &[&RegistryEntry], at: usize, short: bool) {
    let entry = chosen[at];
    let left: Duration = chosen[at..].iter().map(|entry| entry.length(short)).sum();
    eprintln!(
        "Experiment {} of {}, {}: {}. It takes about {}, and all that is left about {}.",
        at + 1,
        chosen.len(),
        entry.name,
        entry.title,
        units::span(entry.length(short)),
        units::span(left),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(only: &[&str], skip: &[&str]) -> Result<Vec<&'static str>, LabError> {
        let owned = |list: &[&str]| {
            list.iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let chosen = choose(&owned(only), &owned(skip))?;
        Ok(chosen.into_iter().map(|entry| entry.name).collect())
    }

    #[test]
    fn all_experiments_are_the_default() {
        assert_eq!(chosen(&[], &[]).unwrap(), names().collect::<Vec<_>>());
    }

    #[test]
    fn experiments_run_once_each_and_in_their_order() {
        let asked = ["whitebox", "demux", "whitebox"];
        assert_eq!(chosen(&asked, &[]).unwrap(), ["demux", "whitebox"]);
        assert_eq!(chosen(&asked, &["demux"]).unwrap(), ["whitebox"]);
        assert!(!chosen(&[], &["demux"]).unwrap().contains(&"demux"));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        for (only, skip) in [(&["demux", "nothing"][..], &[][..]), (&[], &["nothing"])] {
            let error = chosen(only, skip).unwrap_err().to_string();
            assert!(
                error.contains("\"nothing\"") && error.contains("whitebox"),
                "{error}"
            );
        }
        let error = chosen(&["demux"], &["demux"]).unwrap_err();
        assert!(matches!(error, LabError::Request(_)), "{error}");
    }
}
