//! The parts of a consumer's record that are of this service.

use chronorb::quota::Charge;

use crate::admission::AdmissionPlace;
use crate::fan_out::FanOutPlace;
use crate::options::QueueOptions;
use crate::supplier::Leaves;

/// A consumer's proxy, connected or not.
#[derive(Default)]
pub(crate) struct ConsumerProxyState {
    /// The queue that it has stated.
    pub(crate) queue: Option<ConsumerQueue>,
    /// The object that takes its events.
    pub(crate) fan_out: Option<FanOutPlace>,
    /// The time that was missing for its last connection, as text.
    pub(crate) shortfall: String,
}

/// The queue that a consumer states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsumerQueue {
    pub(crate) options: QueueOptions,
    pub(crate) tells_losses: bool,
}

/// A connected consumer.
pub(crate) struct ConsumerConnection {
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
