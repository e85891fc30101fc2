//! Long sequences are sent from their original memory. At any length and position, the message
//! arrives as it was written, or not at all.

use chronorb_cdr::{Arena, CdrError, Decoder, Encoder, Endian, Frame};
use chronorb_giop::{
    HEADER_LEN, IiopProfile, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader,
    ResponseFlags, Target, Version, encode_request, finish_message, start_message,
};
use chronorb_orb::codegen::v1::bad_operation;
use chronorb_orb::{
    Call, CompletionStatus, Object, Orb, OrbConfig, ReplyWriter, Skeleton, SystemException,
    SystemExceptionKind,
};
use chronorb_rt::Deadline;
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::{PATIENCE, call, kind_and_completion, orb, orb_with};

/// The minimum length to be sent from the original memory.
const GREAT: usize = 64 << 10;

/// A servant that returns its argument, or invalid results.
#[derive(Default)]
struct Giver {
    calls: Arc<AtomicU32>,
}

impl Skeleton for Giver {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Giver:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match operation {
            b"mixed" => {
                let mixed = MixedMessage::read(d)?;
                reply.results(&|e| mixed.write(e))
            }
            b"give" => {
                let octets = call.keep(filling(d.read_u32()? as usize));
                reply.results(&|e| e.write_octet_seq(octets))
            }
            b"fickle" => {
                let lengths = [d.read_u32()?, d.read_u32()?];
                reply.results(&fickle(lengths.map(|len| len as usize)))
            }
            b"panic" => reply.results(&panics_the_second_time()),
            b"then_fail" => {
                let octets = call.keep(filling(GREAT));
                reply.results(&|e| e.write_octet_seq(octets))?;
                Err(bad_operation())
            }
            _ => Err(bad_operation()),
        }
    }
}

/// A message with long sequences between other data.
#[derive(Clone, Debug, PartialEq)]
struct MixedMessage<'a> {
    first: u8,
    octets: &'a [u8],
    rank: u16,
    doubles: &'a [f64],
    name: &'a str,
    rest: &'a [u8],
}

impl<'a> MixedMessage<'a> {
    fn write(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_u8(self.first)?;
        e.write_octet_seq(self.octets)?;
        e.write_u16(self.rank)?;
        e.write_seq(self.doubles)?;
        e.write_str(self.name)?;
        e.write_octet_seq(self.rest)
    }

    fn read(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(Self {
            first: d.read_u8()?,
            octets: d.read_octet_seq()?,
            rank: d.read_u16()?,
            doubles: d.read_seq()?,
            name: d.read_str()?,
            rest: d.read_octet_seq()?,
        })
    }
}

fn filling(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8).collect()
}

/// Writes `lengths` octets, the first and the second time.
fn fickle(lengths: [usize; 2]) -> impl Fn(&mut Encoder<'_>) -> Result<(), CdrError> {
    let times = Cell::new(0);
    move |e| {
        let len = lengths[times.replace(1)];
        e.write_octet_seq(&filling(len))
    }
}

fn panics_the_second_time() -> impl Fn(&mut Encoder<'_>) -> Result<(), CdrError> {
    let times = Cell::new(0);
    move |e| {
        e.write_octet_seq(&filling(GREAT))?;
        assert_eq!(times.replace(1), 0, "it is asked to");
        e.write_u32(0)
    }
}

/// A giver, and its reference from a client's point of view.
struct GiverFixture {
    server: Orb,
    client: Orb,
    calls: Arc<AtomicU32>,
    object: Object,
}

impl GiverFixture {
    fn new() -> Self {
        Self::by(orb(), orb())
    }

    /// Creates it with one thread, so that no other can be sending.
    fn by_one_thread() -> Self {
        Self::by(orb_with(|config| config.threads = 1.into()), orb())
    }

    fn by(server: Orb, client: Orb) -> Self {
        let giver = Giver::default();
        let calls = giver.calls.clone();
        let root = server.root_poa().expect("the endpoint opens");
        let object = root.serve(giver).expect("it activates");
        root.manager().activate().expect("it was not deactivated");
        let text = server.object_to_string(&object);
        let object = client.string_to_object(&text).expect("the reference reads");
        Self {
            server,
            client,
            calls,
            object,
        }
    }

    fn assert_echoes(&self, mixed: &MixedMessage<'_>) {
        let same = call(&self.object, "mixed", &|e| mixed.write(e), |d| {
            Ok(MixedMessage::read(d)? == *mixed)
        });
        assert_eq!(same, Ok(true));
    }

