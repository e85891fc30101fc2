//! The sockets of monitors.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use thiserror::Error;

/// A monitor's socket could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SocketError {
    /// The directory of sockets cannot be created, or read.
    #[error("the directory {} of its socket: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Other users may write to the directory, or read it.
    #[error("the directory {} of its socket {problem}; remove it, or say by -ORBMonitor PATH \
        where else", path.display())]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// The reason why it cannot be used.
        problem: String,
    },
    /// There is a listener, a file of another kind, or another user's socket.
    #[error("its socket {} {problem}", path.display())]
    Taken {
        /// The socket.
        path: PathBuf,
        /// The obstacle.
        problem: &'static str,
    },
    /// The system refuses the socket.
    #[error("its socket {}: {source}", path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// The directories where monitors of the calling user have their sockets, `<pid>-<number>.sock`;
/// those that are there, and are safe.
///
/// `chronorb` in `$XDG_RUNTIME_DIR`, else in `/run/user/<uid>`, and `/tmp/chronorb-<uid>`, which is
/// for those that have neither.
pub fn directories() -> Vec<PathBuf> {
    let uid = geteuid().as_raw();
    let own = runtime_directory(uid).map(|runtime| runtime.join(NAME));
    let directories = own.into_iter().chain([temporary(uid)]);
    directories
        .filter(|directory| check(directory, uid).is_ok())
        .collect()
}

/// Returns the directories as [`directories`] does, for another user, whose environment is unknown.
pub fn directories_of(uid: u32) -> Vec<PathBuf> {
    [user_runtime(uid).join(NAME), temporary(uid)]
        .into_iter()
        .filter(|directory| check(directory, uid).is_ok())
        .collect()
}

/// The directory for this process's sockets, which is made where it is missing.
pub(super) fn own_directory() -> Result<PathBuf, SocketError> {
    let uid = geteuid().as_raw();
    match runtime_directory(uid) {
        Some(runtime) => made(runtime.join(NAME), uid),
        None => made(temporary(uid), uid),
    }
}

/// A listening socket. The file is removed with it.
#[derive(Debug)]
pub(super) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file, by which it is known again.
    file: (u64, u64),
}

impl Socket {
    /// Opens it, and replaces a socket without a listener.
    pub(super) fn open(path: PathBuf) -> Result<Self, SocketError> {
        let listener = match UnixListener::bind(&path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_stale(&path)?;
                UnixListener::bind(&path)
            }
            bound => bound,
        };
        let opened = listener.and_then(|listener| {
            listener.set_nonblocking(true)?;
            let file = fs::symlink_metadata(&path)?;
            Ok((listener, (file.st_dev(), file.st_ino())))
        });
        match opened {
            Ok((listener, file)) => Ok(Self {
                listener,
                path,
                file,
            }),
            Err(source) => Err(SocketError::Refused { path, source }),
        }
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // By then it may be another's.
        let present = fs::symlink_metadata(&self.path);
        if present.is_ok_and(|file| (file.st_dev(), file.st_ino()) == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes a socket of this user that has no listener.
fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let taken = |problem| SocketError::Taken {
        path: path.to_owned(),
        problem,
    };
    let refused = |source| SocketError::Refused {
        path: path.to_owned(),
        source,
    };
    // Of a link itself, so that none is followed.
    let present = fs::symlink_metadata(path).map_err(refused)?;
    if !present.file_type().is_socket() {
        return Err(taken("is there, and is no socket"));
    }
    if present.st_uid() != geteuid().as_raw() {
        return Err(taken("is there, and belongs to another user"));
    }
    match connect_at_once(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(refused)
        }
        // There is a listener, with many connections that wait to be accepted.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(taken("is there, and in use"))
        }
        Err(source) => Err(refused(source)),
        Ok(_) => Err(taken("is there, and in use")),
    }
}

/// Connects without waiting: `WouldBlock` where too many connections wait already.
pub(super) fn connect_at_once(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    loop {
        match connect(&socket, &address) {
            Err(Errno::INTR) => {}
            connected => return Ok(connected.map(|()| UnixStream::from(socket))?),
        }
    }
}

/// Makes the directory, or makes sure that it is safe.
fn made(path: PathBuf, uid: u32) -> Result<PathBuf, SocketError> {
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            return Err(SocketError::Directory { path, source });
        }
        _ => {}
    }
    check(&path, uid).map(|()| path)
}

