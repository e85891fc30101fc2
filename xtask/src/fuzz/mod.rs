//! Coverage-guided fuzzing on the stable toolchain: libFuzzer, and the coverage instrumentation of
//! LLVM, which are what cargo-fuzz uses.
#![allow(clippy::disallowed_types, reason = "no thread of a build is urgent")]

mod build;
mod corpus;
mod run;

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::peers;
use crate::run::{Failure, cargo, root};

use build::Purpose;
pub(crate) use build::as_compiler;

/// The options of the command.
#[derive(Debug)]
struct Options {
    time: Duration,
    targets: Vec<String>,
    jobs: usize,
    json: bool,
    keep: bool,
    minimise: bool,
}

/// The result of one target.
#[derive(Debug, Serialize)]
struct Outcome {
    target: String,
    /// Inputs that were run.
    executions: u64,
    /// Edges of the instrumented crates that were reached.
    edges: u64,
    /// libFuzzer's features: edges, how often they were passed, and comparisons.
    features: u64,
    /// Files of the working corpus.
    files: usize,
    octets: u64,
    /// The inputs that failed.
    failures: Vec<PathBuf>,
    /// User and system time of its processes, in seconds.
    processor_seconds: f64,
    seconds: f64,
}

/// The environment of the replay of the corpora, which is among the tests of the workspace.
pub(crate) fn replay_environment() -> Result<Vec<(&'static str, String)>, Failure> {
    if !peers::has_omniorb() {
        return Ok(Vec::new());
    }
    let program = build::omniorb()?.display().to_string();
    Ok(vec![(build::OMNIORB_PROGRAM, program)])
}

/// Replays the corpora with five times as many generated inputs as the workspace's tests have.
pub(crate) fn replay() -> Result<(), Failure> {
    let mut environment = replay_environment()?;
    environment.push(("CHRONORB_FUZZ_INPUTS", "5".to_owned()));
    cargo(&["test", "--package=chronorb-fuzz"], &environment)
}

/// Runs fuzz targets, and reports what each has done.
pub(crate) fn fuzz(options: &[&str]) -> Result<(), Failure> {
    let options = Options::read(options)?;
    if options.minimise {
        return corpus::keep(&options.targets);
    }
    let programs = build::programs(&options.targets, Purpose::Fuzzing)?;
    let end = Instant::now() + options.time;
    let queue = Mutex::new(VecDeque::from(options.targets.clone()));
    let outcomes = Mutex::new(Vec::new());
    let error = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let (target, time) = {
                        let mut queue = queue.lock().expect("no thread panics");
                        let left = end.saturating_duration_since(Instant::now());
                        // What earlier targets did not use is shared among the others.
                        let turns = queue.len().div_ceil(options.jobs).max(1);
                        let Some(target) = queue.pop_front() else {
                            return;
                        };
                        (target, left / u32::try_from(turns).unwrap_or(1))
                    };
                    let outcome = run::run(&programs, &target, time);
                    match outcome {
                        Ok(outcome) => {
                            eprintln!("{}", outcome.line());
                            outcomes.lock().expect("no thread panics").push(outcome);
                        }
                        Err(failure) => *error.lock().expect("no thread panics") = Some(failure),
                    }
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().expect("no thread panics");
    outcomes.sort_by(|a, b| a.target.cmp(&b.target));
    let kept = if options.keep {
        corpus::keep(&options.targets)
    } else {
        Ok(())
    };
    report(&outcomes, &programs, options.json)?;
    kept?;
    let error = error.into_inner().expect("no thread panics");
    error.map_or(Ok(()), Err)
}

fn report(outcomes: &[Outcome], programs: &build::FuzzPrograms, json: bool) -> Result<(), Failure> {
    let seconds: f64 = outcomes
        .iter()
        .map(|outcome| outcome.processor_seconds)
        .sum();
    if json {
        let text = serde_json::json!({ "targets": outcomes, "processor_seconds": seconds });
        println!("{text:#}");
    } else {
        println!("{HEADINGS}");
        for outcome in outcomes {
            println!("{}", outcome.line());
        }
        println!("processor time in sum: {:.2} hours", seconds / 3600.0);
    }
    let mut count = 0;
    for outcome in outcomes {
        for path in &outcome.failures {
            count += 1;
            let program = programs.path(&outcome.target);
            let environment = programs.environment.iter();
            let environment =
                environment.map(|(name, value)| format!("{name}={} ", value.display()));
            let environment: String = environment.collect();
            eprintln!("{}: {}", outcome.target, path.display());
            eprintln!(
                "  again: {environment}{} {}",
                program.display(),
                path.display()
            );
        }
    }
    match count {
        0 => Ok(()),
        count => Err(Failure(format!("{count} input(s) failed"))),
    }
}

impl Options {
    fn read(options: &[&str]) -> Result<Self, Failure> {
        let known = targets()?;
        let mut this = Self {
            time: Duration::from_secs(3600),
            targets: Vec::new(),
            jobs: 1,
            json: false,
            keep: false,
            minimise: false,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut value = || {
                let value = options.next();
                value.ok_or_else(|| Failure(format!("{option} needs a value")))
            };
            match *option {
                "--hours" => {
                    let hours: f64 = number(option, value()?)?;
                    let time = Duration::try_from_secs_f64(hours * 3600.0);
                    this.time = time.map_err(|error| Failure(format!("{option}: {error}")))?;
                }
                "--jobs" => this.jobs = number::<usize>(option, value()?)?.max(1),
                "--target" => {
                    let name = value()?;
                    if !known.iter().any(|target| target == name) {
                        let known = known.join(" ");
                        return Err(Failure(format!(
                            "there is no target {name}; there are {known}"
                        )));
                    }
                    this.targets.push((*name).to_owned());
                }
                "--json" => this.json = true,
                "--keep" => this.keep = true,
                "--minimise" => this.minimise = true,
                _ => return Err(Failure(format!("{option:?} is no option of fuzz"))),
            }
        }
        if this.targets.is_empty() {
            let is_possible = |target: &String| target != build::OMNIORB || peers::has_omniorb();
            this.targets = known.into_iter().filter(is_possible).collect();
        }
        Ok(this)
    }
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, Failure> {
    text.parse()
        .map_err(|_| Failure(format!("{option}: {text:?} is no number")))
}

/// The names of all targets.
fn targets() -> Result<Vec<String>, Failure> {
    let manifest = root().join("fuzz/Cargo.toml");
    let bad = |problem: String| Failure(format!("{}: {problem}", manifest.display()));
    let text = fs::read_to_string(&manifest).map_err(|e| bad(e.to_string()))?;
    let table: toml::Table = toml::from_str(&text).map_err(|e| bad(e.to_string()))?;
    let programs = table.get("bin").and_then(toml::Value::as_array);
    let programs = programs.ok_or_else(|| bad("it has no targets".to_owned()))?;
    let names = programs
        .iter()
        .filter_map(|program| program.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

impl Outcome {
    fn line(&self) -> String {
        format!(
            "{:<18} {:>11} {:>7} {:>9} {:>6} {:>9} {:>8} {:>8.0} s {:>6.0} s",
            self.target,
            self.executions,
            self.edges,
            self.features,
            self.files,
            self.octets,
            self.failures.len(),
            self.processor_seconds,
            self.seconds,
        )
    }
}

const HEADINGS: &str = "target              executions   edges  features  files    octets \
                        failures  processor     time";
