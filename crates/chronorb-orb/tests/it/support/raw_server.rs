//! A server on a bare socket, with behaviour that no ORB has.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_cdr::{Encoder, Endian, Frame};
use chronorb_giop::{
    IiopProfile, Ior, ReplyHeader, ReplyStatus, TAG_INTERNET_IOP, TaggedProfile, Version,
    finish_message, start_reply,
};
use chronorb_orb::{Object, Orb};

use super::PATIENCE;

/// A server that accepts connections until the test program ends.
pub(crate) struct RawServer {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

/// One connection to a client.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    /// The number of the connection, from 0.
    pub(crate) number: usize,
    /// The body of the last message.
    pub(crate) body: Vec<u8>,
}

/// A message of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Message {
    /// A request, with the two `long` that it ends with.
    Request { id: u32, arguments: (i32, i32) },
    /// A locate request.
    Locate { id: u32 },
    /// The client no longer waits for the reply.
    Cancel { id: u32 },
}

/// Serves each connection by `serve`, in its own thread.
pub(crate) fn raw_server(serve: impl Fn(Peer) + Clone + Send + 'static) -> RawServer {
    raw_server_at("127.0.0.1:0", serve)
}

/// Serves as [`raw_server`] does, at another address of the loopback.
pub(crate) fn raw_server_at(
    address: &str,
    serve: impl Fn(Peer) + Clone + Send + 'static,
) -> RawServer {
    let listener = TcpListener::bind(address).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = accepted.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let patience = stream.set_read_timeout(Some(PATIENCE));
            patience.expect("a socket has a time-out");
            // Of several replies in a row, the second would wait for a delayed acknowledgement.
            stream.set_nodelay(true).expect("it is TCP");
            let number = count.fetch_add(1, Ordering::SeqCst);
            let serve = serve.clone();
            let peer = Peer {
                stream,
                number,
                body: Vec::new(),
            };
            std::thread::spawn(move || serve(peer));
        }
    });
    RawServer { address, accepted }
}

