//! Listening at Unix-domain sockets.

use std::env;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::Mode;
use rustix::net;

use super::connection::UnixConnection;
use super::file::{SocketFile, remove_abandoned};
use super::{Name, options, socket};
use crate::activation::passed_listener;
use crate::stream::{self, BACKLOG};
use crate::timed::TimedSocket;
use crate::{
    AcceptError, Acceptor, Address, Connection, Endpoint, EndpointError, ListenError, SocketOptions,
};

/// A listening Unix-domain socket.
#[derive(Debug)]
pub(crate) struct UnixAcceptor {
    socket: OwnedFd,
    options: SocketOptions,
    published: [Address; 1],
    /// Removed when this is dropped.
    _file: Option<SocketFile>,
}

impl UnixAcceptor {
    pub(crate) fn open(endpoint: &Endpoint, options: SocketOptions) -> Result<Self, ListenError> {
        let refused = |source: io::Error| ListenError::Refused {
            endpoint: endpoint.to_string(),
            source,
        };
        let mode = mode(endpoint)?;
        match Name::of(path(endpoint)?) {
            Name::Path("") => Self::open_anywhere(mode, options).map_err(refused),
            Name::Path(path) => {
                // References are read in other directories.
                let path = std::path::absolute(path).map_err(refused)?;
                Self::open_file(&path, mode, options).map_err(refused)
            }
            Name::Abstract(name) => Self::open_abstract(name, options).map_err(refused),
        }
    }

    /// Opens a file in a directory for such files, under an unused name.
    fn open_anywhere(mode: Mode, options: SocketOptions) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let directory = directory();
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            if number == 0 {
                remove_abandoned(&directory, PREFIX);
            }
            let name = format!("{PREFIX}-{}-{number}", process::id());
            match Self::open_file(&directory.join(name), mode, options) {
                // Another has it, in a directory for all of them.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                other => return other,
            }
        }
    }

    fn open_file(path: &Path, mode: Mode, options: SocketOptions) -> io::Result<Self> {
        let published = path
            .to_str()
            .ok_or_else(|| io::Error::other("the path of the present directory is not UTF-8"))?;
        let name = Name::Path(published).socket_address();
        let name = name.map_err(io::Error::other)?;
        if let Some(socket) = passed_listener(&name) {
            // The file is the service manager's, with the rights that it was given.
            return Self::of_passed(socket, options, published);
        }
        let socket = socket()?;
        options::set(&socket, options)?;
        let file = SocketFile::listen(&socket, published, mode)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self::new(socket, options, published, Some(file)))
    }

    fn open_abstract(name: &str, options: SocketOptions) -> io::Result<Self> {
        let address = Name::Abstract(name).socket_address();
        let address = address.map_err(io::Error::other)?;
        if let Some(socket) = passed_listener(&address) {
            return Self::of_passed(socket, options, &format!("@{name}"));
        }
        let socket = socket()?;
        options::set(&socket, options)?;
        net::bind(&socket, &address)?;
        net::listen(&socket, BACKLOG)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self::new(socket, options, &format!("@{name}"), None))
    }

    /// An acceptor of a socket that the service manager has opened.
    fn of_passed(socket: OwnedFd, options: SocketOptions, published: &str) -> io::Result<Self> {
        options::set(&socket, options)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self::new(socket, options, published, None))
    }

    fn new(
        socket: OwnedFd,
        options: SocketOptions,
        published: &str,
        file: Option<SocketFile>,
    ) -> Self {
        Self {
            socket,
            options,
            published: [Address::Path(published.to_owned())],
            _file: file,
        }
    }
}

impl Acceptor for UnixAcceptor {
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        while let Some(socket) = stream::accept(&self.socket)? {
            // Without its options a connection is not the one that was configured: it ends here.
            if options::set(&socket, self.options).is_ok() {
                let socket = TimedSocket::new(socket);
                return Ok(Some(Box::new(UnixConnection::new(socket))));
            }
        }
        Ok(None)
    }

    fn published(&self) -> &[Address] {
        &self.published
    }
}

impl AsFd for UnixAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Checks whether an endpoint is valid, as far as it can be seen without opening it.
pub(crate) fn check(endpoint: &Endpoint) -> Result<(), EndpointError> {
    endpoint.check_options(&[MODE])?;
    mode(endpoint)?;
    let name = Name::of(path(endpoint)?);
    if matches!(name, Name::Abstract(_)) && endpoint.option(MODE).is_some() {
        return Err(endpoint.error("a name that is no file has no mode"));
    }
    if name != Name::Path("") {
        name.socket_address()
            .map_err(|problem| endpoint.error(problem))?;
    }
    Ok(())
}

fn path(endpoint: &Endpoint) -> Result<&str, EndpointError> {
    let path = endpoint.address.as_path();
    path.ok_or_else(|| endpoint.error("it needs a path, and no host"))
}

/// The rights to the socket file.
fn mode(endpoint: &Endpoint) -> Result<Mode, EndpointError> {
    let Some(text) = endpoint.option(MODE) else {
        return Ok(Mode::RUSR | Mode::WUSR);
    };
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|bits| (0o001..=0o777).contains(bits))
        .map(Mode::from_raw_mode)
        .ok_or_else(|| endpoint.error(format!("the mode {text:?} is not one of 0001 to 0777")))
}

/// Returns the directory of sockets that have no path.
fn directory() -> PathBuf {
    env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|directory| directory.is_absolute() && directory.is_dir())
        .unwrap_or_else(env::temp_dir)
}

/// The prefix of the names of such sockets.
const PREFIX: &str = "chronorb";
/// The option that gives the rights to the file.
const MODE: &str = "mode";
