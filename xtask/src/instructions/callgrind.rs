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
    /// The instructions of each source file, the greatest first. Inlined functions count for the
    /// files in which they are written.
    pub(super) files: Vec<(String, f64)>,
}

/// The instructions of a process, by function and by source file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    functions: BTreeMap<String, i64>,
    files: BTreeMap<String, i64>,
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
    subtract(&mut many.functions, few.functions);
    subtract(&mut many.files, few.files);
    Ok(Profile {
        total: of_one(many.functions.values().sum()),
        functions: sorted(many.functions),
        files: sorted(many.files),
    })
}

fn subtract(from: &mut BTreeMap<String, i64>, counts: BTreeMap<String, i64>) {
    for (name, count) in counts {
        *from.entry(name).or_default() -= count;
    }
}

fn of_one(count: i64) -> f64 {
    count as f64 / f64::from(CALLS)
}

fn sorted(counts: BTreeMap<String, i64>) -> Vec<(String, f64)> {
    let counts = counts.into_iter();
    let mut counts: Vec<_> = counts.map(|(name, count)| (name, of_one(count))).collect();
    counts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    counts
}

/// Counts the instructions of a process that makes or serves so many calls.
fn counts(
    programs: &Programs,
    case: &Case,
    side: Side,
    calls: u32,
    folder: &RunFolder,
) -> Result<Counts, Failure> {
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

/// Reads callgrind's format: after `fl=FILE` and `fn=NAME`, lines of a position and a count; `fi=`
/// and `fe=` change the file within the function. A line after `calls=` has the inclusive count of
/// the called function, which is counted there.
fn parse(profile: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    let mut function = None;
    let mut file = "";
    let mut is_inclusive = false;
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = Some(name);
        } else if let Some(("fl" | "fi" | "fe", name)) = line.split_once('=') {
            file = name;
        } else if line.starts_with("calls=") {
            is_inclusive = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            if is_inclusive {
                is_inclusive = false;
                continue;
            }
            let count: i64 = line.split_whitespace().nth(1)?.parse().ok()?;
            *counts.functions.entry(function?.to_owned()).or_default() += count;
            *counts.files.entry(file.to_owned()).or_default() += count;
        }
    }
    let summary = profile
        .lines()
        .find_map(|line| line.strip_prefix("summary: "));
    let total: i64 = summary?.trim().parse().ok()?;
    (counts.functions.values().sum::<i64>() == total).then_some(counts)
}

/// So many calls that threads which start sooner or later make no difference.
const CALLS: u32 = 3_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inclusive_counts_are_left_out() {
        let profile =
            "summary: 12\n\nfn=main\n1 5\ncfn=callee\ncalls=1 7\n2 6\n3 1\n\nfn=callee\n7 6\n";
        let counts = parse(profile).expect("a profile");
        assert_eq!(counts.functions, named([("callee", 6), ("main", 6)]));
    }

    #[test]
    fn inlined_functions_count_for_their_files() {
        let profile = "summary: 9\n\nfl=a.rs\nfn=main\n1 4\nfi=b.rs\n2 3\nfe=a.rs\n3 2\n";
        let counts = parse(profile).expect("a profile");
        assert_eq!(counts.files, named([("a.rs", 6), ("b.rs", 3)]));
        assert_eq!(counts.functions, named([("main", 9)]));
    }

    fn named<const N: usize>(counts: [(&str, i64); N]) -> BTreeMap<String, i64> {
        counts.map(|(name, count)| (name.to_owned(), count)).into()
    }

    #[test]
    fn a_profile_whose_counts_are_not_its_total_is_refused() {
        assert_eq!(parse("summary: 3\nfn=main\n1 2\n"), None);
        assert_eq!(parse(""), None);
    }
}
