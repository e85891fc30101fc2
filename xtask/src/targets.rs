//! The check of the workspace for other machines, and the oldest compiler.

use std::path::Path;

use crate::run::{self, Failure, ask, root};
use crate::{packages, peers};

/// Checks `chronorb` for each target. Types of C, of the kernel and of machine words differ there.
pub(crate) fn targets() -> Result<(), Failure> {
    let mut arguments = vec!["check", "--package=chronorb", "--no-default-features"];
    let features = packages::chronorb_features()?;
    let features = features.iter().map(String::as_str);
    let features = features.filter(|feature| !LEFT_OUT.contains(feature));
    let features = features.collect::<Vec<_>>().join(",");
    arguments.extend(["--features", &features]);
    let provided = provide_all()?;
    if provided.is_empty() {
        return Ok(());
    }
    for target in provided {
        arguments.extend(["--target", target]);
    }
    run::cargo(&arguments, &[("RUSTFLAGS", "--deny warnings".to_owned())])
}

/// The targets, and the property in which each one differs from `x86_64-unknown-linux-gnu`.
const TARGETS: [&str; 3] = [
    // Unsigned characters, another memory model, other numbers of system calls.
    "aarch64-unknown-linux-gnu",
    // Another C library.
    "x86_64-unknown-linux-musl",
    // Machine words of 32 bits.
    "armv7-unknown-linux-gnueabihf",
];

/// Features without types of C. For `ssliop` the build script of *ring* runs a C compiler for the
/// target, even for a check. `monitor-client` reads JSON by `serde`, which takes as long as several
/// of our crates.
const LEFT_OUT: [&str; 2] = ["ssliop", "monitor-client"];

/// Installs the standard libraries for the targets, where rustup can. Returns the targets that have
/// one.
pub(crate) fn provide_all() -> Result<Vec<&'static str>, Failure> {
    let mut provided = Vec::new();
    for target in TARGETS {
        if provide(target)? {
            provided.push(target);
        }
    }
    Ok(provided)
}

/// Installs the standard library for a target, where rustup can. Returns whether it is there.
///
/// # Errors
/// The installation failed, and `CHRONORB_PEERS=required` makes that a failure.
pub(crate) fn provide(target: &str) -> Result<bool, Failure> {
    let is_there = || {
        ask("rustc", &["--print=target-libdir", "--target", target])
            .is_some_and(|folder| Path::new(&folder).is_dir())
    };
    if is_there() || (ask("rustup", &["target", "add", target]).is_some() && is_there()) {
        return Ok(true);
    }
    left_out(&format!(
        "{target}: its standard library is missing (install with: rustup target add {target})"
    ))
}

/// Installs the oldest Rust that `rust-version` of Cargo.toml allows, and returns its version.
/// Returns `None` where rustup cannot install it.
///
/// # Errors
/// The installation failed, and `CHRONORB_PEERS=required` makes that a failure.
pub(crate) fn oldest_rust() -> Result<Option<String>, Failure> {
    let manifest = packages::read(&root().join("Cargo.toml"))?;
    let version = packages::of_workspace(&manifest, "rust-version")?;
    let is_there = || ask("rustup", &["run", &version, "rustc", "--version"]).is_some();
    let install = ["toolchain", "install", &version, "--profile=minimal"];
    if is_there() || (ask("rustup", &install).is_some() && is_there()) {
        return Ok(Some(version));
    }
    left_out(&format!("Rust {version}, which rustup cannot install"))?;
    Ok(None)
}

/// Says what is left out, or fails where nothing may be.
fn left_out(what: &str) -> Result<bool, Failure> {
    if peers::are_required() {
        return Err(Failure(format!("CHRONORB_PEERS=required: {what}")));
    }
    println!("left out: {what}");
    Ok(false)
}
