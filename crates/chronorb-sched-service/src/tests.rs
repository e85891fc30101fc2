//! The computation beside its test oracle, and its steps.

use std::sync::Arc;

use chronorb_sched::{
    DispatchLevel, LevelOrder, LevelStrategy, Load, Task, compare_to_processor, guaranteed,
};
use proptest::prelude::*;

use crate::budget::Budget;
use crate::compute::compute_within;
use crate::idl::rtec_base::DependencyTypeT::{OneWayCall, TwoWayCall};
use crate::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use crate::idl::rtec_scheduler::{
    AnomalySeverity, CriticalityT, ImportanceT, InfoTypeT, RtInfoEnabledTypeT,
};
use crate::late::{LevelTasks, late};
use crate::model::{Limits, Operation, Rate, Snapshot};
use crate::oracle;

const RANGE: (i32, i32) = (1, 98);
const STRATEGIES: [LevelStrategy; 6] = [
    LevelStrategy::RateMonotonic,
    LevelStrategy::EarliestDeadline,
    LevelStrategy::LeastLaxity,
    LevelStrategy::MaximumUrgency,
    LevelStrategy::MaximumUrgencyOfCriticalSet,
    LevelStrategy::RateMonotonicLaxity,
];

fn operation(name: String, rates: Vec<Rate>) -> Arc<Operation> {
    Arc::new(Operation {
        name: name.into(),
        rates,
        enabled: RtInfoEnabledTypeT::RtInfoEnabled,
    })
}

fn dependency(
    rt_info: i32,
    rt_info_depended_on: i32,
    number_of_calls: i32,
    dependency_type: DependencyTypeT,
) -> DependencyInfo {
    DependencyInfo {
        dependency_type,
        number_of_calls,
        rt_info,
        rt_info_depended_on,
        enabled: DependencyEnabledTypeT::DependencyEnabled,
    }
}

fn rates() -> impl Strategy<Value = Rate> {
    let kinds = prop::sample::select(vec![
        InfoTypeT::Operation,
        InfoTypeT::Operation,
        InfoTypeT::Conjunction,
        InfoTypeT::Disjunction,
        InfoTypeT::RemoteDependant,
    ]);
    let criticalities = prop::sample::select(vec![
        CriticalityT::VeryLowCriticality,
        CriticalityT::MediumCriticality,
        CriticalityT::VeryHighCriticality,
    ]);
    let importances = prop::sample::select(vec![
        ImportanceT::LowImportance,
        ImportanceT::HighImportance,
    ]);
    let periods = prop::sample::select(vec![0, 20, 30, 40, 50, 70, 100, 200, 1000]);
    let needs = (0..12_u64, periods, 0..2_u32);
    (needs, kinds, criticalities, importances).prop_map(
        |((worst, period, threads), kind, criticality, importance)| Rate {
            criticality,
            importance,
            worst,
            period,
            threads: if period == 0 { 0 } else { threads },
            kind,
            ..Rate::default()
        },
    )
}

/// Up to ten operations with up to five rates, of which the later ones are often alike but faster,
/// and calls mostly from earlier to later ones.
fn snapshots() -> impl Strategy<Value = Snapshot> {
    let rises = prop::collection::vec((1..4_u32, any::<prop::sample::Index>()), 0..4);
    let operations = (prop::collection::vec(rates(), 0..3), rises, 0..20_u32);
    let edges = (
        any::<[prop::sample::Index; 2]>(),
        1..4_i32,
        any::<bool>(),
        0..30_u32,
    );
    let all = (
        prop::collection::vec(operations, 1..10),
        prop::collection::vec(edges, 0..14),
    );
    all.prop_map(|(operations, edges)| {
        let count = operations.len();
        let create = |(number, (rates, rises, disabled)): (usize, (Vec<Rate>, Vec<_>, u32))| {
            let mut all: Vec<Rate> = rates;
            for (factor, at) in rises {
                if all.is_empty() {
                    break;
                }
                let mut rate = all[prop::sample::Index::index(&at, all.len())];
                rate.period /= factor;
                if !all.contains(&rate) && (rate.period > 0 || rate.threads == 0) {
                    all.push(rate);
                }
            }
            let name = format!("operation {}", (number * 7) % 10);
            let mut created = operation(name, all);
            if disabled == 0 {
                Arc::make_mut(&mut created).enabled = RtInfoEnabledTypeT::RtInfoDisabled;
            }
            created
        };
        let edge = |(ends, calls, is_two_way, back): ([prop::sample::Index; 2], i32, bool, u32)| {
            let [a, b] = ends.map(|end| end.index(count));
            // Few cycles.
            let (caller, callee) = if back == 0 {
                (a, b)
            } else {
                (a.min(b), a.max(b))
            };
            if back > 0 && a == b {
                return None;
            }
            let [caller, callee] = [caller, callee].map(|it| it as i32 + 1);
            Some(if is_two_way {
                dependency(caller, callee, calls, TwoWayCall)
            } else {
                dependency(callee, caller, calls, OneWayCall)
            })
        };
        let mut dependencies: Vec<_> = edges.into_iter().filter_map(edge).collect();
        dependencies.sort_by_key(|one| one.rt_info);
        Snapshot {
            operations: operations.into_iter().enumerate().map(create).collect(),
            dependencies: (0..).zip(dependencies).collect(),
        }
    })
}

