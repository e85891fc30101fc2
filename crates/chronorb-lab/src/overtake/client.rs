//! The clients: one whose calls are measured, and others that make the load.

use std::time::Duration;

use chronorb::prelude::*;
use chronorb_rt::{Deadline, Monotonic, sleep_until};
use serde::{Deserialize, Serialize};

use super::plan::{Plan, Span};
use crate::bench::work::{self, VALUE, find, work_until};
use crate::bench::{is_real_time, priority, real_time_options, start_orb, with_callers};
use crate::error::LabError;
use crate::idl::lab::Work;
use crate::process::{self, Parent, Ready};
use crate::schedule::{SystemClock, closed_loop, periodic};
use crate::stats::Record;

/// The order of a client.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientOrder {
    pub(super) role: Role,
    pub(super) lock_memory: bool,
    pub(super) plan: Plan,
    /// What a call of the measuring client computes.
    pub(super) high_steps: u32,
}

/// The role of a client.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Role {
    /// Makes the calls that are measured.
    High,
    /// Exhausts the high lane.
    Slow,
    /// Saturates the middle lane.
    Middle,
    /// Saturates the low lane.
    Low,
    /// Keeps the processors awake, and asks nothing of the server.
    Awake,
}

/// The order of a client before each case.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Prepare {
    pub(super) reference: String,
    /// The number of threads that call.
    pub(super) callers: u32,
}

/// The beginning of a case, in ns of the monotonic clock.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Start {
    pub(super) at_ns: u64,
}

/// The calls of each span of the client that measures.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Measured {
    pub(super) spans: [Record; 2],
    /// Whether it ran at a real-time priority.
    pub(super) real_time: bool,
}

/// The load that a client has made in each span.
pub(super) type Loads = [LoadMade; 2];

/// The load that a client has made in a span.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct LoadMade {
    /// The number of its requests that were refused (`TRANSIENT`).
    pub(super) refused: u64,
    /// The longest time for which endless work was kept from computing.
    pub(super) longest_stop_us: u32,
}

impl LoadMade {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            refused: self.refused + other.refused,
            longest_stop_us: self.longest_stop_us.max(other.longest_stop_us),
        }
    }
}

/// Runs a client.
///
/// # Errors
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a call fails.
pub(crate) fn client_main(order: &str) -> Result<(), LabError> {
    let order: ClientOrder = process::order(order)?;
    let parent = Parent::or_exit();
    let orb = start_orb(&real_time_options(order.lock_memory))?;
    while let Some(prepare) = parent.hear::<Option<Prepare>>()? {
        match order.role {
            Role::High => process::tell(&order.measured(&orb, &prepare, &parent)?)?,
            _ => process::tell(&order.load(&orb, &prepare, &parent)?)?,
        }
    }
    Ok(())
}

impl ClientOrder {
    /// Measures calls of high priority: at fixed times, then back to back.
    fn measured(
        &self,
        orb: &Orb,
        prepare: &Prepare,
        parent: &Parent,
    ) -> Result<Measured, LabError> {
        let work = connect(orb, HIGH, &prepare.reference)?;
        let call = || work::call(&work, VALUE, self.high_steps);
        (0..WARM_UP_CALLS).try_for_each(|_| call())?;
        let real_time = is_real_time();
        let [at_times, at_once] = self.plan.spans(await_start(parent)?);
        Ok(Measured {
            spans: [
                periodic(&SystemClock, at_times.window, self.plan.period, call)?,
                closed_loop(&SystemClock, at_once.window, call)?,
            ],
            real_time,
        })
    }

    /// Makes the load of one case.
    fn load(&self, orb: &Orb, prepare: &Prepare, parent: &Parent) -> Result<Loads, LabError> {
        let value = match self.role {
            Role::High | Role::Slow => HIGH,
            Role::Middle => MIDDLE,
            Role::Low | Role::Awake => LOW,
        };
        let connect = |_| connect(orb, value, &prepare.reference);
        let run = |work: &mut Work, _: usize, at: &Monotonic| {
            let [first, second] = self.plan.spans(*at);
            Ok([
                self.call_while_on(work, first)?,
                self.call_while_on(work, second)?,
            ])
        };
        with_callers(prepare.callers as usize, connect, run, |callers| {
            let loads: Vec<Loads> = callers.run(&await_start(parent)?)?;
            let add = |all: Loads, of: Loads| [all[0].and(of[0]), all[1].and(of[1])];
            Ok(loads.into_iter().fold(Loads::default(), add))
        })
    }

    /// Calls from the beginning of the load to its end.
    fn call_while_on(&self, work: &Work, span: Span) -> Result<LoadMade, LabError> {
        let mut load = LoadMade::default();
        let until = span.load_until;
        sleep_until(span.load_from);
        while Monotonic::now() < until {
            match self.call(work, until) {
                Ok(longest_stop_us) => {
                    load.longest_stop_us = load.longest_stop_us.max(longest_stop_us);
                }
                Err(exception) if exception.kind == SystemExceptionKind::Transient => {
                    load.refused += 1;
                    sleep_until(until.min(Monotonic::now() + RETRY));
                }
                Err(exception) => return Err(LabError::work("loading the server")(exception)),
            }
        }
        Ok(load)
    }

    /// Makes one call. Returns the time for which its work was kept from computing, in µs.
    fn call(&self, work: &Work, until: Monotonic) -> Result<u32, SystemException> {
        let plan = &self.plan;
        let (until_ns, compute) = (until.as_nanos(), micros(plan.middle_compute));
        match self.role {
            Role::High | Role::Slow => work.occupy(micros(plan.slow_work)).map(|()| 0),
            Role::Middle => work.work_until(until_ns, compute, micros(plan.middle_rest)),
            Role::Low => work.work_until(until_ns, compute, 0),
            Role::Awake => {
                work_until(until, plan.middle_compute, Duration::ZERO);
                Ok(0)
            }
        }
    }
}

/// Connects this thread to the object, at a priority.
fn connect(orb: &Orb, value: i16, reference: &str) -> Result<Work, LabError> {
    let work = find(orb, Some(priority(value)), reference)?;
    let deadline = Deadline::after(PATIENCE);
    // Many connect at a time, and more than a buffer holds: then some are refused.
    while let Err(exception) = work.cube(VALUE, 1) {
        if exception.kind != SystemExceptionKind::Transient || deadline.has_passed() {
            return Err(LabError::work("calling the server")(exception));
        }
        sleep_until(Monotonic::now() + Duration::from_millis(1));
    }
    Ok(work)
}

/// Reports that this client is connected, and waits for the beginning of the case.
fn await_start(parent: &Parent) -> Result<Monotonic, LabError> {
    process::tell(&Ready {})?;
    let Start { at_ns } = parent.hear()?;
    Ok(Monotonic::from_nanos(at_ns))
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// The part of a process that is a client of this experiment.
pub(crate) const CLIENT: &str = "overtake-client";
/// Real-time priorities of Linux, where they may be used.
pub(super) const HIGH: i16 = 24_000;
pub(super) const MIDDLE: i16 = 8_000;
/// The system's ordinary scheduling: what the others leave of the processors.
pub(super) const LOW: i16 = 0;
/// The calls of high priority that are not measured.
const WARM_UP_CALLS: u32 = 100;
/// The time for which a caller tries to connect to a server whose buffers are full.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time after which a caller that was refused tries again.
const RETRY: Duration = Duration::from_millis(5);
