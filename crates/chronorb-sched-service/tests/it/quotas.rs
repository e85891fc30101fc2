//! Limits: one client takes all that it can, and another one is served.

use chronorb::quota::QuotaLimits;
use chronorb::{SystemException, SystemExceptionKind};
use chronorb_sched_service::idl::rtec_scheduler::{
    AddDependencyError, AnomalySeverity, CreateError, DuplicateName, GetRtInfoSetError,
    LookupError, UnknownTask,
};
use chronorb_sched_service::{Limits, SchedulingService};

use crate::support::{Fixture, TWO_WAY, needs, texts};

const NO_RESOURCES: SystemException = SystemException::no(SystemExceptionKind::NoResources, 0);

fn fixture(limits: Limits) -> Fixture {
    Fixture::of(SchedulingService::new().limits(limits))
}

const fn halves(total: u64) -> QuotaLimits {
    QuotaLimits {
        total,
        per_origin: total / 2,
    }
}

#[test]
fn one_client_leaves_operations_to_others() {
    let f = fixture(Limits {
        operations: halves(6),
        ..Limits::default()
    });
    for name in ["a", "b", "c"] {
        f.scheduler.create(name).unwrap();
    }
    for _ in 0..5 {
        let refused = f.scheduler.create("d").unwrap_err();
        assert_eq!(refused, CreateError::System(NO_RESOURCES));
    }
    assert_eq!(f.quota("operations"), (3, 1, 5));
    // What exists is still told, and costs nothing.
    let twice = f.scheduler.create("a").unwrap_err();
    assert_eq!(twice, CreateError::DuplicateName(DuplicateName));
    assert_eq!(f.scheduler.lookup("b").unwrap(), 2);

    let other = f.client();
    assert_eq!(other.scheduler.lookup("b").unwrap(), 2);
    for (name, handle) in [("d", 4), ("e", 5), ("f", 6)] {
        assert_eq!(other.scheduler.create(name).unwrap(), handle);
    }
    assert_eq!(f.quota("operations"), (6, 2, 5));

    // All are taken, and stay so without their clients.
    drop(other);
    let third = f.client();
    let refused = third.scheduler.create("g").unwrap_err();
    assert_eq!(refused, CreateError::System(NO_RESOURCES));
    assert_eq!(f.quota("operations"), (6, 2, 6));
}

#[test]
fn one_client_leaves_octets_of_names_to_others() {
    let f = fixture(Limits {
        texts: halves(20),
        ..Limits::default()
    });
    f.scheduler.create("12345678").unwrap();
    let refused = f.scheduler.create("123").unwrap_err();
    assert_eq!(refused, CreateError::System(NO_RESOURCES));
    f.scheduler.create("12").unwrap();
    let other = f.client();
    other.scheduler.create("1234567890").unwrap();
    assert_eq!(f.quota("octets of operation names"), (20, 2, 1));
    assert_eq!(f.quota("operations"), (3, 2, 0));
}

#[test]
fn a_dependency_is_charged_to_its_client_until_it_is_removed() {
    let f = fixture(Limits {
        dependencies: halves(4),
        ..Limits::default()
    });
    let (a, b) = (f.add("a", needs(1, 10)), f.add("b", needs(1, 10)));
    let other = f.client();
    for _ in 0..2 {
        f.scheduler.add_dependency(a, b, 1, TWO_WAY).unwrap();
    }
    let refused = f.scheduler.add_dependency(a, b, 1, TWO_WAY).unwrap_err();
    assert_eq!(refused, AddDependencyError::System(NO_RESOURCES));
    let unknown = f.scheduler.add_dependency(a, 9, 1, TWO_WAY).unwrap_err();
    assert_eq!(unknown, AddDependencyError::UnknownTask(UnknownTask));
    assert_eq!(f.quota("dependencies of operations"), (2, 1, 1));
    other.scheduler.add_dependency(a, b, 1, TWO_WAY).unwrap();
    assert_eq!(f.quota("dependencies of operations"), (3, 2, 1));
    for used in [2, 1, 0] {
        other.scheduler.remove_dependency(a, b, 1, TWO_WAY).unwrap();
        assert_eq!(f.quota("dependencies of operations").0, used);
    }
    f.scheduler.add_dependency(a, b, 1, TWO_WAY).unwrap();
}

#[test]
fn answers_that_are_too_large_are_refused() {
    let f = fixture(Limits {
        answer: 4_096,
        ..Limits::default()
    });
    for number in 0..20 {
        f.add(&format!("operation {number:02}"), needs(1, 1_000));
    }
    assert_eq!(f.scheduler.get_rt_info_set().unwrap().len(), 20);
    let last = f.add("one more", needs(1, 1_000));
    f.add("and another", needs(1, 1_000));
    let refused = f.scheduler.get_rt_info_set().unwrap_err();
    assert_eq!(refused, GetRtInfoSetError::System(NO_RESOURCES));
    // The schedule is computed, and its parts are told.
    assert!(f.scheduler.compute_scheduling(1, 98).is_err());
    assert_eq!(f.place("one more").2, 0);
    assert_eq!(f.scheduler.get(last).unwrap().handle, last);
    assert_eq!(f.scheduler.recompute_scheduling(1, 98).unwrap(), []);
    for _ in 0..200 {
        f.scheduler.add_dependency(last, 1, 1, TWO_WAY).unwrap();
    }
    assert!(f.scheduler.get(last).is_err());
    assert!(f.scheduler.get_dependency_set().is_err());
    assert_eq!(f.scheduler.get(1).unwrap().dependencies, []);
}

#[test]
fn a_name_beyond_the_limit_is_unknown() {
    let f = fixture(Limits::default());
    let name = "a".repeat(1_025);
    let unknown = f.scheduler.lookup(&name).unwrap_err();
    assert_eq!(unknown, LookupError::UnknownTask(UnknownTask));
    let refused = f.scheduler.create(&name).unwrap_err();
    assert_eq!(refused, CreateError::System(NO_RESOURCES));
    assert_eq!(f.quota("octets of operation names").0, 0);
}

#[test]
fn an_operation_has_a_bound_of_periods() {
    let f = fixture(Limits {
        periods: 2,
        ..Limits::default()
    });
    let chain = [10, 20, 40].map(|period| f.add(&period.to_string(), needs(1, period).threads(1)));
    f.scheduler
        .add_dependency(chain[0], chain[1], 1, TWO_WAY)
        .unwrap();
    f.scheduler
        .add_dependency(chain[1], chain[2], 1, TWO_WAY)
        .unwrap();
    let expected = "operation 40 runs at more than 2 different periods, its own and those of its \
                    callers; use fewer";
    let anomalies = f.compute();
    assert_eq!(
        texts(&anomalies),
        [(AnomalySeverity::AnomalyFatal, expected)]
    );
    f.scheduler
        .remove_dependency(chain[0], chain[1], 1, TWO_WAY)
        .unwrap();
    assert_eq!(f.compute(), []);
}
