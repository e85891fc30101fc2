//! Search for the pages of all processes, or of one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chronorb_rt::is_hidden;

use super::counters::Page;

/// The result of a search for pages.
#[derive(Debug, Default)]
pub struct PageSearch {
    /// Processes that have pages, by process id.
    pub found: Vec<ProcessPages>,
    /// Processes whose descriptors this process may not read, by process id.
    pub unseen: Vec<HiddenProcess>,
}

/// A process with pages.
#[derive(Debug)]
pub struct ProcessPages {
    /// The process id.
    pub pid: u32,
    /// The name in the kernel, at most 15 octets.
    pub command: String,
    /// The pages, one for each interface.
    pub pages: Vec<FoundPage>,
}

/// A page of a process.
#[derive(Debug)]
pub struct FoundPage {
    /// The path of the page.
    pub path: PathBuf,
    /// The open page, for [`Snapshot::read`](super::Snapshot::read).
    pub file: File,
}

/// A process whose descriptors cannot be read, because it belongs to another user or has more
/// rights than this one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HiddenProcess {
    /// The process id.
    pub pid: u32,
    /// The name in the kernel.
    pub command: String,
}

/// Searches all processes, or only this one, for pages.
///
/// # Errors
/// [`io::Error`] if there is no /proc, or no such process.
pub fn find(pid: Option<u32>) -> io::Result<PageSearch> {
    let mut pids = match pid {
        Some(pid) => vec![pid],
        None => pids()?,
    };
    pids.sort_unstable();
    let mut looked = PageSearch::default();
    for one in pids {
        let process = Path::new("/proc").join(one.to_string());
        match pages(&process.join("fd")) {
            Ok(pages) if pages.is_empty() => {}
            Ok(pages) => looked.found.push(ProcessPages {
                pid: one,
                command: command(&process),
                pages,
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                looked.unseen.push(HiddenProcess {
                    pid: one,
                    command: command(&process),
                });
            }
            Err(error) if pid.is_some() => return Err(error),
            // The process has just ended.
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

/// Returns the pages among the descriptors of a process.
fn pages(descriptors: &Path) -> io::Result<Vec<FoundPage>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(descriptors)? {
        let path = entry?.path();
        match fs::read_link(&path) {
            Ok(name) if is_page(&name) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            // The descriptor is another file, or was closed meanwhile.
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

/// Returns whether the link of a descriptor names a page.
fn is_page(name: &Path) -> bool {
    let name = name.to_str().and_then(|name| name.strip_prefix("/memfd:"));
    name.and_then(|name| name.strip_suffix(" (deleted)")) == Page::NAME.to_str().ok()
}

/// Opens the file of a descriptor without blocking. The descriptor may refer to another file by
/// now.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
}

/// Returns the name of a process without characters that are not shown.
fn command(process: &Path) -> String {
    let name = fs::read(process.join("comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    name.chars().filter(|c| !is_hidden(*c)).collect()
}

/// The maximum number of pages per process. No process uses RIO on more interfaces; the limit
/// prevents that a process exhausts the reader's descriptors.
const MAX_PAGES: usize = 32;
