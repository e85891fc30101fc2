//! Counts by callgrind, a tool of valgrind.

use std::collections::BTreeMap;
use std::fs;

use crate::calls::{Case, Programs, RunFolder, Side};
use crate::run::{Failure, ask};

/// The instructions of one call.
pub(super) struct Profile {
    pub(super) total: f64,
    /// The instructions of each function without those that it calls, the greatest first. Inlined
    /// functions count for their callers.
    pub(super) functions: Vec<(String, f64)>,
}

/// Fails with a remedy where valgrind is not installed.
pub(super) fn require() -> Result<(), Failure> {
    match version() {
        Some(_) => Ok(()),
        None => Err(Failure(
            "instructions: valgrind is not installed (install with: apt-get install valgrind)"
                .to_owned(),
        )),
    }
}

/// The version of valgrind.
pub(super) fn version() -> Option<String> {
    ask("valgrind", &["--version"])
}

/// Counts the instructions of one call on one side.
pub(super) fn per_call(
    programs: &Programs,
    case: &Case,
    side: Side,
    folder: &RunFolder,
) -> Result<Profile, Failure> {
    let few = counts(programs, case, side, CALLS, folder)?;
    let mut many = counts(programs, case, side, 2 * CALLS, folder)?;
    for (name, count) in few {
        *many.entry(name).or_default() -= count;
    }
    let per_call = |count: i64| count as f64 / f64::from(CALLS);
    let total = per_call(many.values().sum());
    let mut functions: Vec<(String, f64)> = many
        .into_iter()
        .map(|(name, count)| (name, per_call(count)))
        .collect();
    functions.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    Ok(Profile { total, functions })
}

/// The instructions of each function, of a process that makes or serves so many calls.
fn counts(
    programs: &Programs,
    case: &Case,
    side: Side,
    calls: u32,
    folder: &RunFolder,
) -> Result<BTreeMap<String, i64>, Failure> {
    let file = folder.profile();
    let counter = [
        "valgrind".to_owned(),
        "--quiet".to_owned(),
        "--tool=callgrind".to_owned(),
        "--compress-strings=no".to_owned(),
        "--compress-pos=no".to_owned(),
        format!("--callgrind-out-file={}", file.display()),
    ];
    programs.count(case, side, calls, &counter, folder)?;
    let text = fs::read_to_string(&file);
    let text = text.map_err(|e| Failure(format!("{}: {e}", file.display())))?;
    parse(&text).ok_or_else(|| Failure(format!("{}: not a profile", file.display())))
}

/// Reads callgrind's format: after `fn=NAME`, lines of a position and a count. A line after
/// `calls=` has the inclusive count of the called function, which is counted there.
fn parse(profile: &str) -> Option<BTreeMap<String, i64>> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    let mut function = None;
    let mut is_inclusive = false;
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = Some(name);
        } else if line.starts_with("calls=") {
            is_inclusive = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            if is_inclusive {
                is_inclusive = false;
                continue;
            }
            let count: i64 = line.split_whitespace().nth(1)?.parse().ok()?;
            *counts.entry(function?.to_owned()).or_default() += count;
        }
    }
    let summary = profile
        .lines()
        .find_map(|line| line.strip_prefix("summary: "));
    let total: i64 = summary?.trim().parse().ok()?;
    (counts.values().sum::<i64>() == total).then_some(counts)
}

/// So many calls that threads which start sooner or later make no difference.
const CALLS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inclusive_counts_are_left_out() {
        let profile =
            "summary: 12\n\nfn=main\n1 5\ncfn=callee\ncalls=1 7\n2 6\n3 1\n\nfn=callee\n7 6\n";
        let counts = parse(profile).expect("a profile");
        let expected = [("callee".to_owned(), 6), ("main".to_owned(), 6)];
        assert_eq!(counts, expected.into());
    }

    #[test]
    fn a_profile_whose_counts_are_not_its_total_is_refused() {
        assert_eq!(parse("summary: 3\nfn=main\n1 2\n"), None);
        assert_eq!(parse(""), None);
    }
}