fn unbounded() -> [Budget; 2] {
    [Budget::of(u64::MAX), Budget::of(u64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn results_are_those_of_the_oracle(
        snapshot in snapshots(),
        strategy in prop::sample::select(&STRATEGIES[..]),
        minimum in prop::sample::select(vec![1, 96, 98, 120]),
    ) {
        let range = (minimum, 98);
        let expected = oracle::compute(&snapshot, strategy, range);
        let actual = compute_within(&snapshot, 64, strategy, range, &mut unbounded());
        // The oracle cannot analyse some sets of exactly a processor.
        let is_unknown = |text: &str| text.starts_with("the schedule is not analysed");
        if !expected.anomalies.iter().any(|it| is_unknown(&it.description)) {
            prop_assert_eq!(actual.anomalies, expected.anomalies);
        }
        match (actual.schedule, expected.schedule) {
            (Some(actual), Some(expected)) => {
                prop_assert_eq!(actual.places, expected.places);
                prop_assert_eq!(actual.rates, expected.rates);
                prop_assert_eq!(actual.levels, expected.levels);
            }
            (actual, expected) => prop_assert_eq!(actual.is_some(), expected.is_some()),
        }
    }

    #[test]
    fn late_tasks_are_those_of_the_analysis(
        tasks in prop::collection::vec((1..40_u64, 1..60_u64, 0..4_usize), 0..10),
        statics in any::<[bool; 4]>(),
    ) {
        let all: Vec<_> = tasks.iter().map(|(cost, period, _)| Task::new(*cost, *period)).collect();
        let level = |number: usize| {
            let own = |(index, (_, _, level)): (usize, &(u64, u64, usize))| {
                (*level == number).then_some(index)
            };
            let own: Vec<_> = tasks.iter().enumerate().filter_map(own).collect();
            (own, statics[number])
        };
        let levels: Vec<_> = (0..4).map(level).collect();
        let expected = levels.iter().map(|(tasks, is_static)| DispatchLevel {
            tasks: tasks.clone(),
            order: if *is_static { LevelOrder::Static } else { LevelOrder::Laxity },
        });
        let verdicts = guaranteed(&all, &expected.collect::<Vec<_>>(), false);
        let owned = levels.iter().map(|(own, is_static)| LevelTasks {
            tasks: own.iter().map(|index| {
                let (cost, period, _) = tasks[*index];
                (*index, Load { cost, period, jitter: 0 })
            }).collect(),
            is_static: *is_static,
        });
        let late = late(&owned.collect::<Vec<_>>(), &mut Budget::of(u64::MAX)).unwrap();
        if let Ok(verdicts) = verdicts {
            let all = levels.iter().flat_map(|(own, _)| own.iter().copied());
            let expected: Vec<_> = all.filter(|index| !verdicts[*index]).collect();
            prop_assert_eq!(late, expected);
        } else {
            prop_assert!(!compare_to_processor(&all).is_lt());
        }
    }
}

/// The kinds of chains of operations, each of which calls the next one.
#[derive(Clone, Copy, Debug)]
enum Chain {
    /// Two-way calls, with a period of the first one only.
    Called,
    /// Two-way calls between threads, all with other periods.
    Threads,
    /// Two-way calls between threads with the same periods.
    Harmonic,
    /// One-way calls.
    Dispatched,
    /// One-way calls of threads with the same periods.
    DispatchedThreads,
}

/// A chain of operations with 8 rates.
fn chain(count: usize, chain: Chain, worst: u64) -> Snapshot {
    let rate = |number: usize, rate: usize| {
        let period = match chain {
            Chain::Harmonic | Chain::DispatchedThreads => 1 << (30 - rate),
            _ => 1_000_000_000 - (rate * count + number) * 1_000,
        };
        Rate {
            worst,
            period: period as u32,
            threads: u32::from(!matches!(chain, Chain::Called | Chain::Dispatched)),
            ..Rate::default()
        }
    };
    let create = |number: usize| {
        let rates = (0..8).map(|it| rate(number, it)).collect();
        operation(format!("operation {number:05}"), rates)
    };
    let kind = match chain {
        Chain::Dispatched | Chain::DispatchedThreads => OneWayCall,
        _ => TwoWayCall,
    };
    let calls = (1..count as i32).map(|caller| match kind {
        TwoWayCall => dependency(caller, caller + 1, 1, kind),
        OneWayCall => dependency(caller + 1, caller, 1, kind),
    });
    Snapshot {
        operations: (0..count).map(create).collect(),
        dependencies: (0..).zip(calls).collect(),
    }
}

/// The steps of a computation with the budgets of default limits.
fn steps(snapshot: &Snapshot, strategy: LevelStrategy) -> u64 {
    let limits = Limits::default();
    let budget = Budget::new(snapshot, &limits);
    let mut budgets = [budget.clone(), budget];
    compute_within(snapshot, limits.periods, strategy, RANGE, &mut budgets);
    budgets.iter().map(Budget::taken).sum()
}

#[test]
fn twice_the_operations_are_at_most_two_and_a_half_times_the_steps() {
    let (urgency, rates) = (LevelStrategy::MaximumUrgency, LevelStrategy::RateMonotonic);
    // With room for all rates, and with too little for the lowest ones.
    for (kind, strategy, worst, count) in [
        (Chain::Called, urgency, 1, 5_000),
        (Chain::Threads, urgency, 1, 5_000),
        (Chain::Harmonic, rates, 1, 2_500),
        (Chain::Dispatched, urgency, 1, 2_500),
        (Chain::DispatchedThreads, rates, 1, 1_250),
        (Chain::Called, urgency, 10_000_000, 1_250),
        (Chain::Harmonic, rates, 10_000_000, 1_250),
        (Chain::DispatchedThreads, urgency, 10_000_000, 1_250),
    ] {
        let half = steps(&chain(count, kind, worst), strategy);
        let all = steps(&chain(2 * count, kind, worst), strategy);
        assert!(
            all * 2 <= half * 5,
            "{kind:?}, {worst}: {all} steps for {}, {half} for half",
            2 * count
        );
    }
}

/// The anomalies of a computation with these steps for the choice of rates and the analysis.
fn anomalies(snapshot: &Snapshot, steps: [u64; 2]) -> (bool, Vec<(AnomalySeverity, String)>) {
    let strategy = LevelStrategy::RateMonotonic;
    let mut budgets = steps.map(Budget::of);
    let computation = compute_within(snapshot, 64, strategy, RANGE, &mut budgets);
    let anomalies = computation.anomalies.into_iter();
    let texts = anomalies.map(|it| (it.severity, it.description));
    (computation.schedule.is_some(), texts.collect())
}

#[test]
fn a_budget_ends_a_computation_with_an_anomaly() {
    let snapshot = chain(10, Chain::Harmonic, 1);
    let mut budgets = unbounded();
    let strategy = LevelStrategy::RateMonotonic;
    compute_within(&snapshot, 64, strategy, RANGE, &mut budgets);
    let [all, _] = budgets.map(|it| it.taken());
    assert_eq!(anomalies(&snapshot, [all, u64::MAX]), (true, Vec::new()));

    let few = "the schedule is not computed: it needs more than 20 steps: use fewer rates, \
               dependencies or different periods";
    let fatal = (AnomalySeverity::AnomalyFatal, few.to_owned());
    assert_eq!(anomalies(&snapshot, [20, u64::MAX]), (false, vec![fatal]));

    let (has_schedule, texts) = anomalies(&snapshot, [all - 1, u64::MAX]);
    assert!(has_schedule);
    let [(AnomalySeverity::AnomalyWarning, text)] = &texts[..] else {
        panic!("{texts:?}");
    };
    let expected = "further rates are not admitted, because their computation exceeds its steps";
    assert!(text.contains(expected), "{text}");

    let few = "the schedule is not analysed: it needs more than 1 steps: use fewer rates, \
               dependencies or different periods";
    let error = (AnomalySeverity::AnomalyError, few.to_owned());
    assert_eq!(anomalies(&snapshot, [all, 1]), (true, vec![error]));
}

#[test]
fn anomalies_have_a_bound_of_octets() {
    let name = |number: usize| format!("{number:01000}");
    let create = |number| operation(name(number), vec![Rate::default()]);
    let snapshot = Snapshot {
        operations: (0..2_000).map(create).collect(),
        dependencies: Vec::new(),
    };
    let (has_schedule, texts) = anomalies(&snapshot, [u64::MAX; 2]);
    assert!(has_schedule);
    assert!(texts.iter().map(|(_, text)| text.len()).sum::<usize>() < (1 << 20) + 100);
    let left_out = format!("{} more anomalies are left out", 2_000 - (texts.len() - 1));
    assert_eq!(
        texts.last(),
        Some(&(AnomalySeverity::AnomalyError, left_out))
    );
}
