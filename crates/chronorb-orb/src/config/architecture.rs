//! Architectures: settings that belong together.

#[cfg(not(feature = "baselines"))]
use super::settings::{BASELINES, lacks};
use super::{ConnectionStrategy, OrbConfig, ThreadpoolStrategy};

/// An architecture of an ORB: how its clients have connections and how its servers share the work,
/// in one word.
///
/// Real-time architectures keep requests of different priorities apart all the way. The others are
/// those of the ORBs that the TAO papers measured beside it, for comparisons and for applications
/// without priorities. `WorkerPool` and `FilterChain` serve comparisons only, and need the feature
/// `baselines`, as `ConnectionStrategy::Active` does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Architecture {
    /// Leader/Followers, and a connection for each thread and priority: TAO.
    #[default]
    RealTime,
    /// Half-Sync/Half-Async, and a connection for each thread and priority: the other one of the
    /// thread pool paper.
    HalfSync,
    /// A [worker pool](ThreadpoolStrategy::WorkerPool), and one connection to each server, by whose
    /// own thread all is sent and received: CORBAplus.
    #[cfg(feature = "baselines")]
    WorkerPool,
    /// Leader/Followers, and one connection to each server, from which the threads that wait read
    /// in turn: miniCOOL.
    LeaderFollowersMuxed,
    /// A [filter chain](ThreadpoolStrategy::FilterChain), and one connection to each server:
    /// MT-Orbix.
    #[cfg(feature = "baselines")]
    FilterChain,
    /// A [reactor](ThreadpoolStrategy::Reactive), and a connection for each thread and priority:
    /// TAO with a single-threaded server.
    Reactive,
    /// A [thread for each connection](ThreadpoolStrategy::ThreadPerConnection), and a connection
    /// for each thread and priority: TAO's other one.
    ThreadPerConnection,
}

impl Architecture {
    /// All architectures of this build.
    pub const ALL: &'static [Self] = &[
        Self::RealTime,
        Self::HalfSync,
        #[cfg(feature = "baselines")]
        Self::WorkerPool,
        Self::LeaderFollowersMuxed,
        #[cfg(feature = "baselines")]
        Self::FilterChain,
        Self::Reactive,
        Self::ThreadPerConnection,
    ];

    /// The name, the strategy of thread pools, and that of client connections.
    const fn settings(self) -> (&'static str, ThreadpoolStrategy, ConnectionStrategy) {
        use ConnectionStrategy::{Exclusive, Leader};
        use ThreadpoolStrategy::{HalfSyncHalfAsync, LeaderFollowers};
        match self {
            Self::RealTime => ("real-time", LeaderFollowers, Exclusive),
            Self::HalfSync => ("half-sync", HalfSyncHalfAsync, Exclusive),
            #[cfg(feature = "baselines")]
            Self::WorkerPool => {
                let strategy = ThreadpoolStrategy::WorkerPool;
                ("worker-pool", strategy, ConnectionStrategy::Active)
            }
            Self::LeaderFollowersMuxed => ("leader-followers-muxed", LeaderFollowers, Leader),
            #[cfg(feature = "baselines")]
            Self::FilterChain => ("filter-chain", ThreadpoolStrategy::FilterChain, Leader),
            Self::Reactive => ("reactive", ThreadpoolStrategy::Reactive, Exclusive),
            Self::ThreadPerConnection => {
                let strategy = ThreadpoolStrategy::ThreadPerConnection;
                ("thread-per-connection", strategy, Exclusive)
            }
        }
    }

    /// The value of `-ORBArchitecture`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.settings().0
    }

    /// Returns the architecture of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }

    /// Returns the way in which the threads of pools share the work.
    #[must_use]
    pub const fn threadpool_strategy(self) -> ThreadpoolStrategy {
        self.settings().1
    }

    /// Returns the way in which a client's threads share connections.
    #[must_use]
    pub const fn client_connection(self) -> ConnectionStrategy {
        self.settings().2
    }

    /// Whether requests of all priorities share connections.
    #[must_use]
    pub const fn shares_across_priorities(self) -> bool {
        !matches!(self.client_connection(), ConnectionStrategy::Exclusive)
    }
}

impl OrbConfig {
    /// Applies the settings of an architecture: [`threadpool_strategy`](Self::threadpool_strategy),
    /// [`client_connection`](Self::client_connection) and
    /// [`share_connections_across_priorities`](Self::share_connections_across_priorities). All
    /// others stay.
    pub fn set_architecture(&mut self, architecture: Architecture) {
        self.threadpool_strategy = architecture.threadpool_strategy();
        self.client_connection = architecture.client_connection();
        self.share_connections_across_priorities = architecture.shares_across_priorities();
    }
}

/// Applies a value of `-ORBArchitecture`.
pub(super) fn apply(config: &mut OrbConfig, text: &str) -> Result<(), String> {
    #[cfg(not(feature = "baselines"))]
    if LEFT_OUT.contains(&text) {
        return Err(lacks(BASELINES));
    }
    let architecture = Architecture::from_name(text).ok_or_else(|| {
        let known = Architecture::ALL.iter().map(|known| known.name());
        let known = known.collect::<Vec<_>>().join(", ");
        format!("{text:?} is none of {known}")
    })?;
    config.set_architecture(architecture);
    Ok(())
}

/// The architectures of the feature `baselines`.
#[cfg(not(feature = "baselines"))]
pub(super) const LEFT_OUT: [&str; 2] = ["worker-pool", "filter-chain"];
