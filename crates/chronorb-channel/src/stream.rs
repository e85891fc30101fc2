//! Consumers that take their events on a thread of their own.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use chronorb_events::{Event, Next};
use chronorb_rt::Deadline;

use crate::clock::{deadline_of, never};
use crate::consumer::Body;
use crate::mailbox::Mailbox;
use crate::member::{SubscriptionStatus, Way};
use crate::subscription::Subscription;

/// A subscription whose events a thread of the application takes.
///
/// As an iterator it waits for the next delivery, and ends with the channel.
pub struct EventStream<B: Body> {
    subscription: Subscription<B>,
    /// The deliveries of one event that were not taken yet.
    taken: VecDeque<Delivery<B>>,
}

/// A delivery of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery<B> {
    /// A set of events, in order of their arrival.
    Set(Vec<Event<B>>),
    /// This number of events was lost at this place.
    Lost(u64),
}

/// A delivery of a stream, borrowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeliveryRef<'a, B> {
    /// A set of events, in order of their arrival.
    Set(&'a [Event<B>]),
    /// This number of events was lost at this place.
    Lost(u64),
}

impl<B: Body> EventStream<B> {
    pub(crate) fn new(subscription: Subscription<B>) -> Self {
        Self {
            subscription,
            taken: VecDeque::new(),
        }
    }

    /// Takes the next delivery, and waits for it for at most `limit`. `None` where there is none by
    /// then, or never will be.
    pub fn next_within(&mut self, limit: Duration) -> Option<Delivery<B>> {
        let deadline = Deadline::after(limit);
        self.take_until(deadline)
    }

    /// Gives the next deliveries to `consume`, after a wait for the first one of at most `limit`:
    /// those of one event, or of the timers that are due. Allocates nothing. Returns whether there
    /// was any.
    pub fn next_with(
        &mut self,
        limit: Duration,
        mut consume: impl FnMut(DeliveryRef<'_, B>),
    ) -> bool {
        let mut any = false;
        while let Some(taken) = self.taken.pop_front() {
            any = true;
            match &taken {
                Delivery::Set(set) => consume(DeliveryRef::Set(set)),
                Delivery::Lost(number) => consume(DeliveryRef::Lost(*number)),
            }
        }
        any || self.wait(Deadline::after(limit), &mut consume)
    }

    /// Stops events and timers, as [`Subscription::suspend`] does.
    pub fn suspend(&self) {
        self.subscription.suspend();
    }

    /// Lets events and timers go on, as [`Subscription::resume`] does.
    pub fn resume(&self) {
        self.subscription.resume();
    }

    /// The present state and counts.
    pub fn status(&self) -> SubscriptionStatus {
        self.subscription.status()
    }

    fn take_until(&mut self, deadline: Deadline) -> Option<Delivery<B>> {
        if self.taken.is_empty() {
            let mut taken = std::mem::take(&mut self.taken);
            self.wait(deadline, &mut |delivery| {
                taken.push_back(match delivery {
                    DeliveryRef::Set(set) => Delivery::Set(set.to_vec()),
                    DeliveryRef::Lost(number) => Delivery::Lost(number),
                });
            });
            self.taken = taken;
        }
        self.taken.pop_front()
    }

    /// Waits for deliveries until the deadline. Returns whether there was one.
    fn wait(&self, deadline: Deadline, consume: &mut dyn FnMut(DeliveryRef<'_, B>)) -> bool {
        let Way::Stream(mailbox, arrivals) = &self.subscription.binding.member.way else {
            return false;
        };
        loop {
            let seen = arrivals.get();
            if self.look(mailbox, consume) {
                return true;
            }
            if self.has_ended(mailbox) || deadline.has_passed() {
                return false;
            }
            let due = self.subscription.binding.next_due();
            let timer = deadline_of(&*self.subscription.channel.clock, due);
            arrivals.wait_while(seen, deadline.min(timer));
        }
    }

    /// Whether nothing more can come.
    fn has_ended(&self, mailbox: &Mailbox<B>) -> bool {
        let member = &*self.subscription.binding.member;
        member.gate.is_closed() || mailbox.has_overflowed()
    }

    /// Delivers what there is: the events of timers that are due, and those of the next event.
    fn look(&self, mailbox: &Mailbox<B>, consume: &mut dyn FnMut(DeliveryRef<'_, B>)) -> bool {
        let member = &*self.subscription.binding.member;
        let mut any = false;
        let mut deliver = |taken: DeliveryRef<'_, B>| {
            any = true;
            if let DeliveryRef::Set(set) = taken {
                member.count(set);
            }
            consume(taken);
        };
        let now = self.subscription.channel.clock.now();
        let suspension = &member.suspension;
        let mut receiver = mailbox.receiver();
        let correlation = &mut receiver.target.correlation;
        if self.subscription.binding.program.has_timers() {
            let lost = correlation.expire(now, suspension, |set| deliver(DeliveryRef::Set(set)));
            member.lose(lost, |lost| deliver(DeliveryRef::Lost(lost)));
        }
        mailbox.parking.begin_look();
        loop {
            let mut is_delivered = false;
            let mut deliver = |taken: DeliveryRef<'_, B>| {
                is_delivered = true;
                deliver(taken);
            };
            match mailbox.take().0 {
                None => break,
                Some(Next::Event(event)) => {
                    let set = |set: &[Event<B>]| deliver(DeliveryRef::Set(set));
                    let lost = correlation.filter(&event, now, suspension, set);
                    member.lose(lost, |lost| deliver(DeliveryRef::Lost(lost)));
                }
                Some(Next::Gap(number)) => deliver(DeliveryRef::Lost(number)),
            }
            // An event may only have been added to a group.
            if is_delivered {
                break;
            }
        }
        any
    }
}

impl<B: Body> Iterator for EventStream<B> {
    type Item = Delivery<B>;

    fn next(&mut self) -> Option<Delivery<B>> {
        self.take_until(never())
    }
}

impl<B: Body> fmt::Debug for EventStream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
