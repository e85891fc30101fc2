//! Running other programs.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The manifest of the example that is no member of the workspace.
pub(crate) const OUTSIDE: &str = "examples/serial-line/Cargo.toml";

/// The manifest of the workspace of programs with an asynchronous runtime or a large server.
pub(crate) const INTEGRATIONS: &str = "integrations/Cargo.toml";

/// A job did not come to its end.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs cargo in the workspace's root, its output passed on.
pub(crate) fn cargo(args: &[&str], environment: &[(&str, String)]) -> Result<(), Failure> {
    run(&mut cargo_command(args, environment))
}

/// Runs cargo in the workspace's root, and returns its standard output.
pub(crate) fn cargo_output(
    args: &[&str],
    environment: &[(&str, String)],
) -> Result<String, Failure> {
    let mut command = cargo_command(args, environment);
    let shown = announce(&command);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| Failure(format!("{shown}: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(Failure(format!("{shown}: {}\n{text}", output.status)))
    }
}

/// Runs tests by this command of cargo, its output passed on. What tests say that fail stands again
/// at the end of the failure, since most of a long log comes after it.
pub(crate) fn cargo_tests(mut command: Command) -> Result<(), Failure> {
    let shown = announce(&command);
    let failed = |error: io::Error| Failure(format!("{shown}: {error}"));
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let (mut failures, mut in_failures) = (Vec::new(), false);
    if let Some(output) = child.stdout.take() {
        let mut log = io::stdout().lock();
        for line in BufReader::new(output).split(b'\n') {
            let mut line = line.map_err(failed)?;
            in_failures |= line == b"failures:";
            in_failures &= !line.starts_with(b"test result:");
            line.push(b'\n');
            log.write_all(&line).map_err(failed)?;
            if in_failures {
                failures.extend(line);
            }
        }
    }
    let status = child.wait().map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let failures = String::from_utf8_lossy(&failures);
    Err(Failure(format!("{shown}: {status}\n{failures}")))
}

/// Returns the command of cargo in the workspace's root.
pub(crate) fn cargo_command(args: &[&str], environment: &[(&str, String)]) -> Command {
    // The very cargo that runs this, so that a chosen toolchain stays chosen.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args);
    for (name, value) in environment {
        command.env(name, value);
    }
    command.current_dir(root());
    command
}

/// Runs a program, its output passed on.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let shown = announce(command);
    let status = command
        .status()
        .map_err(|error| Failure(format!("{shown}: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure(format!("{shown}: {status}")))
    }
}

/// Returns the output of a program, or `None` if it fails or does not exist.
pub(crate) fn ask(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the user and system time of this process and of its children that have ended.
pub(crate) fn own_processor_seconds() -> f64 {
    processor_seconds(std::process::id())
}

/// Returns the user and system time of a process and of its children that have ended, by proc(5).
pub(crate) fn processor_seconds(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name before it may have spaces.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let times = fields.split_whitespace().skip(11).take(4);
    let ticks: u64 = times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS
}

/// Ticks of a second in proc(5), which are the same on all machines (`USER_HZ`).
pub(crate) const TICKS: f64 = 100.0;

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// Returns the directory in which cargo builds.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Prints a command, and returns it as text.
fn announce(command: &Command) -> String {
    let program = command.get_program();
    let shown = std::iter::once(program)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ");
    // What a job itself prints may be for programs.
    eprintln!("$ {shown}");
    shown
}
