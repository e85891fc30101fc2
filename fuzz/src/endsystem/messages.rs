//! Messages as a hostile peer writes them.

use chronorb_cdr::{CdrError, CharSet, Encoder, Endian, Frame};
use chronorb_giop::{
    GiopLite, HEADER_LEN, MessageProtocol, MessageType, Protocol, ReplyHeader, ReplyStatus,
    RequestHeader, ResponseFlags, ServiceContext, Target, Version, encode_cancel_request,
    encode_reply, encode_request, finish_message, start_message_in,
};

use crate::typed::{Choices, Grammar, Item, Marks, OctetWriter, mutate};

/// A value in the body of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Item(Item),
    Long,
    Octets,
    Flats,
    Reference,
    String,
    WString,
    Money,
}

/// An operation, its arguments, and what comes back.
pub(super) type Operation = (&'static str, &'static [Part], &'static [Part]);

/// The operations of `hostile::Mirror`.
pub(super) const OPERATIONS: [Operation; 14] = [
    ("take", &[Part::Item(Item::Any)], &[Part::Item(Item::Any)]),
    (
        "kind",
        &[Part::Item(Item::TypeCode)],
        &[Part::Item(Item::TypeCode)],
    ),
    (
        "choose",
        &[Part::Item(Item::Choice)],
        &[Part::Item(Item::Choice)],
    ),
    (
        "link",
        &[Part::Item(Item::Chain)],
        &[Part::Item(Item::Chain)],
    ),
    (
        "value",
        &[Part::Item(Item::Base)],
        &[Part::Item(Item::Base)],
    ),
    ("box", &[Part::Item(Item::Text)], &[Part::Item(Item::Text)]),
    (
        "grow",
        &[Part::Item(Item::Trees)],
        &[Part::Item(Item::Trees)],
    ),
    ("lay", &[Part::Flats], &[Part::Flats]),
    ("reference", &[Part::Reference], &[Part::Reference]),
    (
        "wide",
        &[Part::WString, Part::String],
        &[Part::WString, Part::String],
    ),
    ("pay", &[Part::Money], &[Part::Money]),
    ("note", &[Part::Item(Item::Any)], &[]),
    ("add", &[Part::Long, Part::Long], &[Part::Long]),
    ("id", &[], &[Part::Octets]),
];

/// Writes messages by the octets of an input.
pub(super) struct Messages<'d> {
    pub(super) choices: Choices<'d>,
}

