//! Messages that several consumers of a process share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::slice;
use std::sync::{Arc, Weak};

use chronorb::rtcorba::{ClientPolicy, SetOverride};
use chronorb::{Object, Orb, SystemException};
use chronorb_channel::{PushGate, PushGuard};
use chronorb_consumers::{PeerPolicy, has_waited};
use chronorb_events::Event;
use chronorb_rt::PiMutex;

use crate::event::{Body, view_of};
use crate::idl::chronorb_events::FanOutConsumer;
use crate::idl::rtec_event_comm as wire;

/// An object that takes events for several consumers of its process.
pub(crate) struct FanOut {
    reference: FanOutConsumer,
}

/// A consumer's place at such an object.
#[derive(Clone)]
pub(crate) struct FanOutPlace {
    pub(crate) target: Arc<FanOut>,
    /// The number of the consumer there.
    pub(crate) member: u32,
}

impl FanOut {
    /// An object with the time limits of the policy.
    ///
    /// # Errors
    /// `INV_POLICY` for a reference whose policies contradict each other.
    pub(crate) fn new(
        reference: &FanOutConsumer,
        peers: &PeerPolicy,
    ) -> Result<Self, SystemException> {
        let limits = [
            ClientPolicy::RelativeRoundtripTimeout(peers.push_timeout),
            ClientPolicy::ConnectTimeout(peers.push_timeout),
        ];
        let object = reference.as_object();
        let object = object.with_policy_overrides(&limits, SetOverride::Add)?;
        Ok(Self {
            reference: FanOutConsumer::unchecked_narrow(&object),
        })
    }

    /// The object.
    pub(crate) fn object(&self) -> Object {
        self.reference.as_object().clone()
    }

    /// Pushes a set to members.
    pub(crate) fn push(&self, members: &[u32], set: &[Event<Body>]) -> Result<(), SystemException> {
        if let [event] = set {
            return self.reference.push_to(members, &[view_of(event)]);
        }
        let views: Vec<wire::Event<'_>> = set.iter().map(view_of).collect();
        self.reference.push_to(members, &views)
    }
}

/// The objects of a channel that take events for several consumers, by their references.
#[derive(Default)]
pub(crate) struct FanOuts(PiMutex<HashMap<String, Weak<FanOut>>>);

impl FanOuts {
    /// Returns the object with this reference, which is one for all its consumers.
    ///
    /// # Errors
    /// As [`FanOut::new`].
    pub(crate) fn of(
        &self,
        orb: &Orb,
        reference: &FanOutConsumer,
        peers: &PeerPolicy,
    ) -> Result<Arc<FanOut>, SystemException> {
        let text = orb.object_to_string(reference.as_object());
        let mut present = self.0.lock();
        if let Some(target) = present.get(&text).and_then(Weak::upgrade) {
            return Ok(target);
        }
        present.retain(|_, target| target.strong_count() > 0);
        let target = Arc::new(FanOut::new(reference, peers)?);
        present.insert(text, Arc::downgrade(&target));
        Ok(target)
    }
}

/// A consumer whose events can be deferred.
pub(crate) trait SharingConsumer: Send + Sync {
    /// The gate that is closed at its end.
    fn gate(&self) -> &PushGate;

    /// Holds an event until the consumer has answered.
    fn hold(&self, event: &Event<Body>);

    /// Counts events of a push that failed.
    fn push_failed(&self, events: u64, cause: SystemException);
}

/// A deferred event, and its consumers so far.
struct Batch {
    event: Event<Body>,
    target: Arc<FanOut>,
    members: Vec<(u32, Arc<dyn SharingConsumer>)>,
}

thread_local! {
    /// The batches of one event, in the order in which they began.
    static DEFERRED: RefCell<Vec<Batch>> = const { RefCell::new(Vec::new()) };
}

/// The batches of an event that are searched for that of an object. An object that is further back
/// gets another message.
const SEARCHED: usize = 8;

/// Defers an event of a consumer until [`send_deferred`], or until another event is deferred.
pub(crate) fn defer(consumer: Arc<dyn SharingConsumer>, place: &FanOutPlace, event: &Event<Body>) {
    let is_other = |first: &Batch| !first.event.body.is_same(&event.body);
    if DEFERRED.with_borrow(|batches| batches.first().is_some_and(is_other)) {
        send_deferred();
    }
    let member = (place.member, consumer);
    DEFERRED.with_borrow_mut(|batches| {
        let mut latest = batches.iter_mut().rev().take(SEARCHED);
        let batch = latest.find(|batch| Arc::ptr_eq(&batch.target, &place.target));
        match batch {
            // The filter of a consumer can pass an event twice, which are two messages.
            Some(batch) if !batch.ends_with(place.member) => batch.members.push(member),
            _ => batches.push(Batch {
                event: event.clone(),
                target: place.target.clone(),
                members: vec![member],
            }),
        }
    });
}

/// Sends what the calling thread has deferred.
pub(crate) fn send_deferred() {
    // A consumer in this process may push, so nothing is borrowed meanwhile.
    let mut batches = DEFERRED.take();
    for batch in batches.drain(..) {
        batch.send();
    }
    DEFERRED.with_borrow_mut(|present| {
        if present.is_empty() {
            *present = batches;
        }
    });
}

impl Batch {
    fn ends_with(&self, member: u32) -> bool {
        self.members.last().is_some_and(|last| last.0 == member)
    }

    /// Sends the event to the consumers that were not disconnected meanwhile.
    fn send(&self) {
        let mut numbers = Vec::with_capacity(self.members.len());
        let mut reached: Vec<(&dyn SharingConsumer, PushGuard<'_>)> =
            Vec::with_capacity(self.members.len());
        for (member, consumer) in &self.members {
            if let Some(guard) = consumer.gate().enter() {
                numbers.push(*member);
                reached.push((&**consumer, guard));
            }
        }
        if numbers.is_empty() {
            return;
        }
        if has_waited() {
            for (consumer, _) in &reached {
                consumer.hold(&self.event);
            }
            return;
        }
        let set = slice::from_ref(&self.event);
        if let Err(cause) = self.target.push(&numbers, set) {
            for (consumer, _) in &reached {
                consumer.push_failed(1, cause);
            }
        }
    }
}
