//! The registry of the consumers of a service.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb::quota::{Origin, QuotaError};
use chronorb::{Object, SystemException, SystemExceptionKind};
use chronorb_channel::{Clock, Consumer, SubscribeError, Subscription};
use chronorb_events::Filter;
use chronorb_rt::{Deadline, Gate, PiMutex};

use crate::calls::PeerCalls;
use crate::consumer::{ConsumerOwner, ConsumerSettings, ConsumerSite, Face, RemoteConsumer};
use crate::policy::{ConsumerQuotas, PeerPolicy};
use crate::share::OctetShare;

/// A service with remote consumers.
pub trait ConsumerService: Send + Sync + Sized + 'static {
    /// The interface by which its consumers take events.
    type Face: Face;

    /// The service's part of a consumer's proxy, connected or not.
    type Proxy: Send + 'static;

    /// The service's part of a consumer's connection.
    type Connection: Send + 'static;

    /// The registry of its consumers.
    fn consumers(&self) -> &Consumers<Self>;

    /// Disconnects a consumer for this cause, if it is still there.
    fn evict_consumer(&self, number: u64, cause: EndCause);
}

/// The reason for the end of a client's connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EndCause {
    /// The client asked for it.
    Request,
    /// The client is not reached.
    Failure(SystemException),
    /// The client did not connect in time.
    Unused,
    /// The client's queue overflowed, and that is its policy.
    Overflow,
}

/// The remote consumers of a service, by number.
pub struct Consumers<S: ConsumerService> {
    records: PiMutex<Records<S>>,
    identifier: u64,
    peers: PeerPolicy,
    quotas: ConsumerQuotas,
    clock: Arc<dyn Clock>,
    calls: PeerCalls,
    /// Advances when events of a consumer are held, when a call has ended, and at the end.
    pub(crate) links: Gate,
    /// [`RUNNING`], or another state after the end.
    pub(crate) life: Gate,
    /// The counts of consumers that are not connected any more.
    ended: PiMutex<ConsumerCounts>,
}

struct Records<S: ConsumerService> {
    by_number: BTreeMap<u64, ConsumerRecord<S>>,
    is_closed: bool,
}

/// A consumer's proxy, connected or not.
pub struct ConsumerRecord<S: ConsumerService> {
    /// The place among the consumers, charged to the client that obtained it.
    _place: chronorb::quota::Charge,
    octets: Arc<OctetShare>,
    /// The time at which it was made, in nanoseconds of the service's clock.
    pub(crate) made: u64,
    connection: Option<ConnectedConsumer<S>>,
    /// The part of the service.
    pub proxy: S::Proxy,
}

/// A connected consumer.
pub struct ConnectedConsumer<S: ConsumerService> {
    /// The subscription of the consumer.
    pub subscription: Subscription<<S::Face as Face>::Body>,
    /// The consumer.
    pub consumer: Arc<RemoteConsumer<S::Face>>,
    /// The part of the service.
    pub service: S::Connection,
}

/// Counts of consumers since they connected.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ConsumerCounts {
    /// The sets that were given to the consumer.
    pub sets: u64,
    /// The events in these sets.
    pub events: u64,
    /// The events that were lost.
    pub lost: u64,
    /// The events that wait.
    pub waiting: u64,
    /// The waits for another period of its budget.
    pub pauses: u64,
}

/// The state of a connected consumer, for an operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ConsumerState {
    /// The counts since it connected. Each event that passed its filter was taken by its
    /// connection, is lost, or waits.
    pub counts: ConsumerCounts,
    /// Whether it is suspended.
    pub is_suspended: bool,
    /// Whether it has answered since it connected, and got what was held.
    pub has_answered: bool,
    /// Whether it is to answer before it gets further events.
    pub is_held: bool,
    /// The failures since it answered.
    pub failures: u32,
    /// The exception of the last failure.
    pub last_error: Option<SystemException>,
}

impl<S: ConsumerService> Consumers<S> {
    /// A registry without consumers.
    pub fn new(peers: PeerPolicy, quotas: ConsumerQuotas, clock: Arc<dyn Clock>) -> Self {
        Self {
            records: PiMutex::new(Records {
                by_number: BTreeMap::new(),
                is_closed: false,
            }),
            // Random, so that it is in no trail of events that did not pass the channel.
            identifier: RandomState::new().hash_one(0),
            peers,
            quotas,
            clock,
            calls: PeerCalls::default(),
            links: Gate::new(0),
            life: Gate::new(RUNNING),
            ended: PiMutex::default(),
        }
    }

    /// The identifier of the service in the [trails](crate::Trail) of events.
    pub fn identifier(&self) -> u64 {
        self.identifier
    }

    /// The threads that call clients, which may not answer.
    pub fn calls(&self) -> &PeerCalls {
        &self.calls
    }

    /// The treatment of clients that are not reached.
    pub fn peers(&self) -> &PeerPolicy {
        &self.peers
    }

