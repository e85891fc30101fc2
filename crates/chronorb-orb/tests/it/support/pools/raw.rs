//! Manual connections.

use std::io::{Read, Write};
use std::net::TcpStream;

use chronorb_cdr::{Decoder, Frame};
use chronorb_giop::contexts::{
    INVOCATION_POLICIES, RT_CORBA_PRIORITY, SCHEDULING, encode_priority,
};
use chronorb_giop::{
    HEADER_LEN, LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader, MessageType,
    ReplyHeader, ReplyStatus, RequestHeader, ResponseFlags, ServiceContext, Target, Version,
    encode_locate_request, encode_request, finish_message, start_message,
};
use chronorb_orb::{Object, SystemException};

use crate::support::PATIENCE;
use crate::support::adapters::profile_of;

/// A manually sent request.
pub(crate) struct SentRequest {
    pub(super) class: usize,
    pub(crate) number: u32,
    pub(crate) raw: Raw,
}

impl SentRequest {
    pub(crate) fn by(raw: Raw, class: usize, number: u32) -> Self {
        Self { class, number, raw }
    }

    /// Returns whether there is an answer yet.
    pub(crate) fn is_answered(&self) -> bool {
        let stream = &self.raw.stream;
        stream.set_nonblocking(true).expect("it is TCP");
        let peeked = stream.peek(&mut [0]);
        stream.set_nonblocking(false).expect("it is TCP");
        peeked.is_ok()
    }
}

/// A manual connection.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    pub(super) key: Vec<u8>,
    /// The priority of requests.
    pub(super) priority: Option<i16>,
    /// Their invocation policies.
    pub(crate) invocation_policies: Option<Vec<u8>>,
    /// The content of their context of scheduling parameters.
    pub(crate) scheduling: Option<Vec<u8>>,
}

impl Raw {
    /// Connects to the endpoint in a reference; its requests are for that object.
    pub(crate) fn to(object: &Object) -> Self {
        let profile = profile_of(object);
        let stream = TcpStream::connect((profile.host.as_str(), profile.port));
        let stream = stream.expect("it listens");
        stream.set_nodelay(true).expect("it is TCP");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("it is not zero");
        Self {
            stream,
            key: profile.object_key,
            priority: None,
            invocation_policies: None,
            scheduling: None,
        }
    }

    /// Sends this priority with requests from now on.
    #[cfg(feature = "baselines")]
    pub(crate) fn set_priority(&mut self, value: i16) {
        self.priority = Some(value);
    }

    /// Sends a request to a held servant.
    pub(crate) fn hold(&mut self, version: Version, number: u32, octets: usize) {
        let message = self.request(
            version,
            ResponseFlags::SyncWithTarget,
            b"hold",
            number,
            octets,
        );
        self.send(&message);
    }

    pub(crate) fn send(&mut self, octets: &[u8]) {
        self.stream.write_all(octets).expect("it is there");
    }

    /// Sends octets. Returns whether the server still has the connection open.
    pub(crate) fn try_send(&mut self, octets: &[u8]) -> bool {
        self.stream.write_all(octets).is_ok()
    }

    /// Returns a message to a held servant, with its number as the request id.
    pub(crate) fn request(
        &self,
        version: Version,
        response: ResponseFlags,
        operation: &[u8],
        number: u32,
        octets: usize,
    ) -> Vec<u8> {
        let mut frame = Frame::new(1024, 16 << 20);
        let mut e = start_message(&mut frame, version, MessageType::Request).expect("it fits");
        let data = self.priority.map(encode_priority);
        let priority = data.as_ref().map(|data| ServiceContext {
            id: RT_CORBA_PRIORITY,
            data,
        });
        let policies = self.invocation_policies.as_ref();
        let policies = policies.map(|data| ServiceContext {
            id: INVOCATION_POLICIES,
            data,
        });
        let scheduling = self.scheduling.as_ref().map(|data| ServiceContext {
            id: SCHEDULING,
            data,
        });
        let contexts = priority.into_iter().chain(policies).chain(scheduling);
        let contexts: Vec<_> = contexts.collect();
        let header = RequestHeader {
            request_id: number,
            response,
            target: Target::Key(&self.key),
            operation,
            contexts: &contexts,
        };
        encode_request(&mut e, version, &header).expect("it fits");
        if version >= Version::V1_2 {
            e.align(8).expect("it fits");
        }
        e.write_u32(number).expect("it fits");
        e.write_octet_seq(&vec![0; octets]).expect("it fits");
        finish_message(&mut frame);
        frame.as_slice().to_vec()
    }

    /// Sends a locate request.
    pub(crate) fn locate(&mut self, version: Version, number: u32) {
        let mut frame = Frame::new(64, 1 << 20);
        let mut e =
            start_message(&mut frame, version, MessageType::LocateRequest).expect("it fits");
        let header = LocateRequestHeader {
            request_id: number,
            target: Target::Key(&self.key),
        };
        encode_locate_request(&mut e, version, &header).expect("it fits");
        finish_message(&mut frame);
        self.send(frame.as_slice());
    }

    /// Returns the next message; `None` where the server has closed.
    pub(crate) fn receive(&mut self) -> Option<(MessageHeader, Vec<u8>)> {
        let mut octets = vec![0; HEADER_LEN];
        self.stream.read_exact(&mut octets).ok()?;
        let header = MessageHeader::parse(&octets).expect("the server speaks GIOP");
        octets.resize(header.message_len(), 0);
        self.stream.read_exact(&mut octets[HEADER_LEN..]).ok()?;
        Some((header, octets))
    }

    /// Returns the next reply: its version, the number of its request, and the exception, if there
    /// is one.
    pub(crate) fn reply(&mut self) -> (Version, u32, Option<SystemException>) {
        let (message, octets) = self.receive().expect("an answer");
        assert_eq!(message.kind, MessageType::Reply);
        decoded(&octets, |d| {
            let header = ReplyHeader::decode(d, message.version()).expect("a reply");
            let exception = match header.status {
                ReplyStatus::NoException => None,
                ReplyStatus::SystemException => {
                    Some(SystemException::decode(d).expect("an exception"))
                }
                other => panic!("{other:?}"),
            };
            (message.version(), header.request_id, exception)
        })
    }

    /// Returns the next answer to a locate request.
    pub(crate) fn located(&mut self) -> (u32, LocateStatus) {
        let (message, octets) = self.receive().expect("an answer");
        assert_eq!(message.kind, MessageType::LocateReply);
        decoded(&octets, |d| {
            let header = LocateReplyHeader::decode(d, message.version()).expect("an answer");
            (header.request_id, header.status)
        })
    }
}

fn decoded<R>(octets: &[u8], read: impl FnOnce(&mut Decoder<'_>) -> R) -> R {
    let mut frame = Frame::new(octets.len(), octets.len());
    frame
        .extend_from_slice(octets)
        .expect("it is as long as that");
    let arena = chronorb_cdr::Arena::new(4 << 10);
    let endian = MessageHeader::parse(octets).expect("a header").endian;
    read(&mut frame.decoder(HEADER_LEN, endian, &arena))
}
