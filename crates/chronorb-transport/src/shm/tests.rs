//! Peers that break the protocol, in every way that they have: by the words and the octets in the
//! memory, by its file, and by the socket.

use std::fs::File;
use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use chronorb_rt::Deadline;
use proptest::prelude::*;
use rustix::fs::{self, FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{self, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::memory::{Memory, RingDirection};
use super::ring::{Consumer, Producer, Wait, WakeRequest, Words};
use super::*;
use crate::IoError;
use crate::parse_endpoints;
use crate::reactor::{Interest, Reactor};

const RING: usize = 4096;

/// A listening endpoint, and a client that implements the protocol by hand.
struct Scene {
    acceptor: Box<dyn Acceptor>,
}

/// A peer that has sent its memory, and may do anything.
struct Peer {
    socket: OwnedFd,
    memory: Memory,
    file: OwnedFd,
}

impl Scene {
    fn new() -> Self {
        let endpoints = parse_endpoints("shmiop://").expect("an endpoint");
        let acceptors = SharedMemory.listen(&endpoints[0], Setup::default());
        Self {
            acceptor: acceptors.expect("it opens").remove(0),
        }
    }

    fn socket(&self) -> OwnedFd {
        let path = self.acceptor.published()[0].as_path();
        let socket = UnixStream::connect(path.expect("a path"));
        socket.expect("it listens").into()
    }

    fn accept(&self) -> Option<Box<dyn Connection>> {
        self.acceptor.accept().expect("it is open")
    }

    fn pair(&self) -> (Peer, Box<dyn Connection>) {
        let (memory, file) = Memory::create(RING).expect("there is memory");
        let socket = self.socket();
        rendezvous::offer(&socket, &file, RING).expect("the socket is new");
        let connection = self.accept().expect("it has everything");
        let peer = Peer {
            socket,
            memory,
            file,
        };
        (peer, connection)
    }

    /// Whether this message on the socket is accepted. It is refused otherwise.
    fn is_admitted(&self, hello: &[u8], files: &[BorrowedFd<'_>]) -> bool {
        let socket = self.socket();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(files)));
        }
        let flags = SendFlags::empty();
        net::sendmsg(&socket, &[IoSlice::new(hello)], &mut ancillary, flags).expect("it is sent");
        self.accept().is_some()
    }
}

impl Peer {
    fn words(&self) -> &Words {
        self.memory.ring(RingDirection::There).words
    }

    fn words_back(&self) -> &Words {
        self.memory.ring(RingDirection::Back).words
    }
}

fn hello(ring: usize) -> Vec<u8> {
    let mut hello = b"CRBSHM\0\x01".to_vec();
    hello.extend((ring as u64).to_ne_bytes());
    hello
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(20))
}

/// The connection has ended, and stays so.
fn assert_ended(connection: &dyn Connection) {
    assert_eq!(connection.try_recv(&mut [0; 10]), Err(IoError::Ended));
    assert_eq!(connection.look(&mut [0; 10]), Err(IoError::Ended));
    assert_eq!(connection.try_send(&[0; 10]), Err(IoError::Closed));
    assert!(connection.is_stale());
}

/// A file in memory of this size with these seals.
fn file(len: usize, seals: SealFlags) -> OwnedFd {
    let file = fs::memfd_create("hostile", MemfdFlags::ALLOW_SEALING).expect("there is memory");
    fs::ftruncate(&file, len as u64).expect("it is not sealed yet");
    fs::fcntl_add_seals(&file, seals).expect("it is not sealed yet");
    file
}

const SIZE: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

#[test]
fn positions_beyond_the_ring_end_the_connection() {
    let scene = Scene::new();
    for position in [RING as u32 + 1, 1 << 20, u32::MAX >> 2] {
        for way in 0..3 {
            let (peer, connection) = scene.pair();
            peer.words().tail.0.store(position << 2, Ordering::Relaxed);
            let mut room = [0; 10];
            let received = match way {
                0 => connection.try_recv(&mut room),
                1 => connection.look(&mut room),
                _ => connection.recv(&mut room, soon()),
            };
            assert_eq!(received, Err(IoError::Violated), "{position} {way}");
            assert_ended(&*connection);
        }
    }
}