    /// The present time of the service's clock, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Adds the proxy of a consumer of this origin. Its number is one that no client of the service
    /// had before. `activate` makes its object.
    ///
    /// # Errors
    /// `IMP_LIMIT` beyond a quota, `OBJECT_NOT_EXIST` after [`close`](Self::close), and those of
    /// `activate`.
    pub fn add<T>(
        &self,
        number: u64,
        origin: Origin,
        proxy: S::Proxy,
        activate: impl FnOnce() -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let quotas = &self.quotas;
        let place = quotas.consumers.charge(origin, 1).map_err(exceeded)?;
        let octets = quotas.octets.charge(origin, 0).map_err(exceeded)?;
        let mut records = self.records.lock();
        if records.is_closed {
            return Err(GONE);
        }
        let activated = activate()?;
        let record = ConsumerRecord {
            _place: place,
            octets: Arc::new(OctetShare::new(octets, quotas.consumer_octets)),
            made: self.now(),
            connection: None,
            proxy,
        };
        records.by_number.insert(number, record);
        Ok(activated)
    }

    /// Calls `then` with the record of a consumer. The registry is locked meanwhile.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` without such a consumer, and those of `then`.
    pub fn with<T, E: From<SystemException>>(
        &self,
        number: u64,
        then: impl FnOnce(&mut ConsumerRecord<S>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut records = self.records.lock();
        then(records.by_number.get_mut(&number).ok_or(GONE)?)
    }

    /// Calls `visit` with the records of at most `most` consumers after a number, in the order of
    /// their numbers. The registry is locked meanwhile.
    pub fn visit(&self, after: u64, most: usize, mut visit: impl FnMut(u64, &ConsumerRecord<S>)) {
        let records = self.records.lock();
        let records = records.by_number.range(after.saturating_add(1)..);
        for (&number, record) in records.take(most) {
            visit(number, record);
        }
    }

    /// Makes the consumer of a proxy, with a reference. That is the present one if it has the same
    /// reference: it need not answer again.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` without such a proxy; `INV_POLICY` for a reference whose policies
    /// contradict each other.
    pub fn consumer(
        &self,
        service: Weak<S>,
        number: u64,
        reference: &Object,
        face: S::Face,
        settings: ConsumerSettings,
    ) -> Result<Arc<RemoteConsumer<S::Face>>, SystemException> {
        let (present, octets) = self.with(number, |record| {
            let connection = record.connection.as_ref();
            let present = connection.map(|connection| connection.consumer.clone());
            Ok::<_, SystemException>((present, record.octets.clone()))
        })?;
        if let Some(present) = present.filter(|it| it.has_reference(reference)) {
            return Ok(present);
        }
        let site = ConsumerSite {
            number,
            channel: self.identifier,
            peers: self.peers,
            octets,
            owner: service,
        };
        RemoteConsumer::new(reference, face, settings, site)
    }

    /// Connects a consumer to its proxy. `subscribe` makes the subscription of its `handle`. If the
    /// proxy is connected, its subscription gets the filter and the handle instead, and the
    /// consumer takes over what is held for the former one.
    ///
    /// # Errors
    /// Those of the subscription. Nothing is changed then.
    pub fn connect<H: Consumer<<S::Face as Face>::Body>>(
        &self,
        record: &mut ConsumerRecord<S>,
        (consumer, handle): (Arc<RemoteConsumer<S::Face>>, H),
        filter: &Filter,
        subscribe: impl FnOnce(H) -> Result<Subscription<<S::Face as Face>::Body>, SubscribeError>,
        connection: impl FnOnce(&Subscription<<S::Face as Face>::Body>) -> S::Connection,
    ) -> Result<(), SubscribeError> {
        match &mut record.connection {
            None => {
                let subscription = subscribe(handle)?;
                consumer.set_waker(subscription.waker());
                record.connection = Some(ConnectedConsumer {
                    service: connection(&subscription),
                    subscription,
                    consumer: consumer.clone(),
                });
            }
            Some(present) => {
                present.subscription.replace(filter, handle)?;
                if !Arc::ptr_eq(&consumer, &present.consumer) {
                    self.ended.lock().lost += consumer.succeed(&present.consumer);
                }
                consumer.set_waker(present.subscription.waker());
                present.consumer = consumer.clone();
                present.service = connection(&present.subscription);
            }
        }
        if consumer.is_held() {
            self.links.advance();
        }
        Ok(())
    }

    /// Removes the proxy of a consumer.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` without such a consumer.
    pub fn remove(&self, number: u64) -> Result<ConsumerRecord<S>, SystemException> {
        let record = self.records.lock().by_number.remove(&number);
        record.ok_or(GONE)
    }

    /// Removes all proxies, and refuses further ones.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` if it was closed before.
    pub fn close(&self) -> Result<BTreeMap<u64, ConsumerRecord<S>>, SystemException> {
        let mut records = self.records.lock();
        if std::mem::replace(&mut records.is_closed, true) {
            return Err(GONE);
        }
        Ok(std::mem::take(&mut records.by_number))
    }

    /// Ends the connection of a consumer that was removed, and keeps its counts. No push begins
    /// after it has returned; waits for those in progress for at most 5 s. Events that wait are
    /// lost, if the consumer `would_take` them.
    pub fn disconnect(&self, connection: ConnectedConsumer<S>, would_take: bool) {
        let ConnectedConsumer {
            mut subscription,
            consumer,
            ..
        } = connection;
        let deadline = Deadline::after(PATIENCE);
        subscription.end_within(PATIENCE);
        // What is deferred was pushed before, for the subscription.
        consumer.gate().close();
        consumer.gate().wait(deadline);
        let counts = counts(&subscription, &consumer);
        consumer.clear();
        let mut ended = self.ended.lock();
        ended.add(&counts);
        // It waits no more.
        let waiting = std::mem::take(&mut ended.waiting);
        ended.lost += if would_take { waiting } else { 0 };
    }

    /// The counts of all consumers, also of those that are not connected any more.
    pub fn counts(&self) -> ConsumerCounts {
        let records = self.records.lock();
        let connections = records.by_number.values();
        let connections = connections.filter_map(|record| record.connection.as_ref());
        let mut all = *self.ended.lock();
        for connection in connections {
            all.add(&connection.counts());
        }
        all
    }

    /// Ends the threads of the registry, and the calls of clients that wait.
    pub fn stop(&self) {
        self.life.set(STOPPED);
        self.calls.end();
        self.links.advance();
    }
}

impl<S: ConsumerService> fmt::Debug for Consumers<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumers")
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}

