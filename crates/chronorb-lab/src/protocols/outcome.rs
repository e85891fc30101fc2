//! The outcome of the experiment.

use serde::Serialize;

use super::cell::{Cell, Workload};
use super::plan::ProtocolsPlan;
use super::protocol::Protocol;
use super::site::MissingSystem;
use super::system::ProtocolSystem;
use crate::bench::{Arrivals, OmniOrb, Sizes};
use crate::environment::Environment;
use crate::pairs::PairedRatio;
use crate::report::PooledRecords;
use crate::report::rounds::{over_rounds, record};
use crate::stats::{Summary, median};

/// A system in a cell, by a protocol or beside it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Contender {
    /// The protocol.
    pub protocol: Protocol,
    /// The system.
    pub system: ProtocolSystem,
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
}

/// A turn of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ContenderTurn {
    /// The contender.
    #[serde(flatten)]
    pub contender: Contender,
    /// The number of the round, from 1 on.
    pub round: u32,
}

/// The calls, or messages without an answer, of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyTurn {
    /// The turn.
    #[serde(flatten)]
    pub turn: ContenderTurn,
    /// The shortest latency.
    pub min_us: f64,
    /// The number of messages without an answer that did not arrive.
    pub lost: u32,
    /// The context switches of both sides, warm-up included, by the calls that are timed.
    pub switches: f64,
    /// The share of all processors that the host took in the turn, in percent.
    pub stolen_percent: f64,
    /// The latencies of all others.
    #[serde(flatten)]
    pub latency: Summary,
}

/// The events of a turn that may have delayed its calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Disturbance {
    /// The context switches of both sides.
    pub(super) switches: u64,
    /// The share of all processors that the host took, in percent.
    pub(super) stolen_percent: f64,
}

/// The calls of several clients in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateTurn {
    /// The turn.
    #[serde(flatten)]
    pub turn: ContenderTurn,
    /// The number of calls of all clients.
    pub calls: u32,
    /// The rate of all clients together.
    pub calls_per_s: f64,
}

/// The messages without an answer that several clients sent in a turn, as fast as they could.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FloodTurn {
    /// The turn.
    #[serde(flatten)]
    pub turn: ContenderTurn,
    /// The number of messages that all clients sent.
    pub sent: u32,
    /// The number of those that arrived.
    pub arrived: u32,
    /// The number of the others.
    pub lost: u32,
    /// The rate at which all clients together sent.
    pub sent_per_s: f64,
    /// The rate of arrival, from the first sending of a message that arrived to the last arrival.
    pub arrived_per_s: f64,
}

/// The octets of a call or message on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WireSizes {
    /// The kind of call or message.
    #[serde(rename = "trial")]
    pub workload: Workload,
    /// The number of MIOP's packets to a group; nothing for a stream.
    pub packets: Option<u32>,
    /// The octets with GIOP and the headers of packets; raw channels move as many.
    pub giop: Sizes,
    /// The octets with GIOPlite, if it is there.
    pub giop_lite: Option<Sizes>,
}

impl WireSizes {
    /// Returns the octets of a request that GIOPlite spares.
    pub(super) fn spared(&self) -> Option<i64> {
        let lite = self.giop_lite?;
        Some(self.giop.request as i64 - lite.request as i64)
    }
}

/// The outcome of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct ProtocolsOutcome {
    /// The plan that was run.
    pub plan: ProtocolsPlan,
    /// The machine.
    pub environment: Environment,
    /// The availability of omniORB.
    pub omniorb: OmniOrb,
    /// The systems that could not be measured.
    pub missing: Vec<MissingSystem>,
    /// The octets of each kind of call and message.
    pub messages: Vec<WireSizes>,
    /// The turns of one client.
    pub rows: Vec<LatencyTurn>,
    /// The turns of several clients that call.
    pub rates: Vec<RateTurn>,
    /// The turns of several clients that send messages without an answer.
    pub floods: Vec<FloodTurn>,
    /// The calls of all rounds together.
    #[serde(skip)]
    pub(super) pooled: PooledRecords<Contender>,
}

/// The turns of one client as one.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatencyRounds {
    /// The shortest latency of all.
    pub(super) min_us: f64,
    pub(super) latency: Summary,
    /// The number of all messages that were lost.
    pub(super) lost: u32,
    /// The context switches for each call: the median of the turns.
    pub(super) switches: f64,
}

/// A figure of each round.
type ByRound = Vec<(u32, f64)>;

impl Contender {
    /// The ORB with GIOP by a protocol.
    pub(super) const fn giop(protocol: Protocol, cell: Cell) -> Self {
        Self {
            protocol,
            system: ProtocolSystem::Giop,
            cell,
        }
    }

    /// Another system in the same cell.
    pub(super) const fn with(self, system: ProtocolSystem) -> Self {
        Self { system, ..self }
    }

    /// The name of the system.
    pub(super) fn name(&self) -> String {
        self.system.name(self.protocol)
    }
}

impl ProtocolsOutcome {
    /// Returns all that a protocol carries, with the octets that GIOP has.
    pub(super) fn sizes(&self, protocol: Protocol) -> Vec<(Workload, Sizes)> {
        let to_group = protocol == Protocol::Miop;
        self.messages
            .iter()
            .filter(|of| of.packets.is_some() == to_group && protocol.carries(of.workload))
            .map(|of| (of.workload, of.giop))
            .collect()
    }

    pub(super) fn add_latencies(
        &mut self,
        turn: ContenderTurn,
        sent: u32,
        latencies_ns: &[u64],
        disturbance: Disturbance,
    ) {
        let record = record(latencies_ns);
        let arrived = u32::try_from(latencies_ns.len()).unwrap_or(u32::MAX);
        self.rows.push(LatencyTurn {
            turn,
            min_us: record.min_us(),
            lost: sent.saturating_sub(arrived),
            switches: disturbance.switches as f64 / f64::from(sent.max(1)),
            stolen_percent: disturbance.stolen_percent,
            latency: record.summary(),
        });
        self.pooled.add(turn.contender, &record);
    }

