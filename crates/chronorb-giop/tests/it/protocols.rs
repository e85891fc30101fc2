//! The common properties of all message protocols, and the particular ones of GIOPlite.

use chronorb_cdr::{Arena, CdrError, Decoder, Encoder, Endian, Frame};
use chronorb_giop::fragments::{Bounds, FragmentError, Reassembly};
use chronorb_giop::framing::{FramingError, NextMessage, next_message, next_message_of};
use chronorb_giop::{
    GiopLite, HeaderError, LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader,
    MessageProtocol, MessageType, Protocol, ReplyHeader, ReplyStatus, RequestHeader, ResponseFlags,
    ServiceContext, TaggedProfileView, Target, Version, contexts, decode_cancel_request,
    encode_cancel_request, encode_locate_reply, encode_locate_request, encode_reply,
    encode_request, finish_message, reply_id, set_message_len, start_message, start_reply,
};
use proptest::collection::vec;
use proptest::prelude::*;

use MessageType::{
    CancelRequest, CloseConnection, Fragment, LocateReply, LocateRequest, MessageError, Reply,
    Request,
};
use Protocol::{Giop, Lite};

const PROTOCOLS: [Protocol; 4] = [
    Giop(Version::V1_0),
    Giop(Version::V1_1),
    Giop(Version::V1_2),
    Lite,
];

