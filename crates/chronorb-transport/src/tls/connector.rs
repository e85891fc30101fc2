//! Connecting, and agreeing on keys, within a deadline.

use std::io::{self, ErrorKind};

use chronorb_rt::Deadline;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use super::TlsConfig;
use super::connection::TlsConnection;
use super::handshake::HandshakeError;
use crate::tcp::Tcp;
use crate::{Address, ConnectError, Connection, IoError, Setup, Transport};

/// Connects, and waits until the deadline for the peer to prove its identity.
pub(super) fn connect(
    config: &TlsConfig,
    address: &Address,
    setup: Setup,
    deadline: Deadline,
) -> Result<Box<dyn Connection>, ConnectError> {
    let unacceptable = |problem: String| ConnectError::Unacceptable {
        address: address.to_string(),
        problem,
    };
    let client = config.client().map_err(|p| unacceptable(p.to_owned()))?;
    // TCP reports an address of the wrong kind.
    let host = address.as_host().map_or("", |(host, _)| host);
    let carrier = Tcp.connect(address, setup, deadline)?;
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| unacceptable(format!("no certificate can be for the name {host:?}")))?;
    let session =
        ClientConnection::new(client, name).map_err(|error| unacceptable(error.to_string()))?;
    let mut connection = TlsConnection::new(carrier, session.into());
    match connection.shake_hands(deadline) {
        Ok(()) => Ok(Box::new(connection)),
        Err(HandshakeError::Refused(error)) => Err(unacceptable(error.to_string())),
        Err(HandshakeError::Io(IoError::TimedOut)) => Err(ConnectError::TimedOut {
            address: address.to_string(),
        }),
        Err(HandshakeError::Io(error)) => Err(ConnectError::Refused {
            address: address.to_string(),
            source: match error {
                IoError::Broken(errno) => errno.into(),
                _ => io::Error::new(ErrorKind::ConnectionAborted, CLOSED),
            },
        }),
    }
}

const CLOSED: &str = "the peer closed it before it had proved its identity";
