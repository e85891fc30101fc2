//! Reactive pools: the one thread of each lane accepts, reads and serves.

use chronorb_orb::ThreadpoolStrategy::Reactive;
use chronorb_orb::poa::PriorityModel;
use chronorb_orb::rtcorba::{Lane, RequestBuffering, Threadpool, ThreadpoolLanes};
use chronorb_orb::{SystemException, SystemExceptionKind};

use crate::support::orb_with;
use crate::support::pools::{Bench, Buffering, Case, LOW, Threads, corba};

const LANED: Case = Case {
    strategy: Reactive,
    lanes: 3,
    buffering: Buffering::Off,
    borrowing: false,
    threads: Threads::Mixed,
    model: PriorityModel::ClientPropagated,
};
const REFUSED: SystemException = SystemException::no(SystemExceptionKind::NoImplement, 0);

#[test]
fn each_lane_has_one_thread_however_many_were_asked_for() {
    for lanes in [0, 1, 3] {
        for threads in [Threads::Static, Threads::Mixed, Threads::Dynamic] {
            let bench = Bench::new(Case {
                lanes,
                threads,
                ..LANED
            });
            assert_eq!(bench.threads().len(), lanes.max(1), "{threads:?}");
        }
    }
}

#[test]
fn a_lane_serves_one_request_at_a_time_and_other_lanes_go_on() {
    let mut bench = Bench::new(LANED);
    let mut asked = vec![bench.hold_now(0, 1)];
    let first = bench.floor.begun(1).tid;
    for number in 2..5 {
        asked.push(bench.hold(0, number));
    }
    for class in [1, 2] {
        assert_eq!(bench.look(class), Ok(bench.own_sight(class)));
    }
    assert_eq!(bench.floor.count_begun(), 1, "the others wait unread");
    bench.floor.open();
    for asked in asked {
        let number = asked.number;
        assert_eq!(bench.answer(asked), Ok(()));
        assert_eq!(bench.floor.begun(number).tid, first);
    }
    assert_eq!(bench.floor.most(), 1);
}

#[test]
fn pools_that_buffer_or_borrow_are_refused() {
    let server = orb_with(|config| config.threadpool_strategy = Reactive);
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

#[test]
fn it_ends_with_requests_that_wait_unread() {
    let mut bench = Bench::new(LANED);
    let busy = bench.hold_now(0, 1);
    let mut waits = bench.hold(0, 2);
    let server = bench.server.clone();
    let ending = std::thread::spawn(move || server.shutdown(true));
    bench.floor.open();
    assert_eq!(bench.answer(busy), Ok(()));
    // It is served, or ended with its connection.
    let _ = waits.raw.receive();
    assert_eq!(ending.join().expect("it does not panic"), Ok(()));
    bench.await_threads(0);
}
