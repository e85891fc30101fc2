//! Messages of omniORB are understood: see `golden/README.md`.

use std::collections::HashMap;
use std::fmt::Write;

use chronorb_cdr::{Arena, CdrError, CharSet, Decoder, Frame};
use chronorb_giop::codesets::{self, CodeSetContext};
use chronorb_giop::fragments::{Bounds, ReassembledMessage, Reassembly};
use chronorb_giop::framing::{NextMessage, next_message};
use chronorb_giop::{
    Component, HEADER_LEN, HeaderError, IiopProfile, Ior, LocateReplyHeader, LocateRequestHeader,
    MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader, SystemException, Version,
    contexts, reply_id,
};

/// Tells the story of recorded messages, one line for each that is whole.
fn story(version: &str) -> Vec<String> {
    let mut operations = HashMap::new();
    let mut reassembly = Reassembly::new(Bounds::default());
    let mut lines = Vec::new();
    for mut message in recorded(version) {
        let header = match MessageHeader::parse(&message) {
            Ok(header) => header,
            Err(error) => {
                lines.push(error.to_string());
                continue;
            }
        };
        let len = message.len();
        assert_eq!(
            next_message(&message, len),
            Ok(NextMessage::Complete { header, len })
        );
        assert_eq!(header.version().to_string(), version);
        if header.more_fragments || header.kind == MessageType::Fragment {
            let Some(joined) = reassembly.push(&message).unwrap() else {
                continue;
            };
            message = joined.frame.as_slice().to_vec();
        }
        lines.push(tell(&mut message, &mut operations).unwrap());
    }
    assert_eq!(reassembly.octets(), 0);
    lines
}

fn tell(message: &mut [u8], operations: &mut HashMap<u32, Vec<u8>>) -> Result<String, CdrError> {
    let header = MessageHeader::parse(message).unwrap();
    assert_eq!(header.message_len(), message.len());
    let version = header.version();
    let id = reply_id(message);
    let arena = Arena::new(4096);
    let mut d = Decoder::new(
        &mut message[HEADER_LEN..],
        HEADER_LEN,
        header.endian,
        &arena,
    )
    .with_text(version.text(CharSet::Latin1));
    let mut line = format!("{:?}", header.kind);
    match header.kind {
        MessageType::Request => {
            let request = RequestHeader::decode(&mut d, version)?;
            assert_eq!(Some(request.request_id), id);
            assert_eq!(request.target.key().unwrap().len(), 14);
            operations.insert(request.request_id, request.operation.to_vec());
            let name = String::from_utf8_lossy(request.operation);
            let parameters = values(request.operation, &mut d, false)?;
            write!(line, " {name}{parameters} {:?}", request.response).unwrap();
            if let Some(data) = contexts::find(request.contexts, contexts::CODE_SETS) {
                let context = CodeSetContext::decode(data)?;
                write!(
                    line,
                    ", code sets {:x} {:x}",
                    context.char_data, context.wchar_data
                )
                .unwrap();
            }
        }
        MessageType::Reply => {
            let reply = ReplyHeader::decode(&mut d, version)?;
            assert_eq!(Some(reply.request_id), id);
            let body = match reply.status {
                ReplyStatus::NoException => values(&operations[&reply.request_id], &mut d, true)?,
                ReplyStatus::UserException => {
                    let id = d.read_str()?;
                    format!(" {id}({:?}, {})", d.read_str()?, d.read_i32()?)
                }
                ReplyStatus::SystemException => format!(" {}", SystemException::decode(&mut d)?),
                ReplyStatus::LocationForward => format!(" {}", address(&Ior::decode(&mut d)?)),
                status => panic!("{status:?} was not recorded"),
            };
            write!(line, " {:?}{body}", reply.status).unwrap();
        }
        MessageType::LocateRequest => {
            let request = LocateRequestHeader::decode(&mut d, version)?;
            let key = request.target.key().unwrap();
            if key.is_ascii() {
                write!(line, " `{}`", String::from_utf8_lossy(key)).unwrap();
            }
        }
        MessageType::LocateReply => {
            let reply = LocateReplyHeader::decode(&mut d, version)?;
            write!(line, " {:?}", reply.status).unwrap();
        }
        _ => {}
    }
    assert!(d.is_empty(), "{line}: {d:?}");
    Ok(line)
}

