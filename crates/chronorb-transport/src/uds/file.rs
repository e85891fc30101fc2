//! The files of Unix-domain sockets.
//!
//! A file is created without any permissions, and gets them when its socket listens. So no process
//! connects to it too early, and a file that has permissions but no listener was left behind.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process;

use chronorb_rt::with_time_sharing;
use rustix::fs::{self, CWD, FileType, Mode, RenameFlags, Stat};
use rustix::io::Errno;
use rustix::net;
use rustix::process::{Pid, test_kill_process};

use super::{Name, socket};
use crate::stream::BACKLOG;

/// The file of a socket, removed with this unless another file has taken its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: String,
    identity: Identity,
}

impl SocketFile {
    /// Binds a socket to a path, in the place of a file that has been left behind there.
    ///
    /// # Errors
    /// `AddrInUse` where the file is another one.
    fn bind(socket: &OwnedFd, path: &str) -> io::Result<Self> {
        check_directory(path)?;
        let address = Name::Path(path).socket_address();
        let address = address.map_err(|p| io::Error::new(io::ErrorKind::InvalidInput, p))?;
        // The file gets the mode of the socket (and of `umask`).
        fs::fchmod(socket, Mode::empty())?;
        match net::bind(socket, &address) {
            Err(Errno::ADDRINUSE) => {
                remove_stale(path)?;
                net::bind(socket, &address)?;
            }
            other => other?,
        }
        Ok(Self {
            path: path.to_owned(),
            identity: Identity::of(&fs::lstat(path)?),
        })
    }

    /// Binds a socket to a path as [`bind`](Self::bind) does, listens, and gives the file its
    /// rights: from then on peers may connect.
    pub(crate) fn listen(socket: &OwnedFd, path: &str, mode: Mode) -> io::Result<Self> {
        let file = Self::bind(socket, path)?;
        net::listen(socket, BACKLOG)?;
        fs::chmod(path, mode)?;
        Ok(file)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let remove = || {
            if fs::lstat(&self.path).is_ok_and(|file| Identity::of(&file) == self.identity) {
                // The file may have been removed by now, or the permission to remove it: there is
                // nothing to do then.
                let _ = fs::unlink(&self.path);
            }
        };
        // The last thread of a lane may be a real-time one. Without a thread that could remove the
        // file, it stays, and the next listener replaces it.
        let _ = with_time_sharing(remove);
    }
}

/// The properties that distinguish a file from others that had its path. Inode numbers are reused,
/// sometimes at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Identity {
    device: u64,
    number: u64,
    made: (i64, u64),
}

impl Identity {
    fn of(file: &Stat) -> Self {
        Self {
            device: file.st_dev,
            number: file.st_ino,
            // The width of nanoseconds is that of a machine word.
            made: (file.st_mtime, file.st_mtime_nsec as _),
        }
    }
}

/// Removes a socket file that has no listener any more.
fn remove_stale(path: &str) -> io::Result<()> {
    let file = fs::lstat(path)?;
    if FileType::from_raw_mode(file.st_mode) != FileType::Socket {
        return Err(in_use("the file is not a socket"));
    }
    if Mode::from_raw_mode(file.st_mode).is_empty() {
        return Err(in_use(
            "another process is about to listen there, or ended as it was; in that case remove \
             the file",
        ));
    }
    if is_listened_at(path)? {
        return Err(in_use("another process listens there"));
    }
    // Two processes that found the file may get here: the second one has moved the new file of the
    // first one aside.
    let aside = format!("{path}.{}", process::id());
    fs::renameat_with(CWD, path, CWD, &aside, RenameFlags::NOREPLACE)?;
    if Identity::of(&fs::lstat(&aside)?) == Identity::of(&file) {
        fs::unlink(&aside)?;
        return Ok(());
    }
    fs::renameat_with(CWD, &aside, CWD, path, RenameFlags::NOREPLACE)?;
    Err(in_use("another process has begun to listen there"))
}

