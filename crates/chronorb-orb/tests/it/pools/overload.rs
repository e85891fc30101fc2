//! Overload of a thread pool: every client gets a reply or `TRANSIENT`, and the pool recovers
//! completely.

use chronorb_giop::{LocateStatus, ResponseFlags, Version};
use chronorb_orb::ThreadpoolStrategy::{self, HalfSyncHalfAsync, LeaderFollowers};
#[cfg(feature = "baselines")]
use chronorb_orb::ThreadpoolStrategy::{FilterChain, WorkerPool};
use chronorb_orb::poa::{Policy, PriorityModel, ThreadModel};
use chronorb_orb::{CompletionStatus, Object, SystemExceptionKind as Kind, minor};

use crate::support::adapters::{omg, until};
use crate::support::pools::{
    BALLAST, Bench, Buffering, Case, HIGH, MID, ROOM_FOR_TWO, Raw, SentRequest, Threads, cases,
    corba, look, native, no_room, note,
};

const STRATEGIES: [ThreadpoolStrategy; 2] = [LeaderFollowers, HalfSyncHalfAsync];

/// Returns one lane, or a pool without lanes, with two threads, that buffers two requests.
fn small(strategy: ThreadpoolStrategy, lanes: usize) -> Case {
    Case {
        strategy,
        lanes,
        buffering: Buffering::Requests,
        borrowing: false,
        threads: Threads::Static,
        model: PriorityModel::ClientPropagated,
    }
}

/// Three lanes that borrow.
fn borrowing(strategy: ThreadpoolStrategy) -> Case {
    Case {
        borrowing: true,
        ..small(strategy, 3)
    }
}

/// Makes both threads of [`small`] busy, and fills the buffer, if there is one, with two requests.
fn fill(bench: &mut Bench) -> Vec<SentRequest> {
    let mut asked = vec![bench.hold_now(0, 1), bench.hold_now(0, 2)];
    if bench.case.buffering != Buffering::Off {
        asked.push(bench.hold_buffered(0, 3));
        asked.push(bench.hold_buffered(0, 4));
    }
    asked
}

/// Releases all held requests, and checks that they were served.
fn finish(bench: &mut Bench, asked: Vec<SentRequest>) {
    for asked in &asked {
        bench.floor.release(asked.number);
    }
    for asked in asked {
        assert_eq!(bench.answer(asked), Ok(()));
    }
    bench.await_all_rest();
}

/// Asserts that the lane serves two requests, buffers two and refuses the fifth, as at first.
fn is_as_before(bench: &mut Bench) {
    let mut asked = vec![bench.hold_now(0, 101), bench.hold_now(0, 102)];
    asked.push(bench.hold_buffered(0, 103));
    asked.push(bench.hold_buffered(0, 104));
    let fifth = bench.hold(0, 105);
    assert_eq!(bench.answer(fifth), Err(no_room()));
    finish(bench, asked);
}

fn bursts(strategy: ThreadpoolStrategy, lanes: usize) {
    for case in cases(strategy, lanes) {
        burst(case);
    }
}

/// Runs eight clients of each class at once, for at most two threads of each lane.
fn burst(case: Case) {
    println!("{case:?}");
    let mut bench = Bench::new(case);
    let classes = case.priorities().len();
    let mut calling = Vec::new();
    for number in 0..8 * classes {
        calling.push(bench.call(number % classes, number as u32));
    }
    let threads = 2 * case.lanes.max(1);
    bench.floor.await_running(threads);
    assert_eq!(bench.floor.most(), threads);
    bench.floor.open();
    let answers: Vec<_> = calling
        .into_iter()
        .map(|calling| bench.callers.answer(calling))
        .collect();
    let refused = answers.iter().filter(|answer| answer.is_err()).count();
    for answer in &answers {
        assert!(
            matches!(answer, Ok(())) || *answer == Err(no_room()),
            "{answer:?}"
        );
    }
    if case.buffering == Buffering::Off {
        assert_eq!(refused, 0, "the transport holds them back");
    }
    assert_eq!(bench.floor.count_begun(), answers.len() - refused);
    assert!(bench.floor.most() <= threads);
    bench.await_home();
    bench.await_all_rest();
    for class in 0..classes {
        assert_eq!(bench.look(class), Ok(bench.own_sight(class)));
        bench.await_all_rest();
    }
}

