//! The scheduling parameters of a request.

use chronorb_cdr::CdrError;
use chronorb_giop::{AbsoluteDeadline, SchedulingContext, SchedulingDiscipline, SynchronisedClock};
use proptest::prelude::*;

/// A content in big-endian order, with all fields.
fn big_endian() -> Vec<u8> {
    [
        &[0, 1][..],
        &0b1_1111_u16.to_be_bytes(),
        &(-2_i16).to_be_bytes(),
        &7_i16.to_be_bytes(),
        b"0123456789abcdef",
        &(-5_i64).to_be_bytes(),
        &1_900_000_000_000_000_000_u64.to_be_bytes(),
        &18_000_000_u64.to_be_bytes(),
        &10_000_000_u32.to_be_bytes(),
        &3_u16.to_be_bytes(),
        &4_u16.to_be_bytes(),
    ]
    .concat()
}

fn whole() -> SchedulingContext {
    SchedulingContext {
        relative: Some(-5),
        absolute: Some(AbsoluteDeadline {
            tai: 1_900_000_000_000_000_000,
            uncertainty: 10_000_000,
        }),
        execution: 18_000_000,
        criticality: -2,
        importance: 7,
        guid: *b"0123456789abcdef",
        discipline: Some(SchedulingDiscipline::Urgency),
        hops: 3,
        begins_thread: true,
        cancelled: true,
        monitored: true,
    }
}

#[test]
fn either_byte_order_is_read() {
    assert_eq!(big_endian().len(), SchedulingContext::LEN);
    assert_eq!(SchedulingContext::decode(&big_endian()), Ok(Some(whole())));
    let native = whole().encode();
    assert_eq!(SchedulingContext::decode(&native), Ok(Some(whole())));
}

#[test]
fn content_of_another_length_is_an_error() {
    let data = big_endian();
    for length in 0..data.len() {
        let short = SchedulingContext::decode(&data[..length]);
        assert_eq!(short, Err(CdrError::EndOfData), "{length} octets");
    }
    let long = [&data[..], &[0]].concat();
    let long = SchedulingContext::decode(&long);
    assert_eq!(long, Err(CdrError::LengthOverflow));
}

#[test]
fn another_version_has_no_effect() {
    for version in [0, 2, u8::MAX] {
        assert_eq!(SchedulingContext::decode(&[1, version]), Ok(None));
        let mut data = big_endian();
        data[1] = version;
        assert_eq!(SchedulingContext::decode(&data), Ok(None));
    }
}

#[test]
fn unknown_flags_and_disciplines_have_no_effect() {
    let mut data = big_endian();
    data[2] = 0xFF;
    data[54..].copy_from_slice(&5_u16.to_be_bytes());
    let known = SchedulingContext {
        discipline: None,
        ..whole()
    };
    assert_eq!(SchedulingContext::decode(&data), Ok(Some(known)));
}

#[test]
fn deadlines_without_their_flag_are_not_read() {
    let mut data = big_endian();
    data[3] = 0;
    let context = SchedulingContext::decode(&data).expect("well formed");
    let context = context.expect("version 1");
    assert_eq!((context.relative, context.absolute), (None, None));
    let now = SynchronisedClock {
        now: 0,
        uncertainty: 0,
    };
    assert_eq!(context.remaining(Some(now)), None);
}

