//! Changes of the machine that outlive who makes them, and have to be undone.
//!
//! A change is told before it is made, so that whoever undoes it, another process as a rule, knows of it whatever
//! happens. What is not there any more, or has been made anew by somebody else, is left alone.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::mount::{UnmountFlags, unmount};
use thiserror::Error;

/// A change that is to be undone. As a text it is a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Undo {
    /// A network namespace has a name, under [`NAMES`].
    Name {
        /// The name.
        name: String,
        /// The number of the namespace's node, which no other has as long as it is there.
        inode: u64,
    },
}

impl Undo {
    /// Undoes it, if it is still there.
    ///
    /// # Errors
    /// [`UndoError`], with what stays behind.
    pub fn undo(&self) -> Result<(), UndoError> {
        let failed = |source: io::Error| UndoError {
            undo: self.clone(),
            source,
        };
        match self {
            Self::Name { name, inode } => remove_name(&path_of(name), *inode).map_err(failed),
        }
    }
}

/// Undoes changes, the last first.
///
/// # Errors
/// The first that failed; all others were undone if they could be.
pub fn undo_all(changes: &[Undo]) -> Result<(), UndoError> {
    let undone: Vec<_> = changes.iter().rev().map(Undo::undo).collect();
    undone.into_iter().collect()
}

/// The path of a namespace's name.
pub(crate) fn path_of(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

/// Takes a name away; the namespace goes when nobody is in it any more.
fn remove_name(path: &Path, inode: u64) -> io::Result<()> {
    let its = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    // A plain file is one that was to become a name, and has not.
    let directory = fs::metadata(NAMES)?;
    if its.dev() != directory.dev() {
        if its.ino() != inode {
            return Ok(());
        }
        unmount(path, UnmountFlags::DETACH)?;
    }
    fs::remove_file(path)
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name, inode } => write!(f, "name {inode} {name}"),
        }
    }
}

impl FromStr for Undo {
    type Err = NoUndo;

    fn from_str(line: &str) -> Result<Self, NoUndo> {
        let (kind, rest) = line.split_once(' ').ok_or(NoUndo)?;
        match kind {
            "name" => {
                let (inode, name) = rest.split_once(' ').ok_or(NoUndo)?;
                Ok(Self::Name {
                    name: name.to_owned(),
                    inode: inode.parse().map_err(|_| NoUndo)?,
                })
            }
            _ => Err(NoUndo),
        }
    }
}

/// The text says no change.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("a line that says no change that could be undone")]
pub struct NoUndo;

/// A change stays, and has to be undone by hand.
#[derive(Debug, Error)]
#[error("cannot undo \"{undo}\": {source}")]
pub struct UndoError {
    /// The change.
    pub undo: Undo,
    /// Why it stays.
    pub source: io::Error,
}

/// Where network namespaces have their names, as `ip netns` has it.
pub const NAMES: &str = "/run/netns";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_goes_through_a_line_of_text() {
        let changes = [Undo::Name {
            name: "chronorb-4711-a".to_owned(),
            inode: 4_026_532_000,
        }];
        for change in changes {
            assert_eq!(change.to_string().parse(), Ok(change));
        }
        for line in ["", "name", "name x y", "name 1", "other 1 2"] {
            assert_eq!(line.parse::<Undo>(), Err(NoUndo), "{line}");
        }
    }

    #[test]
    fn what_is_not_there_is_undone() {
        let change = Undo::Name {
            name: format!("chronorb-test-{}-nothing", std::process::id()),
            inode: 1,
        };
        change.undo().expect("there is nothing to do");
    }
}
