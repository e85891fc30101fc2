//! The parts of the experiment, and the plan of a run.

use std::time::Duration;

use serde::Serialize;

use super::RealTimeIo;
use super::packets::Load;
use crate::experiment::Experiment;
use crate::inversion::{InversionPlan, Mode};
use crate::named::by_name;

/// An experiment of the paper's section 4.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum RioPart {
    /// The cost of scheduled processing, beside processing on arrival.
    #[serde(rename = "e10")]
    Processing,
    /// Low latency beside bulk traffic that keeps the receiver busy.
    #[serde(rename = "e11")]
    Company,
    /// Guarantees and limits of bandwidth.
    #[serde(rename = "e12")]
    Guarantees,
    /// The ORB, with and without RIO below it.
    #[serde(rename = "e13")]
    Orb,
    /// The same beside bulk data that keep the server busy.
    #[serde(rename = "e13-packets")]
    Packets,
    /// The stages of a call at the server.
    #[serde(rename = "stages")]
    Stages,
}

impl RioPart {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Processing,
        Self::Company,
        Self::Guarantees,
        Self::Orb,
        Self::Packets,
        Self::Stages,
    ];
}

by_name!(RioPart);

/// The parts of a run, and their sizes.
#[derive(Clone, Debug, Serialize)]
pub struct RioPlan {
    /// The parts.
    pub parts: Vec<RioPart>,
    /// The driver of RIO: `auto`, `xdp` or `packet`.
    pub driver: String,
    /// Keeps processors from sleeping. Without it, no part measures how busy a processor is.
    pub awake: bool,
    /// The number of turns of each path where latencies are measured.
    pub rounds: u32,
    /// Echoes of a turn without competition (E10).
    pub echoes: u32,
    /// Echoes of a turn beside bulk traffic (E11).
    pub echoes_in_company: u32,
    /// The approximate time from one of these echoes to the next.
    pub pause: Duration,
    /// The time for which there is bulk traffic alone, before the echoes and after.
    pub aside: Duration,
    /// The computing time of the receiver for each block of bulk data.
    pub bulk_work: Duration,
    /// The rate of the switch in E11, in bit/s: so high that the link does not limit the traffic.
    pub bulk_rate: u64,
    /// The time from the beginning of one flow to that of the next (E12).
    pub step: Duration,
    /// The clients and calls of E13.
    pub calls: InversionPlan,
    /// The numbers of low-priority clients beside bulk data.
    pub packet_clients: Vec<u32>,
    /// The time in which calls are due beside bulk data.
    pub packet_length: Duration,
    /// The time for which the calls of a path are traced.
    pub traced: Duration,
}

impl RioPlan {
    /// The least that runs every part, for tests; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        let mut calls = Self::calls_of(&MODES, true);
        calls.calibration = Duration::from_millis(200);
        calls.lead = Duration::from_millis(50);
        for series in &mut calls.series {
            series.low_clients = vec![0, 2];
            series.length = Duration::from_millis(300);
        }
        Self {
            rounds: 1,
            echoes: 20,
            echoes_in_company: 20,
            // Long enough to measure bulk traffic beside the echoes.
            pause: Duration::from_millis(5),
            aside: Duration::from_millis(100),
            step: Duration::from_millis(200),
            calls,
            packet_clients: vec![0, 2],
            packet_length: Duration::from_millis(300),
            traced: Duration::from_millis(600),
            ..RealTimeIo::short()
        }
    }

    /// Calls in these modes by none to fifty low-priority clients, in full or in little time.
    #[must_use]
    pub fn calls_of(modes: &[Mode], short: bool) -> InversionPlan {
        let mut plan = InversionPlan::of(modes, short);
        for series in &mut plan.series {
            let step = if short { 25 } else { 5 };
            series.low_clients = (0..=50).step_by(step).collect();
            if series.mode == Mode::Short && !short {
                series.length = Duration::from_secs(10);
            }
        }
        plan
    }

    /// Returns the loads and the numbers of low-priority clients of the part with bulk data.
    pub(super) fn packet_cases(&self) -> Vec<(Load, u32)> {
        let loaded = self.packet_clients.iter().map(|n| (Load::Bulk, *n));
        std::iter::once((Load::Quiet, 0)).chain(loaded).collect()
    }

    /// Whether the plan has this part.
    pub(super) fn has(&self, part: RioPart) -> bool {
        self.parts.contains(&part)
    }

    /// Returns the commands that repeat the run, in full and in little time.
    pub(super) fn commands(&self) -> String {
        let mut command = "cargo run --release -- lab rio".to_owned();
        if self.parts != RioPart::ALL {
            let names: Vec<_> = self.parts.iter().map(RioPart::to_string).collect();
            command.push_str(&format!(" --only {}", names.join(",")));
        }
        if self.driver != "auto" {
            command.push_str(&format!(" --driver {}", self.driver));
        }
        format!("{command}\n{command} --short\n{command} --json")
    }
}

pub(super) const MODES: [Mode; 2] = [Mode::Short, Mode::Loaded];
