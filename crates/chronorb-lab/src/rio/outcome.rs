//! What was found.

use chronorb_report::Document;
use serde::Serialize;
use serde_json::{Value, json};

use super::calls::Io;
use super::part::Part;
use super::plan::Plan;
use super::way::Way;
use super::{RealTimeIo, claims, report};
use crate::Claim;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures, plain_data};
use crate::inversion::{Class, Mode};
use crate::pairs::Paired;
use crate::stats::{Record, Summary, median};

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was run.
    pub plan: Plan,
    /// Where.
    pub environment: Environment,
    /// Whether threads had real-time priorities.
    pub real_time: bool,
    /// Whether there is but one processor for all.
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
    /// How calls of the ORB were not made, and why.
    #[serde(skip)]
    pub missing: Vec<(Io, String)>,
    /// All echoes of each way.
    #[serde(skip)]
    pub(super) pooled: Vec<(Part, Way, Record)>,
    /// What came by flows over time.
    pub(super) courses: Vec<Course>,
}

/// The echoes of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EchoRow {
    /// Whether there was other traffic.
    pub part: Part,
    /// How packets were treated.
    pub way: Way,
    /// In which round.
    pub round: u32,
    /// What they took, from when each was sent.
    #[serde(flatten)]
    pub latency: Summary,
    /// The shortest.
    pub min_us: f64,
    /// Octets of bulk traffic in a second, without echoes; nothing where there was none, or too little time to
    /// measure it.
    pub bulk_alone_octets_per_s: Option<f64>,
    /// And while there were echoes.
    pub bulk_beside_octets_per_s: Option<f64>,
    /// How many hundredths of the server's CPU were in use while there was bulk traffic alone.
    pub busy_percent: Option<f64>,
}

/// What came by a flow in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlowRow {
    /// `guarantees` or `limit`.
    pub trial: &'static str,
    /// All of its time, but for its beginning; `alone`, before other flows began; or `last`, when all were there.
    pub phase: &'static str,
    /// Which.
    pub flow: &'static str,
    /// What it was to have in a second, in octets.
    pub wanted_octets_per_s: Option<f64>,
    /// What it had.
    pub mean_octets_per_s: f64,
    /// In the second in which it had least, of all that there are, wherever they begin.
    pub least_octets_per_s: f64,
    /// And most.
    pub most_octets_per_s: f64,
}

/// The calls of one class of clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CallRow {
    /// What was below the server's ORB.
    pub io: Io,
    /// How often clients called, and for what.
    pub mode: Mode,
    /// How many clients of low priority there were.
    pub low_clients: u32,
    /// Whose calls.
    pub class: Class,
    /// What they took from when each was due.
    #[serde(flatten)]
    pub latency: Summary,
    /// How many hundredths of one processor the server took.
    pub server_cpu_percent: f64,
}

/// What came by a flow over time.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Course {
    pub(super) part: Part,
    pub(super) name: String,
    /// Seconds since the beginning, and octets in a second.
    pub(super) points: Vec<(f64, f64)>,
}

impl Outcome {
    /// The turns of a way.
    pub(super) fn turns(&self, part: Part, way: Way) -> impl Iterator<Item = &EchoRow> {
        let rows = self.echoes.iter();
        rows.filter(move |row| row.part == part && row.way == way)
    }

    /// All echoes of a way.
    pub(super) fn record(&self, part: Part, way: Way) -> Option<&Record> {
        let mut pooled = self.pooled.iter();
        let of = pooled.find(|(of, by, _)| *of == part && *by == way)?;
        Some(&of.2)
    }

    /// A figure of one way by that of another in the same rounds.
    pub(super) fn by(
        &self,
        part: Part,
        [one, other]: [Way; 2],
        figure: impl Fn(&EchoRow) -> f64,
    ) -> Option<Paired> {
        let pairs = self.turns(part, one).filter_map(|row| {
            let mut others = self.turns(part, other);
            let match_of = others.find(|other| other.round == row.round)?;
            Some((figure(row), figure(match_of)))
        });
        Paired::of(&pairs.collect::<Vec<_>>())
    }

    /// The median of a figure over the rounds.
    pub(super) fn of_rounds(
        &self,
        part: Part,
        way: Way,
        figure: impl Fn(&EchoRow) -> Option<f64>,
    ) -> Option<f64> {
        median(self.turns(part, way).filter_map(figure))
    }

    /// A flow in a phase of a trial.
    pub(super) fn flow(&self, trial: &str, phase: &str, flow: &str) -> Option<&FlowRow> {
        let mut rows = self.flows.iter();
        rows.find(|row| (row.trial, row.phase, row.flow) == (trial, phase, flow))
    }

    /// The calls of a class in a mode, the least clients first.
    pub(super) fn series(&self, io: Io, mode: Mode, class: Class) -> Vec<&CallRow> {
        let rows = self.calls.iter();
        let mut rows: Vec<_> = rows
            .filter(|row| row.io == io && row.mode == mode && row.class == class)
            .collect();
        rows.sort_by_key(|row| row.low_clients);
        rows
    }

    /// The modes in which there were calls.
    pub(super) fn modes(&self) -> Vec<Mode> {
        let measured = |mode: &Mode| self.calls.iter().any(|row| row.mode == *mode);
        Mode::ALL.into_iter().filter(measured).collect()
    }

    /// What was below the ORB.
    pub(super) fn ios(&self) -> Vec<Io> {
        let measured = |io: &Io| self.calls.iter().any(|row| row.io == *io);
        Io::ALL.into_iter().filter(measured).collect()
    }

    /// What stands in figures for programs: a flat object for each row, with its part.
    fn rows(&self) -> Vec<Value> {
        let with_part = |part: Part, mut row: Value| {
            row["part"] = part.name().into();
            row
        };
        let echoes = self.echoes.iter().map(plain_data);
        let flows = self.flows.iter();
        let flows = flows.map(|row| with_part(Part::Guarantees, plain_data(row)));
        let calls = self.calls.iter();
        let calls = calls.map(|row| with_part(Part::Orb, plain_data(row)));
        echoes.chain(flows).chain(calls).collect()
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        report::caveats(self)
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(
            RealTimeIo::NAME,
            self,
            json!({"rows": self.rows(), "missing": self.missing}),
        )
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}
