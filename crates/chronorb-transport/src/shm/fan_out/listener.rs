//! The socket by which processes join a ring.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use chronorb_rt::Deadline;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{self, Shutdown, SocketFlags};

use super::FanOutError;
use crate::uds::{self, file::SocketFile};
use crate::{Address, ConnectError, SocketOptions};

/// A listening socket for the readers of a ring. Dropping it removes its file.
///
/// The file has the mode 0600, so only processes of the same user may join. A program that permits
/// others changes the mode.
pub struct FanOutListener {
    socket: OwnedFd,
    _file: SocketFile,
}

impl FanOutListener {
    /// Listens at a path, in the place of a socket that a process which ended has left there.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another process listens there, or a file of another kind has
    /// the path; [`io::ErrorKind::PermissionDenied`] if everybody may replace files in the
    /// directory; [`io::ErrorKind::InvalidInput`] if the path is too long or not UTF-8.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let socket = uds::socket()?;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = SocketFile::listen(&socket, &absolute(path)?, mode)?;
        Ok(Self {
            socket,
            _file: file,
        })
    }

    /// Waits for a reader.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] once the listener was [shut down](Self::shut_down); those of
    /// the system, as if too many files are open.
    pub fn accept(&self) -> io::Result<OwnedFd> {
        let accept = || net::accept_with(&self.socket, SocketFlags::CLOEXEC);
        Ok(rustix::io::retry_on_intr(accept)?)
    }

    /// Ends all waits for readers, and refuses those to come.
    pub fn shut_down(&self) {
        // It fails only for sockets of other kinds.
        let _ = net::shutdown(&self.socket, Shutdown::Both);
    }
}

impl fmt::Debug for FanOutListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FanOutListener").field(&self._file).finish()
    }
}

/// Connects to a listener.
pub(super) fn connect(path: &Path, deadline: Deadline) -> Result<OwnedFd, FanOutError> {
    let path = absolute(path).map_err(FanOutError::Socket)?;
    let options = SocketOptions::default();
    match uds::connect(&Address::Path(path), options, deadline) {
        Ok(socket) => Ok(socket.into_socket()),
        Err(ConnectError::TimedOut { .. }) => Err(FanOutError::Late),
        Err(ConnectError::Refused { source, .. }) => Err(FanOutError::Socket(source)),
        Err(error) => Err(FanOutError::Socket(io::Error::other(error))),
    }
}

/// The whole path, so that none is the name of a socket without a file.
fn absolute(path: &Path) -> io::Result<String> {
    let path = std::path::absolute(path)?;
    let text = path.into_os_string().into_string();
    text.map_err(|_| Errno::INVAL.into())
}
