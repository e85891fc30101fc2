//! The queue of one subscription, and the receiver behind it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use chronorb_events::{Allowance, Event, Header, Next, OctetAccount, Overflow, Put, Queue};
use chronorb_rt::{Deadline, Gate, PiMutex, PiMutexGuard};

use crate::budget::BudgetAccount;
use crate::consumer::{Body, Consumer};
use crate::correlation::Correlation;
use crate::parking::Parking;

/// The bounds of a subscription's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSetup {
    pub(crate) capacity: usize,
    pub(crate) overflow: Overflow,
    /// The longest wait of a supplier under [`Overflow::Block`].
    pub(crate) block: Duration,
}

/// The bound of the octets that a subscription keeps.
pub(crate) struct OctetSetup<B> {
    pub(crate) allowance: Option<Arc<dyn Allowance>>,
    pub(crate) octets_of: fn(&B) -> usize,
}

/// The events that wait, and their octets.
struct EventQueue<B> {
    queue: Queue<WaitingEvent<B>>,
    account: OctetAccount<B>,
    is_closed: bool,
    /// The events that waited at the end.
    dropped: usize,
}

struct WaitingEvent<B> {
    event: Event<B>,
    octets: usize,
}

/// A queue that any supplier puts events into and that one thread at a time takes from.
pub(crate) struct Mailbox<B> {
    /// Locked for moments only.
    waiting: PiMutex<EventQueue<B>>,
    block: Duration,
    /// Advances when there may be room, while suppliers wait for it.
    room: Gate,
    waiters: AtomicU32,
    pub(crate) parking: Parking,
    has_overflowed: AtomicBool,
    /// Locked by the thread that takes.
    receiver: PiMutex<Receiver<B>>,
    /// The filter and consumer that take the place of the present ones.
    next: PiMutex<Option<Target<B>>>,
    has_next: AtomicBool,
}

/// A filter with its state, and the consumer behind it.
pub(crate) struct Target<B> {
    pub(crate) correlation: Correlation<B>,
    /// `None` for a stream.
    pub(crate) consumer: Option<Arc<dyn Consumer<B>>>,
}

/// The part of a mailbox that only the thread that takes uses.
pub(crate) struct Receiver<B> {
    pub(crate) target: Target<B>,
    pub(crate) budget: Option<BudgetAccount>,
}

impl<B> OctetSetup<B> {
    /// A new account of what is kept.
    pub(crate) fn account(&self) -> OctetAccount<B> {
        let allowance = self.allowance.clone();
        allowance.map_or_else(OctetAccount::unlimited, |allowance| {
            OctetAccount::new(allowance, self.octets_of)
        })
    }
}

impl<B> fmt::Debug for OctetSetup<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OctetSetup")
            .field("is_limited", &self.allowance.is_some())
            .finish_non_exhaustive()
    }
}

impl<B: Body> EventQueue<B> {
    /// Puts an event in by the policy. One whose octets are not granted finds the queue full.
    #[inline]
    fn put(&mut self, event: Event<B>, key: u64) -> Put<WaitingEvent<B>> {
        let octets = self.account.octets(&event);
        let item = WaitingEvent { event, octets };
        if self.is_closed {
            return Put::Lost(item);
        }
        if !self.account.take(octets) && !self.make_room(octets, key) {
            return self.queue.refuse(item);
        }
        let put = self.queue.put(item, key);
        match &put {
            Put::Queued => {}
            Put::Displaced(other)
            | Put::Lost(other)
            | Put::Full(other)
            | Put::Disconnect(other) => {
                self.account.give_back(other.octets);
            }
        }
        put
    }

    /// Displaces events by the policy until the octets of a new one are granted. Returns whether
    /// they are.
    #[cold]
    fn make_room(&mut self, octets: usize, key: u64) -> bool {
        while let Some(displaced) = self.queue.make_room(key) {
            self.account.give_back(displaced.octets);
            if self.account.take(octets) {
                return true;
            }
        }
        false
    }
}

impl<B: Body> Mailbox<B> {
    pub(crate) fn new(
        setup: QueueSetup,
        octets: &OctetSetup<B>,
        target: Target<B>,
        budget: Option<BudgetAccount>,
    ) -> Self {
        let waiting = EventQueue {
            queue: Queue::new(setup.capacity, setup.overflow),
            account: octets.account(),
            is_closed: false,
            dropped: 0,
        };
        Self {
            waiting: PiMutex::new(waiting),
            block: setup.block,
            room: Gate::new(0),
            waiters: AtomicU32::new(0),
            parking: Parking::default(),
            has_overflowed: AtomicBool::new(false),
            receiver: PiMutex::new(Receiver { target, budget }),
            next: PiMutex::new(None),
            has_next: AtomicBool::new(false),
        }
    }

