//! Other processes with a part in a statement: they run the same test of this program.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use chronorb_transport::Address;

use super::subject::Subject;

/// Returns the instruction to this process, if it is the child.
pub(crate) fn told() -> Option<String> {
    env::var(VARIABLE).ok()
}

/// Tells the first process something.
pub(crate) fn tell(word: &str) {
    // The test harness may have written part of a line.
    println!("\n{MARK}{word}");
}

/// The other process; it is killed where it is not awaited.
pub(crate) struct Other {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Other {
    pub(crate) fn start(subject: &Subject, told: &str) -> Self {
        let mut child = Command::new(env::current_exe().expect("it runs"))
            .args(["--exact", subject.test, "--nocapture"])
            .env(VARIABLE, told)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts again");
        let output = child.stdout.take().expect("it is piped");
        Self {
            child,
            output: BufReader::new(output),
        }
    }

    /// The next word that it tells.
    pub(crate) fn word(&mut self) -> String {
        loop {
            let mut line = String::new();
            let n = self.output.read_line(&mut line).expect("it is open");
            assert_ne!(n, 0, "the other process ended without a word");
            if let Some(word) = line.strip_prefix(MARK) {
                return word.trim_end().to_owned();
            }
        }
    }

    /// Kills it as nothing can prevent, and waits for its end.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
    }

    /// Waits for its success.
    pub(crate) fn finish(mut self) {
        while self.output.read_line(&mut String::new()).unwrap_or(0) > 0 {}
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "the other process: {status}");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended long since.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address as a word.
pub(crate) fn to_word(address: &Address) -> String {
    match address {
        Address::Host { host, port } => format!("{port} {host}"),
        Address::Path(path) => format!("- {path}"),
    }
}

pub(crate) fn from_word(word: &str) -> Address {
    match word.split_once(' ').expect("an address") {
        ("-", path) => Address::Path(path.to_owned()),
        (port, host) => Address::host(host, port.parse().expect("a port")),
    }
}

const VARIABLE: &str = "CHRONORB_CONFORMANCE_PEER";
const MARK: &str = "TOLD: ";
