//! `chronorb lab all`: every experiment, one after the other, and an index of what they found.
//!
//! Each leaves its report and its figures in one directory, as if it had been run by itself. The index says of each
//! what it found, and puts what the papers claim beside what is so here. An experiment that fails is told, and does
//! not stop the others.

mod index;
mod registry;
mod report;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use chronorb_report::{check_writable, write_page};
use chronorb_rt::Monotonic;

use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Findings;
use crate::report::folder;
use crate::units;

use index::{Index, Visit};
use registry::{EXPERIMENTS, Entry};

/// What `chronorb lab all` was asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Print the index as one JSON object instead of tables.
    pub json: bool,
    /// Where reports, figures and the index go. Without it, to `chronorb/reports/all` in the user's
    /// folder for state (`XDG_STATE_HOME`, or `.local/state` in `HOME`).
    pub out: Option<PathBuf>,
    /// Run the short plan of each experiment.
    pub short: bool,
    /// Which experiments, by their names; all where it is empty.
    pub only: Vec<String>,
    /// Which are left out.
    pub skip: Vec<String>,
}

/// The names of all experiments, in the order in which they run.
pub fn names() -> impl Iterator<Item = &'static str> {
    EXPERIMENTS.iter().map(|entry| entry.name)
}

/// Runs experiments, writes their reports and an index, and prints the index on standard output.
///
/// Progress goes to standard error. With [`Options::json`], standard output gets exactly one JSON object. A claim that
/// does not hold is no failure: it is said.
///
/// The program that calls this hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
///
/// # Errors
///
/// [`LabError::Request`] before anything is measured, [`LabError::Outcome`] after an experiment
/// failed and all others were measured, and otherwise the reason why nothing can be written.
pub fn run(options: &Options) -> Result<(), LabError> {
    let chosen = choose(&options.only, &options.skip)?;
    let out = folder::folder(options.out.as_deref(), "all")?;
    let page = out.join("index.html");
    check_writable(&page)?;
    let before = ProcessorTime::now();
    let mut index = Index {
        environment: Environment::probe(),
        short: options.short,
        visits: Vec::new(),
    };
    for (at, entry) in chosen.iter().enumerate() {
        announce(&chosen, at, options.short);
        let begun = Monotonic::now();
        let report = out.join(format!("{}.html", entry.name));
        let outcome = entry.run(options.short, &report);
        if let Err(failure) = &outcome {
            eprintln!("{} failed: {failure}", entry.name);
        }
        index.visits.push(Visit {
            name: entry.name,
            title: entry.title,
            took: Monotonic::now().since(begun),
            outcome,
        });
        index.environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        // Whoever loses patience has an index of what there is.
        write_page(&index.html(), &page)?;
    }
    print(options, &index, &page).map_err(LabError::Output)?;
    match index.failed() {
        failed if failed.is_empty() => Ok(()),
        failed => Err(LabError::Outcome(format!(
            "not all experiments could be measured: {} failed",
            failed.join(", ")
        ))),
    }
}

/// The experiments that were asked for, each once, in the order in which they run.
fn choose(only: &[String], skip: &[String]) -> Result<Vec<&'static Entry>, LabError> {
    for name in only.iter().chain(skip) {
        if !names().any(|known| known == name) {
            let known = names().collect::<Vec<_>>().join(", ");
            return Err(LabError::Request(format!(
                "no experiment is called {name:?}; there are {known}"
            )));
        }
    }
    let names = |list: &[String], entry: &Entry| list.iter().any(|name| name == entry.name);
    let chosen: Vec<_> = EXPERIMENTS
        .iter()
        .filter(|entry| (only.is_empty() || names(only, entry)) && !names(skip, entry))
        .collect();
    match chosen.is_empty() {
        true => Err(LabError::Request(
            "there is no experiment to run: all that were asked for are to be skipped".to_owned(),
        )),
        false => Ok(chosen),
    }
}

/// Says which experiment begins, and how long the rest takes.
fn announce(chosen: &[&Entry], at: usize, short: bool) {
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

fn print(options: &Options, index: &Index, page: &std::path::Path) -> io::Result<()> {
    let page = page.canonicalize().unwrap_or_else(|_| page.to_owned());
    let mut out = io::stdout().lock();
    if options.json {
        for caveat in index.caveats() {
            eprintln!("{caveat}");
        }
        writeln!(out, "{}", index.figures())?;
        eprintln!("Index of the reports: {}", page.display());
    } else {
        writeln!(out, "{}", index.text())?;
        writeln!(out, "Index of the reports: {}", page.display())?;
    }
    out.flush()
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
    fn nothing_asked_for_is_everything() {
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
    fn a_name_that_nobody_has_is_refused_with_those_that_there_are() {
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