impl RawServer {
    /// Returns the number of accepted connections.
    pub(crate) fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Peer {
    /// Waits until data has arrived, and does not read it.
    pub(crate) fn wait_for_octets(&self) {
        let looked = self.stream.peek(&mut [0]);
        looked.expect("something comes");
    }

    /// Returns whether a message arrives, or the end, within this time.
    pub(crate) fn has_message(&self, time: Duration) -> bool {
        let set = |time| self.stream.set_read_timeout(Some(time));
        set(time).expect("a socket has a time-out");
        let looked = self.stream.peek(&mut [0]);
        set(PATIENCE).expect("a socket has a time-out");
        !looked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// Returns the next message; `None` at the end of the connection.
    pub(crate) fn message(&mut self) -> Option<Message> {
        let mut header = [0; 12];
        match self.stream.read_exact(&mut header) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => panic!("nothing came: {e}"),
            Err(_) => return None,
        }
        // The client ends a connection by MessageError where the server broke the protocol.
        if header[7] == 6 {
            return None;
        }
        let number = |octets: &[u8]| u32::from_le_bytes(octets.try_into().expect("four"));
        let mut body = vec![0; number(&header[8..]) as usize];
        self.stream.read_exact(&mut body).ok()?;
        let id = number(&body[..4]);
        self.body.clone_from(&body);
        Some(match header[7] {
            0 => {
                let last = |from_end: usize| {
                    let at = body.len() - from_end;
                    number(&body[at..at + 4]).cast_signed()
                };
                let arguments = (last(8), last(4));
                Message::Request { id, arguments }
            }
            2 => Message::Cancel { id },
            3 => Message::Locate { id },
            kind => panic!("a client does not send messages of type {kind}"),
        })
    }

    /// Returns the next request: its id and arguments.
    pub(crate) fn request(&mut self) -> Option<(u32, (i32, i32))> {
        match self.message()? {
            Message::Request { id, arguments } => Some((id, arguments)),
            other => panic!("{other:?} is no request"),
        }
    }

    pub(crate) fn send(&mut self, octets: &[u8]) {
        // A disconnected client is handled by the test.
        let _ = self.stream.write_all(octets);
    }

    /// Answers a request to add its arguments.
    pub(crate) fn answer(&mut self, (id, (a, b)): (u32, (i32, i32))) {
        self.send(&reply(id, a + b));
    }

    /// Answers a locate request with OBJECT_HERE.
    pub(crate) fn here(&mut self, id: u32) {
        let mut octets = b"GIOP\x01\x02\x01\x04\x08\x00\x00\x00".to_vec();
        octets.extend_from_slice(&id.to_le_bytes());
        octets.extend_from_slice(&1_u32.to_le_bytes());
        self.send(&octets);
    }

    /// Answers all requests correctly.
    pub(crate) fn answer_all(mut self) {
        while let Some(request) = self.request() {
            self.answer(request);
        }
    }

    /// Reads until the client ends the connection.
    pub(crate) fn until_the_end(mut self) {
        while self.message().is_some() {}
    }
}

/// Splits a complete message into fragments of GIOP 1.2, with `body` octets in each.
pub(crate) fn fragments(message: &[u8], body: usize) -> Vec<Vec<u8>> {
    let id = &message[12..16];
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for octets in message[12..].chunks(body) {
        let (kind, id) = if parts.is_empty() {
            (message[7], &[][..])
        } else {
            (7, id)
        };
        let mut part = b"GIOP\x01\x02\x03".to_vec();
        part.push(kind);
        part.extend_from_slice(&((id.len() + octets.len()) as u32).to_le_bytes());
        part.extend_from_slice(id);
        part.extend_from_slice(octets);
        parts.push(part);
    }
    parts.last_mut().expect("a message has a body")[6] = 1;
    parts
}

/// Returns a reference to an object at an address.
pub(crate) fn object_at(orb: &Orb, address: SocketAddr) -> Object {
    let profile = IiopProfile {
        version: Version::V1_2,
        host: address.ip().to_string(),
        port: address.port(),
        object_key: b"key".to_vec(),
        components: Vec::new(),
    };
    let ior = Ior {
        type_id: super::PROBE_ID.to_owned(),
        profiles: vec![TaggedProfile {
            tag: TAG_INTERNET_IOP,
            data: profile.encode().expect("it fits"),
        }],
    };
    let text = ior.to_string();
    orb.string_to_object(&text).expect("the reference reads")
}

/// Returns a reply of GIOP 1.2 that names another object.
pub(crate) fn forward(request_id: u32, to: &Ior) -> Vec<u8> {
    let mut frame = Frame::new(512, 1 << 24);
    let mut e = Encoder::new(&mut frame, Endian::NATIVE);
    let header = ReplyHeader {
        request_id,
        status: ReplyStatus::LocationForward,
        contexts: &[],
    };
    start_reply(&mut e, Version::V1_2, &header).expect("there is room");
    e.align(8).expect("there is room");
    to.encode(&mut e).expect("there is room");
    finish_message(&mut frame);
    frame.as_slice().to_vec()
}

/// Returns a whole reply of GIOP 1.2, little-endian, with a `long` as its result.
pub(crate) fn reply(request_id: u32, result: i32) -> Vec<u8> {
    let mut octets = b"GIOP\x01\x02\x01\x01\x10\x00\x00\x00".to_vec();
    octets.extend_from_slice(&request_id.to_le_bytes());
    octets.extend_from_slice(&[0; 8]);
    octets.extend_from_slice(&result.to_le_bytes());
    octets
}

/// Returns the same reply, with this many octets behind the result.
pub(crate) fn wide_reply(request_id: u32, result: i32, octets: usize) -> Vec<u8> {
    let mut message = reply(request_id, result);
    message.resize(message.len() + octets, 0);
    let size = (message.len() - 12) as u32;
    message[8..12].copy_from_slice(&size.to_le_bytes());
    message
}

/// The message of a server before it closes a connection in order.
pub(crate) const CLOSE_CONNECTION: &[u8] = b"GIOP\x01\x02\x01\x05\x00\x00\x00\x00";