/// Removes sockets that ended processes of this user have left behind in a directory: files named
/// `PREFIX-PID-NUMBER`. They are left alone in cases of doubt.
pub(super) fn remove_abandoned(directory: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let path = entry.path();
        let (Some(name), Some(text)) =
            (entry.file_name().to_str().map(str::to_owned), path.to_str())
        else {
            continue;
        };
        let mut parts = name.split('-');
        let is_named = parts.next() == Some(prefix);
        let process = parts.next().and_then(|pid| pid.parse().ok());
        let Some(process) = process.and_then(Pid::from_raw).filter(|_| is_named) else {
            continue;
        };
        let is_own = fs::lstat(&path).is_ok_and(|file| file.st_uid == own);
        let is_gone = || test_kill_process(process) == Err(Errno::SRCH);
        // Another may have the number of the process in another namespace.
        if is_own && is_gone() {
            let _ = remove_stale(text);
        }
    }
}

fn is_listened_at(path: &str) -> io::Result<bool> {
    let probe = socket()?;
    rustix::io::ioctl_fionbio(&probe, true)?;
    let address = Name::Path(path).socket_address();
    let address = address.map_err(io::Error::other)?;
    match net::connect(&probe, &address) {
        Err(Errno::CONNREFUSED) => Ok(false),
        // Full, of another type, or not for this process: it is there.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE | Errno::ACCESS) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Refuses directories in which everybody may put another file in the place of the socket's.
fn check_directory(path: &str) -> io::Result<()> {
    let directory = Path::new(path).parent().unwrap_or_else(|| Path::new("/"));
    let mode = Mode::from_raw_mode(fs::stat(directory)?.st_mode);
    if mode.contains(Mode::WOTH) && !mode.contains(Mode::SVTX) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "everybody may replace files in {}: take a directory that is not writable for \
                 all, or set its sticky bit",
                directory.display()
            ),
        ));
    }
    Ok(())
}

fn in_use(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, problem)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::Command;
    use std::thread;

    use chronorb_rt::{Rights, Scheduling, current, set_current};

    use super::*;

    #[test]
    fn a_real_time_thread_removes_the_file_and_keeps_its_priority() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let text = path.to_str().expect("it is text").to_owned();
        let urgent = Scheduling::fifo(1);
        let thread = thread::spawn(move || {
            if let Err(error) = set_current(urgent) {
                assert!(Rights::probe().max_fifo.is_none(), "{error}");
                return;
            }
            let file = SocketFile::bind(&socket().expect("a socket"), &text).expect("it is free");
            assert!(Path::new(&text).exists());
            drop(file);
            assert!(!Path::new(&text).exists());
            assert_eq!(current().expect("it is known"), urgent);
        });
        thread.join().expect("the file is removed");
    }

    #[test]
    fn sockets_of_processes_that_are_gone_are_removed_and_no_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut child = Command::new("true").spawn().expect("it starts");
        let gone = child.id();
        child.wait().expect("it has ended");
        let at = |name: &str| directory.path().join(name);
        let names = [
            format!("orb-{gone}-0"),
            format!("orb-{gone}-1"),
            format!("orb-{}-0", process::id()),
            format!("other-{gone}-0"),
            "orb-x-0".to_owned(),
            "orb".to_owned(),
        ];
        let sockets = names.each_ref().map(|name| UnixListener::bind(at(name)));
        let [first, second, ..] = sockets;
        // A process listens at the second one: the number is that of another namespace.
        drop(first);
        remove_abandoned(directory.path(), "orb");
        let is_there = names.each_ref().map(|name| at(name).exists());
        assert_eq!(is_there, [false, true, true, true, true, true]);
        drop(second);
        remove_abandoned(directory.path(), "orb");
        assert!(!at(&names[1]).exists());
        remove_abandoned(&at("nowhere"), "orb");
    }
}