/// Whether a directory is a user's alone.
fn check(path: &Path, uid: u32) -> Result<(), SocketError> {
    let is_unsafe = |problem| {
        Err(SocketError::Unsafe {
            path: path.to_owned(),
            problem,
        })
    };
    // Of a link itself, so that none is followed.
    let file = fs::symlink_metadata(path).map_err(|source| SocketError::Directory {
        path: path.to_owned(),
        source,
    })?;
    let mode = file.st_mode() & 0o7777;
    if !file.is_dir() {
        is_unsafe("is no directory".to_owned())
    } else if file.st_uid() != uid {
        is_unsafe(format!("belongs to user {}", file.st_uid()))
    } else if mode != 0o700 {
        is_unsafe(format!("has mode {mode:04o} and not 0700"))
    } else {
        Ok(())
    }
}

/// Returns the user's runtime directory, if there is one.
fn runtime_directory(uid: u32) -> Option<PathBuf> {
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let is_own = |path: &PathBuf| {
        // The directory of another user, inherited with the environment, is not used.
        let file = fs::metadata(path);
        path.is_absolute() && file.is_ok_and(|file| file.is_dir() && file.st_uid() == uid)
    };
    given
        .filter(is_own)
        .or_else(|| Some(user_runtime(uid)).filter(is_own))
}

fn user_runtime(uid: u32) -> PathBuf {
    PathBuf::from(format!("/run/user/{uid}"))
}

fn temporary(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/{NAME}-{uid}"))
}

const NAME: &str = "chronorb";

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn uid() -> u32 {
        geteuid().as_raw()
    }

    #[test]
    fn the_directory_is_made_for_the_user_alone_and_used_again() {
        let base = tempfile::tempdir().expect("a directory");
        for _ in 0..2 {
            let path = made(base.path().join("chronorb"), uid()).expect("it can be made");
            let mode = fs::metadata(path).expect("it is there").st_mode();
            assert_eq!(mode & 0o7777, 0o700);
        }
    }

    #[test]
    fn a_directory_that_others_could_use_is_refused() {
        let base = tempfile::tempdir().expect("a directory");
        let path = base.path().join("chronorb");
        fs::create_dir(&path).expect("it can be made");
        for mode in [0o755, 0o770, 0o1777, 0o701] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
            let error = made(path.clone(), uid()).expect_err("it is unsafe");
            assert!(error.to_string().contains("and not 0700"), "{error}");
        }
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused() {
        let base = tempfile::tempdir().expect("a directory");
        let path = made(base.path().join("chronorb"), uid()).expect("it can be made");
        let error = made(path, uid() + 1).expect_err("it is that of another user");
        let whose = format!("belongs to user {}", uid());
        assert!(error.to_string().contains(&whose), "{error}");
    }

    #[test]
    fn a_link_is_not_followed_to_a_directory_and_not_to_a_socket() {
        let base = tempfile::tempdir().expect("a directory");
        let target = made(base.path().join("target"), uid()).expect("it can be made");
        let link = base.path().join("chronorb");
        symlink(&target, &link).expect("it can be made");
        let error = made(link, uid()).expect_err("it is a link");
        assert!(error.to_string().contains("is no directory"), "{error}");

        let link = base.path().join("link.sock");
        symlink(target.join("elsewhere.sock"), &link).expect("it can be made");
        let error = Socket::open(link).expect_err("it is a link");
        assert!(error.to_string().contains("is no socket"), "{error}");
        assert!(!target.join("elsewhere.sock").exists());
    }

    #[test]
    fn a_socket_at_which_nobody_listens_is_replaced_and_another_is_not() {
        let base = tempfile::tempdir().expect("a directory");
        let path = base.path().join("1-1.sock");
        drop(UnixListener::bind(&path).expect("it opens"));
        assert!(path.exists(), "the standard library leaves it behind");
        let socket = Socket::open(path.clone()).expect("it is stale");
        let error = Socket::open(path.clone()).expect_err("it is in use");
        assert!(error.to_string().contains("in use"), "{error}");
        drop(socket);
        assert!(!path.exists());

        fs::write(&path, "precious").expect("it can be written");
        let error = Socket::open(path.clone()).expect_err("it is a file");
        assert!(error.to_string().contains("is no socket"), "{error}");
        assert!(path.exists());
    }

    #[test]
    fn the_socket_of_a_successor_stays() {
        let base = tempfile::tempdir().expect("a directory");
        let path = base.path().join("1-1.sock");
        let socket = Socket::open(path.clone()).expect("it opens");
        fs::remove_file(&path).expect("it is there");
        let _successor = UnixListener::bind(&path).expect("it opens");
        drop(socket);
        assert!(path.exists());
    }
}
