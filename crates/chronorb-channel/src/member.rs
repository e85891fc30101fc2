//! A subscription as suppliers and lanes see it.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64};

use chronorb_events::{Event, Next, Program};
use chronorb_rt::{Gate, PiMutex};

use crate::clock::Clock;
use crate::consumer::{Body, Consumer};
use crate::correlation::{Correlation, Suspension};
use crate::gate::PushGate;
use crate::lane::{LaneQueue, PendingCall};
use crate::mailbox::{Mailbox, OctetSetup, Receiver};

/// A subscription.
pub(crate) struct Member<B> {
    /// The place in the order of delivery.
    pub(crate) rank: Rank,
    pub(crate) way: Way<B>,
    pub(crate) gate: PushGate,
    pub(crate) suspension: Suspension,
    /// The bound of the octets that it keeps.
    pub(crate) octets: OctetSetup<B>,
    counts: Counts,
}

/// The place of a subscription in the order of delivery: queues of urgent lanes first, direct
/// deliveries last, because they take the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// The number of the lane; streams follow after lanes.
    pub(crate) group: usize,
    pub(crate) subpriority: i32,
    /// The number of the subscription, for the order of age.
    pub(crate) number: u64,
}

/// The way in which events reach the consumer.
pub(crate) enum Way<B> {
    /// On the thread of the supplier.
    Direct,
    /// By a thread of a lane.
    Lane(Mailbox<B>, Arc<LaneQueue<B>>),
    /// By the consumer's own thread, which waits at the gate.
    Stream(Mailbox<B>, Gate),
}

/// A subscription with its filter and its consumer. Another filter is another binding.
pub(crate) struct Binding<B> {
    pub(crate) member: Arc<Member<B>>,
    pub(crate) program: Arc<Program>,
    /// `None` for a stream.
    consumer: Option<Arc<dyn Consumer<B>>>,
    /// The groups and timers of a direct delivery. `None` without any.
    direct: Option<PiMutex<DirectState<B>>>,
    /// Set once the subscription has another binding.
    is_replaced: AtomicBool,
}

/// The groups and timers of a direct delivery. Locked for moments only, and not during a push.
struct DirectState<B> {
    correlation: Correlation<B>,
    /// An empty batch whose memory is used again.
    spare: Batch<B>,
}

/// Sets that are delivered after each other.
struct Batch<B> {
    events: Vec<Event<B>>,
    /// The ends of the sets.
    ends: Vec<usize>,
}

/// Counts of a subscription since it began.
#[derive(Debug, Default)]
struct Counts {
    sets: AtomicU64,
    events: AtomicU64,
    /// The events that groups could not keep.
    lost: AtomicU64,
    panics: AtomicU64,
    pauses: AtomicU64,
    /// Set once the consumer was told its end.
    is_told: AtomicBool,
}

/// The state of a subscription, for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionStatus {
    /// The sets that the consumer has taken.
    pub sets: u64,
    /// The events in these sets.
    pub events: u64,
    /// The events that were lost because they found the queue full, or because their octets were
    /// not granted.
    pub lost: u64,
    /// The number of events that wait in the queue; after the end, of those that waited then.
    pub queued: usize,
    /// The panics of the consumer on its lane.
    pub panics: u64,
    /// The number of times that the consumer had to wait because it had used its
    /// [budget](crate::Budget).
    pub pauses: u64,
    /// Whether the subscription is suspended.
    pub is_suspended: bool,
    /// Whether it has ended.
    pub has_ended: bool,
}

/// The outcome of a turn of a lane's subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// More events wait.
    More,
    /// Nothing is left to do until the lane is called.
    Idle,
    /// The consumer has used its budget until this time.
    Paused(u64),
}

/// A binding in the routes of a channel.
pub(crate) struct Route<B> {
    rank: Rank,
    pub(crate) binding: Arc<Binding<B>>,
}

impl<B> Route<B> {
    pub(crate) fn to(binding: &Arc<Binding<B>>) -> Self {
        Self {
            rank: binding.member.rank,
            binding: binding.clone(),
        }
    }

    /// The number of nodes of its filter.
    #[inline]
    pub(crate) fn nodes(&self) -> u64 {
        self.binding.program.nodes() as u64
    }
}

impl<B> Clone for Route<B> {
    fn clone(&self) -> Self {
        Self {
            rank: self.rank,
            binding: self.binding.clone(),
        }
    }
}

