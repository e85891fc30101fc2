//! Oneway requests that are kept, to be sent together.
//!
//! On the loopback, octets have arrived when the call that sends them returns. So the tests read
//! the peer's side without waiting.

use chronorb_orb::rtcorba::{
    ClientPolicy, OnewayBuffering, Protocols, SetOverride, SyncScope, TcpProtocolProperties,
};
use chronorb_orb::{
    ConnectionStrategy, Incident, Object, Operation, Orb, SystemException, SystemExceptionKind,
};
use rustix::net::sockopt;
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::adapters::until;
use crate::support::asynchronous::begin_add;
use crate::support::raw_server::object_at;
use crate::support::strategies::STRATEGIES;
use crate::support::{PATIENCE, add, orb_with, served};

const WIDE: OnewayBuffering = OnewayBuffering {
    octets: 1 << 20,
    requests: 1000,
    delay: PATIENCE,
};
/// The strategies whose threads send by themselves.
const SENDING: [ConnectionStrategy; 3] = [
    ConnectionStrategy::Exclusive,
    ConnectionStrategy::Leader,
    ConnectionStrategy::Thread,
];

fn buffered(object: &Object, scope: SyncScope, limits: OnewayBuffering) -> Object {
    let policies = [
        ClientPolicy::SyncScope(scope),
        ClientPolicy::OnewayBuffering(limits),
    ];
    let object = object.with_policy_overrides(&policies, SetOverride::Set);
    object.expect("one of each kind")
}

fn note(object: &Object, octets: usize) -> Result<(), SystemException> {
    let octets = vec![0; octets];
    object.invoke_oneway(&Operation::oneway("note"), &|e| e.write_octet_seq(&octets))
}

/// A client, and the other end of its connection.
struct Site {
    listener: TcpListener,
    client: Orb,
    object: Object,
    peer: Option<TcpStream>,
    octets: Vec<u8>,
}

impl Site {
    fn new(strategy: ConnectionStrategy, scope: SyncScope, limits: OnewayBuffering) -> Self {
        println!("{strategy:?} {scope:?} {limits:?}");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let client = orb_with(|config| config.client_connection = strategy);
        let object = object_at(&client, address);
        Self {
            object: buffered(&object, scope, limits),
            listener,
            client,
            peer: None,
            octets: Vec::new(),
        }
    }

