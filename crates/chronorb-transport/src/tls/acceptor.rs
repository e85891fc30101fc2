//! Taking in connections that will agree on keys.

use std::os::fd::{AsFd, BorrowedFd};

use rustls::ServerConnection;

use super::TlsConfig;
use super::connection::TlsConnection;
use crate::{AcceptError, Acceptor, Address, Connection};

/// A listening TCP socket whose peers must speak TLS.
#[derive(Debug)]
pub(super) struct TlsAcceptor {
    carrier: Box<dyn Acceptor>,
    config: TlsConfig,
}

impl TlsAcceptor {
    pub(super) fn new(carrier: Box<dyn Acceptor>, config: TlsConfig) -> Self {
        Self { carrier, config }
    }
}

impl Acceptor for TlsAcceptor {
    /// Accepts the next connection. The handshake follows, while the connection is received from.
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        loop {
            let Some(carrier) = self.carrier.accept()? else {
                return Ok(None);
            };
            // It fails only where the configuration cannot be, which was refused before; one
            // connection without TLS must not stop the others then.
            if let Some(config) = self.config.acceptor()
                && let Ok(session) = ServerConnection::new(config)
            {
                let connection = TlsConnection::new(carrier, session.into());
                return Ok(Some(Box::new(connection)));
            }
        }
    }

    fn published(&self) -> &[Address] {
        self.carrier.published()
    }
}

impl AsFd for TlsAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.carrier.as_fd()
    }
}
