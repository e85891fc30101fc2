//! Requests beyond `-ORBMaxMessageSize`: they are skipped within bounds, and answered by
//! `IMP_LIMIT`.

use chronorb_cdr::{Arena, Frame};
use chronorb_giop::{
    LocateReplyHeader, LocateRequestHeader, LocateStatus, ReplyHeader, ReplyStatus,
    encode_locate_request, minor,
};
#[cfg(feature = "baselines")]
use chronorb_orb::ThreadpoolStrategy::WorkerPool;
use chronorb_orb::ThreadpoolStrategy::{HalfSyncHalfAsync, LeaderFollowers, ThreadPerConnection};
use chronorb_orb::{Orb, SystemException, SystemExceptionKind, ThreadpoolStrategy};

use super::*;

const LIMIT: usize = 64 << 10;
/// The maximum length of skipped messages in fragments, in octets.
const SKIPPED: usize = 8 * LIMIT;
const REFUSED: SystemException =
    SystemException::no(SystemExceptionKind::ImpLimit, minor::MESSAGE_TOO_LARGE);

/// Returns a server whose lanes buffer less for slow peers than one oversized message.
fn limited(strategy: ThreadpoolStrategy) -> Orb {
    orb_with(|config| {
        config.max_message_size = LIMIT;
        config.max_buffered_octets = 2 * LIMIT;
        config.threadpool_strategy = strategy;
    })
}

/// Returns a request to `octets` whose message has this length.
fn request_of(s: &ServedProbe, version: Version, response: ResponseFlags, len: usize) -> Vec<u8> {
    let with = |octets: usize| {
        let octets = vec![7; octets];
        let write = |e: &mut Encoder<'_>| e.write_octet_seq(&octets);
        message(s, version, b"octets", response, &[], &write)
    };
    let less = with(0).len();
    with(len - less)
}

/// Returns the same message in fragments with bodies of `size` octets.
fn in_fragments(whole: &[u8], size: usize) -> Vec<u8> {
    let header = MessageHeader::parse(whole).expect("our own");
    let names_request = header.version() >= Version::V1_2;
    let mut parts = whole[HEADER_LEN..].chunks(size).peekable();
    let mut octets = Vec::new();
    let mut kind = header.kind;
    while let Some(part) = parts.next() {
        let id = if names_request && kind == MessageType::Fragment {
            &whole[HEADER_LEN..HEADER_LEN + 4]
        } else {
            &[]
        };
        let header = MessageHeader {
            kind,
            more_fragments: parts.peek().is_some(),
            size: (id.len() + part.len()) as u32,
            ..header
        };
        octets.extend_from_slice(&header.to_bytes());
        octets.extend_from_slice(id);
        octets.extend_from_slice(part);
        kind = MessageType::Fragment;
    }
    octets
}

/// Returns the exception in the next message.
fn refusal(stream: &mut TcpStream) -> Option<SystemException> {
    let (header, octets) = receive(stream)?;
    let mut frame = Frame::new(octets.len(), octets.len());
    frame.extend_from_slice(&octets).expect("it fits");
    let arena = Arena::new(1024);
    let mut d = header.decoder(&mut frame, &arena);
    match header.kind {
        MessageType::Reply => {
            let reply = ReplyHeader::decode(&mut d, header.protocol).expect("a reply");
            assert_eq!(reply.status, ReplyStatus::SystemException);
        }
        MessageType::LocateReply => {
            let reply = LocateReplyHeader::decode(&mut d, header.protocol).expect("a reply");
            assert_eq!(reply.status, LocateStatus::SystemException);
        }
        other => panic!("{other:?}"),
    }
    Some(SystemException::decode(&mut d).expect("an exception"))
}

/// Sends octets in another thread, so that the receiver may stop reading.
fn send(stream: &TcpStream, octets: Vec<u8>) {
    let mut stream = stream.try_clone().expect("it is open");
    std::thread::spawn(move || stream.write_all(&octets));
}

fn assert_serves(s: &ServedProbe, stream: &mut TcpStream) {
    stream
        .write_all(&request(s, Version::V1_2))
        .expect("it is open");
    let (header, octets) = receive(stream).expect("a reply");
    assert_eq!(header.kind, MessageType::Reply);
    assert!(octets.ends_with(&42_i32.to_ne_bytes()));
}

#[test]
fn a_request_beyond_the_limit_is_refused_and_the_next_is_served() {
    let twoway = ResponseFlags::SyncWithTarget;
    for strategy in [
        LeaderFollowers,
        HalfSyncHalfAsync,
        #[cfg(feature = "baselines")]
        WorkerPool,
        ThreadPerConnection,
    ] {
        let s = served_by(limited(strategy));
        let mut stream = connect(&s);
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            for len in [LIMIT + 1, LIMIT + 20_000, 2 * LIMIT, 4 * SKIPPED] {
                send(&stream, request_of(&s, version, twoway, len));
                assert_eq!(refusal(&mut stream), Some(REFUSED), "{version:?}, {len}");
            }
            assert_serves(&s, &mut stream);
        }
        // What is just within the limit is served.
        send(&stream, request_of(&s, Version::V1_2, twoway, LIMIT - 100));
        let (_, reply) = receive(&mut stream).expect("a reply");
        assert!(reply.len() > LIMIT - 300);
    }
}

