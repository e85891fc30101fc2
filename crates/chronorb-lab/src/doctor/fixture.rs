//! Machines made up of files, for tests.

use std::fs;

use tempfile::TempDir;

use super::checks::CHECKS;
use super::finding::{Finding, Verdict};
use super::machine::Machine;

/// The content of a file that cannot be read, whoever tries.
pub(super) const UNREADABLE: &str = "\0unreadable";

/// A machine that has these files and no others.
pub(super) struct Fixture {
    pub(super) machine: Machine,
    folder: TempDir,
}

impl Fixture {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let fixture = Self {
            machine: Machine::below(folder.path()),
            folder,
        };
        fixture.add(files);
        fixture
    }

    pub(super) fn add(&self, files: &[(&str, &str)]) {
        for (path, content) in files {
            let path = self.folder.path().join(path.trim_start_matches('/'));
            if *content == UNREADABLE {
                // Opening it works, reading does not, not even for root.
                fs::create_dir_all(&path).expect("it can be made");
            } else {
                let parent = path.parent().expect("it is in the folder");
                fs::create_dir_all(parent).expect("it can be made");
                fs::write(&path, content).expect("it can be written");
            }
        }
    }

    /// What the check of this name finds.
    pub(super) fn finding(&self, id: &str) -> Finding {
        let check = CHECKS.iter().find(|check| check.id == id);
        let finding = check.expect("there is such a check").run(&self.machine);
        let is_good = finding.verdict == Verdict::Good;
        assert_eq!(finding.cost.is_none(), is_good, "{finding:?}");
        assert_eq!(finding.remedy.is_none(), is_good, "{finding:?}");
        assert!(!finding.found.is_empty(), "{finding:?}");
        finding
    }
}

/// What the check `id` finds on a machine of these files.
pub(super) fn finding(id: &str, files: &[(&str, &str)]) -> Finding {
    Fixture::new(files).finding(id)
}

/// The verdict of the check `id` for each content of the file `path`, beside other files.
pub(super) fn assert_verdicts(
    id: &str,
    others: &[(&str, &str)],
    path: &str,
    cases: &[(&str, Verdict)],
) {
    for (content, verdict) in cases {
        let fixture = Fixture::new(others);
        fixture.add(&[(path, content)]);
        let finding = fixture.finding(id);
        assert_eq!(
            finding.verdict, *verdict,
            "{path}: {content:?}: {finding:?}"
        );
    }
}
