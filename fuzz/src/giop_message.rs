use chronorb_cdr::{Arena, CdrError, CharSet, Decoder, Encoder, Frame, TextForm};
use chronorb_giop::codesets::CodeSetContext;
use chronorb_giop::contexts::{CODE_SETS, RT_CORBA_PRIORITY, ServiceContext, decode_priority};
use chronorb_giop::fragments::{Bounds, FragmentError, Reassembly};
use chronorb_giop::framing::{NextMessage, next_message, next_message_of};
use chronorb_giop::{
    AddressingDisposition, GiopLite, Ior, LocateReplyHeader, LocateRequestHeader, LocateStatus,
    MessageHeader, MessageProtocol, MessageType, Protocol, ReplyHeader, ReplyStatus, RequestHeader,
    SystemException, Version, decode_cancel_request, encode_locate_reply, encode_locate_request,
    encode_reply, encode_request, reply_id, start_message_in,
};

use crate::walk::walk;

/// Reads `data` as what comes over a connection: messages one after the other,
/// some of them in fragments. Each is read in all versions of GIOP, and its
/// header is written and read once more.
pub fn giop_message(data: &[u8]) {
    let mut reassembly = Reassembly::new(BOUNDS);
    let mut rest = data;
    loop {
        match next_message(rest, MAX_MESSAGE) {
            Ok(NextMessage::Complete { header, len }) => {
                let (message, later) = rest.split_at(len);
                if take(&mut reassembly, header, message).is_err() {
                    return;
                }
                rest = later;
            }
            Ok(NextMessage::NeedMore { total }) => {
                assert!(rest.len() < total, "all that is needed is there");
                return;
            }
            Err(_) => return,
        }
    }
}

/// Reads `data` as what comes over a connection whose ends have agreed on
/// GIOPlite: messages of either protocol one after the other, none of them in
/// fragments. The header of each is written and read once more.
pub fn gioplite(data: &[u8]) {
    let mut rest = data;
    loop {
        match next_message_of::<Protocol>(rest, MAX_MESSAGE) {
            Ok(NextMessage::Complete { header, len }) => {
                let (message, later) = rest.split_at(len);
                let text = header.version().text(CharSet::Utf8);
                let _ = GiopLite::is_agreed_by(message);
                let _ = header.protocol.waits_for_target(message);
                // That something is wrong with a message is of no interest.
                let _ = read(&mut copy(message), header, header.protocol, text);
                rest = later;
            }
            Ok(NextMessage::NeedMore { total }) => {
                assert!(rest.len() < total, "all that is needed is there");
                return;
            }
            Err(_) => return,
        }
    }
}

/// Reads a whole message, or joins a part to its message.
fn take(
    reassembly: &mut Reassembly,
    header: MessageHeader,
    message: &[u8],
) -> Result<(), FragmentError> {
    let is_part = header.more_fragments || header.kind == MessageType::Fragment;
    if is_part || header.kind == MessageType::CancelRequest {
        let whole = reassembly.push(message)?;
        assert!(reassembly.open_messages() <= BOUNDS.fragmented);
        assert!(reassembly.octets() <= BOUNDS.fragment_octets);
        assert_eq!(reassembly.open_messages() == 0, reassembly.octets() == 0);
        if let Some(mut joined) = whole {
            read_all_ways(&mut joined.frame);
        }
    }
    if !is_part {
        read_all_ways(&mut copy(message));
    }
    Ok(())
}

/// Reads a message in all versions, and at last in its own, as reading changes
/// it. Only that one knows where fragments were joined.
fn read_all_ways(frame: &mut Frame) {
    let message = MessageHeader::parse(frame.as_slice()).expect("it was parsed before");
    assert_eq!(message.message_len(), frame.len());
    assert!(!message.more_fragments);
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for narrow in [CharSet::Latin1, CharSet::Utf8] {
            let text = version.text(narrow);
            // That something is wrong with a message is of no interest.
            let _ = read(&mut copy(frame.as_slice()), message, version.into(), text);
        }
    }
    let text = message.version().text(CharSet::Latin1);
    let _ = read(frame, message, message.protocol, text);
}

