//! Lanes for work of the application.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use chronorb_orb::rtcorba::{Priority, WorkLaneSpec};
use chronorb_orb::{CompletionStatus, SystemExceptionKind};
use chronorb_rt::PiMutex;

use crate::support::{Latch, PATIENCE, has_real_time, orb, served};

#[test]
fn work_is_done_in_order_and_refused_where_too_much_waits() {
    let orb = orb();
    let (begun, go) = (Arc::new(Latch::default()), Arc::new(Latch::default()));
    let done = Arc::new(PiMutex::new(Vec::new()));
    let (its_begun, its_go, its_done) = (begun.clone(), go.clone(), done.clone());
    let spec = WorkLaneSpec {
        capacity: 3,
        ..WorkLaneSpec::new("work")
    };
    let lane = orb.rt().start_work_lane(&spec, move |item: u32| {
        its_begun.set(1);
        its_go.reach(1);
        its_done.lock().push(item);
    });
    let lane = lane.expect("a thread starts");
    assert_eq!(lane.post(1), Ok(()));
    begun.reach(1);
    for item in 2..=4 {
        assert_eq!(lane.post(item), Ok(()));
    }
    let refused = lane.post(5).expect_err("three wait");
    assert_eq!(refused.item, 5);
    assert_eq!(refused.exception.kind, SystemExceptionKind::Transient);
    assert_eq!(refused.exception.completed, CompletionStatus::No);
    assert_eq!(lane.waiting(), 3);
    assert!(!lane.flush(Duration::ZERO));
    go.set(1);
    assert!(lane.flush(PATIENCE));
    assert_eq!(*done.lock(), [1, 2, 3, 4]);
    assert_eq!(lane.post(5), Ok(()));
    assert!(lane.flush(PATIENCE));
    assert_eq!(done.lock().len(), 5);
    orb.shutdown(true).expect("no servant calls it");
}

#[test]
fn many_threads_post_and_many_do_the_work() {
    let orb = orb();
    let sum = Arc::new(AtomicU32::new(0));
    let its_sum = sum.clone();
    let spec = WorkLaneSpec {
        threads: 3,
        capacity: 4,
        ..WorkLaneSpec::new("work")
    };
    let lane = orb.rt().start_work_lane(&spec, move |item: u32| {
        its_sum.fetch_add(item, Ordering::SeqCst);
    });
    let lane = lane.expect("threads start");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let mut item = 1;
                    while let Err(refused) = lane.post(item) {
                        item = refused.item;
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    assert!(lane.flush(PATIENCE));
    assert_eq!(sum.load(Ordering::SeqCst), 3000);
    orb.shutdown(true).expect("no servant calls it");
}

#[test]
fn its_work_has_the_priority_of_the_lane() {
    let s = served();
    let priority = Priority::new(10).expect("it is in the range");
    let current = s.client.rt_current();
    let spec = WorkLaneSpec {
        priority: Some(priority),
        ..WorkLaneSpec::new("work")
    };
    let seen = Arc::new((AtomicI32::new(-1), AtomicI32::new(-1)));
    let its = seen.clone();
    let lane = s.client.rt().start_work_lane(&spec, move |(): ()| {
        let corba = current.priority().expect("it has one").value();
        let native = chronorb_rt::current().expect("it is this thread").priority;
        its.0.store(corba.into(), Ordering::SeqCst);
        its.1.store(native.into(), Ordering::SeqCst);
    });
    let lane = lane.expect("a thread starts");
    assert_eq!(lane.post(()), Ok(()));
    assert!(lane.flush(PATIENCE));
    assert_eq!(seen.0.load(Ordering::SeqCst), 10);
    assert_eq!(seen.1.load(Ordering::SeqCst) > 0, has_real_time());
}

#[test]
fn a_panic_ends_the_work_on_one_item_and_the_drop_ends_the_lane() {
    let orb = orb();
    let (done, go) = (Arc::new(AtomicU32::new(0)), Arc::new(Latch::default()));
    let (its_done, its_go) = (done.clone(), go.clone());
    let spec = WorkLaneSpec::new("work");
    let lane = orb.rt().start_work_lane(&spec, move |item: Arc<u32>| {
        assert!(*item > 0, "the work was asked to panic");
        if *item > 1 {
            its_go.arrive();
            its_go.reach(2);
        }
        its_done.fetch_add(1, Ordering::SeqCst);
    });
    let lane = lane.expect("a thread starts");
    for item in [0, 1] {
        assert_eq!(lane.post(Arc::new(item)), Ok(()));
    }
    assert!(lane.flush(PATIENCE));
    assert_eq!(done.load(Ordering::SeqCst), 1);
    // One that waits is dropped with the lane.
    let waits = Arc::new(1);
    assert_eq!(lane.post(Arc::new(2)), Ok(()));
    go.reach(1);
    assert_eq!(lane.post(waits.clone()), Ok(()));
    drop(lane);
    assert_eq!(Arc::strong_count(&waits), 1);
    go.set(2);
    orb.shutdown(true).expect("no servant calls it");
    let refused = orb.rt().start_work_lane(&spec, |(): ()| {});
    let refused = refused.expect_err("the ORB was shut down");
    assert_eq!(refused.kind, SystemExceptionKind::BadInvOrder);
}
