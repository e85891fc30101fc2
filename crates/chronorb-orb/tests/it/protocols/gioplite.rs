//! GIOPlite is used if both ends want it and know that of each other; otherwise only GIOP is sent.

use chronorb_cdr::{Arena, Frame};
use chronorb_giop::{
    GiopLite, IiopProfile, MessageHeader, MessageProtocol, MessageType, Protocol, ReplyHeader,
    RequestHeader, ResponseFlags, ServiceContext, Target, Version, contexts, encode_reply,
    encode_request, finish_message, start_message,
};
use chronorb_orb::SystemExceptionKind::{CommFailure, NoPermission, Timeout};
use chronorb_orb::poa::{Policy, PriorityModel};
use chronorb_orb::rtcorba::Priority;
use chronorb_orb::{
    CompletionStatus, ConnectionStrategy, Object, Operation, Orb, Reply, Scope, SystemException,
    SystemExceptionKind,
};
use chronorb_rt::Deadline;
use chronorb_transport::parse_endpoints;
use std::io::{Read, Write};
use std::net::TcpStream;

use MessageType::{CloseConnection, MessageError, Request};

use crate::support::asynchronous::{begin_add, begin_nothing};
use crate::support::raw_server::{Peer, object_at, raw_server};
use crate::support::relay::{Relay, messages};
use crate::support::strategies::{SHARED, STRATEGIES};
use crate::support::{
    PATIENCE, PROBE_ID, ProbeSkeleton, REFUSED_ID, ServedProbe, add, call, echo,
    kind_and_completion, nothing, orb_with, served_by, with_short_timeout,
};

fn server(lite: bool) -> ServedProbe {
    served_by(orb_with(|config| config.giop_lite = lite))
}

/// Returns a server with one thread, which sends each answer before it reads on.
fn server_of_one_thread() -> ServedProbe {
    served_by(orb_with(|config| {
        config.giop_lite = true;
        config.threads = 1.into();
    }))
}

fn client(strategy: ConnectionStrategy, lite: bool) -> Orb {
    orb_with(|config| {
        config.client_connection = strategy;
        config.giop_lite = lite;
    })
}

/// Returns the protocols of the messages in a stream.
fn protocols(octets: &[u8]) -> Vec<Protocol> {
    let messages = messages(octets).into_iter();
    messages.map(|(header, _)| header.protocol).collect()
}

const GIOP: Protocol = Protocol::Giop(Version::V1_2);
const LITE: Protocol = Protocol::Lite;

#[test]
fn the_first_request_and_its_reply_are_of_giop_and_all_after_them_of_gioplite() {
    let s = server(true);
    for strategy in STRATEGIES {
        let client = client(strategy, true);
        let (relay, object) = Relay::to_object(&client, &s.object);
        for i in 0..4 {
            assert_eq!(add(&object, i, 1), Ok(i + 1));
        }
        let [record] = &relay.records()[..] else {
            panic!("one connection is enough");
        };
        let expected = [GIOP, LITE, LITE, LITE];
        assert_eq!(protocols(&record.to_server), expected, "{strategy:?}");
        assert_eq!(protocols(&record.to_client), expected, "{strategy:?}");
    }
}

#[test]
fn asynchronous_calls_agree_on_it_too() {
    let s = server(true);
    for strategy in STRATEGIES {
        let client = client(strategy, true);
        let (relay, object) = Relay::to_object(&client, &s.object);
        for i in 0..3 {
            let pending = begin_add(&object, i, 1).expect("it begins");
            assert_eq!(pending.wait(), Ok(i + 1));
        }
        let pending: Vec<_> = (0..8).map(|i| begin_add(&object, i, 1)).collect();
        for (i, pending) in (0..).zip(pending) {
            assert_eq!(pending.and_then(|pending| pending.wait()), Ok(i + 1));
        }
        let [record] = &relay.records()[..] else {
            panic!("one connection is enough");
        };
        let expected = [&[GIOP][..], &[LITE; 10]].concat();
        assert_eq!(protocols(&record.to_server), expected, "{strategy:?}");
        assert_eq!(protocols(&record.to_client), expected, "{strategy:?}");
    }
}