impl<B> PartialEq for Route<B> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl<B> Eq for Route<B> {}

impl<B> PartialOrd for Route<B> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<B> Ord for Route<B> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl<B: Body> Binding<B> {
    /// A binding whose timers count from now.
    pub(crate) fn new(
        member: Arc<Member<B>>,
        program: Arc<Program>,
        consumer: Option<Arc<dyn Consumer<B>>>,
        now: u64,
    ) -> Self {
        let is_direct = matches!(member.way, Way::Direct);
        let direct = (is_direct && !program.is_stateless()).then(|| {
            PiMutex::new(DirectState {
                correlation: Correlation::new(&program, now, member.octets.account()),
                spare: Batch::default(),
            })
        });
        Self {
            member,
            program,
            consumer,
            direct,
            is_replaced: AtomicBool::new(false),
        }
    }

    /// Takes an event of a supplier that may concern it.
    #[inline]
    pub(crate) fn offer<'p>(
        &'p self,
        event: &Event<B>,
        clock: &dyn Clock,
        pending: &mut PendingCall<'p, B>,
    ) {
        // A filter without state is decided here, so that no queue has an event in vain.
        if self.program.is_stateless() && !self.program.accepts(&event.header) {
            return;
        }
        let member = &*self.member;
        if member.suspension.is_suspended() {
            return;
        }
        match &member.way {
            Way::Direct => {
                pending.call();
                self.deliver(event, clock);
            }
            Way::Lane(mailbox, lane) => {
                pending.call_unless(lane);
                if mailbox.may_block() {
                    pending.call();
                }
                if member.put(mailbox, event) {
                    pending.add(lane, &self.member);
                }
            }
            Way::Stream(mailbox, arrivals) => {
                pending.call();
                if member.put(mailbox, event) {
                    arrivals.advance();
                }
            }
        }
    }

    /// Delivers an event directly.
    #[inline]
    fn deliver(&self, event: &Event<B>, clock: &dyn Clock) {
        let (Some(consumer), Some(_push)) = (&self.consumer, self.member.gate.enter()) else {
            return;
        };
        let Some(direct) = &self.direct else {
            return self.member.push_to(&**consumer, slice::from_ref(event));
        };
        let now = clock.now();
        let suspension = &self.member.suspension;
        let lost = self.deliver_batch(direct, &**consumer, |state, batch| {
            let keep = |set: &[Event<B>]| batch.add(set);
            state.correlation.filter(event, now, suspension, keep)
        });
        self.member.lose(lost, |lost| consumer.lost(lost));
    }

    /// Collects sets under the lock of the state, and delivers them without it.
    fn deliver_batch<R>(
        &self,
        direct: &PiMutex<DirectState<B>>,
        consumer: &dyn Consumer<B>,
        collect: impl FnOnce(&mut DirectState<B>, &mut Batch<B>) -> R,
    ) -> R {
        let mut state = direct.lock();
        let mut batch = std::mem::take(&mut state.spare);
        let result = collect(&mut state, &mut batch);
        drop(state);
        let mut begin = 0;
        for end in batch.ends.drain(..) {
            self.member.push_to(consumer, &batch.events[begin..end]);
            begin = end;
        }
        batch.events.clear();
        direct.lock().spare = batch;
        result
    }

    /// Fires the first timer, if it is due. Returns the time of the next one; `None` if none is
    /// left.
    pub(crate) fn fire_next(&self, clock: &dyn Clock) -> Option<u64> {
        let next = self.fire_next_if_open(clock);
        self.member.release_if_closed();
        next
    }

    fn fire_next_if_open(&self, clock: &dyn Clock) -> Option<u64> {
        let member = &*self.member;
        let _push = member.gate.enter()?;
        if self.is_replaced.load(Acquire) || member.is_told() {
            return None;
        }
        let now = clock.now();
        match &member.way {
            Way::Direct => {
                let (direct, consumer) = (self.direct.as_ref()?, self.consumer.as_ref()?);
                let suspension = &member.suspension;
                let (lost, next) = self.deliver_batch(direct, &**consumer, |state, batch| {
                    let keep = |set: &[Event<B>]| batch.add(set);
                    let lost = state.correlation.fire_next(now, suspension, keep);
                    (lost, state.correlation.next_due())
                });
                member.lose(lost, |lost| consumer.lost(lost));
                next
            }
            Way::Lane(mailbox, _) => member.fire_next(&mut mailbox.receiver(), clock),
            Way::Stream(..) => None,
        }
    }

    /// Whether timers of the binding can still fire.
    pub(crate) fn is_live(&self) -> bool {
        !self.is_replaced.load(Acquire) && !self.member.gate.is_closed()
    }

    /// The time of the next timer.
    pub(crate) fn next_due(&self) -> Option<u64> {
        match &self.member.way {
            Way::Direct => self.direct.as_ref()?.lock().correlation.next_due(),
            Way::Lane(mailbox, _) | Way::Stream(mailbox, _) => {
                mailbox.receiver().target.correlation.next_due()
            }
        }
    }

    /// Ends the timers and the groups of a binding that is replaced.
    pub(crate) fn retire(&self) {
        self.is_replaced
            .store(true, std::sync::atomic::Ordering::Release);
        self.close_groups();
    }

    /// Drops the events that an ended subscription has kept.
    pub(crate) fn release(&self) {
        self.close_groups();
        if let Some(mailbox) = self.member.mailbox() {
            mailbox.close();
        }
    }

    /// Drops the events of the groups of a direct delivery.
    fn close_groups(&self) {
        if let Some(direct) = &self.direct {
            direct.lock().correlation.close();
        }
    }

    /// Tells the consumer once that the channel has ended the subscription.
    pub(crate) fn tell_end(&self) {
        self.member.tell_end(self.consumer.as_deref());
    }
}

