//! What a point costs where a stamp can be put down, with one and without.

use std::hint::black_box;

use chronorb_orb::stages::Stages;
use chronorb_orb::{Stage, StageProbe};
use chronorb_probe::{Activity, StampClock, doing, keep_stamps, stamp};
use chronorb_rt::{Deadline, Monotonic};
use serde::{Deserialize, Serialize};

use super::PART;
use super::order::Part;
use super::plan::transport;
use super::server::offer;
use super::trial::WIND_DOWN;
use crate::error::LabError;
use crate::process::{self, Child};

/// What a point costs where a stamp can be put down. All times are the least of some rounds of one after the other, with
/// the loop that counts them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StampCost {
    /// The clock of the stamps.
    pub clock: String,
    /// A stamp at a stage of the ORB, in nanoseconds.
    pub stamp_ns: f64,
    /// A stage of an ORB that nobody probes, in nanoseconds.
    pub stage_off_ns: f64,
    /// A turn to input and output and back, where nobody wants to know, in nanoseconds.
    pub turn_off_ns: f64,
}

impl StampCost {
    /// What a point costs at most that is off, in nanoseconds. A turn is two: there, and back.
    pub(super) fn dearest_off_ns(&self) -> f64 {
        self.stage_off_ns.max(self.turn_off_ns / 2.0)
    }
}

/// Has a process of its own measure it: who keeps stamps keeps them for good.
pub(super) fn measure() -> Result<StampCost, LabError> {
    let (child, cost) = Child::start("cost", PART, &Part::Cost)?;
    child.finish(Deadline::after(WIND_DOWN))?;
    Ok(cost)
}

/// Measures it, and tells.
pub(super) fn tell() -> Result<(), LabError> {
    let failed = LabError::work("starting the ORB");
    let orb = transport("iiop")?.orb(None, |_| {}).map_err(failed)?;
    let object = offer(&orb).map_err(LabError::work("offering the object"))?;
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

/// The least that it took to do something, of some rounds, in nanoseconds, with the loop around it.
fn least(what: impl Fn()) -> f64 {
    let round = || {
        let before = Monotonic::now();
        for _ in 0..ROUND {
            what();
        }
        (Monotonic::now() - before).as_nanos() as f64 / f64::from(ROUND)
    };
    let least = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
    (least * 100.0).round() / 100.0
}

const ROUND: u32 = 1 << 14;
const ROUNDS: u32 = 40;
