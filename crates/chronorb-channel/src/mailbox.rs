//! The queue of one subscription, and the state of its groups and timers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use chronorb_events::{Event, Header, Lane, Next, Overflow, Program, Put, Queue, SubscriptionId};
use chronorb_rt::{Deadline, Gate, PiMutex};

use crate::consumer::Body;

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
    /// Set while its thread is to look at it.
    is_ready: AtomicBool,
    has_overflowed: AtomicBool,
    /// Locked by the thread that takes.
    correlation: PiMutex<Correlation<B>>,
}

/// The state of the groups and timers of one subscription.
pub(crate) struct Correlation<B> {
    lane: Lane<B>,
    id: SubscriptionId,
    is_suspended: bool,
}

impl<B: Body> Mailbox<B> {
    pub(crate) fn new(setup: QueueSetup, program: &Arc<Program>, now: u64) -> Self {
        let mut lane = Lane::new();
        let id = lane.subscribe(program.clone(), 0, now);
        Self {
            queue: PiMutex::new(Queue::new(setup.capacity, setup.overflow)),
            block: setup.block,
            room: Gate::new(0),
            waiters: AtomicU32::new(0),
            is_ready: AtomicBool::new(false),
            has_overflowed: AtomicBool::new(false),
            correlation: PiMutex::new(Correlation {
                lane,
                id,
                is_suspended: false,
            }),
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

    /// Notes that its thread is to look at it. Returns whether that is new.
    #[inline]
    pub(crate) fn set_ready(&self) -> bool {
        !self.is_ready.swap(true, Ordering::AcqRel)
    }

    /// Notes that its thread looks at it now.
    pub(crate) fn begin_look(&self) {
        self.is_ready.store(false, Ordering::Release);
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

    /// Filters an event, and gives each set that is delivered to `deliver`.
    pub(crate) fn filter(
        &self,
        event: &Event<B>,
        now: u64,
        is_suspended: bool,
        mut deliver: impl FnMut(&[Event<B>]),
    ) {
        let mut correlation = self.correlation.lock();
        if !correlation.follow(is_suspended, now) {
            correlation.lane.push(event, now, |_, set| deliver(set));
        }
    }

    /// Fires the timers that are due. Returns the time of the next one.
    pub(crate) fn expire(
        &self,
        now: u64,
        is_suspended: bool,
        mut deliver: impl FnMut(&[Event<B>]),
    ) -> Option<u64> {
        let mut correlation = self.correlation.lock();
        correlation.follow(is_suspended, now);
        correlation.lane.expire(now, |_, set| deliver(set));
        correlation.lane.next_due()
    }

    /// The time of the next timer.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.correlation.lock().lane.next_due()
    }
}

impl<B: Body> Correlation<B> {
    /// Suspends or resumes the subscription as its owner wants. Returns whether it is suspended.
    fn follow(&mut self, is_suspended: bool, now: u64) -> bool {
        if is_suspended != self.is_suspended {
            self.is_suspended = is_suspended;
            if is_suspended {
                self.lane.suspend(self.id);
            } else {
                self.lane.resume(self.id, now);
            }
        }
        is_suspended
    }
}

/// The key of an event under [`Overflow::LatestByKey`]: its source and type.
fn key_of(header: &Header) -> u64 {
    let (source, event_type) = (header.source, header.event_type);
    (u64::from(source.cast_unsigned()) << 32) | u64::from(event_type.cast_unsigned())
}
