//! The cost of a point at which a stamp can be recorded, with one and without.

use std::hint::black_box;

use chronorb_orb::stages::Stages;
use chronorb_orb::{Stage, StageProbe};
use chronorb_probe::{Activity, StampClock, doing, keep_stamps, stamp};
use chronorb_rt::{Deadline, Monotonic};
use serde::{Deserialize, Serialize};

use super::PART;
use super::order::ProbePart;
use super::plan::orb;
use super::processes::offer;
use super::trial::WIND_DOWN;
use crate::error::LabError;
use crate::process::{self, Child};

/// The cost of a point at which a stamp can be recorded. All times are the least of some rounds,
/// and include the loop that counts.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StampCost {
    /// The clock of the stamps.
    pub clock: String,
    /// A stamp at a stage of the ORB, in nanoseconds.
    pub stamp_ns: f64,
    /// A stage of an ORB without a probe, in nanoseconds.
    pub stage_off_ns: f64,
    /// A turn to input and output and back without stamps, in nanoseconds.
    pub turn_off_ns: f64,
}

impl StampCost {
    /// Returns the greatest cost of a point that is off, in nanoseconds. A turn has two points.
    pub(super) fn dearest_off_ns(&self) -> f64 {
        self.stage_off_ns.max(self.turn_off_ns / 2.0)
    }
}

/// Has a process of its own measure the cost, because a process keeps stamps for good.
pub(super) fn measure() -> Result<StampCost, LabError> {
    let (child, cost) = Child::start("cost", PART, &ProbePart::Cost)?;
    child.finish(Deadline::after(WIND_DOWN))?;
    Ok(cost)
}

/// Measures the cost, and reports it to the parent.
pub(super) fn tell() -> Result<(), LabError> {
    let failed = LabError::work("starting the ORB");
    let orb = orb("iiop", None, |_| {}).map_err(failed)?;
    let object = offer(&orb, false)?;
    let stages = Stages::new(&object);
    let stage_off_ns = least(|| black_box(&stages).at(Stage::Read));
    let turn_off_ns = least(|| drop(black_box(doing(Activity::InputOutput))));

    let clock = keep_stamps(ROUND as usize);
    let probe = StageProbe::stamps();
    // Makes the ring of this thread.
    stamp(0);
    let cost = StampCost {
        clock: match clock {
            StampClock::TimeStampCounter => "the processor's time stamp counter",
            StampClock::Monotonic => "CLOCK_MONOTONIC",
        }
        .to_owned(),
        stamp_ns: least(|| black_box(&probe).at(Stage::Read)),
        stage_off_ns,
        turn_off_ns,
    };
    process::tell(&cost)?;
    Ok(())
}

/// Returns the least time of `work` in some rounds, in nanoseconds, with the loop around it.
fn least(work: impl Fn()) -> f64 {
    let round = || {
        let before = Monotonic::now();
        for _ in 0..ROUND {
            work();
        }
        (Monotonic::now() - before).as_nanos() as f64 / f64::from(ROUND)
    };
    let least = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
    (least * 100.0).round() / 100.0
}

const ROUND: u32 = 1 << 14;
const ROUNDS: u32 = 40;
