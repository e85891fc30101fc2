//! TCP, the transport of IIOP.

mod acceptor;
mod connection;
mod connector;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;

use chronorb_rt::Deadline;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

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

/// Sets what the options ask for; buffers before connecting or listening, so that the window is scaled to them.
fn set_options(socket: &OwnedFd, options: SocketOptions) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, options.no_delay)?;
    sockopt::set_socket_keepalive(socket, options.keep_alive)?;
    if let Some(size) = options.send_buffer {
        sockopt::set_socket_send_buffer_size(socket, size as usize)?;
    }
    if let Some(size) = options.receive_buffer {
        sockopt::set_socket_recv_buffer_size(socket, size as usize)?;
    }
    Ok(())
}

/// The address to publish for an unspecified one: that of the first interface
/// that is up and not the loopback, else the loopback.
fn reachable_host() -> IpAddr {
    chronorb_rt::interface_addresses()
        .into_iter()
        .find(|address| !address.is_loopback() && address.is_ipv4())
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}
