//! The queue of one subscription, and the receiver behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use chronorb_events::{Event, Header, Next, Overflow, Put, Queue};
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

/// A queue that any supplier puts events into and that one thread at a time takes from.
pub(crate) struct Mailbox<B> {
    /// Locked for moments only.
    queue: PiMutex<Queue<Event<B>>>,
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

impl<B: Body> Mailbox<B> {
    pub(crate) fn new(setup: QueueSetup, target: Target<B>, budget: Option<BudgetAccount>) -> Self {
        Self {
            queue: PiMutex::new(Queue::new(setup.capacity, setup.overflow)),
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
            let mut queue = self.queue.lock();
            let put = queue.put(item, key);
            let Put::Full(back) = put else {
                drop(queue);
                if matches!(put, Put::Disconnect(_)) {
                    self.has_overflowed.store(true, Ordering::Release);
                }
                return;
            };
            let until = *deadline.get_or_insert_with(|| Deadline::after(self.block));
            if until.has_passed() || is_over() {
                queue.give_up();
                return;
            }
            item = back;
            self.waiters.fetch_add(1, Ordering::Relaxed);
            let seen = self.room.get();
            drop(queue);
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
        let mut queue = self.queue.lock();
        let next = queue.take();
        let more = !queue.is_empty();
        drop(queue);
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

    /// The number of events that wait, and of those that were lost.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let queue = self.queue.lock();
        (queue.len(), queue.lost())
    }

    /// Locks the receiver for the thread that takes.
    pub(crate) fn receiver(&self) -> PiMutexGuard<'_, Receiver<B>> {
        let mut receiver = self.receiver.lock();
        if self.has_next.swap(false, Ordering::Acquire)
            && let Some(next) = self.next.lock().take()
        {
            receiver.target = next;
        }
        receiver
    }

    /// Filters events that are taken from now on by another filter, for another consumer. The
    /// caller may be within a push, so the receiver is not locked.
    pub(crate) fn replace(&self, target: Target<B>) {
        *self.next.lock() = Some(target);
        self.has_next.store(true, Ordering::Release);
    }
}

/// The key of an event under [`Overflow::LatestByKey`]: its source and type.
fn key_of(header: &Header) -> u64 {
    let (source, event_type) = (header.source, header.event_type);
    (u64::from(source.cast_unsigned()) << 32) | u64::from(event_type.cast_unsigned())
}
