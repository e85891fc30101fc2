//! The programs of the targets. The crates of this repository are instrumented, and nothing else.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::run::{self, Failure, root, target_dir};

/// The built targets, and what they need of their environment.
#[derive(Debug)]
pub(super) struct FuzzPrograms {
    directory: PathBuf,
    pub(super) environment: HashMap<&'static str, PathBuf>,
}

impl FuzzPrograms {
    pub(super) fn path(&self, target: &str) -> PathBuf {
        self.directory.join(target)
    }
}

/// The purpose of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Many executions, by optimised code.
    Fuzzing,
    /// The edges of inputs. The code is not optimised: by inlining, an edge would become several.
    Coverage,
}

/// Builds targets.
pub(super) fn programs(targets: &[String], purpose: Purpose) -> Result<FuzzPrograms, Failure> {
    let itself = env::current_exe().map_err(|error| Failure(error.to_string()))?;
    let (directory, profile) = match purpose {
        Purpose::Fuzzing => (target_dir().join("fuzz"), "release"),
        // The ordinary build has much of it.
        Purpose::Coverage => (target_dir(), "debug"),
    };
    let environment = [
        ("CARGO_TARGET_DIR", directory.display().to_string()),
        ("RUSTC_WRAPPER", itself.display().to_string()),
        (AS_COMPILER, "1".to_owned()),
        ("CARGO_INCREMENTAL", "0".to_owned()),
        ("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only".to_owned()),
        ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true".to_owned()),
        ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true".to_owned()),
    ];
    let mut args = vec!["build", "--package=chronorb-fuzz", "--features=libfuzzer"];
    if purpose == Purpose::Fuzzing {
        args.push("--release");
    }
    // With a target, build scripts and macros are another build, which is not instrumented.
    args.extend(["--target", TARGET]);
    args.extend(targets.iter().flat_map(|target| ["--bin", target.as_str()]));
    run::cargo(&args, &environment)?;
    let mut environment = HashMap::new();
    if targets.iter().any(|target| target == OMNIORB) {
        environment.insert(OMNIORB_PROGRAM, omniorb()?);
    }
    Ok(FuzzPrograms {
        directory: directory.join(TARGET).join(profile),
        environment,
    })
}

/// Builds the program that decodes anys by omniORB.
pub(super) fn omniorb() -> Result<PathBuf, Failure> {
    let directory = target_dir().join("interop-omniorb");
    let program = directory.join("omni_any_octets");
    let mut make = Command::new("make");
    make.arg("--silent")
        .arg("-C")
        .arg(root().join("interop/omniorb"));
    make.arg(format!("BUILD={}", directory.display()));
    run::run(make.arg(&program))?;
    Ok(program)
}

/// Runs the compiler as cargo asks for it, if this program is cargo's `RUSTC_WRAPPER`.
///
/// Flags in `RUSTFLAGS` would instrument all dependencies, whose edges are of no interest.
pub(crate) fn as_compiler() -> Option<ExitCode> {
    env::var_os(AS_COMPILER)?;
    let mut args = env::args_os().skip(1);
    let mut command = Command::new(args.next()?);
    let args: Vec<OsString> = args.collect();
    command.args(&args);
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.to_str()
    };
    let is_own = value("--crate-name").is_some_and(|name| name.starts_with("chronorb"));
    if is_own && value("--target").is_some() {
        command.args(INSTRUMENTATION);
    }
    let code = command.status().ok().and_then(|status| status.code());
    Some(code.map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)))
}

const TARGET: &str = "x86_64-unknown-linux-gnu";
const AS_COMPILER: &str = "CHRONORB_XTASK_AS_COMPILER";
pub(super) const OMNIORB: &str = "omniorb_anys";
/// The variable by which the target is told of the program.
pub(super) const OMNIORB_PROGRAM: &str = "CHRONORB_FUZZ_OMNIORB";

/// As cargo-fuzz has it.
const INSTRUMENTATION: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
