//! The end of a subscription and the change of the plan, by the model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p chronorb-channel --release --test loom`.
#![cfg(loom)]

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

use gate::PushGate;
use parking::Parking;
use plans::Plans;

#[allow(dead_code, reason = "not all of it is modelled")]
#[path = "../src/gate.rs"]
mod gate;

#[path = "../src/parking.rs"]
mod parking;

#[path = "../src/plans.rs"]
mod plans;

/// The atomics of what is shared.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    use loom::sync::{Condvar, Mutex};

    /// No thread of a model ends a subscription within a push.
    pub(crate) fn depth() -> i32 {
        0
    }

    pub(crate) fn change_depth(_: i32) {}

    /// A deadline that never passes.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Deadline;

    impl Deadline {
        pub(crate) fn has_passed(self) -> bool {
            false
        }
    }

    /// The model's substitute for a futex word.
    #[derive(Debug, Default)]
    pub(crate) struct Gate {
        state: Mutex<u32>,
        changed: Condvar,
    }

    impl Gate {
        pub(crate) fn get(&self) -> u32 {
            *self.state.lock().unwrap()
        }

        pub(crate) fn advance(&self) {
            *self.state.lock().unwrap() += 1;
            self.changed.notify_all();
        }

        pub(crate) fn wait_while(&self, seen: u32, _: Deadline) {
            let mut state = self.state.lock().unwrap();
            while *state == seen {
                state = self.changed.wait(state).unwrap();
            }
        }
    }
}

/// Checks a model with bounded preemptions, because switches between instructions that no other
/// thread sees teach nothing.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// After `close` and `wait` no push is in progress, and none begins.
#[test]
fn no_push_follows_the_end() {
    check(|| {
        let gate = Arc::new(PushGate::default());
        let has_ended = Arc::new(AtomicBool::new(false));
        let supplier = {
            let (gate, has_ended) = (gate.clone(), has_ended.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    if let Some(_push) = gate.enter() {
                        assert!(!has_ended.load(Ordering::SeqCst));
                    }
                }
            })
        };
        assert!(gate.close());
        gate.wait(sync::Deadline);
        has_ended.store(true, Ordering::SeqCst);
        assert!(gate.enter().is_none());
        supplier.join().unwrap();
    });
}

/// A plan that counts its drops.
struct NumberedPlan {
    number: u32,
    drops: Arc<AtomicU32>,
}

impl Drop for NumberedPlan {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

/// A supplier always finds a plan, never an older one than before, and each is dropped once.
#[test]
fn a_supplier_finds_the_present_plan() {
    check(|| {
        let drops = Arc::new(AtomicU32::new(0));
        let plan = |number| NumberedPlan {
            number,
            drops: drops.clone(),
        };
        let plans = Arc::new(Plans::new(4));
        assert!(plans.read().is_none());
        assert!(plans.replace(plan(1)));
        let supplier = {
            let plans = plans.clone();
            thread::spawn(move || {
                let first = plans.read().unwrap();
                let second = plans.read().unwrap();
                assert!(first.number <= second.number);
            })
        };
        assert!(plans.replace(plan(2)));
        assert_eq!(plans.read().unwrap().number, 2);
        supplier.join().unwrap();
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

/// A consumer that becomes ready is served: its lane sees that, or is called once.
#[test]
fn a_ready_consumer_is_not_left_parked() {
    check(|| {
        let parking = Arc::new(Parking::default());
        let readiness = Arc::new(Mutex::new(false));
        assert!(parking.call());
        let (its, shared) = (readiness.clone(), parking.clone());
        let consumer = thread::spawn(move || {
            *its.lock().unwrap() = true;
            shared.unpark()
        });
        parking.begin_look();
        let is_ready = || *readiness.lock().unwrap();
        let is_left = !is_ready() && parking.park(is_ready);
        let is_called = consumer.join().unwrap();
        assert_eq!(is_left, is_called);
        // An event calls the lane only where it is not called already.
        assert_eq!(parking.call(), !is_left);
    });
}