#[test]
fn a_position_that_runs_backwards_ends_the_connection() {
    let scene = Scene::new();
    let (peer, connection) = scene.pair();
    peer.words().tail.0.store(100 << 2, Ordering::Relaxed);
    assert_eq!(connection.look(&mut [0; 60]), Ok(60));
    peer.words().tail.0.store(80 << 2, Ordering::Relaxed);
    let received = connection.look(&mut [0; 60]);
    assert_eq!(received, Err(IoError::Violated));
    assert_ended(&*connection);
}

#[test]
fn a_consumer_that_has_taken_what_is_not_there_ends_the_connection() {
    let scene = Scene::new();
    for position in [1_u32, RING as u32, u32::MAX >> 2] {
        let (peer, connection) = scene.pair();
        let head = &peer.words_back().head.0;
        head.store(position << 2, Ordering::Relaxed);
        // It is looked at where room is needed.
        let sent = connection.try_send(&[0; RING + 1]);
        assert_eq!(sent, Err(IoError::Violated), "{position}");
        assert_ended(&*connection);
    }
}

#[test]
fn a_peer_that_moves_the_words_of_this_side_ends_the_connection() {
    let scene = Scene::new();
    let (peer, connection) = scene.pair();
    peer.words_back().tail.0.store(7 << 2, Ordering::Relaxed);
    assert_eq!(connection.try_send(&[0; 10]), Err(IoError::Violated));
    assert_ended(&*connection);

    let (peer, connection) = scene.pair();
    peer.words().tail.0.store(100 << 2, Ordering::Relaxed);
    peer.words().head.0.store(7 << 2, Ordering::Relaxed);
    let received = connection.try_recv(&mut [0; 200]);
    assert_eq!(received, Err(IoError::Violated));
    assert_ended(&*connection);
}

#[test]
fn words_that_change_all_the_time_do_no_harm() {
    let scene = Scene::new();
    for round in 0..50 {
        let (peer, connection) = scene.pair();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(round);
                while !is_over.load(Ordering::Relaxed) {
                    let number = random.u32(..);
                    let words = [peer.words(), peer.words_back()][number as usize >> 4 & 1];
                    let at = [&words.tail.0, &words.head.0][number as usize >> 5 & 1];
                    // Valid values at times.
                    let positions = if number & 64 == 0 { 0x3fff } else { u32::MAX };
                    at.store(number >> 7 & positions, Ordering::Relaxed);
                }
            });
            let mut room = [0; 700];
            let outcome = (0..1000).find_map(|turn| {
                let moved = match turn % 4 {
                    0 => connection.try_recv(&mut room),
                    1 => connection.look(&mut room),
                    2 => connection.try_send(&[1; 500]),
                    _ => connection.recv(&mut room, Deadline::after(Duration::from_micros(10))),
                };
                moved
                    .err()
                    .filter(|e| !matches!(e, IoError::WouldBlock | IoError::TimedOut))
            });
            is_over.store(true, Ordering::Relaxed);
            assert!(
                matches!(
                    outcome,
                    None | Some(IoError::Violated | IoError::Closed | IoError::Ended)
                ),
                "{outcome:?}"
            );
        });
    }
}

#[test]
fn a_peer_that_wakes_for_nothing_holds_nobody_longer_than_the_deadline() {
    let scene = Scene::new();
    let (peer, connection) = scene.pair();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                word::wake(&peer.words().tail.0);
            }
        });
        let received = connection.recv(&mut [0; 10], soon());
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(received, Err(IoError::TimedOut));
    });
}

#[test]
fn only_memory_of_the_agreed_form_is_taken() {
    let scene = Scene::new();
    let len = 4096 + 2 * RING;
    let good = file(len, SIZE);
    assert!(scene.is_admitted(&hello(RING), &[good.as_fd()]));

    let temporary = tempfile();
    let read_only = File::open(format!("/proc/self/fd/{}", raw(&file(len, SIZE))));
    let read_only = read_only.unwrap_or_else(|_| File::open("/dev/null").expect("it is there"));
    let unwritable = file(len, SIZE | SealFlags::WRITE);
    for (what, bad) in [
        ("not sealed", file(len, SealFlags::empty())),
        ("half sealed", file(len, SealFlags::SHRINK)),
        ("sealed for good before", file(len, SIZE | SealFlags::SEAL)),
        ("unwritable", unwritable),
        ("too short", file(len - 1, SIZE)),
        ("empty", file(0, SIZE)),
        ("too long", file(len + 4096, SIZE)),
        ("a file of a disk", temporary),
        (
            "a device",
            File::open("/dev/zero").expect("it is there").into(),
        ),
        ("a pipe", std::io::pipe().expect("a descriptor").0.into()),
        (
            "a socket",
            UnixStream::pair().expect("descriptors").0.into(),
        ),
        ("read-only", read_only.into()),
    ] {
        assert!(!scene.is_admitted(&hello(RING), &[bad.as_fd()]), "{what}");
    }
}

