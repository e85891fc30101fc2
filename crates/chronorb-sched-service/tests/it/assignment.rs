//! Priorities: the assignments of TAO's rules, rates along calls, criticality, admission.

use chronorb_sched::LevelStrategy;
use chronorb_sched_service::idl::rtec_scheduler::{DispatchingTypeT, ImportanceT, InfoTypeT};

use crate::support::{Fixture, HIGH, LOW, MS, ONE_WAY, TWO_WAY, VERY_HIGH, VERY_LOW, needs, texts};

/// Eight operations in overload: 18 ms each at 20, 10, 5 and 1 Hz, of two criticalities.
fn overload(strategy: LevelStrategy) -> Fixture {
    let f = Fixture::new(strategy);
    for (rate, period) in [(20, 50), (10, 100), (5, 200), (1, 1000)] {
        let high = needs(18, period).with(HIGH, ImportanceT::LowImportance);
        f.add(&format!("high_{rate}"), high);
        let low = needs(18, period).with(LOW, ImportanceT::HighImportance);
        f.add(&format!("low_{rate}"), low);
    }
    f
}

/// The level and static subpriority of each operation, from 20 Hz to 1 Hz, low before high.
fn places(f: &Fixture) -> Vec<(i32, i32)> {
    let rates = [20, 10, 5, 1];
    let names = rates
        .iter()
        .flat_map(|rate| [format!("low_{rate}"), format!("high_{rate}")]);
    names
        .map(|name| f.place(&name))
        .map(|(_, sub, level)| (level, sub))
        .collect()
}

#[test]
fn rate_monotonic_levels_follow_rates_and_importance() {
    let f = overload(LevelStrategy::RateMonotonic);
    let anomalies = f.compute();
    assert!(!anomalies.is_empty(), "the utilisation is 1.296");
    let expected = [
        (0, 1),
        (0, 0),
        (1, 1),
        (1, 0),
        (2, 1),
        (2, 0),
        (3, 1),
        (3, 0),
    ];
    assert_eq!(places(&f), expected);
    let levels = f.scheduler.get_config_infos().unwrap();
    let is_static = |kind| kind == DispatchingTypeT::StaticDispatching;
    assert!(levels.iter().all(|level| is_static(level.dispatching_type)));
    let priorities: Vec<_> = levels.iter().map(|level| level.thread_priority).collect();
    assert_eq!(priorities, [98, 97, 96, 95]);
}

#[test]
fn maximum_urgency_first_keeps_the_critical_level_apart() {
    let f = overload(LevelStrategy::MaximumUrgency);
    let anomalies = f.compute();
    let expected = [
        (1, 3),
        (0, 3),
        (1, 2),
        (0, 2),
        (1, 1),
        (0, 1),
        (1, 0),
        (0, 0),
    ];
    assert_eq!(places(&f), expected);
    let late = texts(&anomalies);
    assert!(
        late.iter().all(|(_, text)| text.contains("operation low_")),
        "{late:?}"
    );
}

#[test]
fn maximum_urgency_orders_a_level_by_importance_as_tao_does() {
    let places = |strategy| {
        let f = Fixture::new(strategy);
        for (name, period, importance) in [
            ("fast", 10, ImportanceT::LowImportance),
            ("slow", 100, ImportanceT::VeryHighImportance),
            ("slower", 200, ImportanceT::VeryHighImportance),
        ] {
            f.add(name, needs(1, period).with(LOW, importance));
        }
        assert_eq!(f.compute(), []);
        let places = ["fast", "slow", "slower"].map(|name| f.place(name));
        places.map(|(_, sub, level)| (level, sub))
    };
    let expected = [(0, 0), (0, 2), (0, 1)];
    assert_eq!(places(LevelStrategy::MaximumUrgency), expected);
    // The other strategies order by rate first.
    let expected = [(0, 2), (0, 1), (0, 0)];
    assert_eq!(places(LevelStrategy::LeastLaxity), expected);
}

#[test]
fn one_level_holds_all_by_deadline_or_laxity() {
    let expected = [7, 6, 5, 4, 3, 2, 1, 0].map(|sub| (0, sub));
    for (strategy, kind) in [
        (
            LevelStrategy::EarliestDeadline,
            DispatchingTypeT::DeadlineDispatching,
        ),
        (
            LevelStrategy::LeastLaxity,
            DispatchingTypeT::LaxityDispatching,
        ),
    ] {
        let f = overload(strategy);
        assert!(!f.compute().is_empty());
        assert_eq!(places(&f), expected);
        assert_eq!(f.scheduler.dispatch_configuration(0).unwrap(), (98, kind));
    }
}

