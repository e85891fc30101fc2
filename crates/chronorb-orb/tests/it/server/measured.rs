//! Measured operations, and policies for those that exceed their budgets.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::Decoder;
use chronorb_orb::rtcorba::Priority;
use chronorb_orb::schedule::{OperationSchedule, OverrunPolicy, ScheduleTable};
use chronorb_orb::{
    Call, Incident, Operation, OperationSnapshot, Orb, OrbConfig, ReplyWriter, Scope, Skeleton,
    SystemException, SystemExceptionKind, minor,
};
use chronorb_rt::{Deadline, thread_cpu_time};

use crate::support::adapters::pause;
use crate::support::{PATIENCE, ServedProbe, add, orb, orb_with, served_by};

/// Returns a server that measures one request in so many.
fn measuring(one_in: u32) -> ServedProbe {
    served_by(orb_with(|config| config.measure = one_in))
}

/// Returns a schedule in which an operation has this budget and a deadline that is always missed.
fn schedule(name: &str, budget: Duration) -> Arc<ScheduleTable> {
    let priority = Priority::new(0).expect("not negative");
    let mut entry = OperationSchedule::new(priority, 0, 0);
    entry.budget = Some(budget);
    entry.deadline = Some(Duration::from_nanos(1));
    Arc::new(ScheduleTable::new([(name.to_owned(), entry)]).expect("one operation"))
}

/// Waits until the server has measured so many responses of an operation: the last one is counted
/// after its client has it.
fn measured(server: &Orb, name: &str, responses: u64) -> OperationSnapshot {
    loop {
        let operations = server.snapshot().operations;
        let found = operations.into_iter().find(|known| known.operation == name);
        if let Some(found) = found.filter(|found| sum(&found.response) == responses) {
            return found;
        }
        pause();
    }
}

fn sum(times: &[(Duration, u64)]) -> u64 {
    times.iter().map(|(_, count)| count).sum()
}

#[test]
fn without_the_setting_nothing_is_measured() {
    let it = measuring(0);
    add(&it.object, 1, 2).expect("it is served");
    assert_eq!(it.server.snapshot().operations, []);
    assert!(!it.server.measure(1), "nothing can begin later");
}

#[test]
fn each_request_of_an_operation_is_measured_by_itself() {
    let it = measuring(1);
    for n in 0..5 {
        add(&it.object, n, 2).expect("it is served");
    }
    let found = measured(&it.server, "add", 5);
    assert_eq!((&*found.interface, found.requests), ("Test::Probe", 5));
    assert_eq!(sum(&found.execution), 5);
    assert!(found.worst_execution > Duration::ZERO, "{found:?}");
    assert!(found.worst_response > Duration::ZERO, "{found:?}");
    assert_eq!(
        (found.scheduled_as, found.budget, found.overruns),
        (None, None, 0)
    );
}

#[test]
fn a_oneway_operation_is_measured_without_a_reply() {
    let it = measuring(1);
    let sent = it
        .object
        .invoke_oneway(&Operation::oneway("note"), &|_| Ok(()));
    sent.expect("it is sent");
    let found = measured(&it.server, "note", 1);
    assert_eq!((found.requests, sum(&found.execution)), (1, 1));
}

#[test]
fn samples_are_taken_of_each_operation_at_the_same_distance() {
    let it = measuring(4);
    for n in 0..9 {
        add(&it.object, n, 2).expect("it is served");
    }
    let found = measured(&it.server, "add", 3);
    assert_eq!((found.requests, sum(&found.execution)), (9, 3));
    assert!(it.server.measure(0), "it can be switched off");
    add(&it.object, 1, 2).expect("it is served");
    let found = measured(&it.server, "add", 3);
    assert_eq!((found.requests, sum(&found.execution)), (9, 3));
}

#[test]
fn names_that_no_servant_knows_take_no_memory() {
    let it = measuring(1);
    let unknown = Scope::with(|scope| {
        let called = it
            .object
            .invoke(scope, &Operation::twoway("nonsense"), &|_| Ok(()));
        called.map(drop)
    });
    assert_eq!(
        unknown.expect_err("it is unknown").kind,
        SystemExceptionKind::BadOperation
    );
    assert_eq!(it.server.snapshot().operations, []);
}