#[test]
fn it_is_not_spoken_unless_both_ends_want_it() {
    for (client_wants, server_wants) in [(true, false), (false, true), (false, false)] {
        let s = server(server_wants);
        for strategy in STRATEGIES {
            let client = client(strategy, client_wants);
            let (relay, object) = Relay::to_object(&client, &s.object);
            every_kind_of_call(&object);
            for record in relay.records() {
                for octets in [&record.to_server, &record.to_client] {
                    assert!(protocols(octets).iter().all(|protocol| *protocol != LITE));
                }
                let asked = find(&record.to_server, &contexts::GIOP_LITE.to_ne_bytes());
                let answered = find(&record.to_client, &contexts::GIOP_LITE.to_ne_bytes());
                assert_eq!((asked, answered), (client_wants, false), "{strategy:?}");
            }
        }
    }
}

fn find(octets: &[u8], wanted: &[u8]) -> bool {
    octets.windows(wanted.len()).any(|octets| octets == wanted)
}

/// Calls a probe in all ways, and checks the answers.
fn every_kind_of_call(object: &Object) {
    object.validate_connection().expect("it is there");
    assert_eq!(add(object, 40, 2), Ok(42));
    object.validate_connection().expect("it is there");
    assert_eq!(echo(object, "Grüße").as_deref(), Ok("Grüße"));
    assert_eq!(object.is_a(PROBE_ID), Ok(true));
    assert_eq!(object.non_existent(), Ok(false));
    let failed = SystemException::maybe(NoPermission, 42);
    assert_eq!(nothing(object, "fail"), Err(failed));
    for len in [0, 1, 1000, 100_000, 1_000_000] {
        let octets: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let back = call(object, "octets", &|e| e.write_octet_seq(&octets), |d| {
            Ok(d.read_octet_seq()?.to_vec())
        });
        assert!(back.as_ref() == Ok(&octets), "{len} octets");
    }
    Scope::with(|scope| {
        let refuse = Operation::twoway("refuse");
        match object.invoke(scope, &refuse, &|e| e.write_str("no")) {
            Ok(Reply::UserException(id, mut members)) => {
                assert_eq!((id, members.read_str()), (REFUSED_ID, Ok("no")));
            }
            other => panic!("{other:?}"),
        }
        let note = Operation::oneway("note");
        object
            .invoke_oneway(&note, &|_| Ok(()))
            .expect("it is sent");
        let long = Operation::twoway(LONG_NAME);
        let unknown = object.invoke(scope, &long, &|_| Ok(()));
        let unknown = unknown.expect_err("there is no such operation");
        assert_eq!(unknown.kind, SystemExceptionKind::BadOperation);
    });
    let pending: Vec<_> = (0..4).map(|i| begin_add(object, i, i)).collect();
    for (i, pending) in (0..).zip(pending) {
        assert_eq!(pending.and_then(|pending| pending.wait()), Ok(2 * i));
    }
    assert_eq!(add(object, 1, 2), Ok(3));
}

/// An operation that is too long for the header of a request of GIOPlite.
const LONG_NAME: &str = {
    const NAME: &[u8; 256] = &[b'n'; 256];
    match std::str::from_utf8(NAME) {
        Ok(name) => name,
        Err(_) => panic!(),
    }
};

#[test]
fn every_kind_of_call_is_the_same_by_both_protocols() {
    for lite in [false, true] {
        let s = server(lite);
        for strategy in STRATEGIES {
            for fragment_size in [0, 4096] {
                let client = orb_with(|config| {
                    config.client_connection = strategy;
                    config.giop_lite = lite;
                    config.fragment_size = fragment_size;
                });
                let (relay, object) = Relay::to_object(&client, &s.object);
                every_kind_of_call(&object);
                let records = relay.records();
                let mut sent = records.iter().map(|record| protocols(&record.to_server));
                assert_eq!(sent.any(|sent| sent.contains(&LITE)), lite);
                for record in records {
                    for (header, message) in messages(&record.to_server) {
                        let is_long = find(message, LONG_NAME.as_bytes());
                        assert!(!is_long || header.protocol == GIOP);
                        let is_part = header.kind == MessageType::Fragment;
                        assert!(!is_part || fragment_size > 0 && header.protocol == GIOP);
                    }
                }
            }
        }
    }
}