/// The configuration of TAO's test `Sched_Conf`: eight suppliers of two criticalities at 20, 10, 5
/// and 1 Hz, and a consumer of each, which executes for no time of its own.
///
/// TAO's table for it was written on Windows, whose most urgent priorities are 15 and 2. It has
/// subpriorities 11, 9, 8, 6, 5, 3, 2, 0 for the eight operations of a level, so four numbers
/// belong to no operation. The rules give one number to each operation, hence 7 to 0 in the same
/// order.
#[test]
fn consumers_follow_their_suppliers_as_in_the_configuration_of_tao() {
    let f = Fixture::new(LevelStrategy::MaximumUrgency);
    let rates = [
        ("20", 5_000, 50),
        ("10", 10_000, 100),
        ("05", 20_000, 200),
        ("01", 100_000, 1000),
    ];
    let levels = [
        ("high", HIGH, ImportanceT::LowImportance),
        ("low", LOW, ImportanceT::HighImportance),
    ];
    for (level, criticality, importance) in levels {
        for (rate, cost, period) in rates {
            let set = |name: &str, cost: u64, period: u64| {
                let handle = f
                    .scheduler
                    .create(&format!("{level}_{rate}_{name}"))
                    .unwrap();
                let kind = InfoTypeT::Operation;
                let period = i32::try_from(period * MS).unwrap();
                f.scheduler
                    .set(
                        handle,
                        criticality,
                        cost,
                        cost,
                        cost,
                        period,
                        importance,
                        0,
                        0,
                        kind,
                    )
                    .unwrap();
                handle
            };
            let (supplier, consumer) = (set("S", cost, period), set("C", 0, 0));
            f.scheduler
                .add_dependency(consumer, supplier, 2, ONE_WAY)
                .unwrap();
        }
    }
    assert_eq!(f.scheduler.recompute_scheduling(14, 15).unwrap(), []);
    let of_tao = [("S", [11, 8, 5, 2]), ("C", [9, 6, 3, 0])];
    for (number, (level, ..)) in levels.into_iter().enumerate() {
        let mut order = Vec::new();
        for (name, subpriorities) in of_tao {
            for ((rate, ..), subpriority) in rates.into_iter().zip(subpriorities) {
                let (thread, own, its_level) = f.place(&format!("{level}_{rate}_{name}"));
                assert_eq!((thread, its_level), (15 - number as i32, number as i32));
                order.push((subpriority, own));
            }
        }
        order.sort_unstable();
        let own: Vec<_> = order.into_iter().map(|(_, own)| own).collect();
        assert_eq!(own, [0, 1, 2, 3, 4, 5, 6, 7], "level {level}");
    }
    let configs = f.scheduler.get_config_infos().unwrap();
    let is_by_laxity = |kind| kind == DispatchingTypeT::LaxityDispatching;
    assert_eq!(configs.len(), 2);
    assert!(configs.iter().all(|it| is_by_laxity(it.dispatching_type)));
}

#[test]
fn the_greatest_rate_decides() {
    let f = Fixture::new(LevelStrategy::RateMonotonic);
    let fast = f.add("fast", needs(1, 50));
    let slow = f.add("slow", needs(1, 75));
    let of_each = f.add("of each", needs(1, 0).of_kind(InfoTypeT::Disjunction));
    let of_all = f.add("of all", needs(1, 0).of_kind(InfoTypeT::Conjunction));
    let called = f.add("called", needs(1, 0));
    for supplier in [fast, slow] {
        f.scheduler
            .add_dependency(of_each, supplier, 1, ONE_WAY)
            .unwrap();
        f.scheduler
            .add_dependency(of_all, supplier, 1, ONE_WAY)
            .unwrap();
    }
    f.scheduler
        .add_dependency(slow, called, 1, TWO_WAY)
        .unwrap();
    f.scheduler
        .add_dependency(of_each, called, 1, TWO_WAY)
        .unwrap();
    assert_eq!(f.compute(), []);
    let level = |name| f.place(name).2;
    assert_eq!(["fast", "of each", "called"].map(level), [0, 0, 0]);
    assert_eq!(["slow", "of all"].map(level), [1, 1]);
    let periods: Vec<_> = f.scheduler.get_config_infos().unwrap();
    assert_eq!(periods[0].timer_periods, [500_000, 750_000]);
    assert_eq!(periods[1].timer_periods, [750_000]);
}

#[test]
fn calls_count_in_the_demand_of_their_caller() {
    let utilised = |calls| {
        let f = Fixture::new(LevelStrategy::RateMonotonic);
        let caller = f.add("caller", needs(10, 100));
        let callee = f.add("callee", needs(30, 0));
        f.scheduler
            .add_dependency(caller, callee, calls, TWO_WAY)
            .unwrap();
        f.compute().is_empty()
    };
    assert!(utilised(3));
    assert!(!utilised(4));
}

