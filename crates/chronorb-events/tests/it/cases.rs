//! The conformance cases of a real-time channel that concern its core.

use std::time::Duration;

use chronorb_events::{
    DEADLINE_TIMEOUT, Event, Filter, INTERVAL_TIMEOUT, Lane, Limits, Program, Rules,
    SubscriptionError, TIMEOUT,
};

use crate::support::{MS, Script, Set, ms, sets_of};

const BOTH: [Rules; 2] = [Rules::Corrected, Rules::Tao];

const A: (i32, i32) = (1, 20);
const B: (i32, i32) = (2, 20);
const C: (i32, i32) = (3, 20);
const D: (i32, i32) = (4, 20);

fn leaf((source, event_type): (i32, i32)) -> Filter {
    Filter::event(source, event_type)
}

fn conjunction<const N: usize>(events: [(i32, i32); N]) -> Filter {
    Filter::Conjunction(events.map(leaf).into())
}

fn single(events: &[(i32, i32)]) -> Vec<Set> {
    events.iter().map(|event| vec![*event]).collect()
}

#[test]
fn wildcards_match_every_source_or_type() {
    for rules in BOTH {
        let mut script = Script::with(rules);
        let filters = [(10, 20), (10, 0), (0, 20), (0, 0)].map(leaf);
        let ids = filters.map(|filter| script.subscribe(&filter));
        script.push(10, 20);
        script.push(11, 21);
        assert_eq!(ids.map(|id| script.sets(id).len()), [1, 1, 1, 2]);
    }
}

#[test]
fn events_without_a_source_or_a_type_pass_every_filter_of_them() {
    for rules in BOTH {
        assert_eq!(sets_of(rules, &leaf((10, 20)), &[(0, 20)]).len(), 1);
        assert_eq!(sets_of(rules, &leaf((10, 20)), &[(10, 0)]).len(), 1);
        assert_eq!(sets_of(rules, &leaf((10, 20)), &[(0, 0)]).len(), 1);
        assert_eq!(sets_of(rules, &leaf((10, 0)), &[(0, 20)]).len(), 1);
        assert_eq!(sets_of(rules, &leaf((10, 20)), &[(0, 21)]).len(), 0);
    }
}

#[test]
fn negations_deliver_the_others() {
    for rules in BOTH {
        let sets = sets_of(rules, &!leaf((10, 20)), &[(10, 20), (10, 21)]);
        assert_eq!(sets, single(&[(10, 21)]));
    }
}

#[test]
fn logical_ands_deliver_what_every_child_accepts() {
    let events = [(10, 20), (10, 21), (11, 20), (11, 21)];
    for rules in BOTH {
        let filter = !Filter::from_source(11) & Filter::of_type(20);
        assert_eq!(sets_of(rules, &filter, &events), single(&[(10, 20)]));
        let filter = Filter::Everything & !leaf((10, 20));
        assert_eq!(sets_of(rules, &filter, &events), single(&events[1..]));
    }
}

#[test]
fn masks_need_a_bit_of_the_source_and_of_the_type() {
    let suppliers = [(0x1111, 0x1111_0000), (0x0110_0000, 0x0110)];
    let bits = |source_mask, type_mask, then| Filter::Bits {
        source_mask,
        type_mask,
        then: Box::new(then),
    };
    for rules in BOTH {
        let of = |filter: &Filter| sets_of(rules, filter, &suppliers);
        let first = bits(0x1111, 0x1111_0000, leaf((0x0110_0000, 0x0110)));
        assert_eq!(of(&first), Vec::<Set>::new());
        let second = bits(0x0110_0110, 0x0110_0110, Filter::Everything);
        assert_eq!(of(&second), single(&suppliers));
        let third = bits(0x0110, 0x0110_0000, Filter::Everything);
        assert_eq!(of(&third), single(&suppliers[..1]));
    }
}

