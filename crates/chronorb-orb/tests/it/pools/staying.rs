//! Threads of a lane stay with connections whose clients send one request at a time, without
//! delaying others.

use chronorb_cdr::{CdrError, Encoder};
use chronorb_orb::poa::{Policy, ThreadModel};
use chronorb_orb::{Object, Operation, Orb, Stage, StageProbe, ThreadpoolStrategy, WaitPolicy};
use chronorb_rt::Deadline;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::support::adapters::pause;
use crate::support::{
    PATIENCE, ProbeSkeleton, ServedProbe, add, echo, nothing, orb_with, served_by,
};

/// Returns a server with this many threads, which read and serve.
fn server_of(threads: u32, waiting: WaitPolicy) -> Orb {
    orb_with(|config| {
        config.threads = threads.into();
        config.threadpool_strategy = ThreadpoolStrategy::LeaderFollowers;
        config.server_wait = waiting;
    })
}

fn staying(server: &Orb) -> usize {
    let snapshot = server.snapshot();
    let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
    lanes.map(|lane| lane.staying).sum()
}

fn connections(server: &Orb) -> usize {
    let snapshot = server.snapshot();
    let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
    lanes.map(|lane| lane.connections).sum()
}

/// Waits until this many threads stay.
fn await_staying(server: &Orb, wanted: usize) {
    let deadline = Deadline::after(PATIENCE);
    while staying(server) != wanted {
        assert!(!deadline.has_passed(), "{} stay", staying(server));
        pause();
    }
}

/// Calls until a thread stays with this thread's connection.
fn make_it_stay(s: &ServedProbe, object: &Object, wanted: usize) {
    let deadline = Deadline::after(PATIENCE);
    while staying(&s.server) < wanted {
        assert_eq!(add(object, 1, 2), Ok(3));
        assert!(!deadline.has_passed(), "no thread stays");
    }
}

#[test]
fn a_thread_stays_with_a_client_that_calls_again_and_again() {
    for waiting in [WaitPolicy::Block, WaitPolicy::Poll] {
        let s = served_by(server_of(2, waiting));
        assert_eq!(add(&s.object, 1, 2), Ok(3));
        assert_eq!(staying(&s.server), 0, "one call is not worth it");
        make_it_stay(&s, &s.object, 1);
        for n in 0..1000 {
            assert_eq!(add(&s.object, n, 1), Ok(n + 1));
        }
        assert_eq!(staying(&s.server), 1);
    }
}

#[test]
fn a_thread_stays_while_requests_arrive_in_fragments() {
    for waiting in [WaitPolicy::Block, WaitPolicy::Poll] {
        let s = served_by(server_of(2, waiting));
        let client = orb_with(|config| config.fragment_size = 1 << 10);
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("the reference reads");
        make_it_stay(&s, &object, 1);
        for n in 0..100 {
            let text = "fragment".repeat(n * 10);
            assert_eq!(echo(&object, &text), Ok(text));
            assert_eq!(staying(&s.server), 1, "after {n} requests");
        }
    }
}

#[test]
fn the_last_thread_does_not_stay() {
    for threads in [1, 2] {
        let s = served_by(server_of(threads, WaitPolicy::Block));
        std::thread::scope(|clients| {
            for _ in 0..3 {
                clients.spawn(|| {
                    for n in 0..2000 {
                        assert_eq!(add(&s.object, n, 1), Ok(n + 1));
                        assert!(staying(&s.server) < threads as usize);
                    }
                });
            }
        });
    }
}

#[test]
fn who_stays_is_called_back_when_the_last_one_leaves_the_set() {
    for waiting in [WaitPolicy::Block, WaitPolicy::Poll] {
        let s = served_by(server_of(2, waiting));
        make_it_stay(&s, &s.object, 1);
        std::thread::scope(|clients| {
            // The other thread of the lane is in a long upcall.
            clients.spawn(|| assert_eq!(nothing(&s.object, "wait"), Ok(())));
            s.probe.gate.reach(1);
            // The thread that stayed serves other clients, on their own connections.
            clients.spawn(|| {
                assert_eq!(add(&s.object, 4, 5), Ok(9));
                s.probe.gate.set(2);
            });
        });
        assert_eq!(add(&s.object, 1, 1), Ok(2), "the connection is served on");
    }
}

