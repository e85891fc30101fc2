//! Peers of a TLS connection: one that serves as a lane does, and others that are not chronorb's.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::tls::{Tls, TlsConfig, TlsSettings};
use chronorb_transport::{
    Acceptor, Address, Connection, Interest, IoError, Reactor, Setup, Transport, parse_endpoints,
};
use rustls::crypto::cipher::{OutboundChunks, OutboundPlainMessage};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion,
    RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion,
};

use crate::certificates::Authority;

/// For what comes unless something is broken.
pub(crate) fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// For what does not come.
pub(crate) fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(20))
}

pub(crate) fn listen(tls: &Tls) -> Box<dyn Acceptor> {
    let endpoints = parse_endpoints("ssliop://127.0.0.1:0").expect("an endpoint");
    let acceptors = tls.listen(&endpoints[0], Setup::default());
    acceptors.expect("a free port").remove(0)
}

pub(crate) fn connect(tls: &Tls, address: &Address) -> Box<dyn Connection> {
    let connection = tls.connect(address, Setup::default(), patience());
    connection.expect("both believe each other")
}

pub(crate) fn accept(acceptor: &dyn Acceptor) -> Box<dyn Connection> {
    loop {
        if let Some(connection) = acceptor.accept().expect("a descriptor is left") {
            return connection;
        }
        thread::yield_now();
    }
}

/// Whether what is sent comes back.
pub(crate) fn echoes(connection: &dyn Connection) -> bool {
    let sent = connection.send_all(b"echo", patience());
    let mut room = [0; 4];
    sent.is_ok() && connection.recv(&mut room, patience()) == Ok(4) && room == *b"echo"
}

/// A TCP connection without TLS.
pub(crate) fn raw(address: &Address) -> TcpStream {
    TcpStream::connect(address.as_host().expect("a host")).expect("it listens")
}

/// A server of one thread that never waits for one client, and sends back what comes.
pub(crate) struct EchoServer {
    pub(crate) address: Address,
    ends: Receiver<IoError>,
}

impl EchoServer {
    /// Serves until the end of the test.
    pub(crate) fn start(acceptor: Box<dyn Acceptor>) -> Self {
        let address = acceptor.published()[0].clone();
        let (tell, ends) = channel();
        thread::spawn(move || {
            let reactor = Reactor::new().expect("a descriptor is left");
            let mut connections: Vec<Option<Box<dyn Connection>>> = Vec::new();
            reactor
                .add(&acceptor, u64::MAX, Interest::Everyone)
                .expect("it is open");
            loop {
                let event = reactor.wait(None).expect("it is whole");
                let Some(event) = event else { continue };
                if event.token == u64::MAX {
                    while let Some(connection) = acceptor.accept().expect("a descriptor is left") {
                        let token = connections.len() as u64;
                        reactor
                            .add(&connection, token, Interest::Read)
                            .expect("it is open");
                        connections.push(Some(connection));
                    }
                    continue;
                }
                let place = &mut connections[event.token as usize];
                let Some(connection) = place else { continue };
                if let Err(end) = echo(&**connection) {
                    *place = None;
                    if end != IoError::Ended && tell.send(end).is_err() {
                        return;
                    }
                }
            }
        });
        Self { address, ends }
    }

    /// Returns the end of the next connection that did not end in order.
    pub(crate) fn end(&self) -> IoError {
        let end = self.ends.recv_timeout(Duration::from_secs(60));
        end.expect("one ends")
    }
}

