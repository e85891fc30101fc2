//! Cases 11 to 14: timers, in virtual time.

use chronorb_events::{DEADLINE_TIMEOUT, Filter, INTERVAL_TIMEOUT, TIMEOUT};
use chronorb_rtec::Rules;

use crate::support::{MS, everywhere_by, leaf, ms, single};

const A: (i32, i32) = (1, 20);
const B: (i32, i32) = (2, 20);

#[test]
fn case_11_an_interval_ticks_at_exact_multiples() {
    everywhere_by(|f, _| {
        let consumer = f.subscribe(&Filter::each(ms(100)));
        f.run_until(99 * MS);
        assert_eq!(f.sets(&consumer).len(), 0);
        for tick in 1..=50 {
            f.run_until(tick * 100 * MS);
            assert_eq!(f.sets(&consumer).len() as u64, tick);
        }
        assert_eq!(f.sets(&consumer)[49], [(0, INTERVAL_TIMEOUT)]);
    });
}

#[test]
fn case_12_an_interval_and_an_event_make_a_set_for_each_tick() {
    everywhere_by(|f, _| {
        let filter = Filter::Conjunction(vec![Filter::each(ms(200)), Filter::of_type(20)]);
        let consumer = f.subscribe(&filter);
        let supplier = f.supplier(&[A]);
        for step in 1..=100 {
            f.run_until(step * 50 * MS);
            f.push(&supplier, &[A]);
        }
        let sets = f.sets(&consumer);
        assert_eq!(sets.len(), 25);
        assert_eq!(sets[0], [A, (0, INTERVAL_TIMEOUT)]);
    });
}

#[test]
fn case_13_a_deadline_fires_when_nothing_was_delivered() {
    everywhere_by(|f, _| {
        let consumer = f.subscribe(&(Filter::silence(ms(80)) | Filter::of_type(20)));
        let supplier = f.supplier(&[A]);
        for step in 1..=100 {
            f.run_until(step * 50 * MS);
            f.push(&supplier, &[A]);
        }
        assert_eq!(f.sets(&consumer), single(&[A; 100]));
        f.run_until(5_079 * MS);
        assert_eq!(f.sets(&consumer).len(), 100);
        f.run_until(5_240 * MS);
        let timeouts = f.sets(&consumer).split_off(100);
        assert_eq!(timeouts, single(&[(0, DEADLINE_TIMEOUT); 3]));
    });
}

#[test]
fn case_14_a_deadline_in_a_conjunction_stands_for_the_missing_events() {
    everywhere_by(|f, rules| {
        let filter = Filter::Conjunction(vec![leaf(A), leaf(B), Filter::silence(ms(80))]);
        let consumer = f.subscribe(&filter);
        let supplier = f.supplier(&[A, B]);
        f.push(&supplier, &[A]);
        f.run_until(80 * MS);
        let timeout = (0, DEADLINE_TIMEOUT);
        match rules {
            Rules::Corrected => assert_eq!(f.sets(&consumer), [[A, timeout]]),
            Rules::Tao => {
                assert_eq!(f.sets(&consumer).len(), 0);
                f.push(&supplier, &[B]);
                assert_eq!(f.sets(&consumer), [[A, timeout, B]]);
            }
        }
    });
}

#[test]
fn a_one_shot_timer_fires_once() {
    everywhere_by(|f, _| {
        let consumer = f.subscribe(&Filter::after(ms(5)));
        f.run_until(1_000 * MS);
        assert_eq!(f.sets(&consumer), [[(0, TIMEOUT)]]);
    });
}

#[test]
fn the_timers_of_a_consumer_end_with_it() {
    everywhere_by(|f, _| {
        let consumer = f.subscribe(&Filter::each(ms(1)));
        consumer.proxy.disconnect_push_supplier().unwrap();
        assert_eq!(f.service.run_timers(), None);
    });
}
