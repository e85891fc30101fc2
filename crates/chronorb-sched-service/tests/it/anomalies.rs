//! Anomalies: each is named, and a fatal one leaves the schedule of before in force.

use chronorb_sched::LevelStrategy;
use chronorb_sched_service::idl::rtec_base::DependencyEnabledTypeT;
use chronorb_sched_service::idl::rtec_scheduler::{
    AnomalySeverity, InfoTypeT, NotScheduled, PriorityError,
};

use crate::support::{Fixture, ONE_WAY, TWO_WAY, needs, texts};

const FATAL: AnomalySeverity = AnomalySeverity::AnomalyFatal;
const ERROR: AnomalySeverity = AnomalySeverity::AnomalyError;
const WARNING: AnomalySeverity = AnomalySeverity::AnomalyWarning;

fn fixture() -> Fixture {
    Fixture::new(LevelStrategy::RateMonotonic)
}

#[test]
fn each_cycle_is_named_by_its_operations() {
    for kind in [TWO_WAY, ONE_WAY] {
        let f = fixture();
        let ring = ["b", "a", "c"].map(|name| f.add(name, needs(1, 100)));
        let pair = ["x", "y"].map(|name| f.add(name, needs(1, 100)));
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            f.scheduler
                .add_dependency(ring[from], ring[to], 1, kind)
                .unwrap();
        }
        f.scheduler
            .add_dependency(pair[0], pair[1], 1, kind)
            .unwrap();
        f.scheduler
            .add_dependency(pair[1], pair[0], 1, kind)
            .unwrap();
        let anomalies = f.compute();
        let expected = [
            (FATAL, "operations call each other in a cycle: a, b, c"),
            (FATAL, "operations call each other in a cycle: x, y"),
        ];
        assert_eq!(texts(&anomalies), expected);
        let unplaced = f.scheduler.priority(ring[0]).unwrap_err();
        assert_eq!(unplaced, PriorityError::NotScheduled(NotScheduled));

        let disabled = DependencyEnabledTypeT::DependencyDisabled;
        for (from, to) in [(ring[2], ring[0]), (pair[1], pair[0])] {
            f.scheduler
                .set_dependency_enable_state(from, to, 1, kind, disabled)
                .unwrap();
        }
        assert_eq!(texts(&f.compute()), []);
    }
}

#[test]
fn an_operation_that_calls_itself_is_a_cycle() {
    let f = fixture();
    let own = f.add("own", needs(1, 100));
    f.scheduler.add_dependency(own, own, 1, TWO_WAY).unwrap();
    let anomalies = f.compute();
    assert_eq!(
        texts(&anomalies),
        [(FATAL, "operations call each other in a cycle: own")]
    );
}

#[test]
fn threads_need_a_period() {
    let f = fixture();
    f.add("worker", needs(1, 0).threads(1));
    let anomalies = f.compute();
    let expected = "operation worker has threads and no period; give it a period";
    assert_eq!(texts(&anomalies), [(FATAL, expected)]);
}

/// The operations that TAO's event channel registers with its scheduling factory: suppliers, a
/// consumer's filter with its parts, and a thread of dispatching, all joined by two-way calls.
#[test]
fn two_way_dependencies_on_groups_are_calls_as_the_channel_of_tao_adds_them() {
    for kind in [InfoTypeT::Disjunction, InfoTypeT::Conjunction] {
        let f = fixture();
        let a = f.add("a", needs(1, 100));
        let b = f.add("b", needs(1, 50));
        let rep = f.add("a#rep", needs(0, 0));
        let group = f.add("(a#rep)", needs(0, 0).of_kind(kind));
        let task = f.add("Dispatching_Task-250000.us", needs(0, 25).threads(1));
        for (depending, on) in [(rep, a), (rep, b), (group, rep), (task, group)] {
            f.scheduler
                .add_dependency(depending, on, 1, TWO_WAY)
                .unwrap();
        }
        assert_eq!(texts(&f.compute()), []);
        // The task calls all of them at its rate.
        for name in ["a", "b", "a#rep", "(a#rep)", "Dispatching_Task-250000.us"] {
            let (thread, _, level) = f.place(name);
            assert_eq!((thread, level), (98, 0), "{name}, {kind:?}");
        }
        // Their execution time is that of the task.
        f.set(task, needs(24, 25).threads(1));
        let late = "operation Dispatching_Task-250000.us is not admitted";
        let anomalies = f.compute();
        assert!(
            texts(&anomalies)
                .iter()
                .any(|(_, text)| text.contains(late)),
            "{anomalies:?}"
        );
    }
}

