//! Deadlines of calls, which travel with their requests to servants and on to further servers.

use std::time::Duration;

use chronorb_cdr::Decoder;
use chronorb_giop::{IiopProfile, TaggedProfile, Version};
use chronorb_orb::codegen::v1::{bad_operation, reply_error};
use chronorb_orb::rtcorba::{RtCurrent, TimeConstraint};
use chronorb_orb::{Call, Object, Orb, OrbConfig, ReplyWriter, Skeleton, SystemException};

use crate::support::{call, orb, orb_with};

const HOUR: Duration = Duration::from_secs(3600);

/// A servant that tells the time to the deadline of its request.
struct Clock;

impl Skeleton for Clock {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Clock:1.0"
    }

    fn is_a(&self, id: &str) -> bool {
        id == self.repository_id()
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let current = call.orb().rt_current();
        let left = current.time_left().unwrap_or(NONE);
        let onward = match operation {
            b"left" => NONE,
            b"onward" => {
                let next = Object::decode_reference(d)?.ok_or_else(bad_operation)?;
                time_left(&next)?
            }
            b"sooner" => {
                let next = Object::decode_reference(d)?.ok_or_else(bad_operation)?;
                let _sooner = current.constrain(TimeConstraint::within(HOUR / 2));
                time_left(&next)?
            }
            _ => return Err(bad_operation()),
        };
        let e = reply.normal()?;
        e.write_i64(left)
            .and_then(|()| e.write_i64(onward))
            .map_err(reply_error)
    }
}

/// Stands for no deadline.
const NONE: i64 = i64::MIN;

fn nanos(duration: Duration) -> i64 {
    duration.as_nanos() as i64
}

/// Calls the servant. Returns the time to the deadline that it has seen.
fn time_left(clock: &Object) -> Result<i64, SystemException> {
    let read = |d: &mut Decoder<'_>| Ok((d.read_i64()?, d.read_i64()?));
    call(clock, "left", &|_| Ok(()), read).map(|(left, _)| left)
}

/// Calls the servant, which calls the next one. Returns what both have seen.
fn times_left(clock: &Object, operation: &'static str, next: &Object) -> (i64, i64) {
    let write = |e: &mut chronorb_cdr::Encoder<'_>| Object::encode_reference(Some(next), e);
    let read = |d: &mut Decoder<'_>| Ok((d.read_i64()?, d.read_i64()?));
    call(clock, operation, &write, read).expect("it is there")
}

/// A servant of an ORB of its own, and its reference in text form.
fn server(configure: impl FnOnce(&mut OrbConfig)) -> (Orb, String) {
    let server = orb_with(configure);
    let root = server.root_poa().expect("the endpoint opens");
    let clock = root.serve(Clock).expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let text = server.object_to_string(&clock);
    (server, text)
}

fn object(client: &Orb, text: &str) -> Object {
    client.string_to_object(text).expect("the reference reads")
}

fn current(client: &Orb) -> RtCurrent {
    client.rt_current()
}

#[test]
fn a_servant_has_what_is_left_of_the_time_in_every_version() {
    let (server, text) = server(|_| {});
    let client = orb();
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut ior = object(&client, &text).ior().clone();
        let mut profile = IiopProfile::decode(&ior.profiles[0].data).expect("our own");
        profile.version = version;
        let tag = ior.profiles[0].tag;
        let data = profile.encode().expect("it fits");
        ior.profiles = vec![TaggedProfile { tag, data }];
        let clock = client.ior_to_object(ior).expect("it is not nil");
        assert_eq!(time_left(&clock), Ok(NONE), "{version:?}");
        for _ in 0..3 {
            let until = current(&client).constrain(TimeConstraint::within(HOUR));
            for _ in 0..3 {
                let here = current(&client).time_left().expect("there is a deadline");
                let there = time_left(&clock).expect("it is there");
                assert!(there <= here && there > 0, "{version:?}: {there} of {here}");
            }
            drop(until);
            assert_eq!(current(&client).time_left(), None);
            assert_eq!(time_left(&clock), Ok(NONE), "{version:?}");
        }
    }
    server
        .shutdown(true)
        .expect("it is not called by a servant");
}

#[test]
fn nested_calls_inherit_what_is_left() {
    let (first, text_of_first) = server(|_| {});
    let (second, text_of_second) = server(|_| {});
    let client = orb();
    let (clock, next) = (
        object(&client, &text_of_first),
        object(&client, &text_of_second),
    );
    assert_eq!(times_left(&clock, "onward", &next), (NONE, NONE));
    {
        let _until = current(&client).constrain(TimeConstraint::within(HOUR));
        for _ in 0..3 {
            let (left, onward) = times_left(&clock, "onward", &next);
            assert!(
                left <= nanos(HOUR) && onward <= left,
                "{left}, then {onward}"
            );
            assert!(onward > 0);
            // The servant has less time for a part of its work.
            let (left, onward) = times_left(&clock, "sooner", &next);
            assert!(left > nanos(HOUR / 2) && onward <= nanos(HOUR / 2));
        }
    }
    // The threads of both servers have no deadline any more.
    assert_eq!(times_left(&clock, "onward", &next), (NONE, NONE));
    first.shutdown(true).expect("it is not called by a servant");
    second
        .shutdown(true)
        .expect("it is not called by a servant");
}

