//! The amount of work of the experiment.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::files;
use super::fleet::{CALIBRATION_PERIOD, LEAD};
use super::hops;
use super::one_lane;
use super::overload::FRAME;
use super::{overrun, threads};
use crate::named::by_name;

/// A part of the experiment.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum SchedulingPart {
    /// Overload by discipline: simulated, and run on lanes for fixed priorities.
    #[serde(rename = "x1")]
    Overload,
    /// The look-up of an operation in the run-time scheduler, in instructions.
    #[serde(rename = "x3")]
    LookUp,
    /// The queue of a lane in each order, in instructions.
    #[serde(rename = "x4")]
    Queue,
    /// The scheduling service of TAO: computations of many operations.
    #[serde(rename = "x5")]
    Recompute,
    /// The costs of distributable threads, and of their cancellation.
    #[serde(rename = "x8")]
    Segments,
    /// Response times: analysed, simulated and measured.
    #[serde(rename = "x9")]
    Responses,
    /// The cost of the static scheduling service at run time.
    #[serde(rename = "x10")]
    StaticService,
    /// An operation that exceeds its budget, with and without a policy.
    #[serde(rename = "x11")]
    Overrun,
    /// Deadlines over two calls, with clocks that are apart.
    #[serde(rename = "x12")]
    Hops,
    /// One lane in the order of arrival and in that of deadlines.
    #[serde(rename = "x13")]
    OneLane,
    /// Schedule files: analysed, simulated, and run as assigned.
    #[serde(rename = "x14")]
    Files,
}

impl SchedulingPart {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Overload,
        Self::LookUp,
        Self::Queue,
        Self::Recompute,
        Self::Segments,
        Self::Responses,
        Self::StaticService,
        Self::Overrun,
        Self::Hops,
        Self::OneLane,
        Self::Files,
    ];
}

by_name!(SchedulingPart);

/// The parts of a run, and their sizes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SchedulingPlan {
    /// The parts.
    pub parts: Vec<SchedulingPart>,
    /// The frames in which each set of priorities is run under overload.
    pub frames: u32,
    /// The runs of each analysed set, by either way of release, and of each schedule file.
    pub rounds: u32,
    /// The length of one of these runs.
    pub run: Duration,
    /// The frames with an overrun, for each policy.
    pub overruns: u32,
    /// The frames on one lane for each order and deadline, and over two calls for each trial.
    pub one_lane: u32,
    /// The jobs by which the costs of a call are measured.
    pub calibration: u32,
    /// The look-ups that are counted in each table.
    pub looked_up: u32,
    /// The requests that go through each queue.
    pub queued: u32,
    /// The computations of each number of operations by the scheduling service.
    pub computations: u32,
    /// The batches in which segments and calls are timed.
    pub batches: u32,
    /// The operations of a batch.
    pub calls: u32,
    /// The cancellations of each distance.
    pub cancellations: u32,
}

impl SchedulingPlan {
    pub(super) fn full() -> Self {
        Self {
            computations: 20,
            batches: 100,
            calls: 1_000,
            cancellations: 200,
            ..Self::of(20, 10, Duration::from_secs(1), 10, 25, 500)
        }
    }

    pub(super) fn short() -> Self {
        Self {
            computations: 5,
            batches: 20,
            calls: 500,
            cancellations: 50,
            ..Self::of(5, 2, Duration::from_millis(500), 3, 5, 200)
        }
    }

    /// Returns the least that runs every part, for tests; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            looked_up: 2,
            queued: 1,
            ..Self::of(1, 1, Duration::from_millis(100), 1, 1, 10)
        }
    }

    fn of(
        frames: u32,
        rounds: u32,
        run: Duration,
        overruns: u32,
        one_lane: u32,
        calibration: u32,
    ) -> Self {
        Self {
            parts: SchedulingPart::ALL.to_vec(),
            frames,
            rounds,
            run,
            overruns,
            one_lane,
            calibration,
            looked_up: 16,
            queued: 32,
            computations: 1,
            batches: 1,
            calls: 10,
            cancellations: 1,
        }
    }

    pub(super) fn has(&self, part: SchedulingPart) -> bool {
        self.parts.contains(&part)
    }

    /// Returns about the length of a run.
    pub(super) fn length(&self) -> Duration {
        let calibration = CALIBRATION_PERIOD * self.calibration + AROUND;
        let overload = (calibration + (FRAME * 2 + LEAD) * self.frames) * 3;
        let responses = (calibration + (self.run + LEAD) * (self.rounds * 2)) * 3;
        let overruns = (AROUND + (overrun::FRAME * 2 + LEAD) * self.overruns) * 3;
        let one_lane = (calibration + (one_lane::FRAME * 2 + LEAD) * self.one_lane) * 4;
        let hops = (calibration + (one_lane::FRAME * 2 + LEAD) * self.one_lane) * hops::COUNT;
        let files = (calibration + AROUND + (self.run + LEAD) * self.rounds) * files::count();
        let parts = [
            (SchedulingPart::Files, files),
            (SchedulingPart::Hops, hops),
            (SchedulingPart::OneLane, one_lane),
            (SchedulingPart::Overload, overload),
            (SchedulingPart::LookUp, AROUND),
            (SchedulingPart::Queue, AROUND * 10),
            (SchedulingPart::Recompute, COMPUTATION * self.computations),
            (SchedulingPart::Segments, threads::length(self)),
            (SchedulingPart::Responses, responses),
            (SchedulingPart::StaticService, AROUND),
            (SchedulingPart::Overrun, overruns),
        ];
        let parts = parts.into_iter().filter(|(part, _)| self.has(*part));
        parts.map(|(_, length)| length).sum()
    }

    /// Returns the command that repeats the run.
    pub(super) fn command(&self) -> String {
        let command = "cargo run --release -- lab scheduling";
        if self.parts.len() == SchedulingPart::ALL.len() {
            return command.to_owned();
        }
        let parts: Vec<_> = self.parts.iter().map(ToString::to_string).collect();
        format!("{command} --only {}", parts.join(","))
    }
}

/// About the time of the computations of all sizes.
const COMPUTATION: Duration = Duration::from_millis(20);
/// The time that it takes to start and to stop a server and its client.
const AROUND: Duration = Duration::from_millis(300);
