//! Subscriptions: how they are made, and how they end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb_events::{Filter, Overflow, Program};
use chronorb_rt::Gate;

use crate::channel::{Channel, ChannelInner};
use crate::consumer::{Body, Consumer};
use crate::error::SubscribeError;
use crate::mailbox::{Mailbox, QueueSetup};
use crate::member::{Member, Rank, SubscriptionStatus, Way};
use crate::stream::EventStream;

/// A subscription that is being made. It begins with the way of delivery that is chosen last.
#[derive(Debug)]
#[must_use = "a subscription begins with its way of delivery"]
pub struct SubscriptionBuilder<'c, B: Body> {
    channel: &'c Channel<B>,
    filter: Filter,
    subpriority: i32,
    queue: QueueSetup,
}

/// A subscription. Dropping it disconnects the consumer.
pub struct Subscription<B: Body> {
    pub(crate) member: Arc<Member<B>>,
    pub(crate) channel: Arc<ChannelInner<B>>,
}

impl<'c, B: Body> SubscriptionBuilder<'c, B> {
    pub(crate) fn new(channel: &'c Channel<B>, filter: Filter) -> Self {
        Self {
            channel,
            filter,
            subpriority: 0,
            queue: QueueSetup {
                capacity: 64,
                overflow: Overflow::default(),
                block: Duration::ZERO,
            },
        }
    }

    /// The place among the subscriptions of its lane: lower ones are served first. By default 0.
    pub fn subpriority(mut self, subpriority: i32) -> Self {
        self.subpriority = subpriority;
        self
    }

    /// The capacity of the queue in events, and its policy when it is full. By default 64, and the
    /// oldest is dropped. Direct deliveries have no queue.
    pub fn queue(mut self, capacity: usize, overflow: Overflow) -> Self {
        self.queue.capacity = capacity;
        self.queue.overflow = overflow;
        self
    }

    /// The longest time for which a supplier waits under [`Overflow::Block`]. By default it does
    /// not wait.
    pub fn block_for(mut self, limit: Duration) -> Self {
        self.queue.block = limit;
        self
    }

    /// Delivers each event on the thread of its supplier, which borrows it to the consumer.
    ///
    /// # Errors
    /// [`SubscribeError`]; [`SubscribeError::NeedsLane`] for a filter with groups or timers.
    pub fn call(self, consumer: impl Consumer<B>) -> Result<Subscription<B>, SubscribeError> {
        self.make(DIRECT, |_, program, _| {
            if program.is_stateless() {
                Ok(Way::Direct(Box::new(consumer)))
            } else {
                Err(SubscribeError::NeedsLane)
            }
        })
    }

    /// Delivers events on the thread of a lane, by its number.
    ///
    /// # Errors
    /// [`SubscribeError`]; [`SubscribeError::NoLane`] where the channel has no such lane.
    pub fn call_on(
        self,
        lane: usize,
        consumer: impl Consumer<B>,
    ) -> Result<Subscription<B>, SubscribeError> {
        let inner = &self.channel.inner;
        let queue = inner.lanes.get(lane).cloned();
        let queue = queue.ok_or(SubscribeError::NoLane(lane))?;
        let for_timers = queue.clone();
        let subscription = self.make(lane, |setup, program, now| {
            let mailbox = Mailbox::new(setup, program, now);
            Ok(Way::Lane(Box::new(consumer), mailbox, queue))
        })?;
        if subscription.member.program.has_timers() {
            for_timers.add_timers(&subscription.member);
        }
        Ok(subscription)
    }

    /// Delivers events to a thread of the application, which takes them from the stream.
    ///
    /// # Errors
    /// [`SubscribeError`].
    pub fn stream(self) -> Result<EventStream<B>, SubscribeError> {
        let subscription = self.make(STREAM, |setup, program, now| {
            let mailbox = Mailbox::new(setup, program, now);
            Ok(Way::Stream(mailbox, Gate::new(0)))
        })?;
        Ok(EventStream::new(subscription))
    }

    fn make(
        self,
        group: usize,
        way: impl FnOnce(QueueSetup, &Arc<Program>, u64) -> Result<Way<B>, SubscribeError>,
    ) -> Result<Subscription<B>, SubscribeError> {
        let channel = &self.channel.inner;
        let program = Arc::new(channel.compile(&self.filter)?);
        let way = way(self.queue, &program, channel.clock.now())?;
        let rank = Rank {
            group,
            subpriority: self.subpriority,
            number: channel.next_number(),
        };
        let member = Arc::new(Member::new(rank, program, way));
        channel.add(member.clone())?;
        Ok(Subscription {
            member,
            channel: channel.clone(),
        })
    }
}

impl<B: Body> Subscription<B> {
    /// Ends the subscription. When it returns no push to the consumer begins any more, and those in
    /// progress are over; called within a push it does not wait for those. Events in the queue are
    /// dropped. The same happens when the subscription is dropped.
    pub fn disconnect(self) {
        drop(self);
    }

    /// Stops events and timers. Groups keep what they have. Events meanwhile are neither delivered
    /// nor queued.
    pub fn suspend(&self) {
        self.member.is_suspended.store(true, Ordering::Relaxed);
    }

    /// Lets events and timers go on. Deadlines count from the next event or timer.
    pub fn resume(&self) {
        self.member.is_suspended.store(false, Ordering::Relaxed);
    }

    /// The present state and counts.
    pub fn status(&self) -> SubscriptionStatus {
        self.member.status()
    }
}

impl<B: Body> Member<B> {
    /// Lets no push begin from now on. Returns whether it was open.
    pub(crate) fn end(&self) -> bool {
        let was_open = self.gate.close();
        if let Some(mailbox) = self.mailbox() {
            mailbox.wake_suppliers();
        }
        was_open
    }
}

impl<B: Body> Drop for Subscription<B> {
    fn drop(&mut self) {
        self.member.end();
        self.channel.remove(&self.member);
        self.member.gate.wait();
    }
}

impl<B: Body> fmt::Debug for Subscription<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// The group of streams, behind all lanes.
const STREAM: usize = usize::MAX - 1;
/// The group of direct deliveries.
const DIRECT: usize = usize::MAX;
