//! The end times among invocation policies.

use std::time::{Duration, SystemTime};

use chronorb_cdr::CdrError;
use chronorb_giop::{EndTimes, UtcTime};
use proptest::prelude::*;

const REQUEST_END: u32 = 28;
const REPLY_END: u32 = 30;

/// A policy with a time, in big-endian order.
fn policy(policy_type: u32, time: u64) -> Vec<u8> {
    let mut octets = Vec::new();
    octets.extend(policy_type.to_be_bytes());
    octets.extend(24_u32.to_be_bytes());
    octets.extend([0; 8]);
    octets.extend(time.to_be_bytes());
    octets.extend([0; 8]);
    octets
}

fn context(policies: &[Vec<u8>]) -> Vec<u8> {
    let mut octets = vec![0; 4];
    octets.extend((policies.len() as u32).to_be_bytes());
    octets.extend(policies.concat());
    octets
}

fn ends(request: Option<u64>, reply: Option<u64>) -> EndTimes {
    EndTimes {
        request: request.map(UtcTime::from_units),
        reply: reply.map(UtcTime::from_units),
    }
}

#[test]
fn octets_of_another_orb_are_read() {
    let time = 0x01DC_5C1A_0000_0000;
    let one = context(&[policy(REPLY_END, time)]);
    assert_eq!(EndTimes::decode(&one), Ok(ends(None, Some(time))));
    // A start time, and a type that nothing knows, are skipped.
    let unknown = [
        &0x5441_4001_u32.to_be_bytes()[..],
        &[0, 0, 0, 4, 1, 2, 3, 4],
    ]
    .concat();
    let all = context(&[
        policy(27, 1),
        unknown,
        policy(REQUEST_END, 9),
        policy(REQUEST_END, 7),
        policy(REPLY_END, time),
    ]);
    assert_eq!(EndTimes::decode(&all), Ok(ends(Some(7), Some(time))));
    assert_eq!(EndTimes::decode(&context(&[])), Ok(EndTimes::default()));
}

#[test]
fn malformed_content_is_an_error() {
    let whole = context(&[policy(REQUEST_END, 9)]);
    for length in 0..whole.len() - 8 {
        assert!(
            EndTimes::decode(&whole[..length]).is_err(),
            "{length} octets"
        );
    }
    let mut many = context(&[]);
    many[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(EndTimes::decode(&many), Err(CdrError::LengthOverflow));
    let short = [REQUEST_END.to_be_bytes(), 1_u32.to_be_bytes()].concat();
    let short = context(&[[short, vec![0]].concat()]);
    assert_eq!(EndTimes::decode(&short), Err(CdrError::EndOfData));
}

#[test]
fn times_of_the_system_are_converted() {
    let epoch = SystemTime::UNIX_EPOCH;
    assert_eq!(UtcTime::from(epoch), UtcTime::UNIX_EPOCH);
    let second = Duration::from_secs(1);
    let units = UtcTime::UNIX_EPOCH.units();
    assert_eq!(UtcTime::from(epoch + second).units(), units + 10_000_000);
    assert_eq!(UtcTime::from(epoch - second).units(), units - 10_000_000);
    let later = UtcTime::UNIX_EPOCH + Duration::from_nanos(1_000_000_250);
    let since = later.since(UtcTime::UNIX_EPOCH);
    assert_eq!(since, Duration::from_nanos(1_000_000_200));
    assert_eq!(UtcTime::UNIX_EPOCH.since(later), Duration::ZERO);
    let last = UtcTime::from_units(u64::MAX);
    assert_eq!(last + second, last);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_times_are_read(request: Option<u64>, reply: Option<u64>) {
        let ends = ends(request, reply);
        let mut room = [0xEE; EndTimes::LARGEST];
        let data = ends.encode(&mut room);
        prop_assert_eq!(EndTimes::decode(data), Ok(ends));
    }

    #[test]
    fn any_octets_are_read_or_refused(octets: Vec<u8>) {
        let _ = EndTimes::decode(&octets);
    }
}
