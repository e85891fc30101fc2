//! The times of test programs, each of which cargo starts through this program.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Instant;

use super::Step;
use crate::run::{self, Failure, target_dir};

/// A run of test programs.
pub(super) struct TimedTests {
    /// A copy of this program, since cargo may build another in its place.
    runner: PathBuf,
    /// The file to which the runner appends times.
    times: PathBuf,
}

impl TimedTests {
    pub(super) fn new() -> Result<Self, Failure> {
        let folder = target_dir().join("timed");
        let (runner, times) = (folder.join("xtask"), folder.join("times"));
        let bad = |e: std::io::Error| Failure(format!("{}: {e}", folder.display()));
        fs::create_dir_all(&folder).map_err(bad)?;
        fs::copy(env::current_exe().map_err(bad)?, &runner).map_err(bad)?;
        File::create(&times).map_err(bad)?;
        Ok(Self { runner, times })
    }

    /// Runs tests by this command of cargo.
    pub(super) fn run(&self, mut cargo: Command) -> Result<(), Failure> {
        let command = [&self.runner, Path::new(RUNNER), &self.times].map(|part| {
            let part = part.display().to_string();
            format!("{part:?}")
        });
        let runner = format!("target.'cfg(all())'.runner=[{}]", command.join(", "));
        cargo.args(["--config", &runner]);
        run::cargo_tests(cargo)
    }

    /// Returns the times of the programs.
    pub(super) fn steps(&self) -> Result<Vec<Step>, Failure> {
        let text = fs::read_to_string(&self.times);
        let text = text.map_err(|e| Failure(format!("{}: {e}", self.times.display())))?;
        let mut steps: BTreeMap<String, Step> = BTreeMap::new();
        for line in text.lines() {
            let step: Step = serde_json::from_str(line)
                .map_err(|e| Failure(format!("{}: {e}", self.times.display())))?;
            let sum = steps.entry(step.name.clone());
            sum.and_modify(|sum| {
                sum.seconds += step.seconds;
                sum.processor_seconds += step.processor_seconds;
            })
            .or_insert(step);
        }
        Ok(steps.into_values().collect())
    }
}

/// Runs a test program if cargo has started this one for that.
pub(crate) fn as_runner() -> Option<ExitCode> {
    let mut args = env::args_os().skip(1);
    if args.next()? != RUNNER {
        return None;
    }
    let (times, program) = (args.next()?, args.next()?);
    let began = Instant::now();
    let status = Command::new(&program).args(args).status();
    let step = Step {
        name: program_name(Path::new(&program)),
        seconds: began.elapsed().as_secs_f64(),
        processor_seconds: run::own_processor_seconds(),
        is_set_up: false,
    };
    let line = serde_json::to_string(&step).expect("it is plain data");
    let appended = File::options()
        .append(true)
        .open(&times)
        .and_then(|mut file| writeln!(file, "{line}"));
    let problem = match (status, appended) {
        (Ok(status), Ok(())) => return Some(code(&program.to_string_lossy(), status)),
        (Err(e), _) => format!("{}: {e}", program.display()),
        (_, Err(e)) => format!("{}: {e}", times.display()),
    };
    eprintln!("xtask: {problem}");
    Some(ExitCode::FAILURE)
}

fn code(program: &str, status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        eprintln!("xtask: {program}: {status}");
        return ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Returns the package and the target of a program: `deps/it-0123456789abcdef` is `it`.
fn program_name(program: &Path) -> String {
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    let file = program.file_stem().unwrap_or_default().to_string_lossy();
    let target = file.rsplit_once('-').map_or(&*file, |(target, _)| target);
    let target = target.replace('_', "-");
    if target == package {
        format!("test {package}")
    } else {
        format!("test {package} {target}")
    }
}

/// The first argument of a program that runs another.
const RUNNER: &str = "--timed";