#[test]
fn a_server_that_fragments_sends_messages_of_gioplite_whole() {
    let server = orb_with(|config| {
        config.giop_lite = true;
        config.fragment_size = 1024;
    });
    let s = served_by(server);
    for strategy in STRATEGIES {
        let (relay, object) = Relay::to_object(&client(strategy, true), &s.object);
        every_kind_of_call(&object);
        let records = relay.records();
        let mut all = records
            .iter()
            .flat_map(|record| messages(&record.to_client));
        let great = |(header, _): (MessageHeader, &[u8])| header.size > 1024;
        assert!(all.any(great), "{strategy:?}");
    }
}

#[test]
fn priorities_travel_by_it() {
    let server = orb_with(|config| config.giop_lite = true);
    let root = server.root_poa().expect("the endpoint opens");
    let low = Priority::new(10).expect("not negative");
    let policies = [Policy::PriorityModel(PriorityModel::ClientPropagated, low)];
    let poa = root.create_poa("rt", Some(root.manager()), &policies);
    let poa = poa.expect("they agree");
    let object = poa.serve(ProbeSkeleton(Default::default()));
    let object = object.expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    for strategy in STRATEGIES {
        let client = client(strategy, true);
        let (relay, object) = Relay::to_object(&client, &object);
        for priority in [20, 30, 20, 30, 30] {
            let current = client.rt_current();
            let own = Priority::new(priority).expect("not negative");
            current.set_priority(own).expect("it has a native priority");
            let served_at = crate::support::priority(&object).map(|(corba, _)| corba);
            assert_eq!(served_at, Ok(priority), "{strategy:?}");
        }
        for record in relay.records() {
            assert!(protocols(&record.to_server)[1..].iter().all(|p| *p == LITE));
        }
    }
}

#[test]
fn a_forward_is_followed_to_a_server_that_is_asked_anew() {
    let (s, elsewhere) = (server(true), server(false));
    for there in [&s.object, &elsewhere.object] {
        for strategy in STRATEGIES {
            let client = client(strategy, true);
            let (relay, there) = Relay::to_object(&client, there);
            let name = format!("Probe-{strategy:?}-{}", relay.address.port());
            let registered = s.server.ior_to_object(there.ior().clone());
            let registered = registered.expect("the reference reads");
            let done = s.server.register_initial_reference(&name, &registered);
            done.expect("the name is free");
            // A plain key is forwarded to the registered reference.
            let mut ior = s.object.ior().clone();
            let mut profile = IiopProfile::decode(&ior.profiles[0].data).expect("our own");
            profile.object_key = name.into_bytes();
            ior.profiles[0].data = profile.encode().expect("it fits");
            let [named, again] = [(); 2].map(|()| client.ior_to_object(ior.clone()));
            let (named, again) = (named.expect("not nil"), again.expect("not nil"));
            for i in 0..3 {
                assert_eq!(add(&named, i, 1), Ok(i + 1), "{strategy:?}");
                let pending = begin_add(&again, i, 2).expect("it begins");
                assert_eq!(pending.wait(), Ok(i + 2), "{strategy:?}");
            }
            for record in relay.records() {
                assert_eq!(protocols(&record.to_server)[0], GIOP, "{strategy:?}");
            }
        }
    }
}

#[test]
fn a_connection_that_is_made_again_agrees_again() {
    for strategy in STRATEGIES {
        let client = client(strategy, true);
        let mut port = 0;
        for wants in [true, false, true] {
            // The server is a new one each time, at the same address and with the same object.
            let server = orb_with(|config| {
                config.giop_lite = wants;
                let at = format!("iiop://127.0.0.1:{port}");
                config.listen_endpoints = parse_endpoints(&at).expect("it is correct");
            });
            let s = served_by(server);
            let profile = IiopProfile::decode(&s.object.ior().profiles[0].data);
            port = profile.expect("our own").port;
            let text = s.server.object_to_string(&s.object);
            let object = client.string_to_object(&text).expect("it reads");
            for i in 0..3 {
                assert_eq!(add(&object, i, 1), Ok(i + 1), "{strategy:?}");
            }
            // CloseConnection is of the negotiated protocol; after it the client reconnects.
        }
    }
}

