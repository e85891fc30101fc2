//! Every class of hostile input, one after the other, in a separate process. After each one the
//! server answers other clients. At the end it has the same threads, descriptors and memory as
//! before.

use std::net::Shutdown;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use chronorb_giop::codesets::{CodeSetContext, ISO_8859_1, UTF_8, UTF_16};
use chronorb_giop::{
    Ior, LocateRequestHeader, TAG_INTERNET_IOP, TaggedProfile, contexts, encode_locate_request,
};
#[cfg(feature = "baselines")]
use chronorb_orb::ThreadpoolStrategy::WorkerPool;
use chronorb_orb::ThreadpoolStrategy::{HalfSyncHalfAsync, LeaderFollowers, ThreadPerConnection};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use crate::support::descriptors::spawn;
use crate::support::name_of;

/// The octets that a peer sends before it closes its side, and the expected answers.
struct Case {
    name: String,
    octets: Vec<u8>,
    answers: Vec<MessageType>,
}

const REPLY: MessageType = MessageType::Reply;
const ERROR: MessageType = MessageType::MessageError;
const TWOWAY: ResponseFlags = ResponseFlags::SyncWithTarget;

fn case(name: impl Into<String>, octets: impl Into<Vec<u8>>, answers: &[MessageType]) -> Case {
    Case {
        name: name.into(),
        octets: octets.into(),
        answers: answers.to_vec(),
    }
}

/// Returns a message of GIOP 1.2 in little-endian order. Bit 1 of the flags means that fragments
/// follow.
fn raw(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut octets = vec![b'G', b'I', b'O', b'P', 1, 2, flags | 1, kind];
    octets.extend_from_slice(&(body.len() as u32).to_le_bytes());
    octets.extend_from_slice(body);
    octets
}

/// Returns the beginning of a request in fragments.
fn begin(id: u32) -> Vec<u8> {
    raw(0, 2, &[&id.to_le_bytes()[..], &[0; 4]].concat())
}

/// Returns a fragment of a request.
fn fragment(id: u32, more: bool) -> Vec<u8> {
    raw(7, if more { 2 } else { 0 }, &id.to_le_bytes())
}

fn headers(_: &ServedProbe) -> Vec<Case> {
    let mut cases = vec![
        case("nothing", [], &[]),
        case("half a header", *b"GIOP\x01\x02\x01", &[]),
        case(
            "a promise that is not kept",
            *b"GIOP\x01\x02\x01\x00\xff\x00\x00\x00",
            &[],
        ),
        case(
            "a size of 2^32 - 1",
            *b"GIOP\x01\x02\x01\x00\xff\xff\xff\xff",
            &[ERROR],
        ),
        case(
            "a size of 0x80000000",
            *b"GIOP\x01\x02\x00\x00\x80\x00\x00\x00",
            &[ERROR],
        ),
        case(
            "a great size of another type",
            *b"GIOP\x01\x02\x01\x01\x00\x00\x00\x02",
            &[ERROR],
        ),
        case("zeros", [0; 1000], &[ERROR]),
        case("HTTP", *b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &[ERROR]),
        case(
            "TLS",
            *b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00",
            &[ERROR],
        ),
        case("ZIOP", *b"ZIOP\x01\x02\x01\x00\x00\x00\x00\x00", &[ERROR]),
    ];
    for (major, minor) in [(0, 0), (1, 3), (1, 9), (1, 255), (2, 0), (255, 255)] {
        let mut octets = raw(0, 0, &[0; 40]);
        octets[4..6].copy_from_slice(&[major, minor]);
        cases.push(case(format!("version {major}.{minor}"), octets, &[ERROR]));
    }
    for kind in 0..=255 {
        // A truncated CancelRequest is treated like one of an unknown request.
        let is_silent = matches!(kind, 2 | 5 | 6);
        let answers: &[MessageType] = if is_silent { &[] } else { &[ERROR] };
        cases.push(case(format!("type {kind}"), raw(kind, 0, &[]), answers));
    }
    cases
}