#[test]
fn every_client_of_a_burst_is_answered_by_leader_followers() {
    bursts(LeaderFollowers, 0);
    bursts(LeaderFollowers, 1);
}

#[test]
fn every_client_of_a_burst_is_answered_by_half_sync_half_async() {
    bursts(HalfSyncHalfAsync, 0);
    bursts(HalfSyncHalfAsync, 1);
}

#[cfg(feature = "baselines")]
#[test]
fn every_client_of_a_burst_is_answered_by_a_worker_pool() {
    bursts(WorkerPool, 0);
}

#[cfg(feature = "baselines")]
#[test]
fn every_client_of_a_burst_is_answered_by_a_filter_chain() {
    bursts(FilterChain, 0);
    bursts(FilterChain, 1);
    bursts(FilterChain, 3);
}

#[test]
fn every_client_of_a_burst_is_answered_by_three_lanes_of_leader_followers() {
    bursts(LeaderFollowers, 3);
}

#[test]
fn every_client_of_a_burst_is_answered_by_three_lanes_of_half_sync_half_async() {
    bursts(HalfSyncHalfAsync, 3);
}

#[test]
fn without_lanes_the_most_urgent_is_served_first_and_takes_the_room_of_the_least() {
    for strategy in STRATEGIES.iter().copied() {
        for model in [
            PriorityModel::ClientPropagated,
            PriorityModel::ServerDeclared,
        ] {
            let mut bench = Bench::new(Case {
                model,
                ..small(strategy, 0)
            });
            let (low, mid, high) = (0, 1, 2);
            let busy = [bench.hold_now(low, 1), bench.hold_now(low, 2)];
            let first_low = bench.hold_buffered(low, 3);
            let first_mid = bench.hold_buffered(mid, 4);
            // A request of the same priority has no precedence.
            let second_low = bench.hold(low, 5);
            assert_eq!(bench.answer(second_low), Err(no_room()));
            let first_high = bench.hold(high, 6);
            assert_eq!(bench.answer(first_low), Err(no_room()));
            let second_high = bench.hold(high, 7);
            assert_eq!(bench.answer(first_mid), Err(no_room()));
            let third_high = bench.hold(high, 8);
            assert_eq!(bench.answer(third_high), Err(no_room()));
            for (ends, asked) in [1, 2].into_iter().zip(busy) {
                bench.floor.release(ends);
                assert_eq!(bench.answer(asked), Ok(()));
            }
            for (number, asked) in [(6, first_high), (7, second_high)] {
                let sight = bench.floor.begun(number);
                assert_eq!((sight.corba, sight.native), (Some(HIGH), native(HIGH)));
                bench.floor.release(number);
                assert_eq!(bench.answer(asked), Ok(()));
            }
            bench.await_home();
        }
    }
}

#[test]
fn oneways_beyond_the_bound_are_dropped_and_their_connection_goes_on() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(small(strategy, 1));
        let busy = vec![bench.hold_now(0, 1), bench.hold_now(0, 2)];
        let mut peer = bench.raw(0);
        let oneway = peer.request(Version::V1_2, ResponseFlags::None, b"note", 3, 0);
        let twoway = peer.request(Version::V1_2, ResponseFlags::SyncWithTarget, b"look", 4, 0);
        peer.send(&[&oneway.repeat(5)[..], &twoway].concat());
        // Two of the five wait; the next ones on the same connection find no room either.
        assert_eq!(peer.reply(), (Version::V1_2, 4, Some(no_room())));
        finish(&mut bench, busy);
        peer.send(&peer.request(Version::V1_2, ResponseFlags::SyncWithTarget, b"look", 5, 0));
        assert_eq!(peer.reply(), (Version::V1_2, 5, None));
        until("the two were never served", || bench.floor.notes() == 2);
        is_as_before(&mut bench);
        assert_eq!(bench.floor.notes(), 2);
    }
}

