//! Lanes that serve waiting requests by their deadlines, laxity or urgency, under both strategies.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chronorb_giop::{EndTimes, SchedulingContext, UtcTime, Version};
use chronorb_orb::poa::PriorityModel;
use chronorb_orb::rtcorba::{Lane, LaneOrder, ThreadpoolLanes};
use chronorb_orb::{SystemExceptionKind, ThreadpoolStrategy, minor};

use crate::support::pools::{
    BALLAST, Bench, Buffering, Case, LOW, Raw, SentRequest, Threads, corba, no_room,
};
use crate::support::{ProbeSkeleton, orb_with};

const STRATEGIES: [ThreadpoolStrategy; 2] = [
    ThreadpoolStrategy::LeaderFollowers,
    ThreadpoolStrategy::HalfSyncHalfAsync,
];
const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

/// A second, which no test lasts by far, in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// A lane of two threads, both of which serve a request until the test releases it.
struct BusyLane {
    bench: Bench,
    held: [Option<SentRequest>; 2],
    waiting: Vec<SentRequest>,
}

impl BusyLane {
    fn new(strategy: ThreadpoolStrategy, order: LaneOrder, buffering: Buffering) -> Self {
        let case = Case {
            strategy,
            lanes: 1,
            buffering,
            borrowing: false,
            threads: Threads::Static,
            model: PriorityModel::ServerDeclared,
        };
        let mut bench = Bench::with(case, |config| config.lane_order = order);
        let held = [0, 1].map(|number| Some(bench.hold_now(0, number)));
        Self {
            bench,
            held,
            waiting: Vec::new(),
        }
    }

    /// Sends a request with these parameters, and waits until the lane has read it.
    fn send(&mut self, version: Version, number: u32, context: Option<SchedulingContext>) {
        let mut raw = self.bench.raw(0);
        raw.scheduling = context.map(|context| context.encode().to_vec());
        self.send_by(raw, version, number);
    }

    fn send_by(&mut self, mut raw: Raw, version: Version, number: u32) {
        raw.hold(version, number, BALLAST);
        self.bench.barrier(0);
        self.waiting.push(SentRequest::by(raw, 0, number));
    }

    /// Ends one request after the other. Returns the numbers of the others in the order in which
    /// they were served.
    fn served(&mut self) -> Vec<u32> {
        let mut running = 0;
        let mut numbers = Vec::new();
        for nth in 2..2 + self.waiting.len() {
            self.bench.floor.release(running);
            running = self.bench.floor.nth_begun(nth).number;
            numbers.push(running);
        }
        self.bench.floor.open();
        let held = self.held.iter_mut().filter_map(Option::take);
        for asked in held.chain(self.waiting.drain(..)).collect::<Vec<_>>() {
            assert_eq!(self.bench.answer(asked), Ok(()));
        }
        numbers
    }
}

fn context(relative: i64, execution: i64, criticality: i16) -> SchedulingContext {
    SchedulingContext {
        relative: Some(relative),
        execution: execution.unsigned_abs(),
        criticality,
        ..SchedulingContext::default()
    }
}

/// Requests 2 to 6; the last one has no deadline.
fn requests() -> [Option<SchedulingContext>; 5] {
    [
        Some(context(3_000 * SECOND, 0, 1)),
        Some(context(1_000 * SECOND, 10 * SECOND, 0)),
        Some(context(2_000 * SECOND, 1_500 * SECOND, -1)),
        Some(context(-SECOND, 0, -2)),
        None,
    ]
}

#[test]
fn the_most_urgent_request_is_served_first_by_every_strategy_and_version() {
    let orders = [
        (LaneOrder::Deadline, [5, 3, 4, 2, 6]),
        (LaneOrder::Laxity, [5, 4, 3, 2, 6]),
        (LaneOrder::Urgency, [2, 3, 6, 4, 5]),
    ];
    for strategy in STRATEGIES {
        for version in VERSIONS {
            for (order, expected) in orders {
                let mut lane = BusyLane::new(strategy, order, Buffering::Off);
                for (number, context) in (2..).zip(requests()) {
                    lane.send(version, number, context);
                }
                assert_eq!(
                    lane.served(),
                    expected,
                    "{strategy:?} {version:?} {order:?}"
                );
            }
        }
    }
}

#[test]
fn equals_are_served_in_the_order_of_arrival() {
    for strategy in STRATEGIES {
        for order in [LaneOrder::Deadline, LaneOrder::Laxity, LaneOrder::Urgency] {
            let mut lane = BusyLane::new(strategy, order, Buffering::Off);
            for number in 2..8 {
                lane.send(Version::V1_2, number, None);
            }
            assert_eq!(lane.served(), [2, 3, 4, 5, 6, 7], "{strategy:?} {order:?}");
        }
    }
}

