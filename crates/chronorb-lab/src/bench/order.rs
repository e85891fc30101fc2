//! What parent and children say to each other.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::place::Scheduled;
use crate::stats::Record;

/// To a server, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServerOrder {
    pub(super) kind: ServerKind,
    pub(super) scheduled: Scheduled,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) enum ServerKind {
    Orb(OrbServing),
    Raw {
        medium: Medium,
        how: RawServing,
        exchange: Exchange,
    },
}

/// A server of chronorb.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct OrbServing {
    /// As `-ORBListenEndpoints` has them.
    pub(super) endpoints: String,
    /// Other options of the ORB.
    pub(super) options: Vec<String>,
    /// The group that leads to the object that takes the time of messages, as a URL.
    pub(super) group: Option<String>,
    pub(super) waits: Waits,
    pub(super) max_connections: u32,
}

/// What carries octets, with nothing above it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Medium {
    Tcp,
    /// Streams of Unix-domain sockets.
    Unix,
    Udp,
    /// Datagrams to a group; they go one way.
    Multicast,
    /// Shared memory.
    Memory,
    /// TLS over TCP, with the certificates that are in this directory.
    Tls(PathBuf),
}

/// How a raw server waits, and with how many threads.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum RawServing {
    /// A thread for each connection.
    Threads(Waits),
    /// So many threads, each with an epoll set and its share of the connections.
    Epoll { threads: u32 },
}

/// How a thread waits for octets.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    /// It sleeps until it is woken.
    #[default]
    Block,
    /// It looks again and again throughout a ping-pong, and sleeps when it is over.
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

/// What is called.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// An octet, and its cube as the answer.
    Cube,
    /// So many octets, and the same as the answer.
    Octets(u32),
    /// The same in doubles.
    Doubles(u32),
    /// The same in small structs with padding.
    Structs(u32),
    /// The time, one way, and so many octets with it.
    Oneway(u32),
    /// The time, one way, as fast as it can be sent.
    Flood,
}

/// How many octets a call has on the wire.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Sizes {
    /// From client to server.
    pub request: usize,
    /// Back.
    pub reply: usize,
}

/// What a raw server and its clients exchange.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Exchange {
    pub(super) operation: Operation,
    pub(super) sizes: Sizes,
}

/// From a server, when it serves.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Serving {
    /// The object that cubes: `IOR:…`, or the address of a raw server.
    pub(super) power: String,
    /// The object that gives back data: the same.
    pub(super) data: String,
    /// The object that takes the time of messages that have no answer; nothing where there is none.
    #[serde(default)]
    pub(super) clock: String,
}

impl Serving {
    /// The object with this operation.
    pub(super) fn of(&self, operation: Operation) -> &str {
        match operation {
            Operation::Cube => &self.power,
            Operation::Octets(_) | Operation::Doubles(_) | Operation::Structs(_) => &self.data,
            Operation::Oneway(_) | Operation::Flood => &self.clock,
        }
    }
}

/// To a client, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientOrder {
    pub(super) kind: ClientKind,
    /// How many call at a time, each on a connection of its own.
    pub(super) threads: u32,
    pub(super) scheduled: Scheduled,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) enum ClientKind {
    Orb(OrbCalling),
    Raw(RawCalling),
}

/// A client of chronorb.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct OrbCalling {
    pub(super) reference: String,
    /// Options of the ORB.
    pub(super) options: Vec<String>,
    pub(super) waits: Waits,
    pub(super) operation: Operation,
}

/// A client with nothing but a socket.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RawCalling {
    pub(super) medium: Medium,
    pub(super) address: String,
    pub(super) waits: Waits,
    pub(super) exchange: Exchange,
}

/// To a client; the end of its work is `None`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Batch {
    /// By each thread, before the time counts.
    pub(super) warm_up: u32,
    /// By each thread.
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
        let mut record = Record::new();
        let mut at = Duration::ZERO;
        for latency in &self.latencies_ns {
            let latency = Duration::from_nanos(*latency);
            record.add(at, latency);
            at += latency;
        }
        record
    }
}

/// To a server: how long were messages under way that have no answer, since it was asked last?
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Report {}

/// From a server: the messages that have come.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Arrivals {
    /// How long each was under way, in the order in which they came.
    pub(crate) latencies_ns: Vec<u64>,
    /// When the first was sent; 0 where none came.
    pub(super) first_sent_ns: u64,
    /// When the last came; 0 where none did.
    pub(super) last_came_ns: u64,
}

impl Arrivals {
    /// A message that was sent and came at these times.
    pub(crate) fn add(&mut self, sent_ns: u64, came_ns: u64) {
        self.merge(Self {
            latencies_ns: Vec::new(),
            first_sent_ns: sent_ns,
            last_came_ns: came_ns,
        });
        self.latencies_ns.push(came_ns.saturating_sub(sent_ns));
    }

    /// Those that came later.
    pub(super) fn merge(&mut self, later: Self) {
        self.first_sent_ns = match self.first_sent_ns {
            0 => later.first_sent_ns,
            first if later.first_sent_ns == 0 => first,
            first => first.min(later.first_sent_ns),
        };
        self.last_came_ns = self.last_came_ns.max(later.last_came_ns);
        self.latencies_ns.extend(later.latencies_ns);
    }

    /// How many came.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.latencies_ns.len()).unwrap_or(u32::MAX)
    }

    /// From the first that was sent to the last that came.
    pub(crate) const fn elapsed_ns(&self) -> u64 {
        self.last_came_ns.saturating_sub(self.first_sent_ns)
    }
}
