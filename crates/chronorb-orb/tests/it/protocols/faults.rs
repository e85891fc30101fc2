//! Clients with disturbed connections: they always get a result, never a wrong reply, and the
//! server continues.

use chronorb_giop::minor;
use chronorb_orb::SystemExceptionKind::{CommFailure, Timeout, Transient};
use chronorb_orb::transport::faults::FaultPlans;
use chronorb_orb::{CompletionStatus, ConnectionStrategy, Object, Orb, OrbConfig, SystemException};
use std::time::Duration;

use crate::support::strategies::STRATEGIES;
use crate::support::{
    ServedProbe, add, echo, kind_and_completion, orb_with, served, served_by, with_short_timeout,
};

fn plans(text: &str) -> Option<FaultPlans> {
    Some(FaultPlans::parse(text).expect("plans"))
}

/// Returns the object from another client's point of view.
fn seen_by(client: &Orb, s: &ServedProbe) -> Object {
    let text = s.server.object_to_string(&s.object);
    client.string_to_object(&text).expect("the reference reads")
}

/// Returns a client whose connections are all disturbed, each separately.
fn disturbed(faults: &str, configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    orb_with(|config| {
        config.faults = plans(faults);
        configure(config);
    })
}

/// Returns the result of such a client's first call.
fn call(
    s: &ServedProbe,
    faults: &str,
    strategy: ConnectionStrategy,
) -> Result<i32, SystemException> {
    call_by(s, faults, strategy, |object| add(object, 30, 12))
}

/// Returns the result of the calls of such a client.
fn call_by(
    s: &ServedProbe,
    faults: &str,
    strategy: ConnectionStrategy,
    call: impl FnOnce(&Object) -> Result<i32, SystemException>,
) -> Result<i32, SystemException> {
    let client = disturbed(faults, |config| config.client_connection = strategy);
    let result = call(&seen_by(&client, s));
    client.shutdown(false).expect("it ends");
    result
}

/// Asserts that the server still answers a client whose connection has no faults.
fn is_well(s: &ServedProbe) {
    assert_eq!(add(&s.object, 1, 2), Ok(3));
}

#[test]
fn octets_that_are_cut_and_late_are_the_same_octets() {
    let faults = "seed=3,cut=0.7,delay=0us..300us";
    let servers = [served(), served_by(disturbed(faults, |_| {}))];
    let text = "nothing is lost ".repeat(500);
    for s in &servers {
        for strategy in STRATEGIES {
            let client = disturbed(faults, |config| config.client_connection = strategy);
            let object = seen_by(&client, s);
            for n in 0..30 {
                assert_eq!(add(&object, n, 1), Ok(n + 1), "{strategy:?}");
            }
            assert_eq!(echo(&object, &text).as_deref(), Ok(text.as_str()));
            client.shutdown(false).expect("it ends");
        }
        is_well(s);
    }
}

#[test]
fn a_refused_connect_is_transient_and_not_completed() {
    let s = served();
    for strategy in STRATEGIES {
        let exception = call(&s, "refuse=1", strategy).expect_err("no server listens");
        assert_eq!(
            exception,
            SystemException::no(Transient, minor::NO_USABLE_PROFILE)
        );
    }
    is_well(&s);
}

#[test]
fn a_connection_that_ends_within_the_request_is_transient_and_not_completed() {
    let s = served();
    for strategy in STRATEGIES {
        let result = call(&s, "out.disconnect=40", strategy);
        let expected = (Transient, CompletionStatus::No);
        assert_eq!(kind_and_completion(result), expected, "{strategy:?}");
    }
    is_well(&s);
}

#[test]
fn a_connection_that_ends_within_the_reply_is_comm_failure_and_may_be_completed() {
    let s = served();
    for faults in ["in.disconnect=10", "in.truncate=1", "out.truncate=1"] {
        for strategy in STRATEGIES {
            let result = call(&s, faults, strategy);
            let expected = (CommFailure, CompletionStatus::Maybe);
            assert_eq!(
                kind_and_completion(result),
                expected,
                "{faults}, {strategy:?}"
            );
        }
    }
    is_well(&s);
}

#[test]
fn silence_is_timeout_and_may_be_completed() {
    let s = served();
    for faults in ["in.stall=1", "out.stall=1"] {
        for strategy in STRATEGIES {
            let result = call_by(&s, faults, strategy, |object| {
                with_short_timeout(object, |hasty| add(hasty, 30, 12))
            });
            let expected = (Timeout, CompletionStatus::Maybe);
            assert_eq!(
                kind_and_completion(result),
                expected,
                "{faults}, {strategy:?}"
            );
        }
    }
    is_well(&s);
}

#[test]
fn a_server_without_descriptors_serves_when_it_has_some() {
    let s = served_by(disturbed("exhaust=0.7", |_| {}));
    for _ in 0..5 {
        is_well(&s);
        let client = orb_with(|_| {});
        assert_eq!(add(&seen_by(&client, &s), 1, 2), Ok(3));
        client.shutdown(false).expect("it ends");
    }
}

#[test]
fn whatever_ends_connections_a_reply_is_right_or_there_is_none() {
    for seed in 0..12 {
        let faults = format!("seed={seed},cut=0.3,truncate=0.04,disconnect_messages=9");
        let servers = [served(), served_by(disturbed(&faults, |_| {}))];
        for s in &servers {
            let strategy = STRATEGIES[seed % STRATEGIES.len()];
            let client = disturbed(&faults, |config| config.client_connection = strategy);
            let object = seen_by(&client, s);
            let mut right = 0;
            for n in 0..40 {
                match add(&object, n, 1) {
                    Ok(sum) => {
                        assert_eq!(sum, n + 1, "seed {seed}");
                        right += 1;
                    }
                    Err(e) => assert!(matches!(e.kind, CommFailure | Transient), "{e:?}"),
                }
            }
            assert!(right > 0, "seed {seed}");
            client.shutdown(false).expect("it ends");
        }
        is_well(&servers[0]);
    }
}

#[test]
fn garbage_ends_calls_and_connections_and_no_server() {
    for seed in 0..20 {
        let s = served();
        let faults = format!("seed={seed},flip=0.3,insert=0.2");
        let client = disturbed(&faults, |config| {
            config.client_connection = STRATEGIES[seed % STRATEGIES.len()];
            // An increased length waits for octets that are never sent.
            config.request_timeout = Duration::from_millis(100);
        });
        let object = seen_by(&client, &s);
        for n in 0..20 {
            // The value may be wrong, but the call ends.
            let _ = add(&object, n, 1);
        }
        client.shutdown(false).expect("it ends");
        is_well(&s);
    }
}

#[test]
fn faults_that_cannot_be_had_are_refused_by_name() {
    let refused = |faults: &str| {
        let mut config = OrbConfig::default();
        config.faults = plans(faults);
        Orb::with_config(config)
            .expect_err("it is refused")
            .to_string()
    };
    let error = refused("atm:cut=1");
    assert!(
        error.contains("-ORBFaults") && error.contains("\"atm\""),
        "{error}"
    );

    // The protocol of a connection is only known once it exists.
    let s = served();
    let result = call(&s, "loss=0.5", ConnectionStrategy::Exclusive);
    assert_eq!(
        kind_and_completion(result),
        (Transient, CompletionStatus::No)
    );
}
