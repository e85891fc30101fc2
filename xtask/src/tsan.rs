//! The tests of threads under ThreadSanitizer.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::run::{self, Failure, ask};

/// Runs the tests of the runtime and of the ORB core, and reports the data races that happen in
/// them. Every module runs, whatever the one before did, and the summary names all of them.
///
/// The sanitizer is part of every toolchain, and its option is one of those that a stable compiler
/// takes only when it is told to.
pub(crate) fn tsan() -> Result<(), Failure> {
    let units = build(&["--package=chronorb-rt", "--lib"])?;
    let programs = build(&["--test=it"])?;
    let mut runs = Vec::new();
    for unit in &units {
        // With the sanitizer an arena is resident from the start.
        let mut command = unit.command(&["--skip=room::tests::"]);
        runs.push(Run::of(&mut command, &unit.name, "any"));
    }
    for strategy in ["leader-followers", "half-sync"] {
        for program in &programs {
            for module in MODULES {
                let mut command = program.command(&[&[*module], LEFT_OUT].concat());
                if WITHOUT_RIGHTS.contains(module) {
                    command = without_rights(&command);
                }
                command.env("CHRONORB_ORB_THREADPOOL_STRATEGY", strategy);
                runs.push(Run::of(&mut command, module, strategy));
            }
        }
    }
    println!("{}", Summary(&runs));
    let bad = runs.iter().filter(|run| !run.is_clean()).count();
    if bad == 0 && !runs.is_empty() {
        return Ok(());
    }
    Err(Failure(format!("{bad} of {} runs failed", runs.len())))
}

/// A test program that was built with the sanitizer.
struct Program {
    name: String,
    path: PathBuf,
    folder: PathBuf,
}

impl Program {
    fn command(&self, args: &[&str]) -> Command {
        let suppressions = run::root().join("xtask/tsan.supp");
        let options = format!("suppressions={} history_size=4", suppressions.display());
        let mut command = Command::new(&self.path);
        command
            .args(args)
            .current_dir(&self.folder)
            .env("TSAN_OPTIONS", options)
            .env("CHRONORB_MODEL_STEPS", MODEL_STEPS);
        command
    }
}

/// Returns the command for a process that may not use real-time scheduling.
fn without_rights(command: &Command) -> Command {
    let mut outer = Command::new("prlimit");
    outer.arg("--rtprio=0");
    if ask("id", &["-u"]).as_deref() == Some("0") {
        outer.args([
            "setpriv",
            "--bounding-set=-sys_nice",
            "--inh-caps=-sys_nice",
        ]);
    }
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        outer.env(name, value.unwrap_or_default());
    }
    outer.current_dir(command.get_current_dir().unwrap_or_else(|| Path::new(".")));
    outer
}

/// A message of cargo, as far as it tells of programs.
#[derive(Deserialize)]
struct CargoMessage {
    #[serde(default)]
    executable: Option<PathBuf>,
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    target: Target,
}

#[derive(Default, Deserialize)]
struct Target {
    #[serde(default)]
    name: String,
}

/// Builds test programs of the ORB, and of the packages that are named.
fn build(of: &[&str]) -> Result<Vec<Program>, Failure> {
    let args = [
        &[
            "test",
            "--no-run",
            "--message-format=json-render-diagnostics",
            "--package=chronorb-orb",
            "--features=baselines",
            "--target=x86_64-unknown-linux-gnu",
        ],
        of,
    ];
    let environment = [
        ("RUSTC_BOOTSTRAP", "1".to_owned()),
        (
            "RUSTFLAGS",
            "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer".to_owned(),
        ),
        (
            "CARGO_TARGET_DIR",
            run::target_dir().join("tsan").display().to_string(),
        ),
    ];
    let told = run::cargo_output(&args.concat(), &environment)?;
    let programs = told.lines().filter_map(|line| {
        let message: CargoMessage = serde_json::from_str(line).ok()?;
        Some(Program {
            name: message.target.name,
            path: message.executable?,
            folder: message.manifest_path.parent()?.to_owned(),
        })
    });
    Ok(programs.collect())
}

/// The outcome of one module, or of the units of one package.
struct Run {
    subject: String,
    strategy: &'static str,
    passed: u64,
    failed: u64,
    races: u64,
    took: Duration,
    /// The way in which the program has ended, unless it was in order.
    problem: Option<String>,
}

impl Run {
    /// Runs a test program, its output passed on.
    fn of(command: &mut Command, subject: &str, strategy: &'static str) -> Self {
        eprintln!("$ {subject} ({strategy})");
        let began = Instant::now();
        let ended = watch(command);
        let took = began.elapsed();
        let mut run = Self {
            subject: subject.to_owned(),
            strategy,
            passed: 0,
            failed: 0,
            races: 0,
            took,
            problem: None,
        };
        match ended {
            Err(error) => run.problem = Some(error.to_string()),
            Ok((status, result, races)) => {
                (run.passed, run.failed) = result.unwrap_or_default();
                run.races = races;
                run.problem = problem(status, result);
            }
        }
        run
    }

    fn is_clean(&self) -> bool {
        self.problem.is_none() && self.races == 0
    }
}

/// The numbers of tests that passed and failed.
type TestCounts = (u64, u64);