fn read(
    frame: &mut Frame,
    message: MessageHeader,
    protocol: Protocol,
    text: TextForm,
) -> Result<(), CdrError> {
    let id = reply_id(frame.as_slice());
    // Service contexts take three times their octets.
    let arena = Arena::new(64 + 4 * frame.len());
    let mut d = decoder(frame, message, &arena).with_text(text);
    match message.kind {
        MessageType::Request => {
            let header = RequestHeader::decode(&mut d, protocol)?;
            let _ = header.target.key();
            read_contexts(header.contexts);
            let mut again = written(message, text, |e| encode_request(e, protocol, &header));
            let arena = Arena::new(arena.capacity());
            let mut copy = decoder(&mut again, message, &arena).with_text(text);
            assert_eq!(RequestHeader::decode(&mut copy, protocol), Ok(header));
            walk(&mut d, header.operation)
        }
        MessageType::Reply => {
            let header = ReplyHeader::decode(&mut d, protocol)?;
            if protocol == message.protocol {
                assert_eq!(id, Some(header.request_id));
            }
            read_contexts(header.contexts);
            let mut again = written(message, text, |e| encode_reply(e, protocol, &header));
            let arena = Arena::new(arena.capacity());
            let mut copy = decoder(&mut again, message, &arena).with_text(text);
            assert_eq!(ReplyHeader::decode(&mut copy, protocol), Ok(header));
            read_reply(&mut d, header.status)
        }
        MessageType::LocateRequest => {
            let header = LocateRequestHeader::decode(&mut d, protocol)?;
            let _ = header.target.key();
            let mut again = written(message, text, |e| {
                encode_locate_request(e, protocol, &header)
            });
            let arena = Arena::new(arena.capacity());
            let mut copy = decoder(&mut again, message, &arena).with_text(text);
            assert_eq!(LocateRequestHeader::decode(&mut copy, protocol), Ok(header));
            Ok(())
        }
        MessageType::LocateReply => {
            let header = LocateReplyHeader::decode(&mut d, protocol)?;
            let mut again = written(message, text, |e| encode_locate_reply(e, protocol, &header));
            let mut copy = decoder(&mut again, message, &arena).with_text(text);
            assert_eq!(LocateReplyHeader::decode(&mut copy, protocol), Ok(header));
            match header.status {
                LocateStatus::UnknownObject | LocateStatus::ObjectHere => Ok(()),
                LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
                    Ior::decode(&mut d).map(drop)
                }
                LocateStatus::SystemException => SystemException::decode(&mut d).map(drop),
                LocateStatus::NeedsAddressingMode => {
                    AddressingDisposition::decode(&mut d).map(drop)
                }
            }
        }
        MessageType::CancelRequest => decode_cancel_request(&mut d).map(drop),
        MessageType::CloseConnection | MessageType::MessageError | MessageType::Fragment => Ok(()),
    }
}

fn read_reply(d: &mut Decoder<'_>, status: ReplyStatus) -> Result<(), CdrError> {
    match status {
        ReplyStatus::NoException => walk(d, RESULTS),
        ReplyStatus::UserException => walk(d, USER_EXCEPTION),
        ReplyStatus::SystemException => SystemException::decode(d).map(drop),
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => Ior::decode(d).map(drop),
        ReplyStatus::NeedsAddressingMode => AddressingDisposition::decode(d).map(drop),
    }
}

fn read_contexts(contexts: &[ServiceContext<'_>]) {
    for context in contexts {
        match context.id {
            CODE_SETS => {
                let context = CodeSetContext::decode(context.data);
                let _ = context.map(|context| context.text(Version::V1_2));
            }
            RT_CORBA_PRIORITY => {
                let _ = decode_priority(context.data);
            }
            _ => {}
        }
    }
}

fn decoder<'a>(frame: &'a mut Frame, message: MessageHeader, arena: &'a Arena) -> Decoder<'a> {
    message.decoder(frame, arena)
}

/// A message with a header that was read, which can always be written.
fn written(
    message: MessageHeader,
    text: TextForm,
    header: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Frame {
    let mut frame = Frame::new(256, 2 * MAX_MESSAGE);
    let e = start_message_in(&mut frame, message.protocol, message.kind, message.endian);
    let mut e = e.expect("a message header is small").with_text(text);
    header(&mut e).expect("a header that was read can be written");
    frame
}

fn copy(message: &[u8]) -> Frame {
    let mut frame = Frame::new(message.len(), message.len());
    frame
        .extend_from_slice(message)
        .expect("the frame is as large as the message");
    frame
}

const BOUNDS: Bounds = Bounds {
    message: MAX_MESSAGE,
    fragmented: 3,
    fragment_octets: 1 << 15,
    skips: false,
};

const MAX_MESSAGE: usize = 1 << 15;

/// A string, a double, a wstring, an encapsulation with sequences of numbers
/// and strings, a reference.
const RESULTS: &[u8] = &[10, 6, 12, 36, 19, 23, 33];
/// The repository id, and two members.
const USER_EXCEPTION: &[u8] = &[10, 10, 3];
