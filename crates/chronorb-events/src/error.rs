//! The errors of a subscription, and the limits of what it may cost.

use std::time::Duration;

use thiserror::Error;

/// A subscription that is refused. The façade answers each with `BAD_PARAM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SubscriptionError {
    /// There is no filter at all.
    #[error("the subscription is empty; give it at least one filter")]
    Empty,
    /// A group, negation or mask announces more than follows.
    #[error("entry {at} of the subscription needs more entries than follow it")]
    Truncated {
        /// The index of the entry.
        at: usize,
    },
    /// The filter has more nodes than the limit.
    #[error("the subscription has more than {limit} nodes")]
    TooLarge {
        /// The greatest number of nodes.
        limit: usize,
    },
    /// The filter is nested deeper than the limit.
    #[error("the subscription is nested deeper than {limit} levels")]
    TooDeep {
        /// The greatest depth.
        limit: usize,
    },
    /// A negation or logical and contains a conjunction or a timer.
    #[error("a negation or logical and of the subscription contains a conjunction or a timer")]
    StatefulOperand,
    /// A timer's time is out of range.
    #[error("a timer of the subscription has {time:?}; the range is {least:?} to {greatest:?}")]
    BadTime {
        /// The time that was asked for.
        time: Duration,
        /// The shortest time.
        least: Duration,
        /// The longest time.
        greatest: Duration,
    },
    /// The timers of the filter fire more often than the limit.
    #[error("the timers of the subscription fire {rate} times a second; the limit is {limit}")]
    TooFrequent {
        /// The firings per second that were asked for, rounded up.
        rate: u64,
        /// The most firings per second.
        limit: u64,
    },
    /// A group, or a mask, where the notation expects a leaf.
    #[error("entry {at} of the subscription begins a group or mask where only a leaf may stand")]
    BadDesignator {
        /// The index of the entry.
        at: usize,
    },
}

/// Bounds of what one subscription may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The greatest number of nodes of a filter.
    pub nodes: usize,
    /// The greatest depth of a filter.
    pub depth: usize,
    /// The shortest time of a timer.
    pub least_time: Duration,
    /// The longest time of a timer.
    pub greatest_time: Duration,
    /// The most [firings per second](crate::Filter::firings_per_second) of all timers together.
    pub firings_per_second: u64,
}

impl Default for Limits {
    /// 1,024 nodes, 32 levels, times from 1 ms to 10 years, 1,000 firings per second.
    fn default() -> Self {
        Self {
            nodes: 1024,
            depth: 32,
            least_time: Duration::from_millis(1),
            greatest_time: Duration::from_secs(10 * 366 * 24 * 3600),
            firings_per_second: 1000,
        }
    }
}
