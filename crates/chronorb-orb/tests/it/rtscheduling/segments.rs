//! Segments of one thread, and threads that it spawns.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use chronorb_orb::rtcorba::Priority;
use chronorb_orb::rtscheduling::{
    EarliestDeadlineScheduler, FixedPriorityScheduler, LeastLaxityScheduler,
    MaximumUrgencyScheduler, Monotonic, Scheduler, SchedulingParameter, SegmentError, ThreadState,
    UnsupportedSchedulingDiscipline,
};
use chronorb_orb::{SystemException, SystemExceptionKind, minor};

use super::nodes::{Node, fixed};
use crate::support::{PATIENCE, has_real_time, orb};

fn no_segment() -> SystemException {
    let kind = SystemExceptionKind::BadInvOrder;
    SystemException::no(kind, minor::NO_SCHEDULING_SEGMENT)
}

#[test]
fn without_a_segment_nothing_can_be_ended_updated_asked_or_spawned() {
    let node = Node::new();
    let current = node.orb.scheduling_current();
    let none = no_segment();
    let refused = Some(SegmentError::from(none));
    assert_eq!(current.end_scheduling_segment("a"), Err(none));
    let updated = current.update_scheduling_segment("a", None, None);
    assert_eq!(updated.err(), refused);
    assert_eq!(current.id(), Err(none));
    assert_eq!(current.scheduling_parameter(), Err(none));
    assert_eq!(current.implicit_scheduling_parameter(), Err(none));
    assert_eq!(current.current_scheduling_segment_names(), Err(none));
    let spawned = current.spawn(|| {}, "a", None, None, 0, Priority::new(0).unwrap());
    assert_eq!(spawned.err(), refused);
    assert!(node.told.take().is_empty());
}

#[test]
fn nested_segments_give_the_outer_parameter_and_priority_back() {
    let node = Node::new();
    let current = node.orb.scheduling_current();
    let priority = || node.orb.rt_current().priority().map(Priority::value);
    assert!(priority().is_err());
    let before = chronorb_rt::current().unwrap();
    for (name, value) in [("a", 10), ("b", 20), ("c", 30)] {
        let begun = current.begin_scheduling_segment(name, Some(&fixed(value)), None);
        begun.unwrap();
        assert_eq!(priority(), Ok(value));
    }
    let names = || current.current_scheduling_segment_names().unwrap();
    assert_eq!(names(), ["c", "b", "a"]);
    let updated = current.update_scheduling_segment("c", Some(&fixed(25)), None);
    updated.unwrap();
    assert_eq!(priority(), Ok(25));

    let id = current.id().unwrap();
    for (name, outer) in [("c", 20), ("b", 10)] {
        current.end_scheduling_segment(name).unwrap();
        assert_eq!(current.id(), Ok(id), "it is the same thread");
        assert_eq!(current.scheduling_parameter(), Ok(Some(fixed(outer))));
        assert_eq!(priority(), Ok(outer));
    }
    assert_eq!(names(), ["a"]);
    current.end_scheduling_segment("a").unwrap();
    assert_eq!(current.id(), Err(no_segment()));
    assert!(priority().is_err(), "it had none before");
    assert_eq!(chronorb_rt::current().unwrap(), before);
    let expected = [
        "begin a 10",
        "nest b 20",
        "nest c 30",
        "update c 25",
        "end c to 20",
        "end b to 10",
        "end a",
    ];
    assert_eq!(node.told.take(), expected);

    // Another thread begins with the next segment.
    let _segment = current.segment("a", None, None).unwrap();
    assert_ne!(current.id(), Ok(id));
}

#[test]
fn a_parameter_that_is_not_given_is_that_of_the_outer_segment() {
    let node = Node::new();
    let current = node.orb.scheduling_current();
    let _outer = current.segment("outer", Some(&fixed(10)), Some(&fixed(5)));
    let _inner = current.segment("inner", None, None).unwrap();
    assert_eq!(current.scheduling_parameter(), Ok(Some(fixed(10))));
    assert_eq!(current.implicit_scheduling_parameter(), Ok(Some(fixed(5))));
}

