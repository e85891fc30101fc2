//! Finding the pages of all processes, or of one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::counters::Page;

/// What a look at the processes has brought.
#[derive(Debug, Default)]
pub struct Looked {
    /// Those that have pages, by their ids.
    pub found: Vec<Found>,
    /// Those whose descriptors this process may not see, by their ids.
    pub unseen: Vec<Unseen>,
}

/// A process with pages.
#[derive(Debug)]
pub struct Found {
    /// Its id.
    pub pid: u32,
    /// Its name, as the kernel has it, at most 15 octets.
    pub command: String,
    /// Its pages, one for each interface.
    pub pages: Vec<FoundPage>,
}

/// A page of a process.
#[derive(Debug)]
pub struct FoundPage {
    /// Where it is.
    pub path: PathBuf,
    /// It, for [`Snapshot::read`](super::Snapshot::read).
    pub file: File,
}

/// A process whose descriptors cannot be seen: it is another user's, or has rights that this one
/// has not.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unseen {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub command: String,
}

/// Looks for pages: in all processes, or in this one.
///
/// # Errors
/// There is no /proc, or no such process.
pub fn find(pid: Option<u32>) -> io::Result<Looked> {
    let mut pids = match pid {
        Some(pid) => vec![pid],
        None => pids()?,
    };
    pids.sort_unstable();
    let mut looked = Looked::default();
    for one in pids {
        let process = Path::new("/proc").join(one.to_string());
        match pages(&process.join("fd")) {
            Ok(pages) if pages.is_empty() => {}
            Ok(pages) => looked.found.push(Found {
                pid: one,
                command: command(&process),
                pages,
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                looked.unseen.push(Unseen {
                    pid: one,
                    command: command(&process),
                });
            }
            Err(error) if pid.is_some() => return Err(error),
            // It has just ended.
            Err(_) => {}
        }
    }
    Ok(looked)
}

fn pids() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        pids.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(pids)
}

/// The pages among the descriptors of a process.
fn pages(descriptors: &Path) -> io::Result<Vec<FoundPage>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(descriptors)? {
        let path = entry?.path();
        match fs::read_link(&path) {
            Ok(name) if is_page(&name) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            // Another file, or it was closed meanwhile.
            Ok(_) | Err(_) => continue,
        }
        match open(&path) {
            Ok(_) if pages.len() == MAX_PAGES => break,
            Ok(file) => pages.push(FoundPage { path, file }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    pages.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(pages)
}

/// What a link to a descriptor of a page says.
fn is_page(name: &Path) -> bool {
    let name = name.to_str().and_then(|name| name.strip_prefix("/memfd:"));
    name.and_then(|name| name.strip_suffix(" (deleted)")) == Page::NAME.to_str().ok()
}

/// Opens the file of a descriptor, which may have become another one: nothing is waited for.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
}

/// The name of a process, without what does not belong into a line of text.
fn command(process: &Path) -> String {
    let name = fs::read(process.join("comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    name.chars().filter(|c| !c.is_control()).collect()
}

/// No process has RIO on more interfaces; who has more pages wants others to run out of
/// descriptors.
const MAX_PAGES: usize = 32;