impl Messages<'_> {
    /// Writes what a client could send to the objects with these keys.
    pub(super) fn of_client(&mut self, keys: &[&[u8]]) -> Vec<u8> {
        let mut octets = Vec::new();
        let n = self.choices.of(&[1, 1, 2, 5]);
        for number in 0..n {
            let from = octets.len();
            let id = self.choices.of(&[number, 1, u32::MAX]);
            match self.choices.pick(12) {
                11 => octets.extend(self.bare(id)),
                10 => octets.extend(self.choices.octets(200)),
                _ => {
                    let key = keys[self.choices.pick(keys.len())];
                    let operation = self.choices.of(&OPERATIONS);
                    let message = self.request(key, operation, id);
                    octets.extend(self.in_fragments(message, id));
                }
            }
            let from = if self.choices.rarely(3) {
                from
            } else {
                from + HEADER_LEN
            };
            mutate(&mut self.choices, &mut octets, from);
        }
        octets
    }

    /// Writes a reply to a request with this operation.
    pub(super) fn of_server(&mut self, results: &[Part], id: u32, forwards: &[u8]) -> Vec<u8> {
        let from = if self.choices.rarely(3) {
            0
        } else {
            HEADER_LEN
        };
        let mut octets = match self.choices.pick(16) {
            15 => self.bare(id),
            14 => self.choices.octets(200).to_vec(),
            _ => {
                let message = self.reply(results, id, forwards);
                self.in_fragments(message, id)
            }
        };
        mutate(&mut self.choices, &mut octets, from);
        octets
    }

    fn protocol(&mut self) -> Protocol {
        self.choices.of(&[
            Version::V1_2.into(),
            Version::V1_2.into(),
            Version::V1_1.into(),
            Version::V1_0.into(),
            Protocol::from(GiopLite),
        ])
    }

    fn endian(&mut self) -> Endian {
        Endian::from_flag(!self.choices.rarely(3))
    }

    fn request(&mut self, key: &[u8], (name, arguments, _): Operation, id: u32) -> Vec<u8> {
        let (protocol, endian) = (self.protocol(), self.endian());
        let name = match self.choices.pick(20) {
            19 => ["_is_a", "_non_existent", "_interface", "_repository_id"][self.choices.pick(4)],
            18 => "unknown",
            _ => name,
        };
        let response = match name {
            "note" => ResponseFlags::None,
            _ => self
                .choices
                .of(&[ResponseFlags::SyncWithTarget, ResponseFlags::SyncWithServer]),
        };
        let mut data = [[0; 8]; 2];
        let contexts = self.contexts(&mut data);
        let header = RequestHeader {
            request_id: id,
            response,
            target: Target::Key(key),
            operation: name.as_bytes(),
            contexts: &contexts,
        };
        self.message(protocol, endian, MessageType::Request, arguments, |e| {
            encode_request(e, protocol, &header)?;
            protocol.pad_request(e)
        })
    }

    fn reply(&mut self, results: &[Part], id: u32, forwards: &[u8]) -> Vec<u8> {
        let (protocol, endian) = (Protocol::from(Version::V1_2), self.endian());
        let id = if self.choices.rarely(12) {
            self.choices.any()
        } else {
            id
        };
        let status = self.choices.of(&STATUSES);
        let mut data = [[0; 8]; 2];
        let contexts = self.contexts(&mut data);
        let header = ReplyHeader {
            request_id: id,
            status,
            contexts: &contexts,
        };
        let head = |e: &mut Encoder<'_>| {
            encode_reply(e, protocol, &header)?;
            protocol.pad_reply(e)
        };
        let kind = MessageType::Reply;
        match status {
            ReplyStatus::NoException => self.message(protocol, endian, kind, results, head),
            ReplyStatus::UserException => {
                let refused = [Part::String, Part::Item(Item::Any)];
                self.message(protocol, endian, kind, &refused, |e| {
                    head(e)?;
                    e.write_str("IDL:hostile/Refused:1.0")
                })
            }
            ReplyStatus::SystemException => self.message(protocol, endian, kind, &[], |e| {
                head(e)?;
                e.write_str("IDL:omg.org/CORBA/TRANSIENT:1.0")?;
                e.write_u32(2)?;
                e.write_u32(1)
            }),
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                if self.choices.rarely(2) {
                    return self.message(protocol, endian, kind, &[Part::Reference], head);
                }
                // A reference in the byte order of this machine.
                self.message(protocol, Endian::NATIVE, kind, &[], |e| {
                    head(e)?;
                    e.write_octets(forwards)
                })
            }
            ReplyStatus::NeedsAddressingMode => self.message(protocol, endian, kind, &[], |e| {
                head(e)?;
                e.write_u16(1)
            }),
        }
    }

    /// Messages without a body, or with nothing but an identifier.
    fn bare(&mut self, id: u32) -> Vec<u8> {
        let (protocol, endian) = (self.protocol(), self.endian());
        let kind = self.choices.of(&[
            MessageType::CancelRequest,
            MessageType::LocateRequest,
            MessageType::CloseConnection,
            MessageType::MessageError,
            MessageType::Fragment,
            MessageType::LocateReply,
        ]);
        self.message(protocol, endian, kind, &[], |e| {
            encode_cancel_request(e, id)
        })
    }

    fn contexts<'c>(&mut self, data: &'c mut [[u8; 8]; 2]) -> Vec<ServiceContext<'c>> {
        let n = self.choices.of(&[0, 0, 1, 2]);
        let mut contexts = Vec::new();
        for data in data.iter_mut().take(n) {
            // Code sets, priority, exception details, unknown ones, those of chronorb.
            let id = self
                .choices
                .of(&[1_u32, 10, 14, 77, CHRONORB | 1, CHRONORB | 2]);
            let any: [u8; 8] = self.choices.any();
            *data = self
                .choices
                .of(&[[1, 0, 0, 0, 9, 1, 1, 5], [1, 0, 0x10, 0, 0, 0, 0, 0], any]);
            let data = &data[..self.choices.of(&[8, 4, 1, 0])];
            contexts.push(ServiceContext { id, data });
        }
        contexts
    }

    /// Writes a message with this header and these parts.
    fn message(
        &mut self,
        protocol: Protocol,
        endian: Endian,
        kind: MessageType,
        parts: &[Part],
        head: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Vec<u8> {
        let mut frame = Frame::new(256, 16 << 20);
        let e = start_message_in(&mut frame, protocol, kind, endian);
        let text = Version::V1_2.text(CharSet::Utf8);
        head(&mut e.expect("there is room").with_text(text)).expect("there is room");
        let choices = std::mem::replace(&mut self.choices, Choices::new(&[]));
        let out = OctetWriter::at(frame.len(), endian);
        let mut grammar = Grammar::new(choices, out, true);
        let mut marks = Marks::default();
        parts
            .iter()
            .for_each(|part| grammar.part(*part, &mut marks));
        frame
            .extend_from_slice(&grammar.out.octets)
            .expect("a grammar has a budget");
        self.choices = grammar.choices;
        finish_message(&mut frame);
        frame.as_slice().to_vec()
    }

    /// Cuts a message of GIOP 1.1 or 1.2, now and then.
    fn in_fragments(&mut self, message: Vec<u8>, id: u32) -> Vec<u8> {
        let [b'G', b'I', b'O', b'P', 1, minor @ (1 | 2), flags, _, ..] = message[..] else {
            return message;
        };
        if message.len() < HEADER_LEN + 24 || !self.choices.rarely(4) {
            return message;
        }
        let size = self.choices.of(&[8, 16, 64, 1024]);
        let mut parts = Vec::new();
        let mut rest = &message[HEADER_LEN..];
        while !rest.is_empty() {
            let (part, later) = rest.split_at(size.min(rest.len()));
            rest = later;
            let mut octets = message[..HEADER_LEN].to_vec();
            octets[6] = flags | if rest.is_empty() { 0 } else { 2 };
            if !parts.is_empty() {
                octets[7] = 7;
                if minor == 2 {
                    let id = if flags & 1 == 1 {
                        id.to_le_bytes()
                    } else {
                        id.to_be_bytes()
                    };
                    octets.extend(id);
                }
            }
            octets.extend(part);
            set_length(&mut octets);
            parts.extend(octets);
        }
        parts
    }
}