#[test]
fn a_segment_ends_by_its_own_name() {
    let node = Node::new();
    let current = node.orb.scheduling_current();
    let _outer = current.segment("outer", None, None).unwrap();
    let _inner = current.segment("inner", None, None).unwrap();
    let kind = SystemExceptionKind::BadParam;
    let wrong = SystemException::no(kind, minor::WRONG_SEGMENT_NAME);
    assert_eq!(current.end_scheduling_segment("outer"), Err(wrong));
    let updated = current.update_scheduling_segment("outer", None, None);
    assert_eq!(updated, Err(wrong.into()));
    let names = current.current_scheduling_segment_names();
    assert_eq!(names.unwrap(), ["inner", "outer"]);
}

#[test]
fn a_spawned_thread_has_identity_parameter_priority_and_stack_of_its_own() {
    let node = Node::new();
    let current = node.orb.scheduling_current();
    let _segment = current.segment("root", Some(&fixed(10)), Some(&fixed(5)));
    let (tell, told) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let orb = node.orb.clone();
    let start = move || {
        let own = orb.scheduling_current();
        let found = (
            own.id().unwrap(),
            own.scheduling_parameter().unwrap(),
            own.current_scheduling_segment_names().unwrap(),
            orb.rt_current().priority().unwrap().value(),
        );
        tell.send(found).unwrap();
        let _ = wait.recv();
    };
    let base = Priority::new(7).unwrap();
    let thread = current.spawn(start, "work", None, None, 1 << 20, base);
    let thread = thread.unwrap();
    let (id, parameter, names, priority) = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(id, thread.id());
    assert_ne!(Ok(id), current.id());
    assert_eq!(parameter, Some(fixed(5)), "it is the implicit one");
    assert_eq!(names, ["work"]);
    // The scheduler gives it the priority of its parameter.
    assert_eq!(priority, 5);
    let is_here = |node: &Node| node.orb.scheduling_current().lookup(id).is_some();
    assert!(is_here(&node));
    assert!(!is_here(&Node::new()), "another ORB does not know it");
    assert_eq!(thread.state(), ThreadState::Active);
    drop(go);
    let ended = || !is_here(&node);
    assert!(comes_true(ended), "it ends with what it started with");
}

