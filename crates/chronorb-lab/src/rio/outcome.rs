//! The figures of the experiment.

use serde::Serialize;
use serde_json::Value;

use super::calls::Io;
use super::packets::{Load, PacketRow};
use super::path::PacketPath;
use super::plan::{RioPart, RioPlan};
use super::stages::StageRow;
use crate::environment::Environment;
use crate::experiment::plain_data;
use crate::inversion::{ClientClass, Mode};
use crate::pairs::PairedRatio;
use crate::report::PooledRecords;
use crate::stats::{Summary, median};

/// The outcome of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct RioOutcome {
    /// The plan of the run.
    pub plan: RioPlan,
    /// The machine.
    pub environment: Environment,
    /// Whether threads had real-time priorities.
    pub real_time: bool,
    /// Whether there was only one processor.
    #[serde(skip)]
    pub one_cpu: bool,
    /// The congestion control of bulk traffic beside echoes (E11).
    pub congestion: String,
    /// Echoes, turn by turn (E10 and E11).
    #[serde(skip)]
    pub echoes: Vec<EchoRow>,
    /// Flows (E12).
    #[serde(skip)]
    pub flows: Vec<FlowRow>,
    /// Calls of the ORB (E13).
    #[serde(skip)]
    pub calls: Vec<CallRow>,
    /// Calls of the ORB beside bulk data (E13, loaded with packets).
    #[serde(skip)]
    pub packets: Vec<PacketRow>,
    /// The threads that receive packets by the kernel's plan, where it was kept beside bulk data.
    pub receiving_threads: Option<usize>,
    /// The stages of calls.
    #[serde(skip)]
    pub stages: Vec<StageRow>,
    /// The reason why calls could not be traced.
    pub untraced: Option<String>,
    /// The input and output for which calls could not be made, with the reasons.
    #[serde(skip)]
    pub missing: Vec<(Io, String)>,
    /// The echoes of each path, all rounds together.
    #[serde(skip)]
    pub(super) pooled: PooledRecords<(RioPart, PacketPath)>,
    /// The rates of flows over time.
    #[serde(rename = "courses")]
    pub(super) curves: Vec<RateCurve>,
}

/// The echoes of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EchoRow {
    /// The part, which has bulk traffic or none.
    pub part: RioPart,
    /// The path of the packets.
    #[serde(rename = "way")]
    pub path: PacketPath,
    /// The round, from 0.
    pub round: u32,
    /// The latencies from when each echo was sent.
    #[serde(flatten)]
    pub latency: Summary,
    /// The shortest latency.
    pub min_us: f64,
    /// The rate of bulk traffic without echoes; none where there was too little to measure it.
    pub bulk_alone_octets_per_s: Option<f64>,
    /// The rate of bulk traffic beside the echoes.
    pub bulk_beside_octets_per_s: Option<f64>,
    /// The share of the server's CPU in use while there was bulk traffic alone.
    pub busy_percent: Option<f64>,
}

/// The octets of a flow in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlowRow {
    /// `guarantees` or `limit`.
    pub trial: &'static str,
    /// `all`, the time of the flow but for its beginning; `alone`, before other flows began; or
    /// `last`, when all were there.
    pub phase: &'static str,
    /// The name of the flow.
    pub flow: &'static str,
    /// The reservation or the limit.
    pub wanted_octets_per_s: Option<f64>,
    /// The mean rate.
    pub mean_octets_per_s: f64,
    /// The rate of the second with the fewest octets, wherever it begins.
    pub least_octets_per_s: f64,
    /// The rate of the second with the most octets.
    pub most_octets_per_s: f64,
}

/// The calls of one class of clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CallRow {
    /// The input and output below the server's ORB.
    pub io: Io,
    /// The rates of the clients.
    pub mode: Mode,
    /// The number of low-priority clients.
    pub low_clients: u32,
    /// The class of the calls.
    pub class: ClientClass,
    /// The latencies from when each call was due.
    #[serde(flatten)]
    pub latency: Summary,
    /// The server's time, as a share of one processor.
    pub server_cpu_percent: f64,
}

/// The rate of a flow over time.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RateCurve {
    pub(super) part: RioPart,
    pub(super) name: String,
    /// Seconds since the beginning, and octets in a second.
    pub(super) points: Vec<(f64, f64)>,
}