#[test]
fn oneways_of_a_client_are_dropped_without_a_word() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(small(strategy, 1));
        let asked = fill(&mut bench);
        let priority = bench.priority_of_client(0);
        let object = bench.objects[0].clone();
        let calling = bench.callers.run(priority, 5, move || {
            (0..10).try_for_each(|_| note(&object))?;
            // It comes after them, on the same connection.
            match look(&object) {
                Err(refused) if refused == no_room() => Ok(()),
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(bench.callers.answer(calling), Ok(()));
        finish(&mut bench, asked);
        assert_eq!(bench.look(0), Ok(bench.own_sight(0)));
        assert_eq!(bench.floor.notes(), 0);
    }
}

#[test]
fn who_asks_where_an_object_is_gets_an_answer_in_overload_too() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(small(strategy, 1));
        let asked = fill(&mut bench);
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            let mut peer = bench.raw(0);
            peer.locate(version, 9);
            let (number, status) = peer.located();
            assert_eq!(number, 9);
            // It is located or refused; older versions cannot express the refusal.
            assert!(
                matches!(
                    status,
                    LocateStatus::ObjectHere | LocateStatus::SystemException
                ),
                "{status:?}"
            );
        }
        finish(&mut bench, asked);
        let mut peer = bench.raw(0);
        peer.locate(Version::V1_2, 10);
        assert_eq!(peer.located(), (10, LocateStatus::ObjectHere));
        is_as_before(&mut bench);
    }
}

#[test]
fn who_asks_where_an_object_is_may_wait_and_is_answered() {
    for strategy in STRATEGIES.iter().copied() {
        for buffering in [Buffering::Off, Buffering::Requests] {
            let mut bench = Bench::new(Case {
                buffering,
                ..small(strategy, 1)
            });
            let busy = vec![bench.hold_now(0, 1), bench.hold_now(0, 2)];
            let mut peer = bench.raw(0);
            peer.locate(Version::V1_2, 9);
            finish(&mut bench, busy);
            assert_eq!(peer.located(), (9, LocateStatus::ObjectHere));
        }
    }
}

#[test]
fn clients_that_leave_while_their_request_waits_take_no_room_with_them() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(small(strategy, 1));
        let busy = vec![bench.hold_now(0, 1), bench.hold_now(0, 2)];
        for number in [3, 4] {
            drop(bench.hold_buffered(0, number));
            bench.floor.release(number);
        }
        finish(&mut bench, busy);
        is_as_before(&mut bench);
    }
}

#[test]
fn clients_that_leave_while_their_request_is_not_read_yet_take_nothing_with_them() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(Case {
            buffering: Buffering::Off,
            ..small(strategy, 1)
        });
        let busy = vec![bench.hold_now(0, 1), bench.hold_now(0, 2)];
        for number in [3, 4] {
            drop(bench.hold(0, number));
            bench.floor.release(number);
        }
        finish(&mut bench, busy);
        assert_eq!(bench.look(0), Ok(bench.own_sight(0)));
    }
}

#[test]
fn an_object_that_is_deactivated_meanwhile_does_not_exist_for_what_waited() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(small(strategy, 1));
        let mut asked = fill(&mut bench);
        let poa = bench.poas.last().expect("it is the clients'").clone();
        let id = poa.reference_to_id(&bench.objects[0]);
        poa.deactivate_object(&id.expect("it is its own"))
            .expect("it is active");
        bench.floor.open();
        let waited = asked.split_off(2);
        for asked in asked {
            assert_eq!(bench.answer(asked), Ok(()), "what had begun goes on");
        }
        for asked in waited {
            let exception = bench.answer(asked).expect_err("it was too late");
            assert_eq!(exception.kind, Kind::ObjectNotExist);
            assert_eq!(exception.completed, CompletionStatus::No);
        }
        assert_eq!(bench.floor.count_begun(), 2);
    }
}