#[test]
fn masked_values_are_compared() {
    let suppliers = [(0x1111, 0x1111_0000), (0x0110_0000, 0x0110)];
    let filter = Filter::Masked {
        source_mask: 0x1111_0000,
        type_mask: 0x1111,
        source_value: 0x0110_0000,
        type_value: 0x0110,
    };
    for rules in BOTH {
        assert_eq!(sets_of(rules, &filter, &suppliers), single(&suppliers[1..]));
    }
}

#[test]
fn a_conjunction_keeps_the_first_of_each_and_the_order_of_arrival() {
    for rules in BOTH {
        let filter = conjunction([A, B]);
        assert_eq!(sets_of(rules, &filter, &[A, A, B]), [[A, B]]);
        assert_eq!(sets_of(rules, &filter, &[B, A]), [[B, A]]);
        assert_eq!(sets_of(rules, &filter, &[A, B, B, A]), [[A, B], [B, A]]);
    }
}

#[test]
fn conjunctions_of_a_disjunction_do_not_starve_each_other() {
    let filter = conjunction([A, B]) | conjunction([B, C]);
    assert_eq!(sets_of(Rules::Corrected, &filter, &[B, C]), [[B, C]]);
    let both = [vec![A, B], vec![C, B]];
    assert_eq!(sets_of(Rules::Corrected, &filter, &[A, C, B]), both);
    assert_eq!(sets_of(Rules::Tao, &filter, &[B, C]), Vec::<Set>::new());
}

#[test]
fn a_wildcard_in_a_conjunction_does_not_starve_the_others() {
    let filter = Filter::Conjunction(vec![Filter::Everything, leaf(A)]);
    assert_eq!(sets_of(Rules::Corrected, &filter, &[A, A]), [[A, A]]);
    assert_eq!(sets_of(Rules::Tao, &filter, &[A, A]), Vec::<Set>::new());
}

#[test]
fn a_delivery_resets_what_made_it_and_no_sibling() {
    let filter = conjunction([A, B]) | leaf(D);
    let kept = [vec![D], vec![A, B]];
    assert_eq!(sets_of(Rules::Corrected, &filter, &[A, D, B]), kept);
    assert_eq!(sets_of(Rules::Tao, &filter, &[A, D, B]), [[D]]);
}

#[test]
fn an_event_is_delivered_by_itself_once() {
    for rules in BOTH {
        let filter = leaf(A) | Filter::Everything | Filter::of_type(20);
        assert_eq!(sets_of(rules, &filter, &[A]), [[A]]);
    }
}

#[test]
fn groups_nest() {
    let inner = conjunction([A, B]) | leaf(C);
    let filter = Filter::Conjunction(vec![leaf(D), inner]);
    assert_eq!(sets_of(Rules::Corrected, &filter, &[A, D, B]), [[A, D, B]]);
    assert_eq!(sets_of(Rules::Corrected, &filter, &[C, D]), [[C, D]]);
}

#[test]
fn an_interval_ticks_at_exact_multiples() {
    for rules in BOTH {
        let mut script = Script::with(rules);
        let id = script.subscribe(&Filter::each(ms(100)));
        script.run_until(5_000 * MS);
        let exact: Vec<_> = (1..=50).map(|tick| tick * 100 * MS).collect();
        assert_eq!(script.times(id), exact);
        assert_eq!(script.sets(id)[0], [(0, INTERVAL_TIMEOUT)]);
    }
}

#[test]
fn a_late_interval_ticks_once_and_stays_on_its_grid() {
    let mut script = Script::new();
    let program = Program::compile(&Filter::each(ms(100)), Rules::Corrected, &Limits::default());
    script
        .lane
        .subscribe(program.expect("it is valid").into(), 0, 0);
    let mut due = Vec::new();
    script.lane.expire(350 * MS, |_, set| {
        due.push(set[0].header.creation_time * 100);
    });
    assert_eq!(due, [300 * MS]);
    assert_eq!(script.lane.next_due(), Some(400 * MS));
}

