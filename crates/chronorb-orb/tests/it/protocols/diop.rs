//! GIOP in datagrams: lost, oversized and unwanted messages.

use chronorb_giop::{IiopProfile, MessageHeader, MessageType, TAG_DIOP, minor};
use chronorb_orb::{CompletionStatus, Object, Orb, SystemException, SystemExceptionKind};
use chronorb_transport::{parse_endpoints, udp};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::descriptors::spawn;
use crate::support::{
    PATIENCE, ServedProbe, add, call, kind_and_completion, name_of, orb_with, served_by,
    with_short_timeout,
};

fn server(endpoints: &str) -> Orb {
    orb_with(|config| {
        config.listen_endpoints = parse_endpoints(endpoints).expect("endpoints");
    })
}

fn port(object: &Object) -> u16 {
    let mut profiles = object.ior().profiles.iter();
    let profile = profiles.find(|profile| profile.tag == TAG_DIOP);
    let profile = profile.expect("it is reached by datagrams");
    let told = IiopProfile::decode(&profile.data);
    told.expect("it is our own").port
}

/// Returns a socket that can send anything to the server of an object.
fn peer_of(object: &Object) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let server = ("127.0.0.1", port(object));
    socket.connect(server).expect("UDP does not ask");
    socket
}

fn octets(object: &Object, len: usize) -> Result<usize, SystemException> {
    let octets = vec![7; len];
    let write = |e: &mut chronorb_cdr::Encoder<'_>| e.write_octet_seq(&octets);
    call(object, "octets", &write, |d| Ok(d.read_octet_seq()?.len()))
}

fn connections(s: &ServedProbe) -> usize {
    let snapshot = s.server.snapshot();
    let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
    lanes.map(|lane| lane.connections).sum()
}

/// A message that makes its peer known to the server, and needs no answer: `CancelRequest`.
const CANCEL: &[u8] = b"GIOP\x01\x02\x01\x02\x04\x00\x00\x00\x07\x00\x00\x00";

/// Ends the activity of other threads on drop, also if the test fails.
struct Over<'f>(&'f AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_reply_that_is_lost_is_a_time_out() {
    // A server that receives requests, and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let port = silent.local_addr().expect("it is bound").port();
    let client = orb_with(|_| {});
    let url = format!("corbaloc:diop:1.2@127.0.0.1:{port}/key");
    let object = client.string_to_object(&url).expect("a correct URL");
    for _ in 0..3 {
        let expected = (SystemExceptionKind::Timeout, CompletionStatus::Maybe);
        let lost = with_short_timeout(&object, |hasty| add(hasty, 1, 2));
        assert_eq!(kind_and_completion(lost), expected);
    }
    client.shutdown(false).expect("it runs");
}

#[test]
fn a_request_that_is_too_large_is_refused_before_it_is_sent() {
    let s = served_by(server("diop://127.0.0.1:0"));
    let refused = SystemException::no(SystemExceptionKind::ImpLimit, minor::MESSAGE_TOO_LARGE);
    assert_eq!(octets(&s.object, 65_507), Err(refused));
    assert_eq!(octets(&s.object, 1 << 20), Err(refused));
    // A slightly smaller one succeeds.
    assert_eq!(octets(&s.object, 65_000), Ok(65_000));
}

#[test]
fn a_reply_that_is_too_large_is_an_exception_after_the_operation() {
    let s = served_by(server("diop://127.0.0.1:0/max=1000"));
    assert_eq!(octets(&s.object, 900), Ok(900));
    let refused = octets(&s.object, 2000).expect_err("more than 1000 octets");
    assert_eq!(refused.kind, SystemExceptionKind::ImpLimit);
    assert_eq!(refused.minor, minor::MESSAGE_TOO_LARGE);
    assert_eq!(refused.completed, CompletionStatus::Yes);
    assert_eq!(add(&s.object, 1, 2), Ok(3));
}

