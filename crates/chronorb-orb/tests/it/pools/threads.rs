//! Threads of pools: static ones are permanent; dynamic ones start on demand and end after they
//! have been idle.

use chronorb_orb::ThreadpoolStrategy;
use chronorb_orb::poa::PriorityModel;
use chronorb_orb::rtcorba::{Lane, ThreadpoolLanes};
use std::time::Duration;

use crate::support::orb_with;
use crate::support::pools::{
    Bench, Buffering, Case, LANED, LOW, MID, STRATEGIES, SentRequest, Threads, await_rest, corba,
};

/// Checks each strategy, with and without the options that change the reading thread.
fn each(check: impl Fn(Case)) {
    for strategy in STRATEGIES.iter().copied() {
        for (lanes, borrowing) in [(0, false), (1, false), (3, false), (3, true)] {
            if lanes > 0 && !LANED.contains(&strategy) {
                continue;
            }
            for buffering in [Buffering::Off, Buffering::Requests] {
                let case = case(strategy, lanes, borrowing, buffering);
                println!("{case:?}");
                check(case);
            }
        }
    }
}

fn case(strategy: ThreadpoolStrategy, lanes: usize, borrowing: bool, buffering: Buffering) -> Case {
    Case {
        strategy,
        lanes,
        buffering,
        borrowing,
        threads: Threads::Mixed,
        model: PriorityModel::ClientPropagated,
    }
}

/// Holds two requests in each lane at a time: one more than it has static threads.
fn occupy(bench: &mut Bench, numbers: std::ops::RangeFrom<u32>) -> Vec<SentRequest> {
    let lanes = bench.case.lanes.max(1);
    // The most urgent lane last, which then cannot borrow.
    let classes = (0..lanes).flat_map(|class| [class; 2]);
    let numbered = classes.zip(numbers);
    numbered
        .map(|(class, number)| bench.hold_now(class, number))
        .collect()
}

fn finish(bench: &mut Bench, asked: Vec<SentRequest>) {
    for asked in asked {
        bench.floor.release(asked.number);
        assert_eq!(bench.answer(asked), Ok(()));
    }
}

#[test]
fn dynamic_threads_leave_when_they_have_been_idle_and_come_again() {
    each(|case| {
        for threads in [Threads::Mixed, Threads::Dynamic] {
            let mut bench = Bench::with(Case { threads, ..case }, |config| {
                config.dynamic_thread_idle_timeout = Duration::from_millis(10);
            });
            let at_first = bench.threads().len();
            let (_, dynamic) = threads.counts();
            let grown = at_first + case.lanes.max(1) * dynamic as usize;
            for round in 0..3 {
                let asked = occupy(&mut bench, 10 * round..);
                bench.await_threads(grown);
                finish(&mut bench, asked);
                bench.await_threads(at_first);
            }
            assert_eq!(bench.look(0), Ok(bench.own_sight(0)), "it goes on");
        }
    });
}

#[test]
fn a_thread_is_made_only_when_all_others_are_busy() {
    each(|case| {
        let mut bench = Bench::new(case);
        let at_first = bench.threads().len();
        for number in 0..10 {
            let asked = bench.hold_now(0, number);
            let tid = bench.floor.begun(number).tid;
            finish(&mut bench, vec![asked]);
            await_rest(tid);
        }
        bench.await_threads(at_first + usize::from(case.grows_ahead()));
    });
}

#[test]
fn a_thread_that_was_made_serves_again_while_it_is_there() {
    each(|case| {
        let mut bench = Bench::new(case);
        let at_first = bench.threads().len();
        for round in 0..3 {
            let asked = occupy(&mut bench, 10 * round..);
            bench.await_threads(at_first + case.lanes.max(1));
            finish(&mut bench, asked);
            bench.await_all_rest();
        }
    });
}

#[test]
fn a_thread_is_made_for_requests_and_for_nothing_else() {
    each(|case| {
        let mut bench = Bench::new(case);
        let at_first = bench.threads().len();
        let asked = vec![bench.hold_now(0, 1)];
        let needed = at_first + usize::from(case.grows_ahead());
        bench.await_threads(needed);
        for _ in 0..10 {
            // Clients that disconnect, and one that sends garbage, which is answered.
            drop(bench.raw(0));
            bench.barrier(0);
        }
        assert_eq!(bench.threads().len(), needed);
        finish(&mut bench, asked);
    });
}

#[test]
fn static_threads_stay_however_long_they_are_idle() {
    for strategy in LANED.iter().copied() {
        for threads in [Threads::Static, Threads::Mixed] {
            let case = Case {
                threads,
                ..case(strategy, 3, false, Buffering::Requests)
            };
            let mut bench = Bench::with(case, |config| {
                config.dynamic_thread_idle_timeout = Duration::from_millis(1);
            });
            let ids =
                |bench: &Bench| -> Vec<u32> { bench.threads().iter().map(|t| t.tid).collect() };
            let at_first = ids(&bench);
            for round in 0..3 {
                let asked = occupy(&mut bench, 10 * round..);
                finish(&mut bench, asked);
                bench.await_threads(at_first.len());
            }
            if threads == Threads::Static {
                assert_eq!(ids(&bench), at_first, "they are the same ones");
            }
        }
    }
}

#[test]
fn a_lane_may_have_no_static_thread_beside_others_that_have() {
    for strategy in LANED.iter().copied() {
        let server = orb_with(|config| config.threadpool_strategy = strategy);
        let dynamic = Lane {
            priority: corba(LOW),
            static_threads: 0,
            dynamic_threads: 1,
            order: None,
        };
        let pool = ThreadpoolLanes {
            lanes: vec![dynamic, Lane::new(corba(MID), 1)],
            ..ThreadpoolLanes::default()
        };
        let pool = server.rt().create_threadpool_with_lanes(&pool);
        let pool = pool.expect("it opens");
        assert_eq!(server.rt().destroy_threadpool(pool), Ok(()));
        server
            .shutdown(true)
            .expect("it is not called by a servant");
    }
}