impl<S: ConsumerService> ConsumerOwner for S {
    fn give_up(self: Arc<Self>, number: u64, cause: SystemException) {
        // It waits neither for the push that has failed, nor behind calls of peers that hang.
        let service = self.clone();
        self.consumers().calls.post(Origin::Process, move || {
            let is_given_up = service.consumers().with(number, |record| {
                let connection = record.connection.as_ref();
                let consumer = connection.map(|connection| &connection.consumer);
                Ok::<_, SystemException>(consumer.is_some_and(|it| it.is_given_up()))
            });
            if is_given_up == Ok(true) {
                service.evict_consumer(number, EndCause::Failure(cause));
            }
        });
    }

    fn overflowed(&self, number: u64) {
        // At the end of the service its consumers are told otherwise.
        if self.consumers().life.get() == RUNNING {
            self.evict_consumer(number, EndCause::Overflow);
        }
    }

    fn reach_consumers(&self) {
        self.consumers().links.advance();
    }
}

impl<S: ConsumerService> ConsumerRecord<S> {
    /// The origin of the client that obtained it.
    pub fn origin(&self) -> Origin {
        self.octets.origin()
    }

    /// The octets of the events that wait for it, as the allowance of its subscription.
    pub fn octets(&self) -> &Arc<OctetShare> {
        &self.octets
    }

    /// The connected consumer. `None` before it connects.
    pub fn connection(&self) -> Option<&ConnectedConsumer<S>> {
        self.connection.as_ref()
    }

    /// Takes its connection out, once it was [removed](Consumers::remove).
    pub fn into_connection(self) -> Option<ConnectedConsumer<S>> {
        self.connection
    }
}

impl<S: ConsumerService> fmt::Debug for ConsumerRecord<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerRecord")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl<S: ConsumerService> ConnectedConsumer<S> {
    /// The counts since it connected.
    pub fn counts(&self) -> ConsumerCounts {
        counts(&self.subscription, &self.consumer)
    }

    /// The state of the consumer.
    pub fn state(&self) -> ConsumerState {
        ConsumerState {
            counts: self.counts(),
            is_suspended: self.subscription.status().is_suspended,
            has_answered: self.consumer.has_answered(),
            is_held: self.consumer.is_held(),
            failures: self.consumer.failures(),
            last_error: self.consumer.last_error(),
        }
    }
}

impl<S: ConsumerService> fmt::Debug for ConnectedConsumer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectedConsumer")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl ConsumerCounts {
    fn add(&mut self, other: &Self) {
        self.sets += other.sets;
        self.events += other.events;
        self.lost += other.lost;
        self.waiting += other.waiting;
        self.pauses += other.pauses;
    }
}

/// Each event that passed the filter was taken by the connection, is lost, or waits.
fn counts<F: Face>(
    subscription: &Subscription<F::Body>,
    consumer: &RemoteConsumer<F>,
) -> ConsumerCounts {
    let status = subscription.status();
    let failed = consumer.lost();
    let waiting = consumer.waiting() as u64;
    ConsumerCounts {
        sets: status.sets,
        events: status.events.saturating_sub(failed + waiting),
        lost: status.lost + failed,
        waiting: status.queued as u64 + waiting,
        pauses: status.pauses,
    }
}

/// The exception of what a quota has refused. It was logged.
fn exceeded(_: QuotaError) -> SystemException {
    SystemException::no(SystemExceptionKind::ImpLimit, 0)
}

/// The state of a service that takes clients.
pub(crate) const RUNNING: u32 = 0;
/// The state of a service that has ended.
const STOPPED: u32 = 1;
/// A proxy that was removed.
const GONE: SystemException = SystemException::no(SystemExceptionKind::ObjectNotExist, 0);
/// The longest time that a disconnection waits for pushes in progress: a consumer may call another
/// process that disconnects it, and wait for the answer.
const PATIENCE: Duration = Duration::from_secs(5);
