//! The page of requirements: each test that it names exists, and each requirement has one or a
//! reason.

use std::path::Path;

use crate::packages::read;
use crate::run::{Failure, root};

/// Complaints about the page of requirements.
pub(crate) fn complaints() -> Result<Vec<String>, Failure> {
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
    Ok(complaints)
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
    fn a_function_is_a_test_by_its_attribute() {
        let source = "fn helper() {}\n#[test]\n#[cfg(unix)]\nfn it_holds() {}\nfn other() {}\n";
        assert!(has_test(source, "it_holds"));
        assert!(!has_test(source, "it_hold"));
        assert!(!has_test(source, "other"));
        assert!(!has_test(source, "helper"));
    }
}
