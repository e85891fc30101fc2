//! `chronorb sched serve`, as an operator runs it.

use std::path::Path;

use chronorb_orb::{Orb, OrbConfig};
use chronorb_sched_service::idl::rtec_base::DependencyTypeT::OneWayCall;
use chronorb_sched_service::idl::rtec_scheduler::{
    CreateError, CriticalityT, DispatchingTypeT, ImportanceT, InfoTypeT, Scheduler,
};

use crate::support::{Server, chronorb, stderr, stdout};

/// Calls a service with a client of another ORB.
fn with_scheduler<T>(reference: &str, calls: impl FnOnce(&Scheduler) -> T) -> T {
    let orb = Orb::with_config(OrbConfig::default()).unwrap();
    let object = orb.string_to_object(reference).unwrap();
    let scheduler = Scheduler::narrow(&object).unwrap().expect("the interface");
    let result = calls(&scheduler);
    orb.shutdown(true).unwrap();
    result
}

/// Creates an operation that executes 1 ms in each period, of a criticality.
fn add(scheduler: &Scheduler, name: &str, period_ms: i32, criticality: CriticalityT) -> i32 {
    const MS: i32 = 10_000;
    let handle = scheduler.create(name).unwrap();
    let (importance, kind) = (ImportanceT::LowImportance, InfoTypeT::Operation);
    let (cost, period) = (MS as u64, period_ms * MS);
    let set = scheduler.set(
        handle,
        criticality,
        cost,
        cost,
        cost,
        period,
        importance,
        0,
        0,
        kind,
    );
    set.unwrap();
    handle
}

#[test]
fn it_prints_the_reference_that_clients_use() {
    let server = Server::start(&["sched", "serve"]);
    let reference = &server.reference;
    assert!(
        reference.starts_with("corbaloc:iiop:1.2@127.0.0.1:"),
        "{reference}"
    );
    assert!(reference.ends_with("/ScheduleService"), "{reference}");
    with_scheduler(reference, |scheduler| {
        add(scheduler, "low", 10, CriticalityT::LowCriticality);
        let supplier = add(scheduler, "high", 50, CriticalityT::HighCriticality);
        let consumer = add(scheduler, "consumer", 0, CriticalityT::HighCriticality);
        let added = scheduler.add_dependency(consumer, supplier, 1, OneWayCall);
        added.unwrap();
        let anomalies = scheduler.recompute_scheduling(1, 98).unwrap();
        assert_eq!(anomalies, []);
        // By default maximum urgency first: criticality decides, and not the rate.
        let place = |name| scheduler.entry_point_priority(name).unwrap();
        assert_eq!(place("high"), (98, 1, 0));
        assert_eq!(place("consumer"), (98, 0, 0));
        assert_eq!(place("low"), (97, 0, 1));
    });
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_strategy_is_chosen_on_the_command_line() {
    for (strategy, high, kind) in [
        ("rms", 1, DispatchingTypeT::StaticDispatching),
        ("edf", 0, DispatchingTypeT::DeadlineDispatching),
        ("mlf", 0, DispatchingTypeT::LaxityDispatching),
        ("muf", 0, DispatchingTypeT::LaxityDispatching),
    ] {
        let server = Server::start(&["sched", "serve", "--strategy", strategy]);
        with_scheduler(&server.reference, |scheduler| {
            add(scheduler, "low", 10, CriticalityT::LowCriticality);
            add(scheduler, "high", 50, CriticalityT::HighCriticality);
            scheduler.recompute_scheduling(1, 98).unwrap();
            let (_, _, level) = scheduler.entry_point_priority("high").unwrap();
            assert_eq!(level, high, "{strategy}");
            let (_, dispatching) = scheduler.dispatch_configuration(level).unwrap();
            assert_eq!(dispatching, kind, "{strategy}");
        });
    }
}

#[test]
fn the_limits_are_chosen_on_the_command_line() {
    let server = Server::start(&[
        "sched",
        "serve",
        "--max-operations",
        "3",
        "--max-periods",
        "1",
    ]);
    let create = |name: &'static str| {
        with_scheduler(&server.reference, |scheduler| {
            scheduler.create(name).is_ok()
        })
    };
    with_scheduler(&server.reference, |scheduler| {
        assert_eq!(scheduler.create("a").unwrap(), 1);
        assert_eq!(scheduler.create("b").unwrap(), 2);
        let refused = scheduler.create("c").unwrap_err();
        assert!(matches!(refused, CreateError::System(_)), "{refused:?}");
    });
    // Another client has what is left.
    assert_eq!(["c", "d"].map(create), [true, false]);
}

#[test]
fn it_is_bound_in_a_name_server_until_it_ends() {
    let names = Server::start(&["ns", "serve", "--listen", "iiop://127.0.0.1:0"]);
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("sched.ior");
    let server = Server::start(&[
        "sched",
        "serve",
        "--bind",
        "--ns",
        &names.reference,
        "--ior-file",
        file.to_str().expect("UTF-8"),
    ]);
    let resolve = || {
        let arguments = ["ns", "resolve", "ScheduleService", "--ns", &names.reference];
        let output = chronorb(Path::new("."), &arguments);
        (output.status.code(), stdout(&output).to_owned())
    };
    let written = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(resolve(), (Some(0), written.clone()));
    with_scheduler(written.trim(), |scheduler| {
        assert_eq!(scheduler.create("navigation").unwrap(), 1);
    });
    assert_eq!(server.end(), Some(0));
    assert_eq!(resolve(), (Some(3), String::new()));
}

#[test]
fn a_service_that_has_replaced_it_stays_bound() {
    let names = Server::start(&["ns", "serve", "--listen", "iiop://127.0.0.1:0"]);
    let bind = [
        "sched",
        "serve",
        "--bind",
        "avionics",
        "--ns",
        &names.reference,
    ];
    let first = Server::start(&bind);
    let second = Server::start(&bind);
    assert_eq!(first.end(), Some(0));
    let resolve = ["ns", "resolve", "avionics", "--ns", &names.reference];
    let output = chronorb(Path::new("."), &resolve);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    with_scheduler(stdout(&output).trim(), |scheduler| {
        assert_eq!(scheduler.create("navigation").unwrap(), 1);
    });
    assert_eq!(second.end(), Some(0));
}

#[test]
fn a_name_server_that_is_not_there_is_told() {
    let output = chronorb(
        Path::new("."),
        &[
            "sched",
            "serve",
            "--bind",
            "--ns",
            "corbaloc::127.0.0.1:1/NameService",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let said = stderr(&output);
    assert!(said.contains("is not bound"), "{said}");
    assert!(said.contains("Connection refused"), "{said}");
}
