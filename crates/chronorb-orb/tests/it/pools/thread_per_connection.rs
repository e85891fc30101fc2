//! Thread-per-connection: each connection has a thread of its lane's priority, until it ends.

use chronorb_giop::{MessageType, ResponseFlags, Version};
use chronorb_orb::ThreadpoolStrategy::ThreadPerConnection;
use chronorb_orb::poa::PriorityModel;
use chronorb_orb::rtcorba::{Lane, RequestBuffering, Threadpool, ThreadpoolLanes};
use chronorb_orb::{SystemException, SystemExceptionKind};
use chronorb_rt::{Deadline, Monotonic};
use std::time::Duration;

use crate::support::adapters::until;
use crate::support::pools::{Bench, Buffering, Case, LOW, Raw, Threads, corba};
use crate::support::{orb_with, with_longer_times};

const LANED: Case = Case {
    strategy: ThreadPerConnection,
    lanes: 3,
    buffering: Buffering::Off,
    borrowing: false,
    threads: Threads::Static,
    model: PriorityModel::ClientPropagated,
};
const TWO_WAY: ResponseFlags = ResponseFlags::SyncWithTarget;
const REFUSED: SystemException = SystemException::no(SystemExceptionKind::NoImplement, 0);

/// Sends a request that is answered at once.
fn pass(peer: &mut Raw, number: u32) {
    peer.send(&peer.request(Version::V1_2, TWO_WAY, b"pass", number, 0));
    assert_eq!(peer.reply(), (Version::V1_2, number, None));
}

/// Sends a request to a server that may have ended the connection. Returns whether it was answered.
fn passes(peer: &mut Raw, number: u32) -> bool {
    peer.try_send(&peer.request(Version::V1_2, TWO_WAY, b"pass", number, 0));
    let answer = peer.receive();
    answer.is_some_and(|(header, _)| header.kind == MessageType::Reply)
}

/// Asserts that the server sends CloseConnection, and then closes the connection.
fn is_told(mut peer: Raw) {
    let (header, _) = peer.receive().expect("a goodbye");
    assert_eq!(header.kind, MessageType::CloseConnection);
    assert!(peer.receive().is_none(), "and then the end");
}

#[test]
fn a_thread_comes_and_goes_with_its_connection() {
    for lanes in [0, 1, 3] {
        let bench = Bench::new(Case { lanes, ..LANED });
        let acceptors = lanes.max(1);
        bench.await_threads(acceptors);
        // Even without a request.
        let mut peers: Vec<_> = (0..3).map(|_| bench.raw(0)).collect();
        bench.await_threads(acceptors + 3);
        peers.iter_mut().for_each(|peer| pass(peer, 1));
        bench.await_home();
        drop(peers.pop());
        bench.await_threads(acceptors + 2);
        drop(peers);
        bench.await_threads(acceptors);
    }
}

#[test]
fn each_connection_is_served_by_its_own_thread_in_order_and_none_waits_for_another() {
    let mut bench = Bench::new(LANED);
    let mut busy = bench.raw(0);
    let number = |n| busy.request(Version::V1_2, TWO_WAY, b"hold", n, 10);
    let pipelined = [number(1), number(2), number(3)].concat();
    busy.send(&pipelined);
    let first = bench.floor.begun(1);
    let mut others: Vec<_> = (10..30).map(|number| bench.hold_now(0, number)).collect();
    for class in 0..3 {
        assert_eq!(bench.look(class), Ok(bench.own_sight(class)));
    }
    assert!(!bench.floor.has_begun(2), "its thread is busy");
    for number in 1..4 {
        let sight = bench.floor.begun(number);
        assert_eq!((sight.tid, sight.lane), (first.tid, first.lane));
        bench.floor.release(number);
        assert_eq!(busy.reply(), (Version::V1_2, number, None));
    }
    bench.floor.open();
    for asked in others.drain(..) {
        assert_eq!(bench.answer(asked), Ok(()));
    }
}

#[test]
fn one_connection_too_many_takes_the_room_of_the_longest_idle_one() {
    let bench = Bench::with(LANED, |config| config.max_connections = 2);
    let mut peers = [bench.raw(0), bench.raw(0)];
    peers.iter_mut().for_each(|peer| pass(peer, 1));
    let mut third = bench.raw(0);
    pass(&mut third, 2);
    let [first, mut second] = peers;
    is_told(first);
    bench.await_threads(3 + 2);
    let mut other_lane = bench.raw(1);
    pass(&mut other_lane, 2);
    pass(&mut second, 3);
    pass(&mut third, 3);
}

