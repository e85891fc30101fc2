//! Connections whose requests are served in the order of arrival, by every strategy, with and
//! without lanes, borrowing and buffers.

use chronorb_giop::{ResponseFlags, Version};
use chronorb_orb::ThreadpoolStrategy::{self, LeaderFollowers, Reactive, ThreadPerConnection};
use chronorb_orb::poa::{Policy, PriorityModel, ThreadModel};

use crate::support::pools::{
    Bench, Buffering, Case, LANED, Raw, STRATEGIES, Threads, cases, no_room,
};

/// All strategies and pools.
fn all_cases() -> Vec<Case> {
    let mut all = Vec::new();
    for strategy in STRATEGIES {
        for lanes in [0, 3] {
            all.extend(cases(*strategy, lanes));
        }
    }
    for strategy in [Reactive, ThreadPerConnection] {
        for lanes in [0, 3] {
            all.push(Case {
                strategy,
                ..plain(lanes)
            });
        }
    }
    all
}

fn plain(lanes: usize) -> Case {
    Case {
        strategy: LeaderFollowers,
        lanes,
        buffering: Buffering::Off,
        borrowing: false,
        threads: Threads::Static,
        model: PriorityModel::ClientPropagated,
    }
}

fn ordered(case: Case) -> Bench {
    Bench::with(case, |config| config.ordered_connections = true)
}

fn oneway(raw: &Raw, number: u32) -> Vec<u8> {
    raw.request(Version::V1_2, ResponseFlags::None, b"hold", number, 8)
}

fn pass(raw: &Raw, number: u32) -> Vec<u8> {
    let response = ResponseFlags::SyncWithTarget;
    raw.request(Version::V1_2, response, b"pass", number, 8)
}

/// The numbers of requests that the held servant has begun, in order.
fn begun(bench: &Bench) -> Vec<u32> {
    let count = bench.floor.count_begun();
    (0..count)
        .map(|n| bench.floor.nth_begun(n).number)
        .collect()
}

#[test]
fn requests_of_a_connection_are_served_in_the_order_of_arrival() {
    for case in all_cases() {
        println!("{case:?}");
        let bench = ordered(case);
        bench.floor.open();
        let mut raw = bench.raw(0);
        let mut octets: Vec<u8> = (0..BURST).flat_map(|n| oneway(&raw, n)).collect();
        octets.extend(pass(&raw, BURST));
        raw.send(&octets);
        assert_eq!(raw.reply(), (Version::V1_2, BURST, None));
        assert_eq!(begun(&bench), (0..BURST).collect::<Vec<_>>());
        assert_eq!(bench.floor.most(), 1);
    }
}

#[test]
fn other_connections_go_on_while_a_request_has_the_turn() {
    let strategies = LANED.iter().chain(&[ThreadPerConnection]);
    for strategy in strategies {
        println!("{strategy:?}");
        let bench = ordered(Case {
            strategy: *strategy,
            ..plain(0)
        });
        let mut raw = bench.raw(0);
        raw.send(&oneway(&raw, 1));
        bench.floor.begun(1);
        let more = [oneway(&raw, 2), pass(&raw, 3)].concat();
        raw.send(&more);
        let mut other = bench.raw(0);
        for number in 10..20 {
            let request = pass(&other, number);
            other.send(&request);
            assert_eq!(other.reply(), (Version::V1_2, number, None));
        }
        assert_eq!(begun(&bench), [1], "the second waits for the first");
        bench.floor.release(1);
        bench.floor.begun(2);
        bench.floor.release(2);
        assert_eq!(raw.reply(), (Version::V1_2, 3, None));
    }
}

#[test]
fn without_the_setting_a_free_thread_serves_the_next_request() {
    let bench = Bench::new(plain(0));
    let mut raw = bench.raw(0);
    let both = [oneway(&raw, 1), oneway(&raw, 2)].concat();
    raw.send(&both);
    bench.floor.await_running(2);
    bench.floor.open();
}

