//! Consumers: their records, and the pushes to them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb::outbox::{Delivery, Outbox, OutboxLimits, OutboxThread};
use chronorb::rtcorba::{ClientPolicy, SetOverride};
use chronorb::{Operation, SystemException, SystemExceptionKind};
use chronorb_events::Event;
use chronorb_rt::PiMutex;

use crate::channel::{ConnectionId, Consumer};
use crate::event::{Body, encode, view_of};
use crate::idl::rtec_event_comm::{self as wire, PushConsumer};
use crate::options::PeerPolicy;

/// A consumer's proxy, connected or not.
pub(crate) struct ConsumerRecord {
    /// The time at which it was made, in nanoseconds of the channel's clock.
    pub(crate) made: u64,
    pub(crate) connection: Option<ConsumerConnection>,
}

/// A connected consumer.
pub(crate) struct ConsumerConnection {
    pub(crate) id: ConnectionId,
    pub(crate) consumer: Arc<RemoteConsumer>,
    /// The sources and types of the subscription, for observers.
    pub(crate) leaves: Vec<(i32, i32)>,
    pub(crate) subscription: String,
    pub(crate) is_gateway: bool,
    pub(crate) is_suspended: bool,
}

/// The task of disconnecting a client that is not reached.
pub(crate) trait Evict: Send + Sync {
    /// Disconnects a consumer because of this exception.
    fn evict_consumer(&self, number: u64, cause: SystemException);
}

/// A consumer that is reached by its reference.
pub(crate) struct RemoteConsumer {
    number: u64,
    reference: PushConsumer,
    /// The outbox for its events, if there is one and its connection has not ended.
    outbox: PiMutex<Option<Arc<Outbox>>>,
    push_timeout: Duration,
    /// The reference with the time limit of checks and callbacks.
    pub(crate) check: PushConsumer,
    failures_allowed: u32,
    /// The failures since the consumer answered.
    pub(crate) failures: AtomicU32,
    /// Events of pushes that failed.
    pub(crate) lost: AtomicU64,
    pub(crate) last_error: PiMutex<Option<SystemException>>,
    owner: Weak<dyn Evict>,
}

impl RemoteConsumer {
    /// A consumer with the time limits of the policy. One whose outbox cannot be opened gets its
    /// events without one.
    ///
    /// # Errors
    /// `INV_POLICY` for a reference whose policies contradict each other.
    pub(crate) fn new(
        number: u64,
        reference: &PushConsumer,
        peers: &PeerPolicy,
        outboxes: Option<(&OutboxThread, OutboxLimits)>,
        owner: Weak<dyn Evict>,
    ) -> Result<Self, SystemException> {
        let limits = [
            ClientPolicy::RelativeRoundtripTimeout(peers.push_timeout),
            ClientPolicy::ConnectTimeout(peers.push_timeout),
        ];
        let object = reference.as_object();
        let check = object.with_timeout(peers.check_timeout);
        let object = object.with_policy_overrides(&limits, SetOverride::Add)?;
        let open = |(thread, limits): (&OutboxThread, _)| thread.open(&check, &PUSH, limits).ok();
        let outbox = outboxes.and_then(open).map(Arc::new);
        Ok(Self {
            number,
            outbox: PiMutex::new(outbox),
            push_timeout: peers.push_timeout,
            reference: PushConsumer::unchecked_narrow(&object),
            check: PushConsumer::unchecked_narrow(&check),
            failures_allowed: peers.failures.max(1),
            failures: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            last_error: PiMutex::new(None),
            owner,
        })
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

    /// The counts of its outbox: the events that wait, and those that were lost there.
    pub(crate) fn outbox_counts(&self) -> (u32, u64) {
        let outbox = self.outbox.lock().clone();
        outbox.map_or((0, 0), |outbox| {
            let status = outbox.status();
            (
                u32::try_from(status.waiting).unwrap_or(u32::MAX),
                status.lost,
            )
        })
    }

    /// Sends by the outbox; `None` without one.
    fn put(&self, set: &[Event<Body>]) -> Option<Result<(), SystemException>> {
        let outbox = self.outbox.lock().clone()?;
        let body = match set {
            [event] => event.body.encoded(event, outbox.form()),
            _ => encode(set, outbox.form()),
        };
        match body.and_then(|body| outbox.put(&body)) {
            Ok(Delivery::Sent | Delivery::Waits) => Some(Ok(())),
            Ok(Delivery::Displaced(_) | Delivery::Lost) => {
                // The outbox counts what it has lost.
                let stalled = outbox.status().stalled;
                if stalled.is_some_and(|stalled| stalled >= self.push_timeout) {
                    self.failed(TIMEOUT);
                }
                Some(Ok(()))
            }
            Err(cause) if cause.kind == SystemExceptionKind::CommFailure => {
                // The next connection is made by the push itself.
                self.lost.fetch_add(outbox.status().lost, Ordering::Relaxed);
                *self.outbox.lock() = None;
                None
            }
            Err(cause) => Some(Err(cause)),
        }
    }

    fn send(&self, set: &[Event<Body>]) -> Result<(), SystemException> {
        if let Some(sent) = self.put(set) {
            return sent;
        }
        if let [event] = set {
            return self.reference.push(&[view_of(event)]);
        }
        let views: Vec<wire::Event<'_>> = set.iter().map(view_of).collect();
        self.reference.push(&views)
    }
}

impl Consumer<Body> for RemoteConsumer {
    fn push(&self, set: &[Event<Body>]) {
        if let Err(cause) = self.send(set) {
            self.lost.fetch_add(set.len() as u64, Ordering::Relaxed);
            self.failed(cause);
        }
    }
}

const PUSH: Operation = Operation::oneway("push");
/// The failure of a consumer that has taken nothing for the time of a push.
const TIMEOUT: SystemException = SystemException::no(SystemExceptionKind::Timeout, 0);