fn fragments(s: &ServedProbe) -> Vec<Case> {
    let whole = request(s, Version::V1_2);
    let mut tiny = whole.clone();
    tiny[6] |= 2;
    let id = u32::from_ne_bytes(whole[12..16].try_into().expect("four"));
    let native = whole[6];
    let fragment_of_it = |more: bool| {
        let mut octets = fragment(id, more);
        octets[6] = native | if more { 2 } else { 0 };
        octets[8..12].copy_from_slice(&4_u32.to_ne_bytes());
        octets[12..16].copy_from_slice(&id.to_ne_bytes());
        octets
    };
    for _ in 0..30_000 {
        tiny.extend(fragment_of_it(true));
    }
    tiny.extend(fragment_of_it(false));
    let ids = |n: u32| (0..n).flat_map(begin).collect::<Vec<_>>();
    let mut of_1_1 = begin(1);
    of_1_1[5] = 1;
    let mut big = fragment(1, false);
    big[6] = 0;
    big[8..12].copy_from_slice(&4_u32.to_be_bytes());
    let cancel = raw(2, 0, &1_u32.to_le_bytes());
    vec![
        case("an orphan", fragment(1, false), &[ERROR]),
        case(
            "of another request",
            [begin(1), fragment(2, true)].concat(),
            &[ERROR],
        ),
        case("begun twice", [begin(1), begin(1)].concat(), &[ERROR]),
        case("16 requests", ids(16), &[]),
        case("17 requests", ids(17), &[ERROR]),
        case(
            "of another version",
            [of_1_1, fragment(1, false)].concat(),
            &[ERROR],
        ),
        case("of another order", [begin(1), big].concat(), &[ERROR]),
        case(
            "too short for an id",
            [begin(1), raw(7, 0, &[1, 0])].concat(),
            &[ERROR],
        ),
        case("30,000 tiny ones", tiny, &[REPLY]),
        case(
            "no header in them",
            [begin(1), fragment(1, false)].concat(),
            &[ERROR],
        ),
        case(
            "a cancel amid them",
            [begin(1), cancel.clone(), whole].concat(),
            &[REPLY],
        ),
        case(
            "after a cancel",
            [begin(1), cancel, fragment(1, false)].concat(),
            &[ERROR],
        ),
        case(
            "a close amid them",
            [begin(1), raw(5, 0, &[])].concat(),
            &[],
        ),
        case(
            "an error amid them",
            [begin(1), raw(6, 0, &[])].concat(),
            &[],
        ),
    ]
}