/// A request that waits in a buffer keeps its turn; one that is refused gives it up.
#[test]
fn a_buffered_or_refused_request_has_the_turn() {
    for strategy in LANED {
        println!("{strategy:?}");
        let mut bench = ordered(Case {
            strategy: *strategy,
            buffering: Buffering::Requests,
            ..plain(0)
        });
        if bench.case.has_queues() {
            continue;
        }
        let held = [1, 2].map(|number| bench.hold_now(0, number));
        let mut raw = bench.raw(0);
        let both = [oneway(&raw, 3), pass(&raw, 4)].concat();
        raw.send(&both);
        bench.barrier(0);
        let last = bench.hold_buffered(0, 5);
        // The buffer is full; the request of the first connection that is unread takes no place.
        let mut refused = bench.raw(0);
        let two = [6, 7].map(|number| {
            let response = ResponseFlags::SyncWithTarget;
            refused.request(Version::V1_2, response, b"hold", number, 8)
        });
        refused.send(&two.concat());
        for number in [6, 7] {
            assert_eq!(refused.reply(), (Version::V1_2, number, Some(no_room())));
        }
        bench.floor.open();
        assert_eq!(raw.reply(), (Version::V1_2, 4, None));
        for sent in held.into_iter().chain([last]) {
            assert_eq!(bench.answer(sent), Ok(()));
        }
        let begun = begun(&bench);
        assert!(begun.contains(&3) && begun.contains(&5), "{begun:?}");
    }
}

/// The first request is for the main thread, the second for any thread.
#[test]
fn a_request_of_the_main_thread_has_the_turn() {
    for strategy in STRATEGIES.iter().chain(&[Reactive, ThreadPerConnection]) {
        println!("{strategy:?}");
        check_main_thread(*strategy);
    }
}

fn check_main_thread(strategy: ThreadpoolStrategy) {
    let bench = ordered(Case {
        strategy,
        ..plain(0)
    });
    let root = bench.server.root_poa().expect("it is open");
    let policies = [
        Policy::Threadpool(bench.pool),
        Policy::Thread(ThreadModel::MainThread),
    ];
    let poa = root.create_poa("main", Some(root.manager()), &policies);
    let main = bench.serve(&poa.expect("the policies agree"));
    let mut raw = bench.raw(0);
    let to_main = Raw::to(&main);
    let requests = [oneway(&to_main, 1), oneway(&raw, 2), pass(&raw, 3)];
    raw.send(&requests.concat());
    let server = bench.server.clone();
    std::thread::scope(|scope| {
        let main_thread = scope.spawn(move || server.run());
        bench.floor.begun(1);
        // A request of another connection shows that the lane has a thread to spare.
        let mut other = bench.raw(0);
        let request = pass(&other, 9);
        other.send(&request);
        assert_eq!(other.reply(), (Version::V1_2, 9, None));
        assert_eq!(begun(&bench), [1]);
        bench.floor.open();
        assert_eq!(raw.reply(), (Version::V1_2, 3, None));
        assert_eq!(begun(&bench), [1, 2]);
        bench.server.shutdown(true).expect("no servant calls it");
        main_thread.join().expect("no panic");
    });
}

#[test]
fn a_request_at_a_holding_manager_has_the_turn() {
    for strategy in STRATEGIES.iter().chain(&[Reactive, ThreadPerConnection]) {
        println!("{strategy:?}");
        let bench = ordered(Case {
            strategy: *strategy,
            ..plain(0)
        });
        bench.floor.open();
        let root = bench.server.root_poa().expect("it is open");
        let policies = [Policy::Threadpool(bench.pool)];
        let poa = root.create_poa("holding", None, &policies);
        let poa = poa.expect("the policies agree");
        let held = Raw::to(&bench.serve(&poa));
        let mut raw = bench.raw(0);
        let requests = [oneway(&held, 1), oneway(&raw, 2), pass(&raw, 3)];
        raw.send(&requests.concat());
        let mut other = bench.raw(0);
        let request = pass(&other, 9);
        other.send(&request);
        assert_eq!(other.reply(), (Version::V1_2, 9, None));
        assert_eq!(
            bench.floor.count_begun(),
            0,
            "the first waits at its manager"
        );
        poa.manager().activate().expect("it was not deactivated");
        assert_eq!(raw.reply(), (Version::V1_2, 3, None));
        assert_eq!(begun(&bench), [1, 2]);
    }
}

const BURST: u32 = 60;
