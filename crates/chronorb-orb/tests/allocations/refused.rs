//! Lack of memory for growth that a peer causes: the call fails with `NO_MEMORY`, or a connection
//! ends; the process and other peers continue.

use chronorb_cdr::{Decoder, Frame};
use chronorb_giop::{
    IiopProfile, MessageType, RequestHeader, ResponseFlags, Target, Version, encode_request,
    finish_message, start_message,
};
use chronorb_orb::ThreadpoolStrategy::{HalfSyncHalfAsync, LeaderFollowers};
use chronorb_orb::codegen::v1::reply_error;
use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{Priority, RequestBuffering, Threadpool};
use chronorb_orb::{
    Call, CompletionStatus, InitError, Object, Orb, OrbConfig, ReplyWriter, Skeleton,
    SystemException, SystemExceptionKind, minor,
};
use chronorb_rt::refuse_above;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use crate::alone;
use crate::support::raw_server::{fragments, object_at, raw_server};
use crate::support::{
    PATIENCE, Probe, ProbeSkeleton, add, call, nothing, orb, orb_with, served, served_by,
};

/// The largest block that is granted. Permanent allocations of an ORB are smaller.
const GRANTED: usize = 1 << 20;
/// The length of a message that needs more.
const GREAT: usize = 4 << 20;

fn no_memory(completed: CompletionStatus) -> SystemException {
    SystemException::new(
        SystemExceptionKind::NoMemory,
        minor::OUT_OF_MEMORY,
        completed,
    )
}

fn connect(object: &Object) -> (TcpStream, Vec<u8>) {
    let profile = IiopProfile::decode(&object.ior().profiles[0].data).expect("our own");
    let stream = TcpStream::connect((profile.host.as_str(), profile.port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream.set_write_timeout(Some(PATIENCE)).expect("not zero");
    (stream, profile.object_key)
}

/// Returns a request for this many `octets`.
fn request(key: &[u8], octets: usize) -> Vec<u8> {
    let mut frame = Frame::new(octets + 1024, 2 * GREAT);
    let mut e = start_message(&mut frame, Version::V1_2, MessageType::Request).expect("it fits");
    let header = RequestHeader {
        request_id: 5,
        response: ResponseFlags::SyncWithTarget,
        target: Target::Key(key),
        operation: b"octets",
        contexts: &[],
    };
    encode_request(&mut e, Version::V1_2, &header).expect("it fits");
    e.align(8).expect("it fits");
    e.write_octet_seq(&vec![7; octets]).expect("it fits");
    finish_message(&mut frame);
    frame.as_slice().to_vec()
}

/// Returns completion status and minor code of the exception in the next reply of GIOP 1.2.
fn refusal(stream: &mut TcpStream) -> (u32, u32) {
    let mut reply = vec![0; 12];
    stream.read_exact(&mut reply).expect("a reply");
    let number = |octets: &[u8]| u32::from_ne_bytes(octets.try_into().expect("four"));
    reply.resize(number(&reply[8..12]) as usize, 0);
    stream.read_exact(&mut reply).expect("its body");
    assert_eq!(number(&reply[4..8]), 2, "SYSTEM_EXCEPTION");
    assert!(reply.windows(9).any(|part| part == b"NO_MEMORY"));
    let end = reply.len();
    (number(&reply[end - 4..]), number(&reply[end - 8..end - 4]))
}

fn octets(object: &Object, octets: &[u8]) -> Result<bool, SystemException> {
    call(object, "octets", &|e| e.write_octet_seq(octets), |d| {
        Ok(d.read_octet_seq()? == octets)
    })
}

#[test]
fn a_request_that_finds_no_memory_is_refused_and_the_next_is_served() {
    let _alone = alone();
    for strategy in [LeaderFollowers, HalfSyncHalfAsync] {
        let s = served_by(orb_with(|config| config.threadpool_strategy = strategy));
        assert_eq!(add(&s.object, 1, 1), Ok(2));
        let (mut stream, key) = connect(&s.object);
        let whole = request(&key, GREAT);
        let parts = fragments(&whole, 100_000).concat();
        {
            let _refused = refuse_above(GRANTED);
            for message in [&whole, &parts, &whole] {
                stream.write_all(message).expect("it is taken");
                assert_eq!(refusal(&mut stream), (1, minor::OUT_OF_MEMORY), "NO");
            }
            assert_eq!(add(&s.object, 1, 1), Ok(2));
        }
        assert_eq!(octets(&s.object, &vec![7; GREAT]), Ok(true));
    }
}

/// A servant that returns as many octets as it is asked for.
struct Source;

impl Skeleton for Source {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Source:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        _: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let pieces = d.read_i32()?;
        let e = reply.normal()?;
        e.write_len(pieces as usize * PIECE.len())
            .map_err(reply_error)?;
        (0..pieces).try_for_each(|_| e.write_octets(&PIECE).map_err(reply_error))
    }
}

static PIECE: [u8; 1 << 10] = [7; 1 << 10];

fn pieces(object: &Object, pieces: i32) -> Result<usize, SystemException> {
    call(object, "pieces", &|e| e.write_i32(pieces), |d| {
        Ok(d.read_octet_seq()?.len())
    })
}

#[test]
fn a_reply_that_finds_no_memory_is_an_exception() {
    let _alone = alone();
    let server = orb();
    let root = server.root_poa().expect("the endpoint opens");
    let source = root.serve(Source).expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = orb();
    let text = server.object_to_string(&source);
    let object = client.string_to_object(&text).expect("the reference reads");
    assert_eq!(pieces(&object, 1), Ok(1 << 10));
    {
        let _refused = refuse_above(GRANTED);
        let refused = pieces(&object, 4 << 10);
        assert_eq!(refused, Err(no_memory(CompletionStatus::Yes)));
        assert_eq!(pieces(&object, 1), Ok(1 << 10));
    }
    assert_eq!(pieces(&object, 4 << 10), Ok(GREAT));
    client.shutdown(false).expect("it can be shut down");
    server.shutdown(true).expect("it can be shut down");
}

#[test]
fn a_reply_that_the_client_finds_no_memory_for_is_an_exception() {
    let _alone = alone();
    let server = raw_server(|mut peer| {
        while let Some((id, _)) = peer.request() {
            let mut reply = b"GIOP\x01\x02\x01\x01".to_vec();
            reply.extend_from_slice(&(GREAT as u32 + 16).to_le_bytes());
            reply.extend_from_slice(&id.to_le_bytes());
            reply.resize(12 + 16 + GREAT, 0);
            peer.send(&reply);
        }
    });
    let client = orb();
    let object = object_at(&client, server.address);
    // The server's buffer is its own.
    let refused = std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let _refused = refuse_above(5 * GRANTED);
            add(&object, 1, 1)
        });
        caller.join().expect("it does not panic")
    });
    assert_eq!(refused, Err(no_memory(CompletionStatus::Maybe)));
    client.shutdown(false).expect("it can be shut down");
}