/// Returns requests whose counts exceed their content.
fn counts(s: &ServedProbe) -> Vec<Case> {
    let huge = |e: &mut Encoder<'_>| e.write_u32(u32::MAX);
    let half = |e: &mut Encoder<'_>| e.write_u32(0x7fff_ffff);
    let mut cases = Vec::new();
    for (index, version) in [Version::V1_0, Version::V1_1, Version::V1_2]
        .into_iter()
        .enumerate()
    {
        for operation in [
            &b"octets"[..],
            b"echo",
            b"refuse",
            b"relay",
            b"_is_a",
            b"absent",
        ] {
            for body in [&huge as &dyn Fn(&mut Encoder<'_>) -> _, &half] {
                let octets = message(s, version, operation, TWOWAY, &[], body);
                let name = format!("1.{index} {}", operation.escape_ascii());
                cases.push(case(name, octets, &[REPLY]));
            }
        }
    }
    // Key, operation and contexts of a request of GIOP 1.2.
    let sound = request(s, Version::V1_2);
    let key_len = u32::from_ne_bytes(sound[24..28].try_into().expect("four")) as usize;
    let operation = 28 + key_len.next_multiple_of(4);
    for (name, at) in [
        ("key", 24),
        ("operation", operation),
        ("contexts", operation + 8),
    ] {
        for count in [u32::MAX, 0x7fff_ffff, 0x1000_0000, sound.len() as u32] {
            let mut octets = sound.clone();
            octets[at..at + 4].copy_from_slice(&count.to_ne_bytes());
            cases.push(case(format!("{count} of {name}"), octets, &[ERROR]));
        }
    }
    cases
}

fn references(s: &ServedProbe) -> Vec<Case> {
    let reference = |profiles: usize, data: &[u8]| {
        let profile = TaggedProfile {
            tag: TAG_INTERNET_IOP,
            data: data.to_vec(),
        };
        let ior = Ior {
            type_id: "IDL:Test/Probe:1.0".to_owned(),
            profiles: vec![profile; profiles],
        };
        let write = move |e: &mut Encoder<'_>| ior.encode(e);
        message(s, Version::V1_2, b"relay", TWOWAY, &[], &write)
    };
    let own = &s.object.ior().profiles[0].data;
    vec![
        case("nil", reference(0, &[]), &[REPLY]),
        case("1,000 empty profiles", reference(1_000, &[]), &[REPLY]),
        case(
            "1,000 malformed profiles",
            reference(1_000, &[1, 0xff, 0xff]),
            &[REPLY],
        ),
        case("1,000 sound profiles", reference(1_000, own), &[REPLY]),
    ]
}

fn keys(s: &ServedProbe) -> Vec<Case> {
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let key = profile.object_key;
    let mut forged: Vec<Vec<u8>> = (0..key.len())
        .map(|at| {
            let mut forged = key.clone();
            forged[at] ^= 0xff;
            forged
        })
        .collect();
    forged.extend((0..key.len()).map(|len| key[..len].to_vec()));
    forged.extend([vec![0xff; 60_000], [&key[..], &key].concat()]);
    let write = |e: &mut Encoder<'_>| e.write_i32(20).and_then(|()| e.write_i32(22));
    let requests = forged
        .iter()
        .flat_map(|key| request_to(key, Version::V1_2, b"add", TWOWAY, &[], &write));
    let octets: Vec<u8> = requests.collect();
    vec![case("forged keys", octets, &vec![REPLY; forged.len()])]
}

fn service_contexts(s: &ServedProbe) -> Vec<Case> {
    let write = |e: &mut Encoder<'_>| e.write_i32(20).and_then(|()| e.write_i32(22));
    let with = |contexts: &[ServiceContext<'_>]| -> Vec<u8> {
        message(s, Version::V1_2, b"add", TWOWAY, contexts, &write)
    };
    fn context(id: u32, data: &[u8]) -> ServiceContext<'_> {
        ServiceContext { id, data }
    }
    let great = vec![7; 1 << 20];
    let mut cases = vec![
        case(
            "2,000 contexts",
            with(&[context(77, &[1]); 2_000]),
            &[REPLY],
        ),
        case("one of 1 MB", with(&[context(77, &great)]), &[REPLY]),
    ];
    for id in [
        contexts::CODE_SETS,
        contexts::RT_CORBA_PRIORITY,
        contexts::ONE_AT_A_TIME,
    ] {
        for data in [&[][..], &[1], &[0xff; 100], &[1, 0, 0xff, 0xff]] {
            let octets = with(&[context(id, data), context(id, data)]);
            cases.push(case(
                format!("context {id} of {} octets", data.len()),
                octets,
                &[REPLY],
            ));
        }
    }
    let flapping = (0..500).flat_map(|n| {
        let sets = CodeSetContext {
            char_data: [UTF_8, ISO_8859_1, 0, 0xdead_beef][n % 4],
            wchar_data: [UTF_16, 0, 0xdead_beef][n % 3],
        };
        with(&[context(contexts::CODE_SETS, &sets.encode())])
    });
    let octets: Vec<u8> = flapping.collect();
    cases.push(case("code sets that flap", octets, &[REPLY; 500]));
    cases
}

fn floods(s: &ServedProbe) -> Vec<Case> {
    let mut frame = Frame::new(1024, 1024);
    let kind = MessageType::LocateRequest;
    let mut e = start_message(&mut frame, Version::V1_2, kind).expect("it fits");
    let header = LocateRequestHeader {
        request_id: 5,
        target: Target::Key(b"Absent"),
    };
    encode_locate_request(&mut e, Version::V1_2, &header).expect("it fits");
    finish_message(&mut frame);
    let located = [MessageType::LocateReply; 5_000];
    let cancels = raw(2, 0, &9_u32.to_le_bytes()).repeat(50_000);
    let requests = request(s, Version::V1_2).repeat(500);
    vec![
        case("locates", frame.as_slice().repeat(5_000), &located),
        case(
            "cancels",
            [cancels, request(s, Version::V1_2)].concat(),
            &[REPLY],
        ),
        case("requests", requests, &[REPLY; 500]),
    ]
}

/// Sends the octets of a case and reads all answers at the same time.
fn answers(s: &ServedProbe, octets: &[u8]) -> Vec<MessageType> {
    let mut stream = connect(s);
    let mut sender = stream.try_clone().expect("it is open");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = sender.write_all(octets);
            let _ = sender.shutdown(Shutdown::Write);
        });
        std::iter::from_fn(|| receive(&mut stream))
            .map(|(header, _)| header.kind)
            .collect()
    })
}

