//! The messages of calls: requests out, the outcomes in replies in.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use chronorb_cdr::{Arena, CdrError, Decoder, Encoder, Endian, Frame, TextForm};
use chronorb_giop::{
    AddressingDisposition, Ior, LocateReplyHeader, LocateRequestHeader, LocateStatus,
    MessageHeader, MessageProtocol, MessageType, Protocol, ReplyHeader, ReplyStatus, RequestHeader,
    SchedulingContext, SystemException, SystemExceptionKind, Target, contexts,
    encode_locate_request, encode_request, finish_message, minor, start_message,
};
use chronorb_giop::{GiopLite, Version};

use super::attempt::{DISCARDED, Outcome};
use super::binding::Binding;
use super::connection::ClientConnection;
use crate::call::Operation;
use crate::core::Core;
use crate::gather::{self, OmittedOctets};
use crate::riders::{self, Announcements, Contexts, Departure, Riders};
use crate::rtcorba::scheduling;
use crate::scope::ReplyBody;

pub(super) use crate::gather::Write as Arguments;

/// Writes a request. Returns the position of its body, and the number of octets of the body that
/// were left out of the frame.
pub(super) fn marshal(
    binding: &Binding,
    riders: &mut riders::CallState,
    frame: &mut Frame,
    operation: &Operation,
    arguments: Arguments<'_>,
    request_id: u32,
) -> Result<(usize, usize), SystemException> {
    let connection = &binding.connection;
    let announces = connection.announces();
    let may_be_kept =
        binding.keeps_headers && binding.addressing.get() == AddressingDisposition::Key;
    // After oneways, which have no reply, all requests of a connection may announce.
    let prepared = if may_be_kept && (!announces || !binding.has_answer(operation)) {
        let form = HeaderForm::of(connection, announces);
        let headers = &binding.prepared;
        let core = binding.target.core();
        headers.write(operation, form, request_id, frame, core)?
    } else {
        None
    };
    let header_end = match prepared {
        Some(header_end) => header_end,
        None => {
            let of_request = (operation, request_id);
            prepare_header(binding, riders, frame, of_request, may_be_kept)?
        }
    };
    let body_start = frame.len();
    let mut omitted = OmittedOctets::default();
    let mut encoder = encoder(binding, frame);
    if connection.gathering().is_some() {
        encoder = gather::omitting(encoder, &mut omitted);
    }
    arguments(&mut encoder)?;
    drop(encoder);
    if frame.len() == body_start && omitted.0 == 0 {
        frame.truncate(header_end);
    }
    finish_message(frame);
    Ok((body_start, omitted.0))
}

/// Writes the header of a request as [`write_header`] does, and keeps it for later requests.
#[cold]
#[inline(never)]
fn prepare_header(
    binding: &Binding,
    riders: &mut riders::CallState,
    frame: &mut Frame,
    (operation, request_id): (&Operation, u32),
    may_be_kept: bool,
) -> Result<usize, SystemException> {
    let connection = &binding.connection;
    let announces = connection.announces();
    let of_request = (operation, request_id);
    let mut keep = |announces, frame: &mut Frame| {
        let header_end = write_header(binding, riders, frame, of_request, announces)?;
        let form = HeaderForm::of(connection, announces);
        binding.prepared.keep(operation, form, frame, header_end);
        Ok(header_end)
    };
    // Before the protocol is agreed on, the header of requests that announce nothing is unknown.
    if may_be_kept && !(announces && connection.link().proposes_lite()) {
        let header_end = keep(false, frame)?;
        if !announces {
            return Ok(header_end);
        }
    }
    if may_be_kept && !binding.has_answer(operation) {
        return keep(announces, frame);
    }
    write_header(binding, riders, frame, of_request, announces)
}

/// Writes the header of oneway requests by a connection that is never read, so that it is the same
/// for all of them but for the id and the length. Returns the positions of the padding and of the
/// id; `None` if the protocol has no such header.
#[cold]
pub(super) fn write_constant_header(
    binding: &Binding,
    frame: &mut Frame,
    operation: &Operation,
) -> Result<Option<(usize, usize)>, SystemException> {
    // The server's answers would show that it has read the announcements.
    let mut riders = riders::CallState::default();
    let header_end = write_header(binding, &mut riders, frame, (operation, 0), true)?;
    finish_message(frame);
    let message = Protocol::read_header(frame.as_slice());
    let id_at = message
        .ok()
        .and_then(|message| message.protocol.request_id_at());
    Ok(id_at.map(|id_at| (header_end, id_at)))
}