#[test]
fn an_interval_and_an_event_make_a_set_for_each_tick() {
    for rules in BOTH {
        let mut script = Script::with(rules);
        let filter = Filter::Conjunction(vec![Filter::each(ms(200)), Filter::of_type(20)]);
        let id = script.subscribe(&filter);
        for step in 1..=100 {
            script.run_until(step * 50 * MS);
            script.push(1, 20);
        }
        let sets = script.sets(id);
        assert_eq!(sets.len(), 25);
        assert_eq!(sets[0], [(1, 20), (0, INTERVAL_TIMEOUT)]);
    }
}

#[test]
fn a_deadline_fires_when_nothing_was_delivered() {
    for rules in BOTH {
        let mut script = Script::with(rules);
        let id = script.subscribe(&(Filter::silence(ms(80)) | Filter::of_type(20)));
        for step in 1..=100 {
            script.run_until(step * 50 * MS);
            script.push(1, 20);
        }
        assert_eq!(script.sets(id), single(&[(1, 20); 100]));
        script.run_until(5_250 * MS);
        let after = script.times(id).split_off(100);
        assert_eq!(after, [5_080, 5_160, 5_240].map(|at| at * MS));
    }
}

#[test]
fn a_deadline_in_a_conjunction_stands_for_the_missing_events() {
    let filter = Filter::Conjunction(vec![leaf(A), leaf(B), Filter::silence(ms(80))]);
    let mut script = Script::new();
    let id = script.subscribe(&filter);
    script.run_until(10 * MS);
    script.push(A.0, A.1);
    script.run_until(80 * MS);
    assert_eq!(script.sets(id), [[A, (0, DEADLINE_TIMEOUT)]]);

    script.push(A.0, A.1);
    script.run_until(150 * MS);
    script.push(B.0, B.1);
    assert_eq!(script.sets(id)[1..], [[A, B]]);
    script.run_until(229 * MS);
    assert_eq!(script.sets(id).len(), 2, "the deadline began anew");
    script.run_until(230 * MS);
    assert_eq!(script.sets(id)[2..], [[(0, DEADLINE_TIMEOUT)]]);
}

#[test]
fn a_deadline_in_a_conjunction_is_one_more_child_to_tao() {
    let filter = Filter::Conjunction(vec![leaf(A), leaf(B), Filter::silence(ms(80))]);
    let mut script = Script::with(Rules::Tao);
    let id = script.subscribe(&filter);
    script.push(A.0, A.1);
    script.run_until(100 * MS);
    assert_eq!(script.sets(id), Vec::<Set>::new());
    script.push(B.0, B.1);
    assert_eq!(script.sets(id), [[A, (0, DEADLINE_TIMEOUT), B]]);
}

#[test]
fn a_one_shot_timer_fires_once() {
    let mut script = Script::new();
    let id = script.subscribe(&Filter::after(ms(5)));
    script.run_until(1_000 * MS);
    assert_eq!(script.sets(id), [[(0, TIMEOUT)]]);
    assert_eq!(script.times(id), [5 * MS]);
    assert_eq!(script.lane.next_due(), None);
}

#[test]
fn the_event_of_a_timer_is_for_its_own_node() {
    for rules in BOTH {
        let mut script = Script::with(rules);
        let wild = script.subscribe(&Filter::Everything);
        let group = Filter::Conjunction(vec![Filter::from_source(7), Filter::each(ms(10))]);
        let group = script.subscribe(&group);
        script.run_until(10 * MS);
        script.push(7, 20);
        assert_eq!(script.sets(wild), [[(7, 20)]]);
        assert_eq!(script.sets(group), [[(0, INTERVAL_TIMEOUT), (7, 20)]]);
    }
}

#[test]
fn a_suspended_subscription_neither_gets_nor_keeps_events() {
    for rules in BOTH {
        let mut script = Script::with(rules);
        let id = script.subscribe(&conjunction([A, B]));
        assert!(script.lane.suspend(id));
        assert!(script.lane.suspend(id), "twice is no error");
        script.push(A.0, A.1);
        script.push(B.0, B.1);
        assert!(script.lane.resume(id, script.now));
        assert!(script.lane.resume(id, script.now), "twice is no error");
        script.push(A.0, A.1);
        script.push(B.0, B.1);
        assert_eq!(script.sets(id), [[A, B]]);
    }
}

