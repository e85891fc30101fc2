//! The search for the monitor of an ORB.

use std::fs;
use std::io;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chronorb_orb::monitor::{self, Client, ClientError, Report};

use super::text::{cut, plain};
use super::{Source, Target, TopError};

/// A socket of a monitor, and its answer.
#[derive(Debug)]
pub(crate) struct FoundMonitor {
    path: PathBuf,
    pid: u32,
    said: Result<(Client, Report), ClientError>,
}

/// Returns the monitor of the target, or the only one.
pub(super) fn one(target: Option<&Target>) -> Result<Source, TopError> {
    let (directories, pid) = match target {
        Some(Target::Socket(path)) => return source(path.clone(), ask(path)),
        Some(Target::Process(pid)) => (directories_of_process(*pid), Some(*pid)),
        None => (monitor::directories(), None),
    };
    choose(&directories, pid)
}

fn choose(directories: &[PathBuf], pid: Option<u32>) -> Result<Source, TopError> {
    let mut found: Vec<FoundMonitor> = sockets(directories, pid)
        .into_iter()
        .map(|(path, pid)| FoundMonitor {
            said: ask(&path),
            path,
            pid,
        })
        .filter(|found| !found.is_stale())
        .collect();
    match found.pop() {
        None => Err(TopError::NoMonitor {
            whose: match pid {
                Some(pid) => format!("process {pid} has no ORB with a monitor"),
                None => "no ORB of this user has a monitor".to_owned(),
            },
            looked: looked_in(directories),
        }),
        Some(only) if found.is_empty() => source(only.path, only.said),
        Some(last) => {
            found.push(last);
            Err(TopError::Several(found))
        }
    }
}

impl FoundMonitor {
    /// Whether no process listens, because it was killed.
    fn is_stale(&self) -> bool {
        let stale = [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound];
        matches!(&self.said, Err(ClientError::Connect(error)) if stale.contains(&error.kind()))
    }
}

/// Describes the monitors among which the user has to choose.
pub(super) fn say_which(found: &[FoundMonitor]) -> String {
    let mut text = format!(
        "{} ORBs have a monitor; say which by process or socket:\n\n\
         {:>8}  {:<12}  SOCKET and COMMAND\n",
        found.len(),
        "PID",
        "ORB ID",
    );
    for found in found {
        let (orb_id, command) = match &found.said {
            Ok((_, report)) => (plain(&report.orb_id), plain(&report.command)),
            Err(error) => ("?".to_owned(), plain(&error.to_string())),
        };
        text += &format!(
            "{:>8}  {:<12}  {}\n{:24}{}\n",
            found.pid,
            cut(&orb_id, 12),
            plain(&found.path.display().to_string()),
            "",
            cut(&command, 56)
        );
    }
    let example = found.first().map_or(0, |found| found.pid);
    text + &format!("\nFor example: chronorb top {example}")
}

fn source(path: PathBuf, said: Result<(Client, Report), ClientError>) -> Result<Source, TopError> {
    match said {
        Ok((client, before)) => Ok(Source {
            path,
            client,
            before,
        }),
        Err(source) => Err(TopError::Monitor { path, source }),
    }
}

fn ask(path: &Path) -> Result<(Client, Report), ClientError> {
    let mut client = Client::connect(path, PATIENCE)?;
    let report = client.snapshot()?;
    Ok((client, report))
}

/// Returns the directories that may have the monitor of a process, also of another user.
fn directories_of_process(pid: u32) -> Vec<PathBuf> {
    let mut directories = monitor::directories();
    if let Ok(process) = fs::metadata(format!("/proc/{pid}")) {
        for directory in monitor::directories_of(process.st_uid()) {
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
    }
    directories
}

/// Returns the sockets in directories with the ids of their processes, sorted by these.
fn sockets(directories: &[PathBuf], of: Option<u32>) -> Vec<(PathBuf, u32)> {
    let entries = directories
        .iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flat_map(|entries| entries.flatten());
    let mut sockets: Vec<_> = entries
        .filter_map(|entry| Some((numbers(entry.file_name().to_str()?)?, entry.path())))
        .filter(|((pid, _), _)| of.is_none_or(|of| of == *pid))
        .take(MAX_SOCKETS)
        .collect();
    sockets.sort();
    let sockets = sockets.into_iter();
    sockets.map(|((pid, _), path)| (path, pid)).collect()
}

/// Parses the numbers of a process and of its ORB, `<pid>-<number>.sock`.
fn numbers(name: &str) -> Option<(u32, u64)> {
    let (pid, number) = name.strip_suffix(".sock")?.split_once('-')?;
    Some((pid.parse().ok()?, number.parse().ok()?))
}

fn looked_in(directories: &[PathBuf]) -> String {
    let directories: Vec<_> = directories
        .iter()
        .map(|directory| directory.display().to_string())
        .collect();
    match &directories[..] {
        [] => "there is no directory with sockets".to_owned(),
        some => format!("looked in {}", some.join(", ")),
    }
}

/// The longest wait for the answer of a monitor.
const PATIENCE: Duration = Duration::from_secs(2);
/// The largest number of monitors that are queried.
const MAX_SOCKETS: usize = 1000;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_are_told_by_their_names() {
        assert_eq!(numbers("12-3.sock"), Some((12, 3)));
        for other in [
            "12.sock",
            "12-3",
            "-3.sock",
            "a-3.sock",
            "12-3.socket",
            "1-2-3.sock",
        ] {
            assert_eq!(numbers(other), None, "{other}");
        }
    }

    #[test]
    fn what_nobody_listens_at_is_not_counted() {
        let directory = tempfile::tempdir().expect("a directory");
        drop(UnixListener::bind(directory.path().join("7-1.sock")).expect("it opens"));
        fs::write(directory.path().join("notes.txt"), "").expect("it can be written");
        let directories = [directory.path().to_owned()];
        assert_eq!(sockets(&directories, None).len(), 1);
        let error = choose(&directories, None).map(|_| ());
        assert!(matches!(error, Err(TopError::NoMonitor { .. })));
    }
}
