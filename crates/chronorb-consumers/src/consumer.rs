//! A consumer that is reached by its reference.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use chronorb::config::Collocation;
use chronorb::outbox::{Delivery, Outbox, OutboxLimits, OutboxOverflow, OutboxThread};
use chronorb::quota::Origin;
use chronorb::rtcorba::{ClientPolicy, RebindMode, SetOverride};
use chronorb::{
    BodyForm, EncodedBody, Object, Operation, SystemException, SystemExceptionKind, minor,
};
use chronorb_channel::{Allowance, Body, PushGate, Waker};
use chronorb_events::Event;
use chronorb_giop::contexts::EVENT_CHANNELS;
use chronorb_rt::PiMutex;

use crate::link::{Link, Passage, Share, Way};
use crate::policy::PeerPolicy;
use crate::share::OctetShare;
use crate::trail::Trail;

/// The interface by which a service sends events to one consumer.
pub trait Face: Send + Sync + 'static {
    /// The body of an event.
    type Body: Body;

    /// The oneway operation that takes a set.
    const PUSH: Operation;

    /// The repository identifier of the objects by which channels of this kind take events.
    const CHANNEL: &'static str;

    /// Encodes a set as the argument of [`PUSH`](Self::PUSH).
    fn encode(set: &[Event<Self::Body>], form: BodyForm) -> Result<EncodedBody, SystemException>;

    /// Returns the event that tells the consumer a number of lost ones.
    fn loss(number: u64) -> Event<Self::Body>;

    /// The octets of a body.
    fn octets(body: &Self::Body) -> usize;

    /// The channels that an event has passed.
    fn trail(body: &Self::Body) -> &Trail;

    /// Pushes a set by a call of this reference of the consumer, or to another object that takes
    /// its events.
    fn push(&self, to: &Object, set: &[Event<Self::Body>]) -> Result<(), SystemException>;

    /// The other object that takes the events of the consumer, if there is one. It has to answer as
    /// the consumer has to.
    fn target(&self) -> Option<Object>;
}

/// The owner of consumers.
pub(crate) trait ConsumerOwner: Send + Sync {
    /// Has a consumer disconnected that has failed with this exception, if it
    /// [is given up](RemoteConsumer::is_given_up) and still has its place. Does not wait for that.
    fn give_up(self: Arc<Self>, number: u64, cause: SystemException);

    /// Disconnects a consumer whose queue has overflowed.
    fn overflowed(&self, number: u64);

    /// Has the consumers called whose events are held.
    fn reach_consumers(&self);
}

/// The outboxes of a lane.
#[derive(Clone, Debug)]
pub struct OutboxSource {
    /// The thread that sends.
    pub thread: OutboxThread,
    /// The bounds of an outbox, with the queue before it.
    pub limits: OutboxLimits,
}

/// The settings of a consumer that its service knows.
#[derive(Debug, Default)]
pub struct ConsumerSettings {
    /// The outboxes of its lane. Without them a push is a call.
    pub outboxes: Option<OutboxSource>,
    /// Whether the consumer has stated its queue: then events wait there, and not here, until it
    /// first answers.
    pub has_queue: bool,
    /// Whether the consumer is told its losses.
    pub tells_losses: bool,
    /// The reference by the client's own connection alone, if the consumer is reached there
    /// ([`Object::by_connection_of`]). Then the consumer takes events at once, unless it has an
    /// outbox, which has a connection of its own.
    pub return_path: Option<Object>,
}

/// The place of a consumer in its registry.
pub(crate) struct ConsumerSite {
    pub(crate) number: u64,
    /// The identifier of the channel.
    pub(crate) channel: u64,
    pub(crate) peers: PeerPolicy,
    pub(crate) octets: Arc<OctetShare>,
    pub(crate) owner: Weak<dyn ConsumerOwner>,
}

