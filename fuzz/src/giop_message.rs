use chronorb_cdr::{Arena, CdrError, CharSet, Decoder, Frame};
use chronorb_giop::contexts::{self, CODE_SETS, RT_CORBA_PRIORITY, ServiceContext};
use chronorb_giop::fragments::{Limits, Reassembly};
use chronorb_giop::framing::{Framed, next_message};
use chronorb_giop::{
    AddressingDisposition, Ior, LocateReplyHeader, LocateRequestHeader, LocateStatus,
    MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader, SystemException, Version,
    codesets::CodeSetContext, decode_cancel_request, encode_locate_reply, encode_locate_request,
    encode_reply, encode_request, reply_id, start_message_in,
};

use crate::walk::walk;

/// Reads `data` as what comes over a connection: messages one after the other,
/// some of them in fragments. Each is read in all versions of GIOP, and its
/// header is written and read once more.
pub fn giop_message(data: &[u8]) {
    let mut reassembly = Reassembly::new(LIMITS);
    let mut rest = data;
    loop {
        match next_message(rest, MAX_MESSAGE) {
            Ok(Framed::Complete { header, len }) => {
                let (message, later) = rest.split_at(len);
                if take(&mut reassembly, header, message).is_err() {
                    return;
                }
                rest = later;
            }
            Ok(Framed::NeedMore { total }) => {
                assert!(rest.len() < total, "more octets are asked for than needed");
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
) -> Result<(), chronorb_giop::fragments::FragmentError> {
    let is_part = header.more_fragments || header.kind == MessageType::Fragment;
    if is_part || header.kind == MessageType::CancelRequest {
        let whole = reassembly.push(message)?;
        assert!(reassembly.open_messages() <= LIMITS.messages);
        assert!(reassembly.octets() <= LIMITS.bytes);
        assert_eq!(reassembly.open_messages() == 0, reassembly.octets() == 0);
        if let Some(mut frame) = whole {
            read_all_ways(&mut frame);
        }
    }
    if !is_part {
        let mut frame = Frame::new(message.len(), message.len());
        frame
            .extend_from_slice(message)
            .expect("the frame is as large as the message");
        read_all_ways(&mut frame);
    }
    Ok(())
}

/// Reads a message in its own version last, as reading changes it.
fn read_all_ways(frame: &mut Frame) {
    let header = MessageHeader::parse(frame.as_slice()).expect("it was parsed before");
    assert_eq!(header.message_len(), frame.len());
    assert!(!header.more_fragments);

    let mut arena = Arena::new(ARENA);
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for narrow in [CharSet::Latin1, CharSet::Utf8] {
            let mut copy = Frame::new(frame.len(), frame.len());
            copy.extend_from_slice(frame.as_slice())
                .expect("the copy is as large as the message");
            let text = version.text(narrow);
            let mut d = copy.decoder(12, header.endian, &arena).with_text(text);
            // What is wrong with a message is not of interest.
            let _ = read(&mut d, header, version);
            arena.reset();
        }
    }
    let id = reply_id(frame.as_slice());
    let text = header.version.text(CharSet::Latin1);
    let mut d = frame.decoder(12, header.endian, &arena).with_text(text);
    if header.kind == MessageType::Reply
        && header.version == Version::V1_2
        && let Ok(reply) = ReplyHeader::decode(&mut d, header.version)
    {
        assert_eq!(id, Some(reply.request_id));
    } else {
        let _ = read(&mut d, header, header.version);
    }
}

fn read(d: &mut Decoder<'_>, message: MessageHeader, version: Version) -> Result<(), CdrError> {
    let mut again = Again::new(message, version, d);
    match message.kind {
        MessageType::Request => {
            let header = RequestHeader::decode(d, version)?;
            read_contexts(header.contexts);
            again.write(|e| encode_request(e, version, &header), header.target.key().is_some());
            again.read(|d| assert_eq!(RequestHeader::decode(d, version), Ok(header)));
            walk(d, header.operation)
        }
        MessageType::Reply => {
            let header = ReplyHeader::decode(d, version)?;
            read_contexts(header.contexts);
            again.write(|e| encode_reply(e, version, &header), true);
            again.read(|d| assert_eq!(ReplyHeader::decode(d, version), Ok(header)));
            match header.status {
                ReplyStatus::NoException => walk(d, RESULTS),
                ReplyStatus::UserException => walk(d, USER_EXCEPTION),
                ReplyStatus::SystemException => SystemException::decode(d).map(|_| ()),
                ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                    Ior::decode(d).map(|_| ())
                }
                ReplyStatus::NeedsAddressingMode => AddressingDisposition::decode(d).map(|_| ()),
            }
        }
        MessageType::LocateRequest => {
            let header = LocateRequestHeader::decode(d, version)?;
            again.write(
                |e| encode_locate_request(e, version, &header),
                header.target.key().is_some(),
            );
            again.read(|d| assert_eq!(LocateRequestHeader::decode(d, version), Ok(header)));
            Ok(())
        }
        MessageType::LocateReply => {
            let header = LocateReplyHeader::decode(d, version)?;
            again.write(|e| encode_locate_reply(e, version, &header), true);
            again.read(|d| assert_eq!(LocateReplyHeader::decode(d, version), Ok(header)));
            match header.status {
                LocateStatus::UnknownObject | LocateStatus::ObjectHere => Ok(()),
                LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
                    Ior::decode(d).map(|_| ())
                }
                LocateStatus::SystemException => SystemException::decode(d).map(|_| ()),
                LocateStatus::NeedsAddressingMode => AddressingDisposition::decode(d).map(|_| ()),
            }
        }
        MessageType::CancelRequest => decode_cancel_request(d).map(|_| ()),
        MessageType::CloseConnection | MessageType::MessageError | MessageType::Fragment => Ok(()),
    }
}
