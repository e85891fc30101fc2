//! TLS over TCP, the transport of SSLIOP.
//!
//! A [`TlsConfig`] is the identity of a program and the authorities that it trusts; its files are
//! read and checked once. [rustls] makes the octets that TCP carries. The two are independent, so
//! that one thread encrypts while another decrypts or waits.
//!
//! rustls allocates for each record that it encrypts or decrypts, and a connection has a lock
//! around its keys, which is held for the cryptography only and never while a thread waits.

mod acceptor;
mod certificate;
mod config;
mod connection;
mod connector;
mod error;
mod files;
mod handshake;
mod incoming;
mod outgoing;
mod unverified;
mod versions;

use std::io;

use chronorb_rt::Deadline;

use self::acceptor::TlsAcceptor;
use crate::tcp::Tcp;
use crate::{
    Acceptor, Address, ConnectError, Connection, Endpoint, EndpointError, ListenError, Setup,
    Transport,
};

pub use certificate::CertificateNames;
pub use config::{TlsConfig, TlsSettings, Verify};
pub use error::TlsConfigError;
pub use versions::TlsVersions;

/// TLS 1.2 and 1.3 over TCP.
#[derive(Clone, Debug)]
pub struct Tls {
    config: TlsConfig,
}

impl Tls {
    /// Makes the transport of programs with this configuration.
    #[must_use]
    pub fn new(config: TlsConfig) -> Self {
        Self { config }
    }
}

impl Transport for Tls {
    fn scheme(&self) -> &str {
        "ssliop"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        Tcp.check(endpoint)?;
        self.config.server(endpoint).map(drop)
    }

    /// Opens every address of an endpoint for connections.
    ///
    /// # Errors
    /// As TCP, and if there is no certificate, or one that clients would refuse for an address that
    /// references name.
    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        self.config.server(endpoint)?;
        let mut acceptors: Vec<Box<dyn Acceptor>> = Vec::new();
        for carrier in Tcp.listen(endpoint, setup)? {
            for address in carrier.published() {
                self.config.check_own_name(endpoint, address)?;
            }
            acceptors.push(Box::new(TlsAcceptor::new(carrier, self.config.clone())));
        }
        Ok(acceptors)
    }

    fn reload(&self) -> io::Result<()> {
        self.config.reload().map_err(io::Error::other)
    }

    /// Connects to a peer, and agrees with it on the keys.
    ///
    /// # Errors
    /// As TCP, and [`ConnectError::Unacceptable`] if one side does not trust the other, or the peer
    /// does not use TLS.
    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        connector::connect(&self.config, address, setup, deadline)
    }
}
