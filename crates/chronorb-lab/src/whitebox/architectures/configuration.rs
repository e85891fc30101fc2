//! The architectures, and who had them.

use chronorb_orb::Architecture;

/// An architecture of client and server.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// What both sides are told.
    pub architecture: Architecture,
    /// The name for people.
    pub title: &'static str,
    /// The same where there is little room.
    pub short: &'static str,
    /// The ORB of the papers that had it; nothing where none had.
    pub stands_for: Option<&'static str>,
    /// The server's threads.
    pub pool: Pool,
}

/// The threads of the server, which has two servants: one of high priority and one of low.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pool {
    /// A lane with one thread for each servant.
    Lanes,
    /// One pool with two threads for both.
    Shared,
}

/// What is measured: what the papers' ORBs had, and Half-Sync/Half-Async.
pub const CONFIGURATIONS: [Configuration; 5] = [
    Configuration {
        architecture: Architecture::RealTime,
        title: "real-time",
        short: "real-time",
        stands_for: Some("TAO"),
        pool: Pool::Lanes,
    },
    Configuration {
        architecture: Architecture::HalfSync,
        title: "Half-Sync/Half-Async",
        short: "half-sync",
        stands_for: None,
        pool: Pool::Lanes,
    },
    Configuration {
        architecture: Architecture::WorkerPool,
        title: "worker pool",
        short: "worker pool",
        stands_for: Some("CORBAplus"),
        pool: Pool::Shared,
    },
    Configuration {
        architecture: Architecture::LeaderFollowersMuxed,
        title: "multiplexed Leader/Followers",
        short: "muxed L/F",
        stands_for: Some("miniCOOL"),
        pool: Pool::Shared,
    },
    Configuration {
        architecture: Architecture::FilterChain,
        title: "filter chain",
        short: "filter chain",
        stands_for: Some("MT-Orbix"),
        pool: Pool::Lanes,
    },
];

impl Configuration {
    /// The name for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.architecture.name()
    }

    /// The one of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        CONFIGURATIONS
            .iter()
            .find(|configuration| configuration.name() == name)
    }

    /// With the ORB that it stands for.
    pub(super) fn long_title(&self) -> String {
        match self.stands_for {
            Some(orb) => format!("{} (as {orb})", self.title),
            None => self.title.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::published::PUBLISHED;
    use super::*;

    #[test]
    fn each_is_found_by_a_name_of_its_own() {
        for of in &CONFIGURATIONS {
            let found = Configuration::named(of.name()).unwrap();
            assert_eq!(found.architecture, of.architecture);
        }
        assert!(Configuration::named("nothing").is_none());
    }

    #[test]
    fn every_orb_of_the_papers_has_one() {
        for of in PUBLISHED {
            assert!(
                CONFIGURATIONS
                    .iter()
                    .any(|configuration| configuration.stands_for == Some(of.orb))
            );
        }
    }
}
