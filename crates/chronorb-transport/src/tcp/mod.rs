//! TCP, the transport of IIOP.

mod acceptor;
mod connection;
mod connector;
mod options;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;

use chronorb_rt::Deadline;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use self::acceptor::TcpAcceptor;
use crate::{
    Acceptor, Address, ConnectError, Connection, Endpoint, ListenError, SocketOptions, Transport,
};

/// TCP over IPv4 and IPv6.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Transport for Tcp {
    fn scheme(&self) -> &'static str {
        "iiop"
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        options: SocketOptions,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let acceptor = TcpAcceptor::open(endpoint, options)?;
        Ok(vec![Box::new(acceptor)])
    }

    fn connect(
        &self,
        address: &Address,
        options: SocketOptions,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let resolved = (address.host.as_str(), address.port)
            .to_socket_addrs()
            .map_err(|source| ConnectError::Unresolved {
                host: address.host.clone(),
                source,
            })?;
        let mut last = ConnectError::Refused {
            address: address.to_string(),
            source: io::ErrorKind::AddrNotAvailable.into(),
        };
        for socket_address in resolved {
            match connector::connect(socket_address, options, deadline) {
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

/// The address to publish for an unspecified one: that of the first interface
/// that is up and not the loopback, else the loopback.
fn reachable_host() -> IpAddr {
    chronorb_rt::interface_addresses()
        .into_iter()
        .find(|address| !address.is_loopback() && address.is_ipv4())
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}
