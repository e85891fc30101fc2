//! The messages between parent and children.

use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::place::CallScheduling;
use crate::report::rounds;
use crate::stats::Record;

/// An order to a server, its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SystemServerOrder {
    pub(super) system: System,
    pub(super) scheduled: CallScheduling,
}

/// A system, with the settings of its server and clients.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum System {
    Orb {
        settings: OrbSettings,
        waits: Waits,
    },
    Raw {
        medium: Medium,
        how: RawServerMode,
        exchange: Exchange,
    },
}

/// The settings of an ORB, except its way to wait.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct OrbSettings {
    /// The endpoint of the server, in the form of `-ORBListenEndpoints`.
    pub(crate) endpoints: String,
    /// The other options of the server.
    pub(crate) server: Vec<String>,
    /// The options of the client.
    pub(crate) client: Vec<String>,
    /// The URL of the group that oneway messages go to; without it they go to the object.
    pub(crate) group: Option<String>,
    /// The connections that the server accepts.
    pub(crate) max_connections: u32,
}

impl OrbSettings {
    /// Settings without options.
    pub(crate) const fn of(endpoints: String) -> Self {
        Self {
            endpoints,
            server: Vec::new(),
            client: Vec::new(),
            group: None,
            max_connections: MAX_CONNECTIONS,
        }
    }
}

impl System {
    /// Returns the way in which clients wait.
    pub(super) const fn waits(&self) -> Waits {
        match self {
            Self::Orb { waits, .. } => *waits,
            Self::Raw { how, .. } => how.waits(),
        }
    }
}

impl RawServerMode {
    const fn waits(self) -> Waits {
        match self {
            Self::Threads(waits) => waits,
            Self::Epoll { .. } => Waits::Block,
        }
    }
}

/// A medium of raw octets.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Medium {
    Tcp,
    /// Streams of Unix-domain sockets.
    Unix,
    Udp,
    /// Oneway datagrams to a group.
    Multicast,
    /// Shared memory.
    Memory,
    /// TLS over TCP, with the certificates in this directory.
    Tls(PathBuf),
}

/// The threads of a raw server, and their way to wait.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum RawServerMode {
    /// A thread for each connection.
    Threads(Waits),
    /// A number of threads, each with an epoll set and its share of the connections.
    Epoll { threads: u32 },
}

/// The way in which a thread waits for octets.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    /// The thread blocks.
    #[default]
    Block,
    /// The thread polls throughout a ping-pong, and blocks after it.
    Spin,
}

impl FromStr for Waits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "block" => Ok(Self::Block),
            "spin" => Ok(Self::Spin),
            _ => Err(format!("{text:?} is neither block nor spin")),
        }
    }
}

/// An operation that is called.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// An octet, with its cube as the reply.
    Cube,
    /// A number of octets, with the same octets as the reply.
    Octets(u32),
    /// A number of octets in doubles, with the same doubles as the reply.
    Doubles(u32),
    /// A number of octets in small structs with padding, with the same structs as the reply.
    Structs(u32),
    /// A number of octets in short strings, with the same strings as the reply.
    Strings(u32),
    /// A number of octets in unions of a number, a text and a struct, with the same unions as the
    /// reply.
    Unions(u32),
    /// A number of octets in structs in anys, with the same anys as the reply.
    Anys(u32),
    /// A number of octets in small values, with the same values as the reply.
    Values(u32),
    /// A oneway message of a time stamp and a number of octets.
    Oneway(u32),
    /// Oneway time stamps, sent as fast as possible.
    Flood,
}

impl Operation {
    /// Returns the kind of the data that is returned, and its octets; `None` without data.
    pub(crate) const fn data(self) -> Option<(&'static str, u32)> {
        Some(match self {
            Self::Octets(octets) => ("octets", octets),
            Self::Doubles(octets) => ("doubles", octets),
            Self::Structs(octets) => ("structs", octets),
            Self::Strings(octets) => ("strings", octets),
            Self::Unions(octets) => ("unions", octets),
            Self::Anys(octets) => ("anys", octets),
            Self::Values(octets) => ("values", octets),
            Self::Cube | Self::Oneway(_) | Self::Flood => return None,
        })
    }
}

