//! Writing of files without leaving partially written ones behind.

use std::io;
use std::path::{Path, PathBuf};
use std::{fs, process};

/// Complete temporary files beside their destinations. If dropped before
/// [`TemporaryFiles::commit`], it removes them.
#[derive(Debug, Default)]
pub(crate) struct TemporaryFiles {
    files: Vec<(PathBuf, PathBuf)>,
}

impl TemporaryFiles {
    /// Writes the text to a temporary file in the directory of `path`. A file with the same text is
    /// left unchanged, so that nothing is rebuilt.
    pub(crate) fn add(&mut self, path: &Path, text: &str) -> io::Result<()> {
        if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}.tmp", process::id()));
        self.files.push((temporary.clone(), path.to_owned()));
        fs::write(temporary, text)
    }

    /// Moves all files to their destinations.
    pub(crate) fn commit(mut self) -> Result<(), (PathBuf, io::Error)> {
        while let Some((temporary, path)) = self.files.first() {
            if let Err(error) = fs::rename(temporary, path) {
                return Err((path.clone(), error));
            }
            self.files.remove(0);
        }
        Ok(())
    }
}

impl Drop for TemporaryFiles {
    fn drop(&mut self) {
        for (temporary, _) in &self.files {
            // The error cannot be reported, and the file may not exist at all.
            let _ = fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_behind_unless_all_is_committed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut staged = TemporaryFiles::default();
        staged.add(&dir.path().join("a.rs"), "a").expect("written");
        drop(staged);
        assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 0);
    }

    #[test]
    fn committed_files_replace_older_ones() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("a.rs");
        for text in ["old", "new"] {
            let mut staged = TemporaryFiles::default();
            staged.add(&path, text).expect("written");
            staged.commit().expect("renamed");
            assert_eq!(fs::read_to_string(&path).expect("readable"), text);
        }
        assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 1);
    }
}