#[test]
fn a_fatal_anomaly_takes_no_priority_away() {
    let f = fixture();
    let first = f.add("first", needs(1, 10));
    let second = f.add("second", needs(1, 20));
    assert_eq!(texts(&f.compute()), []);
    let before = (f.place("first"), f.place("second"));
    let configs = f.scheduler.get_config_infos().unwrap();

    let new = f.add("new", needs(1, 40));
    f.scheduler.add_dependency(new, new, 1, TWO_WAY).unwrap();
    let all = f.scheduler.compute_scheduling(1, 98).unwrap();
    let expected = [
        (FATAL, "operations call each other in a cycle: new"),
        (
            WARNING,
            "the schedule of before stays in force; operations that were added since have no \
             priority",
        ),
    ];
    assert_eq!(texts(&all.anomalies), expected);
    // Without a change the answer is the same.
    assert_eq!(texts(&f.compute()), expected);
    assert_eq!((f.place("first"), f.place("second")), before);
    let unplaced = f.scheduler.priority(new).unwrap_err();
    assert_eq!(unplaced, PriorityError::NotScheduled(NotScheduled));
    assert_eq!(all.configs, configs);
    assert_eq!(f.scheduler.get_config_infos().unwrap(), configs);
    assert_eq!(f.scheduler.get_config_info_set().unwrap(), configs);
    assert_eq!(f.scheduler.last_scheduled_priority().unwrap(), 1);
    assert_eq!(f.scheduler.get_rt_info_set().unwrap(), all.infos);
    let places = all.infos.iter().map(|info| info.priority);
    assert_eq!(places.collect::<Vec<_>>(), [98, 97, 0]);
    for handle in [first, second] {
        let info = &all.infos[handle as usize - 1];
        assert_eq!(f.scheduler.get(handle).unwrap(), *info);
    }

    f.scheduler.remove_dependency(new, new, 1, TWO_WAY).unwrap();
    assert_eq!(texts(&f.compute()), []);
    assert_eq!(f.place("new"), (96, 0, 2));
}

#[test]
fn operations_without_a_rate_are_unresolved() {
    let f = fixture();
    f.add("local", needs(1, 0));
    let remote = f.add("remote", needs(1, 0).of_kind(InfoTypeT::RemoteDependant));
    let after = f.add("after", needs(1, 0));
    f.scheduler
        .add_dependency(after, remote, 1, ONE_WAY)
        .unwrap();
    f.scheduler.create("unset").unwrap();
    f.add("good", needs(1, 100));
    let anomalies = f.compute();
    let expected = [
        (ERROR, "operation local has no period, and nothing calls it"),
        (
            WARNING,
            "operation remote is called by operations of other schedulers only",
        ),
        (WARNING, "operation unset was created and never set"),
        // Operations are in the order of calls, and then of names.
        (
            WARNING,
            "operation after is called by operations of other schedulers only",
        ),
    ];
    assert_eq!(texts(&anomalies), expected);
    assert_eq!(f.place("good"), (98, 0, 0));
}

#[test]
fn a_full_processor_is_accepted_if_deadlines_are_met() {
    // Harmonic, at a utilisation of exactly 1.
    let f = fixture();
    for (cost, period) in [(20, 50), (30, 100), (60, 200)] {
        f.add(&format!("{period}"), needs(cost, period));
    }
    assert_eq!(texts(&f.compute()), []);
}

#[test]
fn the_analysis_is_that_of_the_strategy() {
    // At a utilisation of 34/35, by rates the second ends at 8 and has 7.
    for (strategy, expected) in [
        (
            LevelStrategy::RateMonotonic,
            &[(ERROR, "operation second may miss its deadlines")][..],
        ),
        (LevelStrategy::EarliestDeadline, &[]),
    ] {
        let f = Fixture::new(strategy);
        f.add("first", needs(2, 5));
        f.add("second", needs(4, 7));
        assert_eq!(texts(&f.compute()), expected);
    }
}

#[test]
fn an_excess_names_what_is_not_admitted() {
    let f = fixture();
    f.add("a", needs(60, 100));
    f.add("b", needs(60, 100));
    let anomalies = f.compute();
    let excess = "operation b is not admitted, because the utilisation would exceed the processor";
    assert!(
        texts(&anomalies).contains(&(ERROR, excess)),
        "{anomalies:?}"
    );
    f.place("b");
}