    fn give(&self, len: usize) -> Result<(), SystemException> {
        let octets = call(&self.object, "give", &|e| e.write_u32(len as u32), |d| {
            Ok(d.read_octet_seq()?.to_vec())
        });
        octets.map(|octets| assert!(octets == filling(len)))
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Drop for GiverFixture {
    fn drop(&mut self) {
        let _ = self.client.shutdown(false);
        let _ = self.server.shutdown(true);
    }
}

fn assert_all_echoed(s: &GiverFixture) {
    let (octets, doubles) = (filling(4 * GREAT), vec![1.5; GREAT / 2]);
    let lengths = [0, 1, GREAT - 1, GREAT, GREAT + 3, 4 * GREAT];
    for first in lengths {
        for rest in lengths {
            for doubles in [&doubles[..0], &doubles[..GREAT / 8], &doubles] {
                s.assert_echoes(&MixedMessage {
                    first: 7,
                    octets: &octets[..first],
                    rank: 9,
                    doubles,
                    name: "between",
                    rest: &octets[4 * GREAT - rest..],
                });
            }
        }
    }
}

#[test]
fn what_is_great_arrives_where_it_stood() {
    assert_all_echoed(&GiverFixture::new());
}

#[test]
fn with_fragments_it_arrives_too() {
    let orb = || orb_with(|config| config.fragment_size = 1 << 12);
    assert_all_echoed(&GiverFixture::by(orb(), orb()));
}

#[test]
fn within_the_process_it_arrives_too() {
    let orb = orb();
    assert_all_echoed(&GiverFixture::by(orb.clone(), orb));
}

#[test]
fn a_message_over_the_limit_is_refused_before_any_of_it_is_sent() {
    let small = |config: &mut OrbConfig| config.max_message_size = 1 << 20;
    let s = GiverFixture::by(orb(), orb_with(small));
    let octets = filling(2 << 20);
    let refused = call(&s.object, "mixed", &|e| e.write_octet_seq(&octets), |_| {
        Ok(())
    });
    let expected = (SystemExceptionKind::ImpLimit, CompletionStatus::No);
    assert_eq!(kind_and_completion(refused), expected);
    assert_eq!(s.give(GREAT), Ok(()));
    assert_eq!(s.calls(), 1);

    let s = GiverFixture::by(orb_with(small), orb());
    let expected = (SystemExceptionKind::ImpLimit, CompletionStatus::Yes);
    assert_eq!(kind_and_completion(s.give(2 << 20)), expected);
    assert_eq!(s.give(GREAT), Ok(()));
}

#[test]
fn arguments_that_are_others_the_second_time_reach_no_servant() {
    let s = GiverFixture::new();
    let lengths = [GREAT, GREAT + 8, 2 * GREAT];
    for first in lengths {
        for second in lengths.into_iter().chain([0]).filter(|len| *len != first) {
            let write = fickle([first, second]);
            let refused = call(&s.object, "mixed", &write, |_| Ok(()));
            let expected = (SystemExceptionKind::Marshal, CompletionStatus::No);
            let exception = refused.expect_err("not what was announced");
            assert_eq!(
                exception.completed, expected.1,
                "{first} {second}: {exception}"
            );
            assert_eq!(s.calls(), 0);
        }
    }
    assert_eq!(s.give(GREAT), Ok(()));
}

#[test]
fn results_that_are_others_the_second_time_end_the_connection() {
    let s = GiverFixture::by_one_thread();
    let lengths = [GREAT as u32, GREAT as u32 + 8, 2 * GREAT as u32];
    for first in lengths {
        for second in lengths.into_iter().chain([0]).filter(|len| *len != first) {
            let write = |e: &mut Encoder<'_>| e.write_u32(first).and_then(|()| e.write_u32(second));
            let refused = call(&s.object, "fickle", &write, |_| Ok(()));
            let expected = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);
            assert_eq!(kind_and_completion(refused), expected, "{first} {second}");
            assert_eq!(s.give(GREAT), Ok(()));
        }
    }
}

#[test]
fn a_panic_in_the_middle_of_a_message_ends_its_connection_alone() {
    let s = GiverFixture::by_one_thread();
    let write = panics_the_second_time();
    let called = catch_unwind(AssertUnwindSafe(|| {
        call(&s.object, "mixed", &write, |_| Ok(()))
    }));
    assert!(called.is_err());
    assert_eq!(s.give(GREAT), Ok(()));
    assert_eq!(s.calls(), 1);

    let ended = call(&s.object, "panic", &|_| Ok(()), |_| Ok(()));
    let expected = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);
    assert_eq!(kind_and_completion(ended), expected);
    assert_eq!(s.give(GREAT), Ok(()));
}

