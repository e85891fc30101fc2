//! Requests that are buffered in a pool without lanes: the most urgent one is served first,
//! whichever thread has read it.

use chronorb_giop::Version;
use chronorb_orb::ThreadpoolStrategy;
use chronorb_orb::poa::{Policy, PriorityModel};

use crate::support::pools::{
    BALLAST, Bench, Buffering, Case, HIGH, HoldingServant, LOW, Raw, Threads, corba,
};

const STRATEGIES: [ThreadpoolStrategy; 2] = [
    ThreadpoolStrategy::LeaderFollowers,
    ThreadpoolStrategy::HalfSyncHalfAsync,
];

fn case(strategy: ThreadpoolStrategy) -> Case {
    Case {
        strategy,
        lanes: 0,
        buffering: Buffering::Requests,
        borrowing: false,
        threads: Threads::Static,
        model: PriorityModel::ClientPropagated,
    }
}

#[test]
fn a_thread_that_only_reads_tells_priorities_however_many_requests_it_has_read() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::with(case(strategy), |config| config.arena_size = 4 << 10);
        let mut held = vec![bench.hold_now(0, 0), bench.hold_now(0, 1)];
        for number in 2..400 {
            held.push(bench.hold_buffered(0, number));
            let first = held.remove(0);
            bench.floor.release(number - 2);
            assert_eq!(bench.answer(first), Ok(()));
            bench.floor.begun(number);
        }
        held.push(bench.hold_buffered(0, 400));
        held.push(bench.hold_buffered(2, 401));
        bench.floor.release(398);
        assert_eq!(bench.floor.nth_begun(400).number, 401, "{strategy:?}");
        bench.floor.open();
        for asked in held {
            assert_eq!(bench.answer(asked), Ok(()));
        }
    }
}

#[test]
fn objects_with_a_priority_of_their_own_are_served_before_less_urgent_ones() {
    for strategy in STRATEGIES.iter().copied() {
        let mut bench = Bench::new(case(strategy));
        let root = bench.server.root_poa().expect("it is open");
        let policies = [
            Policy::Threadpool(bench.pool),
            Policy::PriorityModel(PriorityModel::ServerDeclared, corba(LOW)),
        ];
        let poa = root.create_poa("objects", Some(root.manager()), &policies);
        let poa = poa.expect("the policies agree");
        let raw_of = |priority| {
            let servant = HoldingServant(bench.floor.clone());
            let id = poa.activate_object_with_priority(servant, corba(priority));
            let object = poa.id_to_reference(&id.expect("it is new"));
            Raw::to(&object.expect("it is active"))
        };
        let (mut low, mut high) = (raw_of(LOW), raw_of(HIGH));
        let held = [bench.hold_now(0, 0), bench.hold_now(0, 1)];
        for (raw, number) in [(&mut low, 2), (&mut high, 3)] {
            raw.hold(Version::V1_2, number, BALLAST);
            bench.barrier(0);
        }
        bench.floor.release(0);
        assert_eq!(bench.floor.nth_begun(2).number, 3, "{strategy:?}");
        bench.floor.open();
        for asked in held {
            assert_eq!(bench.answer(asked), Ok(()));
        }
        assert_eq!((low.reply().2, high.reply().2), (None, None));
    }
}
