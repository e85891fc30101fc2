//! The channel beside other systems that publish and subscribe, and beside raw transports.
//!
//! Each system has a supplier in one process and consumers in another one; some have a channel in
//! a third. Other systems are programs of `interop/events`, which talk in the same lines as the
//! processes of this one.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use chronorb_rt::Deadline;
use serde::{Deserialize, Serialize};

use super::PATIENCE;
use super::peer_parts::PeerPart;
use super::plan::EventsPlan;
use crate::bench::take_turns;
use crate::error::LabError;
use crate::process::{Begin, Child, ProcessError, Ready};
use crate::report::rounds;
use crate::stats::Summary;
use crate::watch::Watch;
use crate::xdg;

/// A system that takes events from a supplier to consumers.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerSystem {
    /// A channel of chronorb with a process of its own, over TCP.
    Chronorb,
    /// A channel of chronorb in the process of the supplier, over TCP.
    ChronorbCollocated,
    /// A channel of chronorb in the process of the supplier, over shared memory.
    ChronorbRing,
    /// A TCP connection for each consumer.
    RawTcp,
    /// A ring of shared memory without a channel.
    RawRing,
    /// omniEvents: a channel of `CosEvent` with a process of its own.
    #[serde(rename = "omnievents")]
    OmniEvents,
    /// JacORB's notification server, with a process of its own.
    #[serde(rename = "jacorb")]
    Jacorb,
    /// Cyclone DDS over UDP, without a broker.
    #[serde(rename = "cyclonedds")]
    CycloneDds,
    /// zenoh between two peers over TCP, without a router.
    Zenoh,
    /// iceoryx2: shared memory, and an event that wakes the consumers.
    Iceoryx2,
}

/// A system that takes no part.
#[derive(Clone, Debug, Serialize)]
pub struct AbsentPeer {
    /// The system.
    pub system: PeerSystem,
    /// The reason.
    pub reason: String,
}

/// The latencies of a system with so many consumers.
#[derive(Clone, Debug, Serialize)]
pub struct PeerRow {
    /// The system.
    pub system: PeerSystem,
    /// The consumers.
    pub consumers: u32,
    /// The time from the push of an event to a consumer: medians over the rounds.
    pub latency: Summary,
    /// The quotient of the median and that of raw TCP.
    pub of_raw: Option<f64>,
    /// The deliveries that did not arrive.
    pub missing: u64,
}

/// The figures of the part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PeerFigures {
    /// The rows, by system and number of consumers.
    pub rows: Vec<PeerRow>,
    /// The systems that take no part.
    pub absent: Vec<AbsentPeer>,
}

impl PeerSystem {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 10] = [
        Self::Chronorb,
        Self::OmniEvents,
        Self::Jacorb,
        Self::ChronorbCollocated,
        Self::CycloneDds,
        Self::Zenoh,
        Self::ChronorbRing,
        Self::Iceoryx2,
        Self::RawTcp,
        Self::RawRing,
    ];

    /// Returns the name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chronorb => "chronorb, channel of its own",
            Self::ChronorbCollocated => "chronorb, channel at the supplier",
            Self::ChronorbRing => "chronorb, shared memory",
            Self::RawTcp => "raw TCP",
            Self::RawRing => "raw shared memory",
            Self::OmniEvents => "omniEvents",
            Self::Jacorb => "JacORB's notification server",
            Self::CycloneDds => "Cyclone DDS",
            Self::Zenoh => "zenoh",
            Self::Iceoryx2 => "iceoryx2",
        }
    }

    /// The system of chronorb to which this one is compared: the one with as many hops. `None` for
    /// those of chronorb, and for those that are a floor: raw transports and iceoryx2.
    pub(super) const fn rival(self) -> Option<Self> {
        match self {
            Self::OmniEvents | Self::Jacorb => Some(Self::Chronorb),
            Self::CycloneDds | Self::Zenoh => Some(Self::ChronorbCollocated),
            Self::Chronorb
            | Self::ChronorbCollocated
            | Self::ChronorbRing
            | Self::Iceoryx2
            | Self::RawTcp
            | Self::RawRing => None,
        }
    }

    /// The program of another system, and what it needs.
    const fn program(self) -> Option<(&'static str, &'static str)> {
        const OMNIEVENTS: &str = "on Debian: apt-get install omnievents libomnievents-dev g++";
        const JACORB: &str = "on Debian: apt-get install openjdk-17-jdk-headless maven";
        const CYCLONE: &str = "on Debian: apt-get install cyclonedds-dev cyclonedds-tools g++";
        const CARGO: &str = "they need cargo and packages of crates.io";
        match self {
            Self::OmniEvents => Some(("omnievents", OMNIEVENTS)),
            Self::Jacorb => Some(("jacorb", JACORB)),
            Self::CycloneDds => Some(("cyclonedds", CYCLONE)),
            Self::Zenoh => Some(("zenoh", CARGO)),
            Self::Iceoryx2 => Some(("iceoryx2", CARGO)),
            Self::Chronorb
            | Self::ChronorbCollocated
            | Self::ChronorbRing
            | Self::RawTcp
            | Self::RawRing => None,
        }
    }

    /// Whether a channel has a process of its own.
    const fn has_channel(self) -> bool {
        matches!(self, Self::Chronorb | Self::OmniEvents | Self::Jacorb)
    }

    /// The events before those that are timed. More let Java compile what they run.
    const fn warm_up(self) -> u32 {
        match self {
            Self::Jacorb => 5 * WARM_UP,
            _ => WARM_UP,
        }
    }

    /// Starts a part of the system.
    fn launch(self, part: &PeerPart) -> Result<Child, ProcessError> {
        match self.program() {
            None => Child::launch(self.name(), PEERS, &(self, part)),
            Some((program, _)) => {
                let mut command = Command::new(folder().join(program));
                Child::run(self.name(), command.args(part.arguments()))
            }
        }
    }
}