/// A whole message, with what `write` writes after its header.
fn message(
    protocol: Protocol,
    kind: MessageType,
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<Frame, CdrError> {
    let mut frame = Frame::new(256, 1 << 20);
    write(&mut start_message(&mut frame, protocol, kind)?)?;
    finish_message(&mut frame);
    Ok(frame)
}

/// Reads what is after the header of a message, all of it.
fn read<R>(frame: &mut Frame, read: impl FnOnce(&mut Decoder<'_>, Protocol) -> R) -> R {
    let header = Protocol::read_header(frame.as_slice()).expect("it was written as one");
    assert_eq!(header.message_len(), frame.len());
    assert!(!header.more_fragments);
    let arena = Arena::new(4096);
    let mut d = header.decoder(frame, &arena);
    let result = read(&mut d, header.protocol);
    assert!(d.is_empty(), "{} octets are left", d.remaining());
    result
}

/// A request, with octets that are to be aligned to `align` as its body.
fn request(
    protocol: Protocol,
    header: &RequestHeader<'_>,
    body: &[u64],
) -> Result<Frame, CdrError> {
    message(protocol, Request, |e| {
        encode_request(e, protocol, header)?;
        if !body.is_empty() {
            protocol.pad_request(e)?;
        }
        body.iter().try_for_each(|number| e.write_u64(*number))
    })
}

fn reply(protocol: Protocol, header: &ReplyHeader<'_>, body: &[u64]) -> Result<Frame, CdrError> {
    message(protocol, Reply, |e| {
        encode_reply(e, protocol, header)?;
        if !body.is_empty() {
            protocol.pad_reply(e)?;
        }
        body.iter().try_for_each(|number| e.write_u64(*number))
    })
}

/// A decoder of what should be a message of GIOPlite.
fn decoder<'a>(frame: &'a mut Frame, arena: &'a Arena) -> Decoder<'a> {
    frame.decoder(GiopLite::HEADER_LEN, Endian::NATIVE, arena)
}

fn read_numbers(d: &mut Decoder<'_>, n: usize) -> Vec<u64> {
    (0..n)
        .map(|_| d.read_u64().expect("it was written"))
        .collect()
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop::sample::select(&PROTOCOLS[..])
}

fn octets() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

fn response() -> impl Strategy<Value = ResponseFlags> {
    prop::sample::select(vec![ResponseFlags::None, ResponseFlags::SyncWithTarget])
}

fn context_list() -> impl Strategy<Value = Vec<(u32, Vec<u8>)>> {
    vec((any::<u32>(), octets()), 0..4)
}

fn views(contexts: &[(u32, Vec<u8>)]) -> Vec<ServiceContext<'_>> {
    contexts
        .iter()
        .map(|(id, data)| ServiceContext { id: *id, data })
        .collect()
}

const REPLY_STATUSES: [ReplyStatus; 6] = [
    ReplyStatus::NoException,
    ReplyStatus::UserException,
    ReplyStatus::SystemException,
    ReplyStatus::LocationForward,
    ReplyStatus::LocationForwardPerm,
    ReplyStatus::NeedsAddressingMode,
];

const LOCATE_STATUSES: [LocateStatus; 6] = [
    LocateStatus::UnknownObject,
    LocateStatus::ObjectHere,
    LocateStatus::ObjectForward,
    LocateStatus::ObjectForwardPerm,
    LocateStatus::SystemException,
    LocateStatus::NeedsAddressingMode,
];

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(
        protocol in protocol(),
        request_id in any::<u32>(),
        response in response(),
        key in octets(),
        operation in "[a-z_]{0,40}",
        contexts in context_list(),
        body in vec(any::<u64>(), 0..4),
    ) {
        let contexts = views(&contexts);
        let header = RequestHeader {
            request_id,
            response,
            target: Target::Key(&key),
            operation: operation.as_bytes(),
            contexts: &contexts,
        };
        let mut frame = request(protocol, &header, &body).unwrap();
        prop_assert_eq!(reply_id(frame.as_slice()), Some(request_id));
        let waits = protocol.waits_for_target(frame.as_slice());
        let tells = protocol.version() >= Version::V1_2;
        prop_assert_eq!(waits, tells && response == ResponseFlags::SyncWithTarget);
        if let Some(at) = protocol.request_id_at() {
            let id = &frame.as_slice()[at..at + 4];
            prop_assert_eq!(id, request_id.to_ne_bytes());
        }
        read(&mut frame, |d, of| {
            prop_assert_eq!(of, protocol);
            prop_assert_eq!(RequestHeader::decode(d, of), Ok(header));
            prop_assert_eq!(read_numbers(d, body.len()), body);
            Ok(())
        })?;
    }

    #[test]
    fn a_reply_is_read_as_it_was_written(
        protocol in protocol(),
        request_id in any::<u32>(),
        status in prop::sample::select(&REPLY_STATUSES[..]),
        contexts in context_list(),
        body in vec(any::<u64>(), 0..4),
    ) {
        let contexts = views(&contexts);
        let header = ReplyHeader { request_id, status, contexts: &contexts };
        let written = reply(protocol, &header, &body);
        if protocol.version() < Version::V1_2 && status as u32 > 3 {
            prop_assert_eq!(written.err(), Some(CdrError::InvalidEnum));
            return Ok(());
        }
        let mut frame = written.unwrap();
        // In one go it is the same.
        let mut started = Frame::new(256, 1 << 16);
        start_reply(&mut Encoder::new(&mut started, Endian::NATIVE), protocol, &header).unwrap();
        prop_assert_eq!(&started.as_slice()[4..8], &frame.as_slice()[4..8]);
        let rest = protocol.header_len();
        prop_assert_eq!(&started.as_slice()[rest..], &frame.as_slice()[rest..started.len()]);
        prop_assert_eq!(reply_id(frame.as_slice()), Some(request_id));
        read(&mut frame, |d, of| {
            prop_assert_eq!(of, protocol);
            prop_assert_eq!(ReplyHeader::decode(d, of), Ok(header));
            prop_assert_eq!(read_numbers(d, body.len()), body);
            Ok(())
        })?;
    }

    #[test]
    fn a_locate_request_and_its_reply_are_read_as_they_were_written(
        protocol in protocol(),
        request_id in any::<u32>(),
        key in octets(),
        status in prop::sample::select(&LOCATE_STATUSES[..]),
    ) {
        let header = LocateRequestHeader { request_id, target: Target::Key(&key) };
        let frame = message(protocol, LocateRequest, |e| {
            encode_locate_request(e, protocol, &header)
        });
        read(&mut frame.unwrap(), |d, of| {
            prop_assert_eq!(LocateRequestHeader::decode(d, of), Ok(header));
            Ok(())
        })?;
        let header = LocateReplyHeader { request_id, status };
        let written = message(protocol, LocateReply, |e| {
            encode_locate_reply(e, protocol, &header)
        });
        if protocol.version() < Version::V1_2 && status as u32 > 2 {
            prop_assert_eq!(written.err(), Some(CdrError::InvalidEnum));
            return Ok(());
        }
        let mut frame = written.unwrap();
        prop_assert_eq!(reply_id(frame.as_slice()), Some(request_id));
        read(&mut frame, |d, of| {
            prop_assert_eq!(LocateReplyHeader::decode(d, of), Ok(header));
            Ok(())
        })?;
    }

    #[test]
    fn messages_of_all_protocols_in_one_stream_are_told_apart(
        all in vec((protocol(), 0..7_u8, vec(any::<u8>(), 0..40)), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let kinds = [
            Request, Reply, CancelRequest, LocateRequest, LocateReply,
            CloseConnection, MessageError,
        ];
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (protocol, kind, body) in &all {
            let kind = kinds[usize::from(*kind)];
            let frame = message(*protocol, kind, |e| e.write_octets(body)).unwrap();
            stream.extend_from_slice(frame.as_slice());
            expected.push((*protocol, kind, frame.len()));
        }
        let cut = cut.index(stream.len() + 1);
        let mut at = 0;
        for (protocol, kind, len) in expected {
            let framed = next_message_of::<Protocol>(&stream[at..], 1 << 16);
            let Ok(NextMessage::Complete { header, len: read }) = framed else {
                panic!("{framed:?}");
            };
            prop_assert_eq!((header.protocol, header.kind, read), (protocol, kind, len));
            if (at..at + len).contains(&cut) {
                let part = next_message_of::<Protocol>(&stream[at..cut], 1 << 16);
                let Ok(NextMessage::NeedMore { total }) = part else {
                    panic!("{part:?}");
                };
                prop_assert!((cut - at + 1..=len).contains(&total), "{total} of {len}");
            }
            at += len;
        }
        prop_assert_eq!(at, stream.len());
    }

    #[test]
    fn gioplite_spares_at_least_fifteen_octets_of_each_request(
        key in vec(any::<u8>(), 0..100),
        operation in "[a-z_]{1,40}",
        response in response(),
        contexts in context_list(),
        body in vec(any::<u64>(), 0..3),
    ) {
        let contexts = views(&contexts);
        let header = RequestHeader {
            request_id: 1,
            response,
            target: Target::Key(&key),
            operation: operation.as_bytes(),
            contexts: &contexts,
        };
        let len = |protocol| request(protocol, &header, &body).unwrap().len();
        let spared = len(Giop(Version::V1_2)) - len(Lite);
        match (contexts.is_empty(), body.is_empty()) {
            (true, true) => prop_assert!((24..=30).contains(&spared), "{spared}"),
            (true, false) => prop_assert!([24, 32].contains(&spared), "{spared}"),
            (false, _) => prop_assert!(spared >= 16, "{spared}"),
        }
    }

    #[test]
    fn what_becomes_of_a_message_on_its_way_is_read_or_refused(
        key in octets(),
        contexts in context_list(),
        status in prop::sample::select(&REPLY_STATUSES[..]),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let contexts = views(&contexts);
        let asked = RequestHeader {
            request_id: 1,
            response: ResponseFlags::SyncWithTarget,
            target: Target::Key(&key),
            operation: b"ping",
            contexts: &contexts,
        };
        let answered = ReplyHeader { request_id: 1, status, contexts: &contexts };
        for frame in [request(Lite, &asked, &[7]), reply(Lite, &answered, &[7])] {
            let mut frame = frame.unwrap();
            for (at, value) in &damage {
                let octets = frame.as_mut_slice();
                octets[at.index(octets.len())] = *value;
            }
            frame.truncate(cut.index(frame.len() + 1));
            let _ = next_message_of::<Protocol>(frame.as_slice(), 1 << 16);
            let _ = reply_id(frame.as_slice());
            let _ = Lite.waits_for_target(frame.as_slice());
            let _ = GiopLite::is_agreed_by(frame.as_slice());
            set_message_len(&mut frame, 100);
            let arena = Arena::new(1024);
            // What is read can be written, and is the same then.
            let read = RequestHeader::decode(&mut decoder(&mut frame, &arena), Lite);
            if let Ok(header) = read {
                let mut again = request(Lite, &header, &[]).unwrap();
                let mut d = decoder(&mut again, &arena);
                prop_assert_eq!(RequestHeader::decode(&mut d, Lite), Ok(header));
            }
            let read = ReplyHeader::decode(&mut decoder(&mut frame, &arena), Lite);
            if let Ok(header) = read {
                let mut again = reply(Lite, &header, &[]).unwrap();
                let mut d = decoder(&mut again, &arena);
                prop_assert_eq!(ReplyHeader::decode(&mut d, Lite), Ok(header));
            }
            let _ = LocateRequestHeader::decode(&mut decoder(&mut frame, &arena), Lite);
            let _ = LocateReplyHeader::decode(&mut decoder(&mut frame, &arena), Lite);
        }
    }

    #[test]
    fn whether_a_reply_agrees_is_told_of_any_octets(
        contexts in context_list(),
        is_there in any::<bool>(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut contexts = views(&contexts);
        contexts.retain(|context| context.id != contexts::GIOP_LITE);
        if is_there {
            contexts.push(AGREEMENT);
        }
        prop_assert_eq!(GiopLite::is_proposed_by(&contexts), is_there);
        let status = ReplyStatus::NoException;
        let header = ReplyHeader { request_id: 1, status, contexts: &contexts };
        let mut frame = reply(Giop(Version::V1_2), &header, &[7]).unwrap();
        prop_assert_eq!(GiopLite::is_agreed_by(frame.as_slice()), is_there);
        for (at, value) in &damage {
            let octets = frame.as_mut_slice();
            octets[at.index(octets.len())] = *value;
        }
        let _ = GiopLite::is_agreed_by(frame.as_slice());
    }
}

const AGREEMENT: ServiceContext<'static> = ServiceContext {
    id: contexts::GIOP_LITE,
    data: &contexts::GIOP_LITE_DATA,
};

#[test]
fn messages_that_are_no_more_than_their_header_or_an_id() {
    for protocol in PROTOCOLS {
        for kind in [CloseConnection, MessageError] {
            let frame = message(protocol, kind, |_| Ok(())).unwrap();
            assert_eq!(frame.len(), protocol.header_len());
            let header = Protocol::read_header(frame.as_slice()).unwrap();
            assert_eq!((header.kind, header.size), (kind, 0));
            if protocol == Lite {
                assert_eq!(frame.as_slice(), GiopLite::empty_message(kind));
            }
        }
        let frame = message(protocol, CancelRequest, |e| encode_cancel_request(e, 7));
        let mut frame = frame.unwrap();
        assert_eq!(reply_id(frame.as_slice()), Some(7));
        assert_eq!(read(&mut frame, |d, _| decode_cancel_request(d)), Ok(7));
    }
}

#[test]
fn the_octets_of_gioplite() {
    let header = RequestHeader {
        request_id: 0x0102_0304,
        response: ResponseFlags::SyncWithTarget,
        target: Target::Key(b"key"),
        operation: b"cube",
        contexts: &[],
    };
    let frame = request(Lite, &header, &[9]).unwrap();
    let number = 9_u64.to_ne_bytes();
    let expected: [&[u8]; 7] = [
        &27_u32.to_ne_bytes(),
        &[0, 3],
        &3_u16.to_ne_bytes(),
        &0x0102_0304_u32.to_ne_bytes(),
        &[4],
        b"keycube\0\0\0\0",
        &number,
    ];
    assert_eq!(frame.as_slice(), expected.concat());

    let header = ReplyHeader {
        request_id: 0x0102_0304,
        status: ReplyStatus::UserException,
        contexts: &[AGREEMENT],
    };
    let frame = reply(Lite, &header, &[]).unwrap();
    let expected: [&[u8]; 7] = [
        &21_u32.to_ne_bytes(),
        &[1, 0x81, 0, 0],
        &0x0102_0304_u32.to_ne_bytes(),
        &1_u32.to_ne_bytes(),
        &AGREEMENT.id.to_ne_bytes(),
        &2_u32.to_ne_bytes(),
        AGREEMENT.data,
    ];
    assert_eq!(frame.as_slice(), expected.concat());
}

#[test]
fn a_reply_of_gioplite_is_8_or_12_octets_shorter() {
    let header = ReplyHeader {
        request_id: 1,
        status: ReplyStatus::NoException,
        contexts: &[],
    };
    let len = |protocol, body: &[u64]| reply(protocol, &header, body).unwrap().len();
    let spared = |body| len(Giop(Version::V1_2), body) - len(Lite, body);
    assert_eq!((spared(&[]), spared(&[1])), (12, 8));
    let with_long = |protocol: Protocol| {
        let frame = message(protocol, Reply, |e| {
            encode_reply(e, protocol, &header)?;
            protocol.pad_reply(e)?;
            e.write_i32(1)
        });
        frame.unwrap().len()
    };
    assert_eq!(with_long(Giop(Version::V1_2)) - with_long(Lite), 12);
}

#[test]
fn what_gioplite_has_no_room_for_is_not_written() {
    let (long_key, long_name) = ([0; 1 << 16], [b'n'; 256]);
    let profile = Target::Profile(TaggedProfileView { tag: 0, data: &[] });
    for (target, operation, fits) in [
        (Target::Key(&long_key[1..]), &long_name[1..], true),
        (Target::Key(&long_key), b"ping", false),
        (Target::Key(b"key"), &long_name, false),
        (profile, b"ping", false),
    ] {
        let header = RequestHeader {
            request_id: 1,
            response: ResponseFlags::None,
            target,
            operation,
            contexts: &[],
        };
        assert_eq!(GiopLite::can_carry(&target, operation), fits);
        assert_eq!(request(Lite, &header, &[]).is_ok(), fits);
        let header = LocateRequestHeader {
            request_id: 1,
            target,
        };
        let written = message(Lite, LocateRequest, |e| {
            encode_locate_request(e, Lite, &header)
        });
        assert_eq!(written.is_ok(), GiopLite::can_carry(&target, b""));
    }
}

#[test]
fn who_takes_giop_alone_takes_nothing_else() {
    let lite = message(Lite, CancelRequest, |e| encode_cancel_request(e, 7)).unwrap();
    let bad = FramingError::Header(HeaderError::BadMagic);
    assert_eq!(next_message(lite.as_slice(), 100), Err(bad));
    assert_eq!(next_message(&lite.as_slice()[..1], 100), Err(bad));
    let giop = message(PROTOCOLS[2], CancelRequest, |e| encode_cancel_request(e, 7)).unwrap();
    assert!(next_message_of::<GiopLite>(giop.as_slice(), 100).is_err());
}

#[test]
fn headers_of_gioplite_that_are_none_are_refused() {
    let refused = |octets: &[u8]| match next_message_of::<Protocol>(octets, 1000) {
        Err(FramingError::Header(error)) => error,
        other => panic!("{other:?}"),
    };
    let most = (GiopLite::MAX_MESSAGE - GiopLite::HEADER_LEN) as u32;
    for size in [most + 1, u32::MAX] {
        let octets = [&size.to_ne_bytes()[..], &[0]].concat();
        assert_eq!(refused(&octets), HeaderError::BadSize(size));
    }
    for kind in [Fragment as u8, 8, 255] {
        assert_eq!(refused(&[0, 0, 0, 0, kind]), HeaderError::BadType(kind));
    }
    let octets = [&most.to_ne_bytes()[..], &[0]].concat();
    let too_large = FramingError::TooLarge(GiopLite::MAX_MESSAGE);
    assert_eq!(next_message_of::<Protocol>(&octets, 1000), Err(too_large));
    assert!(GiopLite::read_header(&octets).is_ok());
    // All that could be taken for GIOP is greater.
    for first in [u32::from_le_bytes(*b"GIOP"), u32::from_be_bytes(*b"GIOP")] {
        assert!(first as usize > GiopLite::MAX_MESSAGE);
    }
}

#[test]
fn flags_and_statuses_that_are_none_are_refused() {
    let header = RequestHeader {
        request_id: 1,
        response: ResponseFlags::None,
        target: Target::Key(b"key"),
        operation: b"ping",
        contexts: &[],
    };
    for flags in 0..=255 {
        let mut frame = request(Lite, &header, &[]).unwrap();
        frame.as_mut_slice()[5] = flags;
        let arena = Arena::new(64);
        let mut d = frame.decoder(5, Endian::NATIVE, &arena);
        let is_read = RequestHeader::decode(&mut d, Lite).is_ok();
        assert_eq!(is_read, [0, 1, 3].contains(&flags), "{flags}");
    }
    for status in 0..=127 {
        let mut octets = [0, 0, 0, status, 0, 0, 1, 0, 0, 0];
        let arena = Arena::new(64);
        let mut d = Decoder::new(&mut octets[3..], 5, Endian::NATIVE, &arena);
        let read = ReplyHeader::decode(&mut d, Lite).map(|header| header.status as u8);
        assert_eq!(read.ok(), (status < 6).then_some(status));
    }
}

#[test]
fn a_message_that_is_not_whole_gets_no_length() {
    for len in 0..GiopLite::HEADER_LEN {
        let mut frame = Frame::new(16, 16);
        frame.extend_from_slice(&vec![9; len]).unwrap();
        finish_message(&mut frame);
        assert_eq!(frame.as_slice(), vec![9; len]);
    }
    // The rest of it is elsewhere.
    for protocol in PROTOCOLS {
        let mut frame = message(protocol, Request, |_| Ok(())).unwrap();
        set_message_len(&mut frame, 1000);
        let header = Protocol::read_header(frame.as_slice()).unwrap();
        assert_eq!(header.message_len(), 1000);
    }
}

#[test]
fn gioplite_is_never_in_parts_and_cancels_what_is() {
    let first = MessageHeader {
        protocol: Version::V1_2.into(),
        endian: Endian::NATIVE,
        more_fragments: true,
        kind: Request,
        size: 4,
    };
    let first = [&first.to_bytes()[..], &7_u32.to_ne_bytes()].concat();
    let mut reassembly = Reassembly::new(Bounds::default());
    assert_eq!(
        reassembly.push(&first).map(|whole| whole.is_some()),
        Ok(false)
    );
    for (id, left) in [(8, 1), (7, 0)] {
        let cancel = message(Lite, CancelRequest, |e| encode_cancel_request(e, id)).unwrap();
        assert!(reassembly.push(cancel.as_slice()).unwrap().is_none());
        assert_eq!(reassembly.open_messages(), left);
    }
    let header = ReplyHeader {
        request_id: 1,
        status: ReplyStatus::NoException,
        contexts: &[],
    };
    let whole = reply(Lite, &header, &[]).unwrap();
    let refused = reassembly.push(whole.as_slice()).err();
    assert_eq!(refused, Some(FragmentError::NotInParts(Reply)));
}
