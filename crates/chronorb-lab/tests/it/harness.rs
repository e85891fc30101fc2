//! What the test programs of experiments have in common.
//!
//! An experiment calls its own program for servers and clients. So these are no usual test programs: they hand such
//! commands on, and otherwise run their tests.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses what it needs"
)]

use std::env;
use std::error::Error;
use std::fs;
use std::process::ExitCode;

use chronorb_lab::{Experiment, Options, run};

/// A hidden command, and what does it with its argument.
pub type Command = (&'static str, fn(&str) -> Result<(), Box<dyn Error>>);

/// A test, and its name.
pub type Test = (&'static str, fn());

/// Does what the command line says: one of the commands, or the tests that it asks for.
pub fn main(commands: &[Command], tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [name, order] = arguments[..]
        && let Some((_, command)) = commands.iter().find(|(of, _)| *of == name)
    {
        return status(command(order));
    }
    // What programs that gather tests ask.
    if arguments.contains(&"--list") {
        if !arguments.contains(&"--ignored") {
            tests.iter().for_each(|(name, _)| println!("{name}: test"));
        }
        return ExitCode::SUCCESS;
    }
    for (name, test) in tests.iter().filter(|(name, _)| is_wanted(name, &arguments)) {
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

/// Says that something was not run, which is a failure where all has to be.
pub fn not_run(why: &str) {
    eprintln!("NOT RUN: {why}");
    assert_ne!(
        env::var("CHRONORB_PEERS").as_deref(),
        Ok("required"),
        "{why}"
    );
}

/// A report that cannot be written is said before anything is measured, and nothing is left.
pub fn an_unwritable_report_is_refused<E: Experiment>(plan: E::Plan) {
    let folder = tempfile::tempdir().expect("a directory");
    let report = folder.path().join("missing/report.html");
    let options = Options {
        json: false,
        report,
        plan,
    };
    let Err(error) = run::<E>(&options) else {
        panic!("there is no such directory");
    };
    assert!(error.to_string().contains("missing/report.html"), "{error}");
    let left = fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 0);
}

/// Whether a run with these arguments is to include a test: a filter may leave it out.
fn is_wanted(name: &str, arguments: &[&str]) -> bool {
    let mut filters = arguments.iter().filter(|text| !text.starts_with('-'));
    let any = filters.clone().next().is_some();
    !arguments.contains(&"--ignored") && (!any || filters.any(|filter| name.contains(filter)))
}

fn status(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
