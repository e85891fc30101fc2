//! Each operation of the interface: results and exceptions.

use std::thread;

use chronorb::SystemExceptionKind;
use chronorb_sched::LevelStrategy;
use chronorb_sched_service::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo};
use chronorb_sched_service::idl::rtec_scheduler::{
    AddDependencyError, CreateError, CriticalityT, DispatchConfigurationError, DispatchingTypeT,
    DuplicateName, GetConfigInfosError, GetError, ImportanceT, LastScheduledPriorityError,
    LookupError, NotScheduled, PriorityError, RtInfo, RtInfoBuf, RtInfoEnableStatePair,
    RtInfoEnabledTypeT, SetError, UnknownPriorityLevel, UnknownTask,
};
use chronorb_sched_service::{Limits, SchedulingService};

use crate::support::{Fixture, HIGH, LOW, MS, ONE_WAY, OPERATION, TWO_WAY, all_of, needs};

fn fixture() -> Fixture {
    Fixture::new(LevelStrategy::MaximumUrgency)
}

#[test]
fn handles_are_dense_and_names_are_unique() {
    let f = fixture();
    let created: Vec<_> = ["a", "b", "c"]
        .map(|name| f.scheduler.create(name).unwrap())
        .into();
    assert_eq!(created, [1, 2, 3]);
    let twice = f.scheduler.create("b").unwrap_err();
    assert_eq!(twice, CreateError::DuplicateName(DuplicateName));
    assert_eq!(f.scheduler.lookup("c").unwrap(), 3);
}

#[test]
fn what_does_not_exist_is_an_unknown_task() {
    let f = fixture();
    f.scheduler.create("a").unwrap();
    for handle in [i32::MIN, -1, 0, 2, i32::MAX] {
        let unknown = f.scheduler.get(handle).unwrap_err();
        assert_eq!(unknown, GetError::UnknownTask(UnknownTask));
        let unknown = f.scheduler.priority(handle).unwrap_err();
        assert_eq!(unknown, PriorityError::UnknownTask(UnknownTask));
        let unknown = f
            .scheduler
            .add_dependency(1, handle, 1, TWO_WAY)
            .unwrap_err();
        assert_eq!(unknown, AddDependencyError::UnknownTask(UnknownTask));
    }
    let unknown = f.scheduler.lookup("b").unwrap_err();
    assert_eq!(unknown, LookupError::UnknownTask(UnknownTask));
}

#[test]
fn nothing_has_a_priority_before_a_computation() {
    let f = fixture();
    let handle = f.add("a", needs(1, 10));
    let early = f.scheduler.priority(handle).unwrap_err();
    assert_eq!(early, PriorityError::NotScheduled(NotScheduled));
    let early = f.scheduler.last_scheduled_priority().unwrap_err();
    assert_eq!(
        early,
        LastScheduledPriorityError::NotScheduled(NotScheduled)
    );
    let early = f.scheduler.get_config_infos().unwrap_err();
    assert_eq!(early, GetConfigInfosError::NotScheduled(NotScheduled));
    let early = f.scheduler.dispatch_configuration(0).unwrap_err();
    assert_eq!(
        early,
        DispatchConfigurationError::NotScheduled(NotScheduled)
    );
    assert_eq!(f.scheduler.get_config_info_set().unwrap(), []);

    assert_eq!(f.compute(), []);
    assert_eq!(f.place("a"), (98, 0, 0));
    let later = f.add("b", needs(1, 10));
    let unplaced = f.scheduler.priority(later).unwrap_err();
    assert_eq!(unplaced, PriorityError::NotScheduled(NotScheduled));
    assert_eq!(
        f.place("a"),
        (98, 0, 0),
        "the schedule holds until the next computation"
    );
}

