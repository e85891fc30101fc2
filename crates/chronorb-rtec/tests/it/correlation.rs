//! Cases 7 to 10 and 15: groups of events.

use chronorb_events::Filter;
use chronorb_rtec::Rules;

use crate::support::{Set, conjunction, everywhere_by, leaf};

const A: (i32, i32) = (1, 20);
const B: (i32, i32) = (2, 20);
const C: (i32, i32) = (3, 20);
const D: (i32, i32) = (4, 20);

#[test]
fn case_7_a_conjunction_keeps_the_first_of_each_and_the_order_of_arrival() {
    everywhere_by(|f, _| {
        let filter = conjunction([A, B]);
        assert_eq!(f.sets_of(&filter, &[A, A, B]), [[A, B]]);
        assert_eq!(f.sets_of(&filter, &[A, B, B, A]), [[A, B], [B, A]]);
    });
}

#[test]
fn case_8_conjunctions_of_a_disjunction_do_not_starve_each_other() {
    everywhere_by(|f, rules| {
        let filter = conjunction([A, B]) | conjunction([B, C]);
        let sets = f.sets_of(&filter, &[B, C]);
        match rules {
            Rules::Corrected => assert_eq!(sets, [[B, C]]),
            Rules::Tao => assert_eq!(sets, Vec::<Set>::new()),
        }
    });
}

#[test]
fn case_9_a_wildcard_in_a_conjunction_does_not_starve_the_others() {
    everywhere_by(|f, rules| {
        let filter = Filter::Conjunction(vec![Filter::Everything, leaf(A)]);
        let sets = f.sets_of(&filter, &[A, A]);
        match rules {
            Rules::Corrected => assert_eq!(sets, [[A, A]]),
            Rules::Tao => assert_eq!(sets, Vec::<Set>::new()),
        }
    });
}

#[test]
fn case_10_a_delivery_resets_what_made_it_and_no_sibling() {
    everywhere_by(|f, rules| {
        let filter = conjunction([A, B]) | leaf(D);
        let sets = f.sets_of(&filter, &[A, D, B]);
        match rules {
            Rules::Corrected => assert_eq!(sets, [vec![D], vec![A, B]]),
            Rules::Tao => assert_eq!(sets, [[D]]),
        }
    });
}

#[test]
fn case_15_a_suspended_conjunction_takes_no_events() {
    everywhere_by(|f, _| {
        let consumer = f.subscribe(&conjunction([A, B]));
        let supplier = f.supplier(&[(0, 0)]);
        consumer.proxy.suspend_connection().unwrap();
        f.push(&supplier, &[A, B]);
        consumer.proxy.resume_connection().unwrap();
        f.push(&supplier, &[B, A]);
        assert_eq!(f.sets(&consumer), [[B, A]]);
    });
}

#[test]
fn case_16_events_of_a_suspended_consumer_are_not_kept() {
    everywhere_by(|f, _| {
        let consumer = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(0, 0)]);
        consumer.proxy.resume_connection().unwrap();
        f.push(&supplier, &[A]);
        for _ in 0..2 {
            consumer.proxy.suspend_connection().unwrap();
        }
        f.push(&supplier, &[B]);
        assert!(f.state_of(consumer.number).unwrap().is_suspended);
        consumer.proxy.resume_connection().unwrap();
        f.push(&supplier, &[C]);
        assert_eq!(f.sets(&consumer), [[A], [C]]);
    });
}
