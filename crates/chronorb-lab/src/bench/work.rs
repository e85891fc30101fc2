//! Servants whose work follows from each call, and calls of them.

use std::time::Duration;

use chronorb::prelude::*;
use chronorb_rt::{Monotonic, sleep_until};

use crate::error::LabError;
use crate::idl::lab::{BurstServant, Work, WorkServant};
use crate::idl::peers::{ClockServant, PowerServant};
use crate::usage::thread_time;
use crate::work::cube;

/// The servant of [`Work`].
#[derive(Debug)]
pub(crate) struct Worker;

impl WorkServant for Worker {
    fn cube(&self, _call: &Call<'_>, value: u8, steps: u32) -> Result<i32, SystemException> {
        Ok(cube(value, steps))
    }

    fn work_until(
        &self,
        _call: &Call<'_>,
        until_ns: u64,
        compute_us: u32,
        rest_us: u32,
    ) -> Result<u32, SystemException> {
        let latest = Monotonic::now() + LONGEST;
        let until = Monotonic::from_nanos(until_ns.min(latest.as_nanos()));
        let longest = work_until(until, micros(compute_us), micros(rest_us));
        Ok(u32::try_from(longest.as_micros()).unwrap_or(u32::MAX))
    }

    fn occupy(&self, _call: &Call<'_>, length_us: u32) -> Result<(), SystemException> {
        sleep_until(Monotonic::now() + micros(length_us).min(LONGEST));
        Ok(())
    }

    fn compute(&self, _call: &Call<'_>, cpu_us: u32) -> Result<u64, SystemException> {
        compute(micros(cpu_us).min(LONGEST));
        Ok(Monotonic::now().as_nanos())
    }
}

impl BurstServant for Worker {}

/// The servant of `Power`, which computes for so many steps in each call.
#[derive(Debug)]
pub(crate) struct PowerWorker {
    pub(crate) steps: u32,
}

impl PowerServant for PowerWorker {
    fn cube(&self, _call: &Call<'_>, v: u8) -> Result<i32, SystemException> {
        Ok(cube(v, self.steps))
    }
}

/// The servant of `Clock` that computes for so many steps for each message.
#[derive(Debug)]
pub(crate) struct SinkWorker {
    pub(crate) steps: u32,
}

impl ClockServant for SinkWorker {
    fn send(&self, _call: &Call<'_>, _sent_ns: u64) -> Result<(), SystemException> {
        cube(7, self.steps);
        Ok(())
    }

    fn carry(&self, _call: &Call<'_>, _sent_ns: u64, _load: &[u8]) -> Result<(), SystemException> {
        cube(7, self.steps);
        Ok(())
    }

    fn settle(&self, _call: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Computes until this thread has taken so much processor time.
pub(crate) fn compute(time: Duration) {
    let before = thread_time();
    while thread_time().saturating_sub(before) < time {
        cube(7, COMPUTING_STEPS);
    }
}

/// Computes and rests by turns until an instant. Returns the longest time for which this thread was
/// kept from computing.
pub(crate) fn work_until(until: Monotonic, compute: Duration, rest: Duration) -> Duration {
    let mut longest = Duration::ZERO;
    let mut seen = Monotonic::now();
    let mut rest_from = seen + compute;
    while seen < until {
        cube(7, STEPS);
        let now = Monotonic::now();
        longest = longest.max(now.since(seen));
        seen = now;
        if seen >= rest_from {
            if !rest.is_zero() {
                sleep_until(until.min(seen + rest));
                seen = Monotonic::now();
            }
            rest_from = seen + compute;
        }
    }
    longest
}

/// Gives this thread a priority, and finds the object that it calls.
pub(crate) fn find(
    orb: &Orb,
    priority: Option<Priority>,
    reference: &str,
) -> Result<Work, LabError> {
    if let Some(priority) = priority {
        set_priority(orb, priority)?;
    }
    orb.string_to_object(reference)
        .and_then(|object| Work::narrow(&object))
        .map_err(LabError::work(FINDING))?
        .ok_or_else(|| LabError::work(FINDING)("it does no such work"))
}

/// Gives this thread a priority.
pub(crate) fn set_priority(orb: &Orb, priority: Priority) -> Result<(), LabError> {
    let set = orb.rt_current().set_priority(priority);
    set.map_err(LabError::work("setting the priority"))
}

/// Makes a call that computes for so many steps, and checks its reply.
pub(crate) fn call(work: &Work, value: u8, steps: u32) -> Result<(), LabError> {
    check(value, work.cube(value, steps))
}

/// Checks the reply to a call for a cube.
pub(crate) fn check(value: u8, reply: Result<i32, SystemException>) -> Result<(), LabError> {
    let cube = reply.map_err(LabError::work(CALLING))?;
    if cube == i32::from(value).pow(3) {
        Ok(())
    } else {
        let wrong = format!("{value}³ is not {cube}");
        Err(LabError::work(CALLING)(wrong))
    }
}

fn micros(us: u32) -> Duration {
    Duration::from_micros(us.into())
}

/// The argument of calls whose argument does not matter.
pub(crate) const VALUE: u8 = 11;
/// Steps that take a few microseconds, the resolution of [`work_until`].
const STEPS: u32 = 2_000;
/// Steps between two readings of the processor time: about as long as a reading.
const COMPUTING_STEPS: u32 = 300;
/// The limit of what a client can ask for.
const LONGEST: Duration = Duration::from_secs(60);
const FINDING: &str = "finding the object";
const CALLING: &str = "calling the server";
