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
        let acceptor = TcpAcceptor::open(endpoint, setup.options)?;
        Ok(vec![Box::new(acceptor)])
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let resolved = resolve(address)?;
        let mut last = ConnectError::Refused {
            address: address.to_string(),
            source: io::ErrorKind::AddrNotAvailable.into(),
        };
        for socket_address in resolved {
            match connector::connect(socket_address, setup.options, deadline) {
                Ok(connection) => return Ok(Box::new(connection)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// A TCP socket for this kind of address, closed on `exec`.
fn socket(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    Ok(net::socket_with(
        family,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        Some(net::ipproto::TCP),
    )?)
}
