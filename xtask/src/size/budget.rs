//! The limit and the tracked sizes of the minimal server: `xtask/size.toml`.

use std::path::PathBuf;

use serde::Deserialize;

use crate::run::{Failure, root};

/// The tracked figures, in octets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SizeBudget {
    /// The most that may be its own.
    pub(super) limit: u64,
    pub(super) tracked: TrackedSizes,
}

/// The sizes when they were last tracked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrackedSizes {
    pub(super) own: u64,
    pub(super) stripped_file: u64,
}

impl SizeBudget {
    pub(super) fn read() -> Result<Self, Failure> {
        let bad = |problem: String| Failure(format!("{}: {problem}", path().display()));
        let text = std::fs::read_to_string(path()).map_err(|e| bad(e.to_string()))?;
        toml::from_str(&text).map_err(|e| bad(e.to_string()))
    }

    /// Makes these the tracked figures, in the file too.
    pub(super) fn track(&mut self, own: u64, stripped_file: u64) -> Result<(), Failure> {
        self.tracked = TrackedSizes { own, stripped_file };
        std::fs::write(path(), self.text())
            .map_err(|e| Failure(format!("{}: {e}", path().display())))
    }

    fn text(&self) -> String {
        let Self { limit, tracked } = self;
        format!(
            "# The size of the minimal server, in octets; see docs/src/footprint.md.\n\
             # `cargo xtask size` fails above the limit; `cargo xtask size --track` writes the \
             rest.\n\
             limit = {limit}\n\n[tracked]\nown = {}\nstripped_file = {}\n",
            tracked.own, tracked.stripped_file
        )
    }
}

fn path() -> PathBuf {
    root().join("xtask/size.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_it_is_written() {
        let budget = SizeBudget::read().expect("it can be read");
        let text = std::fs::read_to_string(path()).expect("it can be read");
        assert_eq!(budget.text(), text);
    }
}
