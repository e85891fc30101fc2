//! Replies to a whole client.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use chronorb::data::{Any, TypeCode};
use chronorb::prelude::*;
use chronorb::{Orb, SystemExceptionKind};
use chronorb_cdr::{Arena, Encoder, Frame};
use chronorb_giop::{
    Ior, LocateReplyHeader, LocateStatus, MessageHeader, MessageType, PathProfile, ReplyHeader,
    ReplyStatus, RequestHeader, TAG_UIOP, TaggedProfile, Version, encode_locate_reply,
    encode_reply, finish_message, start_message_in,
};
use chronorb_rt::PiMutex;

use super::messages::{Messages, OPERATIONS};
use super::{PATIENCE, orb};
use crate::idl::hostile::{Mirror, TakeErrorBuf};
use crate::typed::Choices;

/// Makes calls, synchronous and asynchronous, whose replies are mostly well-formed, over
/// connections of any strategy; and then one that is answered as it should be.
pub fn client_replies(data: &[u8]) {
    let clients = &*CLIENTS;
    // There is one peer for all tests of a process.
    let _turn = TURN.lock();
    let mut choices = Choices::new(data);
    let client = &clients[choices.pick(clients.len())];
    // One of its own, which replies may forward to anywhere for good.
    let mirror = &client.mirror(&NUMBER.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    let calls: Vec<usize> = (0..=choices.pick(3))
        .map(|_| choices.pick(2 * CALLS))
        .collect();
    let replies = choices.rest();
    let size = replies.len().div_ceil(calls.len()).max(1);
    *REPLIES.lock() = replies.chunks(size).map(<[u8]>::to_vec).collect();
    let mut pending = Vec::new();
    for call in calls {
        if call < CALLS {
            assert_answered(synchronous(mirror, call));
        } else {
            pending.extend(asynchronous(mirror, call - CALLS));
        }
    }
    pending.into_iter().for_each(|wait| assert_answered(wait()));
    REPLIES.lock().clear();
    // A connection may end by what came before, or still have it to read.
    let mut answers = Vec::new();
    while answers.last() != Some(&Ok(42)) {
        assert!(answers.len() < ATTEMPTS, "{answers:?}");
        answers.push(client.other.add(20, 22));
    }
}

/// The most attempts of a call.
const ATTEMPTS: usize = 5;

/// After an answer or a close of the peer no call waits.
fn assert_answered(kind: Option<SystemExceptionKind>) {
    assert_ne!(
        kind,
        Some(SystemExceptionKind::Timeout),
        "a call found no end"
    );
}

/// The system exception of a result.
macro_rules! kind {
    ($result:expr) => {
        $result.err().and_then(|error| error.kind())
    };
}

/// An error of a call.
trait CallError {
    /// The system exception, unless it is another.
    fn kind(self) -> Option<SystemExceptionKind>;
}

impl CallError for SystemException {
    fn kind(self) -> Option<SystemExceptionKind> {
        Some(self.kind)
    }
}

impl CallError for TakeErrorBuf {
    fn kind(self) -> Option<SystemExceptionKind> {
        match self {
            Self::System(exception) => Some(exception.kind),
            Self::Refused(_) => None,
        }
    }
}

fn synchronous(mirror: &Mirror, call: usize) -> Option<SystemExceptionKind> {
    let any = Any::of(&7_i32);
    match call {
        0 => kind!(mirror.take(&any)),
        1 => kind!(mirror.kind(&TypeCode::Long)),
        2 => kind!(mirror.link(None)),
        3 => kind!(mirror.value(None)),
        4 => kind!(mirror.grow(&[])),
        5 => kind!(mirror.lay(&[])),
        6 => kind!(mirror.reference(None)),
        7 => kind!(mirror.wide("wide", &mut String::new())),
        8 => kind!(mirror.id()),
        _ => kind!(mirror.add(1, 2)),
    }
}

type Wait = Box<dyn FnOnce() -> Option<SystemExceptionKind>>;

fn asynchronous(mirror: &Mirror, call: usize) -> Option<Wait> {
    let any = Any::of(&7_i32);
    Some(match call {
        0 | 5 => {
            let pending = mirror.begin_take(&any).ok()?;
            Box::new(move || kind!(pending.wait()))
        }
        1 | 6 => {
            let pending = mirror.begin_kind(&TypeCode::Long).ok()?;
            Box::new(move || kind!(pending.wait()))
        }
        2 | 7 => {
            let pending = mirror.begin_link(None).ok()?;
            Box::new(move || kind!(pending.wait()))
        }
        3 | 8 => {
            let pending = mirror.begin_grow(&[]).ok()?;
            Box::new(move || kind!(pending.wait()))
        }
        _ => {
            let pending = mirror.begin_add(1, 2).ok()?;
            Box::new(move || kind!(pending.wait()))
        }
    })
}

/// Kinds of calls.
const CALLS: usize = 10;

/// A client of the peer.
struct Client {
    orb: Orb,
    path: String,
    /// An object whose requests are answered as they should be.
    other: Mirror,
}

/// One for each strategy of connections.
static CLIENTS: LazyLock<Vec<Client>> = LazyLock::new(|| {
    let path = serve();
    let strategies = ["exclusive", "leader", "thread", "active"];
    let clients = strategies.map(|strategy| {
        let orb = orb(&["-ORBClientConnection", strategy], |_| {});
        let other = mirror(&orb, &path, b"other");
        let path = path.clone();
        Client { orb, path, other }
    });
    clients.into()
});

/// The number of inputs so far.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Client {
    fn mirror(&self, key: &[u8]) -> Mirror {
        mirror(&self.orb, &self.path, key)
    }
}

