//! Eviction when a lane's buffers for its peers reach the bound: the peer with the most data is
//! disconnected.

use chronorb_orb::{Orb, ThreadpoolStrategy};

use super::*;
use crate::support::PATIENCE;

fn cut_off(orb: &Orb) -> u64 {
    let incidents = orb.snapshot().incidents;
    let of = incidents.iter().find(|(of, _)| *of == Incident::CutOff);
    of.map_or(0, |(_, count)| *count)
}

fn connections(orb: &Orb) -> usize {
    orb.snapshot().pools[0].lanes[0].connections
}

/// Returns a request for an echo whose message, and thus its reply, has this length.
fn echo_of(s: &ServedProbe, len: usize) -> Vec<u8> {
    let octets = vec![7; len];
    let write = |e: &mut Encoder<'_>| e.write_octet_seq(&octets);
    let twoway = ResponseFlags::SyncWithTarget;
    message(s, Version::V1_2, b"octets", twoway, &[], &write)
}

#[test]
fn unfinished_requests_do_not_stop_those_that_come_in_parts() {
    for strategy in [
        ThreadpoolStrategy::LeaderFollowers,
        ThreadpoolStrategy::HalfSyncHalfAsync,
        ThreadpoolStrategy::ThreadPerConnection,
    ] {
        let s = served_by(orb_with(|config| {
            config.max_buffered_octets = 1 << 20;
            config.threadpool_strategy = strategy;
        }));
        // As much as twenty-five messages of 16 MiB are of 64 MiB.
        let held = echo_of(&s, 256 << 10);
        let mut hogs: Vec<_> = (0..25).map(|_| connect(&s)).collect();
        for hog in &mut hogs {
            // Some may have been disconnected by then.
            let _ = hog.write_all(&held[..held.len() - 1]);
        }
        let honest = echo_of(&s, 20_000);
        for _ in 0..20 {
            let mut peer = connect(&s);
            peer.set_nodelay(true).expect("it is TCP");
            for part in honest.chunks(7_000) {
                peer.write_all(part).expect("it is open");
                assert_eq!(add(&s.object, 1, 1), Ok(2), "what has come is read");
            }
            let (header, reply) = receive(&mut peer).expect("a reply");
            assert_eq!(header.kind, MessageType::Reply);
            assert!(reply.len() > 20_000);
        }
        until("hogs are cut off", || cut_off(&s.server) > 0);
    }
}

/// Returns a server whose replies stay buffered: a Unix-domain socket buffers little in the kernel.
#[cfg(feature = "uiop")]
fn by_unix_sockets(configure: impl FnOnce(&mut chronorb_orb::OrbConfig)) -> (ServedProbe, String) {
    let endpoints = chronorb_transport::parse_endpoints("iiop://127.0.0.1:0;uiop://");
    let s = served_by(orb_with(|config| {
        config.listen_endpoints = endpoints.expect("they are correct");
        config.max_connections_per_peer = 1000;
        configure(config);
    }));
    let snapshot = s.server.snapshot();
    let endpoints = &snapshot.pools[0].lanes[0].endpoints;
    let path = endpoints.iter().find_map(|at| at.strip_prefix("uiop://"));
    let path = path.expect("it listens there").to_owned();
    (s, path)
}

#[cfg(feature = "uiop")]
fn connect_by(path: &str) -> std::os::unix::net::UnixStream {
    let stream = std::os::unix::net::UnixStream::connect(path).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

#[cfg(feature = "uiop")]
#[test]
fn replies_that_nobody_takes_do_not_stop_those_that_somebody_does() {
    let (s, path) = by_unix_sockets(|config| config.max_buffered_octets = 4 << 20);
    let much = echo_of(&s, 1 << 20);
    let mut hogs: Vec<_> = (0..50).map(|_| connect_by(&path)).collect();
    for hog in &mut hogs {
        // Some are disconnected while they send.
        let _ = hog.write_all(&much);
    }
    for _ in 0..20 {
        // Each takes a little now and then.
        for hog in &mut hogs {
            let _ = hog.read(&mut [0; 16]);
        }
        assert!(octets(&s.object, &[7; 200_000]));
    }
    assert!(cut_off(&s.server) > 40, "{}", cut_off(&s.server));
}

#[cfg(feature = "uiop")]
#[test]
fn a_reply_that_is_taken_too_slowly_ends_the_connection() {
    let waiting = |rate, time_out| {
        let (s, path) = by_unix_sockets(|config| {
            config.input_timeout = Duration::from_millis(time_out);
            config.min_reply_rate = rate;
        });
        let mut peer = connect_by(&path);
        assert_eq!(add(&s.object, 1, 1), Ok(2));
        peer.write_all(&echo_of(&s, 4 << 20)).expect("it is read");
        until("the reply waits", || connections(&s.server) == 2);
        (s, peer)
    };
    // When the strict server ends its connection, the time-out of the other one is over, too.
    let (patient, mut slow) = waiting(0, 2000);
    let (strict, mut slow_too) = waiting(1 << 30, 2500);
    let mut room = [0; 4096];
    until("the reply is given up", || {
        // Data is read all the time, but far less than that.
        std::thread::sleep(Duration::from_millis(5));
        let n = slow.read(&mut room).expect("the kernel has some");
        assert!(n > 0, "that was not all");
        // The server may have ended it.
        let _ = slow_too.read(&mut room);
        connections(&strict.server) == 1
    });
    assert_eq!(connections(&patient.server), 2);
    for s in [patient, strict] {
        assert_eq!(add(&s.object, 1, 1), Ok(2));
    }
}
