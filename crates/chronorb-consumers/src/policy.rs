//! The treatment of peers, and the bounds of what they make a service keep.

use std::sync::Arc;
use std::time::Duration;

use chronorb::quota::Quota;

/// The treatment of consumers and suppliers that are not reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerPolicy {
    /// The longest time of a push, for all its consumers together. A consumer that does not take a
    /// message for so long has failed, and gets nothing before it has answered a check. By default
    /// 1 s.
    pub push_timeout: Duration,
    /// The failures since it answered a check, after which a client is disconnected. One whose
    /// object does not exist is disconnected at once. By default 3; TAO disconnects at the first.
    pub failures: u32,
    /// The time between two checks of all clients. Clients that took or sent events since the last
    /// one, and have not failed, are called at each sixth only. `None` checks none. By default 5 s.
    pub check_period: Option<Duration>,
    /// The longest time of a check, and of a callback. By default 500 ms.
    pub check_timeout: Duration,
}

impl Default for PeerPolicy {
    fn default() -> Self {
        Self {
            push_timeout: Duration::from_secs(1),
            failures: 3,
            check_period: Some(Duration::from_secs(5)),
            check_timeout: Duration::from_millis(500),
        }
    }
}

/// The bounds of what consumers make a service keep.
#[derive(Clone, Debug)]
pub struct ConsumerQuotas {
    /// The consumers, connected or not.
    pub consumers: Arc<Quota>,
    /// The octets of the events that wait for consumers.
    pub octets: Arc<Quota>,
    /// The most octets of the events that wait for one consumer.
    pub consumer_octets: u64,
}
