//! What a stamp costs.

use chronorb_rt::{Monotonic, StampClock, keep_stamps, stamp};
use serde::Serialize;

/// What a stamp costs, and what it is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StampCost {
    /// The clock.
    pub clock: &'static str,
    /// A stamp one after the other, the least of some rounds, in nanoseconds.
    pub stamp_ns: f64,
}

/// Puts stamps down as the ORB does, and nothing else.
pub(super) fn measure() -> StampCost {
    let clock = keep_stamps(STAMPS as usize);
    let probe = chronorb_orb::StageProbe::stamps();
    // Makes the ring of this thread.
    stamp(0);
    let round = || {
        let before = Monotonic::now();
        for _ in 0..STAMPS {
            std::hint::black_box(&probe).at(chronorb_orb::Stage::Read);
        }
        (Monotonic::now() - before).as_nanos() as f64 / f64::from(STAMPS)
    };
    let least = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
    StampCost {
        clock: match clock {
            StampClock::TimeStampCounter => "the processor's time stamp counter",
            StampClock::Monotonic => "CLOCK_MONOTONIC",
        },
        stamp_ns: (least * 10.0).round() / 10.0,
    }
}

const STAMPS: u32 = 1 << 14;
const ROUNDS: u32 = 20;
