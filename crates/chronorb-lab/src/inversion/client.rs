//! The client of the experiment: one thread of high priority, and many of low.

use super::calls;
use super::order::{CallSchedule, CallTimes, HIGH, InversionClient, LOW, orb_options};
use crate::bench::work::{VALUE, check, set_priority};
use crate::bench::{start_orb, with_callers};
use crate::error::LabError;
use crate::idl::peers::Power;
use crate::process::{self, Parent, Ready};
use crate::schedule::SystemClock;

/// Runs the client.
///
/// # Errors
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a call fails.
pub(crate) fn client_main(order: &str) -> Result<(), LabError> {
    let order: InversionClient = process::order(order)?;
    let parent = Parent::or_exit();
    let orb = start_orb(&orb_options(&order.architecture, order.lock_memory))?;
    let connect = |number| {
        let (priority, reference) = match number {
            0 => (HIGH, &order.serving.high),
            _ => (LOW, &order.serving.low),
        };
        set_priority(&orb, priority)?;
        let finding = LabError::work("finding the object");
        let object = orb.string_to_object(reference).map_err(&finding)?;
        let connected = object.validate_connection();
        connected.map_err(LabError::work("connecting to the server"))?;
        let power = Power::narrow(&object).map_err(&finding)?;
        let power = power.ok_or_else(|| LabError::work("finding the object")("it is no power"))?;
        // All threads do this at once, so the resources for a burst of calls are allocated.
        (0..WARM_UP_CALLS).try_for_each(|_| check(VALUE, power.cube(VALUE)))?;
        Ok(power)
    };
    let call = |power: &mut Power, number: usize, schedule: &CallSchedule| {
        let (period_ns, threads) = match number {
            0 => (schedule.high_period_ns, 1),
            _ => (schedule.low_period_ns, order.low_clients),
        };
        calls::make(&SystemClock, schedule, period_ns, threads, || {
            check(VALUE, power.cube(VALUE))
        })
    };
    let threads = order.low_clients as usize + 1;
    let times = with_callers(threads, connect, call, |callers| {
        process::tell(&Ready {})?;
        let mut times = callers.run(&parent.hear()?)?;
        let low = times.split_off(1).concat();
        Ok(CallTimes {
            high: times.concat(),
            low,
        })
    })?;
    Ok(parent.conclude(&times)?)
}

/// The part of a process that is a client of this experiment.
pub(crate) const CLIENT: &str = "inversion-client";
/// The calls of each thread that are not measured.
const WARM_UP_CALLS: u32 = 20;