/// Returns what is wrong with the end of a test program.
fn problem(status: ExitStatus, result: Option<TestCounts>) -> Option<String> {
    if let Some(signal) = status.signal() {
        return Some(format!("killed by signal {signal}"));
    }
    match (status.code(), result) {
        (Some(0), Some((1.., _))) => None,
        (Some(0), _) => Some("no test ran".to_owned()),
        (Some(code), Some(_)) => Some(format!("exit code {code}")),
        (code, None) => Some(format!("exit code {code:?} without a result")),
        (None, _) => Some(status.to_string()),
    }
}

/// Runs a test program to its end. Returns its status, the numbers of tests that passed and failed
/// if it told them, and the number of reported races.
fn watch(command: &mut Command) -> io::Result<(ExitStatus, Option<TestCounts>, u64)> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let errors = child.stderr.take();
    let reports = thread::spawn(move || {
        let mut races = 0;
        pass_on(errors, io::stderr(), |line| {
            races += u64::from(line.starts_with("WARNING: ThreadSanitizer: "));
        })?;
        io::Result::Ok(races)
    });
    let mut result = None;
    pass_on(child.stdout.take(), io::stdout(), |line| {
        result = counts(line).or(result);
    })?;
    let status = child.wait()?;
    let races = reports.join();
    let races = races.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok((status, result, races))
}

/// Copies lines, and shows each.
fn pass_on(
    from: Option<impl Read>,
    mut to: impl Write,
    mut show: impl FnMut(&str),
) -> io::Result<()> {
    let Some(from) = from else {
        return Ok(());
    };
    for line in BufReader::new(from).split(b'\n') {
        let mut line = line?;
        show(&String::from_utf8_lossy(&line));
        line.push(b'\n');
        to.write_all(&line)?;
    }
    Ok(())
}

/// Returns the numbers of tests that passed and failed, from the last line of a test program.
fn counts(line: &str) -> Option<TestCounts> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = counts.split("; ").map(|count| count.split_once(' '));
    let mut number = |of: &str| {
        let (number, what) = counts.next()??;
        (what == of).then(|| number.parse().ok())?
    };
    Some((number("passed")?, number("failed")?))
}

/// The table of all runs.
struct Summary<'r>(&'r [Run]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<30} {:<18} {:>6} {:>6} {:>6} {:>7}",
            "module", "strategy", "passed", "failed", "races", "seconds"
        )?;
        for run in self.0 {
            writeln!(
                f,
                "{:<30} {:<18} {:>6} {:>6} {:>6} {:>7.1} {}",
                run.subject,
                run.strategy,
                run.passed,
                run.failed,
                run.races,
                run.took.as_secs_f64(),
                run.problem.as_deref().unwrap_or_default()
            )?;
        }
        let sum = |of: fn(&Run) -> u64| self.0.iter().map(of).sum::<u64>();
        let took: Duration = self.0.iter().map(|run| run.took).sum();
        write!(
            f,
            "{:<30} {:<18} {:>6} {:>6} {:>6} {:>7.1}",
            "all",
            "",
            sum(|run| run.passed),
            sum(|run| run.failed),
            sum(|run| run.races),
            took.as_secs_f64()
        )
    }
}

/// The random steps of each combination of `pools::model`. The sanitizer makes each of them several
/// times as long.
const MODEL_STEPS: &str = "10";

/// The modules of the ORB's tests where threads meet the most. Those of what the sanitizer itself
/// changes are left out: allocations, page faults, system calls.
/// Tests whose limits of memory the sanitizer's own memory exceeds.
const LEFT_OUT: &[&str] = &["--skip=server::hostile::classes::"];

/// Modules that stand still with real-time priorities: a thread of the sanitizer that waits for a
/// lock yields, which lets no thread of a lower priority run that has it.
const WITHOUT_RIGHTS: &[&str] = &["pools::model::"];

const MODULES: &[&str] = &[
    "client::active::",
    "client::calls::",
    "client::collocation::",
    "client::connections::",
    "client::exclusive::",
    "client::failures::",
    "poa::lifecycle::",
    "poa::managers::",
    "poa::servant_managers::",
    "poa::threads::",
    "pools::lanes::",
    "pools::model::",
    "pools::stress::",
    "rtcorba::mutexes::",
    "rtcorba::object_priorities::",
    "server::hostile::",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Run {
        Run::of(Command::new("sh").args(["-c", script]), "script", "any")
    }

    const OK: &str = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured'";

    #[test]
    fn a_program_that_passes_is_counted() {
        let run = run(OK);
        assert!(run.is_clean());
        assert_eq!((run.passed, run.failed, run.races), (3, 0, 0));
    }

    #[test]
    fn a_program_that_is_killed_is_reported_with_its_signal() {
        let run = run("echo 'running 3 tests'; kill -KILL $$");
        assert_eq!(run.problem.as_deref(), Some("killed by signal 9"));
        let summary = Summary(&[run]).to_string();
        assert!(summary.contains("killed by signal 9"), "{summary}");
    }

    #[test]
    fn races_failures_and_empty_runs_are_no_success() {
        let race = "echo 'WARNING: ThreadSanitizer: data race (pid=7)' >&2; exit 66";
        let racing = run(&format!("{OK}; {race}"));
        assert_eq!((racing.races, racing.is_clean()), (1, false));
        let failing = run("echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'; exit 101");
        assert_eq!((failing.failed, failing.is_clean()), (2, false));
        assert!(!run("exit 3").is_clean());
        let empty = run("echo 'test result: ok. 0 passed; 0 failed; 0 ignored'");
        assert_eq!(empty.problem.as_deref(), Some("no test ran"));
    }
}
