//! The options of a channel.

use std::sync::Arc;
use std::time::Duration;

use chronorb::Orb;
use chronorb::outbox::{OutboxLimits, OutboxOverflow};
use chronorb::quota::{Quota, QuotaLimits};
use chronorb::rtcorba::Priority;
use chronorb_consumers::{ConsumerQuotas, PeerPolicy};
use chronorb_events::{Limits, Notation, Overflow, Rules};

/// The options of a channel. The defaults are those of the channel of TAO, unless a field says
/// otherwise.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChannelOptions {
    /// The notation of subscriptions (`-ECFiltering prefix|basic`). By default the prefix notation.
    pub notation: Notation,
    /// The rules of correlation. By default the corrected ones, unlike TAO.
    pub rules: Rules,
    /// The treatment of events that a supplier did not publish. By default they are filtered as
    /// others, unlike TAO.
    pub unpublished: UnpublishedPolicy,
    /// Whether a second connection of a consumer replaces its subscription, instead of being
    /// refused (`consumer_reconnect`).
    pub consumer_reconnect: bool,
    /// Whether a second connection of a supplier replaces its publications, instead of being
    /// refused (`supplier_reconnect`).
    pub supplier_reconnect: bool,
    /// Whether a client that disconnects itself is called back (`disconnect_callbacks`).
    pub disconnect_callbacks: bool,
    /// The lanes, the most urgent first: each pushes the events of its consumers on a thread of its
    /// own. Without lanes, which is the default, the thread that receives an event
    /// also pushes it (`-ECDispatching reactive`).
    ///
    /// The `rt_info` of a consumer's dependencies is the number of its lane, from 1. Consumers with
    /// another number, such as 0, belong to the last lane.
    pub lanes: Vec<LaneOptions>,
    /// The bounds of what waits for each consumer that is too slow, and the policy for events that
    /// reach them, unless the consumer states its own. Then no push waits for a consumer, and an
    /// event that several consumers take is encoded once. Without bounds, which is the default, a
    /// push waits until the connection has taken it, at most for [`PeerPolicy::push_timeout`].
    ///
    /// Up to eight of these events are given to the connection before it has room.
    pub outboxes: Option<OutboxLimits>,
    /// The treatment of clients that are not reached.
    pub peers: PeerPolicy,
    /// Whether consumers may be groups of objects and objects that are reached by datagrams. Events
    /// to them can reach hosts that have not asked for them. By default not: they are `BAD_PARAM`.
    pub datagram_consumers: bool,
    /// Whether clients may destroy the channel. By default they may, as in TAO; otherwise that is
    /// `NO_PERMISSION`.
    pub clients_destroy: bool,
    /// The bounds of what clients can make the channel keep.
    pub limits: ChannelLimits,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            notation: Notation::Prefix,
            rules: Rules::Corrected,
            unpublished: UnpublishedPolicy::Filtered,
            consumer_reconnect: false,
            supplier_reconnect: false,
            disconnect_callbacks: false,
            lanes: Vec::new(),
            outboxes: None,
            peers: PeerPolicy::default(),
            datagram_consumers: false,
            clients_destroy: true,
            limits: ChannelLimits::default(),
        }
    }
}

/// A lane of a channel.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LaneOptions {
    /// The CORBA priority of its thread and of its pushes. `None` is ordinary scheduling.
    pub priority: Option<Priority>,
    /// The queue of each consumer of the lane that states none, without
    /// [`outboxes`](ChannelOptions::outboxes).
    pub queue: QueueOptions,
}

/// The queue of a consumer on a lane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueueOptions {
    /// The most events that wait, at least 1. By default 256.
    pub capacity: usize,
    /// The policy for events that find so many waiting. By default the oldest is lost.
    pub overflow: Overflow,
    /// The longest wait of a supplier under [`Overflow::Block`]. By default none.
    pub block: Duration,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            capacity: 256,
            overflow: Overflow::DropOldest,
            block: Duration::ZERO,
        }
    }
}

impl QueueOptions {
    /// The queue before an outbox with these bounds, to which `ahead` requests are given.
    pub(crate) fn before(outbox: OutboxLimits, ahead: usize) -> Self {
        let (overflow, block) = match outbox.overflow {
            OutboxOverflow::DropOldest => (Overflow::DropOldest, Duration::ZERO),
            OutboxOverflow::DropNewest => (Overflow::DropNewest, Duration::ZERO),
            OutboxOverflow::Block(limit) => (Overflow::Block, limit),
        };
        Self {
            capacity: outbox.requests.saturating_sub(ahead).max(1),
            overflow,
            block,
        }
    }
}