#[test]
fn a_deadline_within_another_one_is_the_earlier_of_both() {
    let client = orb();
    let left = || current(&client).time_left();
    let _outer = current(&client).constrain(TimeConstraint::within(HOUR));
    {
        let _later = current(&client).constrain(TimeConstraint::within(2 * HOUR));
        assert!(left() <= Some(nanos(HOUR)));
    }
    {
        let _sooner = current(&client).constrain(TimeConstraint::within(HOUR / 2));
        assert!(left() <= Some(nanos(HOUR / 2)));
    }
    assert!(left() > Some(nanos(HOUR / 2)), "the outer one holds again");
    {
        let _passed = current(&client).constrain(TimeConstraint::within(Duration::ZERO));
        assert!(left() <= Some(0));
    }
}

#[test]
fn a_deadline_that_has_passed_does_not_end_the_call() {
    let (server, text) = server(|_| {});
    let client = orb();
    let clock = object(&client, &text);
    let _passed = current(&client).constrain(TimeConstraint::within(Duration::ZERO));
    let left = time_left(&clock).expect("it is served all the same");
    assert!(left != NONE && left <= 0);
    server
        .shutdown(true)
        .expect("it is not called by a servant");
}

#[test]
fn a_collocated_servant_has_the_deadline_of_its_caller() {
    let (server, text) = server(|_| {});
    let clock = object(&server, &text);
    let _until = current(&server).constrain(TimeConstraint::within(HOUR));
    let left = time_left(&clock).expect("it is there");
    assert!(left != NONE && left <= nanos(HOUR));
    server
        .shutdown(true)
        .expect("it is not called by a servant");
}

#[test]
fn a_call_has_the_deadline_whichever_connection_carries_it() {
    use chronorb_orb::ConnectionStrategy::{Leader, Thread};
    let (server, text) = server(|_| {});
    for strategy in [Leader, Thread] {
        let client = orb_with(|config| config.client_connection = strategy);
        let clock = object(&client, &text);
        assert_eq!(time_left(&clock), Ok(NONE));
        {
            let _until = current(&client).constrain(TimeConstraint::within(HOUR));
            assert!(time_left(&clock).expect("it is there") > 0, "{strategy:?}");
        }
        assert_eq!(time_left(&clock), Ok(NONE), "{strategy:?}");
    }
    server
        .shutdown(true)
        .expect("it is not called by a servant");
}

/// Returns the time to an hour's deadline that a server sees whose clock is ahead, by relative and
/// absolute times, if the errors of both clocks are stated.
fn seen_by_a_clock_ahead(ahead: Duration, errors: [Option<Duration>; 2]) -> i64 {
    let [of_client, of_server] = errors;
    let (server, text) = server(|config| {
        config.clock_uncertainty = of_server;
        config.clock_correction = ahead.as_micros() as i64;
    });
    let client = orb_with(|config| config.clock_uncertainty = of_client);
    let clock = object(&client, &text);
    let _until = current(&client).constrain(TimeConstraint::within(HOUR));
    let left = time_left(&clock).expect("it is there");
    for orb in [client, server] {
        orb.shutdown(true).expect("it is not a servant's thread");
    }
    left
}

#[test]
fn absolute_deadlines_are_heeded_where_both_errors_are_stated() {
    let exact = Some(Duration::ZERO);
    // The clock of the server shows that the deadline has passed a second ago. A machine that runs
    // for less than that time would show the time since its start.
    let late = Duration::from_secs(1);
    let left = seen_by_a_clock_ahead(HOUR + late, [exact, exact]);
    assert!(left <= -nanos(late), "{left}");
    for errors in [[None, exact], [exact, None], [None, None]] {
        let left = seen_by_a_clock_ahead(HOUR * 2, errors);
        assert!(left > 0, "{errors:?}: {left}");
    }
}

#[test]
fn the_relative_deadline_counts_where_the_clocks_may_be_as_far_apart() {
    let apart = Duration::from_millis(10);
    let error = Some(apart);
    // By the absolute deadline alone the time would be longer by the errors of both clocks.
    for ahead in [Duration::ZERO, apart] {
        let left = seen_by_a_clock_ahead(ahead, [error, error]);
        assert!(left > 0 && left <= nanos(HOUR), "{left}");
    }
    let without = seen_by_a_clock_ahead(apart, [None, None]);
    assert!(without > 0 && without <= nanos(HOUR), "{without}");
}
