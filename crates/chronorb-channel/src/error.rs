//! The errors of channels and subscriptions.

use chronorb_events::SubscriptionError;
use chronorb_rt::SpawnError;
use thiserror::Error;

/// A channel that cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The thread of a lane cannot be started.
    #[error("the lane `{lane}` has no thread: {source}")]
    NoThread {
        /// The name of the lane.
        lane: String,
        /// The reason.
        source: SpawnError,
    },
}

/// A subscription that is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The filter is malformed or exceeds the limits.
    #[error(transparent)]
    Filter(#[from] SubscriptionError),
    /// A filter with groups or timers cannot be delivered directly, because several suppliers may
    /// push at the same time.
    #[error("a filter with groups or timers needs a lane or a stream")]
    NeedsLane,
    /// The channel has no lane of this number.
    #[error("the channel has no lane {0}")]
    NoLane(usize),
    /// The channel is closed.
    #[error("the channel is closed")]
    Closed,
    /// There are as many subscriptions as there may be.
    #[error("the channel has {most} subscriptions, which is its limit")]
    TooMany {
        /// The limit.
        most: usize,
    },
}
