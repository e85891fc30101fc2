//! The objects of the attacker, to which the victim's references lead.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

use super::super::messages::{self, HEADER, MessageOctets};
use super::super::victim::IIOP;

/// An address of a process that answers requests by results of one octet, each after a pause. What
/// arrives meanwhile waits in the socket.
pub(super) fn answering(pause: Duration, sent: &Arc<AtomicU64>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(LOOPBACK)?;
    let address = listener.local_addr()?;
    let sent = Arc::clone(sent);
    // The threads end with the process.
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sent = Arc::clone(&sent);
            thread::spawn(move || answer(stream, pause, &sent));
        }
    });
    Ok(address)
}

/// Answers the requests of a connection until it ends.
fn answer(mut stream: TcpStream, pause: Duration, sent: &AtomicU64) -> io::Result<()> {
    loop {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header)?;
        let size = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let mut body = vec![0; size as usize];
        stream.read_exact(&mut body)?;
        let [id @ .., response] = body.first_chunk::<5>().copied().unwrap_or_default();
        let id = u32::from_le_bytes(id);
        let reply = match header[7] {
            REQUEST if response != 0 => messages::reply(id),
            LOCATE_REQUEST => messages::locate_reply(id),
            _ => Vec::new(),
        };
        sent.fetch_add(reply.len() as u64, Ordering::Relaxed);
        stream.write_all(&reply)?;
        if !pause.is_zero() {
            thread::sleep(pause);
        }
    }
}

/// An address at which connections are made, and nothing is read.
pub(super) fn silent() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(LOOPBACK)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// An address that answers no connection, as long as this lives.
pub(super) struct BlackHole {
    pub(super) address: SocketAddr,
    _socket: OwnedFd,
    /// The connections that wait to be accepted. Linux ignores others beyond them.
    _waiting: Vec<TcpStream>,
}

impl BlackHole {
    pub(super) fn open() -> io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0)))?;
        listen(&socket, 0)?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        let mut waiting = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, IGNORED) {
            waiting.push(stream);
        }
        Ok(Self {
            address,
            _socket: socket,
            _waiting: waiting,
        })
    }
}

/// A profile of a reference.
#[derive(Clone, Debug)]
pub(super) struct ProfileOctets {
    pub(super) tag: u32,
    pub(super) address: SocketAddr,
    pub(super) key: Vec<u8>,
}

impl ProfileOctets {
    /// An object of the attacker at an address of TCP.
    pub(super) fn at(address: SocketAddr) -> Self {
        Self {
            tag: IIOP,
            address,
            key: b"attacker".to_vec(),
        }
    }

    /// Writes a reference with this profile.
    pub(super) fn write(&self, m: &mut MessageOctets, type_id: &str) {
        m.string(type_id);
        m.u32(1);
        m.u32(self.tag);
        m.capsule(|c| {
            // GIOP 1.2.
            c.octet(1);
            c.octet(2);
            c.string(&self.address.ip().to_string());
            c.number(self.address.port().to_le_bytes());
            c.octets(&self.key, 0);
            // There are no components.
            c.u32(0);
        });
    }
}

const LOOPBACK: (&str, u16) = ("127.0.0.1", 0);
/// The time after which a connection is ignored.
const IGNORED: Duration = Duration::from_millis(300);
const REQUEST: u8 = 0;
const LOCATE_REQUEST: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_black_hole_answers_no_connection() {
        let hole = BlackHole::open().unwrap();
        let refused = TcpStream::connect_timeout(&hole.address, IGNORED).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn requests_are_answered_and_oneways_are_not() {
        let sent = Arc::default();
        let address = answering(Duration::ZERO, &sent).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(&messages::oneway(b"key", "push", |_| {}))
            .unwrap();
        let request = messages::request(b"key", "_non_existent", |_| {});
        stream.write_all(&request).unwrap();
        super::super::super::client::read_reply(&mut stream).unwrap();
        assert!(sent.load(Ordering::Relaxed) > 0);
    }
}