impl RioOutcome {
    /// Returns the turns of a path.
    fn turns(&self, part: RioPart, path: PacketPath) -> impl Iterator<Item = &EchoRow> {
        let rows = self.echoes.iter();
        rows.filter(move |row| row.part == part && row.path == path)
    }

    /// Returns a figure of one path by that of another in the same rounds.
    pub(super) fn by(
        &self,
        part: RioPart,
        [one, other]: [PacketPath; 2],
        figure: impl Fn(&EchoRow) -> f64,
    ) -> Option<PairedRatio> {
        let of = |path| self.turns(part, path).map(|row| (row.round, figure(row)));
        PairedRatio::of_rounds(of(one), of(other))
    }

    /// Returns the median of a figure over the rounds.
    pub(super) fn of_rounds(
        &self,
        part: RioPart,
        path: PacketPath,
        figure: impl Fn(&EchoRow) -> Option<f64>,
    ) -> Option<f64> {
        median(self.turns(part, path).filter_map(figure))
    }

    /// Returns a flow in a phase of a trial.
    pub(super) fn flow(&self, trial: &str, phase: &str, flow: &str) -> Option<&FlowRow> {
        let mut rows = self.flows.iter();
        rows.find(|row| (row.trial, row.phase, row.flow) == (trial, phase, flow))
    }

    /// Returns the calls of a class in a mode, the least clients first.
    pub(super) fn series(&self, io: Io, mode: Mode, class: ClientClass) -> Vec<&CallRow> {
        let of = |row: &&CallRow| (row.io, row.mode, row.class) == (io, mode, class);
        let mut rows: Vec<_> = self.calls.iter().filter(of).collect();
        rows.sort_by_key(|row| row.low_clients);
        rows
    }

    /// Returns a figure of calls with one input and output by that with the kernel's default, in
    /// the same rounds.
    pub(super) fn by_default(
        &self,
        io: Io,
        (load, low_clients): (Load, u32),
        class: ClientClass,
        figure: fn(&PacketRow) -> f64,
    ) -> Option<PairedRatio> {
        let of = |io| {
            let rows = self.packet_turns(io, (load, low_clients), class);
            rows.map(|row| (row.round, figure(row)))
        };
        PairedRatio::of_rounds(of(io), of(Io::Kernel))
    }

    /// Returns the turns of a case of the part with bulk data.
    pub(super) fn packet_turns(
        &self,
        io: Io,
        case: (Load, u32),
        class: ClientClass,
    ) -> impl Iterator<Item = &PacketRow> {
        let rows = self.packets.iter();
        rows.filter(move |row| {
            (row.io, (row.load, row.low_clients), row.class) == (io, case, class)
        })
    }

    /// Returns the stages of calls by a path at a rate.
    pub(super) fn stages_of(&self, path: PacketPath, calls_per_s: u32) -> Option<&StageRow> {
        let mut rows = self.stages.iter();
        rows.find(|row| (row.path, row.calls_per_s) == (path, calls_per_s))
    }

    /// Returns the modes in which calls were made.
    pub(super) fn modes(&self) -> Vec<Mode> {
        let measured = |mode: &Mode| self.calls.iter().any(|row| row.mode == *mode);
        Mode::ALL.into_iter().filter(measured).collect()
    }

    /// Returns the rows of all parts for programs: flat objects with the part.
    pub(super) fn rows(&self) -> Vec<Value> {
        let echoes = self.echoes.iter().map(plain_data);
        let flows = self
            .flows
            .iter()
            .map(|row| (RioPart::Guarantees, plain_data(row)));
        let calls = self.calls.iter().map(|row| (RioPart::Orb, plain_data(row)));
        let packets = self.packets.iter();
        let packets = packets.map(|row| (RioPart::Packets, plain_data(row)));
        let stages = self.stages.iter();
        let stages = stages.map(|row| (RioPart::Stages, plain_data(row)));
        let others = flows.chain(calls).chain(packets).chain(stages);
        let others = others.map(|(part, mut row)| {
            row["part"] = part.to_string().into();
            row
        });
        echoes.chain(others).collect()
    }
}
