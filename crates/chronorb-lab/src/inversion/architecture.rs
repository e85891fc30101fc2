//! The architectures of ORBs that are compared.

use serde::{Deserialize, Serialize};

use crate::named::by_name;

/// The connections of an ORB's clients, and the threads of its servers.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// A connection for each thread of the client, and a thread for each priority of the server.
    RealTime,
    /// The same, but one thread of each priority reads, and another serves.
    HalfSync,
    /// One thread reads one connection, and queues requests for workers.
    WorkerPool,
    /// A free thread of a pool reads the one connection, and serves.
    LeaderFollowersMuxed,
    /// One thread reads one connection, and hands each request to a thread of its priority.
    FilterChain,
    /// omniORB with its defaults.
    #[serde(rename = "omniorb")]
    OmniOrb,
    /// omniORB with a connection for each thread of the client.
    #[serde(rename = "omniorb-tuned")]
    OmniOrbTuned,
}

/// The names and the construction of an architecture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Description {
    /// The name in headings.
    pub(super) title: &'static str,
    /// The ORB of the paper that has it; empty where none has.
    pub(super) stands_for: &'static str,
    /// The description, in a sentence.
    pub(super) meaning: &'static str,
    pub(super) make: Make,
}

/// The ORB that has an architecture.
#[derive(Clone, Copy, Debug)]
pub(super) enum Make {
    /// chronorb, whose setting `-ORBArchitecture` has a value of the same name.
    Chronorb(ServantPool),
    /// omniORB.
    OmniOrb {
        /// Permits the client as many connections as it has threads.
        is_tuned: bool,
    },
}

/// The server's thread pool.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum ServantPool {
    /// A pool with a lane for each servant.
    Lanes,
    /// One pool for both servants, of the high priority.
    Shared,
}

impl Architecture {
    /// All of them, the real-time one first.
    pub const ALL: [Self; 7] = [
        Self::RealTime,
        Self::HalfSync,
        Self::WorkerPool,
        Self::LeaderFollowersMuxed,
        Self::FilterChain,
        Self::OmniOrb,
        Self::OmniOrbTuned,
    ];

    /// The name in headings.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.description().title
    }

    /// Whether the architecture is conventional: it ignores priorities between client and servant.
    pub(super) const fn is_conventional(self) -> bool {
        !matches!(self, Self::RealTime | Self::HalfSync)
    }

    /// Whether omniORB has it.
    pub(super) const fn is_of_omniorb(self) -> bool {
        matches!(self.description().make, Make::OmniOrb { .. })
    }

    pub(super) const fn description(self) -> Description {
        match self {
            Self::RealTime => Description {
                title: "Real-time",
                stands_for: "TAO",
                meaning: "Each thread of the client has a connection of its own, made beforehand, \
                          and the server a lane with a thread for each priority, which reads the \
                          connections of this priority and serves their requests.",
                make: Make::Chronorb(ServantPool::Lanes),
            },
            Self::HalfSync => Description {
                title: "Half-Sync/Half-Async",
                stands_for: "",
                meaning: "The same connections and lanes, but in each lane one thread reads and \
                          queues requests, and another serves them.",
                make: Make::Chronorb(ServantPool::Lanes),
            },
            Self::WorkerPool => Description {
                title: "Worker pool",
                stands_for: "CORBAplus",
                meaning: "All threads of the client share one connection, by whose own thread all \
                          is sent and received. One thread of the server reads it and queues \
                          requests in the order of their arrival for a pool of workers, which \
                          serve both servants.",
                make: Make::Chronorb(ServantPool::Shared),
            },
            Self::LeaderFollowersMuxed => Description {
                title: "Leader/Followers, one connection",
                stands_for: "miniCOOL",
                meaning: "All threads of the client share one connection, and one of those that \
                          wait reads the replies for all. The server has one pool for both \
                          servants, whose free threads take turns to read it and serve.",
                make: Make::Chronorb(ServantPool::Shared),
            },
            Self::FilterChain => Description {
                title: "Filter chain",
                stands_for: "MT-Orbix",
                meaning: "All threads of the client share one connection, and one of those that \
                          wait reads the replies for all. One thread of the server, of the high \
                          priority, reads it, finds the target of each request, and hands it to \
                          the lane of its priority, whose thread serves it.",
                make: Make::Chronorb(ServantPool::Lanes),
            },
            Self::OmniOrb => Description {
                title: "omniORB",
                stands_for: "",
                meaning: "omniORB with its defaults: at most five connections for all threads of \
                          the client, and a thread of the server for each connection, all of the \
                          high priority.",
                make: Make::OmniOrb { is_tuned: false },
            },
            Self::OmniOrbTuned => Description {
                title: "omniORB, tuned",
                stands_for: "",
                meaning: "omniORB with as many connections as the client has threads.",
                make: Make::OmniOrb { is_tuned: true },
            },
        }
    }
}

by_name!(Architecture);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_read_by_its_name_in_figures() {
        for architecture in Architecture::ALL {
            assert_eq!(architecture.to_string().parse(), Ok(architecture));
        }
        assert_eq!("omniorb-tuned".parse(), Ok(Architecture::OmniOrbTuned));
        let error = "corbaplus".parse::<Architecture>().unwrap_err();
        assert!(error.contains("real-time, half-sync"), "{error}");
    }
}