impl<B: Body> Member<B> {
    pub(crate) fn new(rank: Rank, way: Way<B>, octets: OctetSetup<B>) -> Self {
        Self {
            rank,
            way,
            octets,
            gate: PushGate::default(),
            suspension: Suspension::default(),
            counts: Counts::default(),
        }
    }

    /// Puts an event into the queue. Returns whether the consumer's thread is to be told.
    fn put(&self, mailbox: &Mailbox<B>, event: &Event<B>) -> bool {
        if self.gate.is_closed() {
            return false;
        }
        mailbox.put(event, || self.gate.is_closed());
        mailbox.call()
    }

    pub(crate) fn mailbox(&self) -> Option<&Mailbox<B>> {
        match &self.way {
            Way::Direct => None,
            Way::Lane(mailbox, _) | Way::Stream(mailbox, _) => Some(mailbox),
        }
    }

    /// Delivers the next event of a lane's subscription.
    pub(crate) fn serve(&self, clock: &dyn Clock) -> TurnEnd {
        let end = self.serve_if_open(clock);
        self.release_if_closed();
        end
    }

    /// Drops the events of groups if the subscription has ended while its lane served it, after the
    /// lane has left the gate: then either it sees that the gate is closed, or the thread that
    /// closed the gate finds the receiver unlocked.
    fn release_if_closed(&self) {
        if self.gate.is_closed()
            && let Way::Lane(mailbox, _) = &self.way
        {
            mailbox.close_groups();
        }
    }

    fn serve_if_open(&self, clock: &dyn Clock) -> TurnEnd {
        let Way::Lane(mailbox, _) = &self.way else {
            return TurnEnd::Idle;
        };
        let Some(_push) = self.gate.enter() else {
            return TurnEnd::Idle;
        };
        let mut receiver = mailbox.receiver();
        let Some(consumer) = receiver.target.consumer.clone() else {
            return TurnEnd::Idle;
        };
        let begun = clock.now();
        if let Some(until) = receiver.paused_until(begun) {
            self.counts.pauses.fetch_add(1, Relaxed);
            return TurnEnd::Paused(until);
        }
        mailbox.parking.begin_look();
        if !consumer.is_ready() {
            if mailbox.has_overflowed() {
                // It would never take what is left.
                self.tell_end(Some(&*consumer));
                return TurnEnd::Idle;
            }
            let is_ready = || consumer.is_ready() || mailbox.has_overflowed();
            return if mailbox.parking.park(is_ready) {
                TurnEnd::Idle
            } else {
                TurnEnd::More
            };
        }
        let (next, more) = mailbox.take();
        match next {
            _ if self.is_told() => {}
            Some(Next::Event(event)) => {
                let deliver = |set: &[Event<B>]| self.push_guarded(&*consumer, set);
                let correlation = &mut receiver.target.correlation;
                let lost = correlation.filter(&event, begun, &self.suspension, deliver);
                self.lose(lost, |lost| self.guarded(|| consumer.lost(lost)));
            }
            Some(Next::Gap(number)) => self.guarded(|| consumer.lost(number)),
            None => {}
        }
        receiver.charge(begun, clock);
        if !more && mailbox.has_overflowed() {
            self.tell_end(Some(&*consumer));
        }
        if more { TurnEnd::More } else { TurnEnd::Idle }
    }