impl Grammar<'_> {
    fn part(&mut self, part: Part, marks: &mut Marks) {
        match part {
            Part::Item(item) => self.item(item, marks),
            Part::Long => self.out.u32(20),
            Part::Octets => {
                let octets = self.choices.octets(64);
                self.out.counted(octets);
            }
            Part::Flats => {
                let n = self.choices.of(&[1_u32, 0, 3, 200]);
                self.out.u32(n);
                for index in 0..n {
                    self.out.u32(index);
                    self.out.u64(0x3ff0_0000_0000_0000);
                    self.out.octets.extend([1, 2, 3]);
                    let how = self.choices.of(&[0_u32, 1, 2]);
                    self.out.u32(how);
                }
            }
            Part::Reference => self.reference(),
            Part::String => {
                let text = self.choices.of(&["", "text", "Gr\u{fc}\u{df}e"]);
                self.out.text(text);
            }
            Part::WString => {
                let octets =
                    self.choices
                        .of(&[&[][..], &[0, 0x77], &[0xd8, 0], &[0xff, 0xfe, 1, 1]]);
                self.out.counted(octets);
            }
            Part::Money => {
                let octets: [u8; 5] = self.choices.any();
                self.out.octets.extend(octets);
            }
        }
    }
}

/// Writes the length of a message of GIOP into its header.
fn set_length(message: &mut [u8]) {
    let length = (message.len() - HEADER_LEN) as u32;
    let length = if message[6] & 1 == 1 {
        length.to_le_bytes()
    } else {
        length.to_be_bytes()
    };
    message[8..HEADER_LEN].copy_from_slice(&length);
}

const STATUSES: [ReplyStatus; 9] = [
    ReplyStatus::NoException,
    ReplyStatus::NoException,
    ReplyStatus::NoException,
    ReplyStatus::UserException,
    ReplyStatus::UserException,
    ReplyStatus::SystemException,
    ReplyStatus::LocationForward,
    ReplyStatus::LocationForwardPerm,
    ReplyStatus::NeedsAddressingMode,
];

/// The vendor's part of identifiers.
const CHRONORB: u32 = chronorb_giop::minor::CHRONORB;
