//! The kinds of connections, and the key by which a connection is found.

use chronorb_transport::SocketOptions;

use crate::client::route::Carries;
use crate::config::{ConnectionStrategy, OrbConfig};
use crate::protocol::Way;

/// The kind of a connection: which threads use it, and which thread reads from it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(in crate::client) enum ChannelKind {
    /// One thread uses it alone.
    Exclusive,
    /// Threads share it, and a leader among those that wait reads for all.
    Leader,
    /// Threads share it, and a thread of the connection reads for all.
    Thread,
    /// Threads share it, and a thread of the connection sends and reads for all.
    #[cfg(feature = "baselines")]
    Active,
    /// Threads share it, and a lane reads it, since the other side sends requests too.
    #[cfg(feature = "bidir")]
    Bidirectional,
}

impl ChannelKind {
    /// The kind for calls whose thread waits for the reply.
    #[inline]
    pub(in crate::client) fn of_calls(config: &OrbConfig) -> Self {
        match config.client_connection {
            ConnectionStrategy::Exclusive => Self::Exclusive,
            ConnectionStrategy::Leader => Self::Leader,
            ConnectionStrategy::Thread => Self::Thread,
            #[cfg(feature = "baselines")]
            ConnectionStrategy::Active => Self::Active,
        }
    }

    /// The kind for asynchronous calls, of which several can be under way on one connection.
    pub(in crate::client) fn of_asynchronous_calls(config: &OrbConfig) -> Self {
        match Self::of_calls(config) {
            Self::Exclusive => Self::Leader,
            shared => shared,
        }
    }

    /// Whether a lane reads from it.
    pub(super) fn is_read_by_lane(self) -> bool {
        #[cfg(feature = "bidir")]
        return self == Self::Bidirectional;
        #[cfg(not(feature = "bidir"))]
        false
    }

    /// Whether another thread than the callers reads from it.
    pub(super) fn has_own_thread(self) -> bool {
        !matches!(self, Self::Exclusive | Self::Leader)
    }
}

/// The key of a connection: requests that differ in any part of it do not share one.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::client) struct ConnectionKey {
    /// The ORB's number.
    pub(in crate::client) orb: u64,
    pub(in crate::client) way: Way,
    pub(in crate::client) carries: Carries,
    /// The number of the reference that owns a private connection.
    pub(in crate::client) owner: Option<u64>,
    pub(in crate::client) options: SocketOptions,
    pub(in crate::client) kind: ChannelKind,
    /// Whether it ends when its server does not answer a heartbeat.
    pub(in crate::client) is_watched: bool,
    /// Whether oneways are kept, to be sent together.
    pub(in crate::client) keeps_oneways: bool,
}
