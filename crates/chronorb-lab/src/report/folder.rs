//! The default folder of reports.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::xdg;
use chronorb_report::ReportError;

/// Returns the file of a report: the given one, or `NAME.html` in the folder of reports, which is
/// made.
pub(crate) fn file(given: Option<&Path>, name: &str) -> Result<PathBuf, ReportError> {
    match given {
        Some(file) => Ok(file.to_owned()),
        None => Ok(made(xdg::state(), "")?.join(format!("{name}.html"))),
    }
}

/// Returns the folder for a set of reports, which is made: the given one, or `NAME` in the folder
/// of reports.
pub(crate) fn folder(given: Option<&Path>, name: &str) -> Result<PathBuf, ReportError> {
    match given {
        Some(folder) => make(folder.to_owned()),
        None => made(xdg::state(), name),
    }
}

/// Makes a folder below the folder of reports, which is in `state`.
fn made(state: Option<PathBuf>, name: &str) -> Result<PathBuf, ReportError> {
    let state = state.ok_or(ReportError::NoFolder)?;
    make(state.join("reports").join(name))
}

fn make(folder: PathBuf) -> Result<PathBuf, ReportError> {
    // Folders in a home are for its user alone.
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder);
    match made {
        Ok(()) => Ok(folder),
        Err(source) => Err(ReportError::Folder {
            path: folder.display().to_string(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_folder_is_made_where_it_is_missing_and_kept_where_it_is_there() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join(".local/state/chronorb");
        for name in ["", "all", "all"] {
            let folder = made(Some(state.clone()), name).unwrap();
            assert_eq!(folder, state.join("reports").join(name));
            assert!(folder.is_dir());
        }
    }

    #[test]
    fn a_given_file_is_used_as_it_is() {
        let given = Path::new("missing/report.html");
        assert_eq!(file(Some(given), "demux").unwrap(), given);
        assert!(!Path::new("missing").exists());
    }

    #[test]
    fn errors_name_the_path_and_the_remedy() {
        let home = tempfile::tempdir().unwrap();
        let occupied = home.path().join("file");
        fs::write(&occupied, "").unwrap();
        let error = made(Some(occupied.clone()), "").unwrap_err().to_string();
        let path = occupied.join("reports").display().to_string();
        assert!(
            error.contains(&path) && error.contains("--report FILE"),
            "{error}"
        );
        let error = made(None, "").unwrap_err().to_string();
        assert!(
            error.contains("XDG_STATE_HOME") && error.contains("--report FILE"),
            "{error}"
        );
    }
}
