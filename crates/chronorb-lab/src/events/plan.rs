//! The amount of work of the experiment.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::named::by_name;

/// A part of the experiment.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum EventsPart {
    /// Urgent events beside a saturated lane of low priority.
    #[serde(rename = "ev1")]
    Priority,
    /// Events within a process, in instructions.
    #[serde(rename = "ev2")]
    Collocated,
    /// The cost of filters by the number of subscribers, in instructions.
    #[serde(rename = "ev3")]
    Filters,
    /// One event for many consumers over TCP.
    #[serde(rename = "ev4")]
    FanOut,
    /// Bursts: each event is received, or its loss is told.
    #[serde(rename = "ev5")]
    Bursts,
    /// Connections and disconnections.
    #[serde(rename = "ev6")]
    Connections,
    /// A thousand interval timers.
    #[serde(rename = "ev7")]
    Timers,
    /// A consumer that takes nothing beside one that keeps up.
    #[serde(rename = "ev8")]
    SlowConsumer,
    /// One ring of shared memory for many cursors.
    #[serde(rename = "ev9")]
    Ring,
    /// Other systems beside the channel.
    #[serde(rename = "peers")]
    Peers,
}

impl EventsPart {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Priority,
        Self::Collocated,
        Self::Filters,
        Self::FanOut,
        Self::Bursts,
        Self::Connections,
        Self::Timers,
        Self::SlowConsumer,
        Self::Ring,
        Self::Peers,
    ];
}

by_name!(EventsPart);

/// The parts of a run, and their sizes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct EventsPlan {
    /// The parts.
    pub parts: Vec<EventsPart>,
    /// The urgent events of each case, one in a millisecond.
    pub urgent: u32,
    /// The pushes by which allocations and system calls are counted.
    pub pushes: u32,
    /// The pushes by which instructions are counted, one after the other.
    pub stepped: u32,
    /// The numbers of consumers over TCP.
    pub consumers: Vec<u32>,
    /// The events that each number of them gets.
    pub fan_out: u32,
    /// The events of each supplier in a burst.
    pub burst: u32,
    /// The numbers of consumers, and of suppliers, that connect.
    pub connections: Vec<u32>,
    /// The interval timers.
    pub timers: u32,
    /// The time for which they run.
    pub timer_run: Duration,
    /// The events beside a slow consumer, one in a millisecond.
    pub beside_slow: u32,
    /// The numbers of cursors that poll a ring, in two processes.
    pub cursors: Vec<u32>,
    /// The numbers of cursors that sleep at it.
    pub sleepers: Vec<u32>,
    /// The numbers of consumers of each system.
    pub peer_consumers: Vec<u32>,
    /// The events that each number of them gets in a round.
    pub peer_events: u32,
    /// The rounds in which the systems take turns.
    pub peer_rounds: u32,
}

impl EventsPlan {
    pub(super) fn full() -> Self {
        Self {
            parts: EventsPart::ALL.to_vec(),
            urgent: 20_000,
            pushes: 10_000,
            stepped: 4,
            consumers: vec![1, 2, 4, 8, 16, 32, 64],
            fan_out: 500,
            burst: 20_000,
            connections: vec![100, 500],
            timers: 1_000,
            timer_run: Duration::from_secs(20),
            beside_slow: 10_000,
            cursors: vec![2, 10, 100, 1_000],
            sleepers: vec![2, 100],
            peer_consumers: vec![1, 8, 64],
            peer_events: 300,
            peer_rounds: 5,
        }
    }

    pub(super) fn short() -> Self {
        Self {
            urgent: 3_000,
            consumers: vec![1, 8, 64],
            fan_out: 100,
            burst: 2_000,
            connections: vec![50, 100],
            timer_run: Duration::from_secs(3),
            beside_slow: 2_000,
            peer_rounds: 1,
            ..Self::full()
        }
    }

    /// Returns the least that runs every part, for tests; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            urgent: 10,
            pushes: 100,
            stepped: 1,
            consumers: vec![1, 3],
            fan_out: 5,
            burst: 20,
            connections: vec![2, 4],
            timers: 10,
            timer_run: Duration::from_millis(50),
            beside_slow: 20,
            cursors: vec![2, 3],
            sleepers: vec![2],
            peer_consumers: vec![1, 2],
            peer_events: 5,
            peer_rounds: 1,
            ..Self::full()
        }
    }

    pub(super) fn has(&self, part: EventsPart) -> bool {
        self.parts.contains(&part)
    }

    /// Returns about the length of a run.
    pub(super) fn length(&self) -> Duration {
        let ms = |events: u32| Duration::from_millis(events.into());
        let bursts = Duration::from_micros(100) * self.burst * BURSTS;
        let connections = self.connections.iter().sum::<u32>() * ORDERS;
        let parts = [
            (EventsPart::Priority, (ms(self.urgent) + AROUND) * 4),
            (EventsPart::Collocated, AROUND),
            (EventsPart::Filters, AROUND * 2),
            (EventsPart::FanOut, AROUND * self.consumers.len() as u32),
            (EventsPart::Bursts, bursts + AROUND * 4),
            (EventsPart::Connections, ms(connections)),
            (EventsPart::Timers, self.timer_run + AROUND),
            (
                EventsPart::SlowConsumer,
                (ms(self.beside_slow) + AROUND) * 2,
            ),
            (
                EventsPart::Ring,
                AROUND * (self.cursors.len() + self.sleepers.len()) as u32,
            ),
            (EventsPart::Peers, super::peers::length(self)),
        ];
        let parts = parts.into_iter().filter(|(part, _)| self.has(*part));
        parts.map(|(_, length)| length).sum()
    }

    /// Returns the command that repeats the run.
    pub(super) fn command(&self) -> String {
        let command = "cargo run --release -- lab events";
        if self.parts.len() == EventsPart::ALL.len() {
            return command.to_owned();
        }
        let parts: Vec<_> = self.parts.iter().map(ToString::to_string).collect();
        format!("{command} --only {}", parts.join(","))
    }
}

/// The time that it takes to start and to stop processes.
const AROUND: Duration = Duration::from_millis(500);
/// About the events of all bursts by those of one supplier.
const BURSTS: u32 = 10;
/// The orders of connections.
const ORDERS: u32 = 6;
