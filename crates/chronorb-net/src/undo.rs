//! Changes of the machine that outlive the process which makes them, and have to be undone.
//!
//! A change is reported before it is made, so that the process that undoes it, usually another one,
//! knows of it in any case. Things that do not exist any more, or that were replaced meanwhile, are
//! left alone.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use chronorb_rt::Scheduling;
use chronorb_rt::log::{self, Event, Level, Limit};
use rustix::mount::{UnmountFlags, unmount};
use thiserror::Error;

use crate::napi;
use crate::netlink::{Handle, Netlink, NetlinkError, QueueInfo};

/// A change that is to be undone. As a text it is a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Undo {
    /// A network namespace has a name, under [`NAMES`].
    Name {
        /// The name.
        name: String,
        /// The inode number of the namespace, unique while the namespace exists.
        inode: u64,
    },
    /// An interface of the network namespace has a queueing discipline.
    Discipline {
        /// The number of the interface.
        index: u32,
        /// The number of the discipline.
        handle: Handle,
    },
    /// Incoming packets of an interface of the network namespace are redirected.
    Ingress {
        /// The number of the interface.
        index: u32,
    },
    /// There is an interface in the network namespace.
    Link {
        /// The name of the interface.
        name: String,
    },
    /// Kernel threads receive the packets of an interface of the network namespace.
    Threaded {
        /// The number of the interface.
        index: u32,
        /// The previous value of the setting.
        was: u8,
        /// The name.
        interface: String,
    },
    /// A thread of the kernel is scheduled as it was not.
    Scheduling {
        /// The thread.
        process: u32,
        /// The previous scheduling parameters.
        scheduling: Scheduling,
    },
}

impl Undo {
    /// Undoes it, if it is still there.
    ///
    /// # Errors
    /// [`UndoError`], with the changes that remain.
    pub fn undo(&self) -> Result<(), UndoError> {
        let failed = |source: io::Error| UndoError {
            undo: self.clone(),
            source,
        };
        match self {
            Self::Name { name, inode } => remove_name(&path_of(name), *inode).map_err(failed),
            Self::Discipline { index, handle } => {
                remove_discipline(*index, *handle).map_err(|error| failed(error.into()))
            }
            Self::Ingress { index } => remove_ingress(*index).map_err(|error| failed(error.into())),
            Self::Link { name } => remove_link(name).map_err(|error| failed(error.into())),
            Self::Threaded {
                index,
                was,
                interface,
            } => napi::restore_threaded(interface, *index, *was).map_err(failed),
            Self::Scheduling {
                process,
                scheduling,
            } => napi::restore_scheduling(*process, *scheduling).map_err(failed),
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

/// Undoes changes, the last first, when there is no caller left to receive an error.
pub fn undo_or_tell(changes: &[Undo]) {
    if let Err(error) = undo_all(changes) {
        log::tell(&Event {
            level: Level::Error,
            cause: "change not undone",
            peer: &"",
            number: 0,
            detail: &error,
            limit: Limit::NONE,
        });
    }
}

/// The path of a namespace's name.
pub fn path_of(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

/// Removes a name; the namespace ends when the last process leaves it.
fn remove_name(path: &Path, inode: u64) -> io::Result<()> {
    let its = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if !its.is_file() {
        return Ok(());
    }
    // A plain file is one that was to become a name, and has not.
    let directory = fs::metadata(NAMES)?;
    if its.dev() != directory.dev() {
        if its.ino() != inode {
            return Ok(());
        }
        unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
    }
    fs::remove_file(path)
}

/// Takes a queueing discipline away if it is the one of this number.
fn remove_discipline(index: u32, handle: Handle) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    let found = netlink.disciplines(index)?;
    let is_it = |found: &QueueInfo| found.handle == handle && found.parent == Handle::ROOT;
    if found.iter().any(is_it) {
        netlink.remove_discipline(index, Handle::ROOT)
    } else {
        Ok(())
    }
}

/// Stops the redirection of an interface's incoming packets.
fn remove_ingress(index: u32) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    let found = netlink.disciplines(index)?;
    if found.iter().any(|found| found.parent == Handle::INGRESS) {
        netlink.remove_discipline(index, Handle::INGRESS)
    } else {
        Ok(())
    }
}

/// Removes an interface, if there is one of this name.
fn remove_link(name: &str) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    match netlink.link(name) {
        Err(error) if error.is_absent() => Ok(()),
        link => netlink.delete_link(link?.index),
    }
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name, inode } => write!(f, "name {inode} {name}"),
            Self::Discipline { index, handle } => write!(f, "discipline {index} {}", handle.0),
            Self::Ingress { index } => write!(f, "ingress {index}"),
            Self::Link { name } => write!(f, "link {name}"),
            Self::Threaded {
                index,
                was,
                interface,
            } => write!(f, "threaded {index} {was} {interface}"),
            Self::Scheduling {
                process,
                scheduling,
            } => write!(f, "scheduling {process} {scheduling}"),
        }
    }
}

