//! Subscriptions: how they are made, and how they end.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb_events::{Allowance, Filter, Overflow};
use chronorb_rt::{Deadline, Gate};

use crate::budget::{Budget, BudgetAccount};
use crate::channel::{Channel, ChannelInner};
use crate::clock::never;
use crate::consumer::{Body, Consumer};
use crate::correlation::Correlation;
use crate::error::SubscribeError;
use crate::mailbox::{Mailbox, OctetSetup, QueueSetup, Target};
use crate::member::{Binding, Member, Rank, SubscriptionStatus, Way};
use crate::stream::EventStream;

/// A subscription that is being made. It begins with the way of delivery that is chosen last.
#[derive(Debug)]
#[must_use = "a subscription begins with its way of delivery"]
pub struct SubscriptionBuilder<'c, B: Body> {
    channel: &'c Channel<B>,
    filter: Filter,
    subpriority: i32,
    queue: QueueSetup,
    octets: OctetSetup<B>,
    budget: Option<Budget>,
}

/// A subscription. Dropping it disconnects the consumer.
pub struct Subscription<B: Body> {
    pub(crate) binding: Arc<Binding<B>>,
    pub(crate) channel: Arc<ChannelInner<B>>,
    /// The lane that fires the timers of a consumer.
    timer_lane: Option<usize>,
    /// Whether pushes in progress were waited for, or need not be.
    has_waited: bool,
}

/// A handle by which a consumer on a lane says that it is [ready](Consumer::is_ready) again.
pub struct Waker<B> {
    member: Weak<Member<B>>,
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
            octets: OctetSetup {
                allowance: None,
                octets_of: channel.inner.octets_of,
            },
            budget: None,
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

    /// The bound of the octets of the events that the subscription keeps: those in its queue, and
    /// those of its groups until their sets are complete. By default it has none.
    ///
    /// An event whose octets are not granted finds the queue full, and the [policy](Self::queue)
    /// applies: the oldest events are dropped until it fits, or it is lost. A group does not keep
    /// it. It counts as lost, and the consumer is told. The octets are taken in blocks of 16 KiB;
    /// the queue and the groups have one block to spare each.
    pub fn allowance(mut self, allowance: Arc<dyn Allowance>) -> Self {
        self.octets.allowance = Some(allowance);
        self
    }

    /// The time that the consumer may use of its lane. By default it has no bound. Direct
    /// deliveries and streams have none.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Delivers each event on the thread of its supplier, which borrows it to the consumer.
    ///
    /// # Errors
    /// [`SubscribeError`]; [`SubscribeError::NeedsLane`] for a filter with groups or timers, which
    /// [`call_inline`](Self::call_inline) takes.
    pub fn call(self, consumer: impl Consumer<B>) -> Result<Subscription<B>, SubscribeError> {
        self.make(DIRECT, None, Some(Arc::new(consumer)), |_, _, _| {
            Way::Direct
        })
    }