#[test]
fn fragments_have_the_same_limit_as_whole_messages() {
    let twoway = ResponseFlags::SyncWithTarget;
    let s = served_by(limited(LeaderFollowers));
    let mut stream = connect(&s);
    for version in [Version::V1_1, Version::V1_2] {
        for (len, size) in [
            (LIMIT + 1, LIMIT / 4),
            (4 * LIMIT, 1024),
            (4 * LIMIT, 3 * LIMIT),
            (SKIPPED - 1024, LIMIT),
        ] {
            let whole = request_of(&s, version, twoway, len);
            send(&stream, in_fragments(&whole, size));
            let refused = refusal(&mut stream);
            assert_eq!(refused, Some(REFUSED), "{version:?}, {len} by {size}");
        }
        // The headers of fragments are as long as their content, and do not count.
        let whole = request_of(&s, version, twoway, LIMIT - 100);
        send(&stream, in_fragments(&whole, 16));
        let (_, reply) = receive(&mut stream).expect("a reply");
        assert!(reply.len() > LIMIT - 300, "{}", reply.len());
    }
    assert_serves(&s, &mut stream);
}

#[test]
fn a_oneway_beyond_the_limit_is_skipped_without_an_answer() {
    let s = served_by(limited(LeaderFollowers));
    let mut stream = connect(&s);
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let oneway = request_of(&s, version, ResponseFlags::None, 3 * LIMIT);
        let fragmented = if version >= Version::V1_1 {
            in_fragments(&oneway, LIMIT / 2)
        } else {
            Vec::new()
        };
        let octets = [oneway, fragmented, request(&s, Version::V1_2)].concat();
        send(&stream, octets);
        let (_, octets) = receive(&mut stream).expect("a reply");
        assert!(octets.ends_with(&42_i32.to_ne_bytes()), "{version:?}");
    }
}

#[test]
fn a_locate_request_beyond_the_limit_is_refused() {
    let s = served_by(limited(LeaderFollowers));
    let mut frame = Frame::new(1024, SKIPPED);
    let kind = MessageType::LocateRequest;
    let mut e = start_message(&mut frame, Version::V1_2, kind).expect("it fits");
    let header = LocateRequestHeader {
        request_id: 5,
        target: Target::Key(b"Absent"),
    };
    encode_locate_request(&mut e, Version::V1_2, &header).expect("it fits");
    e.write_octets(&vec![0; 2 * LIMIT]).expect("it fits");
    finish_message(&mut frame);
    let mut stream = connect(&s);
    send(&stream, frame.as_slice().to_vec());
    assert_eq!(refusal(&mut stream), Some(REFUSED));
    assert_serves(&s, &mut stream);
}

#[test]
fn what_cannot_be_skipped_gets_message_error_and_the_close() {
    let s = served_by(limited(LeaderFollowers));
    let twoway = ResponseFlags::SyncWithTarget;
    let nothing = |_: &mut Encoder<'_>| Ok(());
    let beyond = request_of(&s, Version::V1_2, twoway, SKIPPED + 8);
    let fragmented = in_fragments(&beyond, LIMIT);
    // Its header promises more than any message has.
    let mut endless = beyond;
    endless[8..12].copy_from_slice(&((256_u32 << 20) + 1).to_ne_bytes());
    // Its header is longer than the buffer.
    let key = vec![7; 2 * LIMIT];
    let unreadable = request_to(&key, Version::V1_2, b"add", twoway, &[], &nothing);
    let mut reply = request_of(&s, Version::V1_2, twoway, 2 * LIMIT);
    reply[7] = MessageType::Reply as u8;
    for octets in [endless, fragmented, unreadable, reply] {
        let mut stream = connect(&s);
        send(&stream, octets);
        let answer = receive(&mut stream).map(|(header, _)| header.kind);
        // A reset may overtake the answer.
        assert!(matches!(answer, None | Some(MessageType::MessageError)));
        assert!(is_cut_off(&mut stream, Ok(())));
    }
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn a_message_that_is_skipped_has_no_more_time_than_others() {
    let s = served_by(orb_with(|config| {
        config.max_message_size = LIMIT;
        config.input_timeout = Duration::from_millis(1);
    }));
    let twoway = ResponseFlags::SyncWithTarget;
    let mut octets = request_of(&s, Version::V1_2, twoway, 4 * LIMIT);
    octets.truncate(2 * LIMIT);
    let mut stream = connect(&s);
    let sent = stream.write_all(&octets);
    assert!(is_cut_off(&mut stream, sent), "the rest is waited for");
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn a_call_beyond_the_servers_limit_fails_once_and_keeps_its_connection() {
    for fragment_size in [0, 1024] {
        let s = served_by(orb_with(|config| {
            config.max_message_size = LIMIT;
            // A second connection would be refused.
            config.max_connections = 1;
        }));
        let client = orb_with(|config| config.fragment_size = fragment_size);
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("the reference reads");
        assert_eq!(add(&object, 1, 1), Ok(2));
        let octets = vec![7; 2 * LIMIT];
        let outcome = call(&object, "octets", &|e| e.write_octet_seq(&octets), |_| {
            Ok(())
        });
        assert_eq!(outcome, Err(REFUSED), "fragments of {fragment_size}");
        assert_eq!(add(&object, 1, 1), Ok(2));
        client.shutdown(false).expect("it can be shut down");
    }
}
