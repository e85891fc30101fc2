//! Tests that need a process of their own: they start this program again.

use std::env;
use std::process::{Command, ExitStatus};

/// Set in the environment of a program that was started again.
const AGAIN: &str = "CHRONORB_RT_TEST_PROGRAM";

/// The name of a test, by which this program runs it alone (`--exact`).
fn name_of<T>(_test: T) -> &'static str {
    let path = std::any::type_name::<T>();
    path.split_once("::").expect("it is in a module").1
}

/// Runs `program` in a new process, which is this one's program with the calling test alone;
/// returns how it ended, or `None` in the new process.
pub(crate) fn run<T>(test: T, program: fn()) -> Option<ExitStatus> {
    if env::var_os(AGAIN).is_some() {
        program();
        return None;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name_of(test), "--nocapture"])
        .env(AGAIN, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("running 1 test\n"), "{said}");
    Some(output.status)
}