#[test]
fn a_reply_that_has_gone_is_not_followed_by_another() {
    let s = GiverFixture::by_one_thread();
    let read = |d: &mut Decoder<'_>| Ok(d.read_octet_seq()?.len());
    for _ in 0..3 {
        let given = call(&s.object, "then_fail", &|_| Ok(()), read);
        assert_eq!(given, Ok(GREAT));
    }
    assert_eq!(s.give(GREAT), Ok(()));
}

#[test]
fn a_server_that_takes_nothing_ends_the_wait_in_time_and_gets_no_whole_message() {
    const LEN: usize = 64 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let client = orb_with(|config| {
        config.request_timeout = Duration::from_millis(200);
        config.max_message_size = 2 * LEN;
    });
    let url = format!("corbaloc:iiop:1.2@{address}/key");
    let object = client.string_to_object(&url).expect("the URL reads");
    let octets = vec![1; LEN];
    let late = call(
        &object,
        "mixed",
        &|e| e.write_octet_seq(&octets),
        |_| Ok(()),
    );
    let expected = (SystemExceptionKind::Timeout, CompletionStatus::No);
    assert_eq!(kind_and_completion(late), expected);
    let (mut peer, _) = listener.accept().expect("it came");
    let mut taken = 0;
    let mut room = vec![0; 1 << 20];
    while let Ok(n @ 1..) = peer.read(&mut room) {
        taken += n;
    }
    assert!((HEADER_LEN..LEN).contains(&taken), "{taken} octets");
    client.shutdown(false).expect("it can be shut down");
}

/// Returns a manual request for `len` octets.
fn request(s: &GiverFixture, request_id: u32, len: usize) -> Vec<u8> {
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let mut frame = Frame::new(1024, 1 << 20);
    let mut e = start_message(&mut frame, Version::V1_2, MessageType::Request).expect("it fits");
    let header = RequestHeader {
        request_id,
        response: ResponseFlags::SyncWithTarget,
        target: Target::Key(&profile.object_key),
        operation: b"give",
        contexts: &[],
    };
    encode_request(&mut e, Version::V1_2, &header).expect("it fits");
    e.align(8)
        .and_then(|()| e.write_u32(len as u32))
        .expect("it fits");
    finish_message(&mut frame);
    frame.as_slice().to_vec()
}

#[test]
fn a_slow_client_gets_the_replies_of_all_threads_whole() {
    const REPLIES: u32 = 12;
    let len_of = |id: u32| match id % 3 {
        0 => 4 << 20,
        1 => 100,
        _ => GREAT,
    };
    let s = GiverFixture::new();
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let mut peer = TcpStream::connect((profile.host.as_str(), profile.port)).expect("it listens");
    peer.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let requests = (0..REPLIES).flat_map(|id| request(&s, id, len_of(id)));
    peer.write_all(&requests.collect::<Vec<_>>())
        .expect("it is there");
    // No reply is read before the first one is under way, and the transport has no room for all of
    // them.
    let deadline = Deadline::after(PATIENCE);
    while s.calls() == 0 {
        assert!(!deadline.has_passed(), "none was served");
        std::thread::yield_now();
    }
    let arena = Arena::new(0);
    let mut answered = Vec::new();
    while answered.len() < REPLIES as usize {
        let mut octets = vec![0; HEADER_LEN];
        peer.read_exact(&mut octets).expect("a header");
        let header = MessageHeader::parse(&octets).expect("the server speaks GIOP");
        octets.resize(header.message_len(), 0);
        let body = &mut octets[HEADER_LEN..];
        peer.read_exact(body).expect("a body");
        let mut d = Decoder::new(body, HEADER_LEN, Endian::NATIVE, &arena);
        let reply = ReplyHeader::decode(&mut d, Version::V1_2).expect("a reply");
        assert_eq!(reply.status, ReplyStatus::NoException);
        let given = d.read_octet_seq().expect("octets");
        assert!(given == filling(len_of(reply.request_id)));
        assert!(d.is_empty());
        answered.push(reply.request_id);
    }
    answered.sort_unstable();
    assert_eq!(answered, Vec::from_iter(0..REPLIES));
}