fn echo(connection: &dyn Connection) -> Result<(), IoError> {
    let mut room = [0; 1000];
    loop {
        match connection.try_recv(&mut room) {
            Ok(n) => {
                connection
                    .send_all(&room[..n], patience())
                    .map_err(|e| e.cause)?;
            }
            Err(IoError::WouldBlock) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// A client that is rustls by itself, so that it can do what chronorb does not.
pub(crate) struct RawClient {
    session: ClientConnection,
    stream: TcpStream,
}

impl RawClient {
    /// The handshake comes with the first octets that are sent.
    pub(crate) fn connect(address: &Address, authority: &Authority) -> Self {
        Self::connect_with(address, authority, &[&TLS13, &TLS12])
    }

    fn connect_with(
        address: &Address,
        authority: &Authority,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_file(authority.file()).expect("a certificate");
        roots.add(certificate).expect("a certificate");
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.enable_secret_extraction = true;
        let (host, _) = address.as_host().expect("a host");
        let name = ServerName::try_from(host.to_owned()).expect("a name");
        Self {
            session: ClientConnection::new(config.into(), name).expect("a session"),
            stream: raw(address),
        }
    }

    pub(crate) fn send(&mut self, octets: &[u8]) {
        let mut both = rustls::Stream::new(&mut self.session, &mut self.stream);
        both.write_all(octets).expect("it is open");
        both.flush().expect("it is open");
    }

    pub(crate) fn receive(&mut self, len: usize) -> Vec<u8> {
        let mut octets = vec![0; len];
        let mut both = rustls::Stream::new(&mut self.session, &mut self.stream);
        both.read_exact(&mut octets).expect("more comes");
        octets
    }

    /// Returns the octets that would be sent.
    pub(crate) fn encrypt(&mut self, octets: &[u8]) -> Vec<u8> {
        self.session.writer().write_all(octets).expect("it is open");
        let mut record = Vec::new();
        self.session.write_tls(&mut record).expect("it is open");
        record
    }

    /// Sends empty records, as many as fit between the two sides without a reader; `wait` ends when
    /// it may begin.
    pub(crate) fn flood_with_nothing(
        address: &Address,
        authority: &Authority,
        wait: impl FnOnce(),
    ) -> TcpStream {
        let mut this = Self::connect_with(address, authority, &[&TLS13]);
        this.session
            .complete_io(&mut this.stream)
            .expect("a right server");
        let suite = this.session.negotiated_cipher_suite();
        let suite = suite.and_then(|suite| suite.tls13()).expect("TLS 1.3");
        let secrets = this.session.dangerous_extract_secrets();
        let (first, secret) = secrets.expect("it was asked for").tx;
        let (ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }) = secret
        else {
            panic!("another cipher");
        };
        let mut encrypter = suite.aead_alg.encrypter(key, iv);
        this.stream.set_nonblocking(true).expect("it is open");
        wait();
        for sequence in (first..).step_by(1000) {
            let records = (sequence..sequence + 1000).flat_map(|sequence| {
                let message = OutboundPlainMessage {
                    typ: ContentType::ApplicationData,
                    version: ProtocolVersion::TLSv1_2,
                    payload: OutboundChunks::Single(&[]),
                };
                let record = encrypter.encrypt(message, sequence);
                record.expect("keys for many").encode()
            });
            let records: Vec<u8> = records.collect();
            match this.stream.write(&records) {
                Ok(n) if n == records.len() => {}
                _ => break,
            }
        }
        this.stream
    }

    pub(crate) fn send_raw(&mut self, octets: &[u8]) {
        self.stream.write_all(octets).expect("it is open");
    }
}

/// A server for one client that is rustls by itself, with its usual settings.
pub(crate) fn raw_server(
    authority: &Authority,
    serve: impl FnOnce(StreamOwned<ServerConnection, TcpStream>) + Send + 'static,
) -> (Address, JoinHandle<()>) {
    raw_handshake(authority, |mut session, mut stream| {
        while session.is_handshaking() {
            session.complete_io(&mut stream).expect("a right client");
        }
        serve(StreamOwned::new(session, stream));
    })
}

/// As [`raw_server`], before the handshake.
pub(crate) fn raw_handshake(
    authority: &Authority,
    serve: impl FnOnce(ServerConnection, TcpStream) + Send + 'static,
) -> (Address, JoinHandle<()>) {
    let settings = authority.settings("raw", &["127.0.0.1"]);
    let file = |file: Option<std::path::PathBuf>| file.expect("there is one");
    let chain = CertificateDer::from_pem_file(file(settings.certificate)).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file(settings.private_key)).expect("a key");
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .expect("they fit");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let session = ServerConnection::new(Arc::new(config)).expect("a session");
        serve(session, stream);
    });
    (Address::host("127.0.0.1", port), server)
}

/// The first thing that a client says.
pub(crate) fn client_hello() -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let mut session = ClientConnection::new(config.into(), name).expect("a session");
    let mut hello = Vec::new();
    session.write_tls(&mut hello).expect("a vector takes all");
    hello
}

/// The description of the alert that a peer without keys gets, if it gets one before the end.
pub(crate) fn alert_of(stream: &mut TcpStream) -> Option<u8> {
    let mut octets = Vec::new();
    // The end may be a sudden one.
    let _ = stream.read_to_end(&mut octets);
    match octets[..] {
        [21, 3, _, 0, 2, 2, description] => Some(description),
        _ => None,
    }
}

/// Passes on what comes in both directions until the ends. Returns how many records of application
/// data the client sent after its handshake.
pub(crate) fn count_data_records(client: TcpStream, server: TcpStream) -> usize {
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut room = [0; 1000];
            while let Ok(n @ 1..) = (&server).read(&mut room) {
                if (&client).write_all(&room[..n]).is_err() {
                    break;
                }
            }
        });
        let mut records = Vec::new();
        let mut header = [0; 5];
        while (&client).read_exact(&mut header).is_ok() {
            let mut body = vec![0; usize::from(header[3]) << 8 | usize::from(header[4])];
            (&client).read_exact(&mut body).expect("a whole record");
            (&server)
                .write_all(&[&header[..], &body].concat())
                .expect("it reads");
            records.push(header[0]);
        }
        server.shutdown(std::net::Shutdown::Both).ok();
        // In 1.3 the finish of the handshake and the goodbye look like data, too.
        records.iter().filter(|kind| **kind == 23).count() - 2
    })
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    rustls::crypto::ring::default_provider().into()
}

/// Reads settings that are right.
pub(crate) fn read(settings: &TlsSettings) -> TlsConfig {
    TlsConfig::read(settings).expect("settings that fit")
}