/// Waits until a condition holds.
fn comes_true(condition: impl Fn() -> bool) -> bool {
    let deadline = chronorb_rt::Deadline::after(PATIENCE);
    while !condition() {
        if deadline.has_passed() {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn a_parameter_of_another_discipline_changes_nothing() {
    let deadline = Monotonic::now() + Duration::from_secs(1);
    let estimated_initial_execution_time = Duration::from_millis(1);
    let parameters = [
        fixed(10),
        SchedulingParameter::EarliestDeadline {
            deadline,
            importance: 1,
        },
        SchedulingParameter::LeastLaxity {
            deadline,
            estimated_initial_execution_time,
            importance: 1,
        },
        SchedulingParameter::MaximumUrgency {
            deadline,
            estimated_initial_execution_time,
            criticality: 1,
        },
        SchedulingParameter::MaximumUtility {
            deadline,
            importance: 1,
        },
    ];
    let schedulers: [Arc<dyn Scheduler>; 4] = [
        Arc::new(FixedPriorityScheduler),
        Arc::new(EarliestDeadlineScheduler),
        Arc::new(LeastLaxityScheduler),
        Arc::new(MaximumUrgencyScheduler),
    ];
    for (own, scheduler) in schedulers.into_iter().enumerate() {
        let name = scheduler.scheduling_discipline_name();
        assert_eq!(name, ["FP", "EDF", "LLF", "MUF"][own]);
        let orb = orb();
        orb.set_scheduler(scheduler).unwrap();
        let current = orb.scheduling_current();
        for (number, parameter) in parameters.iter().enumerate() {
            let unsupported = Err(SegmentError::from(UnsupportedSchedulingDiscipline));
            let begun = current.begin_scheduling_segment("a", Some(parameter), None);
            if number == own {
                assert_eq!(begun, Ok(()));
                let now = current.scheduling_parameter();
                assert_eq!(now, Ok(Some(*parameter)));
                let other = &parameters[(own + 1) % 5];
                let updated = current.update_scheduling_segment("a", Some(other), None);
                assert_eq!(updated, unsupported);
                let nested = current.begin_scheduling_segment("b", None, Some(other));
                assert_eq!(nested, unsupported);
                assert_eq!(current.scheduling_parameter(), now);
                current.end_scheduling_segment("a").unwrap();
            } else {
                assert_eq!(begun, unsupported);
                assert_eq!(current.id(), Err(no_segment()));
            }
        }
    }
}

#[test]
fn a_scheduler_is_set_once() {
    let node = Node::new();
    assert_eq!(node.orb.scheduler().scheduling_discipline_name(), "FP");
    let again = node.orb.set_scheduler(Arc::new(EarliestDeadlineScheduler));
    assert_eq!(again.unwrap_err().kind, SystemExceptionKind::BadInvOrder);
}

#[test]
fn a_panic_ends_the_segments_of_its_thread() {
    let node = Node::new();
    let current = node.orb.scheduling_current();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _outer = current.segment("outer", Some(&fixed(10)), None);
        let _inner = current.segment("inner", Some(&fixed(20)), None);
        panic!("as a test");
    }));
    assert!(panicked.is_err());
    assert_eq!(current.id(), Err(no_segment()));
    let ends = [
        "begin outer 10",
        "nest inner 20",
        "end inner to 10",
        "end outer",
    ];
    assert_eq!(node.told.take(), ends);

    let _root = current.segment("root", None, None);
    let base = Priority::new(0).unwrap();
    let start = || panic!("as a test");
    let spawned = current.spawn(start, "spawned", None, None, 0, base);
    let id = spawned.unwrap().id();
    assert!(comes_true(|| current.lookup(id).is_none()));
    assert_eq!(node.told.take().last().unwrap(), "end spawned");
}

#[test]
fn the_owner_of_a_resource_has_its_ceiling() {
    let node = Node::new();
    let current = node.orb.scheduling_current();
    let ceiling = fixed(30);
    let resource = current.create_resource_manager(Some(&ceiling)).unwrap();
    let priority = || node.orb.rt_current().priority().unwrap().value();
    let _segment = current.segment("a", Some(&fixed(10)), None).unwrap();
    let locked = resource.lock().unwrap();
    assert_eq!(priority(), 30);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| resource.try_lock(Duration::ZERO).unwrap().is_some());
        assert!(!other.join().unwrap());
    });
    drop(locked);
    assert_eq!(priority(), 10);
    assert!(resource.try_lock(Duration::ZERO).unwrap().is_some());

    // A thread above the ceiling keeps its priority.
    let _inner = current.segment("b", Some(&fixed(40)), None).unwrap();
    let locked = resource.lock().unwrap();
    assert_eq!(priority(), 40);
    drop(locked);

    current.lookup(current.id().unwrap()).unwrap().cancel();
    let refused = resource.lock().unwrap_err();
    assert_eq!(refused.kind, SystemExceptionKind::ThreadCancelled);
    assert_eq!(current.id(), Err(no_segment()));
}

#[test]
fn the_priority_of_a_segment_reaches_the_system() {
    if !has_real_time() {
        println!("left out: no right to real-time scheduling");
        return;
    }
    let node = Node::new();
    let current = node.orb.scheduling_current();
    let before = chronorb_rt::current().unwrap();
    let segment = current.segment("a", Some(&fixed(20_000)), None).unwrap();
    let within = chronorb_rt::current().unwrap();
    assert!(within.priority > before.priority, "{within}");
    drop(segment);
    assert_eq!(chronorb_rt::current().unwrap(), before);
}
