//! TLS over TCP by rustls.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

use super::channel::Socket;
use crate::bench::certificates::{AUTHORITY, CERTIFICATE, KEY};

/// A connection after its handshake.
pub(crate) enum Stream {
    Client(StreamOwned<ClientConnection, Socket<TcpStream>>),
    Server(StreamOwned<ServerConnection, Socket<TcpStream>>),
}

impl Stream {
    /// Connects as a client that trusts the authority in this directory.
    pub(super) fn connect(mut socket: Socket<TcpStream>, certificates: &Path) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(certificates.join(AUTHORITY));
        roots
            .add(authority.map_err(io::Error::other)?)
            .map_err(io::Error::other)?;
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let server = Ipv4Addr::LOCALHOST.into();
        let connection = ClientConnection::new(Arc::new(config), server);
        let mut connection = connection.map_err(io::Error::other)?;
        connection.complete_io(&mut socket)?;
        Ok(Self::Client(StreamOwned::new(connection, socket)))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Client(stream) => stream.read(buffer),
            Self::Server(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Client(stream) => stream.write(octets),
            Self::Server(stream) => stream.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Client(stream) => stream.flush(),
            Self::Server(stream) => stream.flush(),
        }
    }
}

/// The certificate and the key of a server.
pub(super) struct Acceptor(Arc<ServerConfig>);

impl Acceptor {
    /// Reads certificate and key from this directory.
    pub(super) fn new(certificates: &Path) -> io::Result<Self> {
        let certificate = CertificateDer::from_pem_file(certificates.join(CERTIFICATE));
        let key = PrivateKeyDer::from_pem_file(certificates.join(KEY));
        let (certificate, key) = (
            certificate.map_err(io::Error::other)?,
            key.map_err(io::Error::other)?,
        );
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .map_err(io::Error::other)?;
        Ok(Self(Arc::new(config)))
    }

    /// Accepts a client.
    pub(super) fn accept(&self, mut socket: Socket<TcpStream>) -> io::Result<Stream> {
        let connection = ServerConnection::new(Arc::clone(&self.0));
        let mut connection = connection.map_err(io::Error::other)?;
        connection.complete_io(&mut socket)?;
        Ok(Stream::Server(StreamOwned::new(connection, socket)))
    }
}