#[test]
fn a_poa_that_is_destroyed_meanwhile_does_not_serve_what_waited() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(small(strategy, 1));
        let mut asked = fill(&mut bench);
        let poa = bench.poas.last().expect("it is the clients'").clone();
        poa.destroy(true, false).expect("it does not wait");
        bench.floor.open();
        let waited = asked.split_off(2);
        for asked in asked {
            assert_eq!(bench.answer(asked), Ok(()), "what had begun goes on");
        }
        for asked in waited {
            let exception = bench.answer(asked).expect_err("it was too late");
            // TRANSIENT 4 while the POA is being destroyed, OBJECT_NOT_EXIST afterwards.
            assert!(
                exception.kind == Kind::ObjectNotExist || exception == omg(Kind::Transient, 4),
                "{exception:?}"
            );
            assert_eq!(exception.completed, CompletionStatus::No);
        }
        assert_eq!(bench.floor.count_begun(), 2);
    }
}

#[test]
fn what_waited_waits_for_a_holding_manager_too_and_is_served_then() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(small(strategy, 1));
        let asked = fill(&mut bench);
        let root = bench.server.root_poa().expect("it is there");
        root.manager().hold_requests(false).expect("it is active");
        bench.floor.release(1);
        bench.floor.release(2);
        // They give up their threads to waiting requests, which the manager keeps from their
        // servant.
        let mut asked = asked.into_iter();
        for _ in 0..2 {
            let asked = asked.next().expect("there are four");
            assert_eq!(bench.answer(asked), Ok(()));
        }
        assert_eq!(bench.floor.count_begun(), 2);
        root.manager().activate().expect("it was not deactivated");
        finish(&mut bench, asked.collect());
        is_as_before(&mut bench);
    }
}

#[test]
fn what_waited_is_refused_by_a_discarding_manager() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(small(strategy, 1));
        let mut asked = fill(&mut bench);
        let root = bench.server.root_poa().expect("it is there");
        root.manager()
            .discard_requests(false)
            .expect("it is active");
        bench.floor.release(1);
        bench.floor.release(2);
        for asked in asked.split_off(2) {
            assert_eq!(bench.answer(asked), Err(omg(Kind::Transient, 1)));
        }
        finish(&mut bench, asked);
        root.manager().activate().expect("it was not deactivated");
        is_as_before(&mut bench);
    }
}

#[test]
fn a_servant_that_panics_on_a_borrowed_thread_has_failed_one_request_alone() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(borrowing(strategy));
        let (low, mid, high) = (0, 1, 2);
        let busy = vec![bench.hold_now(high, 1), bench.hold_now(high, 2)];
        let mut panics = Vec::new();
        for number in 3..7 {
            let (priority, object) = (bench.priority_of_client(high), bench.objects[high].clone());
            panics.push(bench.callers.hold_and_panic(priority, &object, number));
            let sight = bench.floor.begun(number);
            assert_eq!((sight.corba, sight.native), (Some(HIGH), native(HIGH)));
        }
        for calling in panics {
            bench.floor.release(calling.number);
            let exception = bench.callers.answer(calling).expect_err("it panicked");
            assert_eq!(
                (exception.kind, exception.minor),
                (Kind::Unknown, minor::SERVANT_PANICKED)
            );
        }
        bench.await_home();
        for class in [low, mid] {
            assert_eq!(bench.look(class), Ok(bench.own_sight(class)));
        }
        finish(&mut bench, busy);
    }
}

/// Returns an object of the main-thread model in the pool's lane, and a thread that runs the ORB
/// until its shutdown.
fn main_thread_object(bench: &Bench) -> Object {
    let root = bench.server.root_poa().expect("it is there");
    let policies = [
        Policy::Threadpool(bench.pool),
        Policy::PriorityModel(PriorityModel::ServerDeclared, corba(MID)),
        Policy::Thread(ThreadModel::MainThread),
    ];
    let poa = root.create_poa("main", Some(root.manager()), &policies);
    let server = bench.server.clone();
    std::thread::spawn(move || server.run());
    bench.serve(&poa.expect("they agree"))
}

