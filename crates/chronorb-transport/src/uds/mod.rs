//! Unix-domain sockets, the transport of UIOP: for peers on the same machine.
//!
//! An endpoint is the path of a socket file, `uiop:///run/radar`. Its only option is `mode`, the
//! permissions of the file in octal digits, `0600` by default: a process that may write to it may
//! connect. A relative path starts at the process's directory. A name that begins with `@` is not a
//! file but an abstract name of the kernel (unix(7)), to which every process in the same network
//! namespace may connect. Without a path one is chosen, in `XDG_RUNTIME_DIR` or the directory for
//! temporary files.
//!
//! A socket file without a listener is replaced; one with a listener, and files of other kinds, are
//! left alone, and the endpoint is refused. The file is removed when the endpoint is closed.

mod acceptor;
mod connection;
mod connector;
pub(crate) mod file;
mod name;
mod options;

use std::os::fd::OwnedFd;

use chronorb_rt::Deadline;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

pub(crate) use self::acceptor::{UnixAcceptor, check};
use self::connection::UnixConnection;
pub(crate) use self::connector::connect;
use self::name::Name;
use crate::{
    Acceptor, Address, ConnectError, Connection, Endpoint, EndpointError, ListenError, Setup,
    Transport,
};

/// Unix-domain sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unix;

impl Transport for Unix {
    fn scheme(&self) -> &str {
        "uiop"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        check(endpoint)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let acceptor = UnixAcceptor::open(endpoint, setup.options)?;
        Ok(vec![Box::new(acceptor)])
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let socket = connect(address, setup.options, deadline)?;
        Ok(Box::new(UnixConnection::new(socket)))
    }
}

/// A socket, closed on `exec`.
pub(crate) fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC;
    net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}
