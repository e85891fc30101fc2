//! Consumers: their records, and the pushes to them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use chronorb::data::AnyBuf;
use chronorb::outbox::{Delivery, Outbox, OutboxLimits, OutboxOverflow, OutboxThread};
use chronorb::rtcorba::{ClientPolicy, SetOverride};
use chronorb::{EncodedBody, Operation, SystemException, SystemExceptionKind};
use chronorb_channel::{Consumer, PushGate, Subscription, Waker};
use chronorb_events::{EVENTS_LOST, Event};
use chronorb_rt::PiMutex;

use crate::admission::ConsumerLoad;
use crate::event::{Body, encode, event_with, view_of};
use crate::fan_out::{self, FanOutPlace, SharingConsumer};
use crate::idl::rtec_event_comm::{self as wire, PushConsumer};
use crate::options::{PeerPolicy, QueueOptions};

/// A consumer's proxy, connected or not.
pub(crate) struct ConsumerRecord {
    /// The time at which it was made, in nanoseconds of the channel's clock.
    pub(crate) made: u64,
    /// The queue that it has stated.
    pub(crate) queue: Option<ConsumerQueue>,
    /// The object that takes its events.
    pub(crate) fan_out: Option<FanOutPlace>,
    /// The time that was missing for its last connection, as text.
    pub(crate) shortfall: String,
    pub(crate) connection: Option<ConsumerConnection>,
}

/// The queue that a consumer states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsumerQueue {
    pub(crate) options: QueueOptions,
    pub(crate) tells_losses: bool,
}

/// A connected consumer.
pub(crate) struct ConsumerConnection {
    pub(crate) subscription: Subscription<Body>,
    pub(crate) consumer: Arc<RemoteConsumer>,
    /// The subscription as text.
    pub(crate) filter: String,
    pub(crate) is_gateway: bool,
    pub(crate) load: Option<ConsumerLoad>,
}

/// The channel of a consumer, which disconnects it.
pub(crate) trait ConsumerOwner: Send + Sync {
    /// Disconnects a consumer because of this exception.
    fn evict_consumer(&self, number: u64, cause: SystemException);

    /// Disconnects a consumer whose queue has overflowed.
    fn drop_consumer(&self, number: u64);

    /// Has the outboxes of consumers opened that have none.
    fn reopen_outboxes(&self);
}

/// The way by which a consumer's events leave the channel.
enum Link {
    /// By calls of its reference.
    Calls,
    Outbox(Arc<Outbox>),
    /// By an outbox that is to be opened.
    Broken,
}

/// The outboxes of a lane.
#[derive(Clone)]
pub(crate) struct OutboxSource {
    pub(crate) thread: OutboxThread,
    pub(crate) limits: OutboxLimits,
}

/// A consumer that is reached by its reference.
pub(crate) struct RemoteConsumer {
    number: u64,
    reference: PushConsumer,
    /// The object that takes its events, without an outbox.
    fan_out: Option<FanOutPlace>,
    /// Closed at the end, for events that were deferred.
    pub(crate) gate: PushGate,
    link: PiMutex<Link>,
    outboxes: Option<OutboxSource>,
    /// Lets the lane serve the consumer again. Set once it has subscribed.
    waker: OnceLock<Waker<Body>>,
    push_timeout: Duration,
    /// The reference with the time limit of checks and callbacks.
    pub(crate) check: PushConsumer,
    failures_allowed: u32,
    /// The failures since the consumer answered.
    pub(crate) failures: AtomicU32,
    /// Events of pushes that failed.
    pub(crate) lost: AtomicU64,
    tells_losses: bool,
    /// Losses that the consumer is still to be told.
    untold: AtomicU64,
    pub(crate) last_error: PiMutex<Option<SystemException>>,
    owner: Weak<dyn ConsumerOwner>,
}

/// The requests that are given to a connection before it has room.
pub(crate) fn requests_ahead(limits: OutboxLimits) -> usize {
    limits.requests.div_ceil(2).clamp(1, 8)
}

