//! Architectures: settings that belong together.

use super::table::{BASELINES, lacks};
use super::{ConnectionStrategy, OrbConfig, ThreadpoolStrategy};

/// Makes the enumeration of architectures. Each has the value of `-ORBArchitecture`, in brackets
/// the feature that it needs, the strategy of thread pools, and that of client connections.
macro_rules! architectures {
    (
        $(#[$about:meta])*
        pub enum $name:ident;
        $(
            $(#[$doc:meta])*
            $variant:ident: $value:literal $([$feature:tt])?, $threads:ident, $connections:ident;
        )+
    ) => {
        $(#[$about])*
        pub enum $name {$(
            $(#[$doc])*
            $(#[cfg(feature = $feature)])?
            $variant,
        )+}

        impl $name {
            /// All architectures of this build.
            pub const ALL: &'static [Self] = &[$(
                $(#[cfg(feature = $feature)])?
                Self::$variant,
            )+];

            const fn settings(self) -> (&'static str, ThreadpoolStrategy, ConnectionStrategy) {
                use ConnectionStrategy as Connections;
                use ThreadpoolStrategy as Threads;
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant => ($value, Threads::$threads, Connections::$connections),
                )+}
            }
        }

        /// All names; `None` for an architecture of a feature that this program is built without.
        pub(super) const NAMES: &[(&str, Option<$name>)] = &[$(
            ($value, built!(($($feature)?), Some($name::$variant), None)),
        )+];
    };
}

architectures! {
    /// An architecture of an ORB: how its clients have connections and how its servers share the
    /// work, in one word.
    ///
    /// Real-time architectures keep requests of different priorities apart all the way. The others
    /// are those of the ORBs that the TAO papers measured beside it, for comparisons and for
    /// applications without priorities. `WorkerPool` and `FilterChain` serve comparisons only, and
    /// need the feature `baselines`, as `ConnectionStrategy::Active` does.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    #[non_exhaustive]
    pub enum Architecture;

    /// Leader/Followers, and a connection for each thread and priority: TAO.
    #[default]
    RealTime: "real-time", LeaderFollowers, Exclusive;
    /// Half-Sync/Half-Async, and a connection for each thread and priority: the other one of the
    /// thread pool paper.
    HalfSync: "half-sync", HalfSyncHalfAsync, Exclusive;
    /// A [worker pool](ThreadpoolStrategy::WorkerPool), and one connection to each server, by whose
    /// own thread all is sent and received: CORBAplus.
    WorkerPool: "worker-pool" ["baselines"], WorkerPool, Active;
    /// Leader/Followers, and one connection to each server, from which the threads that wait read
    /// in turn: miniCOOL.
    LeaderFollowersMuxed: "leader-followers-muxed", LeaderFollowers, Leader;
    /// A [filter chain](ThreadpoolStrategy::FilterChain), and one connection to each server:
    /// MT-Orbix.
    FilterChain: "filter-chain" ["baselines"], FilterChain, Leader;
    /// A [reactor](ThreadpoolStrategy::Reactive), and a connection for each thread and priority:
    /// TAO with a single-threaded server.
    Reactive: "reactive", Reactive, Exclusive;
    /// A [thread for each connection](ThreadpoolStrategy::ThreadPerConnection), and a connection
    /// for each thread and priority: TAO's other one.
    ThreadPerConnection: "thread-per-connection", ThreadPerConnection, Exclusive;
}

impl Architecture {
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
    match NAMES.iter().find(|(name, _)| *name == text) {
        Some((_, Some(architecture))) => config.set_architecture(*architecture),
        Some(_) => return Err(lacks(BASELINES)),
        None => {
            let known = Architecture::ALL.iter().map(|known| known.name());
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(format!("{text:?} is none of {known}"));
        }
    }
    Ok(())
}
