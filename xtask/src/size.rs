//! The size of the minimal server: it is built, taken apart, and compared with its limit.

mod budget;
mod image;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use crate::run::{self, Failure, ask};
use budget::SizeBudget;
use image::{Crate, Image};

/// Builds the minimal server and says how large it is; more than its limit is a failure.
///
/// The options are `--json`, and `--track`, which makes what was found the tracked figures.
/// `--features` with names of features of chronorb says by how many octets each of them alone makes
/// the server larger.
pub(crate) fn size(options: &[&str]) -> Result<(), Failure> {
    if let ["--features", features @ ..] = options {
        return growth(features);
    }
    if let Some(unknown) = options.iter().find(|o| !["--json", "--track"].contains(o)) {
        return Err(Failure(format!(
            "size: there is no option {unknown}; there are --json, --track and --features"
        )));
    }
    let mut budget = SizeBudget::read()?;
    let report = Report::take(&budget)?;
    if options.contains(&"--json") {
        let text = serde_json::to_string_pretty(&report);
        println!("{}", text.map_err(|e| Failure(e.to_string()))?);
    } else {
        report.print();
    }
    if options.contains(&"--track") {
        budget.track(report.own, report.stripped_file)?;
    }
    if report.own > report.limit {
        return Err(Failure(format!(
            "the minimal server has {} of its own, and may have {}; `cargo xtask size` says what \
             is large",
            kib(report.own),
            kib(report.limit)
        )));
    }
    Ok(())
}

/// Says by how many octets each feature alone makes the server larger.
fn growth(features: &[&str]) -> Result<(), Failure> {
    let without = own_size(None)?;
    println!("without features: {without} octets of its own");
    for feature in features {
        let grown = own_size(Some(feature))? as i64 - without as i64;
        println!("{feature:<20}{grown:>+10}");
    }
    Ok(())
}

/// Returns the size of the server with a feature, less that of a program that does nothing.
fn own_size(feature: Option<&str>) -> Result<u64, Failure> {
    let programs = build(feature)?;
    let [server, nothing] = ["minimal-server", "minimal-nothing"].map(|p| programs.join(p));
    let [server, nothing] = [Image::of(&server)?, Image::of(&nothing)?];
    Ok(server.total.saturating_sub(nothing.total))
}

/// The measured sizes, in octets.
#[derive(Serialize)]
struct Report {
    rustc: String,
    server: Image,
    /// A program that does nothing, built alike.
    nothing: Image,
    /// The size of the server less that of an empty program.
    own: u64,
    limit: u64,
    /// The value of `own` when it was last tracked.
    tracked: u64,
    stripped_file: u64,
    /// The sizes of the server's functions and variables by crate, the greatest first.
    crates: Vec<Crate>,
}

impl Report {
    fn take(budget: &SizeBudget) -> Result<Self, Failure> {
        let programs = build(None)?;
        let [server, nothing] = ["minimal-server", "minimal-nothing"].map(|p| programs.join(p));
        let crates = image::crates(&server)?;
        let stripped_file = stripped_size(&server)?;
        let [server, nothing] = [Image::of(&server)?, Image::of(&nothing)?];
        Ok(Self {
            rustc: ask("rustc", &["--version"]).unwrap_or_default(),
            own: server.total.saturating_sub(nothing.total),
            server,
            nothing,
            limit: budget.limit,
            tracked: budget.tracked.own,
            stripped_file,
            crates,
        })
    }

    fn print(&self) {
        println!("\nThe minimal server, profile min, {}\n", self.rustc);
        println!("{:<44}{:>10}{:>10}{:>10}", "", "server", "nothing", "more");
        let parts = self.server.parts.iter().zip(&self.nothing.parts);
        for (server, nothing) in parts {
            print_row(server.name, server.octets, nothing.octets);
        }
        print_row("total", self.server.total, self.nothing.total);
        println!("\nof its own: {} ({} octets)", kib(self.own), self.own);
        println!("limit:      {}", kib(self.limit));
        let change = self.own as i64 - self.tracked as i64;
        println!("tracked:    {}, now {change:+} octets", kib(self.tracked));
        let file = kib(self.stripped_file);
        println!("file:       {file}, stripped, with the standard library");
        println!(
            "\n{:<44}{:>10}{:>10}",
            "functions and variables of", "code", "data"
        );
        for part in &self.crates {
            println!("{:<44}{:>10}{:>10}", part.name, part.code, part.data);
        }
    }
}

fn print_row(name: &str, server: u64, nothing: u64) {
    let more = server as i64 - nothing as i64;
    println!("{name:<44}{server:>10}{nothing:>10}{more:>10}");
}

/// Builds the server whose size is measured.
pub(crate) fn build_minimal_server() -> Result<(), Failure> {
    build(None).map(drop)
}

/// Returns the path of the server whose size is measured, which need not be built yet.
pub(crate) fn minimal_server() -> PathBuf {
    programs().join("minimal-server")
}

/// Builds the server, with a feature of chronorb if one is named, and the program that does
/// nothing, with the names of their functions. Returns where they are.
///
/// They have a folder of their own, so that the ordinary build stays warm.
fn build(feature: Option<&str>) -> Result<PathBuf, Failure> {
    let environment = [
        ("CARGO_TARGET_DIR", target().display().to_string()),
        ("CARGO_PROFILE_MIN_STRIP", "none".to_owned()),
        // Such names say for which types a generic function was made.
        ("RUSTFLAGS", "-Csymbol-mangling-version=v0".to_owned()),
    ];
    let package = ["--profile=min", "--package=minimal-example"];
    let args = [&["build", "--quiet", "--bins"], &package[..]].concat();
    let option = feature.map(|feature| format!("--features=chronorb/{feature}"));
    let args: Vec<_> = args.into_iter().chain(option.as_deref()).collect();
    run::cargo(&args, &environment)?;
    Ok(programs())
}

fn programs() -> PathBuf {
    target().join("min")
}

fn target() -> PathBuf {
    run::target_dir().join("size")
}

/// Returns the size of a program's file without the names of its functions.
fn stripped_size(program: &Path) -> Result<u64, Failure> {
    let stripped = program.with_extension("stripped");
    run::run(Command::new("strip").arg("-o").arg(&stripped).arg(program))?;
    let file = std::fs::metadata(&stripped);
    let file = file.map_err(|e| Failure(format!("{}: {e}", stripped.display())))?;
    Ok(file.len())
}

fn kib(octets: u64) -> String {
    format!("{:.1} KiB", octets as f64 / 1024.0)
}
