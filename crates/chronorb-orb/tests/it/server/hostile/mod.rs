//! Hostile peers: the server answers according to the standard or closes the connection, and
//! continues to serve others.

use chronorb_cdr::{CdrError, Encoder, Frame};
use chronorb_giop::{
    HEADER_LEN, IiopProfile, MessageHeader, MessageType, RequestHeader, ResponseFlags,
    ServiceContext, Target, Version, encode_request, finish_message, start_message,
};
use chronorb_orb::{Incident, Object};
use proptest::prelude::*;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

mod buffers;
mod classes;
mod too_large;

use crate::support::adapters::until;
use crate::support::{
    ServedProbe, add, call, nothing, orb_with, served, served_by, with_longer_times,
};

/// Returns a manual connection.
fn connect(s: &ServedProbe) -> TcpStream {
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let stream = TcpStream::connect((profile.host.as_str(), profile.port)).expect("it listens");
    stream
        .set_read_timeout(Some(crate::support::PATIENCE))
        .expect("not zero");
    stream
        .set_write_timeout(Some(crate::support::PATIENCE))
        .expect("not zero");
    stream
}

/// Returns a correct request `add(20, 22)`.
fn request(s: &ServedProbe, version: Version) -> Vec<u8> {
    let contexts = [ServiceContext {
        id: 77,
        data: b"unknown",
    }];
    let add = |e: &mut Encoder<'_>| e.write_i32(20).and_then(|()| e.write_i32(22));
    message(
        s,
        version,
        b"add",
        ResponseFlags::SyncWithTarget,
        &contexts,
        &add,
    )
}

