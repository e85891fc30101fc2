//! Service contexts that a server acts upon: end times, listen points and priorities.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb_cdr::{Arena, Endian, Frame};
use chronorb_giop::{
    IiopProfile, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader,
    ResponseFlags, ServiceContext, Target, UtcTime, Version, contexts, encode_request,
    finish_message, start_message,
};

use super::PATIENCE;
use super::server::Reflection;
use crate::idl::hostile::{Mirror, MirrorSkeleton};
use crate::typed::{Choices, OctetWriter, mutate};

/// Sends requests with contexts to a server that takes listen points. A request is served unless
/// its end time has passed, and no listen point leads the server's own calls elsewhere.
pub fn context_requests(data: &[u8]) {
    let server = &*SERVER;
    let mut choices = Choices::new(data);
    let mut octets = Vec::new();
    let mut expected = HashMap::new();
    for number in 0..=choices.pick(3) as u32 {
        let written = Contexts::of(&mut choices, server.victim_port);
        octets.extend(server.request(2 * number, &written.list()));
        expected.insert(2 * number, written.is_late);
    }
    octets.extend(server.request(LAST, &[]));
    expected.insert(LAST, Some(false));
    server.exchange(&octets, expected);
    assert_eq!(server.victim.add(20, 22), Ok(42));
}

/// The contexts of a request.
struct Contexts {
    contents: Vec<(u32, Vec<u8>)>,
    /// Whether an end time has passed; `None` if that is unknown.
    is_late: Option<bool>,
}

impl Contexts {
    fn of(choices: &mut Choices<'_>, victim_port: u16) -> Self {
        let mut this = Self {
            contents: Vec::new(),
            is_late: Some(false),
        };
        for _ in 0..choices.of(&[1, 0, 2, 3]) {
            let id = choices.of(&[
                contexts::INVOCATION_POLICIES,
                contexts::BI_DIR_IIOP,
                contexts::RT_CORBA_PRIORITY_RANGE,
                UNKNOWN,
            ]);
            // A server acts on the first context of a kind.
            let is_first = this.contents.iter().all(|(present, _)| *present != id);
            let endian = Endian::from_flag(!choices.rarely(3));
            let mut out = OctetWriter::at(0, endian);
            out.u8(endian.is_little().into());
            match id {
                contexts::INVOCATION_POLICIES => {
                    let is_late = write_policies(choices, &mut out);
                    if is_first {
                        this.is_late = is_late;
                    }
                }
                contexts::BI_DIR_IIOP => write_points(choices, &mut out, victim_port),
                _ => out.octets.extend(choices.octets(24)),
            }
            let mut content = out.octets;
            if choices.rarely(3) {
                let before = content.clone();
                mutate(choices, &mut content, 0);
                if id == contexts::INVOCATION_POLICIES && is_first && content != before {
                    this.is_late = None;
                }
            }
            this.contents.push((id, content));
        }
        this
    }

    fn list(&self) -> Vec<ServiceContext<'_>> {
        let contents = self.contents.iter();
        let list = contents.map(|(id, data)| ServiceContext { id: *id, data });
        list.collect()
    }
}

/// Writes invocation policies. Returns whether an end time among them has passed; `None` if that
/// is unknown.
fn write_policies(choices: &mut Choices<'_>, out: &mut OctetWriter) -> Option<bool> {
    let number = choices.of(&[1, 0, 2, 3]);
    out.u32(number);
    let mut is_late = Some(false);
    for _ in 0..number {
        let policy_type = choices.of(&[REQUEST_END, REPLY_END, REQUEST_START, 0x4352_0001]);
        out.u32(policy_type);
        let endian = Endian::from_flag(!choices.rarely(3));
        let open = out.begin(endian);
        let past = UtcTime::UNIX_EPOCH + Duration::from_secs(1);
        let future = UtcTime::UNIX_EPOCH + Duration::from_secs(200 * 365 * 86_400);
        let any = UtcTime::from_units(choices.any());
        let time = choices.of(&[future, past, any]);
        out.u64(time.units());
        out.u32(0);
        out.u32(0);
        out.end(open, 0);
        if policy_type == REQUEST_END || policy_type == REPLY_END {
            is_late = match is_late {
                Some(true) => Some(true),
                _ if time == past => Some(true),
                is_late if time == future => is_late,
                _ => None,
            };
        }
    }
    is_late
}

