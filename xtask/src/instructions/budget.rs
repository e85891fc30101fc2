//! The recorded counts: `xtask/instructions.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

use super::{Count, callgrind};
use crate::run::{Failure, ask, root};

/// The tools that a count depends on.
#[derive(Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Environment {
    rustc: String,
    libc: String,
    valgrind: String,
}

impl Environment {
    pub(super) fn of_this_machine() -> Self {
        let first_line = |text: Option<String>| {
            let text = text.unwrap_or_default();
            text.lines().next().unwrap_or_default().to_owned()
        };
        Self {
            rustc: first_line(ask("rustc", &["--version"])),
            libc: first_line(ask("getconf", &["GNU_LIBC_VERSION"])),
            valgrind: first_line(callgrind::version()),
        }
    }

    /// The tools that differ, or nothing.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        let pairs = [
            (&self.rustc, &now.rustc),
            (&self.libc, &now.libc),
            (&self.valgrind, &now.valgrind),
        ];
        let differences: Vec<String> = pairs
            .iter()
            .filter(|(recorded, now)| recorded != now)
            .map(|(recorded, now)| format!("{now} instead of {recorded}"))
            .collect();
        (!differences.is_empty()).then(|| differences.join(", "))
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rustc,
            libc,
            valgrind,
        } = self;
        write!(f, "{rustc}, {libc}, {valgrind}")
    }
}

/// The recorded counts, and the tools that they were counted with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Budget {
    pub(super) environment: Environment,
    /// Counts by side, by case.
    instructions: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Budget {
    pub(super) fn read() -> Result<Self, Failure> {
        let bad = |problem: String| Failure(format!("{}: {problem}", path().display()));
        let text = std::fs::read_to_string(path()).map_err(|e| bad(e.to_string()))?;
        toml::from_str(&text).map_err(|e| bad(e.to_string()))
    }

    pub(super) fn recorded(&self, case: &str, side: &str) -> Option<f64> {
        self.instructions
            .get(case)?
            .get(side)
            .map(|count| *count as f64)
    }

    /// Records these counts.
    pub(super) fn track(environment: Environment, counts: &[Count]) -> Result<(), Failure> {
        let mut instructions: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for count in counts {
            let sides = instructions.entry(count.case.to_owned()).or_default();
            // Less than an instruction is noise.
            sides.insert(count.side.to_owned(), count.now.round() as u64);
        }
        let budget = Self {
            environment,
            instructions,
        };
        std::fs::write(path(), budget.text())
            .map_err(|e| Failure(format!("{}: {e}", path().display())))
    }

    fn text(&self) -> String {
        let Environment {
            rustc,
            libc,
            valgrind,
        } = &self.environment;
        let environment = format!("rustc = {rustc:?}\nlibc = {libc:?}\nvalgrind = {valgrind:?}\n");
        let mut text = format!("{HEAD}[environment]\n{environment}\n[instructions]\n");
        for (case, sides) in &self.instructions {
            let sides: Vec<String> = sides
                .iter()
                .map(|(side, count)| format!("{side} = {count}"))
                .collect();
            text.push_str(&format!("{case} = {{ {} }}\n", sides.join(", ")));
        }
        text
    }
}

const HEAD: &str = "\
# The user-space instructions of one call, by case and side; see CONTRIBUTING.md.
# `cargo xtask instructions --track` writes this file.

";

fn path() -> PathBuf {
    root().join("xtask/instructions.toml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::CASES;

    #[test]
    fn the_file_is_as_it_is_written() {
        let budget = Budget::read().expect("it can be read");
        let text = std::fs::read_to_string(path()).expect("it can be read");
        assert_eq!(budget.text(), text);
    }

    #[test]
    fn each_case_has_a_recorded_count() {
        let budget = Budget::read().expect("it can be read");
        for case in CASES {
            for side in case.sides() {
                let recorded = budget.recorded(case.name, side.name());
                assert!(recorded.is_some(), "{}, {side}", case.name);
            }
        }
    }
}
