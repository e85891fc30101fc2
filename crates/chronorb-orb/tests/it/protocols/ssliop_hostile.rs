//! Hostile TLS servers before there is a session: each call ends with an exception, and the next
//! one succeeds.

use std::io::{Read, Write, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use chronorb_orb::SystemExceptionKind::{self as Kind, NoPermission, Timeout, Transient};
use chronorb_rt::PiMutex;
use rustix::net::sockopt::set_socket_linger;

use super::ssliop::{Place, TLS_ONLY, orb_at, ssl};
use crate::support::strategies::STRATEGIES;
use crate::support::{PATIENCE, ProbeSkeleton, add, orb_with};

/// The reaction of a server to the first octets of the client.
type Act = fn(&mut TcpStream);

const ATTACKS: &[(&str, Act, &[Kind])] = &[
    ("garbage", |s| send(s, &[0xa5; 4096]), REFUSALS),
    (
        "another protocol",
        |s| send(s, b"HTTP/1.1 400 \r\n\r\n"),
        REFUSALS,
    ),
    (
        "GIOP",
        |s| send(s, b"GIOP\x01\x02\x01\x06\0\0\0\0"),
        REFUSALS,
    ),
    ("an alert", |s| send(s, &[21, 3, 3, 0, 2, 2, 40]), REFUSALS),
    (
        "a great record",
        |s| send(s, &[22, 3, 3, 0xff, 0xff]),
        REFUSALS,
    ),
    (
        "half a hello",
        |s| send(s, &[22, 3, 3, 0, 80, 2, 0, 0, 76, 3, 3]),
        REFUSALS,
    ),
    (
        "empty records",
        |s| send(s, &[22, 3, 3, 0, 0].repeat(10_000)),
        REFUSALS,
    ),
    ("its own hello", echo, REFUSALS),
    ("the end", |_| {}, REFUSALS),
    ("a reset", reset, REFUSALS),
    ("silence", wait_for_the_end, &[Timeout, Transient]),
];

/// The handshake fails, or no server is there.
const REFUSALS: &[Kind] = &[NoPermission, Transient];

fn send(stream: &mut TcpStream, octets: &[u8]) {
    // A disconnected client is handled by the test.
    let _ = stream.write_all(octets);
}

fn echo(stream: &mut TcpStream) {
    let mut hello = [0; 512];
    if let Ok(n) = stream.read(&mut hello) {
        send(stream, &hello[..n]);
    }
}

fn reset(stream: &mut TcpStream) {
    set_socket_linger(stream, Some(Duration::ZERO)).expect("it is a socket");
}

fn wait_for_the_end(stream: &mut TcpStream) {
    let _ = copy(stream, &mut std::io::sink());
}

/// Returns a port at which connections are attacked, and relayed to `server` from when `is_over`
/// is set.
fn before(server: SocketAddr, act: Act, is_over: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let is_over = is_over.load(Ordering::SeqCst);
            thread::spawn(move || {
                if is_over {
                    return relay(&stream, server);
                }
                let patience = stream.set_read_timeout(Some(PATIENCE));
                patience.expect("a socket has a time-out");
                if stream.peek(&mut [0]).is_ok() {
                    act(&mut stream);
                }
            });
        }
    });
    port
}

fn relay(client: &TcpStream, server: SocketAddr) {
    let Ok(server) = TcpStream::connect(server) else {
        return;
    };
    let one_way = |mut from: &TcpStream, mut to: &TcpStream| {
        let _ = copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    };
    thread::scope(|scope| {
        scope.spawn(|| one_way(client, &server));
        one_way(&server, client);
    });
}

#[test]
fn no_attack_of_a_server_before_the_session_harms_its_clients() {
    let place = Place::new();
    let server = orb_at(TLS_ONLY, &place.server);
    let root = server.root_poa().expect("the endpoints open");
    let object = root.serve(ProbeSkeleton(Default::default()));
    let object = object.expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let name = server.register_initial_reference("Probe", &object);
    name.expect("the name is free");
    let address = SocketAddr::from(([127, 0, 0, 1], ssl(&object).port));
    let failures = PiMutex::new(Vec::new());
    thread::scope(|scope| {
        for (name, act, kinds) in ATTACKS {
            for strategy in STRATEGIES {
                let (place, failures) = (&place, &failures);
                scope.spawn(move || {
                    let case = format!("{name}, {strategy:?}");
                    let client = orb_with(|config| {
                        config.client_connection = strategy;
                        config.ssl = place.anonymous();
                    });
                    let is_over = Arc::new(AtomicBool::new(false));
                    let port = before(address, *act, is_over.clone());
                    let url = format!("corbaloc:ssliop:1.2@127.0.0.1:{port}/Probe");
                    let object = client.string_to_object(&url).expect("a URL");
                    let first = if kinds.contains(&Timeout) {
                        add(&object.with_timeout(SHORT), 1, 2)
                    } else {
                        add(&object, 1, 2)
                    };
                    is_over.store(true, Ordering::SeqCst);
                    let is_told = first.is_err_and(|e| kinds.contains(&e.kind));
                    let next = add(&object, 1, 2);
                    if !is_told || next != Ok(3) {
                        failures
                            .lock()
                            .push(format!("{case}: {first:?}, then {next:?}"));
                    }
                    client.shutdown(true).expect("it ends");
                });
            }
        }
    });
    let failures = failures.into_inner();
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The timeout of a call to a silent server.
const SHORT: Duration = Duration::from_millis(300);