fn mirror(orb: &Orb, path: &str, key: &[u8]) -> Mirror {
    let object = orb.string_to_object(&reference(path, key).to_string());
    Mirror::unchecked_narrow(&object.expect("a reference"))
}

/// Held while an input is run.
static TURN: PiMutex<()> = PiMutex::new(());

/// The answers to the next requests; later ones get correct answers.
static REPLIES: PiMutex<VecDeque<Vec<u8>>> = PiMutex::new(VecDeque::new());

fn reference(path: &str, key: &[u8]) -> Ior {
    let profile = PathProfile {
        version: Version::V1_2,
        path: path.to_owned(),
        object_key: key.to_vec(),
        components: Vec::new(),
    };
    Ior {
        type_id: "IDL:hostile/Mirror:1.0".to_owned(),
        profiles: vec![TaggedProfile {
            tag: TAG_UIOP,
            data: profile.encode().expect("it fits"),
        }],
    }
}

/// Opens the socket of the peer, and serves each connection by a thread.
fn serve() -> String {
    let name = format!("chronorb-fuzz-peer-{}", process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a short name");
    let listener = UnixListener::bind_addr(&address).expect("the name is our own");
    let path = format!("@{name}");
    let own = path.clone();
    thread::spawn(move || {
        let mut frame = Frame::new(256, 1 << 10);
        let e = &mut Encoder::new(&mut frame, chronorb_cdr::Endian::NATIVE);
        reference(&own, b"forwarded").encode(e).expect("it fits");
        let forwards = frame.as_slice().to_vec();
        for stream in listener.incoming().flatten() {
            let forwards = forwards.clone();
            thread::spawn(move || Peer { stream, forwards }.serve());
        }
    });
    path
}

/// The server's end of a connection.
struct Peer {
    stream: UnixStream,
    /// A reference to this very peer, as it stands in a message.
    forwards: Vec<u8>,
}

impl Peer {
    /// Answers requests until something was answered that may have been wrong, or the client goes.
    fn serve(mut self) -> Option<()> {
        self.stream.set_write_timeout(Some(PATIENCE)).ok()?;
        loop {
            let mut octets = vec![0; chronorb_giop::HEADER_LEN];
            self.stream.read_exact(&mut octets).ok()?;
            let header = MessageHeader::parse(&octets).ok()?;
            octets.resize(header.message_len(), 0);
            self.stream
                .read_exact(&mut octets[chronorb_giop::HEADER_LEN..])
                .ok()?;
            let mut frame = Frame::new(octets.len(), octets.len());
            frame.extend_from_slice(&octets).ok()?;
            let arena = Arena::new(1 << 12);
            let mut d = header.decoder(&mut frame, &arena);
            match header.kind {
                MessageType::Request => {
                    let request = RequestHeader::decode(&mut d, header.protocol).ok()?;
                    if !request.response.response_expected() {
                        continue;
                    }
                    let script = REPLIES.lock().pop_front();
                    if let Some(script) = script {
                        return self.improvise(&script, request.operation, request.request_id);
                    }
                    let sum = match request.operation {
                        b"add" => Some(d.read_i32().ok()?.wrapping_add(d.read_i32().ok()?)),
                        _ => None,
                    };
                    self.answer(header, request.request_id, sum)?;
                }
                MessageType::LocateRequest => {
                    self.is_here(header, d.read_u32().ok()?)?;
                }
                _ => {}
            }
        }
    }

    /// Sends what an input says, and ends the connection: so the client waits for nothing more.
    fn improvise(&mut self, script: &[u8], operation: &[u8], id: u32) -> Option<()> {
        let named = OPERATIONS
            .iter()
            .find(|(name, ..)| name.as_bytes() == operation);
        let results = named.map_or(&[][..], |(_, _, results)| results);
        let mut messages = Messages {
            choices: Choices::new(script),
        };
        let octets = messages.of_server(results, id, &self.forwards);
        self.stream.write_all(&octets).ok()?;
        self.stream.shutdown(Shutdown::Both).ok()
    }

    fn answer(&mut self, header: MessageHeader, id: u32, sum: Option<i32>) -> Option<()> {
        let mut frame = Frame::new(64, 1 << 10);
        let kind = MessageType::Reply;
        let mut e = start_message_in(&mut frame, header.protocol, kind, header.endian).ok()?;
        let status = match sum {
            Some(_) => ReplyStatus::NoException,
            None => ReplyStatus::SystemException,
        };
        let reply = ReplyHeader {
            request_id: id,
            status,
            contexts: &[],
        };
        encode_reply(&mut e, header.protocol, &reply).ok()?;
        match sum {
            Some(sum) => e.write_i32(sum).ok()?,
            None => {
                e.write_str("IDL:omg.org/CORBA/UNKNOWN:1.0").ok()?;
                e.write_u32(0).and_then(|()| e.write_u32(1)).ok()?;
            }
        }
        finish_message(&mut frame);
        self.stream.write_all(frame.as_slice()).ok()
    }

    fn is_here(&mut self, header: MessageHeader, id: u32) -> Option<()> {
        let mut frame = Frame::new(64, 1 << 10);
        let kind = MessageType::LocateReply;
        let mut e = start_message_in(&mut frame, header.protocol, kind, header.endian).ok()?;
        let reply = LocateReplyHeader {
            request_id: id,
            status: LocateStatus::ObjectHere,
        };
        encode_locate_reply(&mut e, header.protocol, &reply).ok()?;
        finish_message(&mut frame);
        self.stream.write_all(frame.as_slice()).ok()
    }
}