fn check(s: &ServedProbe, class: &str, case: &Case) {
    let Case {
        name,
        octets,
        answers: expected,
    } = case;
    let got = answers(s, octets);
    // A reset because of unread octets may overtake the last message.
    let is_reset = got.is_empty() && expected == &[ERROR];
    assert!(got == *expected || is_reset, "{class}, {name}: {got:?}");
    assert_eq!(add(&s.object, 40, 2), Ok(42), "after {class}, {name}");
}

/// Disconnects peers at various stages.
fn leave(s: &ServedProbe) {
    let whole = request(s, Version::V1_2);
    for n in 0..200 {
        let mut stream = connect(s);
        let _ = stream.write_all(&whole[..n % whole.len()]);
        let at_once = Some(Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(stream.as_fd(), at_once).expect("it is TCP");
    }
    assert_eq!(add(&s.object, 40, 2), Ok(42), "after resets");
    let idle: Vec<_> = (0..300).map(|_| connect(s)).collect();
    assert_eq!(add(&s.object, 40, 2), Ok(42), "beside idle connections");
    drop(idle);
}

/// Opens more connections than the process may have descriptors.
fn exhaust_descriptors(s: &ServedProbe) {
    let limit = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(descriptors() as u64 + 40),
        ..limit
    };
    setrlimit(Resource::Nofile, few).expect("it is less than before");
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let open = || TcpStream::connect((profile.host.as_str(), profile.port)).ok();
    let peers: Vec<_> = std::iter::from_fn(open).take(200).collect();
    assert!(peers.len() < 200, "the descriptors have run out");
    drop(peers);
    setrlimit(Resource::Nofile, limit).expect("it was so before");
    // Its connection may have been evicted: both ends of all of them are in this process.
    assert_eq!(add(&s.object, 40, 2), Ok(42), "without descriptors");
    assert_eq!(
        answers(s, &request(s, Version::V1_2)),
        [REPLY],
        "a new client"
    );
}

fn entries(directory: &str) -> usize {
    std::fs::read_dir(directory).expect("Linux has it").count()
}

fn descriptors() -> usize {
    entries("/proc/self/fd")
}

type Class = fn(&ServedProbe) -> Vec<Case>;

const CLASSES: [(&str, Class); 7] = [
    ("headers", headers),
    ("fragments", fragments),
    ("counts", counts),
    ("references", references),
    ("keys", keys),
    ("contexts", service_contexts),
    ("floods", floods),
];

const ALONE: &str = "CHRONORB_TEST_HOSTILE_ALONE";
/// The permitted memory of a server during all cases: frames of its threads, and those of the test.
const MEMORY: usize = 48 << 20;

#[test]
fn no_class_of_input_takes_memory_threads_or_descriptors_or_service() {
    if std::env::var_os(ALONE).is_some() {
        return alone();
    }
    let mut again = Command::new(std::env::current_exe().expect("it is known"));
    let name = name_of(no_class_of_input_takes_memory_threads_or_descriptors_or_service);
    again
        .args(["--exact", name])
        .env(ALONE, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = spawn(&mut again).and_then(Child::wait_with_output);
    let output = output.expect("the test starts itself");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("test result: ok. 1 passed"), "{said}");
}

fn alone() {
    for strategy in [
        LeaderFollowers,
        HalfSyncHalfAsync,
        #[cfg(feature = "baselines")]
        WorkerPool,
        ThreadPerConnection,
    ] {
        let s = served_by(orb_with(|config| config.threadpool_strategy = strategy));
        assert_eq!(add(&s.object, 40, 2), Ok(42));
        let before = (entries("/proc/self/task"), descriptors(), resident());
        for (class, cases) in CLASSES {
            for case in cases(&s) {
                check(&s, class, &case);
            }
        }
        let are_as_before = || (entries("/proc/self/task"), descriptors()) == (before.0, before.1);
        leave(&s);
        until("all connections have ended", are_as_before);
        exhaust_descriptors(&s);
        until("threads and descriptors are given back", are_as_before);
        let more = resident().saturating_sub(before.2);
        assert!(more < MEMORY, "{more} octets more than before");
    }
}