/// A consumer that is reached by its reference.
pub struct RemoteConsumer<F: Face> {
    site: ConsumerSite,
    settings: ConsumerSettings,
    face: F,
    /// The reference with the time limit of a push.
    reference: Object,
    /// The reference with the time limit of checks and callbacks.
    check: Object,
    /// Whether it is an object of this process, and none of a channel.
    is_local: bool,
    /// The way of events that passed no other channel, and of all events to a consumer that keeps
    /// no trails.
    own: Link<F::Body>,
    /// The ways of events that passed other channels, if the consumer keeps trails.
    others: PiMutex<Vec<Arc<Link<F::Body>>>>,
    /// The octets in the outbox that are charged.
    in_outbox: PiMutex<usize>,
    /// Whether it may be an object of a channel, so that its events go on with their trails.
    is_channel: AtomicBool,
    /// Whether it has answered, and got what was held.
    has_answered: AtomicBool,
    /// Whether a thread has, or is to get, the task of calling it.
    is_being_called: AtomicBool,
    /// Whether it has failed too often, or has lost its place to another.
    is_given_up: AtomicBool,
    /// Closed at the end, for events that were deferred.
    gate: PushGate,
    /// Lets the lane serve the consumer again. Set once it has subscribed.
    waker: OnceLock<Waker<F::Body>>,
    /// The failures since the consumer answered.
    failures: AtomicU32,
    /// Events of pushes that failed.
    lost: AtomicU64,
    /// Losses that the consumer is still to be told.
    untold: AtomicU64,
    last_error: PiMutex<Option<SystemException>>,
}

/// The requests that are given to a connection before it has room.
pub fn requests_ahead(limits: OutboxLimits) -> usize {
    limits.requests.div_ceil(2).clamp(1, 8)
}

/// The wait of a push to several consumers for those that take nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PushWait {
    /// The thread pushes for a lane, where each consumer may make it wait.
    OfLane,
    /// No consumer has made the push wait.
    None,
    /// A consumer has made the push wait for as long as it may. The events of the others are held.
    Over,
}

thread_local! {
    static PUSH_WAIT: Cell<PushWait> = const { Cell::new(PushWait::OfLane) };
}

/// The push of a supplier to any number of consumers. It waits for one consumer at most that takes
/// nothing.
#[derive(Debug)]
#[must_use = "dropping it ends the push"]
pub struct SupplierPush(PushWait);

/// Begins the push of a supplier on the calling thread.
#[inline]
pub fn begin_push() -> SupplierPush {
    SupplierPush(PUSH_WAIT.replace(PushWait::None))
}

/// Whether the present push has waited for as long as it may.
pub fn has_waited() -> bool {
    PUSH_WAIT.get() == PushWait::Over
}

impl Drop for SupplierPush {
    #[inline]
    fn drop(&mut self) {
        PUSH_WAIT.set(self.0);
    }
}

impl<F: Face> fmt::Debug for RemoteConsumer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteConsumer")
            .field("number", &self.site.number)
            .finish_non_exhaustive()
    }
}

impl<F: Face> RemoteConsumer<F> {
    /// A consumer with the time limits of the policy. One of this process, or on its client's own
    /// connection, is called at once, unless it is to have an outbox; the events of others are held
    /// until they have [answered](Self::reach).
    ///
    /// # Errors
    /// `INV_POLICY` for a reference whose policies contradict each other.
    pub(crate) fn new(
        reference: &Object,
        face: F,
        settings: ConsumerSettings,
        site: ConsumerSite,
    ) -> Result<Arc<Self>, SystemException> {
        let limits = [
            ClientPolicy::RelativeRoundtripTimeout(site.peers.push_timeout),
            ClientPolicy::ConnectTimeout(site.peers.push_timeout),
        ];
        let check = reference.with_timeout(site.peers.check_timeout);
        let reference = reference.with_policy_overrides(&limits, SetOverride::Add)?;
        // The events of another channel of this process need a message for their trail.
        let is_here = |it: &Object| it.is_local() && !it.is_a(F::CHANNEL).unwrap_or(true);
        let is_local = is_here(&check) && face.target().as_ref().is_none_or(is_here);
        let return_path = match &settings.return_path {
            // Another object, at any address, would take the events.
            Some(path) if face.target().is_none() => {
                let path = path.with_policy_overrides(&limits, SetOverride::Add)?;
                Some(with_trail(&path, &Trail::default(), site.channel))
            }
            _ => None,
        };
        let own = match return_path {
            _ if settings.outboxes.is_some() => Link::held(Trail::default()),
            _ if is_local => Link::open(Way::Calls(reference.clone())),
            Some(path) => Link::open(Way::Calls(path)),
            None => Link::held(Trail::default()),
        };
        let own_is_held = own.is_held();
        // Before it has answered it may be an object of a channel, whose events keep their trails.
        let is_channel = !is_local;
        Ok(Arc::new(Self {
            site,
            settings,
            face,
            reference,
            check,
            is_local,
            own,
            others: PiMutex::default(),
            in_outbox: PiMutex::new(0),
            is_channel: AtomicBool::new(is_channel),
            has_answered: AtomicBool::new(!own_is_held),
            is_being_called: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
            gate: PushGate::default(),
            waker: OnceLock::new(),
            failures: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            untold: AtomicU64::new(0),
            last_error: PiMutex::new(None),
        }))
    }