/// The parameters, or the results, of an operation.
fn values(operation: &[u8], d: &mut Decoder<'_>, is_reply: bool) -> Result<String, CdrError> {
    Ok(match operation {
        b"echo_string" => match d.read_str()? {
            long if long.len() > 100 => format!("({} characters)", long.len()),
            short => format!("({short:?})"),
        },
        b"echo_wstring" => format!("({:?})", d.read_wstr()?),
        b"echo_double" => format!("({:?})", d.read_f64()?),
        b"echo_point" => {
            let mut point = format!("({:?} {} {:?}", d.read_f64()?, d.read_i32()?, d.read_str()?);
            if is_reply {
                write!(point, ", {}", d.read_i16()?).unwrap();
            }
            point + ")"
        }
        b"refuse" => format!("({:?})", d.read_str()?),
        b"note" => format!("({})", d.read_u8()?),
        _ => String::from("()"),
    })
}

fn address(ior: &Ior) -> String {
    let profile = IiopProfile::decode(&ior.profiles[0].data).unwrap();
    format!("{} at {}:{}", ior.type_id, profile.host, profile.port)
}

#[test]
fn giop_1_0() {
    let story = story("1.0");
    let expected = [
        "LocateRequest",
        "LocateReply ObjectHere",
        "Request echo_string(\"hello\") SyncWithTarget",
        "Reply NoException(\"hello\")",
        "Request echo_string(\"café\") SyncWithTarget",
        "Reply NoException(\"café\")",
        "Request echo_double(-0.5) SyncWithTarget",
        "Reply NoException(-0.5)",
        "Request echo_point(1.5 -3 \"p\") SyncWithTarget",
        "Reply NoException(1.5 -3 \"p\", -2)",
        "Request refuse(\"no\") SyncWithTarget",
        "Reply UserException IDL:Golden/Refused:1.0(\"no\", 7)",
        "Request forbid() SyncWithTarget",
        "Reply SystemException NO_PERMISSION (minor 0x4f4d0005), completed YES",
        "Request note(9) None",
        "Request echo_string(8300 characters) SyncWithTarget",
        "Reply NoException(8300 characters)",
        "Request elsewhere() SyncWithTarget",
        "Reply LocationForward IDL:Golden/Echo:1.0 at 127.0.0.1:10562",
        "Request elsewhere() SyncWithTarget",
        "Reply NoException()",
        "LocateRequest `nobody`",
        "LocateReply UnknownObject",
        "CloseConnection",
        "GIOP 9.9 is not supported",
        "MessageError",
    ];
    assert_eq!(story, expected);
}

#[test]
fn giop_1_1() {
    let story = story("1.1");
    let expected = [
        "LocateRequest",
        "LocateReply ObjectHere",
        "Request echo_string(\"hello\") SyncWithTarget",
        "Reply NoException(\"hello\")",
        "Request echo_string(\"café\") SyncWithTarget",
        "Reply NoException(\"café\")",
        "Request echo_double(-0.5) SyncWithTarget",
        "Reply NoException(-0.5)",
        "Request echo_point(1.5 -3 \"p\") SyncWithTarget",
        "Reply NoException(1.5 -3 \"p\", -2)",
        "Request refuse(\"no\") SyncWithTarget",
        "Reply UserException IDL:Golden/Refused:1.0(\"no\", 7)",
        "Request forbid() SyncWithTarget",
        "Reply SystemException NO_PERMISSION (minor 0x4f4d0005), completed YES",
        "Request note(9) None",
        "Request echo_string(8300 characters) SyncWithTarget",
        "Reply NoException(8300 characters)",
        "Request elsewhere() SyncWithTarget",
        "Reply LocationForward IDL:Golden/Echo:1.0 at 127.0.0.1:11562",
        "Request elsewhere() SyncWithTarget",
        "Reply NoException()",
        "LocateRequest `nobody`",
        "LocateReply UnknownObject",
        "CloseConnection",
        "GIOP 9.9 is not supported",
    ];
    assert_eq!(story, expected);
}

