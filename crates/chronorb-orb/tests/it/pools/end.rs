//! The end of thread pools, with the ORB and before it, under full load: all threads end, no caller
//! waits forever, and requests that were not started are refused.

use chronorb_giop::MessageType;
use chronorb_orb::poa::{Policy, PriorityModel};
use chronorb_orb::rtcorba::{DestroyThreadpoolError, Threadpool, ThreadpoolId};
use chronorb_orb::{Orb, SystemException, SystemExceptionKind as Kind, ThreadpoolStrategy, minor};
use std::sync::Arc;

use crate::support::adapters::{ask, omg, teller, told, until};
use crate::support::orb;
use crate::support::pools::{
    ActiveCall, Bench, Buffering, Case, LANED, LOW, Raw, STRATEGIES, Threads, cases, corba,
};

/// Checks all rows of the table with one priority model and one bound; others end alike.
fn each(check: impl Fn(Case)) {
    for strategy in STRATEGIES.iter().copied() {
        for lanes in [0, 1, 3] {
            for case in cases(strategy, lanes) {
                if case.model == PriorityModel::ClientPropagated
                    && case.buffering != Buffering::Octets
                {
                    println!("{case:?}");
                    check(case);
                }
            }
        }
    }
}

/// Returns the combinations of lanes and borrowing that pools of the strategy may have.
fn shapes(strategy: ThreadpoolStrategy) -> Vec<(usize, bool)> {
    let has_lanes = LANED.contains(&strategy);
    let shapes = [(0, false), (1, false), (3, false), (3, true)];
    let possible = shapes
        .into_iter()
        .filter(|(lanes, _)| has_lanes || *lanes == 0);
    possible.collect()
}

fn one_lane(strategy: ThreadpoolStrategy) -> Case {
    Case {
        strategy,
        lanes: 1,
        buffering: Buffering::Requests,
        borrowing: false,
        threads: Threads::Static,
        model: PriorityModel::ClientPropagated,
    }
}

/// A pool at its limit: all threads are busy, those of higher lanes on loan if they may borrow, and
/// clients wait.
struct AtItsLimit {
    bench: Bench,
    running: Vec<ActiveCall>,
    waiting: Vec<ActiveCall>,
}

fn at_its_limit(case: Case) -> AtItsLimit {
    let mut bench = Bench::new(case);
    let lanes = case.lanes.max(1);
    let numbers = &mut (1..);
    let mut running = Vec::new();
    let (_, dynamic) = case.threads.counts();
    // The highest lane borrows all idle threads there are; those that are made on demand serve
    // their own lane.
    let mut left = vec![2; lanes];
    if case.borrowing {
        left[..lanes - 1].fill(dynamic);
    }
    let highest = 2 * lanes - left[..lanes - 1].iter().sum::<u32>() as usize;
    left[lanes - 1] = highest as u32;
    for class in (0..lanes).rev() {
        for number in numbers.take(left[class] as usize) {
            running.push(bench.call(class, number));
            bench.floor.begun(number);
        }
    }
    assert_eq!(bench.floor.running(), 2 * lanes);
    let mut waiting = Vec::new();
    for class in (0..lanes).rev() {
        for number in numbers.take(2) {
            waiting.push(bench.call(class, number));
        }
    }
    AtItsLimit {
        bench,
        running,
        waiting,
    }
}

impl AtItsLimit {
    /// Releases the servants once the end has begun. Their requests are answered; waiting ones are
    /// served, refused, or ended with their connection.
    fn ends(&mut self) {
        self.bench.floor.open();
        for calling in std::mem::take(&mut self.running) {
            assert_eq!(self.bench.callers.answer(calling), Ok(()));
        }
        for calling in std::mem::take(&mut self.waiting) {
            let answer = self.bench.callers.answer(calling);
            if let Err(refused) = answer {
                let kind = refused.kind;
                let told = [Kind::Transient, Kind::CommFailure, Kind::ObjectNotExist];
                assert!(told.contains(&kind), "{refused:?}");
            }
        }
    }
}

/// Waits until the threads of all pools were notified that the ORB ends.
fn await_shutdown(server: &Orb, pool: ThreadpoolId) {
    let shut_down = Err(omg(Kind::BadInvOrder, 4).into());
    until("the end never began", || {
        server.rt().destroy_threadpool(pool) == shut_down
    });
}

#[test]
fn an_orb_ends_while_its_pools_are_at_their_limit() {
    each(|case| {
        let mut load = at_its_limit(case);
        let server = load.bench.server.clone();
        let ending = std::thread::spawn(move || server.shutdown(true));
        await_shutdown(&load.bench.server, load.bench.pool);
        load.ends();
        let ended = ending.join().expect("it does not panic");
        assert_eq!(ended, Ok(()));
        assert!(load.bench.server.is_shut_down());
        load.bench.await_threads(0);
    });
}

