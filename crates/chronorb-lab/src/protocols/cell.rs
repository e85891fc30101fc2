//! The cells of the experiment: workloads and places.

use serde::Serialize;

use super::plan::ProtocolsPlan;
use crate::bench::{Operation, Placement, Waits};

/// A kind of calls or messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(into = "String")]
pub enum Workload {
    /// Calls of one client with so many octets each way; with none, an octet and its cube.
    Call(u32),
    /// The smallest calls of so many clients at a time, each on a connection of its own.
    Clients(u32),
    /// Messages without an answer of one client, with the time and so many octets.
    Oneway(u32),
    /// The smallest messages without an answer of so many clients, as fast as they can send.
    Flood(u32),
}

impl Workload {
    /// All workloads.
    pub const ALL: [Self; 8] = [
        Self::Call(0),
        Self::Call(1 << 10),
        Self::Call(1 << 16),
        Self::Oneway(0),
        Self::Oneway(1 << 10),
        Self::Oneway(1 << 16),
        Self::Clients(4),
        Self::Flood(4),
    ];

    /// The name in texts and tables.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Call(0) => "a call".to_owned(),
            Self::Call(octets) => format!("a call with {} KiB", octets >> 10),
            Self::Clients(clients) => format!("calls of {clients} clients"),
            Self::Oneway(0) => "a message without an answer".to_owned(),
            Self::Oneway(octets) => format!("a message without an answer, {} KiB", octets >> 10),
            Self::Flood(clients) => format!("messages without an answer of {clients} clients"),
        }
    }

    /// The word for one of the calls or messages.
    pub(super) const fn noun(self) -> &'static str {
        if self.is_oneway() { "message" } else { "call" }
    }

    /// The operation that is called.
    pub(super) const fn operation(self) -> Operation {
        match self {
            Self::Call(0) | Self::Clients(_) => Operation::Cube,
            Self::Call(octets) => Operation::Octets(octets),
            Self::Oneway(octets) => Operation::Oneway(octets),
            Self::Flood(_) => Operation::Flood,
        }
    }

    /// The number of clients.
    pub(super) const fn clients(self) -> u32 {
        match self {
            Self::Clients(clients) | Self::Flood(clients) => clients,
            Self::Call(_) | Self::Oneway(_) => 1,
        }
    }

    /// The octets of data each way, beside the least that a message has.
    pub(super) const fn octets(self) -> u32 {
        match self {
            Self::Call(octets) | Self::Oneway(octets) => octets,
            Self::Clients(_) | Self::Flood(_) => 0,
        }
    }

    /// Whether threads that wait so take part: several clients never spin.
    pub(super) fn permits(self, waits: Waits) -> bool {
        waits == Waits::Block || self.clients() == 1
    }

    /// Whether there are no answers.
    pub(super) const fn is_oneway(self) -> bool {
        matches!(self, Self::Oneway(_) | Self::Flood(_))
    }
}

/// The name in figures for programs.
impl From<Workload> for String {
    fn from(workload: Workload) -> Self {
        match workload {
            Workload::Call(octets) => format!("call-{octets}"),
            Workload::Clients(clients) => format!("clients-{clients}"),
            Workload::Oneway(octets) => format!("oneway-{octets}"),
            Workload::Flood(clients) => format!("flood-{clients}"),
        }
    }
}

/// A workload in a place, with a way to wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Cell {
    /// The workload.
    #[serde(rename = "trial")]
    pub workload: Workload,
    /// The processors of client and server.
    pub placement: Placement,
    /// The way in which threads wait.
    pub waits: Waits,
}

impl Cell {
    /// The smallest of calls.
    pub(super) const fn of_calls(placement: Placement, waits: Waits) -> Self {
        Self {
            workload: Workload::Call(0),
            placement,
            waits,
        }
    }

    /// All cells of a plan. A spinning thread needs a processor for itself on each side, and a
    /// processor is there for one client at most.
    pub(super) fn all(plan: &ProtocolsPlan) -> Vec<Self> {
        let mut cells = Vec::new();
        for workload in Workload::ALL {
            for &waits in plan.waits.iter().filter(|waits| workload.permits(**waits)) {
                let places = plan.places.iter().copied();
                let places = places.filter(|placement| {
                    waits == Waits::Block || *placement == Placement::AcrossCpus
                });
                cells.extend(places.map(|placement| Self {
                    workload,
                    placement,
                    waits,
                }));
            }
        }
        cells
    }

    /// The name: `a call, same CPU, blocking`.
    pub(crate) fn name(self) -> String {
        format!("{}, {}", self.workload.name(), self.place())
    }

    /// The name without the workload.
    pub(super) fn place(self) -> String {
        let waits = match self.waits {
            Waits::Block => "blocking",
            Waits::Spin => "spinning",
        };
        format!("{}, {waits}", self.placement.name())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Protocols;
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn spinning_threads_are_never_without_a_processor() {
        let cells = Cell::all(&Protocols::full());
        let spinning = || cells.iter().filter(|cell| cell.waits == Waits::Spin);
        assert!(spinning().all(|cell| cell.placement == Placement::AcrossCpus));
        assert_eq!(spinning().count(), 6);
        assert_eq!(cells.len(), 6 + 2 * 8);
    }

    #[test]
    fn the_smallest_of_calls_is_in_every_plan() {
        let plans = [Protocols::full(), Protocols::short(), ProtocolsPlan::tiny()];
        for plan in plans {
            let smallest = Cell::of_calls(Placement::SameCpu, Waits::Block);
            assert!(Cell::all(&plan).contains(&smallest));
        }
    }
}
