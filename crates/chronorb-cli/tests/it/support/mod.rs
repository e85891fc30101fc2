//! Running the command.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

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

/// Starts `chronorb events tap` with pipes for its output and its messages.
pub(crate) fn spawn_tap(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_chronorb"))
        .args(["events", "tap"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts")
}

pub(crate) fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).expect("standard output is text")
}

pub(crate) fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).expect("standard error is text")
}

/// Returns whether a program of another ORB is installed. Without it the test is skipped with a
/// note.
///
/// # Panics
/// With `CHRONORB_PEERS=required`, if it is missing.
pub(crate) fn has_peer(program: &str, install: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    if !is_there {
        let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
        assert!(
            !required,
            "CHRONORB_PEERS=required, and {program} is missing: {install}"
        );
        println!("left out: {program} is missing ({install})");
    }
    is_there
}

/// A command that serves, and the first line that it prints.
pub(crate) struct Server {
    process: Child,
    pub(crate) reference: String,
}

impl Server {
    /// Starts a command, and waits for its first line.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_chronorb"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let output = process.stdout.take().expect("a pipe");
        let mut reference = String::new();
        let read = BufReader::new(output).read_line(&mut reference);
        read.expect("it prints a reference");
        let reference = reference.trim().to_owned();
        Self { process, reference }
    }

    /// Sends `SIGTERM`, and returns how it ended.
    pub(crate) fn end(mut self) -> Option<i32> {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
        self.process.wait().expect("it ends").code()
    }
}

impl Server {
    /// Waits until it ends by itself, and returns how.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.process.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
