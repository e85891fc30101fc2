//! Running the command.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs `chronorb` with these arguments in this directory.
pub(crate) fn chronorb(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chronorb"))
        .args(arguments)
        .current_dir(dir)
        .output()
        .expect("the command starts")
}

pub(crate) fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).expect("standard output is text")
}

pub(crate) fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).expect("standard error is text")
}