/// The octets of a call on the wire.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Sizes {
    /// The octets from client to server.
    pub request: usize,
    /// The octets from server to client.
    pub reply: usize,
}

/// The messages between a raw server and its clients.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Exchange {
    pub(super) operation: Operation,
    pub(super) sizes: Sizes,
    /// The client receives replies into other memory than that of its requests, as an ORB does.
    pub(super) apart: bool,
}

/// The addresses of objects, from a server that is ready.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ObjectAddresses {
    /// The object that cubes, as `IOR:…` or the address of a raw server.
    pub(super) power: String,
    /// The object that echoes data, in the same form.
    pub(super) data: String,
    /// The object that records oneway messages; empty if there is none.
    #[serde(default)]
    pub(super) clock: String,
}

impl ObjectAddresses {
    /// Returns the object with this operation.
    pub(super) fn of(&self, operation: Operation) -> &str {
        match operation {
            Operation::Cube => &self.power,
            Operation::Oneway(_) | Operation::Flood => &self.clock,
            _ => &self.data,
        }
    }
}

/// An order to a client, its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SystemClientOrder {
    pub(super) system: System,
    /// The object, as `IOR:…` or the address of a raw server.
    pub(super) address: String,
    /// The operation of an ORB's client.
    pub(super) operation: Operation,
    /// The number of calling threads, each with a connection of its own.
    pub(super) threads: u32,
    pub(super) scheduled: CallScheduling,
}

/// An order for a batch to a client; `None` ends its work.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct BatchOrder {
    /// The calls of each thread that are not timed.
    pub(super) warm_up: u32,
    /// The calls of each thread after them.
    pub(super) calls: u32,
}

/// The times of a batch, from a client.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct BatchTimes {
    /// The time from the first call of the first thread to the last reply.
    pub(crate) elapsed_ns: u64,
    /// The time of each call of a single thread; empty if several threads call.
    pub(crate) latencies_ns: Vec<u64>,
}

impl BatchTimes {
    /// Returns the calls as a record, one after the other.
    pub(crate) fn record(&self) -> Record {
        rounds::record(&self.latencies_ns)
    }
}

/// An order to a server to report the oneway messages since the last report.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Report {
    /// The start of the batch. The server ignores messages from now on that were sent before.
    pub(super) batch_ns: u64,
}

/// The oneway messages that arrived, from a server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Arrivals {
    /// The time of each message under way, in the order of arrival.
    pub(crate) latencies_ns: Vec<u64>,
    /// The time when the first was sent; 0 without a message.
    pub(super) first_sent_ns: u64,
    /// The time when the last arrived; 0 without a message.
    pub(super) last_came_ns: u64,
}

impl Arrivals {
    /// Adds a message that was sent and arrived at these times.
    pub(crate) fn add(&mut self, sent_ns: u64, came_ns: u64) {
        self.merge(Self {
            latencies_ns: Vec::new(),
            first_sent_ns: sent_ns,
            last_came_ns: came_ns,
        });
        self.latencies_ns.push(came_ns.saturating_sub(sent_ns));
    }

    /// Adds messages that arrived later.
    pub(super) fn merge(&mut self, later: Self) {
        self.first_sent_ns = match self.first_sent_ns {
            0 => later.first_sent_ns,
            first if later.first_sent_ns == 0 => first,
            first => first.min(later.first_sent_ns),
        };
        self.last_came_ns = self.last_came_ns.max(later.last_came_ns);
        self.latencies_ns.extend(later.latencies_ns);
    }

    /// Returns the number of messages.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.latencies_ns.len()).unwrap_or(u32::MAX)
    }

    /// Returns the time from the first sending to the last arrival.
    pub(crate) const fn elapsed_ns(&self) -> u64 {
        self.last_came_ns.saturating_sub(self.first_sent_ns)
    }
}

/// More connections than any plan has.
const MAX_CONNECTIONS: u32 = 1024;