#[test]
fn overruns_and_late_responses_are_counted_and_reported() {
    let it = served_by(orb_with(|config| {
        config.overrun = Some(OverrunPolicy::Log);
        config.schedule_table = Some(schedule("Test::Probe::add", Duration::from_nanos(1)));
    }));
    for n in 0..3 {
        add(&it.object, n, 2).expect("it is served");
    }
    let found = measured(&it.server, "add", 3);
    assert_eq!(found.scheduled_as.as_deref(), Some("Test::Probe::add"));
    assert_eq!(
        (found.overruns, sum(&found.lateness), found.skipped),
        (3, 3, 0)
    );
    let mut incidents = it.server.snapshot().incidents.into_iter();
    assert!(incidents.any(|count| count == (Incident::Overrun, 3)));
}

#[test]
fn an_inherited_operation_has_the_budget_of_its_interface() {
    let it = served_by(orb_with(|config| {
        config.overrun = Some(OverrunPolicy::Log);
        config.schedule_table = Some(schedule("Test::Base::add", Duration::from_secs(1)));
    }));
    add(&it.object, 1, 2).expect("it is served");
    let found = measured(&it.server, "add", 1);
    assert_eq!(found.scheduled_as.as_deref(), Some("Test::Base::add"));
    assert_eq!(found.budget, Some(Duration::from_secs(1)));
}

#[test]
fn requests_after_an_overrun_are_skipped() {
    let it = served_by(orb_with(|config| {
        config.overrun = Some(OverrunPolicy::Skip);
        config.schedule_table = Some(schedule("Test::Probe::add", Duration::from_nanos(1)));
    }));
    add(&it.object, 1, 2).expect("the first one is served");
    for _ in 0..2 {
        let skipped = add(&it.object, 1, 2).expect_err("it makes up for the first one");
        let expected = (SystemExceptionKind::Transient, minor::REQUEST_SKIPPED);
        assert_eq!((skipped.kind, skipped.minor), expected);
    }
    let found = measured(&it.server, "add", 1);
    assert_eq!((found.requests, found.overruns, found.skipped), (1, 1, 2));
}

/// A servant that uses processor time.
struct Burner;

impl Skeleton for Burner {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Burner:1.0"
    }

    fn is_a(&self, id: &str) -> bool {
        id == self.repository_id()
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        _: &[u8],
        _: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let begun = thread_cpu_time();
        while thread_cpu_time() - begun < MANY_TICKS {
            black_box(0);
        }
        reply.normal().map(drop)
    }
}

#[test]
fn a_thread_is_lowered_at_the_end_of_the_budget_and_raised_after_the_operation() {
    let set = |config: &mut OrbConfig| {
        config.overrun = Some(OverrunPolicy::Demote);
        config.schedule_table = Some(schedule("Test::Burner::burn", Duration::from_millis(1)));
    };
    let server = orb_with(set);
    let root = server.root_poa().expect("the endpoint opens");
    let object = root.serve(Burner).expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = orb();
    let text = server.object_to_string(&object);
    let object = client.string_to_object(&text).expect("the reference reads");
    // On a busy machine the ticks of the kernel can miss a thread for long.
    let deadline = Deadline::after(PATIENCE);
    for requests in 1.. {
        let called = Scope::with(|scope| {
            let called = object.invoke(scope, &Operation::twoway("burn"), &|_| Ok(()));
            called.map(drop)
        });
        called.expect("it is served");
        let found = measured(&server, "burn", requests);
        assert_eq!(found.overruns, requests);
        if found.demoted > 0 {
            assert_eq!(found.demoted, 1);
            break;
        }
        assert!(!deadline.has_passed(), "no tick has lowered the thread");
    }
    let lanes = server.snapshot().pools.remove(0).lanes;
    for lane in &lanes {
        for thread in &lane.threads {
            assert_eq!(thread.scheduling, lane.scheduling, "{thread:?}");
        }
    }
    let _ = client.shutdown(false);
    server.shutdown(true).expect("no servant asks for it");
}

/// Processor time in which ticks of the kernel usually interrupt the thread.
const MANY_TICKS: Duration = Duration::from_millis(400);
