//! The other side of a connection, as servants and authorizers see it.

use std::fmt;
use std::net::SocketAddr;

use chronorb_transport::{Connection, Credentials, RemoteAddress};

use crate::quota::Origin;

/// The other side of the connection that carried a request.
///
/// Each method asks the kernel, or reads the certificate, when it is called. Servants that do not
/// ask cause no work.
#[derive(Clone, Copy)]
pub struct Peer<'a>(&'a dyn Connection);

impl<'a> Peer<'a> {
    pub(crate) fn new(connection: &'a dyn Connection) -> Self {
        Self(connection)
    }

    /// The scheme of the protocol, for example `ssliop`; empty for a protocol of the application
    /// that does not report it ([`Connection::remote`]).
    pub fn protocol(&self) -> &'static str {
        self.0.remote().scheme
    }

    /// The address of the peer, in IPv4 form where it is an IPv4 address; `None` for a process of
    /// this machine, and where the transport does not report it.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.0.remote().address {
            RemoteAddress::Host(address) => {
                Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
            }
            _ => None,
        }
    }

    /// The process, user and group of a peer on this machine (UIOP, SHMIOP), as the kernel recorded
    /// them when it connected.
    pub fn credentials(&self) -> Option<Credentials> {
        match self.0.remote().address {
            RemoteAddress::Process(credentials) => Some(credentials),
            _ => None,
        }
    }

    /// The unit by which services limit what the peer takes. With TLS this allocates.
    pub fn origin(&self) -> Origin {
        Origin::from_connection(self.0)
    }

    /// The certificate (X.509, DER) that proves the peer's identity, if it is connected by TLS and
    /// had to present one (`-ORBSSLVerify mutual`). This allocates.
    pub fn certificate(&self) -> Option<Vec<u8>> {
        self.0.peer_certificate()
    }

    /// The names in the certificate: its subject and alternative names. This allocates.
    #[cfg(feature = "ssliop")]
    pub fn certificate_names(&self) -> Option<chronorb_transport::tls::CertificateNames> {
        chronorb_transport::tls::CertificateNames::read(&self.certificate()?)
    }
}

/// Displays the peer, for messages to people.
impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.peer())
    }
}

impl fmt::Debug for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&self.0.remote()).finish()
    }
}