/// Writes a request with the body of another one, which began at `start` and has its text in a
/// form. Returns the position of the body.
///
/// # Errors
/// `TRANSIENT` if the new target needs arguments in another form: the application may call again.
#[cold]
pub(super) fn marshal_again(
    binding: &Binding,
    riders: &mut riders::CallState,
    frame: &mut Frame,
    of_request: (&Operation, u32),
    (start, body, text): (usize, &[u8], TextForm),
) -> Result<usize, SystemException> {
    let announces = binding.connection.announces();
    let header_end = write_header(binding, riders, frame, of_request, announces)?;
    let body_start = frame.len();
    if body.is_empty() {
        frame.truncate(header_end);
    } else if text == binding.connection.text && start % 8 == body_start % 8 {
        frame.extend_from_slice(body)?;
    } else {
        return Err(DISCARDED);
    }
    finish_message(frame);
    Ok(body_start)
}

pub(super) fn encoder<'f>(binding: &Binding, frame: &'f mut Frame) -> Encoder<'f> {
    Encoder::new(frame, Endian::NATIVE).with_text(binding.connection.text)
}

/// Writes the header of a request, padded for a body, with the announcements of a connection's
/// first requests if it `announces`. Returns the position of the padding.
#[cold]
fn write_header(
    binding: &Binding,
    riders: &mut riders::CallState,
    frame: &mut Frame,
    (operation, request_id): (&Operation, u32),
    announces: bool,
) -> Result<usize, SystemException> {
    let connection = &binding.connection;
    let announcements = announces.then(|| Announcements {
        code_sets: connection.code_sets.as_ref().map(|data| &data[..]),
        listen_points: connection.listen_points(),
        one_at_a_time: connection.has_one_call_at_a_time(),
        lite: connection.link().proposes_lite(),
    });
    let departure = Departure {
        config: &binding.target.core().config,
        version: binding.version,
        announcements,
        priority: binding.propagated,
        ends: binding.present_ends.get(),
        of_reference: binding.target.service_context(),
    };
    let mut room = Contexts::ROOM;
    let mut contexts = Contexts::new(&mut room);
    riders::All::depart(riders, &departure, &mut contexts);
    let header = RequestHeader {
        request_id,
        response: binding.response(operation),
        target: binding.target()?,
        operation: operation.name.as_bytes(),
        contexts: contexts.as_slice(),
    };
    let protocol = protocol_of(binding, &header.target, header.operation);
    let mut encoder = start_message(frame, protocol, MessageType::Request)?;
    encode_request(&mut encoder, protocol, &header)?;
    let header_end = encoder.position();
    protocol.pad_request(&mut encoder)?;
    Ok(header_end)
}

/// Writes a locate request.
pub(super) fn write_locate_request(
    binding: &Binding,
    frame: &mut Frame,
    request_id: u32,
) -> Result<(), SystemException> {
    let target = binding.target()?;
    let protocol = protocol_of(binding, &target, b"");
    let mut e = start_message(frame, protocol, MessageType::LocateRequest)?;
    encode_locate_request(
        &mut e,
        protocol,
        &LocateRequestHeader { request_id, target },
    )?;
    finish_message(frame);
    Ok(())
}

/// The message protocol of a request to the target, or of a locate request.
fn protocol_of(binding: &Binding, target: &Target<'_>, operation: &[u8]) -> Protocol {
    if binding.version >= Version::V1_2
        && binding.connection.link().speaks_lite()
        && GiopLite::can_carry(target, operation)
    {
        return Protocol::Lite;
    }
    binding.version.into()
}

/// Reads a reply with results and without contexts to `request_id`; `None` for any other one.
#[inline(always)]
pub(super) fn read_plain_reply(
    frame: &Frame,
    message: MessageHeader,
    text: TextForm,
    request_id: u32,
) -> Option<ReplyBody> {
    let id = ReplyHeader::id_of_plain_result(message, frame.as_slice())?;
    (id == request_id).then_some(ReplyBody {
        exception: false,
        body: ReplyHeader::RESULT_AT,
        endian: message.endian,
        text,
    })
}