#[test]
fn it_ends_in_order() {
    for destroy in [false, true] {
        let mut bench = Bench::new(LANED);
        let mut busy = bench.raw(2);
        busy.hold(Version::V1_2, 1, 10);
        bench.floor.begun(1);
        let mut idle: Vec<_> = (0..3).map(|class| bench.raw(class)).collect();
        idle.iter_mut().for_each(|peer| pass(peer, 2));
        let server = bench.server.clone();
        if destroy {
            bench.floor.open();
            assert_eq!(busy.reply(), (Version::V1_2, 1, None));
            for poa in std::mem::take(&mut bench.poas) {
                poa.destroy(true, true).expect("no servant calls it");
            }
            assert_eq!(server.rt().destroy_threadpool(bench.pool), Ok(()));
        } else {
            let ending = std::thread::spawn(move || server.shutdown(true));
            until("the end never began", || bench.server.root_poa().is_err());
            bench.floor.open();
            // A request in progress is answered first.
            assert_eq!(busy.reply(), (Version::V1_2, 1, None));
            assert_eq!(ending.join().expect("it does not panic"), Ok(()));
        }
        is_told(busy);
        idle.into_iter().for_each(is_told);
        bench.await_threads(0);
    }
}

#[test]
fn idle_connections_are_closed_in_order() {
    // On a busy machine the first request may come too late.
    with_longer_times(Duration::from_millis(50), |time_out| {
        let bench = Bench::with(LANED, |config| {
            config.server_idle_timeout = Some(time_out);
        });
        let mut peer = bench.raw(0);
        if !passes(&mut peer, 1) {
            return None;
        }
        is_told(peer);
        bench.await_threads(3);
        Some(())
    });
}

#[test]
fn a_message_whose_rest_never_comes_ends_its_connection_alone() {
    // On a busy machine the first request of a connection may come too late.
    with_longer_times(Duration::from_millis(50), |time_out| {
        let bench = Bench::with(LANED, |config| config.input_timeout = time_out);
        let mut other = bench.raw(0);
        if !passes(&mut other, 1) {
            return None;
        }
        let mut peer = bench.raw(0);
        peer.try_send(b"GIOP\x01\x02\x01");
        match peer.receive() {
            Some((header, _)) if header.kind == MessageType::CloseConnection => return None,
            end => assert!(end.is_none()),
        }
        bench.await_threads(3 + 1);
        pass(&mut other, 2);
        Some(())
    });
}

#[test]
fn a_message_whose_fragments_come_by_and_by_for_ever_ends_its_connection() {
    let input_timeout = Duration::from_millis(100);
    let bench = Bench::with(LANED, |config| config.input_timeout = input_timeout);
    let mut peer = bench.raw(0);
    let mut first = peer.request(Version::V1_2, TWO_WAY, b"pass", 7, 8);
    first[6] |= 2;
    peer.send(&first);
    let fragment = [*b"GIOP\x01\x02\x03\x07", 12_u64.to_le_bytes()].concat();
    let fragment = [&fragment[..12], &7_u32.to_le_bytes(), &[0; 8]].concat();
    until("it is given up", || {
        chronorb_rt::sleep_until(Monotonic::now() + input_timeout / 5);
        !peer.try_send(&fragment)
    });
    bench.await_threads(3);
}

#[test]
fn a_connection_that_was_slow_once_stays_however_long_it_is_idle() {
    // On a busy machine the rest may come too late.
    with_longer_times(Duration::from_millis(200), |time_out| {
        let bench = Bench::with(LANED, |config| config.input_timeout = time_out);
        let deadline = Deadline::after(time_out);
        let mut peer = bench.raw(0);
        let message = peer.request(Version::V1_2, TWO_WAY, b"pass", 1, 0);
        let (begin, rest) = message.split_at(message.len() / 2 + 1);
        peer.try_send(begin);
        // The thread has read it and waits for the rest, but only for a limited time.
        bench.await_threads(3 + 1);
        bench.await_all_rest();
        if !peer.try_send(rest) || deadline.has_passed() {
            return None;
        }
        assert_eq!(peer.reply(), (Version::V1_2, 1, None));
        // When the time of a connection is over that begins later, so is that of this one.
        let mut late = bench.raw(0);
        late.try_send(b"GIOP\x01\x02\x01");
        late.receive();
        pass(&mut peer, 2);
        Some(())
    });
}

#[test]
fn what_is_no_giop_ends_its_connection_alone() {
    let bench = Bench::new(LANED);
    let mut other = bench.raw(0);
    pass(&mut other, 1);
    bench.barrier(0);
    bench.await_threads(3 + 1);
    pass(&mut other, 2);
}

#[test]
fn pools_that_buffer_or_borrow_are_refused() {
    let server = orb_with(|config| config.threadpool_strategy = ThreadPerConnection);
    let buffers = Threadpool {
        request_buffering: Some(RequestBuffering::default()),
        ..Threadpool::new(corba(LOW), 1)
    };
    assert_eq!(server.rt().create_threadpool(&buffers), Err(REFUSED));
    let borrows = ThreadpoolLanes {
        lanes: vec![Lane::new(corba(LOW), 1)],
        allow_borrowing: true,
        ..ThreadpoolLanes::default()
    };
    let refused = server.rt().create_threadpool_with_lanes(&borrows);
    assert_eq!(refused, Err(REFUSED));
    server.shutdown(true).expect("no servant calls it");
}