impl FromStr for Undo {
    type Err = NoUndo;

    fn from_str(line: &str) -> Result<Self, NoUndo> {
        let words: Vec<_> = line.split(' ').collect();
        Ok(match words[..] {
            ["name", inode, name] if !name.is_empty() => Self::Name {
                inode: number(inode)?,
                name: name.to_owned(),
            },
            ["discipline", index, handle] => Self::Discipline {
                index: number(index)?,
                handle: Handle(number(handle)?),
            },
            ["ingress", index] => Self::Ingress {
                index: number(index)?,
            },
            ["link", name] if !name.is_empty() => Self::Link {
                name: name.to_owned(),
            },
            ["threaded", index, was, interface] if !interface.is_empty() => Self::Threaded {
                index: number(index)?,
                was: number(was)?,
                interface: interface.to_owned(),
            },
            ["scheduling", process, "other"] => Self::Scheduling {
                process: number(process)?,
                scheduling: Scheduling::OTHER,
            },
            ["scheduling", process, policy @ ("fifo" | "rr"), priority] => Self::Scheduling {
                process: number(process)?,
                scheduling: match policy {
                    "fifo" => Scheduling::fifo(number(priority)?),
                    _ => Scheduling::rr(number(priority)?),
                },
            },
            _ => return Err(NoUndo),
        })
    }
}

fn number<T: FromStr>(word: &str) -> Result<T, NoUndo> {
    word.parse().map_err(|_| NoUndo)
}

/// The text is not a change.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("a line that says no change that could be undone")]
pub struct NoUndo;

/// A change stays, and has to be undone by hand.
#[derive(Debug, Error)]
#[error("cannot undo \"{undo}\": {source}")]
pub struct UndoError {
    /// The change.
    pub undo: Undo,
    /// The reason why it remains.
    pub source: io::Error,
}

/// The directory of the names of network namespaces, as `ip netns` uses it.
pub const NAMES: &str = "/run/netns";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_goes_through_a_line_of_text() {
        let scheduling = |scheduling| Undo::Scheduling {
            process: 4711,
            scheduling,
        };
        let changes = [
            Undo::Name {
                name: "chronorb-4711-a".to_owned(),
                inode: 4_026_532_000,
            },
            Undo::Discipline {
                index: 2,
                handle: Handle::new(0x10b0, 0),
            },
            Undo::Ingress { index: 2 },
            Undo::Link {
                name: "rio-in-2".to_owned(),
            },
            Undo::Threaded {
                index: 2,
                was: 0,
                interface: "rio0".to_owned(),
            },
            scheduling(Scheduling::OTHER),
            scheduling(Scheduling::fifo(50)),
            scheduling(Scheduling::rr(99)),
        ];
        for change in changes {
            assert_eq!(change.to_string().parse(), Ok(change));
        }
        for line in [
            "",
            "name",
            "name x y",
            "name 1",
            "name 1 ",
            "other 1 2",
            "scheduling 1 idle",
        ] {
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