#[test]
fn requests_for_the_main_thread_keep_no_thread_of_the_pool() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(small(strategy, 1));
        let main = main_thread_object(&bench);
        let mut peers: Vec<_> = (1..5)
            .map(|number| {
                let mut peer = Raw::to(&main);
                peer.hold(Version::V1_2, number, BALLAST);
                bench.barrier(0);
                bench.await_all_rest();
                (number, peer)
            })
            .collect();
        let sight = bench.floor.begun(1);
        assert_eq!(sight.lane, None, "no thread of the pool");
        assert_eq!((sight.corba, sight.native), (Some(MID), native(MID)));
        // Both threads are free, although four requests are under way.
        is_as_before(&mut bench);
        for (number, peer) in &mut peers {
            bench.floor.release(*number);
            assert_eq!(peer.reply(), (Version::V1_2, *number, None));
            assert_eq!(bench.floor.begun(*number).lane, None);
        }
    }
}

#[test]
fn requests_for_the_main_thread_may_wait_like_others() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(small(strategy, 1));
        let main = main_thread_object(&bench);
        let busy = vec![bench.hold_now(0, 1), bench.hold_now(0, 2)];
        let mut peers = [3, 4, 5].map(|number| {
            let mut peer = Raw::to(&main);
            peer.hold(Version::V1_2, number, BALLAST);
            bench.barrier(0);
            peer
        });
        assert_eq!(peers[2].reply(), (Version::V1_2, 5, Some(no_room())));
        finish(&mut bench, busy);
        bench.floor.open();
        for (number, peer) in [3, 4].into_iter().zip(&mut peers) {
            assert_eq!(peer.reply(), (Version::V1_2, number, None));
            assert_eq!(bench.floor.begun(number).lane, None);
        }
    }
}

#[test]
fn clients_of_older_versions_are_told_in_their_own() {
    for strategy in STRATEGIES.iter().copied() {
        for version in [Version::V1_0, Version::V1_1] {
            let mut bench = Bench::new(small(strategy, 1));
            let busy = vec![bench.hold_now(0, 1), bench.hold_now(0, 2)];
            let mut peers = [3, 4, 5].map(|number| {
                let mut peer = bench.raw(0);
                peer.hold(version, number, BALLAST);
                bench.barrier(0);
                peer
            });
            assert_eq!(peers[2].reply(), (version, 5, Some(no_room())));
            bench.floor.open();
            finish(&mut bench, busy);
            for (peer, number) in peers.iter_mut().zip([3, 4]) {
                assert_eq!(peer.reply(), (version, number, None));
            }
        }
    }
}

#[test]
fn a_large_request_is_served_where_a_thread_is_free_and_never_waits_beyond_the_bound() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(Case {
            buffering: Buffering::Octets,
            ..small(strategy, 1)
        });
        let large = 4 * ROOM_FOR_TWO;
        // The bound counts waiting requests.
        let served = bench.hold_with(0, 1, large);
        bench.floor.begun(1);
        let busy = vec![served, bench.hold_now(0, 2)];
        let refused = bench.hold_with(0, 3, large);
        assert_eq!(bench.answer(refused), Err(no_room()));
        // There is room for small ones still, and for as many as the octets allow.
        let many: Vec<_> = (4..8)
            .map(|number| hold_small(&mut bench, number))
            .collect();
        finish(&mut bench, busy);
        finish(&mut bench, many);
    }
}

fn hold_small(bench: &mut Bench, number: u32) -> SentRequest {
    let asked = bench.hold_with(0, number, 100);
    bench.barrier(0);
    assert!(!asked.is_answered(), "{number} waits");
    asked
}

#[test]
fn a_large_request_takes_the_room_of_several_less_urgent_ones() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(Case {
            buffering: Buffering::Octets,
            ..small(strategy, 0)
        });
        let (low, high) = (0, 2);
        let busy = vec![bench.hold_now(low, 1), bench.hold_now(low, 2)];
        let waiting = [3, 4].map(|number| bench.hold_buffered(low, number));
        let urgent = bench.hold_with(high, 5, 2 * BALLAST);
        for asked in waiting {
            assert_eq!(bench.answer(asked), Err(no_room()));
        }
        // A request that would not fit anyway displaces no other.
        let larger = bench.hold_with(high, 6, 2 * ROOM_FOR_TWO);
        assert_eq!(bench.answer(larger), Err(no_room()));
        finish(&mut bench, busy);
        finish(&mut bench, vec![urgent]);
        assert_eq!(bench.floor.begun(5).corba, Some(HIGH));
    }
}
