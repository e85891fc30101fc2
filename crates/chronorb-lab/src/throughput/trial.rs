//! The trials, and the systems that are compared.

use serde::Serialize;

use crate::bench::{Operation, Placement};

/// A load that is tried on all systems.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThroughputTrial {
    /// So many clients at a time make the smallest of calls, each on a connection of its own.
    Clients(u32),
    /// One client sends data and gets it back.
    Data(Operation),
}

impl ThroughputTrial {
    /// All trials.
    pub const ALL: [Self; 10] = [
        Self::Clients(1),
        Self::Clients(4),
        Self::Clients(16),
        Self::Data(Operation::Octets(1 << 20)),
        Self::Data(Operation::Doubles(64 << 10)),
        Self::Data(Operation::Structs(64 << 10)),
        Self::Data(Operation::Strings(64 << 10)),
        Self::Data(Operation::Unions(64 << 10)),
        Self::Data(Operation::Anys(64 << 10)),
        Self::Data(Operation::Values(64 << 10)),
    ];

    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> String {
        let kind = self.kind();
        match (self, self.octets()) {
            (Self::Clients(2..), _) => format!("{} clients", self.clients()),
            (_, 0) => "1 client".to_owned(),
            (_, octets) if octets.is_multiple_of(1 << 20) => {
                format!("{} MiB of {kind}", octets >> 20)
            }
            (_, octets) => format!("{} KiB of {kind}", octets >> 10),
        }
    }

    /// Returns the kind of the data; an empty word without data.
    pub(super) const fn kind(self) -> &'static str {
        match self.operation().data() {
            Some((kind, _)) => kind,
            None => "",
        }
    }

    /// Returns the operation that is called.
    pub(super) const fn operation(self) -> Operation {
        match self {
            Self::Clients(_) => Operation::Cube,
            Self::Data(operation) => operation,
        }
    }

    /// Returns the number of clients that call at a time.
    pub(super) const fn clients(self) -> u32 {
        match self {
            Self::Clients(clients) => clients,
            Self::Data(_) => 1,
        }
    }

    /// Returns the octets of data in each direction of a call.
    pub(super) const fn octets(self) -> u32 {
        match self.operation().data() {
            Some((_, octets)) => octets,
            None => 0,
        }
    }

    /// Returns the placements of the trial. One client is pinned, since its figures would follow
    /// the kernel's moves; many clients share all CPUs.
    pub(super) const fn placements(self) -> &'static [Placement] {
        match self {
            Self::Clients(2..) => &[Placement::Unpinned, Placement::AcrossCpus],
            Self::Clients(_) | Self::Data(_) => &[Placement::SameCpu, Placement::AcrossCpus],
        }
    }

    /// Returns all trials in all their places.
    pub(super) fn in_places() -> impl Iterator<Item = (Self, Placement)> {
        let trials = Self::ALL.into_iter();
        trials.flat_map(|trial| trial.placements().iter().map(move |place| (trial, *place)))
    }

    /// Returns the raw server that others are measured by.
    pub(super) const fn raw(self) -> ThroughputSystem {
        match self {
            Self::Clients(_) => ThroughputSystem::EpollOne,
            Self::Data(_) => ThroughputSystem::RawTcp,
        }
    }

    /// Returns the MiB of data in each direction of so many calls.
    pub(super) fn mebioctets(self, calls: f64) -> f64 {
        calls * f64::from(self.octets()) / f64::from(1 << 20)
    }
}

/// A system that is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThroughputSystem {
    /// The ORB, with its default thread pool.
    Chronorb,
    /// omniORB, with a thread for each connection.
    #[serde(rename = "omniorb")]
    OmniOrb,
    /// A raw server with one thread that waits on one epoll set.
    EpollOne,
    /// A raw server with as many threads as the ORB's lane, each with an epoll set.
    EpollMany,
    /// A raw server that reads all data and writes it back. Its client receives into the memory
    /// that it sends.
    RawTcp,
    /// The same with a client that receives into other memory.
    RawTcpApart,
}

impl ThroughputSystem {
    /// All systems, in the order of tables.
    pub const ALL: [Self; 6] = [
        Self::Chronorb,
        Self::OmniOrb,
        Self::EpollOne,
        Self::EpollMany,
        Self::RawTcp,
        Self::RawTcpApart,
    ];

    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Chronorb => "chronorb".to_owned(),
            Self::OmniOrb => "omniORB".to_owned(),
            Self::EpollOne => "raw epoll, 1 thread".to_owned(),
            Self::EpollMany => format!("raw epoll, {} threads", EPOLL_THREADS),
            Self::RawTcp => "raw TCP".to_owned(),
            Self::RawTcpApart => "raw TCP, replies apart".to_owned(),
        }
    }
}

/// The number of threads of the raw server with several.
pub(super) const EPOLL_THREADS: u32 = 4;
