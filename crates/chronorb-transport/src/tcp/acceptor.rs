//! Taking in TCP connections.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{self, sockopt};

use super::connection::TcpConnection;
use super::{options, socket};
use crate::activation::passed_listener;
use crate::inet::HostEndpoint;
use crate::stream::{self, BACKLOG};
use crate::timed::TimedSocket;
use crate::{AcceptError, Acceptor, Address, Connection, Endpoint, ListenError, SocketOptions};

/// A listening TCP socket.
#[derive(Debug)]
pub(super) struct TcpAcceptor {
    socket: OwnedFd,
    options: SocketOptions,
    published: Vec<Address>,
}

impl TcpAcceptor {
    /// Binds to the first free port of the endpoint's span, at each address of its host.
    pub(super) fn open(
        endpoint: &Endpoint,
        options: SocketOptions,
        interface: Option<u32>,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let endpoint = HostEndpoint::of(endpoint)?;
        let (sockets, published) = endpoint.open(|address| listen(address, options, interface))?;
        let acceptor = |socket| {
            Box::new(Self {
                socket,
                options,
                published: published.clone(),
            }) as _
        };
        Ok(sockets.into_iter().map(acceptor).collect())
    }
}

impl Acceptor for TcpAcceptor {
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        while let Some(socket) = stream::accept(&self.socket)? {
            // Without its options a connection is not the one that was configured: it ends here.
            if options::set(&socket, self.options).is_ok() {
                let socket = TimedSocket::new(socket);
                return Ok(Some(Box::new(TcpConnection::new(socket))));
            }
        }
        Ok(None)
    }

    fn published(&self) -> &[Address] {
        &self.published
    }
}

impl AsFd for TcpAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn listen(
    address: SocketAddr,
    wanted: SocketOptions,
    interface: Option<u32>,
) -> io::Result<(OwnedFd, SocketAddr)> {
    if let Some(socket) = passed_listener(&address) {
        options::set(&socket, wanted)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        return Ok((socket, address));
    }
    let socket = socket(&address, interface)?;
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

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    #[test]
    fn a_connection_that_cannot_have_its_options_ends_at_once() -> io::Result<()> {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let (socket, local) = listen(address, SocketOptions::default(), None)?;
        // As if the process had lost a right since it began to listen.
        let acceptor = TcpAcceptor {
            socket,
            options: SocketOptions {
                priority: Some(u32::MAX),
                ..SocketOptions::default()
            },
            published: Vec::new(),
        };
        let mut peer = TcpStream::connect(local)?;
        poll(&mut [PollFd::new(&acceptor, PollFlags::IN)], None)?;
        assert!(matches!(acceptor.accept(), Ok(None)));
        assert_eq!(peer.read(&mut [0])?, 0, "the end of the stream");
        Ok(())
    }
}
