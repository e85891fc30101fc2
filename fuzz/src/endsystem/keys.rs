//! Object keys: those of references that were given away, and what can be made of them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use chronorb::prelude::*;
use chronorb_cdr::{Arena, Encoder, Endian, Frame};
use chronorb_giop::{
    HEADER_LEN, LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader, MessageType,
    ReplyHeader, ReplyStatus, RequestHeader, ResponseFlags, Target, Version, encode_locate_request,
    encode_request, finish_message, start_message,
};

use super::server::{Reflection, address};
use super::{exchange, orb};
use crate::idl::hostile::MirrorSkeleton;
use crate::typed::Choices;

/// Sends requests to objects whose keys were made of those of others. An object that answers has
/// been activated and not deactivated, and has the identifier that it was given.
pub fn object_keys(data: &[u8]) {
    let server = &*SERVER;
    let mut choices = Choices::new(data);
    let mut octets = Vec::new();
    let mut asked = HashMap::new();
    for id in 0..=choices.pick(7) as u32 {
        let key = server.forge(&mut choices);
        octets.extend(if choices.rarely(4) {
            locate(id, &key)
        } else {
            request(id, &key)
        });
        asked.insert(id, key);
    }
    // One that has to be answered.
    let live = &server.live[0];
    octets.extend(request(LAST, &live.0));
    asked.insert(LAST, live.0.clone());
    let mut answers = &exchange(&server.path, &octets)[..];
    let mut is_answered = false;
    while !answers.is_empty() {
        let header = MessageHeader::parse(answers).expect("the server speaks GIOP");
        let (answer, rest) = answers.split_at(header.message_len());
        answers = rest;
        let id = server.check(header, answer, &asked);
        is_answered |= id == LAST;
    }
    assert!(is_answered, "the last request has no answer");
}

/// A server with objects in adapters of all kinds.
struct Server {
    _server: Orb,
    path: PathBuf,
    /// Keys and identifiers of active objects.
    live: Vec<(Vec<u8>, Vec<u8>)>,
    /// Keys of objects that were deactivated, and of those whose adapter was destroyed.
    dead: Vec<Vec<u8>>,
}

static SERVER: LazyLock<Server> = LazyLock::new(Server::new);

impl Server {
    fn new() -> Self {
        let server = orb(&[], |_| {});
        let root = server.root_poa().expect("it opens");
        let (mut live, mut dead) = (Vec::new(), Vec::new());
        let user = Policy::IdAssignment(IdAssignment::User);
        let persistent = Policy::Lifespan(Lifespan::Persistent);
        let declared = Priority::new(100).expect("not negative");
        let declared = Policy::PriorityModel(PriorityModel::ServerDeclared, declared);
        let kinds: [(&str, Vec<Policy>); 5] = [
            ("transient", vec![]),
            ("user", vec![user.clone()]),
            ("persistent", vec![user.clone(), persistent]),
            ("declared", vec![user, declared]),
            ("destroyed", vec![]),
        ];
        let mut path = PathBuf::new();
        for (name, policies) in kinds {
            let poa = root
                .create_poa(name, Some(root.manager()), &policies)
                .expect("made");
            let has_ids = !policies.is_empty();
            for number in 0..3_u8 {
                let servant = MirrorSkeleton::new(Reflection);
                let id = if has_ids {
                    let id = ObjectId::from(format!("o{number}").as_str());
                    poa.activate_object_with_id(&id, servant)
                        .expect("activated");
                    id
                } else {
                    poa.activate_object(servant).expect("activated")
                };
                let object = poa.id_to_reference(&id).expect("active");
                let (socket, key) = address(&object);
                path = socket;
                if number == 2 {
                    poa.deactivate_object(&id).expect("active");
                }
                if number == 2 || name == "destroyed" {
                    dead.push(key);
                } else {
                    live.push((key, id.as_bytes().to_vec()));
                }
            }
            if name == "destroyed" {
                poa.destroy(false, true).expect("destroyed");
            }
        }
        root.manager().activate().expect("active");
        Self {
            _server: server,
            path,
            live,
            dead,
        }
    }

