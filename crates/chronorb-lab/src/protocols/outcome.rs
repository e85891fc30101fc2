//! What was found.

use chronorb_report::Document;
use serde::Serialize;
use serde_json::{Value, json};

use super::plan::Plan;
use super::protocol::Protocol;
use super::site::Missing;
use super::system::System;
use super::trial::{Cell, Trial};
use super::{Protocols, Turn, claims, report};
use crate::Claim;
use crate::bench::{Arrivals, OmniOrb, Sizes, Tapped};
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};
use crate::pairs::Paired;
use crate::stats::{Record, Summary, median};

/// The calls, or messages without an answer, of one system in one cell in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// By which protocol, or beside which.
    pub protocol: Protocol,
    /// Whose.
    pub system: System,
    /// What and where.
    #[serde(flatten)]
    pub cell: Cell,
    /// From 1 on.
    pub round: u32,
    /// The shortest.
    pub min_us: f64,
    /// Messages without an answer that did not arrive.
    pub lost: u32,
    /// All of them.
    #[serde(flatten)]
    pub latency: Summary,
}

/// What several clients did in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// By which protocol, or beside which.
    pub protocol: Protocol,
    /// Whose.
    pub system: System,
    /// What and where.
    #[serde(flatten)]
    pub cell: Cell,
    /// From 1 on.
    pub round: u32,
    /// Of all clients together.
    pub calls: u32,
    /// Of all clients together.
    pub calls_per_s: f64,
}

/// Messages without an answer that several clients sent in one round, as fast as they could.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Flood {
    /// By which protocol, or beside which.
    pub protocol: Protocol,
    /// Whose.
    pub system: System,
    /// What and where.
    #[serde(flatten)]
    pub cell: Cell,
    /// From 1 on.
    pub round: u32,
    /// By all clients together.
    pub sent: u32,
    /// Of these.
    pub arrived: u32,
    /// The others.
    pub lost: u32,
    /// By all clients together.
    pub sent_per_s: f64,
    /// From the first that was sent, and arrived, to the last that arrived.
    pub arrived_per_s: f64,
}

/// How many octets a call has on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Messages {
    /// Of what.
    pub trial: Trial,
    /// How many packets of MIOP it takes to a group; nothing where it goes by a stream.
    pub packets: Option<u32>,
    /// With GIOP, and with the headers of packets; raw channels move as many.
    pub giop: Sizes,
    /// With GIOPlite; nothing where there is none.
    pub giop_lite: Option<Sizes>,
}

impl Messages {
    /// Whether GIOPlite has fewer.
    pub(super) fn is_shorter(&self) -> bool {
        self.spared().is_some_and(|octets| octets > 0)
    }

    /// How many octets of a request GIOPlite spares.
    pub(super) fn spared(&self) -> Option<i64> {
        let lite = self.giop_lite?;
        Some(self.giop.request as i64 - lite.request as i64)
    }
}

/// What was listened to, in the order of the trials; `lite` is empty where there is no GIOPlite.
pub(super) fn messages(trials: &[Trial], giop: &[Tapped], lite: &[Tapped]) -> Vec<Messages> {
    let mut lite = lite.iter();
    trials
        .iter()
        .zip(giop)
        .map(|(trial, giop)| Messages {
            trial: *trial,
            packets: None,
            giop: giop.sizes,
            giop_lite: lite.next().map(|tapped| tapped.sizes),
        })
        .collect()
}

/// The same of messages to a group, and of how many packets these are.
pub(super) fn messages_to_group(
    trials: &[Trial],
    heard: &[(Sizes, u32)],
) -> impl Iterator<Item = Messages> {
    trials
        .iter()
        .zip(heard)
        .map(|(trial, (giop, packets))| Messages {
            trial: *trial,
            packets: Some(*packets),
            giop: *giop,
            giop_lite: None,
        })
}