#[test]
fn a_call_that_is_given_up_is_cancelled_by_the_protocol_of_the_connection() {
    for strategy in SHARED {
        let s = server(true);
        let client = client(strategy, true);
        let (relay, object) = Relay::to_object(&client, &s.object);
        assert_eq!(add(&object, 1, 2), Ok(3));
        let mut late = begin_nothing(&object, "wait").expect("it begins");
        s.probe.gate.reach(1);
        assert_eq!(late.try_get(), None);
        drop(late);
        s.probe.gate.set(2);
        // Whatever the result of the call, the connection continues.
        assert_eq!(add(&object, 2, 2), Ok(4), "{strategy:?}");
        let records = relay.records();
        let sent = messages(&records[0].to_server);
        let cancel = sent
            .iter()
            .find(|(header, _)| header.kind == MessageType::CancelRequest);
        let (header, _) = cancel.expect("the server was told");
        assert_eq!(header.protocol, LITE, "{strategy:?}");
    }
}

#[test]
fn a_call_whose_time_is_over_says_so() {
    for strategy in STRATEGIES {
        let s = server(true);
        let client = client(strategy, true);
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("it reads");
        assert_eq!(add(&object, 1, 2), Ok(3));
        let late = with_short_timeout(&object, |hasty| nothing(hasty, "wait"));
        let late = kind_and_completion(late);
        assert_eq!(late, (Timeout, CompletionStatus::Maybe), "{strategy:?}");
        s.probe.gate.set(2);
        assert_eq!(add(&object, 2, 2), Ok(4), "{strategy:?}");
    }
}

#[test]
fn a_server_says_goodbye_by_the_protocol_that_was_spoken() {
    for (lite, expected) in [(false, Protocol::Giop(Version::V1_0)), (true, LITE)] {
        let s = server(true);
        let mut peer = RawClient::to(&s);
        peer.ask(&contexts::GIOP_LITE_DATA);
        peer.receive().expect("a reply");
        if lite {
            peer.send(&peer.request(LITE, &[]));
            peer.receive().expect("a reply");
        }
        s.server.shutdown(true).expect("no servant asks for it");
        let (header, _) = peer.receive().expect("a goodbye");
        assert_eq!((header.kind, header.protocol), (CloseConnection, expected));
        assert!(peer.receive().is_none(), "the connection has ended");
    }
}

#[test]
fn a_goodbye_is_understood_by_either_protocol() {
    for strategy in STRATEGIES {
        for calls in [1, 2] {
            let s = server(true);
            let client = client(strategy, true);
            let text = s.server.object_to_string(&s.object);
            let object = client.string_to_object(&text).expect("it reads");
            for _ in 0..calls {
                assert_eq!(add(&object, 1, 2), Ok(3));
            }
            s.server.shutdown(true).expect("no servant asks for it");
            let (_, completed) = kind_and_completion(add(&object, 1, 2));
            assert_eq!(completed, CompletionStatus::No, "{strategy:?}");
        }
    }
}

#[test]
fn nothing_but_giop_goes_to_a_peer_that_does_not_agree() {
    // It answers in GIOP, and ignores contexts.
    let peer = raw_server(Peer::answer_all);
    for strategy in STRATEGIES {
        let relay = Relay::to(peer.address);
        let client = client(strategy, true);
        let object = object_at(&client, relay.address);
        for i in 0..10 {
            assert_eq!(add(&object, i, 1), Ok(i + 1));
            let pending = begin_add(&object, i, 2).expect("it begins");
            assert_eq!(pending.wait(), Ok(i + 2));
        }
        for record in relay.records() {
            let sent = protocols(&record.to_server);
            assert!(
                sent.iter().all(|protocol| *protocol == GIOP),
                "{strategy:?}"
            );
        }
    }
}

