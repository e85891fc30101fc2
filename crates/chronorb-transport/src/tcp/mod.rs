//! TCP, the transport of IIOP.

mod acceptor;
mod connection;
mod connector;
mod options;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use chronorb_rt::Deadline;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use self::acceptor::TcpAcceptor;
use crate::inet::{HOSTNAME_IN_IOR, HostEndpoint, PORT_SPAN, resolve};
use crate::ip_options::refused;
use crate::{
    Acceptor, Address, ConnectError, Connection, Endpoint, EndpointError, ListenError, Setup,
    Transport,
};

/// TCP over IPv4 and IPv6.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Transport for Tcp {
    fn scheme(&self) -> &str {
        "iiop"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        HostEndpoint::of(endpoint)?;
        endpoint.check_options(&[HOSTNAME_IN_IOR, PORT_SPAN])
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        listen(endpoint, setup, None)
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        connect(address, setup, None, deadline)
    }
}

/// TCP by one network interface: its sockets neither receive nor send packets by another one.
#[derive(Clone, Copy, Debug)]
pub struct TcpByInterface {
    /// The number of the interface.
    pub index: u32,
}

impl Transport for TcpByInterface {
    fn scheme(&self) -> &str {
        Tcp.scheme()
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        Tcp.check(endpoint)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        listen(endpoint, setup, Some(self.index))
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        connect(address, setup, Some(self.index), deadline)
    }
}

fn listen(
    endpoint: &Endpoint,
    setup: Setup,
    interface: Option<u32>,
) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
    TcpAcceptor::open(endpoint, setup.options, interface)
}

fn connect(
    address: &Address,
    setup: Setup,
    interface: Option<u32>,
    deadline: Deadline,
) -> Result<Box<dyn Connection>, ConnectError> {
    let resolved = resolve(address, deadline)?;
    let mut last = ConnectError::Refused {
        address: address.to_string(),
        source: io::ErrorKind::AddrNotAvailable.into(),
    };
    for socket_address in resolved {
        match connector::connect(socket_address, setup.options, interface, deadline) {
            Ok(connection) => return Ok(Box::new(connection)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Makes a TCP socket for this kind of address, closed on `exec`, bound to the given interface if
/// there is one.
fn socket(address: &SocketAddr, interface: Option<u32>) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = net::socket_with(
        family,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        Some(net::ipproto::TCP),
    )?;
    if let Some(index) = interface {
        crate::sys::bind_to_interface(&socket, index).or_else(refused("SO_BINDTOIFINDEX"))?;
    }
    Ok(socket)
}
