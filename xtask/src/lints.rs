//! Clippy, and the build of tests, which is the same compilation in CI.

use std::path::Path;
use std::process::Command;

use crate::run::{self, Failure, ask};

/// Clippy of all but the interfaces of other projects, half a million lines.
pub(crate) fn clippy() -> Result<(), Failure> {
    let workspace = [
        "clippy",
        "--workspace",
        "--exclude=chronorb-services-tests",
        "--all-targets",
    ];
    run::cargo(&[&workspace[..], &DENY].concat(), &[])
}

/// Clippy of the Rust of every file of the OMG and of omniORB, as far as that is installed. It has
/// no tests, and is not linked.
pub(crate) fn services() -> Result<(), Failure> {
    let services = ["clippy", "--package=chronorb-services-tests"];
    run::cargo(&[&services[..], &DENY].concat(), &[])
}

/// Checks a package with these features alone, and denies the warnings of the compiler. Those of
/// clippy would take as long again, and hardly depend on features.
pub(crate) fn check_features(package: &str, features: &str) -> Result<(), Failure> {
    let package = format!("--package={package}");
    let check = [
        "check",
        "--quiet",
        "--message-format=json",
        "--no-default-features",
    ];
    let selected = [&package, "--features", features];
    // A check that fails has its messages in the failure.
    let checked = run::cargo_output(&[&check[..], &selected].concat(), &[]);
    let output = checked.as_ref().unwrap_or_else(|Failure(text)| text);
    let messages = output.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(line.get("message")?.get("rendered")?.as_str()?.to_owned())
    });
    let messages: Vec<String> = messages.collect();
    if messages.is_empty() {
        return checked.map(drop);
    }
    Err(Failure(format!(
        "with {features:?} alone:\n{}",
        messages.concat()
    )))
}

/// The options of cargo by which the workspace is compiled for tests.
#[derive(Default)]
pub(crate) struct TestBuild {
    options: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl TestBuild {
    /// The build in which clippy's driver is the compiler of the workspace, so that each crate is
    /// compiled once for lints and tests.
    pub(crate) fn linted() -> Result<Self, Failure> {
        let sysroot = ask("rustc", &["--print=sysroot"]).unwrap_or_default();
        // cargo-clippy has the same path, which is a part of the identity of a build.
        let driver = Path::new(&sysroot).join("bin/clippy-driver");
        if !driver.is_file() {
            return Err(Failure(format!(
                "{} is missing (install with: rustup component add clippy)",
                driver.display()
            )));
        }
        Ok(Self {
            options: vec![
                "--config".to_owned(),
                format!("build.rustc-workspace-wrapper={driver:?}"),
            ],
            environment: vec![("CLIPPY_ARGS", DENY[1..].join(SEPARATOR) + SEPARATOR)],
        })
    }

    /// Returns the command of cargo with these arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = run::cargo_command(args, &self.environment);
        command.args(&self.options);
        command
    }
}

const DENY: [&str; 3] = ["--", "--deny", "warnings"];
/// cargo-clippy ends each argument of its driver by this.
const SEPARATOR: &str = "__CLIPPY_HACKERY__";
