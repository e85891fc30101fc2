//! One run of a target.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::build::FuzzPrograms;
use super::{Outcome, corpus};
use crate::run::{Failure, processor_seconds, root, target_dir};

/// Fuzzes for so long, or until an input fails.
pub(super) fn run(
    programs: &FuzzPrograms,
    target: &str,
    time: Duration,
) -> Result<Outcome, Failure> {
    let work = corpus::working(target);
    let artifacts = root().join("fuzz/artifacts").join(target);
    create(&work)?;
    create(&artifacts)?;
    let before = files(&artifacts);
    let last_input = target_dir().join("fuzz").join(format!("{target}.input"));
    // That of another run says nothing.
    let _ = fs::remove_file(&last_input);
    let mut command = Command::new(programs.path(target));
    command
        .envs(&programs.environment)
        .env(LAST_INPUT, &last_input);
    command.arg(format!("-max_total_time={}", time.as_secs().max(1)));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.args(OPTIONS);
    let dictionary = root().join("fuzz").join(format!("{target}.dict"));
    if dictionary.is_file() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    command.arg(&work);
    command.args(corpus::kept(target).iter().filter(|path| path.is_dir()));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let log_path = target_dir().join("fuzz").join(format!("{target}.log"));
    let bad = |error: std::io::Error| Failure(format!("{target}: {error}"));
    let mut log = File::create(&log_path).map_err(bad)?;
    eprintln!(
        "{target}: {} s, log in {}",
        time.as_secs(),
        log_path.display()
    );
    let began = Instant::now();
    let mut child = command.spawn().map_err(bad)?;
    let mut outcome = Outcome {
        target: target.to_owned(),
        executions: 0,
        edges: 0,
        features: 0,
        files: 0,
        octets: 0,
        failures: Vec::new(),
        processor_seconds: 0.0,
        seconds: 0.0,
    };
    if let Some(output) = child.stderr.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(bad)?;
            let _ = log.write_all(&line);
            let _ = log.write_all(b"\n");
            outcome.note(&String::from_utf8_lossy(&line));
        }
    }
    // Its output has ended with the process, which keeps its times until it is waited for.
    outcome.processor_seconds = processor_seconds(child.id());
    let status = child.wait().map_err(bad)?;
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.failures = files(&artifacts).difference(&before).cloned().collect();
    if !status.success() && outcome.failures.is_empty() {
        // It ended without a word, as by an overflow of the stack of a thread.
        let path = artifacts.join(format!("killed-{}", std::process::id()));
        if fs::copy(&last_input, &path).is_ok() {
            outcome.failures.push(path);
        } else {
            let log = log_path.display();
            return Err(Failure(format!("{target}: {status}, see {log}")));
        }
    }
    let corpus = files(&work);
    outcome.files = corpus.len();
    let sizes = corpus.iter().filter_map(|path| path.metadata().ok());
    outcome.octets = sizes.map(|metadata| metadata.len()).sum();
    Ok(outcome)
}

impl Outcome {
    /// Reads a line of libFuzzer: `#4711 NEW cov: 1 ft: 2 corp: 3/4Kb …`.
    fn note(&mut self, line: &str) {
        let Some(line) = line.strip_prefix('#') else {
            return;
        };
        let mut words = line.split_whitespace();
        let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
        let Some(executions) = number(words.next()) else {
            return;
        };
        self.executions = executions;
        while let Some(word) = words.next() {
            match word {
                "cov:" => self.edges = number(words.next()).unwrap_or(self.edges),
                "ft:" => self.features = number(words.next()).unwrap_or(self.features),
                _ => {}
            }
        }
    }
}

pub(super) fn create(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory)
        .map_err(|error| Failure(format!("{}: {error}", directory.display())))
}

/// The files of a folder.
pub(super) fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect()
}

/// The variable that names the file for the running input, in case it ends the process.
const LAST_INPUT: &str = "CHRONORB_FUZZ_INPUT";

const OPTIONS: [&str; 7] = [
    "-max_len=1048576",
    "-timeout=20",
    "-report_slow_units=20",
    "-rss_limit_mb=2048",
    "-print_final_stats=1",
    "-detect_leaks=0",
    "-close_fd_mask=1",
];