#[test]
fn giop_1_2() {
    let story = story("1.2");
    let expected = [
        "LocateRequest",
        "LocateReply ObjectHere",
        "Request echo_string(\"hello\") SyncWithTarget, code sets 10001 10109",
        "Reply NoException(\"hello\")",
        "Request echo_string(\"café\") SyncWithTarget",
        "Reply NoException(\"café\")",
        "Request echo_wstring(\"w漢\") SyncWithTarget",
        "Reply NoException(\"w漢\")",
        "Request echo_double(-0.5) SyncWithTarget",
        "Reply NoException(-0.5)",
        "Request echo_point(1.5 -3 \"p\") SyncWithTarget",
        "Reply NoException(1.5 -3 \"p\", -2)",
        "Request refuse(\"no\") SyncWithTarget",
        "Reply UserException IDL:Golden/Refused:1.0(\"no\", 7)",
        "Request forbid() SyncWithTarget",
        "Reply SystemException NO_PERMISSION (minor 0x4f4d0005), completed YES",
        "Request note(9) None",
        "Request echo_string(8300 characters) SyncWithTarget",
        "Reply NoException(8300 characters)",
        "Request elsewhere() SyncWithTarget",
        "Reply LocationForward IDL:Golden/Echo:1.0 at 127.0.0.1:12562",
        "Request elsewhere() SyncWithTarget",
        "Reply NoException()",
        "LocateRequest `nobody`",
        "LocateReply UnknownObject",
        "CloseConnection",
        "CloseConnection",
        "GIOP 9.9 is not supported",
    ];
    assert_eq!(story, expected);
}

#[test]
fn values_in_fragments_are_aligned_as_their_version_says() {
    for recording in ["fragments 1.1", "fragments 1.2"] {
        let mut reassembly = Reassembly::new(Bounds::default());
        let mut calls = 0;
        for part in recorded(recording) {
            let Some(ReassembledMessage {
                frame: mut message, ..
            }) = reassembly.push(&part).unwrap()
            else {
                continue;
            };
            let header = MessageHeader::parse(message.as_slice()).unwrap();
            let arena = Arena::new(1024);
            let mut d = message.decoder(HEADER_LEN, header.endian, &arena);
            if header.kind == MessageType::Request {
                RequestHeader::decode(&mut d, header.version()).unwrap();
                assert_eq!(d.read_u8(), Ok(1));
            } else {
                ReplyHeader::decode(&mut d, header.version()).unwrap();
            }
            assert_eq!(d.read_seq::<f64>(), Ok(&[0.0; 1100][..]));
            assert_eq!(d.read_u8(), Ok(5));
            assert_eq!(d.read_f64(), Ok(1.5));
            assert_eq!(d.read_i32(), Ok(7));
            assert_eq!(d.read_f64(), Ok(2.5));
            assert!(d.is_empty());
            calls += 1;
        }
        assert_eq!(calls, 2, "{recording}");
    }
}

#[test]
fn a_header_of_another_version_is_refused() {
    let last = recorded("1.2").pop().unwrap();
    let version = Version::new(9, 9);
    assert_eq!(
        MessageHeader::parse(&last),
        Err(HeaderError::BadVersion(version))
    );
}