fn raw(file: &OwnedFd) -> i32 {
    std::os::fd::AsRawFd::as_raw_fd(file)
}

fn tempfile() -> OwnedFd {
    let flags = fs::OFlags::TMPFILE | fs::OFlags::RDWR;
    let directory = std::env::current_exe().expect("it runs");
    let directory = directory.parent().expect("it is in a directory");
    let file = fs::open(directory, flags, fs::Mode::RUSR).expect("it can be written");
    fs::ftruncate(&file, 4096 + 2 * RING as u64).expect("there is room");
    file
}

#[test]
fn only_a_hello_of_the_agreed_form_is_understood() {
    let scene = Scene::new();
    let len = 4096 + 2 * RING;
    let good = file(len, SIZE);
    let mut other_magic = hello(RING);
    other_magic[0] ^= 1;
    let mut other_version = hello(RING);
    other_version[7] += 1;
    let sizes = [0, 1, RING - 1, RING + 1, 2 * RING, usize::MAX, 1 << 63];
    let mut wrong: Vec<_> = sizes.into_iter().map(hello).collect();
    wrong.extend([
        other_magic,
        other_version,
        hello(RING)[..15].to_vec(),
        vec![0],
    ]);
    for wrong in wrong {
        assert!(!scene.is_admitted(&wrong, &[good.as_fd()]), "{wrong:?}");
    }
    assert!(!scene.is_admitted(&hello(RING), &[]), "no file");
    let files = [good.as_fd(), good.as_fd()];
    for files in [&files[..], &files.repeat(4)] {
        assert!(!scene.is_admitted(&hello(RING), files), "too many files");
    }
    // More than this side has offered to take.
    let large = DEFAULT_RING * 2;
    let file = file(4096 + 2 * large, SIZE);
    assert!(!scene.is_admitted(&hello(large), &[file.as_fd()]));
}

#[test]
fn memory_that_was_taken_keeps_its_size_and_its_pages() {
    let scene = Scene::new();
    let (peer, connection) = scene.pair();
    assert_eq!(fs::ftruncate(&peer.file, 0), Err(Errno::PERM));
    assert_eq!(fs::ftruncate(&peer.file, 1 << 20), Err(Errno::PERM));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let punched = fs::fallocate(&peer.file, hole, 0, 4096);
    assert_eq!(punched, Err(Errno::PERM));
    let unsealed = fs::fcntl_add_seals(&peer.file, SealFlags::WRITE);
    assert_eq!(unsealed, Err(Errno::PERM));
    // It continues as if nothing had been tried.
    connection.try_send(&[5; 10]).expect("there is room");
    assert_eq!(connection.try_recv(&mut [0]), Err(IoError::WouldBlock));
}

#[test]
fn who_connects_takes_nothing_out_of_memory_that_was_not_sealed() {
    for seals in [SealFlags::empty(), SealFlags::SEAL] {
        let (memory, file) = Memory::create(RING).expect("there is memory");
        let (near, far) = UnixStream::pair().expect("descriptors");
        let copy = rustix::io::dup(&file).expect("a descriptor");
        let socket = crate::timed::TimedSocket::new(near.into());
        let connection = connection::ShmConnection::connected(socket, memory, copy);
        // The peer answers at once.
        let adopted = Memory::adopt_without_seals(&file, RING);
        let back = adopted.ring(RingDirection::Back);
        fs::fcntl_add_seals(&file, seals).expect("it is not sealed yet");
        Producer::new().put(back, b"x", b"").expect("it is new");
        assert_eq!(connection.look(&mut [0; 5]), Err(IoError::Violated));
        assert_ended(&connection);
        drop(far);
    }
}

