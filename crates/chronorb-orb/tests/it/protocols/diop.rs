//! GIOP in datagrams: what is lost, too large, or not wanted.

use chronorb_giop::{IiopProfile, TAG_DIOP, minor};
use chronorb_orb::{CompletionStatus, Object, Orb, SystemException, SystemExceptionKind};
use chronorb_transport::{parse_endpoints, udp};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{PATIENCE, Served, add, call, kind_and_completion, orb_with, served_by};

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

/// A socket that sends anything to the server of an object.
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

fn connections(s: &Served) -> usize {
    let snapshot = s.server.snapshot();
    let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
    lanes.map(|lane| lane.connections).sum()
}

/// A message, so that its peer gets a place, which asks for nothing: `CancelRequest`.
const CANCEL: &[u8] = b"GIOP\x01\x02\x01\x02\x04\x00\x00\x00\x07\x00\x00\x00";

/// Ends what others do until then, also where the test fails.
struct Over<'f>(&'f AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_reply_that_is_lost_is_a_time_out() {
    // It hears requests, and says nothing.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let port = silent.local_addr().expect("it is bound").port();
    let client = orb_with(|config| config.request_timeout = Duration::from_millis(500));
    let url = format!("corbaloc:diop:1.2@127.0.0.1:{port}/key");
    let object = client.string_to_object(&url).expect("a correct URL");
    for _ in 0..3 {
        let expected = (SystemExceptionKind::Timeout, CompletionStatus::Maybe);
        assert_eq!(kind_and_completion(add(&object, 1, 2)), expected);
    }
    client.shutdown(false).expect("it runs");
}

#[test]
fn a_request_that_is_too_large_is_refused_before_it_is_sent() {
    let s = served_by(server("diop://127.0.0.1:0"));
    let refused = SystemException::no(SystemExceptionKind::ImpLimit, minor::MESSAGE_TOO_LARGE);
    assert_eq!(octets(&s.object, 65_507), Err(refused));
    assert_eq!(octets(&s.object, 1 << 20), Err(refused));
    // Nearly as much goes.
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
        // On a busy machine the other threads may begin late.
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
        // A request may be lost where the socket is full: then it is sent again, by a new client.
        let came_in = (0..100).any(|_| {
            let client = orb_with(|config| config.request_timeout = Duration::from_millis(300));
            let object = client.ior_to_object(s.object.ior().clone());
            let called = add(&object.expect("not nil"), 1, 2);
            client.shutdown(false).expect("it runs");
            called == Ok(3)
        });
        assert!(came_in);
    });
}

#[test]
fn new_peers_without_end_leave_others_their_turn() {
    let s = served_by(orb_with(|config| {
        let endpoints = "iiop://127.0.0.1:0;diop://127.0.0.1:0";
        config.listen_endpoints = parse_endpoints(endpoints).expect("endpoints");
        config.max_connections = 64;
        config.threads = 1;
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
        // They go by IIOP, which shares the thread and the places.
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
    // A message by its header, and no request by what follows.
    peer.send(b"GIOP\x01\x02\x01\x00\x04\x00\x00\x00\xff\xff\xff\xff")
        .expect("it is sent");
    peer.set_read_timeout(Some(PATIENCE)).expect("it is open");
    let mut room = [0; 100];
    let n = peer.recv(&mut room).expect("it is answered");
    let said = chronorb_giop::MessageHeader::parse(&room[..n]).expect("it is a message");
    assert_eq!(said.kind, chronorb_giop::MessageType::MessageError);
    assert_eq!(add(&s.object, 1, 2), Ok(3));
}