    /// The origin of its client.
    pub fn origin(&self) -> Origin {
        self.site.octets.origin()
    }

    /// The interface by which it takes events.
    pub fn face(&self) -> &F {
        &self.face
    }

    /// The reference with the time limit of checks and callbacks.
    pub fn callback(&self) -> &Object {
        &self.check
    }

    /// The gate that is closed at its end, for events that were deferred.
    pub fn gate(&self) -> &PushGate {
        &self.gate
    }

    /// Whether it has answered since it connected, and got what was held.
    pub fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Acquire)
    }

    /// Notes by what the consumer's lane is called. It may have become ready before.
    pub(crate) fn set_waker(&self, waker: Waker<F::Body>) {
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
        if (is_gone || failures >= self.site.peers.failures.max(1))
            && !self.is_given_up.swap(true, Ordering::AcqRel)
            && let Some(owner) = self.site.owner.upgrade()
        {
            owner.give_up(self.site.number, cause);
        }
    }

    /// Whether it has failed too often, and is to be disconnected.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire)
    }

    /// The failures since it answered.
    pub(crate) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The events of pushes that failed.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The exception of the last failure.
    pub(crate) fn last_error(&self) -> Option<SystemException> {
        *self.last_error.lock()
    }

    /// Forgets the failures of a consumer that has answered.
    pub(crate) fn answered(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// The events that wait here.
    pub(crate) fn waiting(&self) -> usize {
        let waiting = |link: &Link<F::Body>| {
            let outbox = link.outbox().map_or(0, |outbox| outbox.status().waiting);
            link.held_events() + outbox
        };
        let others = self.others.lock();
        waiting(&self.own) + others.iter().map(|link| waiting(link)).sum::<usize>()
    }

    /// Whether its connection has taken nothing for the time of a push.
    pub(crate) fn is_stalled(&self) -> bool {
        let stalled = self.own.outbox().and_then(|outbox| outbox.status().stalled);
        stalled.is_some_and(|stalled| stalled >= self.site.peers.push_timeout)
    }

    /// Whether it is to answer before it gets further events.
    pub(crate) fn is_held(&self) -> bool {
        self.own.is_held() || self.others.lock().iter().any(|link| link.is_held())
    }

    /// Begins a call of the consumer, unless there is one or it is given up. It ends with
    /// [`end_call`](Self::end_call).
    pub(crate) fn begin_call(&self) -> bool {
        !self.is_given_up() && !self.is_being_called.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn end_call(&self) {
        self.is_being_called.store(false, Ordering::Release);
    }

    /// Asks the consumer whether it exists, and sends what is held if it answers. Waits for it for
    /// the time of a check. A failure counts.
    pub(crate) fn reach(self: &Arc<Self>) {
        if self.gate.is_closed() {
            return;
        }
        match self.ask() {
            Ok(is_channel) => {
                // Events that are held with a trail are followed by those with the same one.
                let keeps_trails = is_channel || !self.others.lock().is_empty();
                self.is_channel.store(keeps_trails, Ordering::Release);
                self.answered();
            }
            Err(cause) => return self.failed(cause),
        }
        let others = self.others.lock().clone();
        for link in std::iter::once(&self.own).chain(others.iter().map(|link| &**link)) {
            if link.is_held() {
                match self.open(link) {
                    Ok(way) => {
                        let Some(_push) = self.gate.enter() else {
                            return;
                        };
                        let send = |way: &Way, set: &[Event<F::Body>]| self.send_held(way, set);
                        link.settle(way, &self.share(), send);
                    }
                    Err(cause) => return self.failed(cause),
                }
            }
        }
        self.has_answered.store(true, Ordering::Release);
        self.wake();
    }

    /// Asks the consumer, and what takes its events, whether it is an object of a channel.
    ///
    /// # Errors
    /// The exception of a consumer that does not exist, or of which no answer came.
    pub(crate) fn ask(&self) -> Result<bool, SystemException> {
        let target = self.face.target();
        let target = target.map(|it| ask::<F>(&it.with_timeout(self.site.peers.check_timeout)));
        Ok(ask::<F>(&self.check)? | target.transpose()?.unwrap_or(false))
    }

    /// Opens the way of a link.
    fn open(self: &Arc<Self>, link: &Link<F::Body>) -> Result<Way, SystemException> {
        let by_kind = |object: &Object| {
            if self.is_channel.load(Ordering::Acquire) {
                with_trail(object, &link.trail, self.site.channel)
            } else {
                object.clone()
            }
        };
        // A connection that ends is not made again by a push.
        let calls = || {
            if self.is_local {
                return Ok(Way::Calls(self.reference.clone()));
            }
            let once = [ClientPolicy::Rebind(RebindMode::NoReconnect)];
            let object = self
                .reference
                .with_policy_overrides(&once, SetOverride::Add)?;
            Ok(Way::Calls(by_kind(&object)))
        };
        let Some(outboxes) = &self.settings.outboxes else {
            return calls();
        };
        let limits = OutboxLimits {
            requests: requests_ahead(outboxes.limits),
            // The bound of octets is that at which the consumer is not ready.
            octets: usize::MAX,
            overflow: OutboxOverflow::DropNewest,
        };
        match outboxes
            .thread
            .open(&by_kind(&self.check), &F::PUSH, limits)
        {
            Ok(outbox) => {
                let this = Arc::downgrade(self);
                outbox.on_room(move || {
                    if let Some(this) = this.upgrade() {
                        this.wake();
                    }
                });
                Ok(Way::Outbox(Arc::new(outbox)))
            }
            // Groups and datagrams have no outboxes.
            Err(cause) if cause.kind == SystemExceptionKind::NoImplement => calls(),
            Err(cause) => Err(cause),
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    fn share(&self) -> Share<'_, F::Body> {
        Share {
            octets: &self.site.octets,
            size: F::octets,
        }
    }

    /// Sends a set that was held. Returns whether the way is still good.
    fn send_held(&self, way: &Way, set: &[Event<F::Body>]) -> bool {
        let is_over = self.gate.is_closed();
        let sent = match way {
            _ if is_over => Err(NO_ROOM),
            Way::Outbox(outbox) => {
                let has_room = self.wait_for_room(outbox);
                has_room.and_then(|()| self.send_by(way, set))
            }
            Way::Calls(_) => self.send_by(way, set),
        };
        let Err(cause) = sent else {
            return true;
        };
        self.lose(set.len() as u64);
        if cause != NO_ROOM {
            self.failed(cause);
        }
        cause == NO_ROOM && !is_over
    }

    /// Waits until an outbox has room, at most for the time of a push.
    fn wait_for_room(&self, outbox: &Outbox) -> Result<(), SystemException> {
        if outbox.status().waiting == 0 || outbox.flush(self.site.peers.push_timeout)? {
            return Ok(());
        }
        Err(STALLED)
    }

    /// Sends a set, or holds it.
    fn send(&self, set: &[Event<F::Body>]) -> Result<(), SystemException> {
        if !self.is_channel.load(Ordering::Relaxed) {
            return self.send_on(&self.own, set);
        }
        let each = set.iter().map(|event| F::trail(&event.body));
        let trail = each.fold(Trail::default(), |all, trail| all.joined(trail));
        if trail.is_empty() {
            return self.send_on(&self.own, set);
        }
        let mut others = self.others.lock();
        let known = others.iter().find(|link| link.trail == trail).cloned();
        let link = match known {
            Some(link) => link,
            None if others.len() < MOST_TRAILS => {
                let link = Arc::new(Link::held(trail));
                others.push(link.clone());
                self.ask_to_reach();
                link
            }
            None => return Err(NO_ROOM),
        };
        drop(others);
        self.send_on(&link, set)
    }

    fn send_on(&self, link: &Link<F::Body>, set: &[Event<F::Body>]) -> Result<(), SystemException> {
        // A lane does not wait, and a supplier waits once.
        let may_wait = PUSH_WAIT.get() == PushWait::None;
        let patience = may_wait.then_some(self.site.peers.push_timeout);
        let way = match link.pass(set, &self.share(), patience) {
            Passage::Send(way) => way,
            Passage::Held { lost, has_waited } => {
                if has_waited {
                    PUSH_WAIT.set(PushWait::Over);
                }
                self.lose(lost);
                return Ok(());
            }
        };
        let is_call = matches!(way, Way::Calls(_));
        if is_call && has_waited() && !self.is_local {
            self.hold(link, set);
            return Ok(());
        }
        match self.send_by(&way, set) {
            Err(cause) if is_call => self.call_failed(link, set, cause),
            Err(cause) => {
                if let (Way::Outbox(outbox), SystemExceptionKind::CommFailure) = (&way, cause.kind)
                {
                    self.unlink(link, outbox);
                }
                Err(cause)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Has the consumer answer before it gets further events, since a call of it has failed.
    fn call_failed(
        &self,
        link: &Link<F::Body>,
        set: &[Event<F::Body>],
        cause: SystemException,
    ) -> Result<(), SystemException> {
        match cause.kind {
            // Its connection had ended before.
            SystemExceptionKind::Rebind => {
                self.hold(link, set);
                Ok(())
            }
            SystemExceptionKind::Timeout => {
                if PUSH_WAIT.get() == PushWait::None {
                    PUSH_WAIT.set(PushWait::Over);
                }
                self.hold(link, &[]);
                Err(cause)
            }
            SystemExceptionKind::CommFailure | SystemExceptionKind::Transient => {
                self.hold(link, &[]);
                Err(cause)
            }
            _ => Err(cause),
        }
    }

    fn hold(&self, link: &Link<F::Body>, set: &[Event<F::Body>]) {
        self.lose(link.hold(set, &self.share()));
        self.ask_to_reach();
    }

    fn ask_to_reach(&self) {
        if let Some(owner) = self.site.owner.upgrade() {
            owner.reach_consumers();
        }
    }

    fn send_by(&self, way: &Way, set: &[Event<F::Body>]) -> Result<(), SystemException> {
        match way {
            // A call waits, and nothing is locked then.
            Way::Calls(object) => self.face.push(object, set),
            Way::Outbox(outbox) => {
                let body = F::encode(set, outbox.form())?;
                match outbox.put(&body)? {
                    Delivery::Sent => Ok(()),
                    Delivery::Waits => {
                        self.charge_outbox(outbox);
                        Ok(())
                    }
                    // Only what timers complete is pushed without room.
                    Delivery::Displaced(_) | Delivery::Lost => Err(NO_ROOM),
                }
            }
        }
    }

    /// Charges the client with the octets that wait in an outbox. Returns whether they are granted.
    fn charge_outbox(&self, outbox: &Outbox) -> bool {
        let octets = &self.site.octets;
        let mut charged = self.in_outbox.lock();
        let waiting = outbox.status().octets;
        let is_granted = waiting <= *charged || octets.take(waiting - *charged);
        if is_granted {
            octets.give_back(charged.saturating_sub(waiting));
            *charged = waiting;
        }
        is_granted
    }

    /// Forgets an outbox whose connection has ended, and counts what was lost with it.
    fn unlink(&self, link: &Link<F::Body>, outbox: &Arc<Outbox>) {
        if link.hold_after(outbox) {
            self.lose(outbox.status().lost);
            self.ask_to_reach();
        }
    }

    /// Pushes a set at once, or holds it.
    pub fn push(&self, set: &[Event<F::Body>]) {
        self.tell_losses();
        if let Err(cause) = self.send(set) {
            self.push_failed(set.len() as u64, cause);
        }
    }

    /// Counts events of a push that failed.
    fn push_failed(&self, events: u64, cause: SystemException) {
        self.lose(events);
        if cause != NO_ROOM {
            self.failed(cause);
        }
    }

    /// Holds a deferred set, because the push has waited for another consumer.
    pub fn hold_deferred(&self, set: &[Event<F::Body>]) {
        self.hold(&self.own, set);
    }

    /// Counts events of a deferred push that failed, after which the consumer is to answer first.
    pub fn deferred_failed(&self, events: u64, cause: SystemException) {
        let outcome = self.call_failed(&self.own, &[], cause);
        self.push_failed(events, outcome.err().unwrap_or(NO_ROOM));
    }

    /// Whether events may be deferred to share a message: they are sent by calls.
    pub fn takes_calls(&self) -> bool {
        matches!(self.own.way(), Some(Way::Calls(_)))
    }

    /// Whether it takes an event now.
    pub fn is_ready(&self) -> bool {
        match (self.own.way(), &self.settings.outboxes) {
            (Some(Way::Outbox(outbox)), Some(outboxes)) => {
                // What is not granted has to leave first.
                let is_granted = *self.in_outbox.lock() == 0 || self.charge_outbox(&outbox);
                outbox.has_room(if is_granted {
                    outboxes.limits.octets
                } else {
                    1
                })
            }
            (Some(_), _) => true,
            // What arrives before the first answer is held here, unless its queue is stated.
            (None, _) => !self.settings.has_queue && !self.has_answered(),
        }
    }

    /// Whether the consumer is to be told losses with its next event.
    pub fn has_losses(&self) -> bool {
        self.untold.load(Ordering::Relaxed) > 0
    }

    /// Tells the consumer that events were lost before the next one.
    pub fn tell_lost(&self, events: u64) {
        self.untold.fetch_add(events, Ordering::Relaxed);
        self.tell_losses();
    }

    /// Has its owner disconnect it because its queue has overflowed.
    pub fn overflowed(&self) {
        if let Some(owner) = self.site.owner.upgrade() {
            owner.overflowed(self.site.number);
        }
    }

    /// Drops what is held, at the end.
    pub(crate) fn clear(&self) {
        let in_outbox = std::mem::take(&mut *self.in_outbox.lock());
        self.site.octets.give_back(in_outbox);
        self.own.end(&self.share());
        for link in &*self.others.lock() {
            link.end(&self.share());
        }
    }

    /// Takes over what is held for the consumer whose place this one takes. Returns the number of
    /// events that are lost with it.
    pub(crate) fn succeed(&self, before: &Self) -> u64 {
        before.is_given_up.store(true, Ordering::Release);
        let in_outbox = before
            .own
            .outbox()
            .map_or(0, |outbox| outbox.status().waiting);
        let held = before.own.end(&before.share());
        before.clear();
        for set in held {
            self.push(&set);
        }
        before.lost() + in_outbox as u64
    }

    /// Whether it is reached by this reference.
    pub(crate) fn has_reference(&self, reference: &Object) -> bool {
        self.check == *reference
    }

    /// Counts events as lost that were pushed.
    fn lose(&self, events: u64) {
        if events > 0 {
            self.lost.fetch_add(events, Ordering::Relaxed);
            self.untold.fetch_add(events, Ordering::Relaxed);
        }
    }

    /// Tells the consumer what it has lost, if it wants to know.
    fn tell_losses(&self) {
        if !self.has_losses() || self.own.is_held() {
            return;
        }
        let events = self.untold.swap(0, Ordering::Relaxed);
        if events == 0 || !self.settings.tells_losses {
            return;
        }
        if self.send(&[F::loss(events)]).is_err() {
            self.untold.fetch_add(events, Ordering::Relaxed);
        }
    }
}

/// The reference whose requests name this channel, and those that their events have passed before.
fn with_trail(object: &Object, passed: &Trail, channel: u64) -> Object {
    let object = object.with_collocation(Collocation::Off);
    object.with_service_context(EVENT_CHANNELS, &passed.encode_with(channel))
}

/// Asks an object whether it is one of a channel.
fn ask<F: Face>(object: &Object) -> Result<bool, SystemException> {
    use SystemExceptionKind::{
        BadOperation, BadParam, Marshal, NoImplement, NoPermission, Unknown,
    };
    // With these a peer refuses the question. Others arise here, and prove nothing.
    let refusals = [
        BadOperation,
        BadParam,
        Marshal,
        NoImplement,
        NoPermission,
        Unknown,
    ];
    match object.is_a(F::CHANNEL) {
        // No peer was asked.
        Err(cause) if cause.minor == minor::REFUSED_BY_RULES => Err(cause),
        Err(cause) if refusals.contains(&cause.kind) => Ok(false),
        answer => answer,
    }
}

/// The most different trails of the events of one consumer.
const MOST_TRAILS: usize = 16;
/// The failure of a consumer that has taken nothing for the time of a push.
pub(crate) const STALLED: SystemException = SystemException::no(SystemExceptionKind::Timeout, 0);
/// A push that finds an outbox full.
const NO_ROOM: SystemException = SystemException::no(SystemExceptionKind::Transient, 0);