/// Reads a reply up to its results; `None` if it is not the one to `request_id`.
#[inline(never)]
pub(super) fn read_reply(
    (frame, arena): (&mut Frame, &Arena),
    riders: &mut riders::CallState,
    message: MessageHeader,
    text: TextForm,
    request_id: u32,
) -> Result<Option<Outcome>, CdrError> {
    let d = &mut message.decoder(frame, arena).with_text(text);
    let header = ReplyHeader::decode(d, message.protocol)?;
    if header.request_id != request_id {
        return Ok(None);
    }
    riders::All::come_back(riders, header.contexts);
    let exception = match header.status {
        ReplyStatus::NoException => false,
        ReplyStatus::UserException => true,
        ReplyStatus::SystemException => {
            return Ok(Some(Outcome::Exception(SystemException::decode(d)?)));
        }
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
            return Ok(Some(Outcome::Forward(Ior::decode(d)?)));
        }
        ReplyStatus::NeedsAddressingMode => {
            let mode = AddressingDisposition::decode(d)?;
            return Ok(Some(Outcome::Addressing(mode)));
        }
    };
    Ok(Some(answer(exception, d, message, text)))
}

/// Reads a locate reply; `None` if it is not the one to `request_id`.
#[cold]
pub(super) fn read_locate_reply(
    (frame, arena): (&mut Frame, &Arena),
    _: &mut riders::CallState,
    message: MessageHeader,
    text: TextForm,
    request_id: u32,
) -> Result<Option<Outcome>, CdrError> {
    let d = &mut message.decoder(frame, arena).with_text(text);
    let header = LocateReplyHeader::decode(d, message.protocol)?;
    if header.request_id != request_id {
        return Ok(None);
    }
    Ok(Some(match header.status {
        LocateStatus::ObjectHere => answer(false, d, message, text),
        LocateStatus::UnknownObject => Outcome::Exception(NO_SUCH_OBJECT),
        LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
            Outcome::Forward(Ior::decode(d)?)
        }
        LocateStatus::SystemException => Outcome::Exception(SystemException::decode(d)?),
        LocateStatus::NeedsAddressingMode => Outcome::Addressing(AddressingDisposition::decode(d)?),
    }))
}

fn answer(exception: bool, d: &Decoder<'_>, message: MessageHeader, text: TextForm) -> Outcome {
    Outcome::Answer(ReplyBody {
        exception,
        body: d.position(),
        endian: message.endian,
        text,
    })
}

/// The headers of requests of one binding, which differ only in their ids: each is made once for
/// each operation.
///
/// Memory for some is allocated with the binding, so that after an explicit binding the first call
/// of an operation allocates nothing either.
pub(super) struct PreparedHeaders {
    table: RefCell<HeaderTable>,
    /// The header that was used last.
    last: Cell<Option<(HeaderKey, PreparedHeader)>>,
}

/// The properties of a header that change with the state of its connection.
#[derive(Clone, Copy)]
struct HeaderForm {
    is_lite: bool,
    announces: bool,
    proposes: bool,
    /// Whether it has a context of scheduling, whose content differs for each request.
    is_scheduled: bool,
}

impl HeaderForm {
    #[inline]
    fn of(connection: &ClientConnection, announces: bool) -> Self {
        let link = connection.link();
        Self {
            is_lite: link.speaks_lite(),
            announces,
            proposes: announces && link.proposes_lite(),
            is_scheduled: scheduling::sends_context(),
        }
    }
}

struct HeaderTable {
    by_name: HashMap<HeaderKey, PreparedHeader, BuildHasherDefault<NumberHasher>>,
    octets: Vec<u8>,
}

/// The address of an operation's name, which is a constant, and a number made of its length and the
/// other properties of a header.
type HeaderKey = (usize, usize);

/// A header among the octets, with the padding for a body.
#[derive(Clone, Copy)]
struct PreparedHeader {
    start: u32,
    len: u32,
    /// The position of the padding in it.
    end: u32,
    /// The position of the request's id in it.
    id_at: u32,
    /// The position of the context of scheduling in it; 0 if it has none.
    scheduling_at: u32,
}

impl PreparedHeaders {
    #[allow(clippy::disallowed_methods, reason = "once for each binding")]
    pub(super) fn new() -> Self {
        let table = HeaderTable {
            by_name: HashMap::with_capacity_and_hasher(USUAL_OPERATIONS, <_>::default()),
            octets: Vec::with_capacity(USUAL_OPERATIONS * USUAL_HEADER),
        };
        Self {
            table: RefCell::new(table),
            last: Cell::new(None),
        }
    }