#[test]
fn criticality_spreads_whatever_the_order_and_falls_again() {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for order in orders {
        let f = Fixture::new(LevelStrategy::MaximumUrgency);
        let first = f.add(
            "a",
            needs(1, 100).with(VERY_HIGH, ImportanceT::LowImportance),
        );
        let rest = ["b", "c", "d"]
            .map(|name| f.add(name, needs(1, 0).with(VERY_LOW, ImportanceT::LowImportance)));
        f.add("other", needs(1, 100));
        let chain = [(first, rest[0]), (rest[0], rest[1]), (rest[1], rest[2])];
        for number in order {
            let (depending, on) = chain[number];
            f.scheduler
                .add_dependency(depending, on, 1, TWO_WAY)
                .unwrap();
        }
        assert_eq!(f.compute(), []);
        assert_eq!(
            ["a", "b", "c", "d", "other"].map(|name| f.place(name).2),
            [0, 0, 0, 0, 1]
        );

        f.scheduler
            .remove_dependency(rest[1], rest[2], 1, TWO_WAY)
            .unwrap();
        f.set(
            rest[2],
            needs(1, 100).with(VERY_LOW, ImportanceT::LowImportance),
        );
        f.scheduler
            .reset(
                rest[2],
                VERY_LOW,
                1,
                1,
                1,
                1_000_000,
                ImportanceT::LowImportance,
                0,
                1,
                InfoTypeT::Operation,
            )
            .unwrap();
        assert_eq!(f.compute(), []);
        assert_eq!(["c", "other", "d"].map(|name| f.place(name).2), [0, 1, 2]);
    }
}

#[test]
fn lower_rates_are_admitted_first() {
    let f = Fixture::new(LevelStrategy::RateMonotonic);
    let a = f.add("a", needs(10, 20));
    f.set(a, needs(10, 100));
    let b = f.add("b", needs(30, 100));
    f.set(b, needs(30, 50));
    let anomalies = f.compute();
    // 0.1 + 0.3 at the lowest rates; then a at 0.5 fits, and b at 0.6 does not.
    assert_eq!(f.scheduler.get(a).unwrap().period, 200_000);
    assert_eq!(f.scheduler.get(b).unwrap().period, 1_000_000);
    let texts = texts(&anomalies);
    let [(_, text)] = texts[..] else {
        panic!("{texts:?}");
    };
    assert!(
        text.contains("operation b is not admitted at a period of 50000 us"),
        "{text}"
    );

    f.scheduler
        .reset(
            a,
            LOW,
            100_000,
            100_000,
            100_000,
            1_000_000,
            ImportanceT::LowImportance,
            0,
            0,
            InfoTypeT::Operation,
        )
        .unwrap();
    assert_eq!(f.compute(), []);
    assert_eq!(f.scheduler.get(b).unwrap().period, 500_000);
}

#[test]
fn few_priorities_are_shared_and_told() {
    let f = Fixture::new(LevelStrategy::RateMonotonic);
    for period in [10, 20, 40, 80] {
        f.add(&format!("each {period}"), needs(1, period));
    }
    let anomalies = f.scheduler.recompute_scheduling(10, 12).unwrap();
    let threads = [10, 20, 40, 80].map(|period| f.place(&format!("each {period}")).0);
    assert_eq!(threads, [12, 11, 10, 10]);
    let texts = texts(&anomalies);
    let [(_, text)] = texts[..] else {
        panic!("{texts:?}");
    };
    assert_eq!(
        text,
        "4 levels of dispatching share 3 priorities from 10 to 12"
    );

    // Where smaller numbers are more urgent, the range is told the other way round.
    assert_eq!(f.scheduler.recompute_scheduling(20, 4).unwrap(), []);
    let threads = [10, 20, 40, 80].map(|period| f.place(&format!("each {period}")).0);
    assert_eq!(threads, [4, 5, 6, 7]);
}

#[test]
fn an_operation_with_threads_and_callers_runs_at_both_rates() {
    let f = Fixture::new(LevelStrategy::RateMonotonic);
    let own = f.add("own", needs(1, 100).threads(1));
    let caller = f.add("caller", needs(1, 10));
    f.scheduler.add_dependency(caller, own, 1, TWO_WAY).unwrap();
    assert_eq!(f.compute(), []);
    assert_eq!(["own", "caller"].map(|name| f.place(name).2), [0, 0]);
    let levels = f.scheduler.get_config_infos().unwrap();
    assert_eq!(levels[0].timer_periods, [100_000, 1_000_000]);
}
