//! A test harness for experiments.
//!
//! An experiment starts its own program for servers and clients, so the test program passes the
//! arguments of child processes on. It runs its tests one after the other, since experiments
//! disturb each other.

use std::env;
use std::fs;
use std::panic::catch_unwind;
use std::process::ExitCode;

use chronorb_lab::{CHILD_COMMAND, Experiment, LabError, Options, child_main, run};

/// A test, and its name.
pub(crate) type Test = (&'static str, fn());

/// Tests of one module, and its name.
pub(crate) type Tests = (&'static str, &'static [Test]);

/// Does what the command line says: a part of an experiment, or the tests that it asks for.
pub(crate) fn main(modules: &[Tests]) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [CHILD_COMMAND, part, order] = arguments[..] {
        return status(child_main(part, order));
    }
    let tests = modules.iter().flat_map(|(module, tests)| {
        let named = move |(name, test): &Test| (format!("{module}::{name}"), *test);
        tests.iter().map(named)
    });
    // Asked by programs that gather tests.
    if arguments.contains(&"--list") {
        if !arguments.contains(&"--ignored") {
            tests.for_each(|(name, _)| println!("{name}: test"));
        }
        return ExitCode::SUCCESS;
    }
    let mut failed = Vec::new();
    for (name, test) in tests.filter(|(name, _)| is_wanted(name, &arguments)) {
        // A panic has said why.
        let outcome = match catch_unwind(|| keeping_its_scheduling(test)) {
            Ok(()) => "ok",
            Err(_) => "FAILED",
        };
        println!("test {name} ... {outcome}");
        if outcome != "ok" {
            failed.push(name);
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nfailures:\n    {}", failed.join("\n    "));
    ExitCode::FAILURE
}

/// Says that something was not run, which is a failure where all has to be.
pub(crate) fn not_run(why: &str) {
    eprintln!("NOT RUN: {why}");
    assert_ne!(
        env::var("CHRONORB_PEERS").as_deref(),
        Ok("required"),
        "{why}"
    );
}

/// A report that cannot be written is said before anything is measured, and nothing is left.
pub(crate) fn an_unwritable_report_is_refused<E: Experiment>(plan: E::Plan) {
    let folder = tempfile::tempdir().expect("a directory");
    let report = folder.path().join("missing/report.html");
    let options = Options {
        json: false,
        report: Some(report),
        plan,
    };
    let Err(error) = run::<E>(&options) else {
        panic!("there is no such directory");
    };
    assert!(error.to_string().contains("missing/report.html"), "{error}");
    let left = fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 0);
}

/// Runs a test, which leaves the calling thread the scheduling that it has: at a real-time priority
/// the next experiment would reap its processes, and remove its files.
fn keeping_its_scheduling(test: fn()) {
    let before = chronorb_rt::current().expect("it is ordinary");
    test();
    let after = chronorb_rt::current().expect("it is ordinary");
    assert_eq!(after, before, "the scheduling that an experiment has left");
}

/// Whether a run with these arguments is to include a test: a filter may leave it out.
fn is_wanted(name: &str, arguments: &[&str]) -> bool {
    let mut filters = arguments.iter().filter(|text| !text.starts_with('-'));
    let any = filters.clone().next().is_some();
    !arguments.contains(&"--ignored") && (!any || filters.any(|filter| name.contains(filter)))
}

fn status(outcome: Result<(), LabError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
