//! Filters as text.

use std::time::Duration;

use chronorb_events::{Filter, FilterTextError, TimerKind};

fn read(text: &str) -> Filter {
    text.parse().unwrap()
}

#[test]
fn leaves_name_a_type_or_a_source_and_a_type() {
    assert_eq!(read("20"), Filter::of_type(20));
    assert_eq!(read("10:20"), Filter::event(10, 20));
    assert_eq!(read("10:*"), Filter::from_source(10));
    assert_eq!(read("*:20"), Filter::of_type(20));
    assert_eq!(read("*"), Filter::Everything);
    assert_eq!(read("-1:0xffffffff"), Filter::event(-1, -1));
}

#[test]
fn operators_bind_in_the_order_conjunction_and_or() {
    let (a, b, c) = (read("1:16"), read("17"), read("18"));
    let both = Filter::Conjunction(vec![a.clone(), b.clone()]);
    assert_eq!(read("1:16+17|18"), both | c.clone());
    assert_eq!(read("1:16 & 17 | 18"), (a.clone() & b.clone()) | c.clone());
    assert_eq!(read("1:16 & (17 | !18)"), a & Filter::Any(vec![b, !c]));
}

#[test]
fn timers_have_times_with_units() {
    let timer = |kind, micros| Filter::Timer {
        kind,
        time: Duration::from_micros(micros),
    };
    assert_eq!(read("every 100ms"), timer(TimerKind::Interval, 100_000));
    assert_eq!(read("after 1.5s"), timer(TimerKind::Once, 1_500_000));
    assert_eq!(read("silence 250us"), timer(TimerKind::Deadline, 250));
}

#[test]
fn what_is_written_is_read_again() {
    let texts = [
        "*:*",
        "10:20 + 21 | silence 80ms",
        "!(10:20 | 11:*) & 20",
        "bits(0x1111:0x11110000) (16 | !17)",
        "mask(0xffff0000:0x1111=0x1100000:0x110)",
        "(16 + 17) + every 200ms",
        "(16 | 17) | after 1.5s",
        "!!16",
        "16 & !()",
    ];
    for text in texts {
        assert_eq!(read(text).to_string(), text);
    }
    assert_eq!(read("( )"), Filter::Any(vec![]));
    assert_eq!(Filter::Conjunction(vec![]).to_string(), "()");
}

#[test]
fn errors_name_the_place_and_what_is_missing() {
    let error = |text: &str| {
        let FilterTextError { at, expected } = text.parse::<Filter>().unwrap_err();
        (at, expected)
    };
    assert_eq!(error(""), (1, "number of 32 bits"));
    assert_eq!(error("16 17"), (4, "operator"));
    assert_eq!(error("(16"), (4, "closing parenthesis"));
    assert_eq!(error("4294967296"), (1, "number of 32 bits"));
    assert_eq!(error("every 5"), (8, "time, such as 80ms"));
    assert_eq!(error("mask(1:2)"), (9, "equals sign"));
    let deep = "(".repeat(100_000);
    assert_eq!(error(&deep).1, "end of the nesting");
}
