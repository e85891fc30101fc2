//! A subscription as suppliers and lanes see it.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64};

use chronorb_events::{Event, Next, Program};
use chronorb_rt::Gate;

use crate::consumer::{Body, Consumer};
use crate::gate::PushGate;
use crate::lane::LaneQueue;
use crate::mailbox::Mailbox;

/// A subscription.
pub(crate) struct Member<B> {
    /// The place in the order of delivery.
    pub(crate) rank: Rank,
    pub(crate) program: Arc<Program>,
    pub(crate) way: Way<B>,
    pub(crate) gate: PushGate,
    pub(crate) is_suspended: AtomicBool,
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

/// A subscription in the routes of a channel.
pub(crate) struct Route<B> {
    rank: Rank,
    pub(crate) member: Arc<Member<B>>,
}

/// The way in which events reach the consumer.
pub(crate) enum Way<B> {
    /// On the thread of the supplier.
    Direct(Box<dyn Consumer<B>>),
    /// By a thread of a lane.
    Lane(Box<dyn Consumer<B>>, Mailbox<B>, Arc<LaneQueue<B>>),
    /// By the consumer's own thread, which waits at the gate.
    Stream(Mailbox<B>, Gate),
}

/// Counts of a subscription since it began.
#[derive(Debug, Default)]
struct Counts {
    sets: AtomicU64,
    events: AtomicU64,
    panics: AtomicU64,
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
    /// The events that were lost because they found the queue full.
    pub lost: u64,
    /// The events that wait in the queue.
    pub queued: usize,
    /// The panics of the consumer on its lane.
    pub panics: u64,
    /// Whether the subscription is suspended.
    pub is_suspended: bool,
    /// Whether it has ended.
    pub has_ended: bool,
}

impl<B> Route<B> {
    pub(crate) fn to(member: &Arc<Member<B>>) -> Self {
        Self {
            rank: member.rank,
            member: member.clone(),
        }
    }
}

impl<B> Clone for Route<B> {
    fn clone(&self) -> Self {
        Self::to(&self.member)
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

impl<B: Body> Member<B> {
    pub(crate) fn new(rank: Rank, program: Arc<Program>, way: Way<B>) -> Self {
        Self {
            rank,
            program,
            way,
            gate: PushGate::default(),
            is_suspended: AtomicBool::new(false),
            counts: Counts::default(),
        }
    }

    /// Takes an event of a supplier that may concern it.
    #[inline]
    pub(crate) fn offer(self: &Arc<Self>, event: &Event<B>) {
        // A filter without state is decided here, so that no queue has an event in vain.
        if self.program.is_stateless() && !self.program.accepts(&event.header) {
            return;
        }
        if self.is_suspended() {
            return;
        }
        match &self.way {
            Way::Direct(consumer) => {
                if let Some(_push) = self.gate.enter() {
                    let set = std::slice::from_ref(event);
                    consumer.push(set);
                    self.count(set);
                }
            }
            Way::Lane(_, mailbox, lane) => {
                if self.put(mailbox, event) {
                    lane.notify(self);
                }
            }
            Way::Stream(mailbox, arrivals) => {
                if self.put(mailbox, event) {
                    arrivals.advance();
                }
            }
        }
    }

    /// Puts an event into the queue. Returns whether the consumer's thread is to be told.
    fn put(&self, mailbox: &Mailbox<B>, event: &Event<B>) -> bool {
        if self.gate.is_closed() {
            return false;
        }
        mailbox.put(event, || self.gate.is_closed());
        mailbox.set_ready()
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.is_suspended.load(Relaxed)
    }

    pub(crate) fn mailbox(&self) -> Option<&Mailbox<B>> {
        match &self.way {
            Way::Direct(_) => None,
            Way::Lane(_, mailbox, _) | Way::Stream(mailbox, _) => Some(mailbox),
        }
    }

    /// Delivers the next event of a lane's subscription. Returns whether more wait.
    pub(crate) fn serve(&self, now: u64) -> bool {
        let Way::Lane(consumer, mailbox, _) = &self.way else {
            return false;
        };
        mailbox.begin_look();
        let (next, more) = mailbox.take();
        let Some(_push) = self.gate.enter() else {
            return false;
        };
        match next {
            _ if self.is_told() => {}
            Some(Next::Event(event)) => {
                let is_suspended = self.is_suspended();
                mailbox.filter(&event, now, is_suspended, |set| {
                    self.deliver(&**consumer, set)
                });
            }
            Some(Next::Gap(number)) => self.guarded(|| consumer.lost(number)),
            None => {}
        }
        if !more && mailbox.has_overflowed() {
            self.tell_end();
        }
        more
    }

    /// Fires the timers of a lane's subscription. Returns the time of the next one; `None` if it
    /// has ended.
    pub(crate) fn expire(&self, now: u64) -> Option<u64> {
        let Way::Lane(consumer, mailbox, _) = &self.way else {
            return None;
        };
        let _push = self.gate.enter()?;
        let is_suspended = self.is_suspended() || self.is_told();
        mailbox.expire(now, is_suspended, |set| self.deliver(&**consumer, set))
    }

    /// Delivers a set on a lane.
    fn deliver(&self, consumer: &dyn Consumer<B>, set: &[Event<B>]) {
        self.guarded(|| consumer.push(set));
        self.count(set);
    }

    /// Calls the consumer on a lane, and counts its panic. The state of groups is as if it had
    /// returned.
    fn guarded(&self, call: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(call)).is_err() {
            self.counts.panics.fetch_add(1, Relaxed);
        }
    }

    /// Tells the consumer once that the channel has ended the subscription.
    pub(crate) fn tell_end(&self) {
        if self.counts.is_told.swap(true, AcqRel) {
            return;
        }
        match &self.way {
            Way::Direct(consumer) | Way::Lane(consumer, ..) => {
                self.guarded(|| consumer.disconnected());
            }
            Way::Stream(_, arrivals) => arrivals.advance(),
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

    pub(crate) fn status(&self) -> SubscriptionStatus {
        let (queued, lost) = self.mailbox().map_or((0, 0), Mailbox::counts);
        SubscriptionStatus {
            sets: self.counts.sets.load(Relaxed),
            events: self.counts.events.load(Relaxed),
            lost,
            queued,
            panics: self.counts.panics.load(Relaxed),
            is_suspended: self.is_suspended(),
            has_ended: self.gate.is_closed() || self.is_told(),
        }
    }
}