#[test]
fn a_pool_ends_while_it_is_at_its_limit() {
    each(|case| {
        let mut load = at_its_limit(case);
        let destroy =
            |load: &AtItsLimit| load.bench.server.rt().destroy_threadpool(load.bench.pool);
        for poa in &load.bench.poas {
            poa.destroy(true, false).expect("it does not wait");
        }
        // A POA that still serves requests is not destroyed yet.
        assert_eq!(destroy(&load), Err(in_use().into()));
        load.ends();
        until("it was never out of use", || match destroy(&load) {
            Err(refused) if refused == in_use().into() => false,
            destroyed => {
                assert_eq!(destroyed, Ok(()));
                true
            }
        });
        load.bench.await_threads(0);
        // The ORB continues, and may have another pool.
        assert_eq!(serves(&load.bench.server), told("another"));
    });
}

fn in_use() -> SystemException {
    SystemException::no(Kind::BadInvOrder, minor::THREADPOOL_IN_USE)
}

/// Returns whether a new pool of the ORB serves.
fn serves(server: &Orb) -> Result<String, SystemException> {
    let pool = Threadpool::new(corba(LOW), 1);
    let pool = server.rt().create_threadpool(&pool).expect("it opens");
    let root = server.root_poa().expect("it is there");
    let poa = root
        .create_poa("another", Some(root.manager()), &[Policy::Threadpool(pool)])
        .expect("they agree");
    let object = poa
        .serve(teller(|_| told("another")))
        .expect("it activates");
    let client = orb();
    let text = server.object_to_string(&object);
    let answer = ask(&client.string_to_object(&text).expect("it reads"));
    client.shutdown(true).expect("nothing is called");
    answer
}

#[test]
fn what_is_buffered_is_told_by_the_close_of_its_connection() {
    for strategy in STRATEGIES.iter().copied() {
        for (lanes, borrowing) in shapes(strategy) {
            let case = Case {
                lanes,
                borrowing,
                ..one_lane(strategy)
            };
            let lanes = lanes.max(1);
            let mut bench = Bench::new(case);
            let mut running = Vec::new();
            let mut waiting = Vec::new();
            for number in 0..2 * lanes {
                running.push(bench.hold_now(number / 2, number as u32));
            }
            for number in 2 * lanes..4 * lanes {
                waiting.push(bench.hold_buffered(number / 2 - lanes, number as u32));
            }
            let server = bench.server.clone();
            let ending = std::thread::spawn(move || server.shutdown(true));
            await_shutdown(&bench.server, bench.pool);
            bench.floor.open();
            for asked in running {
                assert_eq!(bench.answer(asked), Ok(()));
            }
            for asked in &mut waiting {
                let (header, _) = asked.raw.receive().expect("a goodbye");
                // By it, the server promises that it has not started the requests that it has not
                // answered.
                assert_eq!(header.kind, MessageType::CloseConnection);
                assert!(asked.raw.receive().is_none(), "and then the end");
            }
            assert_eq!(ending.join().expect("it does not panic"), Ok(()));
            assert_eq!(bench.floor.count_begun(), 2 * lanes);
        }
    }
}

#[test]
fn a_pool_is_destroyed_after_the_poas_that_it_serves() {
    for strategy in LANED.iter().copied() {
        let bench = Bench::new(one_lane(strategy));
        let destroy = || bench.server.rt().destroy_threadpool(bench.pool);
        for poa in &bench.poas {
            assert_eq!(destroy(), Err(in_use().into()));
            poa.destroy(true, true)
                .expect("it is not called by a servant");
        }
        assert_eq!(destroy(), Ok(()));
        assert_eq!(destroy(), Err(DestroyThreadpoolError::InvalidThreadpool));
        bench.await_threads(0);
    }
}

#[test]
fn a_pool_in_use_goes_on_when_it_was_to_be_destroyed() {
    for strategy in LANED.iter().copied() {
        let mut bench = Bench::new(one_lane(strategy));
        let busy = bench.hold_now(0, 1);
        let refused = bench.server.rt().destroy_threadpool(bench.pool);
        assert_eq!(refused, Err(in_use().into()));
        assert_eq!(bench.look(0), Ok(bench.own_sight(0)));
        bench.floor.release(1);
        assert_eq!(bench.answer(busy), Ok(()));
    }
}