    /// Writes the header of a request of GIOP 1.2, or of GIOPlite if that can be, padded for a
    /// body. Returns the position of the padding; `None` if the header was not kept.
    // With two callers it would no longer be inlined into the path of all calls.
    #[inline(always)]
    fn write(
        &self,
        operation: &Operation,
        form: HeaderForm,
        request_id: u32,
        frame: &mut Frame,
        core: &Core,
    ) -> Result<Option<usize>, CdrError> {
        let key = header_key(operation, form);
        let header = match self.last.get() {
            Some((last, header)) if last == key => header,
            _ => match self.find(key) {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        let (start, len) = (header.start as usize, header.len as usize);
        let id_at = header.id_at as usize;
        frame.clear();
        frame.extend_from_slice(&self.table.borrow().octets[start..start + len])?;
        let id = &mut frame.as_mut_slice()[id_at..id_at + 4];
        id.copy_from_slice(&request_id.to_ne_bytes());
        if form.is_scheduled {
            write_scheduling(frame, header.scheduling_at as usize, core);
        }
        Ok(Some(header.end as usize))
    }

    /// Finds a header, which is the last one used then.
    #[inline(never)]
    fn find(&self, key: HeaderKey) -> Option<PreparedHeader> {
        let header = self.table.borrow().by_name.get(&key).copied()?;
        self.last.set(Some((key, header)));
        Some(header)
    }

    /// Keeps such a header, which is in this machine's byte order.
    #[cold]
    fn keep(&self, operation: &Operation, form: HeaderForm, header: &Frame, end: usize) {
        let message = Protocol::read_header(header.as_slice());
        let id_at = message
            .ok()
            .and_then(|message| message.protocol.request_id_at());
        let Some(id_at) = id_at else {
            return;
        };
        let scheduling_at = if form.is_scheduled {
            match position_of_scheduling(header.as_slice()) {
                Some(at) => at,
                None => return,
            }
        } else {
            0
        };
        let mut table = self.table.borrow_mut();
        let key = header_key(operation, form);
        if table.by_name.len() >= MAX_OPERATIONS || table.by_name.contains_key(&key) {
            return;
        }
        let start = table.octets.len();
        let numbers = [start, header.len(), end, id_at, scheduling_at].map(u32::try_from);
        let [Ok(start), Ok(len), Ok(end), Ok(id_at), Ok(scheduling_at)] = numbers else {
            return;
        };
        table.octets.extend_from_slice(header.as_slice());
        let header = PreparedHeader {
            start,
            len,
            end,
            id_at,
            scheduling_at,
        };
        table.by_name.insert(key, header);
    }
}

#[inline]
fn header_key(operation: &Operation, form: HeaderForm) -> HeaderKey {
    let name = operation.name;
    // One name can belong to a call with a reply and to one without.
    let flags = [
        operation.oneway,
        form.is_lite,
        form.announces,
        form.proposes,
        form.is_scheduled,
    ];
    let flags = flags.into_iter().enumerate();
    let flags = flags.fold(0, |all, (bit, flag)| all | usize::from(flag) << bit);
    (name.as_ptr().addr(), name.len() * 32 + flags)
}

/// Writes the context of scheduling into a header, at its position.
#[inline(never)]
fn write_scheduling(frame: &mut Frame, at: usize, core: &Core) {
    if let Some(data) = scheduling::outgoing(|| core.config.clock()) {
        frame.as_mut_slice()[at..at + data.len()].copy_from_slice(&data);
    }
}

/// The position of the context of scheduling in a header that has just been written. A context is
/// its id, its length, and its content, in this machine's byte order.
#[cold]
fn position_of_scheduling(header: &[u8]) -> Option<usize> {
    let len = SchedulingContext::LEN;
    let mut start = [0; 8];
    start[..4].copy_from_slice(&contexts::SCHEDULING.to_ne_bytes());
    start[4..].copy_from_slice(&(len as u32).to_ne_bytes());
    let found = header.windows(8).position(|octets| octets == start)? + 8;
    (found + len <= header.len()).then_some(found)
}

/// A hasher of few numbers that are distinct already: one multiplication spreads each.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.write_u64(u64::from(*octet));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}

/// The most operations of one binding whose headers are kept.
const MAX_OPERATIONS: usize = 1024;
/// Operations of one binding for which memory is allocated from the start.
const USUAL_OPERATIONS: usize = 8;
const USUAL_HEADER: usize = 128;
const NO_SUCH_OBJECT: SystemException =
    SystemException::no(SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_OBJECT);