    /// Puts an event in by the policy. A supplier that waits for room does so until its deadline,
    /// or until the subscription `is_over`.
    pub(crate) fn put(&self, event: &Event<B>, is_over: impl Fn() -> bool) {
        let key = key_of(&event.header);
        let mut item = event.clone();
        let mut deadline = None;
        loop {
            let mut waiting = self.waiting.lock();
            let put = waiting.put(item, key);
            let Put::Full(back) = put else {
                drop(waiting);
                if matches!(put, Put::Disconnect(_)) {
                    self.has_overflowed.store(true, Ordering::Release);
                }
                return;
            };
            let until = *deadline.get_or_insert_with(|| Deadline::after(self.block));
            if until.has_passed() || is_over() {
                waiting.queue.give_up();
                return;
            }
            item = back.event;
            self.waiters.fetch_add(1, Ordering::Relaxed);
            let seen = self.room.get();
            drop(waiting);
            self.room.wait_while(seen, until);
            self.waiters.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether a supplier may wait for room.
    pub(crate) fn may_block(&self) -> bool {
        !self.block.is_zero()
    }

    /// Notes that its thread is to look at it. Returns whether that has to be told. A queue that
    /// has overflowed is looked at even if the consumer is not ready, because the subscription
    /// ends.
    #[inline]
    pub(crate) fn call(&self) -> bool {
        self.parking.call() || self.has_overflowed() && self.parking.unpark()
    }

    /// Takes the next event or gap. Also returns whether more wait.
    pub(crate) fn take(&self) -> (Option<Next<Event<B>>>, bool) {
        let mut waiting = self.waiting.lock();
        let next = waiting.queue.take();
        if let Some(Next::Event(taken)) = &next {
            waiting.account.give_back(taken.octets);
        }
        let more = !waiting.queue.is_empty();
        drop(waiting);
        let next = next.map(|next| match next {
            Next::Event(taken) => Next::Event(taken.event),
            Next::Gap(number) => Next::Gap(number),
        });
        if self.waiters.load(Ordering::Relaxed) > 0 {
            self.room.advance();
        }
        (next, more)
    }

    /// Lets suppliers that wait look again.
    pub(crate) fn wake_suppliers(&self) {
        self.room.advance();
    }

    /// Whether the queue has overflowed under [`Overflow::Disconnect`].
    pub(crate) fn has_overflowed(&self) -> bool {
        self.has_overflowed.load(Ordering::Acquire)
    }

    /// The number of events that wait, or that waited at the end, and of those that were lost.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let waiting = self.waiting.lock();
        let queued = if waiting.is_closed {
            waiting.dropped
        } else {
            waiting.queue.len()
        };
        (queued, waiting.queue.lost())
    }

    /// Drops the events that wait and those of groups, for a subscription that has ended.
    pub(crate) fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_closed = true;
        waiting.account.close();
        waiting.dropped += waiting.queue.len();
        drop(waiting);
        while self.take().0.is_some() {}
        self.close_groups();
    }

    /// Drops the events of groups, unless a thread is serving the subscription: then that thread
    /// does so afterwards.
    pub(crate) fn close_groups(&self) {
        if let Some(mut receiver) = self.receiver.try_lock() {
            self.change(&mut receiver);
            receiver.target.correlation.close();
        }
    }

    /// Locks the receiver for the thread that takes.
    pub(crate) fn receiver(&self) -> PiMutexGuard<'_, Receiver<B>> {
        let mut receiver = self.receiver.lock();
        self.change(&mut receiver);
        receiver
    }

    /// Puts the next target in the place of the present one, if there is one.
    fn change(&self, receiver: &mut Receiver<B>) {
        if self.has_next.swap(false, Ordering::Acquire)
            && let Some(next) = self.next.lock().take()
        {
            receiver.target = next;
        }
    }

    /// Filters events that are taken from now on by another filter, for another consumer. The
    /// caller may be within a push, so it does not wait for the receiver.
    pub(crate) fn replace(&self, target: Target<B>) {
        *self.next.lock() = Some(target);
        self.has_next.store(true, Ordering::Release);
        // The groups of the old filter end now, if no thread is serving the subscription.
        if let Some(mut receiver) = self.receiver.try_lock() {
            self.change(&mut receiver);
        }
    }
}

/// The key of an event under [`Overflow::LatestByKey`]: its source and type.
fn key_of(header: &Header) -> u64 {
    let (source, event_type) = (header.source, header.event_type);
    (u64::from(source.cast_unsigned()) << 32) | u64::from(event_type.cast_unsigned())
}