#[test]
fn calls_go_on_while_others_send_noise() {
    let s = served_by(server("diop://127.0.0.1:0"));
    let over = AtomicBool::new(false);
    let before = udp::dropped();
    // From its first call on it has a socket of its own.
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    std::thread::scope(|threads| {
        let _over = Over(&over);
        for content in [&b""[..], b"GIOP", &[0xff; 1400]] {
            let peer = peer_of(&s.object);
            let over = &over;
            threads.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let _ = peer.send(content);
                }
            });
        }
        // On a loaded machine the other threads may begin late.
        let deadline = chronorb_rt::Deadline::after(PATIENCE);
        let mut n = 0;
        while n < 300 || udp::dropped() == before {
            assert_eq!(add(&s.object, n, 1), Ok(n + 1));
            assert!(!deadline.has_passed(), "no noise was dropped");
            n += 1;
        }
    });
    assert_eq!(connections(&s), 1, "noise has no place");
}

#[test]
fn a_new_client_comes_in_while_others_send_noise() {
    let s = served_by(server("diop://127.0.0.1:0"));
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let _over = Over(&over);
        let peer = peer_of(&s.object);
        threads.spawn(|| {
            let peer = peer;
            while !over.load(Ordering::Relaxed) {
                let _ = peer.send(&[0xff; 100]);
                std::thread::yield_now();
            }
        });
        // A request may be lost if the socket is full; then a new client sends it again. On a busy
        // machine it needs longer.
        let mut time = Duration::from_millis(100);
        loop {
            let client = orb_with(|config| config.request_timeout = time);
            let object = client.ior_to_object(s.object.ior().clone());
            let called = add(&object.expect("not nil"), 1, 2);
            client.shutdown(false).expect("it runs");
            if called == Ok(3) {
                break;
            }
            assert!(time < PATIENCE, "{called:?}");
            time = time * 5 / 4;
        }
    });
}

#[test]
fn new_peers_without_end_leave_others_their_turn() {
    let s = served_by(orb_with(|config| {
        let endpoints = "iiop://127.0.0.1:0;diop://127.0.0.1:0";
        config.listen_endpoints = parse_endpoints(endpoints).expect("endpoints");
        config.max_connections = 64;
        config.threads = 1.into();
    }));
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let _over = Over(&over);
        for _ in 0..4 {
            let (object, over) = (&s.object, &over);
            threads.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let peers: Vec<_> = (0..32).map(|_| peer_of(object)).collect();
                    for peer in peers {
                        let _ = peer.send(CANCEL);
                    }
                }
            });
        }
        // They use IIOP, which shares the thread and the permits.
        for n in 0..20 {
            assert_eq!(add(&s.object, n, 1), Ok(n + 1));
        }
        let late = orb_with(|_| {});
        let object = late.ior_to_object(s.object.ior().clone());
        assert_eq!(add(&object.expect("not nil"), 1, 2), Ok(3));
        late.shutdown(true).expect("it serves nothing");
    });
}

#[test]
fn where_all_places_are_taken_those_go_that_send_nothing() {
    let s = served_by(orb_with(|config| {
        config.listen_endpoints = parse_endpoints("diop://127.0.0.1:0").expect("an endpoint");
        config.max_connections = 8;
    }));
    let mut peers = Vec::new();
    for n in 0..200 {
        let peer = peer_of(&s.object);
        peer.send(CANCEL).expect("it is sent");
        peers.push(peer);
        assert_eq!(add(&s.object, n, 1), Ok(n + 1));
        assert!(connections(&s) <= 9, "one may be ending");
    }
}

