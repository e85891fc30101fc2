//! What is tried, and who takes part.

use chronorb_orb::OrbConfig;
use serde::Serialize;

use crate::bench::{Operation, Placement};

/// What is tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trial {
    /// So many clients at a time make the smallest of calls, each on a connection of its own.
    Clients(u32),
    /// One client sends data and gets it back.
    Data(Operation),
}

impl Trial {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Clients(1),
        Self::Clients(4),
        Self::Clients(16),
        Self::Data(Operation::Octets(1 << 20)),
        Self::Data(Operation::Doubles(64 << 10)),
        Self::Data(Operation::Structs(64 << 10)),
    ];

    /// In words.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Clients(1)
            | Self::Data(Operation::Cube | Operation::Oneway(_) | Operation::Flood) => {
                "1 client".to_owned()
            }
            Self::Clients(clients) => format!("{clients} clients"),
            Self::Data(Operation::Octets(octets)) => format!("{} of octets", size(octets)),
            Self::Data(Operation::Doubles(octets)) => format!("{} of doubles", size(octets)),
            Self::Data(Operation::Structs(octets)) => format!("{} of structs", size(octets)),
        }
    }

    /// What is called.
    pub(super) const fn operation(self) -> Operation {
        match self {
            Self::Clients(_) => Operation::Cube,
            Self::Data(operation) => operation,
        }
    }

    /// How many call at a time.
    pub(super) const fn clients(self) -> u32 {
        match self {
            Self::Clients(clients) => clients,
            Self::Data(_) => 1,
        }
    }

    /// How much data goes each way.
    pub(super) const fn octets(self) -> u32 {
        match self.operation() {
            Operation::Cube | Operation::Oneway(_) | Operation::Flood => 0,
            Operation::Octets(octets) | Operation::Doubles(octets) | Operation::Structs(octets) => {
                octets
            }
        }
    }

    /// Where it is tried. What one client does shows where the kernel cannot move it; many share what there is.
    pub(super) const fn placements(self) -> &'static [Placement] {
        match self {
            Self::Clients(2..) => &[Placement::Unpinned, Placement::AcrossCpus],
            Self::Clients(_) | Self::Data(_) => &[Placement::SameCpu, Placement::AcrossCpus],
        }
    }
}

/// Who takes part.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// The ORB, with its default thread pool.
    Chronorb,
    /// omniORB, with a thread for each connection.
    #[serde(rename = "omniorb")]
    OmniOrb,
    /// A raw server with one thread that waits on one epoll set.
    EpollOne,
    /// The same with as many as the ORB's lane has threads.
    EpollMany,
    /// A raw server that reads all and writes all, for data.
    RawTcp,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Chronorb,
        Self::OmniOrb,
        Self::EpollOne,
        Self::EpollMany,
        Self::RawTcp,
    ];

    /// In words.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Chronorb => "chronorb".to_owned(),
            Self::OmniOrb => "omniORB".to_owned(),
            Self::EpollOne => "raw epoll, 1 thread".to_owned(),
            Self::EpollMany => format!("raw epoll, {} threads", lane_threads()),
            Self::RawTcp => "raw TCP".to_owned(),
        }
    }
}

/// The threads of the ORB's own lane.
pub(super) fn lane_threads() -> u32 {
    OrbConfig::default().threads
}

fn size(octets: u32) -> String {
    match octets {
        octets if octets.is_multiple_of(1 << 20) => format!("{} MiB", octets >> 20),
        octets => format!("{} KiB", octets >> 10),
    }
}
