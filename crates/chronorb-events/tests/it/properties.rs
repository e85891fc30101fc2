//! Random subscriptions and scripts: a lane delivers what the model delivers.

use std::time::Duration;

use chronorb_events::{
    Filter, Header, Limits, Notation, Program, Routes, Rules, TimerKind, read_entries,
    write_entries,
};
use proptest::prelude::*;

use crate::model::Model;
use crate::support::{MS, Script};

fn number() -> impl Strategy<Value = i32> {
    prop::sample::select(vec![0, 1, 2, 3, 16, 17, 20])
}

fn stateless() -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![
        4 => (number(), number()).prop_map(|(a, b)| Filter::event(a, b)),
        1 => Just(Filter::Everything),
        1 => (number(), number(), number(), number()).prop_map(|(a, b, c, d)| Filter::Masked {
            source_mask: a,
            type_mask: b,
            source_value: c & a,
            type_value: d & b,
        }),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| !one),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::All),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::Any),
            (number(), number(), inner).prop_map(|(a, b, one)| bits(a, b, one)),
        ]
    })
}

fn bits(source_mask: i32, type_mask: i32, then: Filter) -> Filter {
    Filter::Bits {
        source_mask,
        type_mask,
        then: Box::new(then),
    }
}

fn timer() -> impl Strategy<Value = Filter> {
    let kinds = vec![TimerKind::Once, TimerKind::Interval, TimerKind::Deadline];
    // No two of the times have a multiple in common within a script.
    let times = prop::sample::select(vec![3_u64, 7, 11]);
    (prop::sample::select(kinds), times).prop_map(|(kind, time)| Filter::Timer {
        kind,
        time: Duration::from_millis(time),
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![4 => stateless(), 1 => timer()];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::Conjunction),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Filter::Any),
            (number(), number(), inner).prop_map(|(a, b, one)| bits(a, b, one)),
        ]
    })
}

#[derive(Debug, Clone)]
enum Step {
    Push(i32, i32),
    Run(u64),
    Subscribe(Filter),
    Unsubscribe(usize),
    Suspend(usize),
    Resume(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (number(), number()).prop_map(|(source, event_type)| Step::Push(source, event_type)),
        4 => (1_u64..9).prop_map(Step::Run),
        2 => filter().prop_map(Step::Subscribe),
        1 => (0_usize..8).prop_map(Step::Unsubscribe),
        1 => (0_usize..8).prop_map(Step::Suspend),
        1 => (0_usize..8).prop_map(Step::Resume),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    prop::sample::select(vec![Rules::Corrected, Rules::Tao])
}

proptest! {
    #[test]
    fn a_lane_delivers_what_the_model_delivers(
        rules in rules(),
        filters in prop::collection::vec(filter(), 1..6),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let (mut script, mut model) = (Script::with(rules), Model::new(rules));
        let mut ids = Vec::new();
        let first = filters.into_iter().map(Step::Subscribe);
        for step in first.chain(steps) {
            match step {
                Step::Push(source, event_type) => {
                    script.push(source, event_type);
                    let header = Header { source, event_type, ..Header::default() };
                    model.push(header, script.now);
                }
                Step::Run(time) => {
                    script.run_until(script.now + time * MS);
                    model.run_until(script.now);
                }
                Step::Subscribe(filter) => {
                    model.subscribe(ids.len(), &filter, script.now);
                    ids.push(script.subscribe(&filter));
                }
                Step::Unsubscribe(name) if name < ids.len() => {
                    script.lane.unsubscribe(ids[name]);
                    model.unsubscribe(name);
                }
                Step::Suspend(name) if name < ids.len() => {
                    script.lane.suspend(ids[name]);
                    model.suspend(name);
                }
                Step::Resume(name) if name < ids.len() => {
                    script.lane.resume(ids[name], script.now);
                    model.resume(name, script.now);
                }
                Step::Unsubscribe(_) | Step::Suspend(_) | Step::Resume(_) => {}
            }
        }
        let name = |id| ids.iter().position(|one| *one == id).expect("it is there");
        let delivered: Vec<_> =
            script.all().into_iter().map(|(id, set)| (name(id), set)).collect();
        prop_assert_eq!(delivered, model.delivered);
    }

    /// The subscriptions that accept an event are those among its candidates that do, in order and
    /// each once.
    #[test]
    fn routes_find_what_accepts(
        filters in prop::collection::vec((stateless(), any::<bool>()), 1..12),
        wide in prop::collection::vec(any::<(i32, i32)>(), 0..8),
    ) {
        let compile = |filter: &Filter| {
            let program = Program::compile(filter, Rules::Corrected, &Limits::default());
            program.expect("the filter is valid")
        };
        let programs: Vec<_> = filters.iter().map(|(filter, _)| compile(filter)).collect();
        let mut routes = Routes::new();
        for (number, program) in programs.iter().enumerate().rev() {
            routes.insert(program, number);
        }
        let all = routes.clone();
        for (number, (_, is_removed)) in filters.iter().enumerate() {
            if *is_removed {
                routes.remove(&programs[number], &number);
            }
        }
        let near = (0..22).flat_map(|source| (0..22).map(move |event_type| (source, event_type)));
        for (source, event_type) in near.chain(wide) {
            let header = Header { source, event_type, ..Header::default() };
            let accepting = |is_there: &dyn Fn(usize) -> bool| {
                let accepts = |number: &usize| {
                    let accepts = programs[*number].accepts(&header);
                    assert_eq!(accepts, filters[*number].0.passes(&header));
                    is_there(*number) && accepts
                };
                (0..programs.len()).filter(accepts).collect::<Vec<_>>()
            };
            let found = |routes: &Routes<usize>| {
                let candidates = routes.candidates(&header).copied();
                candidates.filter(|number| programs[*number].accepts(&header)).collect::<Vec<_>>()
            };
            prop_assert_eq!(found(&all), accepting(&|_| true));
            prop_assert_eq!(found(&routes), accepting(&|number| !filters[number].1));
            prop_assert!(routes.candidates(&header).is_sorted());
        }
    }

    /// A filter that is written as entries reads back as the same filter.
    #[test]
    fn entries_read_back(filter in filter()) {
        let entries = write_entries(&filter);
        for rules in [Rules::Corrected, Rules::Tao] {
            let read = read_entries(&entries, Notation::Prefix, rules, &Limits::default());
            prop_assert_eq!(read, Ok(filter.clone()));
        }
    }

    /// Any entries make a program or an error, and a program keeps within the limits.
    #[test]
    fn any_entries_are_read_or_refused(
        entries in prop::collection::vec((-2_i32..6, 0_i32..18, any::<u64>()), 0..40),
        is_basic in any::<bool>(),
        rules in rules(),
    ) {
        let notation = if is_basic { Notation::Basic } else { Notation::Prefix };
        let entry = |(source, event_type, time)| chronorb_events::Entry {
            source,
            event_type,
            time,
        };
        let entries: Vec<_> = entries.into_iter().map(entry).collect();
        let limits = Limits::default();
        if let Ok(filter) = read_entries(&entries, notation, rules, &limits) {
            let _ = Program::compile(&filter, rules, &limits);
        }
    }
}
