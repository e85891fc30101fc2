//! A wrapping transport passes on the properties of its connections, and leaves no method to its
//! default.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::faults::{FaultPlan, Faulty};
use chronorb_transport::trace::{RecordingTransport, TraceFile, TraceLimits};
use chronorb_transport::{
    Acceptor, Address, Carriage, ConnectError, Connection, Endpoint, EndpointError, IoError,
    ListenError, Remote, RemoteAddress, SendError, Setup, SocketOptions, Transport,
};

/// A transport none of whose answers is the default one.
#[derive(Clone, Debug, Default)]
struct Peculiar {
    looks: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct PeculiarConnection {
    socket: UnixStream,
    _peer: UnixStream,
    looks: Arc<AtomicUsize>,
}

const CARRIAGE: Carriage = Carriage::Messages {
    largest: 77,
    many_peers: false,
};
const CERTIFICATE: &[u8] = b"of a peer";
const REMOTE: Remote = Remote {
    scheme: "peculiar",
    address: RemoteAddress::Unknown,
};

impl Transport for Peculiar {
    fn scheme(&self) -> &str {
        "peculiar"
    }

    fn check(&self, _: &Endpoint) -> Result<(), EndpointError> {
        Ok(())
    }

    fn listen(&self, _: &Endpoint, _: Setup) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        Ok(Vec::new())
    }

    fn connect(
        &self,
        _: &Address,
        _: Setup,
        _: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let (socket, _peer) = UnixStream::pair().expect("two sockets");
        let looks = Arc::clone(&self.looks);
        Ok(Box::new(PeculiarConnection {
            socket,
            _peer,
            looks,
        }))
    }
}

impl Connection for PeculiarConnection {
    fn carriage(&self) -> Carriage {
        CARRIAGE
    }

    fn is_established(&self) -> bool {
        false
    }

    fn try_recv(&self, _: &mut [u8]) -> Result<usize, IoError> {
        Err(IoError::WouldBlock)
    }

    fn look(&self, _: &mut [u8]) -> Result<usize, IoError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        Err(IoError::WouldBlock)
    }

    fn try_send(&self, _: &[u8]) -> Result<usize, IoError> {
        Err(IoError::WouldBlock)
    }

    fn try_send_both(&self, _: &[u8], _: &[u8]) -> Result<usize, IoError> {
        Err(IoError::WouldBlock)
    }

    fn recv(&self, _: &mut [u8], _: Deadline) -> Result<usize, IoError> {
        Err(IoError::TimedOut)
    }

    fn recv_until_interrupted(
        &self,
        _: &mut [u8],
        _: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        Ok(None)
    }

    fn interrupt(&self) {}

    fn resume(&self) {}

    fn send_all(&self, _: &[u8], _: Deadline) -> Result<(), SendError> {
        Ok(())
    }

    fn send_both(&self, _: &[u8], _: &[u8], _: Deadline) -> Result<(), SendError> {
        Ok(())
    }

    fn is_stale(&self) -> bool {
        false
    }

    fn shutdown(&self) {}

    fn options(&self) -> io::Result<SocketOptions> {
        Ok(SocketOptions::default())
    }

    fn peer(&self) -> String {
        "a peculiar one".to_owned()
    }

    fn remote(&self) -> Remote {
        REMOTE
    }

    fn peer_certificate(&self) -> Option<Vec<u8>> {
        Some(CERTIFICATE.to_vec())
    }
}

impl AsFd for PeculiarConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[test]
fn what_wraps_a_connection_is_as_the_connection_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = TraceFile::create(directory.path().join("trace"), TraceLimits::default());
    let file = file.expect("it can be written");
    let inner = Peculiar::default();
    let wrappers: [Box<dyn Transport>; 2] = [
        Box::new(RecordingTransport::new(
            Arc::new(inner.clone()) as Arc<dyn Transport>,
            file,
        )),
        Box::new(Faulty::new(
            Arc::new(inner.clone()) as Arc<dyn Transport>,
            FaultPlan::default(),
        )),
    ];
    for (before, wrapper) in wrappers.iter().enumerate() {
        assert_eq!(wrapper.scheme(), "peculiar");
        let address = Address::host("anywhere", 1);
        let deadline = Deadline::after(Duration::from_secs(60));
        let connection = wrapper.connect(&address, Setup::default(), deadline);
        let connection = connection.expect("it always connects");
        assert_eq!(connection.carriage(), CARRIAGE);
        assert!(!connection.is_established());
        assert_eq!(connection.look(&mut [0; 10]), Err(IoError::WouldBlock));
        assert_eq!(inner.looks.load(Ordering::Relaxed), before + 1);
        assert_eq!(connection.peer(), "a peculiar one");
        assert_eq!(connection.remote(), REMOTE);
        assert_eq!(connection.peer_certificate().as_deref(), Some(CERTIFICATE));
    }
}