impl RemoteConsumer {
    /// A consumer with the time limits of the policy. An outbox is opened here; one that cannot be
    /// opened now is opened later.
    ///
    /// # Errors
    /// `INV_POLICY` for a reference whose policies contradict each other.
    pub(crate) fn new(
        number: u64,
        reference: &PushConsumer,
        peers: &PeerPolicy,
        (outboxes, fan_out): (Option<OutboxSource>, Option<FanOutPlace>),
        tells_losses: bool,
        owner: Weak<dyn ConsumerOwner>,
    ) -> Result<Arc<Self>, SystemException> {
        let limits = [
            ClientPolicy::RelativeRoundtripTimeout(peers.push_timeout),
            ClientPolicy::ConnectTimeout(peers.push_timeout),
        ];
        let object = reference.as_object();
        let check = object.with_timeout(peers.check_timeout);
        let object = object.with_policy_overrides(&limits, SetOverride::Add)?;
        let link = match outboxes {
            Some(_) => Link::Broken,
            None => Link::Calls,
        };
        let this = Arc::new(Self {
            number,
            fan_out: fan_out.filter(|_| outboxes.is_none()),
            gate: PushGate::default(),
            link: PiMutex::new(link),
            outboxes,
            waker: OnceLock::new(),
            push_timeout: peers.push_timeout,
            reference: PushConsumer::unchecked_narrow(&object),
            check: PushConsumer::unchecked_narrow(&check),
            failures_allowed: peers.failures.max(1),
            failures: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            tells_losses,
            untold: AtomicU64::new(0),
            last_error: PiMutex::new(None),
            owner,
        });
        this.reopen();
        Ok(this)
    }

    /// Notes by what the consumer's lane is called. It may have become ready before.
    pub(crate) fn set_waker(&self, waker: Waker<Body>) {
        waker.wake();
        // Only the first subscription of a consumer has one.
        let _ = self.waker.set(waker);
        self.wake();
    }

    /// Counts a failure, and has the consumer disconnected if there were too many since it
    /// answered.
    ///
    /// A push that succeeds is no answer: the kernel accepts connections and some messages for a
    /// process that hangs.
    pub(crate) fn failed(&self, cause: SystemException) {
        *self.last_error.lock() = Some(cause);
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        let is_gone = cause.kind == SystemExceptionKind::ObjectNotExist;
        if (is_gone || failures >= self.failures_allowed)
            && let Some(owner) = self.owner.upgrade()
        {
            owner.evict_consumer(self.number, cause);
        }
    }

    /// Forgets the failures of a consumer that has answered.
    pub(crate) fn answered(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// The events that wait in its outbox.
    pub(crate) fn waiting(&self) -> usize {
        self.outbox().map_or(0, |outbox| outbox.status().waiting)
    }

    /// Whether its connection has taken nothing for the time of a push.
    pub(crate) fn is_stalled(&self) -> bool {
        let stalled = self.outbox().and_then(|outbox| outbox.status().stalled);
        stalled.is_some_and(|stalled| stalled >= self.push_timeout)
    }

    /// Whether it has no outbox, and is to have one.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(*self.link.lock(), Link::Broken)
    }

    /// Opens an outbox, if there is none and is to be one. Waits for the consumer for the time of a
    /// check. A failure counts.
    pub(crate) fn reopen(self: &Arc<Self>) {
        let Some(outboxes) = self.outboxes.as_ref().filter(|_| self.is_broken()) else {
            return;
        };
        let limits = OutboxLimits {
            requests: requests_ahead(outboxes.limits),
            // The bound of octets is that at which the consumer is not ready.
            octets: usize::MAX,
            overflow: OutboxOverflow::DropNewest,
        };
        match outboxes.thread.open(self.check.as_object(), &PUSH, limits) {
            Ok(outbox) => {
                let this = Arc::downgrade(self);
                outbox.on_room(move || {
                    if let Some(this) = this.upgrade() {
                        this.wake();
                    }
                });
                *self.link.lock() = Link::Outbox(Arc::new(outbox));
            }
            // Groups and datagrams have no outboxes.
            Err(cause) if cause.kind == SystemExceptionKind::NoImplement => {
                *self.link.lock() = Link::Calls;
            }
            Err(cause) => {
                self.failed(cause);
                return;
            }
        }
        self.wake();
    }