fn write_points(choices: &mut Choices<'_>, out: &mut OctetWriter, victim_port: u16) {
    let number = choices.of(&[1, 0, 2, 17]);
    out.u32(number);
    for _ in 0..number {
        let hosts = [
            "127.0.0.2",
            "127.0.0.1",
            "192.0.2.7",
            "localhost",
            "::1",
            "",
        ];
        let host = choices.of(&hosts);
        out.text(host);
        let port = choices.of(&[victim_port, 0, u16::MAX]);
        out.u16(port);
    }
}

/// A server that takes listen points, and a server that it calls.
struct Server {
    _server: Orb,
    _victim: Orb,
    address: SocketAddr,
    key: Vec<u8>,
    victim: Mirror,
    victim_port: u16,
}

static SERVER: LazyLock<Server> = LazyLock::new(Server::new);

impl Server {
    fn new() -> Self {
        // A client's own address, 127.0.0.1, proves nothing about the victim.
        let (server, victim) = (orb("iiop://127.0.0.1:0"), orb("iiop://127.0.0.2:0"));
        let (address, key, _) = serve(&server);
        let (victim_address, _, reference) = serve(&victim);
        let object = server.string_to_object(&reference).expect("a reference");
        Self {
            _server: server,
            _victim: victim,
            address,
            key,
            victim: Mirror::unchecked_narrow(&object),
            victim_port: victim_address.port(),
        }
    }

    fn request(&self, id: u32, list: &[ServiceContext<'_>]) -> Vec<u8> {
        let mut frame = Frame::new(256, 1 << 20);
        let message = start_message(&mut frame, Version::V1_2, MessageType::Request);
        let mut e = message.expect("there is room");
        let header = RequestHeader {
            request_id: id,
            response: ResponseFlags::SyncWithTarget,
            target: Target::Key(&self.key),
            operation: b"add",
            contexts: list,
        };
        encode_request(&mut e, Version::V1_2, &header).expect("there is room");
        e.align(8).expect("there is room");
        let written = e.write_i32(20).and_then(|()| e.write_i32(22));
        written.expect("there is room");
        finish_message(&mut frame);
        frame.as_slice().to_vec()
    }

    /// Sends requests, and compares the replies with what is expected of each.
    fn exchange(&self, octets: &[u8], mut expected: HashMap<u32, Option<bool>>) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("no zero");
        stream.write_all(octets).expect("it reads");
        stream.shutdown(Shutdown::Write).expect("it is open");
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).expect("it ends");
        let mut answers = &answers[..];
        while !answers.is_empty() {
            let header = MessageHeader::parse(answers).expect("the server speaks GIOP");
            let (answer, rest) = answers.split_at(header.message_len());
            answers = rest;
            if header.kind != MessageType::Reply {
                continue;
            }
            let (mut frame, arena) = (Frame::new(answer.len(), answer.len()), Arena::new(1 << 16));
            frame.extend_from_slice(answer).expect("there is room");
            let mut d = header.decoder(&mut frame, &arena);
            let reply = ReplyHeader::decode(&mut d, header.protocol).expect("a reply");
            let is_late = expected
                .remove(&reply.request_id)
                .expect("it was asked once");
            let served = reply.status == ReplyStatus::NoException;
            if let Some(is_late) = is_late {
                assert_eq!(served, !is_late, "request {}", reply.request_id);
            }
        }
        assert!(expected.is_empty(), "no answer to {expected:?}");
    }
}

fn orb(endpoint: &str) -> Orb {
    let options = [
        "-ORBProtocols",
        "iiop",
        "-ORBListenEndpoints",
        endpoint,
        "-ORBThreads",
        "2",
        "-ORBBiDir",
        "accept",
    ];
    let mut options = options.map(str::to_owned).into();
    let mut config = OrbConfig::read(&mut options).expect("the options are correct");
    config.request_timeout = PATIENCE;
    Orb::with_config(config).expect("an ORB can be made")
}

/// Offers a mirror; returns its address, its key, and its reference as text.
fn serve(orb: &Orb) -> (SocketAddr, Vec<u8>, String) {
    let root = orb.root_poa().expect("it opens");
    let object = root.serve(MirrorSkeleton::new(Reflection));
    let object = object.expect("activated");
    root.manager().activate().expect("active");
    let profile = IiopProfile::decode(&object.ior().profiles[0].data).expect("our own");
    let ip = profile.host.parse().expect("a number");
    let text = orb.object_to_string(&object);
    (SocketAddr::new(ip, profile.port), profile.object_key, text)
}

/// The id of a context that no server knows.
const UNKNOWN: u32 = 0x7777;
const REQUEST_START: u32 = 27;
const REQUEST_END: u32 = 28;
const REPLY_END: u32 = 30;
/// The id of the last request, which has no contexts.
const LAST: u32 = 100;