#[test]
fn overload_sheds_the_least_critical_whatever_its_deadline_is() {
    for strategy in STRATEGIES {
        for order in [LaneOrder::Deadline, LaneOrder::Laxity, LaneOrder::Urgency] {
            let mut lane = BusyLane::new(strategy, order, Buffering::Requests);
            lane.send(Version::V1_2, 2, Some(context(SECOND, 0, 0)));
            lane.send(Version::V1_2, 3, Some(context(900 * SECOND, 0, 1)));
            // There is room for two. A request that is less critical than all gets none.
            lane.send(Version::V1_2, 4, Some(context(-SECOND, 0, -1)));
            lane.send(Version::V1_2, 5, Some(context(800 * SECOND, 0, 1)));
            for number in [4, 2] {
                let at = lane.waiting.iter().position(|it| it.number == number);
                let shed = lane.waiting.remove(at.expect("it was sent"));
                assert_eq!(
                    lane.bench.answer(shed),
                    Err(no_room()),
                    "{order:?} {number}"
                );
            }
            let snapshot = lane.bench.server.snapshot();
            let pool = snapshot.pools.iter().find(|pool| pool.number == 1);
            assert_eq!(pool.expect("the pool is there").lanes[0].refused, 2);
            assert_eq!(lane.served(), [5, 3], "{strategy:?} {order:?}");
        }
    }
}

#[test]
fn the_end_time_of_a_client_without_deadlines_is_its_deadline() {
    let end = |seconds| {
        let mut room = [0; EndTimes::LARGEST];
        let ends = EndTimes {
            request: Some(UtcTime::from(SystemTime::now()) + Duration::from_secs(seconds)),
            reply: None,
        };
        Some(ends.encode(&mut room).to_vec())
    };
    for strategy in STRATEGIES {
        let mut lane = BusyLane::new(strategy, LaneOrder::Deadline, Buffering::Off);
        for (number, seconds) in [(2, 3_000), (3, 1_000)] {
            let mut raw = lane.bench.raw(0);
            raw.invocation_policies = end(seconds);
            lane.send_by(raw, Version::V1_2, number);
        }
        lane.send(Version::V1_2, 4, Some(context(2_000 * SECOND, 0, 0)));
        assert_eq!(lane.served(), [3, 4, 2], "{strategy:?}");
    }
}

#[test]
fn contexts_that_cannot_be_read_do_not_disturb_the_order() {
    for strategy in STRATEGIES {
        let mut lane = BusyLane::new(strategy, LaneOrder::Deadline, Buffering::Off);
        let mut data = context(SECOND, 0, 0).encode().to_vec();
        data[1] = 2;
        let mut raw = lane.bench.raw(0);
        raw.scheduling = Some(data);
        // Another version has no effect.
        lane.send_by(raw, Version::V1_2, 2);
        lane.send(Version::V1_2, 3, Some(context(2 * SECOND, 0, 0)));
        assert_eq!(lane.served(), [3, 2], "{strategy:?}");

        let bench = &lane.bench;
        let mut raw = bench.raw(0);
        raw.scheduling = Some(vec![1, 1, 0]);
        raw.hold(Version::V1_2, 9, BALLAST);
        let (_, _, exception) = raw.reply();
        let exception = exception.expect("it is malformed");
        assert_eq!(exception.kind, SystemExceptionKind::Marshal);
        assert_eq!(exception.minor, minor::END_OF_DATA);
    }
}

#[test]
fn strategies_without_an_order_refuse_one() {
    for strategy in [
        ThreadpoolStrategy::Reactive,
        ThreadpoolStrategy::ThreadPerConnection,
    ] {
        let server = orb_with(|config| config.threadpool_strategy = strategy);
        let pool = ThreadpoolLanes {
            lanes: vec![Lane::new(corba(LOW), 1).ordered(LaneOrder::Deadline)],
            ..ThreadpoolLanes::default()
        };
        let refused = server.rt().create_threadpool_with_lanes(&pool);
        let refused = refused.map_err(|exception| exception.kind);
        assert_eq!(
            refused,
            Err(SystemExceptionKind::NoImplement),
            "{strategy:?}"
        );
        let by_default = orb_with(|config| {
            config.threadpool_strategy = strategy;
            config.lane_order = LaneOrder::Laxity;
        });
        let root = by_default.root_poa().expect("it opens nothing yet");
        let refused = root.serve(ProbeSkeleton(Arc::default())).map(drop);
        let refused = refused.expect_err("the default pool cannot be made");
        let cause = refused.source().expect("it has a cause").to_string();
        assert!(cause.contains("lanes are ordered under"), "{cause}");
    }
}