impl PeerFigures {
    /// Returns the latencies of a system with so many consumers.
    pub(super) fn of(&self, system: PeerSystem, consumers: u32) -> Option<&Summary> {
        let mut rows = self.rows.iter();
        let row = rows.find(|row| row.system == system && row.consumers == consumers);
        row.map(|row| &row.latency)
    }
}

/// A system that takes part.
struct Peer {
    system: PeerSystem,
    /// The channel and its address.
    channel: Option<Child>,
    address: String,
    rounds: Vec<(u32, Summary, u64)>,
}

/// Returns about the length of the part.
pub(super) fn length(plan: &EventsPlan) -> Duration {
    let events = WARM_UP + plan.peer_events;
    let cells = plan.peer_consumers.iter();
    let round: Duration = cells.map(|consumers| period(*consumers) * events).sum();
    round * PeerSystem::ALL.len() as u32 * plan.peer_rounds
}

fn period(consumers: u32) -> Duration {
    PERIOD.max(PERIOD_OF_CONSUMER * consumers)
}

/// Measures all systems in turns.
pub(super) fn measure(plan: &EventsPlan, watch: &Watch) -> Result<PeerFigures, LabError> {
    watch.begin("other systems");
    let mut figures = PeerFigures::default();
    let mut peers = Vec::new();
    for system in PeerSystem::ALL {
        match Peer::start(system) {
            Ok(peer) => peers.push(peer),
            Err(reason) => figures.absent.push(AbsentPeer { system, reason }),
        }
    }
    let title = "events of all systems";
    take_turns(
        title,
        plan.peer_rounds,
        &plan.peer_consumers,
        &mut peers,
        |_, consumers, peer| peer.turn(consumers, plan.peer_events),
    )?;
    for system in PeerSystem::ALL {
        let Some(peer) = peers.iter().find(|peer| peer.system == system) else {
            continue;
        };
        for consumers in &plan.peer_consumers {
            let of = || peer.rounds.iter().filter(|of| of.0 == *consumers);
            let latency = rounds::over_rounds(of().map(|(_, latency, _)| latency));
            figures.rows.extend(latency.map(|latency| PeerRow {
                system,
                consumers: *consumers,
                latency,
                of_raw: None,
                missing: of().map(|(.., missing)| missing).sum(),
            }));
        }
    }
    let raw: Vec<_> = figures
        .rows
        .iter()
        .filter(|row| row.system == PeerSystem::RawTcp)
        .cloned()
        .collect();
    for row in &mut figures.rows {
        let raw = raw.iter().find(|raw| raw.consumers == row.consumers);
        row.of_raw = raw.map(|raw| row.latency.p50_us / raw.latency.p50_us);
    }
    for peer in peers {
        if let Some(channel) = peer.channel {
            channel.stop(Deadline::after(PATIENCE))?;
        }
    }
    Ok(figures)
}

impl Peer {
    /// Starts the channel of a system, if it has one. Returns the reason for which the system takes
    /// no part.
    fn start(system: PeerSystem) -> Result<Self, String> {
        if let Some((program, needs)) = system.program()
            && !folder().join(program).is_file()
        {
            return Err(format!(
                "its programs are not built; {needs}; then make -C interop/events"
            ));
        }
        let mut peer = Self {
            system,
            channel: None,
            address: String::new(),
            rounds: Vec::new(),
        };
        if system.has_channel() {
            let started = system.launch(&PeerPart::Channel).and_then(|mut child| {
                peer.address = child.hear(soon())?;
                Ok(child)
            });
            peer.channel = Some(started.map_err(|error| error.to_string())?);
        }
        Ok(peer)
    }

    /// Takes the latencies of a round with so many consumers.
    fn turn(&mut self, consumers: u32, events: u32) -> Result<(), LabError> {
        let period = period(consumers);
        let warm_up = self.system.warm_up();
        let mut supplier = self.system.launch(&PeerPart::Supply {
            address: self.address.clone(),
            warm_up,
            events,
            period_ns: period.as_nanos() as u64,
        })?;
        let address: String = supplier.hear(soon())?;
        let mut consumer = self.system.launch(&PeerPart::Consume {
            address,
            consumers,
            events,
        })?;
        let Ready {} = consumer.hear(soon())?;
        supplier.tell(&Begin {})?;
        let length = period * (warm_up + events);
        let Ready {} = supplier.hear(Deadline::after(PATIENCE + length))?;
        consumer.tell(&Begin {})?;
        let latencies: Vec<u64> = consumer.hear(soon())?;
        consumer.stop(soon())?;
        supplier.stop(soon())?;
        let asked = u64::from(consumers) * u64::from(events);
        let missing = asked.saturating_sub(latencies.len() as u64);
        let summary = rounds::record(&latencies).summary();
        self.rounds.push((consumers, summary, missing));
        Ok(())
    }
}

/// The folder of the programs of other systems.
fn folder() -> PathBuf {
    if let Some(folder) = env::var_os(FOLDER) {
        return folder.into();
    }
    let cache = xdg::cache().unwrap_or_else(|| env::temp_dir().join("chronorb"));
    cache.join("event-peers")
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

/// The part of a process of this program.
pub(crate) const PEERS: &str = "events-peers";
/// The variable with the folder of programs.
const FOLDER: &str = "CHRONORB_EVENT_PEERS";
/// The events before those that are timed.
pub(super) const WARM_UP: u32 = 100;
/// The least time between two events.
const PERIOD: Duration = Duration::from_millis(2);
/// The least time between two events for each consumer, so that no system is saturated.
const PERIOD_OF_CONSUMER: Duration = Duration::from_micros(200);
