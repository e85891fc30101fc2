//! Taking in TCP connections.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use chronorb_rt::{Activity, doing};
use rustix::io::Errno;
use rustix::net::{self, SocketFlags, sockopt};

use super::connection::TcpConnection;
use super::{options, reachable_host, socket};
use crate::{AcceptError, Acceptor, Address, Connection, Endpoint, ListenError, SocketOptions};

/// A listening TCP socket.
#[derive(Debug)]
pub(super) struct TcpAcceptor {
    socket: OwnedFd,
    options: SocketOptions,
    published: Address,
}

impl TcpAcceptor {
    /// Binds to the first free port of the endpoint's span.
    pub(super) fn open(endpoint: &Endpoint, options: SocketOptions) -> Result<Self, ListenError> {
        let text = || format!("{}://{}:{}", endpoint.scheme, endpoint.host, endpoint.port);
        let ips = resolve(&endpoint.host).map_err(|source| ListenError::Unresolved {
            endpoint: text(),
            source,
        })?;
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for port in ports(endpoint) {
            for ip in &ips {
                match listen(SocketAddr::new(*ip, port), options) {
                    Ok((socket, local)) => {
                        let host = match &endpoint.hostname_in_ior {
                            Some(host) => host.clone(),
                            None if local.ip().is_unspecified() => reachable_host().to_string(),
                            None if endpoint.host.is_empty() => local.ip().to_string(),
                            None => endpoint.host.clone(),
                        };
                        return Ok(Self {
                            socket,
                            options,
                            published: Address {
                                host,
                                port: local.port(),
                            },
                        });
                    }
                    Err(error) => last = error,
                }
            }
        }
        Err(ListenError::Refused {
            endpoint: text(),
            source: last,
        })
    }
}

impl Acceptor for TcpAcceptor {
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        let _accepting = doing(Activity::InputOutput);
        loop {
            match net::accept_with(&self.socket, SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    // Without its options a connection is not the one that was configured: it
                    // ends here.
                    if options::set(&socket, self.options).is_ok() {
                        return Ok(Some(Box::new(TcpConnection::new(socket))));
                    }
                }
                Err(Errno::AGAIN) => return Ok(None),
                // The connection ended while it waited in the backlog (accept(2)).
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::NETDOWN) => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    return Err(AcceptError::Exhausted);
                }
                Err(other) => return Err(AcceptError::Failed(other)),
            }
        }
    }

    fn published(&self) -> &Address {
        &self.published
    }
}

impl AsFd for TcpAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn ports(endpoint: &Endpoint) -> impl Iterator<Item = u16> + use<> {
    let last = match endpoint.port {
        0 => 0,
        first => first.saturating_add(endpoint.port_span - 1),
    };
    endpoint.port..=last
}

/// The addresses to bind to, the preferred one first.
fn resolve(host: &str) -> io::Result<Vec<IpAddr>> {
    if host.is_empty() {
        // One IPv6 socket takes both families; machines without IPv6 fall back to IPv4.
        return Ok(vec![
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            std::net::Ipv4Addr::UNSPECIFIED.into(),
        ]);
    }
    Ok((host, 0).to_socket_addrs()?.map(|a| a.ip()).collect())
}

fn listen(address: SocketAddr, wanted: SocketOptions) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = socket(&address)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    options::set(&socket, wanted)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    let local = SocketAddr::try_from(net::getsockname(&socket)?)?;
    Ok((socket, local))
}

/// Connections that may wait to be taken in; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 1024;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    #[test]
    fn a_connection_that_cannot_have_its_options_ends_at_once() -> io::Result<()> {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let (socket, local) = listen(address, SocketOptions::default())?;
        // As if the process had lost a right since it began to listen.
        let acceptor = TcpAcceptor {
            socket,
            options: SocketOptions {
                priority: Some(u32::MAX),
                ..SocketOptions::default()
            },
            published: Address {
                host: local.ip().to_string(),
                port: local.port(),
            },
        };
        let mut peer = TcpStream::connect(local)?;
        poll(&mut [PollFd::new(&acceptor, PollFlags::IN)], None)?;
        assert!(matches!(acceptor.accept(), Ok(None)));
        assert_eq!(peer.read(&mut [0])?, 0, "the end of the stream");
        Ok(())
    }
}
