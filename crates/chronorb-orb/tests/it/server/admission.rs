//! Eviction of connections when a lane has the maximum number of them, for each protocol.

use chronorb_giop::{HEADER_LEN, MessageHeader, MessageType};
#[cfg(all(feature = "monitor", feature = "uiop"))]
use chronorb_giop::{IiopProfile, ResponseFlags, TAG_INTERNET_IOP, Version};
use chronorb_orb::{
    Activity, Incident, Object, Operation, Orb, OrbConfig, ThreadSnapshot, ThreadpoolStrategy,
};
use chronorb_rt::Deadline;
use chronorb_transport::{
    Address, Connection, IoError, Setup, Transport, parse_endpoints, tcp::Tcp,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Read;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[cfg(all(feature = "monitor", feature = "uiop"))]
use super::hostile::request_to;
use crate::support::adapters::until;
use crate::support::descriptors::spawn;
use crate::support::raw_server::object_at;
use crate::support::{
    PATIENCE, ServedProbe, add, name_of, nothing, orb, orb_with, served_by, with_longer_times,
};

/// A server of one protocol, and its address for peers without an ORB.
struct Place {
    name: &'static str,
    served: ServedProbe,
    transport: Box<dyn Transport>,
    address: Address,
    /// The files of TLS, kept as long as the server lives.
    _files: Option<tempfile::TempDir>,
}

impl Place {
    /// Returns a connection on which nothing was sent yet.
    fn connect(&self) -> Box<dyn Connection> {
        let deadline = Deadline::after(PATIENCE);
        let connection = self
            .transport
            .connect(&self.address, Setup::default(), deadline);
        connection.expect("it listens")
    }

    /// Returns the object from another client's point of view.
    fn another(&self) -> (Orb, Object) {
        let client = orb_with(|config| {
            #[cfg(feature = "ssliop")]
            {
                config.ssl = self.served.client_settings();
            }
            let _ = config;
        });
        let text = self.served.client.object_to_string(&self.served.object);
        let object = client.string_to_object(&text).expect("it reads");
        (client, object)
    }
}

#[cfg(feature = "ssliop")]
impl ServedProbe {
    /// Returns the settings of a client that trusts any server.
    fn client_settings(&self) -> chronorb_transport::tls::TlsSettings {
        chronorb_transport::tls::TlsSettings {
            verify: chronorb_transport::tls::Verify::None,
            ..Default::default()
        }
    }
}

/// Returns the address of this server's endpoint.
fn address(server: &Orb) -> Address {
    let snapshot = server.snapshot();
    let lane = &snapshot.pools[0].lanes[0];
    let (_, text) = lane.endpoints[0].split_once("://").expect("an endpoint");
    if text.starts_with('/') {
        Address::Path(text.to_owned())
    } else {
        let (host, port) = text.rsplit_once(':').expect("a port");
        Address::host(host, port.parse().expect("a number"))
    }
}

fn at(
    name: &'static str,
    endpoint: &str,
    transport: Box<dyn Transport>,
    configure: &dyn Fn(&mut OrbConfig),
) -> Place {
    let served = served_by(orb_with(|config| {
        config.listen_endpoints = parse_endpoints(endpoint).expect("an endpoint");
        configure(config);
    }));
    Place {
        name,
        address: address(&served.server),
        served,
        transport,
        _files: None,
    }
}

fn by_tcp(configure: &dyn Fn(&mut OrbConfig)) -> Place {
    at("tcp", "iiop://127.0.0.1:0", Box::new(Tcp), configure)
}

/// Returns a server for each connection protocol.
fn places(configure: &dyn Fn(&mut OrbConfig)) -> Vec<Place> {
    let mut places = vec![by_tcp(configure)];
    #[cfg(feature = "uiop")]
    places.push(at(
        "unix",
        "uiop://",
        Box::new(chronorb_transport::uds::Unix),
        configure,
    ));
    #[cfg(feature = "shmiop")]
    places.push(at(
        "shm",
        "shmiop://",
        Box::new(chronorb_transport::shm::SharedMemory),
        configure,
    ));
    #[cfg(feature = "ssliop")]
    places.push(by_tls(configure));
    places
}

/// Returns a place with TLS whose peers are plain TCP: they never complete a handshake.
#[cfg(feature = "ssliop")]
fn by_tls(configure: &dyn Fn(&mut OrbConfig)) -> Place {
    let files = tempfile::tempdir().expect("a directory");
    let authority = crate::certificates::Authority::new(files.path(), "authority");
    let settings = authority.settings("server", &["127.0.0.1"]);
    let server = orb_with(|config| {
        config.listen_endpoints = parse_endpoints("ssliop://127.0.0.1:0").expect("an endpoint");
        config.ssl = settings;
        configure(config);
    });
    let probe = std::sync::Arc::new(crate::support::Probe::default());
    let root = server.root_poa().expect("the endpoint opens");
    let object = root.serve(crate::support::ProbeSkeleton(probe.clone()));
    let object = object.expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = orb_with(|config| {
        config.ssl = chronorb_transport::tls::TlsSettings {
            verify: chronorb_transport::tls::Verify::None,
            ..Default::default()
        };
    });
    let object = client.string_to_object(&server.object_to_string(&object));
    let served = ServedProbe {
        client,
        probe,
        object: object.expect("it reads"),
        server,
    };
    Place {
        name: "tls",
        address: address(&served.server),
        served,
        transport: Box::new(Tcp),
        _files: Some(files),
    }
}

fn count(orb: &Orb, incident: Incident) -> u64 {
    let incidents = orb.snapshot().incidents;
    let of = incidents.iter().find(|(of, _)| *of == incident);
    of.map_or(0, |(_, count)| *count)
}

fn lane(orb: &Orb) -> (u64, usize) {
    let snapshot = orb.snapshot();
    let lane = &snapshot.pools[0].lanes[0];
    (lane.accepted, lane.connections)
}

/// Waits until all connections are idle: a thread may still use one whose answer has arrived.
fn until_nothing_is_done(orb: &Orb) {
    until("all threads wait at the set", || {
        let snapshot = orb.snapshot();
        let lane = &snapshot.pools[0].lanes[0];
        let waits = |thread: &ThreadSnapshot| thread.activity == Activity::Waiting;
        lane.staying == 0 && lane.threads.iter().all(waits)
    });
}

/// Returns the kind of the last message before the end of a connection, if there was one.
fn last_word(connection: &dyn Connection) -> Option<MessageType> {
    let mut said = Vec::new();
    let mut room = [0; 64];
    loop {
        match connection.recv(&mut room, Deadline::after(PATIENCE)) {
            Ok(n) => said.extend_from_slice(&room[..n]),
            Err(IoError::TimedOut) => panic!("it was not closed"),
            Err(_) => break,
        }
    }
    let last = said.len().checked_sub(HEADER_LEN)?;
    Some(MessageHeader::parse(&said[last..]).ok()?.kind)
}

/// Returns whether a connection is open, and no message has arrived.
fn is_open(connection: &dyn Connection) -> bool {
    connection.try_recv(&mut [0; 16]) == Err(IoError::WouldBlock)
}

/// Sends a locate request, which every server answers.
fn locate(connection: &dyn Connection) {
    let mut request = b"GIOP\x01\x02\x01\x03\x0c\x00\x00\x00".to_vec();
    request.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let deadline = Deadline::after(PATIENCE);
    connection.send_all(&request, deadline).expect("it is open");
    let mut answer = [0; 64];
    let n = connection.recv(&mut answer, deadline).expect("an answer");
    assert!(n > HEADER_LEN, "a locate reply");
}

#[test]
fn connections_that_never_said_anything_make_room_for_those_that_do() {
    for place in places(&|config| {
        config.max_connections = 8;
        config.max_connections_per_peer = 8;
    }) {
        let s = &place.served;
        assert_eq!(add(&s.object, 1, 1), Ok(2), "{}", place.name);
        let silent: Vec<_> = (0..20).map(|_| place.connect()).collect();
        until("all have come", || lane(&s.server).0 >= 21);
        let (client, object) = place.another();
        assert_eq!(add(&object, 1, 1), Ok(2), "{}", place.name);
        // The former connection is unchanged.
        let before = lane(&s.server).0;
        assert_eq!(add(&s.object, 2, 2), Ok(4), "{}", place.name);
        assert_eq!(lane(&s.server).0, before, "{}", place.name);
        assert!(count(&s.server, Incident::Evicted) >= 13, "{}", place.name);
        drop(silent);
        client.shutdown(false).expect("it runs");
    }
}

#[test]
fn they_make_room_whatever_the_strategy() {
    for strategy in [
        ThreadpoolStrategy::HalfSyncHalfAsync,
        #[cfg(feature = "baselines")]
        ThreadpoolStrategy::WorkerPool,
        ThreadpoolStrategy::Reactive,
        ThreadpoolStrategy::ThreadPerConnection,
    ] {
        let place = by_tcp(&|config| {
            config.max_connections = 8;
            config.threadpool_strategy = strategy;
        });
        let s = &place.served;
        assert_eq!(add(&s.object, 1, 1), Ok(2));
        let silent: Vec<_> = (0..20).map(|_| place.connect()).collect();
        until("all have come", || lane(&s.server).0 >= 21);
        let client = orb();
        let text = s.client.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("it reads");
        assert_eq!(add(&object, 1, 1), Ok(2), "{strategy:?}");
        assert_eq!(last_word(&*silent[0]), Some(MessageType::CloseConnection));
        drop(silent);
        client.shutdown(false).expect("it runs");
    }
}

#[test]
fn the_longest_idle_connection_makes_room() {
    let place = by_tcp(&|config| config.max_connections = 4);
    let s = &place.served;
    let mut peers: Vec<_> = (0..4)
        .map(|_| {
            let peer = place.connect();
            locate(&*peer);
            until_nothing_is_done(&s.server);
            peer
        })
        .collect();
    // The first is in use again, since the second was idle.
    locate(&*peers[0]);
    until_nothing_is_done(&s.server);
    peers.push(place.connect());
    locate(&*peers[4]);
    until_nothing_is_done(&s.server);
    assert_eq!(last_word(&*peers[1]), Some(MessageType::CloseConnection));
    for open in [0, 2, 3, 4] {
        assert!(is_open(&*peers[open]), "{open}");
    }
    assert_eq!(count(&s.server, Incident::Evicted), 1);
    // A peer that never sent anything is evicted before all of them.
    peers.push(place.connect());
    until("it has come", || lane(&s.server).0 == 6);
    assert_eq!(last_word(&*peers[2]), Some(MessageType::CloseConnection));
    peers.push(place.connect());
    assert_eq!(last_word(&*peers[5]), Some(MessageType::CloseConnection));
    assert!(is_open(&*peers[3]));
}

#[test]
fn where_all_are_in_use_the_newcomer_is_told_in_order() {
    let place = by_tcp(&|config| {
        config.max_connections = 1;
        config.threads = 2.into();
    });
    let s = &place.served;
    std::thread::scope(|threads| {
        threads.spawn(|| assert_eq!(nothing(&s.object, "wait"), Ok(())));
        s.probe.gate.reach(1);
        let refused = place.connect();
        assert_eq!(last_word(&*refused), Some(MessageType::CloseConnection));
        s.probe.gate.set(2);
    });
    assert_eq!(count(&s.server, Incident::ServerFull), 1);
}

/// Asserts that a client keeps its connection for longer than a silent peer does. When a second
/// silent connection is closed, the check that closed the first one has ended.
fn assert_a_connection_with_a_message_stays(place: &Place) {
    let s = &place.served;
    assert_eq!(add(&s.object, 1, 1), Ok(2), "{}", place.name);
    let accepted = lane(&s.server).0;
    for _ in 0..2 {
        last_word(&*place.connect());
    }
    assert_eq!(add(&s.object, 1, 1), Ok(2), "{}", place.name);
    assert_eq!(lane(&s.server).0, accepted + 2, "{}", place.name);
}

#[test]
fn a_connection_without_a_message_is_closed_in_time() {
    for place in places(&|config| {
        config.input_timeout = Duration::from_millis(50);
    }) {
        let silent = place.connect();
        let said = last_word(&*silent);
        // Without a TLS session, no message is sent.
        let expected = (place.name != "tls").then_some(MessageType::CloseConnection);
        assert_eq!(said, expected, "{}", place.name);
        assert_a_connection_with_a_message_stays(&place);
    }
}

#[test]
fn a_thread_per_connection_closes_it_in_time_too() {
    let place = by_tcp(&|config| {
        config.input_timeout = Duration::from_millis(50);
        config.threadpool_strategy = ThreadpoolStrategy::ThreadPerConnection;
    });
    let silent = place.connect();
    assert_eq!(last_word(&*silent), Some(MessageType::CloseConnection));
    assert_eq!(count(&place.served.server, Incident::Silent), 1);
    assert_a_connection_with_a_message_stays(&place);
}

#[test]
fn the_rest_of_a_message_has_to_come_in_time() {
    let strategies = [
        ThreadpoolStrategy::LeaderFollowers,
        ThreadpoolStrategy::HalfSyncHalfAsync,
        ThreadpoolStrategy::ThreadPerConnection,
    ];
    for strategy in strategies {
        // On a busy machine the beginning may come too late, too.
        with_longer_times(Duration::from_millis(50), |time_out| {
            let place = by_tcp(&|config| {
                config.input_timeout = time_out;
                config.threadpool_strategy = strategy;
            });
            for part in [
                &b"GIOP\x01\x02\x01\x00"[..],
                b"GIOP\x01\x02\x01\x00\x10\x00\x00\x00ab",
            ] {
                let slow = place.connect();
                let _ = slow.try_send(part);
                if last_word(&*slow).is_some() {
                    return None;
                }
            }
            let noted = count(&place.served.server, Incident::LatePeer);
            (noted == 2).then_some(())
        });
    }
}

/// Returns the quota of the connections of the first lane.
#[cfg(feature = "monitor")]
fn room(orb: &Orb) -> chronorb_orb::quota::QuotaSnapshot {
    let mut quotas = orb.snapshot().quotas.into_iter();
    let first = quotas.find(|quota| quota.name == "connections of lane 0:0");
    first.expect("it has an endpoint")
}

#[cfg(feature = "uiop")]
#[test]
fn a_user_has_a_quarter_of_the_connections_at_unix_sockets() {
    let unix = || Box::new(chronorb_transport::uds::Unix);
    let place = at("unix", "uiop://", unix(), &|config| {
        config.max_connections = 8;
    });
    let peers: Vec<_> = (0..3)
        .map(|_| {
            let peer = place.connect();
            locate(&*peer);
            until_nothing_is_done(&place.served.server);
            peer
        })
        .collect();
    assert_eq!(last_word(&*peers[0]), Some(MessageType::CloseConnection));
    assert!(is_open(&*peers[1]) && is_open(&*peers[2]));
    #[cfg(feature = "monitor")]
    {
        let room = room(&place.served.server);
        assert_eq!((room.used, room.total), (2, 8));
        assert_eq!((room.origins, room.most, room.per_origin), (1, 2, 2));
        assert_eq!(room.refused, 0);
    }
    // If both are in use, a third one is refused.
    let place = at("unix", "uiop://", unix(), &|config| {
        config.max_connections = 8;
        config.max_connections_per_peer = 1;
    });
    let s = &place.served;
    std::thread::scope(|threads| {
        threads.spawn(|| assert_eq!(nothing(&s.object, "wait"), Ok(())));
        s.probe.gate.reach(1);
        let refused = place.connect();
        assert_eq!(last_word(&*refused), Some(MessageType::CloseConnection));
        s.probe.gate.set(2);
    });
    assert_eq!(count(&s.server, Incident::TooManyOfPeer), 1);
    // It is reported by this incident alone.
    assert_eq!(count(&s.server, Incident::QuotaExceeded), 0);
    #[cfg(feature = "monitor")]
    assert_eq!(room(&s.server).refused, 1);
}

#[cfg(all(feature = "monitor", feature = "uiop"))]
#[test]
fn a_connection_that_ends_during_a_request_has_no_room_any_more() {
    let endpoints = "uiop://;iiop://127.0.0.1:0";
    let unix = Box::new(chronorb_transport::uds::Unix);
    let place = at("unix", endpoints, unix, &|config| {
        config.max_connections_per_peer = 1;
        config.threads = 2.into();
    });
    let s = &place.served;
    let mut profiles = s.object.ior().profiles.iter();
    let profile = profiles.find(|profile| profile.tag == TAG_INTERNET_IOP);
    let profile = IiopProfile::decode(&profile.expect("of the endpoint").data);
    let key = profile.expect("our own").object_key;
    let response = ResponseFlags::SyncWithTarget;
    let wait = request_to(&key, Version::V1_2, b"wait", response, &[], &|_| Ok(()));
    let peer = place.connect();
    let send = |octets| peer.send_all(octets, Deadline::after(PATIENCE));
    send(&wait).expect("it is open");
    s.probe.gate.reach(1);
    send(b"this is no GIOP").expect("it is open");
    until("its room is free", || room(&s.server).used == 0);
    let next = place.connect();
    locate(&*next);
    s.probe.gate.set(2);
    until_nothing_is_done(&s.server);
    let room = room(&s.server);
    assert_eq!((room.used, room.origins, room.refused), (1, 1, 0));
    assert_eq!(count(&s.server, Incident::Evicted), 0);
    assert!(is_open(&*next));
}

#[test]
fn the_loopback_has_no_limit_of_a_peer() {
    let place = by_tcp(&|config| config.max_connections = 8);
    let peers: Vec<_> = (0..8)
        .map(|_| {
            let peer = place.connect();
            locate(&*peer);
            peer
        })
        .collect();
    assert!(peers.iter().all(|peer| is_open(&**peer)));
    #[cfg(feature = "monitor")]
    {
        let room = room(&place.served.server);
        assert_eq!((room.used, room.origins, room.most), (8, 0, 0));
    }
}

/// The environment variable of the process with few descriptors.
const ALONE: &str = "CHRONORB_TEST_FEW_DESCRIPTORS";

#[test]
fn idle_connections_make_room_where_descriptors_run_out() {
    if std::env::var_os(ALONE).is_some() {
        return without_descriptors();
    }
    let program = std::env::current_exe().expect("the test has a program");
    let name = name_of(idle_connections_make_room_where_descriptors_run_out);
    let mut again = Command::new(program);
    again
        .args(["--exact", name])
        .env(ALONE, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = spawn(&mut again).and_then(Child::wait_with_output);
    let output = output.expect("the test starts itself");
    assert!(output.status.success(), "{output:?}");
}

fn set_soft(limit: u64) {
    let limits = Rlimit {
        current: Some(limit),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limits).expect("it is within the hard limit");
}

fn without_descriptors() {
    // A server raises the limit to the needs of its connections, as far as it may.
    set_soft(256);
    let place = by_tcp(&|config| config.max_connections = 1000);
    let s = &place.served;
    let limits = getrlimit(Resource::Nofile);
    assert!(limits.maximum.is_none_or(|most| most > 1200), "{limits:?}");
    assert!(
        limits.current.is_none_or(|limit| limit >= 1000),
        "{limits:?}"
    );
    let warnings = s.server.listening().warnings;
    assert!(
        !warnings.iter().any(|w| w.contains("descriptors")),
        "{warnings:?}"
    );
    assert_eq!(add(&s.object, 1, 1), Ok(2));
    let silent: Vec<_> = (0..20).map(|_| place.connect()).collect();
    until("all have come", || lane(&s.server).0 == 21);
    let mut files = Vec::new();
    set_soft(200);
    while let Ok(file) = std::fs::File::open("/dev/null") {
        files.push(file);
    }
    // One end of a connection is in this process too.
    drop(files.pop());
    let newcomer = place.connect();
    locate(&*newcomer);
    assert_eq!(last_word(&*silent[0]), Some(MessageType::CloseConnection));
    assert_eq!(count(&s.server, Incident::Evicted), 1);
    assert_eq!(add(&s.object, 1, 1), Ok(2), "the one that was there before");
    // A connection to a server needs a descriptor too.
    let listener = TcpListener::bind("127.0.0.1:0");
    assert!(listener.is_err(), "none is left");
    drop(files.pop());
    let listener = TcpListener::bind("127.0.0.1:0").expect("one is left");
    let consumer = listener.local_addr().expect("it is bound");
    let consumer = object_at(&s.server, consumer);
    let told = consumer.invoke_oneway(&Operation::oneway("tell"), &|_| Ok(()));
    assert_eq!(told, Ok(()));
    assert_eq!(last_word(&*silent[1]), Some(MessageType::CloseConnection));
    assert_eq!(count(&s.server, Incident::Evicted), 2);
    drop(files);
    let (mut peer, _) = listener.accept().expect("it is connected");
    let mut header = [0; HEADER_LEN];
    peer.read_exact(&mut header).expect("the request arrives");
    assert_eq!(&header[..4], b"GIOP");
}