#[test]
fn a_flood_of_the_doorbell_ends_the_connection() {
    let scene = Scene::new();
    let (peer, connection) = scene.pair();
    let mut socket = UnixStream::from(peer.socket);
    socket.write_all(&[0; 60]).expect("it fits");
    let mut outcome = Err(IoError::WouldBlock);
    for _ in 0..100 {
        outcome = connection.try_recv(&mut [0; 10]);
        if outcome != Err(IoError::WouldBlock) {
            break;
        }
    }
    assert_eq!(outcome, Err(IoError::Violated));
    assert_ended(&*connection);
}

#[test]
fn the_end_of_a_peer_that_was_killed_is_found_behind_what_rang() {
    let scene = Scene::new();
    let (peer, connection) = scene.pair();
    let put = Producer::new().put(peer.memory.ring(RingDirection::There), b"last", b"");
    assert_eq!(put, Ok((4, Wait::Doorbell)));
    rendezvous::ring_bell(&peer.socket).expect("it listens");
    // The read leaves the octet that rang where it is.
    assert_eq!(connection.try_recv(&mut [0; 10]), Ok(4));
    drop(peer.socket);
    // No second edge reports it.
    assert_eq!(connection.try_recv(&mut [0; 10]), Err(IoError::Ended));
}

#[test]
fn what_rings_while_the_doorbell_is_answered_is_found() {
    const OCTETS: usize = 50_000;
    let scene = Scene::new();
    let (peer, connection) = scene.pair();
    let reactor = Reactor::new().expect("a descriptor");
    reactor
        .add(&connection, 0, Interest::Read)
        .expect("it is open");
    let (received, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let (producer, ring) = (Producer::new(), peer.memory.ring(RingDirection::There));
            for sent in 0..OCTETS {
                let (_, wait) = producer.put(ring, b"x", b"").expect("an honest peer");
                if wait == Wait::Doorbell {
                    rendezvous::ring_bell(&peer.socket).expect("it listens");
                }
                while received.load(Ordering::Acquire) <= sent && !is_over.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                // The next one comes at another moment of the reader's way back to its wait.
                (0..sent % 512).for_each(|_| std::hint::spin_loop());
            }
        });
        let mut number = 0;
        while number < OCTETS {
            match reactor.wait(Some(Duration::from_secs(10))) {
                Ok(Some(_)) => {}
                _ => break,
            }
            while let Ok(n) = connection.try_recv(&mut [0; 8]) {
                number += n;
                received.store(number, Ordering::Release);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(number, OCTETS, "the one after it was told of by nothing");
    });
}

#[test]
fn wishes_of_a_thread_that_sends_are_not_forgotten_by_one_that_receives() {
    const OCTETS: usize = 32 << 20;
    let endpoints = parse_endpoints("shmiop://|ring=4096").expect("an endpoint");
    let acceptors = SharedMemory.listen(&endpoints[0], Setup::default());
    let acceptor = acceptors.expect("it opens").remove(0);
    let address = &acceptor.published()[0];
    let near = SharedMemory.connect(address, Setup::default(), soon());
    let near = near.expect("it listens");
    let far = acceptor.accept().expect("it is open");
    let far = far.expect("it has everything");
    let send = |connection: &dyn Connection| {
        let mut sent = 0;
        while sent < OCTETS {
            match connection.try_send(&[7; RING]) {
                Ok(n) => sent += n,
                Err(IoError::WouldBlock) => thread::yield_now(),
                Err(error) => panic!("{error} after {sent} octets that were sent"),
            }
        }
    };
    let receive = |connection: &dyn Connection| {
        let mut received = 0;
        while received < OCTETS {
            match connection.try_recv(&mut [0; 100]) {
                Ok(n) => received += n,
                Err(IoError::WouldBlock) => thread::yield_now(),
                Err(error) => panic!("{error} after {received} octets that were received"),
            }
        }
    };
    thread::scope(|scope| {
        for end in [&*near, &*far] {
            scope.spawn(move || send(end));
            scope.spawn(move || receive(end));
        }
    });
}

#[test]
fn descriptors_that_nobody_asked_for_are_not_kept() {
    let scene = Scene::new();
    let (peer, connection) = scene.pair();
    let (reading, writing) = std::io::pipe().expect("descriptors");
    let files = [writing.as_fd(); 8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&files)));
    let pieces = [IoSlice::new(&[0])];
    net::sendmsg(&peer.socket, &pieces, &mut ancillary, SendFlags::empty()).expect("it is sent");
    drop(writing);
    // One octet may ring, since both sides begin so.
    assert_eq!(connection.try_recv(&mut [0]), Err(IoError::WouldBlock));
    // No copy of the pipe's other end is left anywhere.
    assert_eq!(rustix::io::read(&reading, &mut [0; 1]), Ok(0));
}

