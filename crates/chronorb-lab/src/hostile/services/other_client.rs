//! The other client of a service, whose calls are measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use chronorb::prelude::*;
use chronorb_naming::idl::cos_naming::{NameComponent, NamingContext};
use chronorb_rt::{Deadline, Monotonic, sleep_until};
use chronorb_sched_service::idl::rtec_scheduler::Scheduler;

use super::super::order::{Attempts, Target};
use super::super::victim::orb;
use super::attack::AttackedService;
use super::row::ServicePlan;
use crate::error::LabError;
use crate::events::{Client, Receiver, push_now};
use crate::process::{self, Begin, Parent, Ready};
use crate::stats::Record;

/// Calls whenever the parent says, until it says so again. The process ends at once when standard
/// input ends before that.
pub(in super::super) fn call(
    service: AttackedService,
    target: &Target,
    plan: &ServicePlan,
) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    let mut call = prepare(service, &target.reference, plan)?;
    for _ in 0..WARM_UP_CALLS {
        if !call() {
            let failed = LabError::work("calling the service");
            return Err(failed("it does not answer before the attack"));
        }
    }
    process::tell(&Ready {})?;
    while let Some(Begin {}) = parent.hear::<Option<Begin>>()? {
        let is_over = AtomicBool::new(false);
        let calls = thread::scope(|scope| {
            let calling = scope.spawn(|| repeat(plan, &mut call, &is_over));
            let Begin {} = parent.hear()?;
            is_over.store(true, Ordering::Relaxed);
            Ok::<_, LabError>(calling.join().expect("the caller does not panic"))
        })?;
        process::tell(&calls)?;
    }
    Ok(())
}

/// Returns a call of a service, which tells whether its result is right.
fn prepare(
    service: AttackedService,
    reference: &str,
    plan: &ServicePlan,
) -> Result<Box<dyn FnMut() -> bool + Send>, LabError> {
    let object = |orb: &Orb| {
        let object = orb.string_to_object(reference);
        let object = object.map_err(LabError::work(PREPARING))?;
        Ok::<_, LabError>(object.with_timeout(plan.timeout))
    };
    let timeout = plan.timeout;
    match service {
        AttackedService::Names => {
            let orb = orb()?;
            let object = object(&orb)?;
            let root = NamingContext::unchecked_narrow(&object);
            let name = [NameComponent { id: NAME, kind: "" }];
            let bound = root.bind(&name, Some(&object));
            bound.map_err(|error| LabError::work(PREPARING)(format!("{error:?}")))?;
            Ok(Box::new(move || {
                let _ = &orb;
                matches!(root.resolve(&name), Ok(Some(_)))
            }))
        }
        AttackedService::Events => {
            let client = Client::start(reference, None)?;
            let receiver = Receiver::timed(0);
            client.subscribe(EVENT_TYPE, 0, &receiver)?;
            let supplier = client.supplier(EVENT_TYPE)?;
            Ok(Box::new(move || {
                let _ = &client;
                let next = receiver.taken() + 1;
                push_now(&supplier, EVENT_TYPE, &[]).is_ok()
                    && receiver.await_until(next, Deadline::after(timeout)) >= next
            }))
        }
        AttackedService::Scheduling => {
            let orb = orb()?;
            let scheduler = Scheduler::unchecked_narrow(&object(&orb)?);
            let handle = scheduler.create(NAME);
            let handle = handle.map_err(|error| LabError::work(PREPARING)(format!("{error:?}")))?;
            Ok(Box::new(move || {
                let _ = &orb;
                scheduler
                    .lookup(NAME)
                    .is_ok_and(|looked_up| looked_up == handle)
            }))
        }
    }
}

/// Calls at multiples of a period, except for those at which a call is still under way. Latencies
/// count from when a call was due.
fn repeat(plan: &ServicePlan, call: &mut dyn FnMut() -> bool, is_over: &AtomicBool) -> Attempts {
    let (mut answered, mut failed) = (Record::new(), 0);
    let start = Monotonic::now();
    let mut due = start;
    // At least one call is made, even where the thread gets a processor late.
    loop {
        sleep_until(due);
        let succeeds = call();
        let end = Monotonic::now();
        if succeeds {
            answered.add(due.since(start), end.since(due));
        } else {
            failed += 1;
        }
        while due < end {
            due = due + plan.period;
        }
        if is_over.load(Ordering::Relaxed) {
            return Attempts { answered, failed };
        }
    }
}

const PREPARING: &str = "preparing the other client";
const NAME: &str = "other client";
/// Neither the attackers' consumers nor their suppliers have this type.
const EVENT_TYPE: i32 = 77;
/// Enough to have the code and stack in memory on both sides.
const WARM_UP_CALLS: i32 = 100;