/// Whose calls, and in which cell.
pub(super) type Key = (Protocol, System, Cell);

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was run.
    pub plan: Plan,
    /// Where.
    pub environment: Environment,
    /// Whether omniORB took part.
    pub omniorb: OmniOrb,
    /// Who took no part.
    pub missing: Vec<Missing>,
    /// How many octets a call has.
    pub messages: Vec<Messages>,
    /// Every round of one client by itself.
    pub rows: Vec<Row>,
    /// Every round of several clients by itself.
    pub rates: Vec<Rate>,
    /// Every round of several clients whose messages have no answer.
    pub floods: Vec<Flood>,
    /// The calls of all rounds together.
    #[serde(skip)]
    pub pooled: Vec<((Protocol, System, Cell), Record)>,
}

/// The rounds of one system in one cell, in one figure each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// The shortest of all.
    pub(super) min_us: f64,
    /// Medians of the rounds, but the number of all calls and the longest of them.
    pub(super) latency: Summary,
    /// All of them.
    pub(super) lost: u32,
}

impl Outcome {
    /// What a protocol carries, and how many octets that has with GIOP.
    pub(super) fn sizes(&self, protocol: Protocol) -> Vec<(Trial, Sizes)> {
        let to_group = protocol == Protocol::Miop;
        self.messages
            .iter()
            .filter(|of| of.packets.is_some() == to_group && protocol.carries(of.trial))
            .map(|of| (of.trial, of.giop))
            .collect()
    }

    pub(super) fn add_row(&mut self, turn: Turn, sent: u32, latencies_ns: &[u64]) {
        let record = super::record(latencies_ns);
        let Turn {
            protocol,
            system,
            cell,
            round,
        } = turn;
        let arrived = u32::try_from(latencies_ns.len()).unwrap_or(u32::MAX);
        self.rows.push(Row {
            protocol,
            system,
            cell,
            round,
            min_us: latencies_ns.iter().min().map_or(0.0, |ns| *ns as f64 / 1e3),
            lost: sent.saturating_sub(arrived),
            latency: record.summary(),
        });
        let key = (protocol, system, cell);
        match self.pooled.iter_mut().find(|(of, _)| *of == key) {
            Some((_, all)) => all.merge(&record),
            None => self.pooled.push((key, record)),
        }
    }

    pub(super) fn add_rate(&mut self, turn: Turn, calls: u32, elapsed_ns: u64) {
        let seconds = elapsed_ns.max(1) as f64 / 1e9;
        self.rates.push(Rate {
            protocol: turn.protocol,
            system: turn.system,
            cell: turn.cell,
            round: turn.round,
            calls,
            calls_per_s: f64::from(calls) / seconds,
        });
    }

    pub(super) fn add_flood(&mut self, turn: Turn, sent: u32, sending_ns: u64, came: &Arrivals) {
        let per_s = |count: u32, ns: u64| f64::from(count) * 1e9 / ns.max(1) as f64;
        let arrived = came.count();
        self.floods.push(Flood {
            protocol: turn.protocol,
            system: turn.system,
            cell: turn.cell,
            round: turn.round,
            sent,
            arrived,
            lost: sent.saturating_sub(arrived),
            sent_per_s: per_s(sent, sending_ns),
            arrived_per_s: per_s(arrived, came.elapsed_ns()),
        });
    }

    fn rows_of(&self, (protocol, system, cell): Key) -> impl Iterator<Item = &Row> {
        let is_of =
            move |row: &&Row| row.protocol == protocol && row.system == system && row.cell == cell;
        self.rows.iter().filter(is_of)
    }

    /// Those of which something arrived: others have no figures.
    fn arrived(&self, key: Key) -> impl Iterator<Item = &Row> {
        self.rows_of(key).filter(|row| row.latency.calls > 0)
    }

    /// The rounds in one figure each; nothing where there are none.
    pub(super) fn rounds(&self, key: Key) -> Option<Rounds> {
        let all = |of: fn(&Row) -> f64| self.arrived(key).map(of);
        Some(Rounds {
            min_us: all(|row| row.min_us).reduce(f64::min)?,
            latency: Summary {
                calls: self.rows_of(key).map(|row| row.latency.calls).sum(),
                p50_us: median(all(|row| row.latency.p50_us))?,
                p99_us: median(all(|row| row.latency.p99_us))?,
                p999_us: median(all(|row| row.latency.p999_us))?,
                max_us: all(|row| row.latency.max_us).reduce(f64::max)?,
                mean_us: median(all(|row| row.latency.mean_us))?,
                jitter_us: median(all(|row| row.latency.jitter_us))?,
            },
            lost: self.rows_of(key).map(|row| row.lost).sum(),
        })
    }

