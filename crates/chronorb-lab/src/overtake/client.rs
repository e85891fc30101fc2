//! A client of the experiment: one that measures, or one of those that make the load.

use std::time::Duration;

use chronorb::prelude::*;
use chronorb_rt::{Deadline, Monotonic, Policy as SchedulingPolicy, sleep_until};

use super::load;
use super::order::{ClientOrder, HIGH, Measured, Prepare, Ready, Role, Start};
use super::server::orb;
use crate::error::LabError;
use crate::idl::overtake::Workshop;
use crate::process::{self, Parent};
use crate::schedule::{SystemClock, closed_loop, periodic};

/// Calls servers as the parent says, case by case. The process ends at once when standard input
/// ends before that.
///
/// `order` is the argument of [`CLIENT_COMMAND`](super::CLIENT_COMMAND), made by
/// [`Overtake`](super::Overtake).
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a call
/// fails.
pub fn client_main(order: &str) -> Result<(), LabError> {
    let order: ClientOrder = process::order(order)?;
    let parent = Parent::listen(|| std::process::exit(ABANDONED));
    let orb = orb(order.lock_memory, &[])?;
    while let Some(prepare) = parent.hear::<Option<Prepare>>()? {
        match order.role {
            Role::High => process::tell(&measured(&orb, &order, &prepare, &parent)?)?,
            _ => process::tell(&load::run(&orb, &order, &prepare, &parent)?)?,
        }
    }
    Ok(())
}

/// Says that everything is connected, and waits for the start.
pub(super) fn await_start(parent: &Parent) -> Result<Monotonic, LabError> {
    process::tell(&Ready {})?;
    let Start { at_ns } = parent.hear()?;
    Ok(Monotonic::from_nanos(at_ns))
}

/// Gives the thread its priority and finds the object, with everything on the way there.
pub(super) fn connect(
    orb: &Orb,
    priority: Priority,
    reference: &str,
) -> Result<Workshop, LabError> {
    orb.rt_current()
        .set_priority(priority)
        .map_err(LabError::work("setting the priority"))?;
    let workshop = orb
        .string_to_object(reference)
        .and_then(|object| Workshop::narrow(&object))
        .map_err(LabError::work("finding the object"))?
        .ok_or_else(|| LabError::work("finding the object")("it does no such work"))?;
    let deadline = Deadline::after(PATIENCE);
    // Many connect at a time, and more than a buffer holds: then some are refused.
    while let Err(exception) = workshop.cube(VALUE, 1) {
        if exception.kind != SystemExceptionKind::Transient || deadline.has_passed() {
            return Err(LabError::work("calling the server")(exception));
        }
        sleep_until(Monotonic::now() + Duration::from_millis(1));
    }
    Ok(workshop)
}

/// Measures the calls of one case.
fn measured(
    orb: &Orb,
    order: &ClientOrder,
    prepare: &Prepare,
    parent: &Parent,
) -> Result<Measured, LabError> {
    let workshop = connect(orb, HIGH, &prepare.reference)?;
    let call = |steps| {
        let cube = workshop
            .cube(VALUE, steps)
            .map_err(LabError::work("calling the server"))?;
        match cube {
            CUBE => Ok(()),
            _ => Err(LabError::work("calling the server")(format!(
                "{VALUE}³ is not {cube}"
            ))),
        }
    };
    for _ in 0..WARM_UP_CALLS {
        call(order.high_steps)?;
    }
    let real_time =
        chronorb_rt::current().is_ok_and(|scheduling| scheduling.policy != SchedulingPolicy::Other);
    let [at_times, at_once] = order.plan.spans(await_start(parent)?);
    let call = || call(order.high_steps);
    Ok(Measured {
        spans: [
            periodic(&SystemClock, at_times.window, order.plan.period, call)?,
            closed_loop(&SystemClock, at_once.window, call)?,
        ],
        real_time,
    })
}

const VALUE: u8 = 11;
const CUBE: i32 = 1331;
/// Enough to have the code and stack in memory on both sides.
const WARM_UP_CALLS: u32 = 100;
/// How long requests that find the server's buffers full are repeated while nothing else runs.
const PATIENCE: Duration = Duration::from_secs(10);
/// The exit status of a client whose parent is gone.
const ABANDONED: i32 = 3;
