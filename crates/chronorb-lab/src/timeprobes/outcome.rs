//! What was found.

use std::time::Duration;

use chronorb_report::Document;
use serde::Serialize;
use serde_json::Value;

use super::cost::StampCost;
use super::path::{Layer, PARTS, Side, Way};
use super::plan::{Missing, Plan, Transport};
use super::{TimeProbes, claims, report};
use crate::Claim;
use crate::bench::Placement;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};
use crate::stats::{Record, Summary};

/// A part of the calls by a transport in a place, a layer of them, or the whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its scheme.
    pub transport: &'static str,
    /// Where.
    pub placement: Placement,
    /// Of which part of a call it is, from 0 on; nothing for sums of several.
    pub part: Option<usize>,
    /// On which side, where it is on one.
    pub side: Option<Side>,
    /// Whose time it is; nothing for the whole call.
    pub layer: Option<Layer>,
    /// In words.
    pub what: &'static str,
    /// How much of the whole it is, by what is usual.
    pub percent: f64,
    /// What is usual: the mean of all calls but the slowest hundredth, in which something else had the processor. Those of
    /// the parts add up to that of the whole.
    pub usual_us: f64,
    /// How long it takes.
    #[serde(flatten)]
    pub time: Summary,
}

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was run.
    pub plan: Plan,
    /// Where.
    pub environment: Environment,
    /// The transports that take no part.
    pub missing: Vec<Missing>,
    /// What it costs to look.
    pub cost: StampCost,
    /// How many stamps a call has on both sides, by the transport that has most.
    pub stamps_of_a_call: u32,
    /// For each transport in each place: the whole, the whole with all points off, its layers, its parts, and what senders spend in system calls.
    pub rows: Vec<Row>,
}

/// The rows of a transport in a place.
///
/// `unstamped` are calls with all points off, in nanoseconds each.
pub(super) fn rows(
    transport: Transport,
    placement: Placement,
    ways: &[Way],
    unstamped: &[u64],
) -> Vec<Row> {
    let mut wholes: Vec<u64> = ways.iter().map(Way::whole).collect();
    let slowest = slowest_but_a_hundredth(&mut wholes);
    let usual = |of: &dyn Fn(&Way) -> u64| {
        let usual = ways.iter().filter(|way| way.whole() <= slowest);
        mean(usual.map(of))
    };
    let usual_whole = usual(&Way::whole);
    let row = |what, of: &dyn Fn(&Way) -> u64| Row {
        transport: transport.scheme,
        placement,
        part: None,
        side: None,
        layer: None,
        what,
        percent: share(usual(of), usual_whole),
        usual_us: microseconds(usual(of)),
        time: summary(ways.iter().map(of)),
    };
    let whole = row(WHOLE, &Way::whole);
    let mut off = unstamped.to_vec();
    let slowest = slowest_but_a_hundredth(&mut off);
    let usual_off = mean(off.into_iter().filter(|time| *time <= slowest));
    let off = Row {
        what: POINTS_OFF,
        percent: share(usual_off, usual_whole),
        usual_us: microseconds(usual_off),
        time: summary(unstamped.iter().copied()),
        ..whole
    };
    let mut rows = vec![whole, off];
    rows.extend(Layer::ALL.map(|layer| Row {
        layer: Some(layer),
        ..row(layer.name(), &|way| way.of_layer(layer))
    }));
    rows.extend(PARTS.iter().enumerate().map(|(at, part)| Row {
        part: Some(at),
        side: Some(part.side),
        layer: Some(part.layer),
        ..row(part.name, &|way| way.parts[at])
    }));
    for (at, side) in [Side::Client, Side::Server].into_iter().enumerate() {
        rows.push(Row {
            side: Some(side),
            ..row(SENDING, &|way| way.sending[at])
        });
    }
    rows
}

/// The slowest that is left without a hundredth of all; sorts them.
fn slowest_but_a_hundredth(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    let left_out = times.len().div_ceil(100);
    let last = times.len().saturating_sub(left_out + 1);
    times.get(last).copied().unwrap_or(0)
}

fn mean(times: impl Iterator<Item = u64>) -> f64 {
    let (sum, count) = times.fold((0, 0), |(sum, count), time| (sum + time, count + 1));
    sum as f64 / f64::from(count.max(1))
}

fn microseconds(nanoseconds: f64) -> f64 {
    nanoseconds.round() / 1e3
}

fn share(mean: f64, of: f64) -> f64 {
    (mean / of.max(1.0) * 1e4).round() / 100.0
}

fn summary(times: impl Iterator<Item = u64>) -> Summary {
    let mut record = Record::new();
    for time in times {
        record.add(Duration::ZERO, Duration::from_nanos(time));
    }
    record.summary()
}

impl Outcome {
    /// The transports and places, in the order in which they were measured.
    pub(super) fn cases(&self) -> Vec<(&'static str, Placement)> {
        let wholes = self.rows.iter().filter(|row| row.what == WHOLE);
        wholes.map(|row| (row.transport, row.placement)).collect()
    }

    /// The rows of a transport in a place.
    pub(super) fn of(&self, case: (&'static str, Placement)) -> impl Iterator<Item = &Row> {
        let of_case = move |row: &&Row| (row.transport, row.placement) == case;
        self.rows.iter().filter(of_case)
    }

    /// The whole call.
    pub(super) fn whole(&self, case: (&'static str, Placement)) -> Option<&Row> {
        self.of(case).find(|row| row.what == WHOLE)
    }

    /// The whole call with all points off.
    pub(super) fn unstamped(&self, case: (&'static str, Placement)) -> Option<&Row> {
        self.of(case).find(|row| row.what == POINTS_OFF)
    }

    /// What a layer takes of it.
    pub(super) fn layer(&self, case: (&'static str, Placement), layer: Layer) -> Option<&Row> {
        let is_layer = |row: &&Row| row.layer == Some(layer) && row.part.is_none();
        self.of(case).find(is_layer)
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        let missing = self
            .missing
            .iter()
            .map(|Missing { transport, why }| format!("{transport} takes no part: {why}"));
        missing.chain(self.environment.stolen_caveat()).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(TimeProbes::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

/// The row of all parts together.
pub(super) const WHOLE: &str = "whole call";
/// The row of calls without stamps.
pub(super) const POINTS_OFF: &str = "whole call, points off";
const SENDING: &str = "of that, in the sender's system call";
