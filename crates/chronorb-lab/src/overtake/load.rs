//! A client that makes the load.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_rt::{Monotonic, sleep_until};

use super::client::{await_start, connect};
use super::endless;
use super::order::{ClientOrder, Fare, HIGH, LOW, Loaded, MIDDLE, Prepare, Role};
use super::plan::{Plan, Span};
use crate::error::LabError;
use crate::idl::overtake::Workshop;
use crate::process::Parent;

/// Makes the load of one case, with as many threads as it was told.
pub(super) fn run(
    orb: &Orb,
    order: &ClientOrder,
    prepare: &Prepare,
    parent: &Parent,
) -> Result<Loaded, LabError> {
    thread::scope(|scope| {
        let (connected, connections) = mpsc::channel();
        let callers: Vec<_> = (0..prepare.callers)
            .map(|_| {
                let (start, starts) = mpsc::channel();
                let connected = connected.clone();
                let caller = scope.spawn(move || caller(orb, order, prepare, connected, &starts));
                (start, caller)
            })
            .collect();
        drop(connected);
        // A caller that fails to connect does not report: then nobody is started, and it says what
        // is wrong.
        if connections.iter().count() == callers.len() {
            let at = await_start(parent)?;
            for (start, _) in &callers {
                let _ = start.send(at);
            }
        }
        let mut all = [Fare::default(); 2];
        for (start, caller) in callers {
            drop(start);
            let fares = caller
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            all = [all[0].and(fares[0]), all[1].and(fares[1])];
        }
        Ok(Loaded { spans: all })
    })
}

/// One calling thread: connects, reports, waits for the start, and calls while the load is on.
fn caller(
    orb: &Orb,
    order: &ClientOrder,
    prepare: &Prepare,
    connected: Sender<()>,
    start: &Receiver<Monotonic>,
) -> Result<[Fare; 2], LabError> {
    let priority = match order.role {
        Role::High | Role::Slow => HIGH,
        Role::Middle => MIDDLE,
        Role::Low | Role::Awake => LOW,
    };
    let workshop = connect(orb, priority, &prepare.reference)?;
    // Nobody waits for this caller any more when another one failed.
    let _ = connected.send(());
    drop(connected);
    let Ok(at) = start.recv() else {
        return Ok([Fare::default(); 2]);
    };
    let [first, second] = order.plan.spans(at);
    let fare = |span| call_while_on(&workshop, order.role, &order.plan, span);
    Ok([fare(first)?, fare(second)?])
}

fn call_while_on(
    workshop: &Workshop,
    role: Role,
    plan: &Plan,
    span: Span,
) -> Result<Fare, LabError> {
    let mut fare = Fare::default();
    let until = span.load_until;
    sleep_until(span.load_from);
    while Monotonic::now() < until {
        match call(workshop, role, plan, until) {
            Ok(longest_stop_us) => fare.longest_stop_us = fare.longest_stop_us.max(longest_stop_us),
            Err(exception) if exception.kind == SystemExceptionKind::Transient => {
                fare.refused += 1;
                sleep_until(until.min(Monotonic::now() + RETRY));
            }
            Err(exception) => return Err(LabError::work("loading the server")(exception)),
        }
    }
    Ok(fare)
}

/// One call. Returns how long its work was kept from computing, in µs.
fn call(
    workshop: &Workshop,
    role: Role,
    plan: &Plan,
    until: Monotonic,
) -> Result<u32, SystemException> {
    let until_ns = until.as_nanos();
    match role {
        Role::High | Role::Slow => workshop.occupy(micros(plan.slow_work)).map(|()| 0),
        Role::Middle => {
            let (compute, rest) = (micros(plan.middle_compute), micros(plan.middle_rest));
            workshop.work_until(until_ns, compute, rest)
        }
        Role::Low => workshop.work_until(until_ns, micros(plan.middle_compute), 0),
        Role::Awake => {
            endless::work_until(until, plan.middle_compute, Duration::ZERO);
            Ok(0)
        }
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// When a caller that was refused tries again.
const RETRY: Duration = Duration::from_millis(5);