    /// Delivers each event on the thread of its supplier, by any filter. Groups have a lock of the
    /// subscription, which is not held during a push. Timers fire on the thread of a lane.
    ///
    /// # Errors
    /// [`SubscribeError`]; [`SubscribeError::NoLane`] where the channel has no such lane.
    pub fn call_inline(
        self,
        timer_lane: usize,
        consumer: impl Consumer<B>,
    ) -> Result<Subscription<B>, SubscribeError> {
        let lane = Some(timer_lane);
        self.make(DIRECT, lane, Some(Arc::new(consumer)), |_, _, _| {
            Way::Direct
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
        let lanes = &self.channel.inner.lanes;
        let queue = lanes.get(lane).ok_or(SubscribeError::NoLane(lane))?;
        let queue = queue.clone();
        let (setup, budget) = (self.queue, self.budget);
        let consumer = Some(Arc::new(consumer) as _);
        self.make(lane, Some(lane), consumer, |target, octets, now| {
            let account = budget.and_then(|budget| BudgetAccount::new(budget, now));
            Way::Lane(Mailbox::new(setup, octets, target, account), queue)
        })
    }

    /// Delivers events to a thread of the application, which takes them from the stream.
    ///
    /// # Errors
    /// [`SubscribeError`].
    pub fn stream(self) -> Result<EventStream<B>, SubscribeError> {
        let setup = self.queue;
        let subscription = self.make(STREAM, None, None, |target, octets, _| {
            Way::Stream(Mailbox::new(setup, octets, target, None), Gate::new(0))
        })?;
        Ok(EventStream::new(subscription))
    }

    fn make(
        self,
        group: usize,
        timer_lane: Option<usize>,
        consumer: Option<Arc<dyn Consumer<B>>>,
        way: impl FnOnce(Target<B>, &OctetSetup<B>, u64) -> Way<B>,
    ) -> Result<Subscription<B>, SubscribeError> {
        let channel = &self.channel.inner;
        if let Some(lane) = timer_lane.filter(|lane| *lane >= channel.lanes.len()) {
            return Err(SubscribeError::NoLane(lane));
        }
        let program = Arc::new(channel.compile(&self.filter)?);
        if group == DIRECT && timer_lane.is_none() && !program.is_stateless() {
            return Err(SubscribeError::NeedsLane);
        }
        let rank = Rank {
            group,
            subpriority: self.subpriority,
            number: channel.next_number(),
        };
        let now = channel.clock.now();
        let target = Target {
            correlation: Correlation::new(&program, now, self.octets.account()),
            consumer: consumer.clone(),
        };
        let way = way(target, &self.octets, now);
        let member = Arc::new(Member::new(rank, way, self.octets));
        let binding = Arc::new(Binding::new(member, program, consumer, now));
        channel.add(&binding)?;
        let subscription = Subscription {
            binding,
            channel: channel.clone(),
            timer_lane,
            has_waited: false,
        };
        subscription.start_timers();
        Ok(subscription)
    }
}

impl<B: Body> Subscription<B> {
    /// Ends the subscription. When it returns no push to the consumer begins any more, and those in
    /// progress are over; called within a push it does not wait for those. Events in the queue are
    /// dropped. The same happens when the subscription is dropped.
    pub fn disconnect(self) {
        drop(self);
    }

    /// Ends the subscription as [`disconnect`](Self::disconnect) does, and waits for pushes in
    /// progress for at most `limit`. Returns whether they are over. No push begins afterwards in
    /// either case.
    pub fn disconnect_within(mut self, limit: Duration) -> bool {
        self.end_within(limit)
    }

    /// Ends the subscription as [`disconnect_within`](Self::disconnect_within) does, and keeps its
    /// [counts](Self::status).
    pub fn end_within(&mut self, limit: Duration) -> bool {
        self.has_waited = true;
        self.end(Deadline::after(limit))
    }

    /// Replaces the filter and the consumer. Each event is filtered by the old filter or by the new
    /// one, so one that passes both is delivered once. Events in a queue are filtered by the new
    /// one. Timers count from now. A push to the old consumer that is in progress goes on.
    ///
    /// # Errors
    /// [`SubscribeError`], and then nothing is changed.
    pub fn replace(
        &mut self,
        filter: &Filter,
        consumer: impl Consumer<B>,
    ) -> Result<(), SubscribeError> {
        let program = Arc::new(self.channel.compile(filter)?);
        let member = self.binding.member.clone();
        if matches!(member.way, Way::Direct) && self.timer_lane.is_none() && !program.is_stateless()
        {
            return Err(SubscribeError::NeedsLane);
        }
        let now = self.channel.clock.now();
        let consumer: Arc<dyn Consumer<B>> = Arc::new(consumer);
        let target = Target {
            correlation: Correlation::new(&program, now, member.octets.account()),
            consumer: Some(consumer.clone()),
        };
        let binding = Binding::new(member.clone(), program, Some(consumer), now);
        let binding = Arc::new(binding);
        self.channel.rebind(&self.binding, &binding)?;
        self.binding.retire();
        self.binding = binding;
        if let Some(mailbox) = member.mailbox() {
            mailbox.replace(target);
            self.waker().wake();
        }
        self.start_timers();
        Ok(())
    }

    /// A handle by which the consumer says that it is ready.
    pub fn waker(&self) -> Waker<B> {
        Waker {
            member: Arc::downgrade(&self.binding.member),
        }
    }

    /// The sources and types of the events that the filter may react to, as leaves: zero is any.
    pub fn leaves(&self) -> Vec<(i32, i32)> {
        self.binding.program.leaves()
    }

    /// Stops events and timers. Groups keep what they have. Events meanwhile are neither delivered
    /// nor queued.
    pub fn suspend(&self) {
        self.binding.member.suspension.suspend();
    }

    /// Lets events and timers go on. Deadlines count from now.
    pub fn resume(&self) {
        let now = self.channel.clock.now();
        self.binding.member.suspension.resume(now);
    }

    /// The present state and counts.
    pub fn status(&self) -> SubscriptionStatus {
        self.binding.member.status()
    }

    /// Lets the lane know the timers of the present filter.
    fn start_timers(&self) {
        let lane = self
            .timer_lane
            .and_then(|lane| self.channel.lanes.get(lane));
        if let Some(lane) = lane.filter(|_| self.binding.program.has_timers()) {
            lane.add_timers(&self.binding);
        }
    }

    /// Ends the subscription, and waits for pushes in progress.
    fn end(&self, deadline: Deadline) -> bool {
        let member = &self.binding.member;
        if member.end() {
            self.channel.remove(&self.binding);
        }
        let is_over = member.gate.wait(deadline);
        self.binding.release();
        is_over
    }
}

impl<B: Body> Waker<B> {
    /// Lets the lane serve the consumer again. Does nothing after the end of the subscription.
    pub fn wake(&self) {
        if let Some(member) = self.member.upgrade()
            && let Way::Lane(mailbox, lane) = &member.way
            && mailbox.parking.unpark()
        {
            lane.notify(&member);
        }
    }
}

impl<B> Clone for Waker<B> {
    fn clone(&self) -> Self {
        Self {
            member: self.member.clone(),
        }
    }
}

impl<B> fmt::Debug for Waker<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").finish_non_exhaustive()
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
        if !self.has_waited {
            self.end(never());
        }
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