#[test]
fn replies_that_nobody_takes_end_their_connection_where_there_is_no_memory() {
    let _alone = alone();
    let s = served();
    let (mut stream, key) = connect(&s.object);
    let many = request(&key, 50_000).repeat(10);
    let _refused = refuse_above(GRANTED);
    let sent = (0..1_000).try_for_each(|_| stream.write_all(&many));
    assert!(sent.is_err(), "500 MB of replies are kept somewhere");
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn a_request_that_would_wait_for_a_thread_is_refused_without_memory() {
    let _alone = alone();
    let server = orb();
    let pool = Threadpool {
        request_buffering: Some(RequestBuffering {
            max_requests: 10,
            max_octets: 0,
        }),
        ..Threadpool::new(Priority::MIN, 1)
    };
    let pool = server.rt().create_threadpool(&pool).expect("it opens");
    let root = server.root_poa().expect("it is not served yet");
    let policies = [Policy::Threadpool(pool)];
    let poa = root.create_poa("buffered", Some(root.manager()), &policies);
    let poa = poa.expect("they agree");
    let probe = Arc::new(Probe::default());
    let object = poa.serve(ProbeSkeleton(probe.clone())).expect("it opens");
    root.manager().activate().expect("it was not deactivated");
    let client = orb();
    let text = server.object_to_string(&object);
    let object = client.string_to_object(&text).expect("the reference reads");
    let great = vec![7; GREAT];
    // The threads' frames have room for it by then.
    for _ in 0..10 {
        assert_eq!(octets(&object, &great), Ok(true));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| nothing(&object, "wait"));
        probe.gate.reach(1);
        let refused = {
            let _refused = refuse_above(GRANTED);
            octets(&object, &great)
        };
        probe.gate.set(2);
        let refused = refused.expect_err("there is no memory");
        // The result depends on the reading thread: whether its own frame had grown.
        let kinds = [
            SystemExceptionKind::Transient,
            SystemExceptionKind::NoMemory,
        ];
        assert!(kinds.contains(&refused.kind), "{refused}");
        assert_eq!(refused.completed, CompletionStatus::No);
    });
    assert_eq!(octets(&object, &great), Ok(true));
    client.shutdown(false).expect("it can be shut down");
    server.shutdown(true).expect("it can be shut down");
}

#[test]
fn an_arena_that_is_too_large_is_an_error_at_the_start() {
    let _alone = alone();
    let mut args = [
        "-ORBArenaSize",
        "4194304",
        "-ORBListenEndpoints",
        "iiop://127.0.0.1:0",
    ]
    .map(str::to_owned)
    .to_vec();
    let config = OrbConfig::read(&mut args).expect("the options are correct");
    let refused = {
        let _refused = refuse_above(GRANTED);
        Orb::with_config(config.clone())
    };
    assert!(matches!(refused, Err(InitError::NoMemoryForArena(n)) if n == 4 << 20));
    // If memory is exhausted later, the threads of a pool cannot be started.
    let orb = Orb::with_config(config).expect("an ORB can be made");
    let served = {
        let _refused = refuse_above(GRANTED);
        let root = orb.root_poa().expect("it is not served yet");
        root.serve(Source).map(drop)
    };
    let error = served.expect_err("there is no memory");
    let no_resources = SystemException::no(SystemExceptionKind::NoResources, 0);
    assert_eq!(error.system_exception(), Some(no_resources));
    orb.shutdown(true).expect("it can be shut down");
}