    /// Fires the first timer of a lane's subscription, if it is due. Returns the time of the next
    /// one.
    fn fire_next(&self, receiver: &mut Receiver<B>, clock: &dyn Clock) -> Option<u64> {
        let begun = clock.now();
        if let Some(until) = receiver.paused_until(begun) {
            return Some(until);
        }
        let consumer = receiver.target.consumer.clone()?;
        let deliver = |set: &[Event<B>]| self.push_guarded(&*consumer, set);
        let correlation = &mut receiver.target.correlation;
        let lost = correlation.fire_next(begun, &self.suspension, deliver);
        let next = correlation.next_due();
        self.lose(lost, |lost| self.guarded(|| consumer.lost(lost)));
        receiver.charge(begun, clock);
        next
    }

    /// Pushes a set on a lane, and counts a panic of the consumer. The state of groups is as if it
    /// had returned.
    fn push_guarded(&self, consumer: &dyn Consumer<B>, set: &[Event<B>]) {
        self.count(set);
        self.guarded(|| consumer.push(set));
    }

    /// Pushes a set on the thread of the supplier.
    #[inline]
    fn push_to(&self, consumer: &dyn Consumer<B>, set: &[Event<B>]) {
        // Before the push, which may end the subscription.
        self.count(set);
        consumer.push(set);
    }

    fn guarded(&self, call: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(call)).is_err() {
            self.counts.panics.fetch_add(1, Relaxed);
        }
    }

    fn tell_end(&self, consumer: Option<&dyn Consumer<B>>) {
        if self.counts.is_told.swap(true, AcqRel) {
            return;
        }
        match (&self.way, consumer) {
            (Way::Stream(_, arrivals), _) => arrivals.advance(),
            (_, Some(consumer)) => self.guarded(|| consumer.disconnected()),
            (_, None) => {}
        }
    }

    pub(crate) fn is_told(&self) -> bool {
        self.counts.is_told.load(Acquire)
    }

    #[inline]
    pub(crate) fn count(&self, set: &[Event<B>]) {
        let counts = &self.counts;
        counts.sets.fetch_add(1, Relaxed);
        counts.events.fetch_add(set.len() as u64, Relaxed);
    }

    /// Counts events that groups could not keep, and tells their number.
    #[inline]
    pub(crate) fn lose(&self, lost: u64, tell: impl FnOnce(u64)) {
        if lost > 0 {
            self.counts.lost.fetch_add(lost, Relaxed);
            tell(lost);
        }
    }

    pub(crate) fn status(&self) -> SubscriptionStatus {
        let (queued, lost) = self.mailbox().map_or((0, 0), Mailbox::counts);
        let lost = lost + self.counts.lost.load(Relaxed);
        SubscriptionStatus {
            sets: self.counts.sets.load(Relaxed),
            events: self.counts.events.load(Relaxed),
            lost,
            queued,
            panics: self.counts.panics.load(Relaxed),
            pauses: self.counts.pauses.load(Relaxed),
            is_suspended: self.suspension.is_suspended(),
            has_ended: self.gate.is_closed() || self.is_told(),
        }
    }
}

impl<B> Receiver<B> {
    /// Returns the time until which the consumer is not served, if it has used its budget.
    fn paused_until(&mut self, now: u64) -> Option<u64> {
        self.budget.as_mut()?.paused_until(now)
    }

    /// Counts the time since `begun` as used.
    fn charge(&mut self, begun: u64, clock: &dyn Clock) {
        if let Some(budget) = &mut self.budget {
            budget.charge(clock.now().saturating_sub(begun));
        }
    }
}

impl<B: Clone> Batch<B> {
    fn add(&mut self, set: &[Event<B>]) {
        self.events.extend_from_slice(set);
        self.ends.push(self.events.len());
    }
}

impl<B> Default for Batch<B> {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            ends: Vec::new(),
        }
    }
}
