//! The acceptor of the transport.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::os::fd::{AsFd, BorrowedFd};

use chronorb_transport::{
    AcceptError, Acceptor, AcceptorEvent, Address, Connection, SocketOptions,
};

use super::connection::RioConnection;
use crate::engine::{Listener, ListenerEvent};

/// An acceptor over a listener of a class.
#[derive(Debug)]
pub(super) struct RioAcceptor {
    listener: Listener,
    options: SocketOptions,
    published: [Address; 1],
}

impl RioAcceptor {
    pub(super) fn new(listener: Listener, options: SocketOptions, published: Address) -> Self {
        Self {
            listener,
            options,
            published: [published],
        }
    }
}

impl Acceptor for RioAcceptor {
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        let stream = self.listener.accept()?;
        Ok(stream.map(|stream| {
            let connection: Box<dyn Connection> =
                Box::new(RioConnection::new(stream, self.options));
            connection
        }))
    }

    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    fn next_arrival(&self) -> Result<Option<AcceptorEvent>, AcceptError> {
        Ok(self.listener.next_arrival()?.map(|arrival| match arrival {
            ListenerEvent::Stream(stream) => {
                AcceptorEvent::Connection(Box::new(RioConnection::new(stream, self.options)))
            }
            ListenerEvent::Input(token) => AcceptorEvent::Input(token),
        }))
    }

    fn published(&self) -> &[Address] {
        &self.published
    }
}

impl AsFd for RioAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