#[test]
fn a_removed_subscription_gets_nothing() {
    let mut script = Script::new();
    let removed = script.subscribe(&(Filter::Everything | Filter::each(ms(1))));
    let other = script.subscribe(&Filter::Everything);
    assert!(script.lane.unsubscribe(removed));
    assert!(!script.lane.unsubscribe(removed));
    script.push(1, 20);
    script.run_until(10 * MS);
    assert_eq!(script.sets(removed), Vec::<Set>::new());
    assert_eq!(script.sets(other).len(), 1);
    assert_eq!(script.lane.next_due(), None);
}

#[test]
fn lower_subpriorities_are_served_first() {
    let mut script = Script::new();
    let program = |filter: Filter| {
        let program = Program::compile(&filter, Rules::Corrected, &Limits::default());
        program.expect("it is valid").into()
    };
    let late = script.lane.subscribe(program(leaf(A)), 2, 0);
    let first = script.lane.subscribe(program(Filter::Everything), -1, 0);
    let next = script.lane.subscribe(program(Filter::of_type(20)), 0, 0);
    let last = script.lane.subscribe(program(Filter::from_source(1)), 2, 0);
    script.push(A.0, A.1);
    let order: Vec<_> = script.all().into_iter().map(|(id, _)| id).collect();
    assert_eq!(order, [first, next, late, last]);
}

#[test]
fn groups_without_children_accept_nothing() {
    let events = [A, B, (0, 0)];
    for rules in BOTH {
        let groups: [fn(Vec<Filter>) -> Filter; 3] =
            [Filter::Any, Filter::All, Filter::Conjunction];
        for group in groups {
            let empty = group(vec![]);
            let program = Program::compile(&empty, rules, &Limits::default()).unwrap();
            assert!(program.is_stateless() && program.leaves().is_empty());
            let nothing = Vec::<Set>::new();
            assert_eq!(sets_of(rules, &empty, &events), nothing);
            assert_eq!(sets_of(rules, &(leaf(A) & empty.clone()), &events), nothing);
            let pair = Filter::Conjunction(vec![leaf(A), empty.clone()]);
            assert_eq!(sets_of(rules, &pair, &events), nothing);
            let either = Filter::Any(vec![empty.clone(), leaf(A)]);
            assert_eq!(sets_of(rules, &either, &[A, B]), single(&[A]));
            assert_eq!(sets_of(rules, &!empty, &[A, B]), single(&[A, B]));
        }
    }
}

#[test]
fn with_the_rules_of_tao_a_nested_set_stands_where_it_was_complete() {
    let filter = Filter::Conjunction(vec![conjunction([A, B]), leaf(C)]);
    let sets = |rules| sets_of(rules, &filter, &[A, C, B]);
    assert_eq!(sets(Rules::Corrected), [[A, C, B]]);
    assert_eq!(sets(Rules::Tao), [[C, A, B]]);
}

#[test]
fn filters_that_cannot_be_served_are_refused() {
    let compile = |filter: &Filter| {
        let limits = Limits::default();
        Program::compile(filter, Rules::Corrected, &limits).map(drop)
    };
    let stateful = Err(SubscriptionError::StatefulOperand);
    assert_eq!(compile(&!conjunction([A, B])), stateful);
    assert_eq!(compile(&(leaf(A) & Filter::each(ms(1)))), stateful);

    let mut deep = leaf(A);
    for _ in 0..32 {
        deep = !deep;
    }
    assert_eq!(
        compile(&deep),
        Err(SubscriptionError::TooDeep { limit: 32 })
    );

    let many = Filter::Any(vec![leaf(A); 1024]);
    assert_eq!(
        compile(&many),
        Err(SubscriptionError::TooLarge { limit: 1024 })
    );

    let short = Duration::from_nanos(999_999);
    for time in [
        Duration::ZERO,
        Duration::from_nanos(1),
        short,
        Duration::MAX,
    ] {
        let refused = compile(&Filter::each(time));
        let is_bad =
            matches!(refused, Err(SubscriptionError::BadTime { time: t, .. }) if t == time);
        assert!(is_bad, "{refused:?}");
    }
}

