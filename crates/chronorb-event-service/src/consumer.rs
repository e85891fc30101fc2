//! The records of consumers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb::quota::Charge;
use chronorb_channel::Subscription;

use crate::admission::AdmissionPlace;
use crate::event::Body;
use crate::face::PushTarget;
use crate::fan_out::FanOutPlace;
use crate::options::QueueOptions;
use crate::remote::OctetShare;
use crate::supplier::Leaves;

/// A consumer's proxy, connected or not.
pub(crate) struct ConsumerRecord {
    /// The place among the consumers, charged to the client that obtained it.
    pub(crate) _place: Charge,
    /// The octets of the events that wait for it.
    pub(crate) octets: Arc<OctetShare>,
    /// The time at which it was made, in nanoseconds of the channel's clock.
    pub(crate) made: u64,
    /// The queue that it has stated.
    pub(crate) queue: Option<ConsumerQueue>,
    /// The object that takes its events.
    pub(crate) fan_out: Option<FanOutPlace>,
    /// The time that was missing for its last connection, as text.
    pub(crate) shortfall: String,
    pub(crate) connection: Option<ConsumerConnection>,
}

/// The queue that a consumer states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsumerQueue {
    pub(crate) options: QueueOptions,
    pub(crate) tells_losses: bool,
}

/// A connected consumer.
pub(crate) struct ConsumerConnection {
    pub(crate) subscription: Subscription<Body>,
    pub(crate) consumer: Arc<PushTarget>,
    /// The subscription as text, cut to a length that answers bear.
    pub(crate) filter: String,
    /// The sources and types that it reacts to.
    pub(crate) leaves: Leaves,
    pub(crate) is_gateway: bool,
    /// The place in the analysis of one that has an execution time.
    pub(crate) admitted: Option<AdmissionPlace>,
    /// The nodes and timers of its subscription.
    pub(crate) _uses: [Charge; 2],
}

/// Counts of a connected consumer since it connected.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ConnectionCounts {
    /// The sets that were given to the consumer.
    pub(crate) sets: u64,
    /// The events in these sets.
    pub(crate) events: u64,
    /// The events that were lost.
    pub(crate) lost: u64,
    /// The events that wait.
    pub(crate) queued: u64,
    /// The waits for another period of its budget.
    pub(crate) pauses: u64,
}

/// Returns the counts of a consumer. Each event that passed its filter was taken by its connection,
/// is lost, or waits.
pub(crate) fn counts(subscription: &Subscription<Body>, consumer: &PushTarget) -> ConnectionCounts {
    let status = subscription.status();
    let failed = consumer.lost.load(Ordering::Relaxed);
    let waiting = consumer.waiting() as u64;
    ConnectionCounts {
        sets: status.sets,
        events: status.events.saturating_sub(failed + waiting),
        lost: status.lost + failed,
        queued: status.queued as u64 + waiting,
        pauses: status.pauses,
    }
}
