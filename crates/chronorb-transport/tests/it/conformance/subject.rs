//! A transport under test, and what all statements say things with.

use std::thread;
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::{
    Acceptor, Address, Connection, IoError, Messages, Setup, Transport, parse_endpoints,
};
use rustix::event::{PollFd, PollFlags, poll};

/// A transport under test.
pub(crate) struct Subject {
    pub(crate) transport: Box<dyn Transport>,
    /// Two endpoints to listen at, at the same time.
    endpoints: [String; 2],
    /// Endpoints that the transport must refuse, and a word that its error must have.
    pub(crate) wrong: Vec<(&'static str, &'static str)>,
    /// The name of the running test, by which another process plays a part in it.
    pub(crate) test: &'static str,
}

impl Subject {
    /// A transport, and an endpoint for it that can be opened any number of times.
    pub(crate) fn new(transport: Box<dyn Transport>, endpoint: &str) -> Self {
        Self {
            transport,
            endpoints: [endpoint.to_owned(), endpoint.to_owned()],
            wrong: Vec::new(),
            test: "",
        }
    }

    /// Sets an endpoint that must be refused, with a word of the error.
    pub(crate) fn refuses(mut self, endpoint: &'static str, word: &'static str) -> Self {
        self.wrong.push((endpoint, word));
        self
    }

    /// Sets the second endpoint, if the first one can be opened only once.
    #[allow(dead_code, reason = "for transports that features may leave out")]
    pub(crate) fn and_at(mut self, endpoint: &str) -> Self {
        self.endpoints[1] = endpoint.to_owned();
        self
    }

    pub(crate) fn of_test(mut self, path: &'static str) -> Self {
        // The test's name is its path without the crate's.
        self.test = path.split_once("::").map_or(path, |(_, name)| name);
        self
    }

    pub(crate) fn listen(&self) -> Box<dyn Acceptor> {
        self.listen_at(0)
    }

    pub(crate) fn listen_at(&self, index: usize) -> Box<dyn Acceptor> {
        let endpoints = parse_endpoints(&self.endpoints[index]).expect("an endpoint");
        let endpoint = &endpoints[0];
        self.transport.check(endpoint).expect("a right endpoint");
        let acceptors = self.transport.listen(endpoint, setup());
        acceptors.expect("it opens").remove(0)
    }

    pub(crate) fn connect(&self, address: &Address) -> Box<dyn Connection> {
        let connection = self.transport.connect(address, setup(), patience());
        connection.expect("there is a listener")
    }

    /// Both ends of a connection: the connecting and the accepting one.
    pub(crate) fn pair(&self) -> (Box<dyn Connection>, Box<dyn Connection>) {
        let acceptor = self.listen();
        self.pair_at(&*acceptor, &acceptor.published()[0])
    }

    /// Both ends of a connection by this acceptor. Both are established: a first message has gone.
    pub(crate) fn pair_at(
        &self,
        acceptor: &dyn Acceptor,
        address: &Address,
    ) -> (Box<dyn Connection>, Box<dyn Connection>) {
        thread::scope(|scope| {
            let near = scope.spawn(|| {
                let near = self.connect(address);
                near.send_all(&hello(), patience()).expect("it is taken");
                near
            });
            let far = accept(acceptor);
            assert_eq!(first_message(&*far), Ok(hello()));
            (near.join().expect("no panic"), far)
        })
    }
}

/// The setup of all connections: for messages.
pub(crate) fn setup() -> Setup {
    Setup {
        messages: Messages {
            len: message_len,
            max: 1 << 30,
        },
        ..Setup::default()
    }
}

/// A message of so many octets, at least 12, that differs from the one with another number.
pub(crate) fn message(len: usize, number: usize) -> Vec<u8> {
    let size = u32::try_from(len - HEADER_LEN).expect("not that long");
    let mut octets = b"GIOP\x01\x02\x01\x00".to_vec();
    octets.extend(size.to_le_bytes());
    octets.extend((0..size as usize).map(|i| (i * 31 + i / 251 + number * 7) as u8));
    octets
}

fn message_len(octets: &[u8]) -> Option<usize> {
    let header = octets.get(..HEADER_LEN)?;
    let size = header.strip_prefix(b"GIOP\x01\x02\x01\x00")?;
    let size = u32::from_le_bytes(size.try_into().ok()?);
    Some(HEADER_LEN + size as usize)
}

/// The message that every connection begins with.
pub(crate) fn hello() -> Vec<u8> {
    message(40, 0)
}

/// Waits for the next connection, and takes it in.
pub(crate) fn accept(acceptor: &dyn Acceptor) -> Box<dyn Connection> {
    loop {
        until_readable(&acceptor);
        if let Some(connection) = acceptor.accept().expect("a descriptor is left") {
            return connection;
        }
    }
}

/// The first message of a connection, which may have to be established meanwhile.
pub(crate) fn first_message(connection: &dyn Connection) -> Result<Vec<u8>, IoError> {
    let mut octets = vec![0; hello().len()];
    let mut received = 0;
    while received < octets.len() {
        match connection.try_recv(&mut octets[received..]) {
            Ok(n) => received += n,
            Err(IoError::WouldBlock) => until_readable(&connection),
            Err(error) => return Err(error),
        }
    }
    assert!(connection.is_established());
    Ok(octets)
}

/// Receives so many octets.
pub(crate) fn receive(connection: &dyn Connection, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    let mut received = 0;
    while received < len {
        let n = connection.recv(&mut octets[received..], patience());
        received += n.expect("more comes");
    }
    octets
}

pub(crate) fn until_readable(what: &impl std::os::fd::AsFd) {
    // A signal may end it early, which callers bear.
    let _ = poll(&mut [PollFd::new(what, PollFlags::IN)], None);
}

/// The time for what comes unless something is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// For what comes unless something is broken.
pub(crate) fn patience() -> Deadline {
    Deadline::after(PATIENCE)
}

/// For what does not come.
pub(crate) fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(20))
}

const HEADER_LEN: usize = 12;