#[test]
fn a_computation_returns_what_was_registered_and_its_places() {
    let f = fixture();
    let high = needs(1, 10).with(HIGH, ImportanceT::HighImportance);
    let fast = f.add("fast", high.threads(1));
    let slow = f.add("slow", needs(2, 100));
    f.scheduler.add_dependency(slow, fast, 1, TWO_WAY).unwrap();
    let all = f.scheduler.compute_scheduling(1, 98).unwrap();
    assert_eq!(all.anomalies.len(), 0);
    let infos: Vec<_> = all
        .infos
        .iter()
        .map(|info| (&*info.entry_point, info.handle))
        .collect();
    assert_eq!(infos, [("fast", fast), ("slow", slow)]);
    assert_eq!(all.infos[0].worst_case_execution_time, MS);
    assert_eq!(all.infos[0].period, 100_000);
    assert_eq!(all.infos[1].dependencies, all.dependencies);
    assert_eq!(all.infos[0].dependencies, []);
    assert_eq!(all.infos[0].preemption_priority, 0);
    assert_eq!(all.infos[1].preemption_priority, 1);
    assert!(all.infos.iter().all(|info| info.volatile_token == 0));

    assert_eq!(f.scheduler.get_rt_info_set().unwrap(), all.infos);
    assert_eq!(f.scheduler.get_dependency_set().unwrap(), all.dependencies);
    assert_eq!(f.scheduler.get_config_info_set().unwrap(), all.configs);
    assert_eq!(f.scheduler.get_config_infos().unwrap(), all.configs);
    assert_eq!(f.scheduler.get(fast).unwrap(), all.infos[0]);
    let periods: Vec<_> = all
        .configs
        .iter()
        .map(|level| level.timer_periods.clone())
        .collect();
    assert_eq!(periods, [vec![100_000], vec![1_000_000]]);

    assert_eq!(f.scheduler.last_scheduled_priority().unwrap(), 1);
    let laxity = DispatchingTypeT::LaxityDispatching;
    assert_eq!(f.scheduler.dispatch_configuration(1).unwrap(), (97, laxity));
    for level in [-1, 2, i32::MAX] {
        let unknown = f.scheduler.dispatch_configuration(level).unwrap_err();
        let expected = DispatchConfigurationError::UnknownPriorityLevel(UnknownPriorityLevel);
        assert_eq!(unknown, expected);
    }
}

#[test]
fn results_have_the_effective_values_of_called_operations() {
    let f = fixture();
    let high = needs(1, 10).with(HIGH, ImportanceT::HighImportance);
    let caller = f.add("caller", high.threads(1));
    let callee = f.add("callee", needs(1, 0));
    let consumer = f.add("consumer", needs(1, 0));
    let thread = f.add("thread", needs(1, 50).threads(1));
    f.scheduler
        .add_dependency(caller, callee, 1, TWO_WAY)
        .unwrap();
    f.scheduler
        .add_dependency(consumer, callee, 1, ONE_WAY)
        .unwrap();
    f.scheduler
        .add_dependency(caller, thread, 1, TWO_WAY)
        .unwrap();
    let values = |infos: &[RtInfoBuf]| -> Vec<_> {
        let each = infos.iter().map(|info| (info.period, info.criticality));
        each.collect()
    };
    let before = f.scheduler.get_rt_info_set().unwrap();
    let set = [(100_000, HIGH), (0, LOW), (0, LOW), (500_000, LOW)];
    assert_eq!(values(&before), set, "there is no schedule yet");

    let all = f.scheduler.compute_scheduling(1, 98).unwrap();
    assert_eq!(all.anomalies, []);
    // The callee has the period and the criticality of its caller, and its consumer the period of
    // the events. An operation with threads keeps its own period.
    let effective = [
        (100_000, HIGH),
        (100_000, HIGH),
        (100_000, LOW),
        (500_000, HIGH),
    ];
    assert_eq!(values(&all.infos), effective);
    assert_eq!(f.scheduler.get_rt_info_set().unwrap(), all.infos);
    for info in &all.infos {
        assert_eq!(f.scheduler.get(info.handle).unwrap(), *info);
    }

    // A rate that was removed has no effective values any more.
    let other = RtInfo {
        handle: callee,
        worst_case_execution_time: 7,
        ..RtInfo::default()
    };
    f.scheduler.reset_seq(&[other]).unwrap();
    let after = f.scheduler.get_rt_info_set().unwrap();
    assert_eq!(after[1].period, 0);
    assert_eq!(f.scheduler.get(callee).unwrap(), after[1]);
}