    /// The number of messages that arrived since the last look; the first calls have connected.
    fn arrived(&mut self) -> usize {
        let listener = &self.listener;
        let peer = self.peer.get_or_insert_with(|| {
            let (peer, _) = listener.accept().expect("it has connected");
            peer.set_nonblocking(true).expect("it is TCP");
            peer
        });
        let mut room = [0; 1 << 16];
        loop {
            match peer.read(&mut room) {
                Ok(0) => break,
                Ok(n) => self.octets.extend_from_slice(&room[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let mut count = 0;
        while let Some(size) = self.octets.get(8..12) {
            let size = u32::from_le_bytes(size.try_into().expect("four")) as usize;
            assert_eq!(self.octets[..4], *b"GIOP");
            assert!(
                self.octets.len() >= 12 + size,
                "a part of a message is sent"
            );
            self.octets.drain(..12 + size);
            count += 1;
        }
        count
    }

    /// The peer's side of the connection, whose reads wait.
    fn patient_peer(&mut self) -> &mut TcpStream {
        let peer = self.peer.get_or_insert_with(|| {
            let (peer, _) = self.listener.accept().expect("it has connected");
            peer
        });
        peer.set_nonblocking(false).expect("it is TCP");
        peer.set_read_timeout(Some(PATIENCE)).expect("not zero");
        peer
    }

    /// Waits for octets, and leaves them.
    fn await_octets(&mut self) {
        let seen = self.patient_peer().peek(&mut [0]).expect("it is open");
        assert_eq!(seen, 1);
    }

    /// Waits for a whole message, and returns its number of octets.
    fn wait(&mut self) -> usize {
        let peer = self.patient_peer();
        let mut header = [0; 12];
        peer.read_exact(&mut header).expect("a header");
        assert_eq!(header[..4], *b"GIOP");
        let size = u32::from_le_bytes(header[8..].try_into().expect("four"));
        let mut body = vec![0; size as usize];
        peer.read_exact(&mut body).expect("a whole message");
        peer.set_nonblocking(true).expect("it is TCP");
        12 + body.len()
    }

    fn lost(&self) -> u64 {
        let incidents = self.client.snapshot().incidents;
        let mut counts = incidents.iter();
        let lost = counts.find(|(incident, _)| *incident == Incident::LostOneways);
        lost.expect("it has a count").1
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.client.shutdown(false);
    }
}

#[test]
fn each_bound_sends_what_was_kept() {
    for strategy in SENDING {
        let limits = OnewayBuffering {
            requests: 3,
            ..WIDE
        };
        let mut site = Site::new(strategy, SyncScope::None, limits);
        for expected in [0, 0, 3, 0, 0, 3, 0] {
            assert_eq!(note(&site.object, 8), Ok(()));
            assert_eq!(site.arrived(), expected);
        }
        let limits = OnewayBuffering {
            octets: 2000,
            ..WIDE
        };
        let mut site = Site::new(strategy, SyncScope::None, limits);
        // The third has no room; a long one is not kept, and does not overtake.
        for (octets, expected) in [(700, 0), (700, 0), (700, 2), (10, 0), (3000, 3), (10, 0)] {
            assert_eq!(note(&site.object, octets), Ok(()));
            assert_eq!(site.arrived(), expected, "after {octets} octets");
        }
        let limits = OnewayBuffering {
            delay: Duration::ZERO,
            ..WIDE
        };
        let mut site = Site::new(strategy, SyncScope::None, limits);
        for _ in 0..3 {
            assert_eq!(note(&site.object, 8), Ok(()));
            assert_eq!(site.arrived(), 1);
        }
    }
}

#[test]
fn other_scopes_send_at_once() {
    for strategy in SENDING {
        let mut site = Site::new(strategy, SyncScope::WithTransport, WIDE);
        for _ in 0..3 {
            assert_eq!(note(&site.object, 8), Ok(()));
            assert_eq!(site.arrived(), 1);
        }
    }
}

#[test]
fn they_are_sent_on_demand_and_by_the_end_of_the_thread() {
    for strategy in SENDING {
        let mut site = Site::new(strategy, SyncScope::None, WIDE);
        assert_eq!(site.object.flush_oneways(), Ok(()), "nothing was kept");
        for round in 1..4 {
            for _ in 0..round {
                assert_eq!(note(&site.object, 8), Ok(()));
            }
            assert_eq!(site.arrived(), 0);
            assert_eq!(site.object.flush_oneways(), Ok(()));
            assert_eq!(site.arrived(), round);
        }
        let mut site = Site::new(strategy, SyncScope::None, WIDE);
        let object = site.object.clone();
        let thread = std::thread::spawn(move || {
            for _ in 0..5 {
                assert_eq!(note(&object, 8), Ok(()));
            }
        });
        thread.join().expect("no panic");
        assert_eq!(site.arrived(), 5);
        assert_eq!(site.lost(), 0);
    }
}

#[test]
fn they_are_sent_in_time_although_their_thread_makes_no_further_call() {
    for strategy in SENDING {
        let mut site = Site::new(strategy, SyncScope::None, WIDE);
        let policies = [
            ClientPolicy::SyncScope(SyncScope::None),
            ClientPolicy::OnewayBuffering(OnewayBuffering {
                octets: 16 << 10,
                requests: 64,
                delay: Duration::from_millis(5),
            }),
        ];
        let object = site
            .object
            .with_policy_overrides(&policies, SetOverride::Set);
        site.object = object.expect("one of each kind");
        for octets in [8, 800, 80] {
            assert_eq!(note(&site.object, octets), Ok(()));
            let arrived = site.wait();
            assert!((octets..octets + 100).contains(&arrived), "{arrived}");
        }
        assert_eq!(site.lost(), 0);
    }
}

#[test]
fn a_server_that_reads_nothing_delays_no_other_batch() {
    const LARGE: usize = 60_000;
    for strategy in SENDING {
        let limits = OnewayBuffering {
            delay: Duration::from_millis(5),
            ..WIDE
        };
        let patient = OnewayBuffering {
            delay: Duration::from_millis(500),
            ..WIDE
        };
        let mut slow = Site::new(strategy, SyncScope::None, patient);
        // The kernel has room for a part of the octets.
        sockopt::set_socket_recv_buffer_size(&slow.listener, 4_096).expect("it is TCP");
        let protocols = Protocols::iiop(TcpProtocolProperties {
            send_buffer_size: 4_096,
            ..TcpProtocolProperties::default()
        });
        let policy = ClientPolicy::ClientProtocol(protocols.expect("one protocol"));
        let small = slow
            .object
            .with_policy_overrides(&[policy], SetOverride::Add);
        slow.object = small.expect("one of each kind");
        // Another server, of the same client.
        let mut other = Site::new(strategy, SyncScope::None, limits);
        let address = other.listener.local_addr().expect("it is bound");
        let object = object_at(&slow.client, address);
        other.object = buffered(&object, SyncScope::None, limits);
        for _ in 0..3 {
            assert_eq!(note(&slow.object, LARGE), Ok(()));
        }
        slow.await_octets();
        for _ in 0..3 {
            assert_eq!(note(&other.object, 8), Ok(()));
            assert!(other.wait() < 100);
        }
        // A part of the large ones has been sent. Nothing overtakes their rest.
        let object = slow.object.clone();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| [(); 4].map(|()| slow.wait()));
            assert_eq!(note(&object, 8), Ok(()));
            assert_eq!(object.flush_oneways(), Ok(()));
            let [first, second, third, last] = reader.join().expect("no panic");
            let least = first.min(second).min(third);
            assert!(least > LARGE && last < 100, "{least} {last}");
        });
        assert_eq!(note(&slow.object, 8), Ok(()));
        assert!(slow.wait() < 100);
        assert_eq!(slow.lost(), 0);
    }
}

#[test]
fn the_end_of_the_orb_sends_what_other_threads_have_kept() {
    for strategy in SENDING {
        let mut site = Site::new(strategy, SyncScope::None, WIDE);
        let object = site.object.clone();
        let (kept, is_kept) = std::sync::mpsc::channel();
        let (end, is_over) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            kept.send(note(&object, 8)).expect("it is awaited");
            let _ = is_over.recv();
        });
        assert_eq!(is_kept.recv(), Ok(Ok(())));
        assert_eq!(site.arrived(), 0);
        site.client.shutdown(true).expect("no servant calls it");
        assert!(site.wait() < 100);
        drop(end);
        thread.join().expect("no panic");
    }
}