    fn outbox(&self) -> Option<Arc<Outbox>> {
        match &*self.link.lock() {
            Link::Outbox(outbox) => Some(outbox.clone()),
            Link::Calls | Link::Broken => None,
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// Sends a set by the outbox, or by a call.
    fn send(&self, set: &[Event<Body>]) -> Result<(), SystemException> {
        // A call waits, and nothing is locked then.
        let Some(outbox) = self.outbox() else {
            return if self.is_broken() {
                Err(NO_LINK)
            } else {
                self.call(set)
            };
        };
        let body = match set {
            [event] => event.body.encoded(event, outbox.form()),
            _ => encode(set, outbox.form()),
        }?;
        self.put(&outbox, &body)
    }

    fn put(&self, outbox: &Arc<Outbox>, body: &EncodedBody) -> Result<(), SystemException> {
        match outbox.put(body) {
            Ok(Delivery::Sent | Delivery::Waits) => Ok(()),
            // Only what timers complete is pushed without room.
            Ok(Delivery::Displaced(_) | Delivery::Lost) => Err(NO_ROOM),
            Err(cause) => {
                if cause.kind == SystemExceptionKind::CommFailure {
                    self.unlink(outbox);
                }
                Err(cause)
            }
        }
    }

    /// Forgets an outbox whose connection has ended, and counts what was lost with it.
    fn unlink(&self, outbox: &Arc<Outbox>) {
        let mut link = self.link.lock();
        if !matches!(&*link, Link::Outbox(present) if Arc::ptr_eq(present, outbox)) {
            return;
        }
        *link = Link::Broken;
        drop(link);
        self.lose(outbox.status().lost);
        if let Some(owner) = self.owner.upgrade() {
            owner.reopen_outboxes();
        }
    }

    fn call(&self, set: &[Event<Body>]) -> Result<(), SystemException> {
        if let Some(place) = &self.fan_out {
            return place.target.push(&[place.member], set);
        }
        if let [event] = set {
            return self.reference.push(&[view_of(event)]);
        }
        let views: Vec<wire::Event<'_>> = set.iter().map(view_of).collect();
        self.reference.push(&views)
    }

    /// Pushes a set at once.
    fn push_now(&self, set: &[Event<Body>]) {
        self.tell_losses();
        if let Err(cause) = self.send(set) {
            self.push_failed(set.len() as u64, cause);
        }
    }

    /// Counts events as lost that were pushed.
    fn lose(&self, events: u64) {
        self.lost.fetch_add(events, Ordering::Relaxed);
        self.untold.fetch_add(events, Ordering::Relaxed);
    }

    /// Tells the consumer what it has lost, if it wants to know.
    fn tell_losses(&self) {
        let events = self.untold.swap(0, Ordering::Relaxed);
        if events == 0 || !self.tells_losses {
            return;
        }
        let number = AnyBuf::new(&events).unwrap_or_default();
        let event = event_with(EVENTS_LOST, number);
        if self.send(&[event]).is_err() {
            self.untold.fetch_add(events, Ordering::Relaxed);
        }
    }
}

impl SharingConsumer for RemoteConsumer {
    fn gate(&self) -> &PushGate {
        &self.gate
    }

    fn push_failed(&self, events: u64, cause: SystemException) {
        self.lose(events);
        if cause != NO_ROOM && cause != NO_LINK {
            self.failed(cause);
        }
    }
}

/// The subscription's part of a consumer.
pub(crate) struct ConsumerHandle(pub(crate) Arc<RemoteConsumer>);

impl Consumer<Body> for ConsumerHandle {
    fn push(&self, set: &[Event<Body>]) {
        let has_losses = self.0.untold.load(Ordering::Relaxed) > 0;
        match (&self.0.fan_out, set) {
            (Some(place), [event]) if !has_losses => fan_out::defer(self.0.clone(), place, event),
            _ => {
                // What was deferred neither waits for this push, nor comes after it.
                fan_out::send_deferred();
                self.0.push_now(set);
            }
        }
    }

    fn is_ready(&self) -> bool {
        let this = &*self.0;
        match (&*this.link.lock(), &this.outboxes) {
            (Link::Outbox(outbox), Some(outboxes)) => outbox.has_room(outboxes.limits.octets),
            (Link::Broken, _) => false,
            (Link::Calls | Link::Outbox(_), _) => true,
        }
    }

    fn lost(&self, number: u64) {
        fan_out::send_deferred();
        self.0.untold.fetch_add(number, Ordering::Relaxed);
        self.0.tell_losses();
    }

    fn disconnected(&self) {
        if let Some(owner) = self.0.owner.upgrade() {
            owner.drop_consumer(self.0.number);
        }
    }
}

const PUSH: Operation = Operation::oneway("push");
/// The failure of a consumer that has taken nothing for the time of a push.
pub(crate) const STALLED: SystemException = SystemException::no(SystemExceptionKind::Timeout, 0);
/// A push that finds an outbox full.
const NO_ROOM: SystemException = SystemException::no(SystemExceptionKind::Transient, 0);
/// A push while there is no connection.
const NO_LINK: SystemException = SystemException::no(SystemExceptionKind::CommFailure, 0);