    /// Adds what several clients sent: calls, or messages of which some arrived.
    pub(super) fn add_rate(
        &mut self,
        turn: ContenderTurn,
        sent: u32,
        sending_ns: u64,
        arrivals: Option<Arrivals>,
    ) {
        let sent_per_s = per_s(sent, sending_ns);
        let Some(came) = arrivals else {
            return self.rates.push(RateTurn {
                turn,
                calls: sent,
                calls_per_s: sent_per_s,
            });
        };
        let arrived = came.count();
        self.floods.push(FloodTurn {
            turn,
            sent,
            arrived,
            lost: sent.saturating_sub(arrived),
            sent_per_s,
            arrived_per_s: per_s(arrived, came.elapsed_ns()),
        });
    }

    fn rows_of(&self, of: Contender) -> impl Iterator<Item = &LatencyTurn> + Clone {
        let rows = self.rows.iter();
        rows.filter(move |row| row.turn.contender == of)
    }

    /// The turns in which something arrived: others have no figures.
    fn arrived(&self, of: Contender) -> impl Iterator<Item = &LatencyTurn> + Clone {
        self.rows_of(of).filter(|row| row.latency.calls > 0)
    }

    fn by_round(&self, of: Contender, figure: fn(&Summary) -> f64) -> ByRound {
        let arrived = self.arrived(of);
        arrived
            .map(|row| (row.turn.round, figure(&row.latency)))
            .collect()
    }

    /// Returns the turns of one client as one, if there are any.
    pub(super) fn rounds(&self, of: Contender) -> Option<LatencyRounds> {
        let shortest = self.arrived(of).map(|row| row.min_us);
        Some(LatencyRounds {
            min_us: shortest.reduce(f64::min)?,
            latency: over_rounds(self.arrived(of).map(|row| &row.latency))?,
            lost: self.rows_of(of).map(|row| row.lost).sum(),
            switches: median(self.arrived(of).map(|row| row.switches))?,
        })
    }

    /// Compares the p50 of two contenders in the rounds that both have.
    pub(super) fn p50_by(&self, one: Contender, other: Contender) -> Option<PairedRatio> {
        let [one, other] = [one, other].map(|of| self.by_round(of, |latency| latency.p50_us));
        PairedRatio::of_rounds(one, other)
    }

    /// Compares the p50 of a system with that of the raw channel.
    pub(super) fn by_raw(&self, of: Contender) -> Option<PairedRatio> {
        self.p50_by(of, of.with(ProtocolSystem::Raw))
    }

    /// Returns the rates of one client, round by round, which did nothing but call.
    pub(super) fn rates_of_one(&self, of: Contender) -> Vec<f64> {
        let means = self.by_round(of, |latency| latency.mean_us).into_iter();
        means.map(|(_, mean_us)| 1e6 / mean_us.max(1e-3)).collect()
    }

    /// Returns the rates of several clients: of their calls, or of their messages that arrived.
    pub(super) fn rates_of(&self, of: Contender) -> ByRound {
        let rates = self.rates.iter().filter(|rate| rate.turn.contender == of);
        let calls = rates.map(|rate| (rate.turn.round, rate.calls_per_s));
        let floods = self.floods_of(of);
        let messages = floods.map(|flood| (flood.turn.round, flood.arrived_per_s));
        calls.chain(messages).collect()
    }

    /// Compares the rates of several clients with those of the raw channel.
    pub(super) fn rates_by_raw(&self, of: Contender) -> Option<PairedRatio> {
        let raw = self.rates_of(of.with(ProtocolSystem::Raw));
        PairedRatio::of_rounds(self.rates_of(of), raw)
    }

    /// Returns the turns of several clients that send messages.
    pub(super) fn floods_of(&self, of: Contender) -> impl Iterator<Item = &FloodTurn> {
        let floods = self.floods.iter();
        floods.filter(move |flood| flood.turn.contender == of)
    }

    /// Returns the contenders that have figures in a cell, in order.
    pub(super) fn contenders(&self, cell: Cell) -> Vec<Contender> {
        let protocols = self.plan.protocols.iter();
        let all = protocols.flat_map(|&protocol| {
            ProtocolSystem::ALL.map(|system| Contender::giop(protocol, cell).with(system))
        });
        all.filter(|of| self.rows_of(*of).next().is_some() || !self.rates_of(*of).is_empty())
            .collect()
    }

    /// Compares the p50 of each contender with those of the raw channel and of GIOP.
    pub(super) fn ratios(&self) -> Vec<ContenderRatio> {
        let cells = Cell::all(&self.plan).into_iter();
        let contenders = cells.flat_map(|cell| self.contenders(cell));
        let pairs = contenders.flat_map(|contender| {
            [ProtocolSystem::Raw, ProtocolSystem::Giop].map(|by| (contender, by))
        });
        pairs
            .filter(|(contender, by)| contender.system != *by)
            .filter_map(|(contender, by)| {
                Some(ContenderRatio {
                    contender,
                    by,
                    p50: self.p50_by(contender, contender.with(by))?,
                })
            })
            .collect()
    }
}

fn per_s(count: u32, ns: u64) -> f64 {
    f64::from(count) * 1e9 / ns.max(1) as f64
}

/// The p50 of a contender by that of another system in the same cell.
#[derive(Serialize)]
pub(super) struct ContenderRatio {
    #[serde(flatten)]
    contender: Contender,
    by: ProtocolSystem,
    p50: PairedRatio,
}
