//! The server and the client of the example, as processes.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::{env, fs, process};

/// A server, and the reference that it printed. Killed when a test ends early.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) reference: String,
}

impl Server {
    /// Starts the example's server with these options.
    pub(crate) fn start<S: AsRef<OsStr>>(options: &[S]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quoter-server"));
        Self::of(command.args(options))
    }

    /// Starts a program that prints a reference and serves.
    pub(crate) fn of(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.expect("the server starts");
        let stdout = child.stdout.take().expect("it is piped");
        let mut reference = String::new();
        BufReader::new(stdout)
            .read_line(&mut reference)
            .expect("the server prints its reference");
        Self {
            child,
            reference: reference.trim().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the example's client.
pub(crate) fn client<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quoter-client"));
    command.args(arguments).output().expect("the client runs")
}

/// A directory for temporary files, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn make(name: &str) -> Self {
        let path = env::temp_dir().join(format!("chronorb-{name}-{}", process::id()));
        fs::create_dir_all(&path).expect("the folder can be made");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the first block of shell commands of a page that contains a word, in a folder.
pub(crate) fn run_block(page: &str, word: &str, folder: &Path) {
    let mut blocks = page.split("```sh\n").skip(1);
    let block = blocks.find_map(|rest| rest.split("```").next().filter(|b| b.contains(word)));
    let block = block.expect("the page has the commands");
    let shell = Command::new("sh")
        .args(["-ec", block])
        .current_dir(folder)
        .output();
    let output = shell.expect("sh runs");
    assert!(output.status.success(), "{block}\n{output:?}");
}

/// Whether a program of another project can be run. With `CHRONORB_PEERS=required` its absence is
/// a failure.
pub(crate) fn has(program: &str, package: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    let required = env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
    if !found {
        println!("NOT RUN: {program} is missing (apt-get install {package})");
        assert!(!required, "CHRONORB_PEERS=required: {program} is missing");
    }
    found
}