#[test]
fn the_lesser_deadline_has_effect_where_clocks_are_synchronised() {
    let both = |relative, tai| SchedulingContext {
        relative,
        absolute: Some(AbsoluteDeadline {
            tai,
            uncertainty: 3,
        }),
        ..SchedulingContext::default()
    };
    let clock = |now| {
        let uncertainty = 2;
        Some(SynchronisedClock { now, uncertainty })
    };
    // The request was on its way for 60 ns.
    assert_eq!(both(Some(100), 1_100).remaining(clock(1_060)), Some(45));
    // This clock is late, and its uncertainty was not stated truly.
    assert_eq!(both(Some(100), 1_100).remaining(clock(0)), Some(100));
    assert_eq!(both(Some(100), 1_100).remaining(None), Some(100));
    assert_eq!(both(None, 1_100).remaining(clock(1_060)), Some(45));
    assert_eq!(both(None, 1_100).remaining(None), None);
    // Values at the ends of their ranges do not wrap.
    assert_eq!(both(None, u64::MAX).remaining(clock(0)), Some(i64::MAX));
    assert_eq!(both(None, 0).remaining(clock(u64::MAX)), Some(i64::MIN));
}

fn deadline() -> impl Strategy<Value = AbsoluteDeadline> {
    any::<(u64, u32)>().prop_map(|(tai, uncertainty)| AbsoluteDeadline { tai, uncertainty })
}

fn discipline() -> impl Strategy<Value = SchedulingDiscipline> {
    prop::sample::select(vec![
        SchedulingDiscipline::FixedPriority,
        SchedulingDiscipline::Deadline,
        SchedulingDiscipline::Laxity,
        SchedulingDiscipline::Urgency,
    ])
}

prop_compose! {
    fn context()(
        (relative, execution, criticality, importance) in any::<(Option<i64>, u64, i16, i16)>(),
        absolute in prop::option::of(deadline()),
        discipline in prop::option::of(discipline()),
        (guid, hops) in any::<([u8; 16], u16)>(),
        (begins_thread, cancelled, monitored) in any::<(bool, bool, bool)>(),
    ) -> SchedulingContext {
        SchedulingContext {
            relative, absolute, execution, criticality, importance, guid, discipline, hops,
            begins_thread, cancelled, monitored,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_context_is_read(context in context()) {
        let data = context.encode();
        prop_assert_eq!(SchedulingContext::decode(&data), Ok(Some(context)));
    }

    #[test]
    fn a_patched_context_is_one_that_was_written_later(
        before in context(),
        relative: Option<i64>,
        tai: Option<u64>,
        execution: u64,
    ) {
        let uncertainty = before.absolute.map_or(0, |deadline| deadline.uncertainty);
        let mut data = before.encode();
        SchedulingContext::patch(&mut data, relative, tai, execution);
        let after = SchedulingContext {
            relative,
            absolute: tai.map(|tai| AbsoluteDeadline { tai, uncertainty }),
            execution,
            ..before
        };
        prop_assert_eq!(SchedulingContext::decode(&data), Ok(Some(after)));
    }

    /// The true time that is left is never more than what is computed, however the clocks differ
    /// within their uncertainties, and however long the request was on its way.
    #[test]
    fn no_deadline_is_taken_for_earlier_than_it_is(
        (left, delay) in (-1_000_i64..1_000, 0_i64..500),
        (sender_error, sender_bound) in (-50_i64..=50, 50_u32..100),
        (receiver_error, receiver_bound) in (-50_i64..=50, 50_u32..100),
    ) {
        const SENT: i64 = 1_000_000;
        let context = SchedulingContext {
            relative: Some(left),
            absolute: Some(AbsoluteDeadline {
                tai: (SENT + left + sender_error) as u64,
                uncertainty: sender_bound,
            }),
            ..SchedulingContext::default()
        };
        let clock = SynchronisedClock {
            now: (SENT + delay + receiver_error) as u64,
            uncertainty: receiver_bound,
        };
        let computed = context.remaining(Some(clock)).expect("there is a deadline");
        prop_assert!(computed >= left - delay);
        let errors = 2 * i64::from(sender_bound + receiver_bound);
        prop_assert!(computed <= (left - delay + errors).min(left));
    }

    #[test]
    fn any_octets_are_read_or_refused(mut octets in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = SchedulingContext::decode(&octets);
        if octets.len() > 1 {
            octets[1] = 1;
            let _ = SchedulingContext::decode(&octets);
        }
    }
}
