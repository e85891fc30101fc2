//! The figures of the experiment.

use serde::Serialize;
use serde_json::Value;

use super::bursts::BurstRow;
use super::connections::ConnectionRow;
use super::fan_out::FanOutFigures;
use super::peers::PeerFigures;
use super::plan::{EventsPart, EventsPlan};
use super::priority::PriorityRow;
use super::push::{PushCase, PushFigures, PushRow};
use super::ring::RingRow;
use super::slow::SlowRow;
use super::timers::TimerFigures;
use crate::environment::Environment;
use crate::experiment::{merge, plain_data};

/// The outcome of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct EventsOutcome {
    /// The plan of the run.
    pub plan: EventsPlan,
    /// The machine.
    pub environment: Environment,
    /// Whether all urgent threads had real-time priorities.
    pub real_time: bool,
    /// Whether all processes shared a processor.
    pub one_cpu: bool,
    /// The urgent events; none if they were not measured.
    #[serde(skip)]
    pub priority: Vec<PriorityRow>,
    /// The pushes within a process, if they were counted.
    #[serde(skip)]
    pub pushes: Option<PushFigures>,
    /// The events for many consumers, if they were measured.
    #[serde(skip)]
    pub fan_out: Option<FanOutFigures>,
    /// The bursts; none if they were not run.
    #[serde(skip)]
    pub bursts: Vec<BurstRow>,
    /// The connections; none if they were not measured.
    #[serde(skip)]
    pub connections: Vec<ConnectionRow>,
    /// The timers, if they were run.
    #[serde(skip)]
    pub timers: Option<TimerFigures>,
    /// The events beside a slow consumer; none if they were not measured.
    #[serde(skip)]
    pub slow: Vec<SlowRow>,
    /// The rings; none if they were not measured.
    #[serde(skip)]
    pub ring: Vec<RingRow>,
    /// The systems in turns, if they were measured.
    #[serde(skip)]
    pub peers: Option<PeerFigures>,
}

impl EventsOutcome {
    pub(super) fn new(plan: &EventsPlan, one_cpu: bool) -> Self {
        Self {
            plan: plan.clone(),
            environment: Environment::probe(),
            real_time: true,
            one_cpu,
            priority: Vec::new(),
            pushes: None,
            fan_out: None,
            bursts: Vec::new(),
            connections: Vec::new(),
            timers: None,
            slow: Vec::new(),
            ring: Vec::new(),
            peers: None,
        }
    }

    /// Returns all rows for programs, with their parts.
    pub(super) fn rows(&self) -> Vec<Value> {
        let mut rows = Vec::new();
        let mut add = |part: EventsPart, values: Value| {
            for mut row in values.as_array().cloned().unwrap_or_default() {
                merge(&mut row, serde_json::json!({"part": part}));
                rows.push(row);
            }
        };
        add(EventsPart::Priority, plain_data(&self.priority));
        if let Some(pushes) = &self.pushes {
            let of = |which: fn(PushCase) -> bool| {
                let rows = pushes.rows.iter().filter(|row| which(row.case));
                plain_data(&rows.collect::<Vec<_>>())
            };
            add(EventsPart::Collocated, of(PushCase::is_of_consumers));
            add(EventsPart::Filters, of(|case| !case.is_of_consumers()));
        }
        if let Some(fan_out) = &self.fan_out {
            add(EventsPart::FanOut, plain_data(&fan_out.rows));
        }
        add(EventsPart::Bursts, plain_data(&self.bursts));
        add(EventsPart::Connections, plain_data(&self.connections));
        add(
            EventsPart::Timers,
            plain_data(&self.timers.iter().collect::<Vec<_>>()),
        );
        add(EventsPart::SlowConsumer, plain_data(&self.slow));
        add(EventsPart::Ring, plain_data(&self.ring));
        if let Some(peers) = &self.peers {
            add(EventsPart::Peers, plain_data(&peers.rows));
        }
        rows
    }

    /// Returns the urgent events of a case.
    pub(super) fn urgent(&self, lanes: bool, loaded: bool) -> Option<&PriorityRow> {
        let mut rows = self.priority.iter();
        rows.find(|row| row.lanes == lanes && row.loaded == loaded)
    }
}

impl PushFigures {
    /// Returns the pushes of a case.
    pub(super) fn of(&self, case: PushCase) -> Option<&PushRow> {
        self.rows.iter().find(|row| row.case == case)
    }

    /// Returns the instructions of a case.
    pub(super) fn instructions(&self, case: PushCase) -> Option<f64> {
        self.of(case)?.instructions
    }
}

impl PushCase {
    /// Whether the case counts consumers, and not filters.
    pub(super) const fn is_of_consumers(self) -> bool {
        matches!(self, Self::Call | Self::Consumers(_))
    }
}