/// Returns a request with these parts, to the probe.
fn message(
    s: &ServedProbe,
    version: Version,
    operation: &[u8],
    response: ResponseFlags,
    contexts: &[ServiceContext<'_>],
    body: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Vec<u8> {
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    request_to(
        &profile.object_key,
        version,
        operation,
        response,
        contexts,
        body,
    )
}

pub(super) fn request_to(
    key: &[u8],
    version: Version,
    operation: &[u8],
    response: ResponseFlags,
    contexts: &[ServiceContext<'_>],
    body: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Vec<u8> {
    let mut frame = Frame::new(1024, 16 << 20);
    let mut e = start_message(&mut frame, version, MessageType::Request).expect("it fits");
    let header = RequestHeader {
        request_id: 5,
        response,
        target: Target::Key(key),
        operation,
        contexts,
    };
    encode_request(&mut e, version, &header).expect("it fits");
    if version >= Version::V1_2 {
        e.align(8).expect("it fits");
    }
    body(&mut e).expect("it fits");
    finish_message(&mut frame);
    frame.as_slice().to_vec()
}

/// Returns whether the probe returns its argument.
fn octets(object: &Object, octets: &[u8]) -> bool {
    let same = call(object, "octets", &|e| e.write_octet_seq(octets), |d| {
        Ok(d.read_octet_seq()? == octets)
    });
    same.expect("the call succeeds")
}

/// Returns the resident memory of the process in octets, by statm(5).
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

/// Returns the next message; `None` if the server closed the connection.
fn receive(stream: &mut TcpStream) -> Option<(MessageHeader, Vec<u8>)> {
    let mut octets = vec![0; HEADER_LEN];
    stream.read_exact(&mut octets).ok()?;
    let header = MessageHeader::parse(&octets).expect("the server speaks GIOP");
    octets.resize(header.message_len(), 0);
    stream.read_exact(&mut octets[HEADER_LEN..]).ok()?;
    Some((header, octets))
}

/// Sends octets, and returns the types of the answers before the close.
fn answers_to(s: &ServedProbe, octets: &[u8]) -> Vec<MessageType> {
    let mut stream = connect(s);
    let _ = stream.write_all(octets);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    std::iter::from_fn(|| receive(&mut stream))
        .map(|(header, _)| header.kind)
        .collect()
}

#[test]
fn a_request_by_hand_is_answered_in_its_own_version() {
    let s = served();
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut stream = connect(&s);
        stream
            .write_all(&request(&s, version))
            .expect("it is there");
        let (header, octets) = receive(&mut stream).expect("a reply");
        assert_eq!(
            (header.kind, header.version()),
            (MessageType::Reply, version)
        );
        assert_eq!(octets[octets.len() - 4..], 42_i32.to_ne_bytes());
    }
}

#[test]
fn a_request_in_single_octets_is_answered() {
    let s = served();
    let mut stream = connect(&s);
    stream.set_nodelay(true).expect("it is TCP");
    for octet in request(&s, Version::V1_2) {
        stream.write_all(&[octet]).expect("it is there");
    }
    let (header, _) = receive(&mut stream).expect("a reply");
    assert_eq!(header.kind, MessageType::Reply);
}

#[test]
fn many_requests_in_one_write_are_all_answered() {
    let s = served();
    let mut stream = connect(&s);
    let many = request(&s, Version::V1_2).repeat(500);
    stream.write_all(&many).expect("it is there");
    for _ in 0..500 {
        let (header, _) = receive(&mut stream).expect("a reply");
        assert_eq!(header.kind, MessageType::Reply);
    }
}

#[test]
fn who_has_nothing_more_to_say_still_gets_the_whole_answer() {
    let s = served();
    let octets = vec![7; 12 << 20];
    let write = |e: &mut Encoder<'_>| e.write_octet_seq(&octets);
    let twoway = ResponseFlags::SyncWithTarget;
    let request = message(&s, Version::V1_2, b"octets", twoway, &[], &write);
    let mut stream = connect(&s);
    stream.write_all(&request).expect("it is there");
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("it is open");
    let (header, reply) = receive(&mut stream).expect("the whole reply");
    assert_eq!(header.kind, MessageType::Reply);
    assert!(reply.ends_with(&octets));
    assert_eq!(stream.read(&mut [0]).ok(), Some(0), "and then the end");
}

#[test]
fn a_code_set_announced_by_the_first_request_holds_for_the_next_at_once() {
    let s = served();
    let utf8 = chronorb_giop::codesets::CodeSetContext {
        char_data: chronorb_giop::codesets::UTF_8,
        wchar_data: chronorb_giop::codesets::UTF_16,
    };
    let data = utf8.encode();
    let announced = [ServiceContext {
        id: chronorb_giop::contexts::CODE_SETS,
        data: &data,
    }];
    let text = "grüße";
    // Plain octets of UTF-8: only the first request determines the code set.
    let write = |e: &mut Encoder<'_>| {
        e.write_len(text.len() + 1)?;
        e.write_octets(text.as_bytes())?;
        e.write_u8(0)
    };
    let twoway = ResponseFlags::SyncWithTarget;
    let first = message(&s, Version::V1_2, b"echo", twoway, &announced, &write);
    let next = message(&s, Version::V1_2, b"echo", twoway, &[], &write);
    for _ in 0..200 {
        let mut stream = connect(&s);
        stream
            .write_all(&[&first[..], &next].concat())
            .expect("it is there");
        for _ in 0..2 {
            let (_, reply) = receive(&mut stream).expect("a reply");
            assert!(
                reply.ends_with(b"gr\xc3\xbc\xc3\x9fe\0"),
                "{}",
                reply.escape_ascii()
            );
        }
    }
}

#[test]
fn who_waits_for_the_server_only_is_told_of_forwards_and_refusals() {
    let s = served();
    s.server
        .register_initial_reference("Plain", &s.object)
        .expect("it is free");
    let early = ResponseFlags::SyncWithServer;
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let nothing = |_: &mut Encoder<'_>| Ok(());
    // NO_EXCEPTION, SYSTEM_EXCEPTION, LOCATION_FORWARD.
    for (key, status) in [(&profile.object_key[..], 0), (b"Absent", 2), (b"Plain", 3)] {
        let request = request_to(key, Version::V1_2, b"note", early, &[], &nothing);
        let mut stream = connect(&s);
        stream.write_all(&request).expect("it is there");
        let (_, reply) = receive(&mut stream).expect("a reply");
        assert_eq!(
            reply[16..20],
            u32::to_ne_bytes(status),
            "{}",
            key.escape_ascii()
        );
    }
    s.probe.gate.reach(1);
}

#[test]
fn that_an_object_is_gone_is_an_answer_and_no_exception() {
    let s = served();
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let mut gone = profile.object_key.clone();
    *gone.last_mut().expect("it is not empty") ^= 1;
    let nothing = |_: &mut Encoder<'_>| Ok(());
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for operation in [&b"_non_existent"[..], b"_not_existent"] {
            for (key, answer) in [
                (&profile.object_key[..], 0),
                (&gone, 1),
                (b"Absent", 1),
                (b"", 1),
            ] {
                let twoway = ResponseFlags::SyncWithTarget;
                let request = request_to(key, version, operation, twoway, &[], &nothing);
                let mut stream = connect(&s);
                stream.write_all(&request).expect("it is there");
                let (_, reply) = receive(&mut stream).expect("a reply");
                let status = match version {
                    Version::V1_2 => &reply[16..20],
                    _ => &reply[20..24],
                };
                assert_eq!(status, [0; 4], "no exception");
                assert_eq!(reply.last(), Some(&answer), "{}", key.escape_ascii());
            }
        }
    }
    // Other operations are refused as before.
    let add = |e: &mut Encoder<'_>| e.write_i32(20).and_then(|()| e.write_i32(22));
    let twoway = ResponseFlags::SyncWithTarget;
    let mut stream = connect(&s);
    let request = request_to(&gone, Version::V1_2, b"add", twoway, &[], &add);
    stream.write_all(&request).expect("it is there");
    let (_, reply) = receive(&mut stream).expect("a reply");
    assert_eq!(reply[16..20], 2_u32.to_ne_bytes(), "SYSTEM_EXCEPTION");
}

#[test]
fn an_unfinished_message_is_given_up_on_a_busy_lane_too() {
    let s = served_by(orb_with(|config| {
        config.input_timeout = Duration::from_millis(1);
        config.threads = 1.into();
    }));
    let mut peer = connect(&s);
    peer.write_all(b"GIOP\x01\x02\x01").expect("it is there");
    peer.set_nonblocking(true).expect("it is TCP");
    let patience = chronorb_rt::Deadline::after(crate::support::PATIENCE);
    loop {
        assert_eq!(add(&s.object, 1, 1), Ok(2));
        match peer.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => break,
        }
        assert!(!patience.has_passed(), "the lane never looked");
    }
}

