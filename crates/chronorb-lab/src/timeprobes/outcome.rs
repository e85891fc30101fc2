//! The outcome of the experiment.

use std::time::Duration;

use serde::Serialize;

use super::cost::StampCost;
use super::path::{CallPath, CallSide, Layer, PARTS};
use super::plan::{MissingTransport, TimeProbesPlan};
use crate::bench::Placement;
use crate::environment::Environment;
use crate::stats::{Record, Summary};

/// The times of a part of the calls by a transport in a place, of a layer, or of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PartRow {
    /// The scheme of the transport.
    pub transport: &'static str,
    /// The processors of client and server.
    pub placement: Placement,
    /// The number of the part, from 0 on; nothing for sums of several.
    pub part: Option<usize>,
    /// The side, if it is on one.
    pub side: Option<CallSide>,
    /// The layer; nothing for the whole call.
    pub layer: Option<Layer>,
    /// The name.
    pub what: &'static str,
    /// The share in the usual time of the whole call.
    pub percent: f64,
    /// The usual time: the mean of all calls but the slowest hundredth, in which other threads had
    /// the processor. The usual times of the parts add up to that of the whole.
    pub usual_us: f64,
    /// The times of all calls.
    #[serde(flatten)]
    pub time: Summary,
}

/// The outcome of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct TimeProbesOutcome {
    /// The plan that was run.
    pub plan: TimeProbesPlan,
    /// The machine.
    pub environment: Environment,
    /// The transports that could not be measured.
    pub missing: Vec<MissingTransport>,
    /// The cost of points.
    pub cost: StampCost,
    /// The number of stamps of a call on both sides, by the transport that has most.
    pub stamps_of_a_call: u32,
    /// For each transport in each place: the whole call, the same with all points off, its layers,
    /// its parts, and the system calls that send.
    pub rows: Vec<PartRow>,
}

/// A transport in a place.
pub(super) type ProbeCase = (&'static str, Placement);

/// Returns the rows of a transport in a place. `unstamped` are the times of calls with all points
/// off, in nanoseconds.
pub(super) fn rows(case: ProbeCase, paths: &[CallPath], unstamped: &[u64]) -> Vec<PartRow> {
    let slowest = slowest_but_a_hundredth(paths.iter().map(CallPath::whole));
    let usual = |of: &dyn Fn(&CallPath) -> u64| {
        let usual = paths.iter().filter(|path| path.whole() <= slowest);
        mean(usual.map(of))
    };
    let usual_whole = usual(&CallPath::whole);
    let named = |what, usual: f64, time| PartRow {
        transport: case.0,
        placement: case.1,
        part: None,
        side: None,
        layer: None,
        what,
        percent: (usual / usual_whole.max(1.0) * 1e4).round() / 100.0,
        usual_us: usual.round() / 1e3,
        time,
    };
    let row =
        |what, of: &dyn Fn(&CallPath) -> u64| named(what, usual(of), summary(paths.iter().map(of)));
    let slowest = slowest_but_a_hundredth(unstamped.iter().copied());
    let usual_off = mean(unstamped.iter().copied().filter(|time| *time <= slowest));
    let off = summary(unstamped.iter().copied());
    let mut rows = vec![
        row(WHOLE, &CallPath::whole),
        named(POINTS_OFF, usual_off, off),
    ];
    rows.extend(Layer::ALL.map(|layer| PartRow {
        layer: Some(layer),
        ..row(layer.name(), &|path| path.of_layer(layer))
    }));
    rows.extend(PARTS.iter().enumerate().map(|(at, part)| PartRow {
        part: Some(at),
        side: Some(part.side),
        layer: Some(part.layer),
        ..row(part.name, &|path| path.parts[at])
    }));
    let sides = [CallSide::Client, CallSide::Server].into_iter().enumerate();
    rows.extend(sides.map(|(at, side)| PartRow {
        side: Some(side),
        ..row(SENDING, &|path| path.sending[at])
    }));
    rows
}

/// Returns the slowest time without the slowest hundredth.
fn slowest_but_a_hundredth(times: impl Iterator<Item = u64>) -> u64 {
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    let left_out = times.len().div_ceil(100);
    let last = times.len().saturating_sub(left_out + 1);
    times.get(last).copied().unwrap_or(0)
}

fn mean(times: impl Iterator<Item = u64>) -> f64 {
    let (sum, count) = times.fold((0, 0), |(sum, count), time| (sum + time, count + 1));
    sum as f64 / f64::from(count.max(1))
}

fn summary(times: impl Iterator<Item = u64>) -> Summary {
    let mut record = Record::new();
    for time in times {
        record.add(Duration::ZERO, Duration::from_nanos(time));
    }
    record.summary()
}

impl TimeProbesOutcome {
    /// Returns the transports and places, in the order in which they were measured.
    pub(super) fn cases(&self) -> Vec<ProbeCase> {
        let wholes = self.rows.iter().filter(|row| row.what == WHOLE);
        wholes.map(|row| (row.transport, row.placement)).collect()
    }

    /// Returns the rows of a transport in a place.
    pub(super) fn of(&self, case: ProbeCase) -> impl Iterator<Item = &PartRow> {
        let of_case = move |row: &&PartRow| (row.transport, row.placement) == case;
        self.rows.iter().filter(of_case)
    }

    /// Returns the row of the whole call.
    pub(super) fn whole(&self, case: ProbeCase) -> Option<&PartRow> {
        self.of(case).find(|row| row.what == WHOLE)
    }

    /// Returns the row of the whole call with all points off.
    pub(super) fn unstamped(&self, case: ProbeCase) -> Option<&PartRow> {
        self.of(case).find(|row| row.what == POINTS_OFF)
    }

    /// Returns the row of a layer.
    pub(super) fn layer(&self, case: ProbeCase, layer: Layer) -> Option<&PartRow> {
        let is_layer = |row: &&PartRow| row.layer == Some(layer) && row.part.is_none();
        self.of(case).find(is_layer)
    }
}

/// The name of the row of all parts together.
pub(super) const WHOLE: &str = "whole call";
/// The name of the row of calls without stamps.
pub(super) const POINTS_OFF: &str = "whole call, points off";
const SENDING: &str = "of that, in the sender's system call";