#[test]
fn an_agreement_of_another_kind_is_none() {
    let (own, other) = (contexts::GIOP_LITE_DATA, |at: usize| {
        let mut data = contexts::GIOP_LITE_DATA;
        data[at] ^= 1;
        data
    });
    let answers: [(&'static [u8], Protocol); 4] = [
        (Vec::leak(own.to_vec()), LITE),
        // The other byte order, another version, and nothing.
        (Vec::leak(other(0).to_vec()), GIOP),
        (Vec::leak(other(1).to_vec()), GIOP),
        (&[], GIOP),
    ];
    for (data, expected) in answers {
        let peer = raw_server(move |mut peer: Peer| {
            let Some((id, (a, b))) = peer.request() else {
                return;
            };
            peer.send(&agreeing_reply(id, a + b, data));
            peer.wait_for_octets();
        });
        let relay = Relay::to(peer.address);
        let client = client(ConnectionStrategy::Exclusive, true);
        let object = object_at(&client, relay.address);
        assert_eq!(add(&object, 1, 2), Ok(3));
        // There is no answer to this one.
        kind_and_completion(with_short_timeout(&object, |hasty| add(hasty, 1, 2)));
        let sent = || protocols(&relay.records()[0].to_server);
        let deadline = Deadline::after(PATIENCE);
        while sent().len() < 2 && !deadline.has_passed() {
            std::thread::yield_now();
        }
        assert_eq!(sent(), [GIOP, expected], "{data:?}");
    }
}

#[test]
fn a_server_agrees_only_to_what_it_knows() {
    let s = server(true);
    let own = contexts::GIOP_LITE_DATA;
    for (data, agrees) in [
        (&own[..], true),
        (&[own[0] ^ 1, own[1]], false),
        (&[own[0], own[1] + 1], false),
        (&own[..1], false),
        (&[], false),
    ] {
        let mut peer = RawClient::to(&s);
        peer.ask(data);
        let (_, reply) = peer.receive().expect("a reply");
        assert_eq!(GiopLite::is_agreed_by(&reply), agrees, "{data:?}");
    }
}

#[test]
fn gioplite_without_an_agreement_is_no_message() {
    for wants in [false, true] {
        let s = server(wants);
        let mut peer = RawClient::to(&s);
        peer.send(&peer.request(Protocol::Lite, &[]));
        let (header, _) = peer.receive().expect("an answer");
        assert_eq!(
            (header.kind, header.protocol),
            (MessageError, Version::V1_0.into())
        );
        assert!(peer.receive().is_none(), "the connection has ended");
    }
}

#[test]
fn both_protocols_are_taken_once_there_is_an_agreement() {
    let s = server_of_one_thread();
    let mut peer = RawClient::to(&s);
    peer.ask(&contexts::GIOP_LITE_DATA);
    peer.receive().expect("a reply");
    for protocol in [LITE, GIOP, GIOP, LITE, Version::V1_0.into(), LITE] {
        peer.send(&peer.request(protocol, &[]));
        let (header, _) = peer.receive().expect("a reply");
        assert_eq!(
            (header.kind, header.protocol),
            (MessageType::Reply, protocol)
        );
    }
    // All in one go, and one in two.
    let all = [LITE, GIOP, LITE]
        .map(|protocol| peer.request(protocol, &[]))
        .concat();
    peer.send(&all);
    let (first, second) = all.split_at(3);
    peer.send(first);
    peer.send(second);
    for protocol in [LITE, GIOP, LITE, LITE, GIOP, LITE] {
        let (header, _) = peer.receive().expect("a reply");
        assert_eq!(
            (header.kind, header.protocol),
            (MessageType::Reply, protocol)
        );
    }
}

#[test]
fn rubbish_is_answered_by_the_protocol_that_was_spoken() {
    let s = server_of_one_thread();
    let rubbish: [&[u8]; 5] = [
        &u32::MAX.to_ne_bytes(),
        &(1_u32 << 29).to_ne_bytes(),
        &[0, 0, 0, 0, MessageType::Fragment as u8],
        &[0, 0, 0, 0, 200],
        &[0, 0, 0, 0, Request as u8],
    ];
    for octets in rubbish {
        let mut peer = RawClient::to(&s);
        peer.ask(&contexts::GIOP_LITE_DATA);
        peer.receive().expect("a reply");
        peer.send(&peer.request(Protocol::Lite, &[]));
        peer.receive().expect("a reply");
        // With what its header would need.
        peer.send(&[octets, &[0; 8]].concat());
        let (header, _) = peer.receive().expect("an answer");
        assert_eq!(
            (header.kind, header.protocol),
            (MessageError, LITE),
            "{octets:?}"
        );
        assert!(peer.receive().is_none(), "the connection has ended");
    }
}

#[test]
fn rubbish_from_a_server_that_has_agreed_ends_the_connection() {
    let peer = raw_server(|mut peer: Peer| {
        let Some((id, (a, b))) = peer.request() else {
            return;
        };
        peer.send(&agreeing_reply(id, a + b, &contexts::GIOP_LITE_DATA));
        peer.wait_for_octets();
        peer.send(&[0, 0, 0, 0, 200, 0, 0, 0]);
        peer.wait_for_octets();
    });
    for strategy in STRATEGIES {
        let client = client(strategy, true);
        let object = object_at(&client, peer.address);
        assert_eq!(add(&object, 1, 2), Ok(3));
        let (kind, completed) = kind_and_completion(add(&object, 1, 2));
        assert!(
            matches!(kind, CommFailure | SystemExceptionKind::Marshal),
            "{strategy:?}"
        );
        assert_eq!(completed, CompletionStatus::Maybe);
        assert_eq!(
            add(&object, 3, 4),
            Ok(7),
            "{strategy:?}: by a new connection"
        );
    }
}

/// Returns a reply of GIOP 1.2 to the request to add, with a context that may agree.
fn agreeing_reply(request_id: u32, result: i32, data: &[u8]) -> Vec<u8> {
    let header = ReplyHeader {
        request_id,
        status: chronorb_giop::ReplyStatus::NoException,
        contexts: &[ServiceContext {
            id: contexts::GIOP_LITE,
            data,
        }],
    };
    let mut frame = Frame::new(256, 256);
    let mut e = start_message(&mut frame, GIOP, MessageType::Reply).expect("there is room");
    encode_reply(&mut e, GIOP, &header).expect("there is room");
    e.align(8).expect("there is room");
    e.write_i32(result).expect("there is room");
    finish_message(&mut frame);
    frame.as_slice().to_vec()
}

/// A client on a bare socket.
struct RawClient {
    stream: TcpStream,
    key: Vec<u8>,
    received: Vec<u8>,
}

impl RawClient {
    fn to(s: &ServedProbe) -> Self {
        let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
        let stream = TcpStream::connect((profile.host.as_str(), profile.port));
        let stream = stream.expect("the server listens");
        let patience = stream.set_read_timeout(Some(PATIENCE));
        patience.expect("a socket has a time-out");
        Self {
            stream,
            key: profile.object_key,
            received: Vec::new(),
        }
    }

    /// Returns an is_a or non_existent request for the object.
    fn request(&self, protocol: Protocol, contexts: &[ServiceContext<'_>]) -> Vec<u8> {
        let header = RequestHeader {
            request_id: 7,
            response: ResponseFlags::SyncWithTarget,
            target: Target::Key(&self.key),
            operation: b"_non_existent",
            contexts,
        };
        let mut frame = Frame::new(512, 512);
        let mut e = start_message(&mut frame, protocol, Request).expect("there is room");
        encode_request(&mut e, protocol, &header).expect("there is room");
        finish_message(&mut frame);
        frame.as_slice().to_vec()
    }

    /// Sends a request that asks for GIOPlite with this content of the context.
    fn ask(&self, data: &[u8]) {
        let id = contexts::GIOP_LITE;
        self.send(&self.request(GIOP, &[ServiceContext { id, data }]));
    }

    fn send(&self, octets: &[u8]) {
        let sent = (&self.stream).write_all(octets);
        sent.expect("the server takes it");
    }

    /// Returns the next message; `None` at the end of the connection.
    fn receive(&mut self) -> Option<(MessageHeader, Vec<u8>)> {
        loop {
            if let Some((header, message)) = messages(&self.received).first() {
                let (header, message) = (*header, message.to_vec());
                self.received.drain(..message.len());
                let arena = Arena::new(1024);
                if header.kind == MessageType::Reply {
                    let mut frame = Frame::new(message.len(), message.len());
                    frame.extend_from_slice(&message).expect("there is room");
                    let mut d = header.decoder(&mut frame, &arena);
                    let reply = header.protocol.decode_reply(&mut d).expect("a reply");
                    assert_eq!(reply.request_id, 7);
                    assert!(!d.read_bool().expect("a result"), "it exists");
                }
                return Some((header, message));
            }
            let mut octets = [0; 4096];
            match self.stream.read(&mut octets) {
                Ok(0) => return None,
                Ok(n) => self.received.extend(&octets[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(e) => panic!("nothing came: {e}"),
            }
        }
    }
}
