//! Round trips of all messages, in the three versions of GIOP and in both byte orders.

use chronorb_cdr::{Arena, CdrError, Decoder, Encoder, Endian, Frame};
use chronorb_giop::framing::{FramingError, NextMessage, next_message};
use chronorb_giop::{
    AddressingDisposition, CompletionStatus, HEADER_LEN, HeaderError, IiopProfile, Ior,
    LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader, MessageType, ReplyHeader,
    ReplyStatus, RequestHeader, ResponseFlags, ServiceContext, SystemException,
    SystemExceptionKind, TaggedProfile, Target, Version, contexts, decode_cancel_request,
    encode_cancel_request, encode_locate_reply, encode_locate_request, encode_reply,
    encode_request, finish_message, reply_id, start_message, start_message_in,
};
use proptest::collection::vec;
use proptest::prelude::*;

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

/// A whole message, with what `write` writes as its body.
fn message(
    version: Version,
    endian: Endian,
    kind: MessageType,
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<Frame, CdrError> {
    let mut frame = Frame::new(256, 1 << 16);
    write(&mut start_message_in(&mut frame, version, kind, endian)?)?;
    finish_message(&mut frame);
    let header = MessageHeader {
        protocol: version.into(),
        endian,
        more_fragments: false,
        kind,
        size: (frame.len() - HEADER_LEN) as u32,
    };
    assert_eq!(MessageHeader::parse(frame.as_slice()), Ok(header));
    Ok(frame)
}

/// Reads the body of a message.
fn read<R>(frame: &mut Frame, read: impl FnOnce(&mut Decoder<'_>) -> R) -> R {
    let header = MessageHeader::parse(frame.as_slice()).unwrap();
    let arena = Arena::new(4096);
    let body = &mut frame.as_mut_slice()[HEADER_LEN..];
    read(&mut Decoder::new(body, HEADER_LEN, header.endian, &arena))
}

fn version() -> impl Strategy<Value = Version> {
    prop::sample::select(&VERSIONS[..])
}

fn endian() -> impl Strategy<Value = Endian> {
    any::<bool>().prop_map(Endian::from_flag)
}

fn octets() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..20)
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

/// A reference whose only profile has this key.
fn reference(key: &[u8]) -> Ior {
    let profile = IiopProfile {
        version: Version::V1_2,
        host: "localhost".into(),
        port: 2809,
        object_key: key.to_vec(),
        components: Vec::new(),
    };
    Ior {
        type_id: "IDL:Test:1.0".into(),
        profiles: vec![profile.tagged().unwrap()],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests(
        version in version(),
        endian in endian(),
        request_id in any::<u32>(),
        response in prop::sample::select(&[
            ResponseFlags::None,
            ResponseFlags::SyncWithServer,
            ResponseFlags::SyncWithTarget,
        ][..]),
        key in octets(),
        addressing in 0..3,
        operation in "[a-z_]{1,12}",
        contexts in context_list(),
        body in octets(),
    ) {
        let ior = reference(&key);
        let contexts = views(&contexts);
        let header = RequestHeader {
            request_id,
            response,
            target: match addressing {
                0 => Target::Key(&key),
                1 => Target::Profile(ior.profiles[0].as_view()),
                _ => Target::Reference { index: 0, ior: &ior },
            },
            operation: operation.as_bytes(),
            contexts: &contexts,
        };
        let mut frame = message(version, endian, MessageType::Request, |e| {
            encode_request(e, version, &header)?;
            if version >= Version::V1_2 && !body.is_empty() {
                e.align(8)?;
            }
            e.write_octets(&body)
        })
        .unwrap();
        prop_assert_eq!(reply_id(frame.as_slice()), Some(request_id));
        read(&mut frame, |d| {
            let read = RequestHeader::decode(d, version).unwrap();
            assert_eq!(read.target.key(), Some(&key[..]));
            let mut expected = header;
            if version < Version::V1_2 {
                // The older versions know keys only, and only one kind of reply.
                expected.target = Target::Key(&key);
                if response != ResponseFlags::None {
                    expected.response = ResponseFlags::SyncWithTarget;
                }
            }
            assert_eq!(read, expected);
            assert_eq!(d.read_octets(d.remaining()).unwrap(), body);
        });
    }

    #[test]
    fn replies(
        version in version(),
        endian in endian(),
        request_id in any::<u32>(),
        status in prop::sample::select(&[
            ReplyStatus::NoException,
            ReplyStatus::UserException,
            ReplyStatus::SystemException,
            ReplyStatus::LocationForward,
            ReplyStatus::LocationForwardPerm,
            ReplyStatus::NeedsAddressingMode,
        ][..]),
        contexts in context_list(),
        body in octets(),
    ) {
        let contexts = views(&contexts);
        let header = ReplyHeader { request_id, status, contexts: &contexts };
        let written = message(version, endian, MessageType::Reply, |e| {
            encode_reply(e, version, &header)?;
            if version >= Version::V1_2 && !body.is_empty() {
                e.align(8)?;
            }
            e.write_octets(&body)
        });
        if version < Version::V1_2 && status as u32 > 3 {
            prop_assert_eq!(written.err(), Some(CdrError::InvalidEnum));
            return Ok(());
        }
        let mut frame = written.unwrap();
        prop_assert_eq!(reply_id(frame.as_slice()), Some(request_id));
        read(&mut frame, |d| {
            assert_eq!(ReplyHeader::decode(d, version).unwrap(), header);
            assert_eq!(d.read_octets(d.remaining()).unwrap(), body);
        });
    }

    #[test]
    fn locate_requests_and_replies(
        version in version(),
        endian in endian(),
        request_id in any::<u32>(),
        key in octets(),
        status in prop::sample::select(&[
            LocateStatus::UnknownObject,
            LocateStatus::ObjectHere,
            LocateStatus::ObjectForward,
            LocateStatus::ObjectForwardPerm,
            LocateStatus::SystemException,
            LocateStatus::NeedsAddressingMode,
        ][..]),
    ) {
        let request = LocateRequestHeader { request_id, target: Target::Key(&key) };
        let mut frame = message(version, endian, MessageType::LocateRequest, |e| {
            encode_locate_request(e, version, &request)
        })
        .unwrap();
        read(&mut frame, |d| {
            assert_eq!(LocateRequestHeader::decode(d, version).unwrap(), request);
            assert!(d.is_empty());
        });

        let reply = LocateReplyHeader { request_id, status };
        let written = message(version, endian, MessageType::LocateReply, |e| {
            encode_locate_reply(e, version, &reply)
        });
        if version < Version::V1_2 && status as u32 > 2 {
            prop_assert_eq!(written.err(), Some(CdrError::InvalidEnum));
            return Ok(());
        }
        let mut frame = written.unwrap();
        prop_assert_eq!(reply_id(frame.as_slice()), Some(request_id));
        read(&mut frame, |d| {
            assert_eq!(LocateReplyHeader::decode(d, version).unwrap(), reply);
            assert!(d.is_empty());
        });
    }

    #[test]
    fn system_exceptions(
        endian in endian(),
        kind in prop::sample::select(SystemExceptionKind::ALL),
        minor in any::<u32>(),
        completed in prop::sample::select(&[
            CompletionStatus::Yes,
            CompletionStatus::No,
            CompletionStatus::Maybe,
        ][..]),
    ) {
        let exception = SystemException::new(kind, minor, completed);
        let mut frame = message(Version::V1_2, endian, MessageType::Reply, |e| exception.encode(e))
            .unwrap();
        prop_assert_eq!(read(&mut frame, SystemException::decode), Ok(exception));
        let id = exception.repository_id();
        prop_assert_eq!(SystemException::from_repository_id(id, minor, completed), Some(exception));
    }

    #[test]
    fn references_and_dispositions_as_bodies(endian in endian(), key in octets()) {
        let mut ior = reference(&key);
        ior.profiles.push(TaggedProfile { tag: 0x5441_4f00, data: key });
        let mut frame = message(Version::V1_2, endian, MessageType::Reply, |e| {
            ior.encode(e)?;
            Ior::nil().encode(e)?;
            AddressingDisposition::Reference.encode(e)
        })
        .unwrap();
        read(&mut frame, |d| {
            assert_eq!(Ior::decode(d).unwrap(), ior);
            assert!(Ior::decode(d).unwrap().is_nil());
            let disposition = AddressingDisposition::decode(d);
            assert_eq!(disposition, Ok(AddressingDisposition::Reference));
        });
    }

    /// A header of the usual form is read at once, and any other value by value. Before a joint
    /// all are read value by value, so both ways can be compared.
    #[test]
    fn a_header_that_is_read_at_once_is_as_read_by_parts(
        (id, flags) in (any::<u32>(), 0..3usize),
        key in octets(),
        operation in "[a-z]{0,20}",
        contexts in prop_oneof![Just(Vec::new()), context_list()],
        body in vec(any::<u8>(), 0..20),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let contexts = views(&contexts);
        let request = RequestHeader {
            request_id: id,
            response: [
                ResponseFlags::None,
                ResponseFlags::SyncWithServer,
                ResponseFlags::SyncWithTarget,
            ][flags],
            target: Target::Key(&key),
            operation: operation.as_bytes(),
            contexts: &contexts,
        };
        let reply = ReplyHeader {
            request_id: id,
            status: ReplyStatus::NoException,
            contexts: &contexts,
        };
        let version = Version::V1_2;
        let write_body = |e: &mut Encoder<'_>| {
            if !body.is_empty() {
                e.align(8)?;
            }
            e.write_octets(&body)
        };
        let request = message(version, Endian::NATIVE, MessageType::Request, |e| {
            encode_request(e, version, &request)?;
            write_body(e)
        });
        let reply = message(version, Endian::NATIVE, MessageType::Reply, |e| {
            encode_reply(e, version, &reply)?;
            write_body(e)
        });
        for mut frame in [request.unwrap(), reply.unwrap()] {
            for (at, value) in &damage {
                let octets = frame.as_mut_slice();
                octets[at.index(octets.len())] = *value;
            }
            let len = frame.len();
            let mut joined = Frame::new(len, usize::MAX);
            joined.extend_from_slice(frame.as_slice()).unwrap();
            joined.join(&[7; 40]).unwrap();
            let arena = Arena::new(1 << 12);
            let mut d = frame.decoder(HEADER_LEN, Endian::NATIVE, &arena);
            let mut by_parts = joined.decoder(HEADER_LEN, Endian::NATIVE, &arena);
            // A damaged length may lead beyond the joint.
            let is_before = |d: &Decoder<'_>| d.position() < len;
            let read = RequestHeader::decode(&mut d, version);
            let expected = RequestHeader::decode(&mut by_parts, version);
            if is_before(&by_parts) {
                prop_assert_eq!(read, expected);
                prop_assert!(read.is_err() || d.position() == by_parts.position());
            }
            let mut d = frame.decoder(HEADER_LEN, Endian::NATIVE, &arena);
            let mut by_parts = joined.decoder(HEADER_LEN, Endian::NATIVE, &arena);
            let read = ReplyHeader::decode(&mut d, version);
            let expected = ReplyHeader::decode(&mut by_parts, version);
            if is_before(&by_parts) {
                prop_assert_eq!(read, expected);
                prop_assert!(read.is_err() || d.position() == by_parts.position());
            }
        }
    }

    /// A valid message of which some octets are wrong, and that may be cut.
    #[test]
    fn broken_messages_are_read_or_refused(
        version in version(),
        endian in endian(),
        key in octets(),
        as_reference in any::<bool>(),
        contexts in context_list(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let ior = reference(&key);
        let contexts = views(&contexts);
        let target = if as_reference {
            Target::Reference { index: 0, ior: &ior }
        } else {
            Target::Key(&key)
        };
        let request = RequestHeader {
            request_id: 1,
            response: ResponseFlags::SyncWithTarget,
            target,
            operation: b"ping",
            contexts: &contexts,
        };
        let reply = ReplyHeader {
            request_id: 1,
            status: ReplyStatus::LocationForward,
            contexts: &contexts,
        };
        let request = message(version, endian, MessageType::Request, |e| {
            encode_request(e, version, &request)
        });
        let reply = message(version, endian, MessageType::Reply, |e| {
            encode_reply(e, version, &reply)?;
            if version >= Version::V1_2 {
                e.align(8)?;
            }
            ior.encode(e)
        });
        for mut frame in [request.unwrap(), reply.unwrap()] {
            for (at, value) in &damage {
                let octets = frame.as_mut_slice();
                octets[at.index(octets.len())] = *value;
            }
            frame.truncate(cut.index(frame.len() + 1));
            let _ = next_message(frame.as_slice(), 1 << 16);
            let _ = reply_id(frame.as_slice());
            let arena = Arena::new(1024);
            let mut d = frame.decoder(HEADER_LEN, endian, &arena);
            if let Ok(header) = RequestHeader::decode(&mut d, version) {
                header.target.key();
            }
            let mut d = frame.decoder(HEADER_LEN, endian, &arena);
            if ReplyHeader::decode(&mut d, version).is_ok() {
                let _ = Ior::decode(&mut d);
            }
        }
    }

    #[test]
    fn any_octets_are_read_or_refused(
        mut bytes in vec(prop_oneof![Just(0u8), Just(1), Just(3), any::<u8>()], 0..120),
        version in version(),
        endian in endian(),
    ) {
        let arena = Arena::new(512);
        let attempts: [fn(&mut Decoder<'_>, Version) -> bool; 6] = [
            |d, version| RequestHeader::decode(d, version).is_ok(),
            |d, version| ReplyHeader::decode(d, version).is_ok(),
            |d, version| LocateRequestHeader::decode(d, version).is_ok(),
            |d, version| LocateReplyHeader::decode(d, version).is_ok(),
            |d, _| SystemException::decode(d).is_ok(),
            |d, _| Ior::decode(d).is_ok(),
        ];
        for attempt in attempts {
            attempt(&mut Decoder::new(&mut bytes, HEADER_LEN, endian, &arena), version);
        }
    }
}

#[test]
fn messages_without_a_body() {
    for kind in [MessageType::CloseConnection, MessageType::MessageError] {
        for version in VERSIONS {
            let frame = message(version, Endian::Big, kind, |_| Ok(())).unwrap();
            assert_eq!(frame.len(), HEADER_LEN);
        }
    }
}

#[test]
fn a_cancel_request_names_its_request() {
    let mut frame = message(
        Version::V1_0,
        Endian::Big,
        MessageType::CancelRequest,
        |e| encode_cancel_request(e, 7),
    )
    .unwrap();
    assert_eq!(read(&mut frame, decode_cancel_request), Ok(7));
}

#[test]
fn a_plain_result_is_recognised_by_its_octets_alone() {
    let foreign = if Endian::NATIVE.is_little() {
        Endian::Big
    } else {
        Endian::Little
    };
    let context = [ServiceContext { id: 1, data: b"x" }];
    for version in VERSIONS {
        for endian in [Endian::NATIVE, foreign] {
            for status in [ReplyStatus::NoException, ReplyStatus::UserException] {
                for contexts in [&[], &context[..]] {
                    let reply = ReplyHeader {
                        request_id: 0x0102_0304,
                        status,
                        contexts,
                    };
                    let mut frame = message(version, endian, MessageType::Reply, |e| {
                        encode_reply(e, version, &reply)
                    })
                    .unwrap();
                    let header = MessageHeader::parse(frame.as_slice()).unwrap();
                    let id = ReplyHeader::id_of_plain_result(header, frame.as_slice());
                    let is_plain = version == Version::V1_2
                        && endian == Endian::NATIVE
                        && status == ReplyStatus::NoException
                        && contexts.is_empty();
                    assert_eq!(id, is_plain.then_some(reply.request_id));
                    assert_eq!(ReplyHeader::is_own_result(frame.as_slice()), is_plain);
                    let end = frame.len() - 1;
                    let part = &frame.as_slice()[..end];
                    assert_eq!(ReplyHeader::id_of_plain_result(header, part), None);
                    assert!(!ReplyHeader::is_own_result(part));
                    if is_plain {
                        read(&mut frame, |d| {
                            assert_eq!(ReplyHeader::decode(d, version), Ok(reply));
                            assert_eq!(d.position(), ReplyHeader::RESULT_AT);
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn a_body_stands_at_8_in_giop_1_2_and_no_padding_where_there_is_none() {
    let header = ReplyHeader {
        request_id: 1,
        status: ReplyStatus::NoException,
        contexts: &[ServiceContext { id: 1, data: b"x" }],
    };
    let mut frame = Frame::new(64, 64);
    let mut e = start_message(&mut frame, Version::V1_2, MessageType::Reply).unwrap();
    encode_reply(&mut e, Version::V1_2, &header).unwrap();
    assert_eq!(e.position(), 33);
    read(&mut frame, |d| {
        ReplyHeader::decode(d, Version::V1_2).unwrap();
        assert_eq!(d.position(), 33);
    });
    frame.extend_from_slice(&[0; 8]).unwrap();
    read(&mut frame, |d| {
        ReplyHeader::decode(d, Version::V1_2).unwrap();
        assert_eq!((d.position(), d.remaining()), (40, 1));
    });
}

#[test]
fn an_operation_without_its_nul_is_refused() {
    let mut frame = message(Version::V1_2, Endian::Big, MessageType::Request, |e| {
        e.write_u32(1)?;
        e.write_u32(3 << 24)?;
        e.write_u16(0)?;
        e.write_octet_seq(b"key")?;
        e.write_octet_seq(b"ping")?;
        e.write_u32(0)
    })
    .unwrap();
    let read = read(&mut frame, |d| {
        RequestHeader::decode(d, Version::V1_2).err()
    });
    assert_eq!(read, Some(CdrError::UnterminatedString));
}

#[test]
fn a_key_is_found_only_where_there_is_one() {
    let mut ior = reference(b"key");
    let at = |index| Target::Reference { index, ior: &ior }.key();
    assert_eq!(at(0), Some(&b"key"[..]));
    assert_eq!(at(1), None);
    ior.profiles[0].data.truncate(20);
    assert_eq!(Target::Profile(ior.profiles[0].as_view()).key(), None);
    ior.profiles[0].tag = 1;
    assert_eq!(Target::Profile(ior.profiles[0].as_view()).key(), None);
}

#[test]
fn the_propagated_priority_is_read_in_both_byte_orders() {
    assert_eq!(
        contexts::decode_priority(&contexts::encode_priority(-3)),
        Ok(-3)
    );
    assert_eq!(contexts::decode_priority(&[0, 0, 1, 2]), Ok(0x102));
    assert_eq!(contexts::decode_priority(&[1, 0, 1, 2]), Ok(0x201));
    assert_eq!(
        contexts::decode_priority(&[1, 0, 1]),
        Err(CdrError::EndOfData)
    );
}

#[test]
fn a_header_is_refused_by_what_is_wrong_with_it() {
    let parse = |bytes: &[u8]| MessageHeader::parse(bytes).unwrap_err();
    assert_eq!(parse(b"GIOP\x01\x02\0"), HeaderError::TooShort);
    assert_eq!(parse(b"GET / HTTP/1.1"), HeaderError::BadMagic);
    assert_eq!(
        parse(b"GE"),
        HeaderError::BadMagic,
        "there is no need to wait for more"
    );
    let newer = HeaderError::BadVersion(Version::new(1, 3));
    assert_eq!(parse(b"GIOP\x01\x03\0\0\0\0\0\0"), newer);
    assert_eq!(
        parse(b"GIOP\x01\x02\0\x08\0\0\0\0"),
        HeaderError::BadType(8)
    );
    let fragment = HeaderError::BadType(7);
    assert_eq!(
        parse(b"GIOP\x01\0\0\x07\0\0\0\0"),
        fragment,
        "there is none in 1.0"
    );
}

#[test]
fn a_stream_is_cut_into_messages() {
    let frame = message(Version::V1_2, Endian::Big, MessageType::Reply, |e| {
        e.write_u64(0)
    })
    .unwrap();
    let stream = [frame.as_slice(), frame.as_slice()].concat();
    for received in 0..HEADER_LEN {
        let more = next_message(&stream[..received], 100);
        assert_eq!(more, Ok(NextMessage::NeedMore { total: HEADER_LEN }));
    }
    for received in HEADER_LEN..frame.len() {
        let more = next_message(&stream[..received], 100);
        assert_eq!(more, Ok(NextMessage::NeedMore { total: frame.len() }));
    }
    let header = MessageHeader::parse(&stream).unwrap();
    let whole = NextMessage::Complete {
        header,
        len: frame.len(),
    };
    assert_eq!(next_message(&stream, 100), Ok(whole));
    let too_large = FramingError::TooLarge(frame.len());
    assert_eq!(next_message(&stream[..HEADER_LEN], 20), Err(too_large));
    let huge = b"GIOP\x01\x02\0\0\xff\xff\xff\xff";
    assert!(matches!(
        next_message(huge, 1 << 20),
        Err(FramingError::TooLarge(_))
    ));
}