#[test]
fn a_disabled_operation_or_dependency_has_no_part() {
    let f = fixture();
    let (a, b) = (f.add("a", needs(1, 10)), f.add("b", needs(1, 20)));
    let disabled = RtInfoEnabledTypeT::RtInfoDisabled;
    f.scheduler.set_rt_info_enable_state(b, disabled).unwrap();
    assert_eq!(f.compute(), []);
    f.place("a");
    let unplaced = f.scheduler.priority(b).unwrap_err();
    assert_eq!(unplaced, PriorityError::NotScheduled(NotScheduled));

    let enabled = RtInfoEnabledTypeT::RtInfoEnabled;
    let pairs = [a, b].map(|handle| RtInfoEnableStatePair { handle, enabled });
    f.scheduler.set_rt_info_enable_state_seq(&pairs).unwrap();
    assert_eq!(f.compute(), []);
    f.place("b");
}

#[test]
fn sequences_change_all_or_nothing() {
    let f = fixture();
    let (a, b) = (f.add("a", needs(1, 10)), f.add("b", needs(1, 20)));
    let info = |handle, period| RtInfo {
        handle,
        period,
        worst_case_execution_time: 7,
        ..RtInfo::default()
    };
    assert!(f.scheduler.reset_seq(&[info(a, 50), info(9, 50)]).is_err());
    assert!(f.scheduler.reset_seq(&[info(a, 50), info(b, -1)]).is_err());
    assert_eq!(f.scheduler.get(a).unwrap().period, 100_000);

    f.scheduler.reset_seq(&[info(a, 50), info(b, 60)]).unwrap();
    assert_eq!(f.scheduler.get(a).unwrap().period, 50);
    f.scheduler.set_seq(&[info(a, 70)]).unwrap();
    assert_eq!(f.compute(), []);
    assert_eq!(
        f.scheduler.get(a).unwrap().period,
        50,
        "the greatest rate has room"
    );

    f.scheduler.replace_seq(&[info(b, 80)]).unwrap();
    assert_eq!(f.scheduler.get(b).unwrap().period, 80);
    assert_eq!(f.scheduler.get(a).unwrap().worst_case_execution_time, 0);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let f = fixture();
    let a = f.add("a", needs(1, 10));
    let low = ImportanceT::LowImportance;
    let set = |period, threads| {
        f.scheduler.set(
            a,
            CriticalityT::LowCriticality,
            1,
            1,
            1,
            period,
            low,
            0,
            threads,
            OPERATION,
        )
    };
    for refused in [set(-1, 0), set(i32::MIN, 0), set(1, -1)] {
        let Err(SetError::System(exception)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(exception.kind, SystemExceptionKind::BadParam);
    }
    // 214.7 s.
    set(i32::MAX, 1).unwrap();
    assert_eq!(f.scheduler.get(a).unwrap().period, i32::MAX);
    for calls in [0, -1, i32::MIN] {
        let refused = f.scheduler.add_dependency(a, a, calls, ONE_WAY);
        assert!(
            matches!(refused, Err(AddDependencyError::System(_))),
            "{refused:?}"
        );
    }
}

#[test]
fn clients_cannot_register_more_than_the_limits() {
    let limits = Limits {
        operations: all_of(2),
        dependencies: all_of(1),
        rates: 2,
        name: 4,
        ..Limits::default()
    };
    let f = Fixture::of(SchedulingService::new().limits(limits));
    assert!(f.scheduler.create("12345").is_err());
    let (a, b) = (f.add("a", needs(1, 10)), f.add("b", needs(1, 10)));
    assert!(f.scheduler.create("c").is_err());
    f.set(a, needs(1, 20));
    let low = ImportanceT::LowImportance;
    assert!(
        f.scheduler
            .set(a, LOW, 1, 1, 1, 5, low, 0, 0, OPERATION)
            .is_err()
    );
    f.scheduler.add_dependency(a, b, 1, TWO_WAY).unwrap();
    assert!(f.scheduler.add_dependency(a, b, 1, TWO_WAY).is_err());
    f.scheduler.remove_dependency(a, b, 1, TWO_WAY).unwrap();
    f.scheduler.add_dependency(b, a, 1, TWO_WAY).unwrap();
}

#[test]
fn the_result_does_not_depend_on_who_registers_first() {
    let register = |order: &[usize]| {
        let f = fixture();
        thread::scope(|scope| {
            for number in order {
                let f = &f;
                scope.spawn(move || {
                    let name = format!("operation-{number:03}");
                    f.add(&name, needs(1, 200));
                });
            }
        });
        assert_eq!(f.compute(), []);
        let name = |number| format!("operation-{number:03}");
        (0..100)
            .map(|number| f.place(&name(number)))
            .collect::<Vec<_>>()
    };
    let forwards: Vec<_> = (0..100).collect();
    let mut shuffled = forwards.clone();
    fastrand::Rng::with_seed(6).shuffle(&mut shuffled);
    assert_eq!(register(&forwards), register(&shuffled));
}

#[test]
fn dependencies_have_the_order_of_registration() {
    let f = fixture();
    let [a, b, c] = ["a", "b", "c"].map(|name| f.add(name, needs(1, 10)));
    let calls = [
        (b, c, 2),
        (a, c, 3),
        (b, a, 1),
        (a, b, 1),
        (b, c, 1),
        (b, c, 2),
    ];
    for (caller, callee, calls) in calls {
        f.scheduler
            .add_dependency(caller, callee, calls, TWO_WAY)
            .unwrap();
    }
    let all = || {
        let all = f.scheduler.get_dependency_set().unwrap();
        let each = all
            .iter()
            .map(|it| (it.rt_info, it.rt_info_depended_on, it.number_of_calls));
        each.collect::<Vec<_>>()
    };
    assert_eq!(all(), calls);
    let own = |handle| {
        let own = f.scheduler.get(handle).unwrap().dependencies;
        let infos = f.scheduler.get_rt_info_set().unwrap();
        assert_eq!(infos[handle as usize - 1].dependencies, own);
        let each = own
            .iter()
            .map(|it| (it.rt_info_depended_on, it.number_of_calls));
        each.collect::<Vec<_>>()
    };
    assert_eq!(own(a), [(c, 3), (b, 1)]);
    assert_eq!(own(b), [(c, 2), (a, 1), (c, 1), (c, 2)]);
    assert_eq!(own(c), []);

    // A state is that of all equal ones, and the last of several states holds.
    let [disabled, enabled] = [
        DependencyEnabledTypeT::DependencyDisabled,
        DependencyEnabledTypeT::DependencyEnabled,
    ];
    let state = |enabled| DependencyInfo {
        dependency_type: TWO_WAY,
        number_of_calls: 2,
        rt_info: b,
        rt_info_depended_on: c,
        enabled,
    };
    let states = [state(disabled), state(enabled), state(disabled)];
    f.scheduler
        .set_dependency_enable_state_seq(&states)
        .unwrap();
    let all_states = f.scheduler.get_dependency_set().unwrap();
    let all_states: Vec<_> = all_states.iter().map(|it| it.enabled == enabled).collect();
    assert_eq!(all_states, [false, true, true, true, true, false]);

    // The first of equal ones is removed.
    f.scheduler.remove_dependency(b, c, 2, TWO_WAY).unwrap();
    assert_eq!(all(), calls[1..]);
}