#[test]
fn a_call_after_a_request_without_a_reply_does_not_wait_for_it() {
    let s = served_by(server_of(3, WaitPolicy::Block));
    make_it_stay(&s, &s.object, 1);
    // The servant of the oneway blocks, on the connection of this thread.
    s.object
        .invoke_oneway(&Operation::oneway("wait"), &|_| Ok(()))
        .expect("it is sent");
    s.probe.gate.reach(1);
    assert_eq!(add(&s.object, 2, 2), Ok(4));
    s.probe.gate.set(2);
    assert_eq!(add(&s.object, 2, 3), Ok(5));
}

#[test]
fn a_thread_stays_again_after_requests_without_a_reply() {
    let s = served_by(server_of(2, WaitPolicy::Block));
    for round in 0..20 {
        make_it_stay(&s, &s.object, 1);
        s.object
            .invoke_oneway(&Operation::oneway("note"), &|_| Ok(()))
            .expect("it is sent");
        assert_eq!(add(&s.object, 2, round), Ok(2 + round));
    }
    while s.probe.notes.load(Ordering::Relaxed) < 20 {
        std::thread::yield_now();
    }
}

#[test]
fn a_client_that_goes_away_is_noticed() {
    let s = served_by(server_of(2, WaitPolicy::Block));
    std::thread::scope(|clients| {
        let client = clients.spawn(|| {
            make_it_stay(&s, &s.object, 1);
        });
        client.join().expect("it was served");
    });
    // Its connection ended with its thread.
    await_staying(&s.server, 0);
    assert_eq!(add(&s.object, 1, 2), Ok(3));
}

#[test]
fn the_end_of_the_orb_does_not_wait_for_who_stays() {
    for waiting in [WaitPolicy::Block, WaitPolicy::Poll] {
        let s = served_by(server_of(4, waiting));
        let (all, is_over) = (Barrier::new(4), AtomicBool::new(false));
        std::thread::scope(|clients| {
            for _ in 0..3 {
                let (s, all, is_over) = (&s, &all, &is_over);
                clients.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        for n in 0..50 {
                            assert_eq!(add(&s.object, n, 1), Ok(n + 1));
                        }
                        all.wait();
                        // No client calls now.
                        all.wait();
                    }
                    // Its connection lasts as long as this thread.
                    s.probe.gate.reach(1);
                });
            }
            let deadline = Deadline::after(PATIENCE);
            let mut stay = 0;
            while stay != 3 && !deadline.has_passed() {
                all.wait();
                // A thread that is called back at once stays only for a moment.
                std::thread::sleep(Duration::from_millis(20));
                stay = staying(&s.server);
                is_over.store(stay == 3 || deadline.has_passed(), Ordering::Relaxed);
                all.wait();
            }
            assert_eq!(stay, 3);
            let ended = s.server.shutdown(true);
            s.probe.gate.set(1);
            ended.expect("it is not called by a servant");
        });
    }
}

/// A client on a bare socket, which announces that it waits for each reply.
struct RawClient {
    stream: TcpStream,
    object_key: Vec<u8>,
}

impl RawClient {
    fn of(object: &Object) -> Self {
        let profile = &object.ior().profiles[0];
        let profile = chronorb_giop::IiopProfile::decode(&profile.data).expect("it is IIOP");
        let stream = TcpStream::connect((profile.host.as_str(), profile.port));
        let stream = stream.expect("it listens");
        let patience = stream.set_read_timeout(Some(PATIENCE));
        patience.expect("a socket has a time-out");
        Self {
            stream,
            object_key: profile.object_key,
        }
    }

