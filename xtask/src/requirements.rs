//! The page of requirements: each test that it names exists, each requirement has one or a reason,
//! and the code cites clauses of Real-Time CORBA by the titles that the page has.

use std::collections::BTreeSet;
use std::path::Path;

use crate::packages::read;
use crate::run::{Failure, root};

/// Complaints about the page of requirements, and about citations in the code.
pub(crate) fn complaints(files: &[&str]) -> Result<Vec<String>, Failure> {
    let text = read(&root().join(PAGE))?;
    let mut complaints = Vec::new();
    for (requirement, tests) in rows(&text) {
        if tests.is_empty() {
            complaints.push(format!(
                "{PAGE}: {requirement:?} has neither a test nor \"none: \" and a reason"
            ));
        }
        for test in tests {
            if let Some(problem) = problem_of(test)? {
                complaints.push(format!("{PAGE}: {requirement:?}: {problem}"));
            }
        }
    }
    let clauses = clauses(&text);
    let sources = files.iter().filter(|file| file.starts_with("crates/"));
    for file in sources.filter(|file| file.ends_with(".rs")) {
        let source = read(&root().join(file)).unwrap_or_default();
        let unknown = unknown_clauses(&source, &clauses).into_iter();
        complaints.extend(unknown.map(|clause| {
            format!("{file}: {PAGE} has no clause {clause:?}, by its title, of Real-Time CORBA")
        }));
    }
    Ok(complaints)
}

/// Returns the clauses of the tables that have a column for them.
fn clauses(page: &str) -> BTreeSet<&str> {
    let cells = page.lines().filter_map(|line| {
        let cells: Vec<_> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let [_, clause, _, _] = cells[..] else {
            return None;
        };
        Some(clause)
    });
    cells.collect()
}

/// Returns what a source cites of Real-Time CORBA 1.2 behind a comma, but for whole chapters and
/// the titles of known clauses.
fn unknown_clauses(source: &str, known: &BTreeSet<&str>) -> Vec<String> {
    let lines = source
        .lines()
        .map(|line| line.trim_start().trim_start_matches(['/', '!', ' ']));
    let text = lines.collect::<Vec<_>>().join(" ");
    let cited = text
        .split("CORBA 1.2, ")
        .skip(1)
        .filter(|it| !it.starts_with("chapter "));
    let cited = cited.map(|rest| match rest.strip_prefix('“') {
        Some(title) => title.split('”').next().unwrap_or_default(),
        None => rest.split(')').next().unwrap_or_default(),
    });
    let unknown = cited.filter(|title| !known.contains(title));
    unknown.map(str::to_owned).collect()
}

/// Returns each requirement of the tables with its tests, without those that have a reason instead.
fn rows(page: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<_> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        // The last one is what follows the last bar.
        let [requirement, .., tests, _] = cells[..] else {
            return None;
        };
        let is_head = tests == HEAD || requirement.starts_with("---");
        (!is_head && !tests.starts_with(REASON)).then_some((requirement, tests))
    });
    rows.map(|(requirement, tests)| {
        let named = tests.split('`').skip(1).step_by(2);
        (requirement, named.collect())
    })
}

/// Returns the problem of a test that does not exist: `FILE::NAME`.
fn problem_of(test: &str) -> Result<Option<String>, Failure> {
    let Some((file, name)) = test.split_once(".rs::") else {
        return Ok(Some(format!("{test} is no file with the name of a test")));
    };
    let folder = if file.starts_with("examples/") {
        root()
    } else {
        root().join("crates")
    };
    let path = folder.join(Path::new(file)).with_extension("rs");
    if !path.is_file() {
        return Ok(Some(format!("there is no file {file}.rs")));
    }
    let found = has_test(&read(&path)?, name);
    Ok((!found).then(|| format!("{file}.rs has no test {name}")))
}

/// Whether the source has a function with the attribute of tests, and this name.
fn has_test(source: &str, name: &str) -> bool {
    let mut after = source.split("#[test]").skip(1);
    after.any(|rest| {
        let function = rest.split("fn ").nth(1);
        function
            .and_then(|it| it.strip_prefix(name))
            .is_some_and(|it| it.starts_with('('))
    })
}

const PAGE: &str = "docs/src/requirements.md";
const HEAD: &str = "Tests";
const REASON: &str = "none: ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_tests_or_a_reason() {
        let page = "| Requirement | Tests |\n|---|---|\n\
                    | A | `a.rs::one` `b.rs::two` |\n| B | 5.4 | none: it is not there |\n\
                    | C | 5.5 | soon |\n";
        let rows: Vec<_> = rows(page).collect();
        assert_eq!(rows, [("A", vec!["a.rs::one", "b.rs::two"]), ("C", vec![])]);
    }

    #[test]
    fn clauses_are_cited_by_the_titles_of_the_page() {
        let page = "| Requirement | Clause | Tests |\n|---|---|---|\n| A | Threadpools | `a` |\n";
        let known = clauses(page);
        assert!(known.contains("Threadpools"));
        let right = "/// Pools (RT-CORBA 1.2,\n/// “Threadpools”). RT-CORBA 1.2, chapter 3.";
        assert_eq!(unknown_clauses(right, &known), [""; 0]);
        let wrong = "// Pools (RT-CORBA 1.2, 5.8).\n//! Real-Time CORBA 1.2, “Mutex Interface”.";
        assert_eq!(unknown_clauses(wrong, &known), ["5.8", "Mutex Interface"]);
    }

    #[test]
    fn a_function_is_a_test_by_its_attribute() {
        let source = "fn helper() {}\n#[test]\n#[cfg(unix)]\nfn it_holds() {}\nfn other() {}\n";
        assert!(has_test(source, "it_holds"));
        assert!(!has_test(source, "it_hold"));
        assert!(!has_test(source, "other"));
        assert!(!has_test(source, "helper"));
    }
}