#[test]
fn a_message_whose_rest_waits_for_a_busy_lane_is_not_late() {
    // On a busy machine the rest may come too late itself.
    with_longer_times(Duration::from_millis(200), |time_out| {
        let s = served_by(orb_with(|config| {
            config.input_timeout = time_out;
            config.threads = 1.into();
        }));
        let deadline = chronorb_rt::Deadline::after(time_out);
        let mut peer = connect(&s);
        let message = request(&s, Version::V1_2);
        peer.write_all(&message[..20]).expect("it is there");
        assert_eq!(add(&s.object, 1, 1), Ok(2), "the beginning was read before");
        let is_in_time = std::thread::scope(|scope| {
            scope.spawn(|| nothing(&s.object, "wait"));
            s.probe.gate.reach(1);
            let sent = peer.write_all(&message[20..]);
            let is_in_time = sent.is_ok() && !deadline.has_passed();
            let late = chronorb_rt::Deadline::after(time_out + Duration::from_millis(100));
            until("time stands still", || late.has_passed());
            s.probe.gate.set(2);
            is_in_time
        });
        is_in_time.then(|| {
            let (header, _) = receive(&mut peer).expect("an answer");
            assert_eq!(header.kind, MessageType::Reply);
        })
    });
}

#[test]
fn cancellations_without_end_do_not_keep_a_thread() {
    let s = served_by(orb_with(|config| config.threads = 1.into()));
    let mut peer = connect(&s);
    // An incomplete fragmented request, and cancellations of other requests.
    let mut octets =
        b"GIOP\x01\x02\x03\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00".to_vec();
    for _ in 0..20_000 {
        octets.extend_from_slice(b"GIOP\x01\x02\x01\x02\x04\x00\x00\x00\x09\x00\x00\x00");
    }
    peer.write_all(&octets).expect("it is there");
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn what_is_not_giop_gets_message_error_and_the_close() {
    let s = served();
    for rubbish in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"GIOP\x02\x00\x01\x00\x00\x00\x00\x00",
        b"GIOP\x01\x09\x01\x00\x00\x00\x00\x00",
        b"GIOP\x01\x02\x01\x63\x00\x00\x00\x00",
        b"GIOP\x01\x02\x01\x00\xff\xff\xff\xff",
        // A header that ends at once, unsolicited replies, and fragments without a beginning.
        b"GIOP\x01\x02\x01\x00\x00\x00\x00\x00",
        b"GIOP\x01\x02\x01\x01\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        b"GIOP\x01\x02\x01\x07\x04\x00\x00\x00\x09\x00\x00\x00",
    ] {
        let answers = answers_to(&s, rubbish);
        assert_eq!(
            answers,
            [MessageType::MessageError],
            "{}",
            rubbish.escape_ascii()
        );
    }
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn a_peer_that_says_goodbye_is_let_go_without_a_word() {
    let s = served();
    for goodbye in [MessageType::CloseConnection, MessageType::MessageError] {
        let header = MessageHeader {
            protocol: Version::V1_2.into(),
            endian: chronorb_cdr::Endian::NATIVE,
            more_fragments: false,
            kind: goodbye,
            size: 0,
        };
        assert_eq!(answers_to(&s, &header.to_bytes()), []);
    }
}

#[test]
fn a_promise_of_much_reserves_nothing() {
    // 100 peers announce 16 MiB each; the lane may buffer 1 MiB in all.
    let s = served_by(orb_with(|config| config.max_buffered_octets = 1 << 20));
    let mut peers: Vec<_> = (0..100).map(|_| connect(&s)).collect();
    for peer in &mut peers {
        let mut octets = b"GIOP\x01\x02\x01\x00\xf0\xff\xff\x00".to_vec();
        octets.resize(100, 0);
        peer.write_all(&octets).expect("it is there");
    }
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn promises_of_gigabytes_hold_no_memory_and_hold_up_nobody() {
    let s = served_by(orb_with(|config| {
        config.max_message_size = u32::MAX as usize;
        config.max_buffered_octets = 16 << 20;
    }));
    // The thread's own frame is large by then, and the memory for false announcements is bounded.
    let great = vec![7; 1 << 20];
    assert!(octets(&s.object, &great));
    let before = resident();
    let mut peers: Vec<_> = (0..200).map(|_| connect(&s)).collect();
    for (index, peer) in peers.iter_mut().enumerate() {
        let mut octets = b"GIOP\x01\x02\x01\x00\xf0\xff\xff\xff".to_vec();
        octets.resize(10 + index * 100, 0);
        peer.write_all(&octets).expect("it is there");
    }
    for _ in 0..3 {
        assert_eq!(add(&s.object, 1, 1), Ok(2));
        assert!(octets(&s.object, &great));
    }
    let more = resident().saturating_sub(before);
    // Other tests of this process allocate, too; one announcement is 4 GiB.
    assert!(more < 256 << 20, "{more} octets more than before");
}

/// Returns whether the server closes the connection, given the result of sending.
fn is_cut_off(peer: &mut TcpStream, sent: std::io::Result<()>) -> bool {
    let mut outcome = sent.map(|()| 1);
    while matches!(outcome, Ok(1)) {
        outcome = peer.read(&mut [0]);
    }
    // A timeout is no close.
    outcome.is_ok() || outcome.is_err_and(|error| error.kind() != ErrorKind::WouldBlock)
}

#[test]
fn who_sends_without_end_is_cut_off_at_the_lanes_bound() {
    let s = served_by(orb_with(|config| config.max_buffered_octets = 1 << 20));
    let mut peer = connect(&s);
    let header = b"GIOP\x01\x02\x01\x00\xf0\xff\xff\x00";
    let mut result = peer.write_all(header);
    let chunk = [0; 64 << 10];
    for _ in 0..200 {
        result = result.and_then(|()| peer.write_all(&chunk));
    }
    // The kernel may have accepted all of it before the server acted; the message has 4 MiB more.
    assert!(is_cut_off(&mut peer, result), "the rest is waited for");
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn fragments_without_end_are_cut_off() {
    let s = served_by(orb_with(|config| config.max_message_size = 1 << 20));
    let mut peer = connect(&s);
    let size = (64_u32 << 10).to_le_bytes();
    let mut first = b"GIOP\x01\x02\x03\x00".to_vec();
    first.extend_from_slice(&size);
    first.resize(HEADER_LEN + (64 << 10), 0);
    let mut next = first.clone();
    next[7] = 7;
    let mut result = peer.write_all(&first);
    for _ in 0..200 {
        result = result.and_then(|()| peer.write_all(&next));
    }
    assert!(is_cut_off(&mut peer, result), "more is waited for");
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn who_does_not_read_its_replies_holds_up_nobody() {
    let s = served_by(orb_with(|config| {
        config.max_buffered_octets = 1 << 20;
        config.threads = 1.into();
    }));
    let mut peer = connect(&s);
    peer.set_write_timeout(Some(Duration::from_millis(200)))
        .expect("not zero");
    let many = request(&s, Version::V1_2).repeat(1000);
    // Until the server stops reading or closes.
    let mut sent = Ok(());
    for _ in 0..400 {
        sent = sent.and_then(|()| peer.write_all(&many));
    }
    assert!(sent.is_err(), "20 MiB of unread replies are kept somewhere");
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn an_unfinished_message_is_given_up_in_time() {
    let s = served_by(orb_with(|config| {
        config.input_timeout = Duration::from_millis(1);
    }));
    let mut peer = connect(&s);
    peer.write_all(b"GIOP\x01\x02\x01").expect("it is there");
    let mut octet = [0];
    let n = peer.read(&mut octet).unwrap_or(0);
    assert_eq!(n, 0, "the server closed");
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn more_connections_than_allowed_are_closed_and_the_rest_is_served() {
    let s = served_by(orb_with(|config| config.max_connections = 8));
    assert_eq!(add(&s.object, 1, 1), Ok(2));
    let mut peers: Vec<_> = (0..20).map(|_| connect(&s)).collect();
    // A request that arrives before the lane is full is served.
    until("those beyond the limit are closed", || {
        let incidents = s.server.snapshot().incidents;
        let closed = [Incident::Evicted, Incident::ServerFull];
        let counts = incidents.iter().filter(|(of, _)| closed.contains(of));
        counts.map(|(_, count)| count).sum::<u64>() >= 13
    });
    let served = peers
        .iter_mut()
        .filter_map(|peer| {
            peer.write_all(&request(&s, Version::V1_2)).ok()?;
            receive(peer).filter(|(header, _)| header.kind == MessageType::Reply)
        })
        .count();
    assert_eq!(served, 7, "one of the eight is the client's");
    assert_eq!(add(&s.object, 1, 1), Ok(2));
    let accepted = s.server.snapshot().pools[0].lanes[0].accepted;
    assert_eq!(accepted, 21, "the client has kept its connection");
}

#[test]
fn a_flood_of_connections_that_do_nothing_does_not_stop_service() {
    let s = served();
    for _ in 0..10 {
        let peers: Vec<_> = (0..100).map(|_| connect(&s)).collect();
        assert_eq!(add(&s.object, 1, 1), Ok(2));
        drop(peers);
    }
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[derive(Clone, Debug)]
enum Mutation {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Length(prop::sample::Index, u32),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    use proptest::collection::vec;
    prop_oneof![
        4 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(i, b)| Mutation::Set(i, b)),
        1 => any::<prop::sample::Index>().prop_map(Mutation::Cut),
        1 => (any::<prop::sample::Index>(), vec(any::<u8>(), 1..40))
            .prop_map(|(i, b)| Mutation::Insert(i, b)),
        2 => (
            any::<prop::sample::Index>(),
            prop_oneof![Just(u32::MAX), Just(0x7fff_ffff), any::<u32>()],
        )
            .prop_map(|(i, n)| Mutation::Length(i, n)),
    ]
}

fn mutate(mut octets: Vec<u8>, mutations: &[Mutation]) -> Vec<u8> {
    for mutation in mutations {
        if octets.is_empty() {
            break;
        }
        match mutation {
            Mutation::Set(i, octet) => {
                let i = i.index(octets.len());
                octets[i] = *octet;
            }
            Mutation::Cut(i) => octets.truncate(i.index(octets.len())),
            Mutation::Insert(i, more) => {
                let i = i.index(octets.len());
                octets.splice(i..i, more.iter().copied());
            }
            Mutation::Length(i, n) => {
                let i = i.index(octets.len()) & !3;
                for (octet, new) in octets[i..].iter_mut().zip(n.to_le_bytes()) {
                    *octet = new;
                }
            }
        }
    }
    octets
}

#[test]
fn mutated_requests_never_stop_the_server() {
    let s = served();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(400));
    let versions = prop::sample::select(vec![Version::V1_0, Version::V1_1, Version::V1_2]);
    let input = (versions, prop::collection::vec(mutation(), 1..6));
    let run = runner.run(&input, |(version, mutations)| {
        let octets = mutate(request(&s, version), &mutations);
        // All answers are GIOP, and the connection ends because the peer's side has.
        answers_to(&s, &octets);
        prop_assert_eq!(add(&s.object, 40, 2), Ok(42));
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
}