    /// Returns a request; the first one, 0, contains the announcement.
    fn request(
        &self,
        id: u32,
        operation: &str,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Vec<u8> {
        let mut frame = chronorb_cdr::Frame::new(256, usize::MAX);
        let context = chronorb_giop::ServiceContext {
            id: chronorb_giop::contexts::ONE_AT_A_TIME,
            data: &chronorb_giop::contexts::ONE_AT_A_TIME_DATA,
        };
        let header = chronorb_giop::RequestHeader {
            request_id: id,
            response: chronorb_giop::ResponseFlags::SyncWithTarget,
            target: chronorb_giop::Target::Key(&self.object_key),
            operation: operation.as_bytes(),
            contexts: if id == 0 { &[context] } else { &[] },
        };
        let version = chronorb_giop::Version::V1_2;
        let kind = chronorb_giop::MessageType::Request;
        let mut e = chronorb_giop::start_message(&mut frame, version, kind).expect("room");
        chronorb_giop::encode_request(&mut e, version, &header)
            .and_then(|()| e.align(8))
            .and_then(|()| arguments(&mut e))
            .expect("room");
        chronorb_giop::finish_message(&mut frame);
        frame.as_slice().to_vec()
    }

    fn add(&self, id: u32) -> Vec<u8> {
        self.request(id, "add", &|e| e.write_i32(1).and_then(|()| e.write_i32(2)))
    }

    fn send(&mut self, octets: &[u8]) {
        self.stream.write_all(octets).expect("it is open");
    }

    /// Returns the reply to `add`, by the id of its request.
    fn reply(&mut self) -> u8 {
        let mut reply = [0; 28];
        let read = self.stream.read_exact(&mut reply);
        read.expect("there is a reply");
        reply[12]
    }

    /// Calls until a thread stays with this connection, and no more.
    fn make_it_stay(&mut self, s: &ServedProbe) {
        let deadline = Deadline::after(PATIENCE);
        let (mut id, mut seen) = (0, 0);
        // A thread that is called back at once stays only for a moment.
        while seen < 2 {
            assert!(!deadline.has_passed(), "no thread stays");
            let request = self.add(id);
            self.send(&request);
            self.reply();
            id = id % 99 + 1;
            seen = match staying(&s.server) {
                1 => seen + 1,
                _ => 0,
            };
        }
        await_staying(&s.server, 1);
    }
}

#[test]
fn a_client_that_breaks_its_promise_is_served_all_the_same() {
    let s = served_by(server_of(2, WaitPolicy::Block));
    let mut client = RawClient::of(&s.object);
    client.make_it_stay(&s);
    // Five at a time, which may arrive in one piece.
    let five: Vec<u8> = (100..105).flat_map(|id| client.add(id)).collect();
    for _ in 0..100 {
        client.send(&five);
        let mut ids: Vec<u8> = (0..5).map(|_| client.reply()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [100, 101, 102, 103, 104]);
    }
}

#[test]
fn nobody_turns_round_while_who_stays_serves_a_client_that_has_gone() {
    let reads = Arc::new(AtomicU32::new(0));
    let server = orb_with(|config| {
        config.threads = 4.into();
        config.threadpool_strategy = ThreadpoolStrategy::LeaderFollowers;
        let reads = reads.clone();
        config.stage_probe = Some(StageProbe::new(move |stage| {
            if stage == Stage::Read {
                reads.fetch_add(1, Ordering::Relaxed);
            }
        }));
    });
    let s = served_by(server);
    let mut client = RawClient::of(&s.object);
    client.make_it_stay(&s);
    let request = client.request(100, "wait", &|_| Ok(()));
    client.send(&request);
    s.probe.gate.reach(1);
    // A reset, which the kernel always reports.
    let reset = rustix::net::sockopt::set_socket_linger(&client.stream, Some(Duration::ZERO));
    reset.expect("a socket has an end");
    drop(client);
    let before = reads.load(Ordering::Relaxed);
    for n in 0..200 {
        assert_eq!(add(&s.object, n, 1), Ok(n + 1));
    }
    // Each is read at once, or without result before that.
    let during = reads.load(Ordering::Relaxed) - before;
    assert!(during <= 500, "{during} looks for 200 requests");
    s.probe.gate.set(2);
    make_it_stay(&s, &s.object, 1);
    await_staying(&s.server, 1);
}

#[test]
fn a_message_that_does_not_go_on_ends_a_connection_that_is_stayed_with() {
    for (waiting, goes_on) in [
        (WaitPolicy::Block, false),
        (WaitPolicy::Block, true),
        (WaitPolicy::Poll, false),
        (WaitPolicy::Poll, true),
    ] {
        let server = orb_with(|config| {
            config.threads = 2.into();
            config.threadpool_strategy = ThreadpoolStrategy::LeaderFollowers;
            config.server_wait = waiting;
            config.input_timeout = Duration::from_millis(200);
        });
        let s = served_by(server);
        let mut client = RawClient::of(&s.object);
        client.make_it_stay(&s);
        let octets = vec![1; 10_000];
        let message = client.request(100, "octets", &|e| e.write_octet_seq(&octets));
        client.send(&message[..100]);
        let pace = client
            .stream
            .set_read_timeout(Some(Duration::from_millis(20)));
        pace.expect("a socket has a time-out");
        let deadline = Deadline::after(PATIENCE);
        let mut rest = message[100..].iter();
        // An octet now and then is not enough.
        while let Err(ErrorKind::WouldBlock) =
            client.stream.read(&mut [0]).map_err(|error| error.kind())
        {
            assert!(!deadline.has_passed(), "{waiting:?}, goes on: {goes_on}");
            if let (true, Some(&octet)) = (goes_on, rest.next()) {
                let _ = client.stream.write_all(&[octet]);
            }
        }
    }
}

#[test]
fn whoever_stays_lets_a_connection_go_that_others_have_ended() {
    let server = orb_with(|config| {
        // One thread stays, and the set still has a waiting thread.
        config.threads = 6.into();
        config.threadpool_strategy = ThreadpoolStrategy::LeaderFollowers;
        config.input_timeout = Duration::from_secs(5);
    });
    let s = served_by(server);
    let root = s.server.root_poa().expect("it is there");
    let poa = root.create_poa("main", Some(root.manager()), &[MAIN]);
    let poa = poa.expect("the policies agree");
    let object = poa
        .serve(ProbeSkeleton(s.probe.clone()))
        .expect("it is new");
    let mut client = RawClient::of(&object);
    let buffer = rustix::net::sockopt::set_socket_recv_buffer_size(&client.stream, 64 << 10);
    buffer.expect("a socket has a buffer");
    let much = vec![1; 15 << 20];
    client.send(&client.request(0, "octets", &|e| e.write_octet_seq(&much)));
    let mut id = 0;
    let deadline = Deadline::after(PATIENCE);
    while staying(&s.server) == 0 {
        // One at a time, although none is answered yet.
        while s.server.snapshot().waiting_for_main_thread <= id as usize {
            assert!(!deadline.has_passed(), "request {id} does not come");
            std::thread::yield_now();
        }
        id += 1;
        client.send(&client.add(id));
    }
    std::thread::scope(|threads| {
        // Only now the main thread sends a reply, of which the client reads nothing.
        threads.spawn(|| s.server.run());
        let mut rest = Vec::new();
        let is_over = AtomicBool::new(false);
        let read = std::thread::scope(|others| {
            // The thread at the set serves slow peers.
            others.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(add(&s.object, 1, 2), Ok(3));
                }
            });
            let deadline = Deadline::after(PATIENCE);
            while connections(&s.server) < 2 {
                std::thread::yield_now();
            }
            while connections(&s.server) > 1 && !deadline.has_passed() {
                std::thread::yield_now();
            }
            let read = client.stream.read_to_end(&mut rest);
            is_over.store(true, Ordering::Relaxed);
            read.map_err(|error| error.kind())
        });
        drop(client);
        s.server
            .shutdown(true)
            .expect("it is not called by a servant");
        assert!(rest.len() < much.len(), "the client read late");
        assert_ne!(read, Err(ErrorKind::WouldBlock), "it was not ended");
    });
}

const MAIN: Policy = Policy::Thread(ThreadModel::MainThread);
