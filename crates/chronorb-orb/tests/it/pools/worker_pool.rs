//! Worker pools: one thread reads, and all requests wait in one queue, in the order of arrival.

use chronorb_orb::ThreadpoolStrategy::WorkerPool;
use chronorb_orb::poa::PriorityModel;
use chronorb_orb::rtcorba::{Lane, ThreadpoolLanes};
use chronorb_orb::{Activity, LaneSnapshot, SystemException, SystemExceptionKind as Kind};
use std::sync::Arc;

use crate::support::adapters::until;
use crate::support::pools::{
    Bench, Buffering, Case, HoldingServant, LOW, SentRequest, Threads, corba, look, native, no_room,
};
use crate::support::{orb, orb_with};

const CASE: Case = Case {
    strategy: WorkerPool,
    lanes: 0,
    buffering: Buffering::Off,
    borrowing: false,
    threads: Threads::Static,
    model: PriorityModel::ClientPropagated,
};
const MODELS: [PriorityModel; 2] = [
    PriorityModel::ClientPropagated,
    PriorityModel::ServerDeclared,
];

/// Returns a pool with both workers busy.
fn busy(model: PriorityModel, buffering: Buffering) -> (Bench, Vec<SentRequest>) {
    let mut bench = Bench::new(Case {
        model,
        buffering,
        ..CASE
    });
    let busy = vec![bench.hold_now(0, 0), bench.hold_now(0, 1)];
    (bench, busy)
}

#[test]
fn requests_of_all_priorities_are_served_in_the_order_of_arrival() {
    for model in MODELS {
        let (mut bench, mut asked) = busy(model, Buffering::Off);
        let classes = [0, 2, 1, 0, 2, 2, 0, 1];
        for (number, class) in (2..).zip(classes) {
            asked.push(bench.hold_buffered(class, number));
        }
        // One worker takes them all in order. The relative speed of two workers is not determined.
        let mut ends = 0;
        for (number, class) in (2..).zip(classes) {
            bench.floor.release(ends);
            let sight = bench.floor.nth_begun(number as usize);
            let priority = CASE.priorities()[class];
            let seen = (sight.number, sight.corba, sight.native);
            let expected = (number, Some(priority), native(priority));
            assert_eq!(seen, expected, "{model:?}");
            ends = number;
        }
        bench.floor.open();
        for asked in asked {
            assert_eq!(bench.answer(asked), Ok(()));
        }
        bench.await_home();
    }
}

#[test]
fn an_urgent_request_does_not_take_the_room_of_others() {
    for model in MODELS {
        for bound in [Buffering::Requests, Buffering::Octets] {
            let (mut bench, mut asked) = busy(model, bound);
            asked.push(bench.hold_buffered(0, 2));
            asked.push(bench.hold_buffered(0, 3));
            let urgent = bench.hold(2, 4);
            assert_eq!(bench.answer(urgent), Err(no_room()));
            bench.floor.open();
            for asked in asked {
                assert_eq!(bench.answer(asked), Ok(()));
            }
        }
    }
}

#[test]
fn the_queue_of_a_pool_that_asks_for_no_buffering_is_bounded_by_the_orb() {
    let mut bench = Bench::with(CASE, |config| config.max_buffered_octets = 100_000);
    let mut asked = vec![bench.hold_now(0, 0), bench.hold_now(0, 1)];
    for number in 2..4 {
        asked.push(bench.hold_with(0, number, 40_000));
        bench.barrier(0);
    }
    let beyond = bench.hold_with(2, 4, 40_000);
    assert_eq!(bench.answer(beyond), Err(no_room()));
    bench.floor.open();
    for asked in asked {
        assert_eq!(bench.answer(asked), Ok(()));
    }
    assert_eq!(bench.look(2), Ok(bench.own_sight(2)), "it goes on");
}

#[test]
fn it_has_no_lanes() {
    let server = orb_with(|config| config.threadpool_strategy = WorkerPool);
    let lanes = ThreadpoolLanes {
        lanes: vec![Lane::new(corba(LOW), 1)],
        ..ThreadpoolLanes::default()
    };
    let refused = server.rt().create_threadpool_with_lanes(&lanes);
    let expected = SystemException::no(Kind::NoImplement, 0);
    assert_eq!(refused, Err(expected));
    server.shutdown(true).expect("no servant calls it");
}

#[test]
fn the_orbs_own_pool_is_one_too() {
    let server = orb_with(|config| {
        config.threadpool_strategy = WorkerPool;
        config.threads = 3.into();
    });
    let root = server.root_poa().expect("it is open");
    let object = root
        .serve(HoldingServant(Arc::default()))
        .expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = orb();
    let text = server.object_to_string(&object);
    let object = client.string_to_object(&text).expect("it reads");
    look(&object).expect("it is served");
    // The thread that handed a request over may not have finished when the reply arrives.
    let reader = |lane: &LaneSnapshot| {
        let mut threads = lane.threads.iter();
        let reader = threads.find(|thread| thread.name.starts_with("0:0.io "));
        let reader = reader.expect("one thread reads");
        (reader.served, reader.activity)
    };
    until("it was never counted, or the reader never waits", || {
        let lane = &server.snapshot().pools[0].lanes[0];
        lane.served == 1 && reader(lane) == (0, Activity::Waiting)
    });
    let snapshot = server.snapshot();
    let [lane] = &snapshot.pools[0].lanes[..] else {
        panic!("it is shown as one lane: {snapshot:?}");
    };
    assert_eq!((lane.seats, lane.threads.len()), (3, 4));
    for orb in [client, server] {
        orb.shutdown(true).expect("no servant calls it");
    }
}
