//! Running the command.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs `chronorb` with these arguments in this directory.
pub(crate) fn chronorb(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chronorb"))
        .args(arguments)
        .current_dir(dir)
        // Reports without a place of their own go below.
        .env("XDG_STATE_HOME", dir)
        .output()
        .expect("the command starts")
}

/// Runs `chronorb` as [`chronorb`] does, with a text as its standard input.
pub(crate) fn chronorb_reading(dir: &Path, arguments: &[&str], text: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_chronorb"))
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    // The command may end without reading it.
    let _ = stdin.write_all(text.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("the command ends")
}

pub(crate) fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).expect("standard output is text")
}

pub(crate) fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).expect("standard error is text")
}