    /// The p50 of one by that of another, in the rounds that both have.
    pub(super) fn p50_by(&self, one: Key, other: Key) -> Option<Paired> {
        let others: Vec<&Row> = self.arrived(other).collect();
        let pairs: Vec<_> = self
            .arrived(one)
            .filter_map(|row| {
                let other = others.iter().find(|other| other.round == row.round)?;
                Some((row.latency.p50_us, other.latency.p50_us))
            })
            .collect();
        Paired::of(&pairs)
    }

    /// That by what the protocol stands on.
    pub(super) fn by_raw(&self, (protocol, system, cell): Key) -> Option<Paired> {
        self.p50_by((protocol, system, cell), (protocol, System::Raw, cell))
    }

    /// The calls in a second of one client in each round, while it did nothing else.
    pub(super) fn rates_of_one(&self, key: Key) -> Vec<f64> {
        let mean = |row: &Row| row.latency.mean_us;
        self.arrived(key)
            .map(|row| 1e6 / mean(row).max(1e-3))
            .collect()
    }

    /// The calls in a second of several clients in each round, or their messages that arrived.
    pub(super) fn rates_of(&self, key: Key) -> Vec<(u32, f64)> {
        let rates = self.rates.iter();
        let calls = rates.filter(|rate| (rate.protocol, rate.system, rate.cell) == key);
        let calls = calls.map(|rate| (rate.round, rate.calls_per_s));
        let messages = self.floods_of(key);
        calls
            .chain(messages.map(|flood| (flood.round, flood.arrived_per_s)))
            .collect()
    }

    /// The messages of several clients in each round.
    pub(super) fn floods_of(&self, key: Key) -> impl Iterator<Item = &Flood> {
        let floods = self.floods.iter();
        floods.filter(move |flood| (flood.protocol, flood.system, flood.cell) == key)
    }

    /// All that have figures in a cell, in order.
    pub(super) fn keys(&self, cell: Cell) -> Vec<Key> {
        let mut keys = Vec::new();
        for &protocol in &self.plan.protocols {
            for system in System::ALL {
                let key = (protocol, system, cell);
                let has_rates = || !self.rates_of(key).is_empty();
                if self.rows_of(key).next().is_some() || has_rates() {
                    keys.push(key);
                }
            }
        }
        keys
    }

    /// What the ORB adds to what protocols stand on, and GIOPlite by GIOP.
    fn ratios(&self) -> Vec<Ratio> {
        let mut ratios = Vec::new();
        for cell in Cell::all(&self.plan) {
            for key in self.keys(cell) {
                let (protocol, system, _) = key;
                let giop = (protocol, System::Giop, cell);
                let pairs = [
                    (System::Raw, self.by_raw(key)),
                    (System::Giop, self.p50_by(key, giop)),
                ];
                for (by, paired) in pairs {
                    if let (true, Some(p50)) = (by != system, paired) {
                        ratios.push(Ratio {
                            protocol,
                            system,
                            by,
                            cell,
                            p50,
                        });
                    }
                }
            }
        }
        ratios
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats: Vec<String> = self
            .missing
            .iter()
            .map(|missing| {
                let name = missing.system.name(missing.protocol);
                format!("{name} takes no part: {}", missing.why)
            })
            .collect();
        if self.omniorb.version.is_none() {
            caveats.push(self.omniorb.sentence());
        }
        caveats.extend(self.environment.stolen_caveat());
        caveats
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Protocols::NAME, self, json!({"ratios": self.ratios()}))
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

/// The p50 of a system by that of another.
#[derive(Serialize)]
struct Ratio {
    protocol: Protocol,
    system: System,
    by: System,
    #[serde(flatten)]
    cell: Cell,
    p50: Paired,
}