/// The treatment of events whose source and type their supplier did not publish.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum UnpublishedPolicy {
    /// They reach the consumers whose filters they pass (`-ECSupplierFiltering null`).
    #[default]
    Filtered,
    /// They are dropped and counted (as with `-ECSupplierFiltering per-supplier`).
    Dropped,
}

/// The bounds of what clients can make a channel keep.
///
/// Beyond a quota a request is `IMP_LIMIT`, unless a field says otherwise. A default gives one
/// [origin](chronorb::quota::Origin) half of the total.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChannelLimits {
    /// The consumers, connected or not. By default 8,192.
    pub consumers: QuotaLimits,
    /// The suppliers, connected or not. By default 8,192.
    pub suppliers: QuotaLimits,
    /// The observers. More are `CANT_APPEND_OBSERVER`. By default 16.
    pub observers: QuotaLimits,
    /// The publications of a supplier. More are `BAD_PARAM`. By default 1,024.
    pub publications: usize,
    /// The publications of all suppliers. By default 65,536.
    pub all_publications: QuotaLimits,
    /// With an admission: the streams of events to consumers. More are `NO_RESOURCES`. By default
    /// 4,096.
    pub streams: QuotaLimits,
    /// With an admission: the publications with periods. More are `NO_RESOURCES`. Each consumer
    /// that connects is compared with all of them. By default 8,192.
    pub periodic_publications: QuotaLimits,
    /// The nodes of the subscriptions of all consumers. By default 65,536.
    pub nodes: QuotaLimits,
    /// The firings of the timers of all subscriptions in a second. By default 20,000.
    pub firings: QuotaLimits,
    /// The octets of the events that wait for consumers. Beyond them events are lost and counted.
    /// By default 256 MiB.
    pub octets: QuotaLimits,
    /// The octets of the events that wait for one consumer, as with [`octets`](Self::octets). By
    /// default 32 MiB.
    pub consumer_octets: u64,
    /// The nodes of subscriptions that the events of one push may be compared with. Beyond them the
    /// rest of its events are lost and counted. By default 16 million.
    pub push_work: u64,
    /// The greatest queue that a consumer may state. A greater one is `BAD_PARAM`. By default
    /// 4,096.
    pub queue: usize,
    /// The longest time for which a consumer may make suppliers wait. A longer one is `BAD_PARAM`.
    /// By default none, so that no consumer can delay others.
    pub block: Duration,
    /// The bounds of a subscription. Beyond them it is `BAD_PARAM`.
    pub subscription: Limits,
}

impl Default for ChannelLimits {
    fn default() -> Self {
        Self {
            consumers: QuotaLimits::shared(8192, 2),
            suppliers: QuotaLimits::shared(8192, 2),
            observers: QuotaLimits::shared(16, 2),
            publications: 1024,
            all_publications: QuotaLimits::shared(1 << 16, 2),
            streams: QuotaLimits::shared(4096, 2),
            periodic_publications: QuotaLimits::shared(8192, 2),
            nodes: QuotaLimits::shared(1 << 16, 2),
            firings: QuotaLimits::shared(20_000, 2),
            octets: QuotaLimits::shared(256 << 20, 2),
            consumer_octets: 32 << 20,
            push_work: 16_000_000,
            queue: 4096,
            block: Duration::ZERO,
            subscription: Limits::default(),
        }
    }
}

/// The quotas of the clients of a channel, beside those of its registry of consumers.
pub(crate) struct ClientQuotas {
    pub(crate) suppliers: Arc<Quota>,
    pub(crate) observers: Arc<Quota>,
    pub(crate) publications: Arc<Quota>,
    pub(crate) nodes: Arc<Quota>,
    pub(crate) firings: Arc<Quota>,
}

impl ClientQuotas {
    pub(crate) fn new(orb: &Orb, limits: &ChannelLimits) -> Self {
        Self {
            suppliers: orb.quota("event suppliers", limits.suppliers),
            observers: orb.quota("event observers", limits.observers),
            publications: orb.quota("publications of events", limits.all_publications),
            nodes: orb.quota("nodes of subscriptions", limits.nodes),
            firings: orb.quota("timer firings per second", limits.firings),
        }
    }
}

/// The quotas of the consumers of a channel.
pub(crate) fn consumer_quotas(orb: &Orb, limits: &ChannelLimits) -> ConsumerQuotas {
    ConsumerQuotas {
        consumers: orb.quota("event consumers", limits.consumers),
        octets: orb.quota("octets of waiting events", limits.octets),
        consumer_octets: limits.consumer_octets,
    }
}
