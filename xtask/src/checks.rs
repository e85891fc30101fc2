//! The checks of CI besides tests.

use std::path::Path;

use crate::ledger::Ledger;
use crate::run::{self, Failure, ask, root};
use crate::{
    arrows, documents, history, instructions, language, layers, lints, packages, request_path,
    requirements, size, targets,
};

/// Formatting and tidiness, which need no compilation.
pub(crate) fn texts(ledger: &mut Ledger) -> Result<(), Failure> {
    ledger.step("format", || {
        run::cargo(&["fmt", "--all", "--check"], &[])?;
        format_of(run::OUTSIDE)?;
        format_of(run::INTEGRATIONS)
    })?;
    ledger.step("tidy", tidy)
}

/// Packages, documentation, each feature alone, other targets, the size of the minimal server, and
/// the instructions of a call.
pub(crate) fn products(ledger: &mut Ledger) -> Result<(), Failure> {
    ledger.set_up("the oldest Rust", targets::oldest_rust)?;
    ledger.step("packages and their documentation", packages::quick)?;
    ledger.step("each feature alone", features)?;
    ledger.set_up("libraries of other targets", targets::provide_all)?;
    ledger.step("other targets", targets::targets)?;
    ledger.step("size of the minimal server", || size::size(&[]))?;
    ledger.step("instructions of calls", instructions::check)
}

/// `chronorb` with no feature, and with each alone.
fn features() -> Result<(), Failure> {
    let alone = packages::chronorb_features()?;
    let alone = alone.iter().map(String::as_str);
    for feature in std::iter::once("").chain(alone) {
        lints::check_features("chronorb", feature)?;
    }
    Ok(())
}

/// Mechanical rules, which reviewers should not have to check.
pub(crate) fn tidy() -> Result<(), Failure> {
    let root = root();
    let mut complaints = Vec::new();
    for licence in packages::LICENCES {
        if !root.join(licence).is_file() {
            complaints.push(format!("{licence} is missing"));
        }
    }
    let files = ask("git", &["-C", &root.display().to_string(), "ls-files"])
        .ok_or_else(|| Failure("git ls-files failed: is this a git checkout?".to_owned()))?;
    let files: Vec<_> = files.lines().collect();
    for file in files.iter().filter(|file| has_text(file)) {
        complaints.extend(complaints_about(&root, file));
    }
    complaints.extend(packages::complaints()?);
    complaints.extend(documents::complaints(&files)?);
    complaints.extend(requirements::complaints(&files)?);
    complaints.extend(request_path::complaints(&files));
    complaints.extend(layers::complaints(&files)?);
    complaints.extend(arrows::complaints()?);
    complaints.extend(language::complaints()?);
    complaints.extend(history::complaints()?);
    if complaints.is_empty() {
        println!("tidy");
        return Ok(());
    }
    Err(Failure(format!("not tidy:\n  {}", complaints.join("\n  "))))
}

/// The formatting of a workspace of its own.
pub(crate) fn format_of(manifest: &str) -> Result<(), Failure> {
    run::cargo(&["fmt", "--check", "--manifest-path", manifest], &[])
}

fn complaints_about(root: &Path, file: &str) -> Vec<String> {
    let Ok(text) = std::fs::read_to_string(root.join(file)) else {
        // Deleted in the work tree and not yet in the index.
        return Vec::new();
    };
    let mut complaints = Vec::new();
    let lines = text.lines().count();
    if file.ends_with(".rs") && lines > MAX_LINES {
        complaints.push(format!("{file} has {lines} lines, more than {MAX_LINES}"));
    }
    for (number, line) in text.lines().enumerate() {
        if line.ends_with([' ', '\t']) {
            complaints.push(format!("{file}:{}: space at the end", number + 1));
        }
        if line.contains('\t') && !file.ends_with("Makefile") {
            complaints.push(format!("{file}:{}: a tab", number + 1));
        }
        if line.trim_start().starts_with("#[ignore") && !line.contains(RUN_BY_ANOTHER) {
            complaints.push(format!(
                "{file}:{}: an ignored test that no other one runs {RUN_BY_ANOTHER}",
                number + 1
            ));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        complaints.push(format!("{file}: no newline at the end"));
    }
    complaints
}

/// Files that people write; test data may look as it likes.
fn has_text(file: &str) -> bool {
    let written = [".rs", ".toml", ".md", ".idl", ".cc", ".h", ".sh", ".yml"];
    written.iter().any(|ending| file.ends_with(ending)) && !is_test_data(file)
}

pub(crate) fn is_test_data(file: &str) -> bool {
    let folders = ["/golden/", "tests/accept/", "tests/reject/"];
    folders.iter().any(|folder| file.contains(folder))
}

/// In the reason of each test that is ignored.
const RUN_BY_ANOTHER: &str = "in a process of its own";
const MAX_LINES: usize = 900;