#[test]
fn a_pool_of_another_orb_or_of_none_is_invalid() {
    let (one, other) = (orb(), orb());
    let make = |orb: &Orb| {
        let pool = Threadpool::new(corba(LOW), 1);
        orb.rt().create_threadpool(&pool).expect("it opens")
    };
    let (_, first) = (make(&one), make(&other));
    let second = make(&other);
    let invalid = Err(DestroyThreadpoolError::InvalidThreadpool);
    assert_eq!(one.rt().destroy_threadpool(second), invalid);
    assert_eq!(other.rt().destroy_threadpool(second), Ok(()));
    assert_eq!(other.rt().destroy_threadpool(second), invalid);
    assert_ne!(make(&other), second, "numbers are not used again");
    assert_eq!(other.rt().destroy_threadpool(first), Ok(()));
    for orb in [one, other] {
        orb.shutdown(true).expect("it is not called by a servant");
    }
}

#[test]
fn a_thread_of_the_pool_cannot_destroy_it() {
    for strategy in LANED.iter().copied() {
        for borrowing in [false, true] {
            let mut bench = Bench::new(Case {
                lanes: 3,
                borrowing,
                ..one_lane(strategy)
            });
            let (pool, high) = (bench.pool, 2);
            let poa = bench.poas.last().expect("it is the clients'");
            let result: Arc<chronorb_rt::PiMutex<Vec<_>>> = Arc::default();
            let results = result.clone();
            let destroyer = poa.serve(teller(move |call| {
                let destroyed = call.orb().rt().destroy_threadpool(pool);
                results.lock().push(destroyed);
                told("tried")
            }));
            let text = bench
                .server
                .object_to_string(&destroyer.expect("it activates"));
            let object = bench.client.string_to_object(&text).expect("it reads");
            let mut busy = Vec::new();
            if borrowing {
                // The next is served by a borrowed thread, which is one of the pool just the same.
                busy = vec![bench.hold_now(high, 1), bench.hold_now(high, 2)];
            }
            let priority = bench.priority_of_client(high);
            let calling = bench.callers.run(priority, 3, move || {
                assert_eq!(ask(&object), told("tried"));
                Ok(())
            });
            assert_eq!(bench.callers.answer(calling), Ok(()));
            let would_deadlock = omg(Kind::BadInvOrder, 3);
            assert_eq!(*result.lock(), [Err(would_deadlock.into())]);
            bench.floor.open();
            for asked in busy {
                assert_eq!(bench.answer(asked), Ok(()));
            }
        }
    }
}

#[test]
fn nothing_of_an_orb_that_ended_can_be_destroyed() {
    let bench = Bench::new(one_lane(ThreadpoolStrategy::LeaderFollowers));
    bench
        .server
        .shutdown(true)
        .expect("it is not called by a servant");
    let destroyed = bench.server.rt().destroy_threadpool(bench.pool);
    assert_eq!(destroyed, Err(omg(Kind::BadInvOrder, 4).into()));
}

#[test]
fn a_pool_ends_with_clients_that_do_nothing() {
    for strategy in LANED.iter().copied() {
        for buffering in [Buffering::Off, Buffering::Requests] {
            let bench = Bench::new(Case {
                buffering,
                ..one_lane(strategy)
            });
            let mut idle: Vec<Raw> = (0..5).map(|_| bench.raw(0)).collect();
            let mut half = bench.raw(0);
            half.send(b"GIOP\x01\x02\x01");
            for poa in &bench.poas {
                poa.destroy(true, true)
                    .expect("it is not called by a servant");
            }
            assert_eq!(bench.server.rt().destroy_threadpool(bench.pool), Ok(()));
            for peer in &mut idle {
                // Accepted requests are answered by CloseConnection.
                if let Some((header, _)) = peer.receive() {
                    assert_eq!(header.kind, MessageType::CloseConnection);
                }
            }
        }
    }
}

#[test]
fn a_borrowed_thread_is_waited_for_at_the_end() {
    for strategy in LANED.iter().copied() {
        for buffering in [Buffering::Off, Buffering::Requests] {
            let mut bench = Bench::new(Case {
                lanes: 3,
                borrowing: true,
                buffering,
                ..one_lane(strategy)
            });
            let high = 2;
            let asked: Vec<_> = (1..7).map(|number| bench.hold_now(high, number)).collect();
            let lanes: Vec<_> = (1..7).map(|number| bench.floor.begun(number)).collect();
            let of_others = lanes.iter().filter(|sight| sight.lane != lanes[0].lane);
            assert_eq!(of_others.count(), 4);
            let server = bench.server.clone();
            let ending = std::thread::spawn(move || server.shutdown(true));
            await_shutdown(&bench.server, bench.pool);
            for asked in asked {
                bench.floor.release(asked.number);
                assert_eq!(bench.answer(asked), Ok(()));
            }
            assert_eq!(ending.join().expect("it does not panic"), Ok(()));
        }
    }
}
