//! Taking in connections by shared memory.

use std::os::fd::{AsFd, BorrowedFd};

use super::connection::ShmConnection;
use super::options;
use super::{DEFAULT_RING, Place};
use crate::timed::TimedSocket;
use crate::uds::UnixAcceptor;
use crate::{
    AcceptError, Acceptor, Address, Connection, Endpoint, IoError, ListenError, SocketOptions,
    stream,
};

/// A listening Unix-domain socket, by which peers hand their memory over.
#[derive(Debug)]
pub(super) struct ShmAcceptor {
    rendezvous: UnixAcceptor,
    largest_ring: usize,
    published: Vec<Address>,
}

impl ShmAcceptor {
    pub(super) fn open(endpoint: &Endpoint) -> Result<Self, ListenError> {
        let ring = options::ring(endpoint)?;
        let socket = options::without_ring(endpoint);
        let rendezvous = UnixAcceptor::open(&socket, SocketOptions::default())?;
        let paths = rendezvous.published().iter().filter_map(Address::as_path);
        let published = paths.map(|path| Place { path, ring }.address()).collect();
        Ok(Self {
            rendezvous,
            // A peer that knows only the path requests rings of the default size.
            largest_ring: ring.unwrap_or_default().max(DEFAULT_RING),
            published,
        })
    }
}

impl Acceptor for ShmAcceptor {
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        while let Some(socket) = stream::accept(&self.rendezvous)? {
            let socket = TimedSocket::new(socket);
            let connection = ShmConnection::accepted(socket, self.largest_ring);
            // The connecting side sends the memory at once, so that it is usually there; a
            // connection with anything else ends here.
            if matches!(connection.join(), Ok(_) | Err(IoError::WouldBlock)) {
                return Ok(Some(Box::new(connection)));
            }
        }
        Ok(None)
    }

    fn published(&self) -> &[Address] {
        &self.published
    }
}

impl AsFd for ShmAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.rendezvous.as_fd()
    }
}
