//! Event channels, as the programs that serve them describe them.

use std::sync::{Arc, Weak};

use chronorb_rt::PiMutex;
#[cfg(feature = "monitor-client")]
use serde::{Deserialize, Serialize};

/// The state of an event channel. Counts begin when it is made.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "monitor-client", derive(Deserialize, Serialize))]
pub struct ChannelSnapshot {
    /// The name, as `EventService`.
    pub name: String,
    /// The events that suppliers pushed.
    pub received: u64,
    /// The events that consumers got.
    pub delivered: u64,
    /// The events that consumers lost.
    pub lost: u64,
    /// The clients that were disconnected because they were not reached or too slow.
    pub evicted: u64,
    /// The suppliers.
    pub suppliers: u64,
    /// The consumers.
    pub consumers: u64,
    /// The queues of consumers. A report has only those with the most events that wait or were
    /// lost, up to 64.
    pub queues: Vec<QueueSnapshot>,
}

/// The queue of a consumer.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "monitor-client", derive(Deserialize, Serialize))]
pub struct QueueSnapshot {
    /// The number of the consumer. It is not used again.
    pub number: u64,
    /// The subscription; empty before the consumer connects.
    pub subscription: String,
    /// Whether the consumer is suspended.
    pub is_suspended: bool,
    /// The events that the consumer got.
    pub events: u64,
    /// The events that the consumer lost.
    pub lost: u64,
    /// The events that wait for the consumer.
    pub queued: u64,
}

/// A source of the state of an event channel.
pub trait ChannelSource: Send + Sync {
    /// Returns the present state. It is called on the thread of the monitor.
    fn snapshot(&self) -> ChannelSnapshot;
}

/// The channels that the monitor of an ORB reports.
#[derive(Default)]
pub(crate) struct MonitoredChannels(PiMutex<Vec<Weak<dyn ChannelSource>>>);

impl MonitoredChannels {
    pub(crate) fn add(&self, source: Weak<dyn ChannelSource>) {
        let mut sources = self.0.lock();
        sources.retain(|source| source.strong_count() > 0);
        sources.push(source);
    }

    /// Returns the states of all channels that are there.
    pub(crate) fn snapshots(&self) -> Vec<ChannelSnapshot> {
        let sources: Vec<Arc<_>> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        let snapshot = |source: &Arc<dyn ChannelSource>| {
            let mut channel = source.snapshot();
            let rank = |it: &QueueSnapshot| (it.lost + it.queued, it.number);
            channel.queues.sort_by_key(|it| std::cmp::Reverse(rank(it)));
            channel.queues.truncate(MOST_QUEUES);
            channel.queues.sort_by_key(|it| it.number);
            channel
        };
        sources.iter().map(snapshot).collect()
    }
}

/// The queues of a channel in a report.
const MOST_QUEUES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    struct Many;

    impl ChannelSource for Many {
        fn snapshot(&self) -> ChannelSnapshot {
            let queue = |number| QueueSnapshot {
                number,
                lost: number % 10,
                ..QueueSnapshot::default()
            };
            ChannelSnapshot {
                queues: (0..1000).map(queue).collect(),
                ..ChannelSnapshot::default()
            }
        }
    }

    #[test]
    fn a_report_has_the_queues_with_the_greatest_losses() {
        let channels = MonitoredChannels::default();
        let many: Arc<dyn ChannelSource> = Arc::new(Many);
        channels.add(Arc::downgrade(&many));
        let [channel] = &channels.snapshots()[..] else {
            panic!("there is one");
        };
        assert_eq!(channel.queues.len(), 64);
        assert!(channel.queues.iter().all(|it| it.lost == 9));
        drop(many);
        assert_eq!(channels.snapshots(), []);
    }
}
