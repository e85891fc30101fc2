//! The state of a channel and of its clients, for those that ask.

use std::sync::atomic::Ordering;

use chronorb::monitor::{ChannelSnapshot, ChannelSource, QueueSnapshot};
use chronorb::{SystemException, SystemExceptionKind};

use crate::idl::chronorb_events::{
    ChannelStatisticsBuf, ConsumerStatisticsBuf, MonitoredChannel, SupplierStatistics,
};
use crate::state::Channel;

/// Asks a channel for its state with all its clients, page by page, until it has told `most` of
/// them.
///
/// # Errors
/// Those of any call.
pub fn all_statistics(
    channel: &MonitoredChannel,
    most: usize,
) -> Result<ChannelStatisticsBuf, SystemException> {
    let mut all = channel.statistics()?;
    while all.consumers.len() + all.suppliers.len() < most {
        let consumer = all.consumers.last().map_or(0, |it| it.number);
        let supplier = all.suppliers.last().map_or(0, |it| it.number);
        let next = match channel.statistics_after(consumer, supplier) {
            // A channel of an earlier version tells all at once.
            Err(exception) if exception.kind == SystemExceptionKind::BadOperation => break,
            next => next?,
        };
        if next.consumers.is_empty() && next.suppliers.is_empty() {
            break;
        }
        all.consumers.extend(next.consumers);
        all.suppliers.extend(next.suppliers);
    }
    Ok(all)
}

/// The clients that an answer is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatisticsPage {
    /// The consumers after this number.
    pub(crate) consumer: u64,
    /// The suppliers after this number.
    pub(crate) supplier: u64,
    /// The most of each.
    pub(crate) most: usize,
}

impl StatisticsPage {
    /// The first clients, as many as an answer may have.
    pub(crate) const FIRST: Self = Self {
        consumer: 0,
        supplier: 0,
        most: 64,
    };
    /// All clients.
    pub(crate) const ALL: Self = Self {
        most: usize::MAX,
        ..Self::FIRST
    };
}

impl Channel {
    /// Returns the state of the channel and of some of its clients.
    pub(crate) fn statistics(&self, page: StatisticsPage) -> ChannelStatisticsBuf {
        let counts = self.consumers.counts();
        let mut statistics = ChannelStatisticsBuf {
            age: (self.clock.now() - self.made) / 100,
            received: self.totals.received.load(Ordering::Relaxed),
            sets: counts.sets,
            delivered: counts.events,
            lost: counts.lost + self.totals.lost.load(Ordering::Relaxed),
            evicted: self.totals.evicted.load(Ordering::Relaxed),
            returned: self.totals.returned.load(Ordering::Relaxed),
            observers: self.observers.len() as u32,
            consumers: Vec::new(),
            suppliers: Vec::new(),
        };
        self.consumers
            .visit(page.consumer, page.most, |number, record| {
                let mut consumer = ConsumerStatisticsBuf {
                    number,
                    ..ConsumerStatisticsBuf::default()
                };
                if let Some(connection) = record.connection() {
                    let state = connection.state();
                    consumer.has_answered = state.has_answered;
                    consumer.subscription = connection.service.filter.clone();
                    consumer.is_suspended = state.is_suspended;
                    consumer.is_gateway = connection.service.is_gateway;
                    consumer.sets = state.counts.sets;
                    consumer.events = state.counts.events;
                    consumer.lost = state.counts.lost;
                    consumer.queued = u32::try_from(state.counts.waiting).unwrap_or(u32::MAX);
                    consumer.pauses = state.counts.pauses;
                    consumer.failures = state.failures;
                    let error = state.last_error.map(|it| it.to_string());
                    consumer.last_error = error.unwrap_or_default();
                }
                statistics.consumers.push(consumer);
            });
        let suppliers = self.suppliers.lock();
        let suppliers = suppliers.by_number.range(page.supplier.saturating_add(1)..);
        for (&number, record) in suppliers.take(page.most) {
            let connection = record.connection.as_ref();
            statistics.suppliers.push(SupplierStatistics {
                number,
                is_connected: connection.is_some(),
                is_gateway: connection.is_some_and(|connection| connection.is_gateway),
                events: record.supplier.events.load(Ordering::Relaxed),
                unpublished: record.supplier.unpublished.load(Ordering::Relaxed),
            });
        }
        statistics
    }
}

impl ChannelSource for Channel {
    fn snapshot(&self) -> ChannelSnapshot {
        let statistics = self.statistics(StatisticsPage::ALL);
        let queue = |it: &ConsumerStatisticsBuf| QueueSnapshot {
            number: it.number,
            subscription: it.subscription.clone(),
            is_suspended: it.is_suspended,
            events: it.events,
            lost: it.lost,
            queued: it.queued.into(),
        };
        ChannelSnapshot {
            name: self.name.clone(),
            received: statistics.received,
            delivered: statistics.delivered,
            lost: statistics.lost,
            evicted: statistics.evicted,
            suppliers: statistics.suppliers.len() as u64,
            consumers: statistics.consumers.len() as u64,
            queues: statistics.consumers.iter().map(queue).collect(),
        }
    }
}