#[test]
fn the_timers_of_a_filter_have_a_greatest_rate() {
    let compile = |filter: &Filter, firings_per_second| {
        let limits = Limits {
            firings_per_second,
            ..Limits::default()
        };
        Program::compile(filter, Rules::Corrected, &limits).map(drop)
    };
    let each = |time, number| vec![Filter::each(Duration::from_millis(time)); number];
    let rate = |filter: &Filter| filter.firings_per_second();
    assert_eq!(rate(&leaf(A)), 0);
    assert_eq!(rate(&Filter::after(ms(1))), 0);
    assert_eq!(rate(&Filter::each(ms(1))), 1000);
    assert_eq!(rate(&Filter::silence(ms(1))), 1000);
    assert_eq!(rate(&Filter::each(ms(3000))), 1);
    assert_eq!(rate(&Filter::Any(each(3000, 3000))), 1000);
    assert_eq!(rate(&Filter::Any(each(3000, 3001))), 1001);
    assert_eq!(rate(&Filter::each(Duration::MAX)), 1);
    assert_eq!(rate(&Filter::each(Duration::ZERO)), u64::MAX);
    assert_eq!(rate(&Filter::Any(each(0, 3))), u64::MAX);
    let nested = Filter::Bits {
        source_mask: 1,
        type_mask: 1,
        then: Box::new(Filter::Conjunction(vec![
            leaf(A),
            Filter::Any(vec![Filter::each(ms(10)), Filter::silence(ms(20))]),
            Filter::after(ms(1)),
        ])),
    };
    assert_eq!(rate(&nested), 150);
    assert_eq!(nested.nodes(), 7);
    assert_eq!((!leaf(A) & leaf(B)).nodes(), 4);
    assert_eq!(compile(&nested, 150), Ok(()));
    let refused = SubscriptionError::TooFrequent {
        rate: 150,
        limit: 149,
    };
    assert_eq!(compile(&nested, 149), Err(refused));
    assert_eq!(
        refused.to_string(),
        "the timers of the subscription fire 150 times a second; the limit is 149"
    );
    // By default that of one timer of the least time.
    let default = Limits::default().firings_per_second;
    assert_eq!(compile(&Filter::each(ms(1)), default), Ok(()));
    let two = Filter::Any(each(1, 2));
    assert!(compile(&two, default).is_err());
}

/// Timers that fire one by one deliver what they deliver together, in the same order.
#[test]
fn timers_fire_one_by_one() {
    let filter = Filter::each(ms(10)) | Filter::after(ms(5)) | Filter::silence(ms(7));
    let run = |is_stepped: bool| {
        let mut lane = Lane::new();
        let program = Program::compile(&filter, Rules::Corrected, &Limits::default());
        lane.subscribe(program.expect("a filter").into(), 0, 0);
        let mut fired = Vec::new();
        for now in [4, 26, 60].map(|now| now * MS) {
            let mut deliver = |_, set: &[Event<()>]| fired.push(set[0].header);
            if is_stepped {
                while lane.fire_next(now, &mut deliver) {}
            } else {
                lane.expire(now, &mut deliver);
            }
            assert!(lane.next_due().is_some_and(|due| due > now));
        }
        fired
    };
    let fired = run(true);
    assert_eq!(fired, run(false));
    // The intervals of 10 ms at 20 and 60, and not those that were missed.
    let ticks = fired
        .iter()
        .filter(|one| one.event_type == INTERVAL_TIMEOUT);
    let ticks: Vec<_> = ticks.map(|one| one.creation_time * 100 / MS).collect();
    assert_eq!(ticks, [20, 60]);
}
