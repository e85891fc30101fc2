//! Closing of idle connections by the server, without losing a request.

use chronorb_orb::{Orb, SystemException, SystemExceptionKind, ThreadpoolStrategy, minor};
use chronorb_rt::Deadline;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::adapters::pause;
use crate::support::{PATIENCE, ServedProbe, add, nothing, orb_with, served_by};

fn server_with(time_out: Duration) -> Orb {
    orb_with(|config| {
        config.server_idle_timeout = Some(time_out);
        config.threadpool_strategy = ThreadpoolStrategy::LeaderFollowers;
    })
}

fn connections(server: &Orb) -> usize {
    let snapshot = server.snapshot();
    let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
    lanes.map(|lane| lane.connections).sum()
}

fn await_connections(s: &ServedProbe, wanted: usize) {
    let deadline = Deadline::after(PATIENCE);
    while connections(&s.server) != wanted {
        assert!(!deadline.has_passed(), "{}", connections(&s.server));
        pause();
    }
}

#[test]
fn a_connection_that_nobody_uses_is_closed_and_the_next_call_makes_another() {
    let s = served_by(server_with(Duration::from_millis(20)));
    for calls in [1, 100] {
        // After many calls a thread of the server stays with the connection.
        for n in 0..calls {
            assert_eq!(add(&s.object, n, 1), Ok(n + 1));
        }
        await_connections(&s, 0);
    }
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn the_client_is_told_in_order() {
    let s = served_by(server_with(Duration::from_millis(20)));
    let profile = &s.object.ior().profiles[0];
    let profile = chronorb_giop::IiopProfile::decode(&profile.data).expect("it is IIOP");
    let mut stream = TcpStream::connect((profile.host.as_str(), profile.port)).expect("it listens");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("it ends in order");
    let header = chronorb_giop::MessageHeader::parse(&said).expect("it is a message");
    assert_eq!(header.kind, chronorb_giop::MessageType::CloseConnection);
    assert_eq!(said.len(), chronorb_giop::HEADER_LEN);
}

#[test]
fn half_a_message_is_no_reason_to_close_in_order() {
    let s = served_by(server_with(Duration::from_millis(10)));
    let profile = &s.object.ior().profiles[0];
    let profile = chronorb_giop::IiopProfile::decode(&profile.data).expect("it is IIOP");
    let mut stream = TcpStream::connect((profile.host.as_str(), profile.port)).expect("it listens");
    stream.write_all(b"GIOP\x01\x02").expect("it is open");
    // Until the other connection was checked several times.
    for _ in 0..3 {
        assert_eq!(add(&s.object, 1, 1), Ok(2));
        await_connections(&s, 1);
    }
    assert_eq!(connections(&s.server), 1);
}

#[test]
fn a_call_that_takes_longer_than_that_is_answered() {
    let s = served_by(server_with(Duration::from_millis(5)));
    std::thread::scope(|clients| {
        clients.spawn(|| assert_eq!(nothing(&s.object, "wait"), Ok(())));
        s.probe.gate.reach(1);
        // Another connection opens and closes meanwhile.
        clients
            .spawn(|| assert_eq!(add(&s.object, 1, 1), Ok(2)))
            .join()
            .expect("it was served");
        await_connections(&s, 1);
        s.probe.gate.set(2);
    });
}

#[test]
fn no_call_is_lost_by_it() {
    let s = served_by(server_with(Duration::from_millis(1)));
    let deadline = Deadline::after(PATIENCE);
    let (mut n, mut given_up) = (0, 0);
    while n < 200 {
        assert!(!deadline.has_passed(), "{given_up} were given up");
        match add(&s.object, n, 1) {
            Ok(sum) => assert_eq!(sum, n + 1),
            // A client that is not scheduled finds one closed connection after the other. It knows
            // that no request was served, and may call again.
            Err(exception) => {
                assert_eq!(exception, NOT_SERVED);
                given_up += 1;
                continue;
            }
        }
        if n % 10 == 0 {
            await_connections(&s, 0);
        }
        n += 1;
    }
    // The first attempt may use an existing connection; the two after it use new ones.
    assert!(accepted(&s.server) >= 2 * given_up, "{given_up}");
}

/// Returns the number of accepted connections.
fn accepted(server: &Orb) -> u64 {
    let snapshot = server.snapshot();
    let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
    lanes.map(|lane| lane.accepted).sum()
}

const NOT_SERVED: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::REQUEST_DISCARDED);