#[test]
fn references_say_where_the_object_is_and_what_the_server_can() {
    let profiles: Vec<_> = references()
        .iter()
        .map(|text| {
            let ior: Ior = text.parse().unwrap();
            assert_eq!(ior.to_string(), *text, "it is written as omniORB writes it");
            assert_eq!(ior.type_id, "IDL:Golden/Echo:1.0");
            IiopProfile::decode(&ior.profiles[0].data).unwrap()
        })
        .collect();
    assert_eq!(profiles[0].version, Version::V1_0);
    assert!(profiles[0].components.is_empty());
    assert_eq!(profiles[1].version, Version::V1_1);
    assert_eq!(
        profiles[1].components[0].typed().unwrap(),
        Component::OrbType(0x4154_5400)
    );
    let [_, code_sets] = &profiles[2].components[..] else {
        panic!("the ORB and its code sets");
    };
    let Ok(Component::CodeSets(info)) = code_sets.typed() else {
        panic!("code sets");
    };
    assert_eq!(info.for_char.native, codesets::ISO_8859_1);
    assert_eq!(info.for_char.conversion, [codesets::UTF_8]);
    assert_eq!(info.for_wchar.native, codesets::UTF_16);
    let ours = codesets::CodeSetComponentInfo::ours();
    let text = codesets::text_form(&ours, Some(&info), Version::V1_2).unwrap();
    assert_eq!(text.narrow, CharSet::Latin1, "the server's own comes first");
    assert_eq!(
        (profiles[3].host.as_str(), profiles[3].port),
        ("golden.example", 2809)
    );
    assert_eq!(profiles[3].object_key, b"Echo");
}

#[test]
fn recorded_messages_can_be_broken_anywhere() {
    for version in ["1.0", "1.1", "1.2"] {
        for message in recorded(version) {
            // Long messages are long in their middle, which is text.
            for at in (0..message.len()).filter(|&at| at < 200 || at + 20 > message.len()) {
                for value in [0, 1, 0x7f, 0xff, message[at] ^ 1, message[at] ^ 0x80] {
                    let mut broken = message.clone();
                    broken[at] = value;
                    survive(&broken);
                }
                survive(&message[..at]);
            }
        }
    }
}

/// Reads what a connection would read.
fn survive(message: &[u8]) {
    let Ok(NextMessage::Complete { header, len }) = next_message(message, 1 << 16) else {
        return;
    };
    let mut reassembly = Reassembly::new(Bounds::default());
    let _ = reassembly.push(&message[..len]);
    let _ = reply_id(message);
    let mut frame = Frame::new(len, len);
    frame.extend_from_slice(&message[..len]).unwrap();
    let arena = Arena::new(4096);
    let body = &mut frame.as_mut_slice()[HEADER_LEN..];
    let mut d = Decoder::new(body, HEADER_LEN, header.endian, &arena);
    let _ = match header.kind {
        MessageType::Request => RequestHeader::decode(&mut d, header.version()).map(|request| {
            let _ = request.target.key();
            let _ = values(request.operation, &mut d, false);
        }),
        MessageType::Reply => ReplyHeader::decode(&mut d, header.version()).map(|_| {
            let _ = SystemException::decode(&mut d);
        }),
        MessageType::LocateRequest => {
            LocateRequestHeader::decode(&mut d, header.version()).map(|_| ())
        }
        MessageType::LocateReply => LocateReplyHeader::decode(&mut d, header.version()).map(|_| ()),
        _ => Ok(()),
    };
}

/// The messages of a recording.
fn recorded(name: &str) -> Vec<Vec<u8>> {
    match name {
        "1.0" => include_str!("../golden/giop-1.0.txt"),
        "1.1" => include_str!("../golden/giop-1.1.txt"),
        "1.2" => include_str!("../golden/giop-1.2.txt"),
        "fragments 1.1" => include_str!("../golden/fragments-1.1.txt"),
        "fragments 1.2" => include_str!("../golden/fragments-1.2.txt"),
        _ => unreachable!("there is no such recording"),
    }
    .split("\n\n")
    .map(|paragraph| {
        let octets = paragraph.lines().filter(|line| !line.starts_with('#'));
        octets
            .flat_map(str::split_whitespace)
            .flat_map(run)
            .collect()
    })
    .collect()
}

/// The recorded references.
fn references() -> Vec<&'static str> {
    include_str!("../golden/iors.txt")
        .lines()
        .filter(|line| line.starts_with("IOR:"))
        .collect()
}

/// `61` is an octet, `61*5` five of it.
fn run(text: &str) -> impl Iterator<Item = u8> {
    let (octet, times) = text.split_once('*').unwrap_or((text, "1"));
    let octet = u8::from_str_radix(octet, 16).unwrap();
    std::iter::repeat_n(octet, times.parse().unwrap())
}