#[test]
fn they_are_sent_before_the_end_of_the_orb() {
    let mut site = Site::new(ConnectionStrategy::Exclusive, SyncScope::None, WIDE);
    assert_eq!(note(&site.object, 8), Ok(()));
    assert_eq!(site.arrived(), 0);
    site.client.shutdown(true).expect("no servant calls it");
    assert_eq!(site.arrived(), 1);
}

#[test]
fn a_call_with_an_answer_does_not_overtake() {
    for strategy in STRATEGIES {
        println!("{strategy:?}");
        let s = served();
        let client = orb_with(|config| config.client_connection = strategy);
        let text = s.server.object_to_string(&s.object);
        let remote = client.string_to_object(&text).expect("it reads");
        let policies = [
            ClientPolicy::SyncScope(SyncScope::None),
            ClientPolicy::OnewayBuffering(WIDE),
        ];
        let object = remote.with_policy_overrides(&policies, SetOverride::Set);
        let object = object.expect("one of each kind");
        let served = || s.probe.notes.load(Ordering::Relaxed);
        for round in 1..20 {
            for _ in 0..3 {
                assert_eq!(note(&object, 8), Ok(()));
            }
            assert_eq!(add(&object, 1, 2), Ok(3));
            // Other threads of the server may still serve the oneways.
            until("they never came", || served() == 3 * round);
        }
        assert_eq!(note(&object, 8), Ok(()));
        let pending = begin_add(&object, 1, 2).expect("it begins");
        assert_eq!(pending.wait(), Ok(3));
        until("it never came", || served() == 3 * 19 + 1);
        client.shutdown(true).expect("no servant calls it");
    }
}

#[test]
fn requests_that_are_lost_are_counted() {
    for strategy in SENDING {
        let limits = OnewayBuffering {
            requests: 4,
            ..WIDE
        };
        let mut site = Site::new(strategy, SyncScope::None, limits);
        for _ in 0..3 {
            assert_eq!(note(&site.object, 8), Ok(()));
        }
        assert_eq!(site.arrived(), 0);
        let peer = site.peer.take().expect("it was accepted");
        // The end of the connection is a reset, so that sending fails.
        let linger = Some(Duration::ZERO);
        sockopt::set_socket_linger(&peer, linger).expect("it is a socket");
        drop(peer);
        let lost = site.object.flush_oneways().expect_err("it has ended");
        assert_eq!(lost.kind, SystemExceptionKind::CommFailure);
        assert_eq!(site.lost(), 1, "it is one incident");
        // The next ones go by a new connection.
        for expected in [0, 0, 0, 4] {
            assert_eq!(note(&site.object, 8), Ok(()));
            assert_eq!(site.arrived(), expected);
        }
    }
}