    /// Makes a key of others.
    fn forge(&self, choices: &mut Choices<'_>) -> Vec<u8> {
        let keys: Vec<&[u8]> = self.live.iter().map(|(key, _)| &key[..]).collect();
        let dead = self.dead.iter().map(|key| &key[..]);
        let keys: Vec<&[u8]> = keys.into_iter().chain(dead).collect();
        let mut key = keys[choices.pick(keys.len())].to_vec();
        while choices.rarely(2) && !key.is_empty() && !choices.is_empty() {
            let at = choices.pick(key.len());
            match choices.pick(7) {
                0 => key[at] = choices.any(),
                1 => key[at] ^= 1 << choices.pick(8),
                2 => key[at] = key[at].wrapping_add(1),
                3 => key.truncate(at),
                4 => key.extend(choices.octets(20)),
                // A priority of its own: the flag, and two octets.
                5 if key.len() > 4 => {
                    key[3] |= 0x10;
                    let priority: [u8; 2] = choices.any();
                    key.splice(4..4, priority);
                }
                _ => {
                    // The end of another.
                    let other = keys[choices.pick(keys.len())];
                    key.truncate(at);
                    key.extend(other.get(at..).unwrap_or_default());
                }
            }
        }
        key
    }

    /// Checks an answer, and returns the identifier of its request.
    fn check(&self, header: MessageHeader, answer: &[u8], asked: &HashMap<u32, Vec<u8>>) -> u32 {
        let mut frame = Frame::new(answer.len(), answer.len());
        frame.extend_from_slice(answer).expect("it is as large");
        let arena = Arena::new(1 << 12);
        let mut d = header.decoder(&mut frame, &arena);
        let (id, is_there, own_id) = match header.kind {
            MessageType::Reply => {
                let reply = ReplyHeader::decode(&mut d, header.protocol).expect("it is right");
                let is_there = reply.status == ReplyStatus::NoException;
                let own_id = is_there.then(|| d.read_octet_seq().expect("a result").to_vec());
                (reply.request_id, is_there, own_id)
            }
            MessageType::LocateReply => {
                let reply = LocateReplyHeader::decode(&mut d, header.protocol);
                let reply = reply.expect("it is right");
                (
                    reply.request_id,
                    reply.status == LocateStatus::ObjectHere,
                    None,
                )
            }
            other => panic!("{other:?} answers a request"),
        };
        let key = asked.get(&id).expect("it was asked");
        if is_there {
            assert!(!self.dead.contains(key), "a deactivated object is there");
        }
        if let Some(own_id) = own_id {
            let is_known = self.live.iter().any(|(_, id)| *id == own_id);
            assert!(is_known, "an object answers that is not there: {own_id:?}");
            let live = self.live.iter().find(|(live, _)| live == key);
            assert!(
                live.is_none_or(|(_, id)| *id == own_id),
                "another object answers"
            );
        } else if id == LAST {
            assert!(is_there, "an active object is not there");
        }
        id
    }
}

fn request(id: u32, key: &[u8]) -> Vec<u8> {
    message(MessageType::Request, |e| {
        let header = RequestHeader {
            request_id: id,
            response: ResponseFlags::SyncWithTarget,
            target: Target::Key(key),
            operation: b"id",
            contexts: &[],
        };
        encode_request(e, Version::V1_2, &header)
    })
}

fn locate(id: u32, key: &[u8]) -> Vec<u8> {
    message(MessageType::LocateRequest, |e| {
        let header = LocateRequestHeader {
            request_id: id,
            target: Target::Key(key),
        };
        encode_locate_request(e, Version::V1_2, &header)
    })
}

fn message(
    kind: MessageType,
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), chronorb::data::CdrError>,
) -> Vec<u8> {
    let mut frame = Frame::new(256, 1 << 12);
    let mut e = start_message(&mut frame, Version::V1_2, kind).expect("there is room");
    write(&mut e).expect("there is room");
    finish_message(&mut frame);
    assert_eq!(frame.as_slice()[6] & 1 == 1, Endian::NATIVE.is_little());
    assert!(frame.len() > HEADER_LEN);
    frame.as_slice().to_vec()
}

/// The identifier of the request that has to be answered.
const LAST: u32 = 4711;