#[test]
fn a_place_that_nobody_uses_is_freed_and_the_next_call_has_another() {
    let s = served_by(orb_with(|config| {
        config.listen_endpoints = parse_endpoints("diop://127.0.0.1:0").expect("an endpoint");
        config.server_idle_timeout = Some(Duration::from_millis(20));
    }));
    for _ in 0..3 {
        assert_eq!(add(&s.object, 1, 2), Ok(3));
        let deadline = chronorb_rt::Deadline::after(PATIENCE);
        while connections(&s) > 0 {
            assert!(!deadline.has_passed(), "it is still there");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_peer_that_sends_what_is_no_giop_is_told_and_loses_its_place() {
    let s = served_by(server("diop://127.0.0.1:0"));
    let peer = peer_of(&s.object);
    // Its header is that of a message, but its body is not a request.
    peer.send(b"GIOP\x01\x02\x01\x00\x04\x00\x00\x00\xff\xff\xff\xff")
        .expect("it is sent");
    peer.set_read_timeout(Some(PATIENCE)).expect("it is open");
    let mut room = [0; 100];
    let n = peer.recv(&mut room).expect("it is answered");
    let said = MessageHeader::parse(&room[..n]).expect("it is a message");
    assert_eq!(said.kind, MessageType::MessageError);
    assert_eq!(add(&s.object, 1, 2), Ok(3));
}

/// Returns the octets of a message of GIOP 1.2 in little-endian order.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut octets = vec![b'G', b'I', b'O', b'P', 1, 2, 1, kind];
    octets.extend_from_slice(&(body.len() as u32).to_le_bytes());
    octets.extend_from_slice(body);
    octets
}

/// Returns a two-way request without arguments, as short as possible.
fn request(key: &[u8], operation: &[u8]) -> Vec<u8> {
    let mut body = vec![7, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    body.extend_from_slice(&(key.len() as u32).to_le_bytes());
    body.extend_from_slice(key);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend_from_slice(&(operation.len() as u32 + 1).to_le_bytes());
    body.extend_from_slice(operation);
    body.push(0);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend_from_slice(&[0; 4]);
    message(0, &body)
}

fn key(object: &Object) -> Vec<u8> {
    let mut profiles = object.ior().profiles.iter();
    let profile = profiles.find(|profile| profile.tag == TAG_DIOP);
    let told = IiopProfile::decode(&profile.expect("it is reached by datagrams").data);
    told.expect("it is our own").object_key
}

/// Returns all answers to a datagram: those before the answer to a later one.
fn answers(peer: &UdpSocket, datagram: &[u8]) -> Vec<u8> {
    peer.set_read_timeout(Some(PATIENCE)).expect("it is open");
    let mut room = [0; 1 << 16];
    peer.send(datagram).expect("it is sent");
    let n = peer.recv(&mut room).expect("it is answered");
    let mut answered = room[..n].to_vec();
    // What arrives while the server closes a connection is lost with its socket: it is sent again.
    let question = message(3, &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let deadline = chronorb_rt::Deadline::after(PATIENCE);
    let short = Some(Duration::from_millis(200));
    peer.set_read_timeout(short).expect("it is open");
    peer.send(&question).expect("it is sent");
    loop {
        match peer.recv(&mut room) {
            Ok(n) if matches!(room[..n], [.., 4, _, _, _, _, 9, 0, 0, 0, _, _, _, _]) => {
                return answered;
            }
            Ok(n) => answered.extend_from_slice(&room[..n]),
            Err(error) => {
                let is_silent = error.kind() == ErrorKind::WouldBlock;
                assert!(is_silent && !deadline.has_passed(), "{error}");
                peer.send(&question).expect("it is sent");
            }
        }
    }
}

#[test]
fn a_peer_whose_address_is_not_proved_gets_three_times_what_it_sends_at_most() {
    let s = served_by(server("diop://127.0.0.1:0"));
    let own = key(&s.object);
    let long = [&own[..], &[7; 200]].concat();
    for (what, datagram) in [
        ("an operation", request(&own, b"big")),
        ("an unknown operation", request(&own, b"x")),
        ("an unknown object", request(&long, b"big")),
        ("no object", request(b"", b"")),
        (
            "a forged proof",
            request(&[b"\xc7R\x01\x04forged!!", &own[..]].concat(), b"big"),
        ),
        (
            "a question",
            message(
                3,
                &[
                    &[7, 0, 0, 0, 0, 0, 0, 0][..],
                    &(own.len() as u32).to_le_bytes(),
                    &own,
                ]
                .concat(),
            ),
        ),
        (
            "a question of nothing",
            message(3, &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ),
        ("no message", message(0, &[0xff; 8])),
    ] {
        let peer = peer_of(&s.object);
        let answered = answers(&peer, &datagram).len();
        assert!(answered > 0, "{what}");
        assert!(
            answered <= 3 * datagram.len(),
            "{what}: {answered} for {}",
            datagram.len()
        );
    }
}

#[test]
fn a_client_proves_its_address_by_one_more_request_and_then_never_again() {
    let s = served_by(server("diop://127.0.0.1:0"));
    let served = || {
        let snapshot = s.server.snapshot();
        let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
        lanes.map(|lane| lane.served).sum::<u64>()
    };
    // The first request is sent twice: it is forwarded, and comes again with the proof.
    for n in 2..10 {
        let big = call(&s.object, "big", &|_| Ok(()), |d| {
            Ok(d.read_octet_seq()?.len())
        });
        assert_eq!(big, Ok(60_000));
        // The counter is updated after the answer.
        let deadline = chronorb_rt::Deadline::after(PATIENCE);
        while served() < n {
            assert!(!deadline.has_passed(), "{} of {n} requests", served());
            std::thread::yield_now();
        }
        assert_eq!(served(), n);
    }
}

const ALONE: &str = "CHRONORB_TEST_DIOP_ALONE";

#[test]
fn datagrams_of_many_ports_leave_descriptors_to_others() {
    if std::env::var_os(ALONE).is_some() {
        return with_few_descriptors();
    }
    let mut again = Command::new(std::env::current_exe().expect("it is known"));
    again
        .args([
            "--exact",
            name_of(datagrams_of_many_ports_leave_descriptors_to_others),
        ])
        .env(ALONE, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = spawn(&mut again).and_then(Child::wait_with_output);
    let output = output.expect("the test starts itself");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("test result: ok. 1 passed"), "{said}");
}

fn with_few_descriptors() {
    const LIMIT: u64 = 160;
    let few = Rlimit {
        current: Some(LIMIT),
        maximum: Some(LIMIT),
    };
    setrlimit(Resource::Nofile, few).expect("it is less than before");
    let s = served_by(server("iiop://127.0.0.1:0;diop://127.0.0.1:0"));
    let question = message(3, &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for n in 1..=1000 {
        peer_of(&s.object).send(CANCEL).expect("it is sent");
        if n % 50 == 0 {
            // The answer comes after all peers before it were taken in: a socket that is full drops
            // datagrams.
            let peer = peer_of(&s.object);
            peer.set_read_timeout(Some(PATIENCE)).expect("it is open");
            peer.send(&question).expect("it is sent");
            peer.recv(&mut [0; 100]).expect("it is answered");
        }
    }
    for protocol in ["iiop", "diop"] {
        let client = orb_with(|config| {
            config.protocols = vec![protocol.to_owned()];
            let endpoint = format!("{protocol}://127.0.0.1:0");
            config.listen_endpoints = parse_endpoints(&endpoint).expect("an endpoint");
        });
        let object = client.ior_to_object(s.object.ior().clone());
        let object = object.expect("not nil");
        assert_eq!(add(&object, 1, 2), Ok(3), "{protocol}");
        assert!(
            connections(&s) <= LIMIT as usize / 4 + 1,
            "one client by IIOP"
        );
        client.shutdown(true).expect("it serves nothing");
    }
    // If others take all descriptors, a datagram peer releases its own.
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let socket = socket.expect("there are descriptors");
    let taken: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let profile = s
        .object
        .ior()
        .profiles
        .iter()
        .find(|profile| profile.tag != TAG_DIOP);
    let profile = IiopProfile::decode(&profile.expect("it is reached by IIOP").data);
    let port = profile.expect("it is our own").port;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    rustix::net::connect(&socket, &address).expect("it listens");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("it is open");
    stream.write_all(&question).expect("it is sent");
    let mut header = [0; 12];
    stream.read_exact(&mut header).expect("it is answered");
    let answer = MessageHeader::parse(&header).expect("it is a message");
    assert_eq!(answer.kind, MessageType::LocateReply);
    drop(taken);
}