#[test]
fn a_peer_that_says_nothing_is_no_connection_yet_and_holds_up_nobody() {
    let scene = Scene::new();
    let silent = scene.socket();
    let waiting = scene.accept().expect("it has connected");
    assert!(!waiting.is_established());
    assert_eq!(waiting.try_recv(&mut [0]), Err(IoError::WouldBlock));
    assert_eq!(waiting.recv(&mut [0], soon()), Err(IoError::TimedOut));
    assert_eq!(waiting.try_send(&[0]), Err(IoError::WouldBlock));
    let sent = waiting.send_all(&[0], soon()).expect_err("nowhere to");
    assert_eq!((sent.sent, sent.cause), (0, IoError::TimedOut));

    let (peer, connection) = scene.pair();
    assert!(connection.is_established());
    connection.try_send(b"x").expect("there is room");
    let consumer = Consumer::new();
    let back = peer.memory.ring(RingDirection::Back);
    assert_eq!(consumer.take(back, &mut [0; 5]), Ok(1));

    // Late, but right.
    let (_memory, file) = Memory::create(RING).expect("there is memory");
    rendezvous::offer(&silent, &file, RING).expect("the socket is new");
    assert_eq!(waiting.try_recv(&mut [0]), Err(IoError::WouldBlock));
    assert!(waiting.is_established());
    drop(silent);
    assert_eq!(waiting.recv(&mut [0], soon()), Err(IoError::Ended));
}

#[test]
fn who_is_woken_is_asked_for_and_not_twice() {
    let (memory, _file) = Memory::create(RING).expect("there is memory");
    let ring = memory.ring(RingDirection::There);
    let (producer, consumer) = (Producer::new(), Consumer::new());
    assert_eq!(producer.put(ring, b"a", b""), Ok((1, Wait::Doorbell)));
    assert_eq!(producer.put(ring, b"b", b""), Ok((1, Wait::Not)));
    assert_eq!(consumer.arm(ring, Wait::Word), Ok(WakeRequest::Needless));
    assert_eq!(consumer.take(ring, &mut [0; 5]), Ok(2));
    assert!(matches!(
        consumer.arm(ring, Wait::Word),
        Ok(WakeRequest::Until(_))
    ));
    assert_eq!(producer.put(ring, b"c", b"d"), Ok((2, Wait::Word)));
    assert_eq!(consumer.take(ring, &mut [0; 5]), Ok(2));
    assert_eq!(producer.put(ring, b"e", b""), Ok((1, Wait::Not)));
}

proptest! {
    #[test]
    fn octets_put_in_by_any_cuts_come_out_by_any_others(
        puts in prop::collection::vec((0_usize..5000, 0_usize..5000), 1..40),
        takes in prop::collection::vec(1_usize..6000, 1..40),
    ) {
        let (memory, _file) = Memory::create(RING).expect("there is memory");
        let ring = memory.ring(RingDirection::Back);
        let (producer, consumer) = (Producer::new(), Consumer::new());
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        let mut takes = takes.into_iter().cycle();
        for (first, second) in puts {
            let octet = |i: usize| (i * 31 % 251) as u8;
            let octets: Vec<_> = (0..first + second).map(|i| octet(sent.len() + i)).collect();
            let (first, second) = octets.split_at(first);
            let (n, _) = producer.put(ring, first, second).expect("an honest peer");
            prop_assert!(n <= RING && sent.len() + n - received.len() <= RING);
            sent.extend_from_slice(&octets[..n]);
            let mut room = vec![0; takes.next().unwrap_or(1)];
            let n = consumer.take(ring, &mut room).expect("an honest peer");
            prop_assert_eq!(n, room.len().min(sent.len() - received.len()));
            received.extend_from_slice(&room[..n]);
            if consumer.owes_much(ring) || received.len() == sent.len() {
                consumer.release(ring).expect("an honest peer");
            }
            prop_assert_eq!(&received[..], &sent[..received.len()]);
        }
    }
}
