//! Running other programs.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

/// The manifest of the example that is no member of the workspace.
pub(crate) const OUTSIDE: &str = "examples/serial-line/Cargo.toml";

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
    // The very cargo that runs this, so that a chosen toolchain stays chosen.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args);
    for (name, value) in environment {
        command.env(name, value);
    }
    command.current_dir(root());
    run(&mut command)
}

/// Runs a program, its output passed on.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let shown = shown(command);
    // What a job itself prints may be for programs.
    eprintln!("$ {shown}");
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

fn shown(command: &Command) -> String {
    let program = command.get_program();
    std::iter::once(program)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
