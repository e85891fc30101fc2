//! The state of a channel, which its servants and threads share.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use chronorb::outbox::OutboxThread;
use chronorb::poa::{ObjectId, Poa};
use chronorb::quota::{Origin, QuotaError};
use chronorb::{SystemException, SystemExceptionKind};
use chronorb_channel::Clock;
use chronorb_consumers::{ConsumerService, Consumers, EndCause, Trail, begin_push};
use chronorb_events::FIRST_USER_TYPE;
use chronorb_rt::log::{self, Level, Limit};
use chronorb_rt::{Gate, PiMutex};

use crate::admission::{Admission, AdmissionLedger};
use crate::consumer::{ConsumerConnection, ConsumerProxyState};
use crate::event::{Body, event_of, header_of};
use crate::face::{PushFace, PushTarget};
use crate::failure::{GONE, TOO_MANY};
use crate::fan_out::{self, FanOuts};
use crate::idl::rtec_event_comm::{EventSet, PushConsumer};
use crate::observers::{Kind, ObservedClients, Observers};
use crate::options::{ChannelOptions, ClientQuotas, UnpublishedPolicy, consumer_quotas};
use crate::supplier::{Leaves, Supplier, SupplierRecord, is_published};

/// A channel.
pub(crate) struct Channel {
    pub(crate) name: String,
    /// The key of the codes in the object ids of proxies.
    codes: RandomState,
    pub(crate) quotas: ClientQuotas,
    pub(crate) options: ChannelOptions,
    /// Admits clients by response times, if that is wanted.
    pub(crate) admission: Option<Arc<AdmissionLedger>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) poas: Poas,
    /// Filters events, and has them pushed by lanes or by the threads that receive them.
    pub(crate) events: chronorb_channel::Channel<Body>,
    /// The threads of the outboxes of each lane. There are none if consumers have no outboxes.
    pub(crate) outboxes: Box<[OutboxThread]>,
    /// The proxies of consumers.
    pub(crate) consumers: Consumers<Self>,
    /// The proxies of suppliers.
    pub(crate) suppliers: PiMutex<Suppliers>,
    /// The number of the client that connected last.
    last_number: AtomicU64,
    pub(crate) fan_outs: FanOuts,
    pub(crate) observers: Observers,
    pub(crate) life: Gate,
    pub(crate) totals: Totals,
    /// The time at which the channel was made.
    pub(crate) made: u64,
    pub(crate) this: Weak<Self>,
}

/// The object adapters of a channel.
pub(crate) struct Poas {
    pub(crate) channel: Poa,
    pub(crate) consumers: Poa,
    pub(crate) suppliers: Poa,
}

/// Counts of the whole channel, beside those of its consumers.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) received: AtomicU64,
    pub(crate) evicted: AtomicU64,
    /// The events that came back, and were dropped.
    pub(crate) returned: AtomicU64,
    /// The events that were lost before they were filtered for all consumers.
    pub(crate) lost: AtomicU64,
}

/// The proxies of suppliers.
#[derive(Default)]
pub(crate) struct Suppliers {
    pub(crate) by_number: BTreeMap<u64, SupplierRecord>,
    is_closed: bool,
}

/// The state of a channel that takes clients.
pub(crate) const RUNNING: u32 = 0;
/// The state of a channel whose owner has gone.
pub(crate) const STOPPED: u32 = 2;
/// The state of a destroyed channel.
pub(crate) const DESTROYED: u32 = 1;

impl Channel {
    pub(crate) fn new(
        name: String,
        options: ChannelOptions,
        admission: Option<Admission>,
        clock: Arc<dyn Clock>,
        poas: Poas,
        (events, outboxes): (chronorb_channel::Channel<Body>, Box<[OutboxThread]>),
    ) -> Arc<Self> {
        let orb = poas.channel.orb();
        let quotas = ClientQuotas::new(&orb, &options.limits);
        let octets = consumer_quotas(&orb, &options.limits);
        let consumers = Consumers::new(options.peers, octets, clock.clone());
        let admission = admission.map(|it| AdmissionLedger::new(it, &options.limits, &orb));
        Arc::new_cyclic(|this| Self {
            name,
            codes: RandomState::new(),
            quotas,
            made: clock.now(),
            options,
            admission,
            clock,
            poas,
            events,
            outboxes,
            consumers,
            suppliers: PiMutex::default(),
            last_number: AtomicU64::new(0),
            fan_outs: FanOuts::default(),
            observers: Observers::default(),
            life: Gate::new(RUNNING),
            totals: Totals::default(),
            this: this.clone(),
        })
    }

    /// Makes a record of a consumer and its object.
    pub(crate) fn add_consumer<T>(
        &self,
        origin: Origin,
        activate: impl FnOnce(u64) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let number = self.next_number();
        let proxy = ConsumerProxyState::default();
        self.consumers
            .add(number, origin, proxy, || activate(number))
    }

    /// A number that no client of the channel had before.
    fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes a record of a supplier and its object.
    pub(crate) fn add_supplier<T>(
        &self,
        origin: Origin,
        activate: impl FnOnce(u64, Arc<Supplier>) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let place = self.quotas.suppliers.charge(origin, 1).map_err(exceeded)?;
        let mut suppliers = self.suppliers.lock();
        if suppliers.is_closed {
            return Err(GONE);
        }
        let number = self.next_number();
        let supplier = Arc::new(Supplier::default());
        let activated = activate(number, supplier.clone())?;
        let record = SupplierRecord {
            place,
            made: self.clock.now(),
            supplier,
            connection: None,
            failures: 0,
            is_being_asked: false,
        };
        suppliers.by_number.insert(number, record);
        Ok(activated)
    }

    /// Takes the events of a push of a supplier. Those of a supplier that is not connected are
    /// ignored, and so are those that have passed this channel before.
    pub(crate) fn push(&self, supplier: &Supplier, events: EventSet<'_>, trail: &Trail) {
        let Some(publications) = supplier.publications() else {
            return supplier.count(0, events.len());
        };
        let number = events.len() as u64;
        if trail.ends_at(self.consumers.identifier()) {
            self.totals.returned.fetch_add(number, Ordering::Relaxed);
            return;
        }
        let _push = begin_push();
        let (mut unpublished, mut lost) = (0, 0);
        let mut work = self.options.limits.push_work;
        for event in events {
            let header = header_of(&event.header);
            if self.options.unpublished == UnpublishedPolicy::Dropped
                && !is_published(&publications, &header)
            {
                unpublished += 1;
                continue;
            }
            let is_taken = match event_of(event, trail) {
                Ok(event) => self.events.push_within(&event, &mut work),
                Err(_) => false,
            };
            lost += u64::from(!is_taken);
        }
        fan_out::send_deferred();
        supplier.count(events.len(), unpublished);
        self.totals.received.fetch_add(number, Ordering::Relaxed);
        if lost > 0 {
            self.totals.lost.fetch_add(lost, Ordering::Relaxed);
            let text = "lost events of a push: no memory, or too many subscriptions for its events";
            tell(Level::Warn, text, 0, &lost);
        }
    }

    pub(crate) fn set_suspended(
        &self,
        number: u64,
        suspended: bool,
    ) -> Result<(), SystemException> {
        self.consumers.with(number, |record| {
            if let Some(connection) = record.connection() {
                if suspended {
                    connection.subscription.suspend();
                } else {
                    connection.subscription.resume();
                }
            }
            Ok(())
        })
    }

    /// Ends the proxy of a consumer. No push begins after it has returned.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` if it has ended before.
    pub(crate) fn end_consumer(&self, number: u64, cause: EndCause) -> Result<(), SystemException> {
        let connection = self.consumers.remove(number)?.into_connection();
        if connection.as_ref().is_some_and(|it| !it.service.is_gateway) {
            self.observers.tell(Kind::Consumers);
        }
        self.deactivate(&self.poas.consumers, number);
        if let Some(connection) = connection {
            let consumer = connection.consumer.clone();
            self.consumers
                .disconnect(connection, cause != EndCause::Request);
            if cause == EndCause::Overflow {
                // The thread of a lane does not wait for the consumer.
                self.consumers
                    .calls()
                    .post(consumer.origin(), tell_end_of(&consumer));
            } else if cause == EndCause::Request && self.options.disconnect_callbacks {
                // The client has asked for its end, so it does not matter whether it is reached.
                let reference = PushConsumer::unchecked_narrow(consumer.callback());
                let _ = reference.disconnect_push_consumer();
            }
        }
        self.tell_end("disconnected an event consumer", number, cause);
        Ok(())
    }

    /// Ends the proxy of a supplier.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` if it has ended before.
    pub(crate) fn end_supplier(&self, number: u64, cause: EndCause) -> Result<(), SystemException> {
        let mut suppliers = self.suppliers.lock();
        let record = suppliers.by_number.remove(&number).ok_or(GONE)?;
        let connection = record.connection;
        if connection.as_ref().is_some_and(|it| !it.is_gateway) {
            self.observers.tell(Kind::Suppliers);
        }
        drop(suppliers);
        self.deactivate(&self.poas.suppliers, number);
        let reference = connection.and_then(|connection| connection.reference);
        if cause == EndCause::Request
            && self.options.disconnect_callbacks
            && let Some(reference) = reference
        {
            // As with a consumer.
            let _ = reference.disconnect_push_supplier();
        }
        self.tell_end("disconnected an event supplier", number, cause);
        Ok(())
    }

    /// The object id of a proxy: its number, and a code that cannot be guessed. So the number,
    /// which is no secret, is no right to disconnect a client, and a request costs nothing more.
    pub(crate) fn proxy_id(&self, number: u64) -> ObjectId {
        let code = self.codes.hash_one(number);
        ObjectId::from(format!("{number}-{code:016x}").as_str())
    }

    fn deactivate(&self, poa: &Poa, number: u64) {
        // The POA may be destroyed already.
        let _ = poa.deactivate_object(&self.proxy_id(number));
    }

    fn tell_end(&self, text: &'static str, number: u64, cause: EndCause) {
        match cause {
            EndCause::Request => tell(Level::Info, text, number, &"it asked for that"),
            EndCause::Unused => tell(Level::Info, text, number, &"it did not connect"),
            EndCause::Overflow => {
                self.totals.evicted.fetch_add(1, Ordering::Relaxed);
                tell(Level::Warn, text, number, &"its queue has overflowed");
            }
            EndCause::Failure(exception) => {
                self.totals.evicted.fetch_add(1, Ordering::Relaxed);
                tell(Level::Warn, text, number, &exception);
            }
        }
    }

    /// Ends all proxies and objects of the channel, and calls each client back once.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` if the channel was destroyed before.
    pub(crate) fn destroy(&self) -> Result<(), SystemException> {
        let consumers = self.consumers.close()?;
        let mut suppliers = self.suppliers.lock();
        suppliers.is_closed = true;
        let suppliers = std::mem::take(&mut suppliers.by_number);
        self.observers.clear();
        for id in [CHANNEL_ID, CONSUMER_ADMIN_ID, SUPPLIER_ADMIN_ID] {
            // One that is not active is what is wanted.
            let _ = self.poas.channel.deactivate_object(&ObjectId::from(id));
        }
        for &number in consumers.keys() {
            self.deactivate(&self.poas.consumers, number);
        }
        for &number in suppliers.keys() {
            self.deactivate(&self.poas.suppliers, number);
        }
        let round = self.consumers.calls().round();
        for record in consumers.into_values() {
            let Some(connection) = record.into_connection() else {
                continue;
            };
            let consumer = connection.consumer.clone();
            self.consumers.disconnect(connection, true);
            round.post(consumer.origin(), tell_end_of(&consumer));
        }
        for record in suppliers.into_values() {
            let origin = record.place.origin();
            let reference = record
                .connection
                .and_then(|connection| connection.reference);
            if let Some(reference) = reference {
                round.post(origin, move || {
                    let _ = reference.disconnect_push_supplier();
                });
            }
        }
        // Clients that hang share this time. They are disconnected all the same.
        round.wait(2 * self.options.peers.check_timeout);
        self.life.set(DESTROYED);
        self.consumers.stop();
        self.events.close();
        tell(Level::Info, "destroyed an event channel", 0, &"");
        Ok(())
    }
}

impl Channel {
    /// Ends the threads of the channel.
    pub(crate) fn stop(&self) {
        // A channel that was destroyed stays so.
        let _ = self.life.compare_set(RUNNING, STOPPED);
        self.consumers.stop();
        self.events.close();
        self.observers.clear();
    }
}

impl ConsumerService for Channel {
    type Face = PushFace;
    type Proxy = ConsumerProxyState;
    type Connection = ConsumerConnection;

    fn consumers(&self) -> &Consumers<Self> {
        &self.consumers
    }

    fn evict_consumer(&self, number: u64, cause: EndCause) {
        // Another thread may have ended it.
        let _ = self.end_consumer(number, cause);
    }
}

impl Suppliers {
    /// The sources and types that observers are told.
    fn leaves(&self) -> Vec<Leaves> {
        let observed = self.by_number.values().filter(|record| {
            let connection = record.connection.as_ref();
            connection.is_some_and(|connection| !connection.is_gateway)
        });
        observed
            .filter_map(|record| record.supplier.publications())
            .collect()
    }
}

impl ObservedClients for Channel {
    fn leaves(&self, kind: Kind) -> Leaves {
        // Sorted without the lock.
        let mut leaves = Vec::new();
        match kind {
            Kind::Consumers => self.consumers.visit(0, usize::MAX, |_, record| {
                let connection = record.connection().map(|connection| &connection.service);
                let observed = connection.filter(|connection| !connection.is_gateway);
                leaves.extend(observed.map(|connection| connection.leaves.clone()));
            }),
            Kind::Suppliers => leaves = self.suppliers.lock().leaves(),
        }
        merged(leaves.iter().flat_map(|leaves| leaves.iter().copied()))
    }
}

/// Returns the short call by which a consumer is told its end, also if it has not answered yet.
fn tell_end_of(consumer: &PushTarget) -> impl FnOnce() + Send + 'static {
    let reference = PushConsumer::unchecked_narrow(consumer.callback());
    move || {
        // A consumer that is not reached is disconnected all the same.
        let _ = reference.disconnect_push_consumer();
    }
}

/// The object id of the channel.
pub(crate) const CHANNEL_ID: &str = "Channel";
/// The object id of the factory of consumers' proxies.
pub(crate) const CONSUMER_ADMIN_ID: &str = "ConsumerAdmin";
/// The object id of the factory of suppliers' proxies.
pub(crate) const SUPPLIER_ADMIN_ID: &str = "SupplierAdmin";

/// Returns sources and types in ascending order, each once, without reserved types.
fn merged(leaves: impl IntoIterator<Item = (i32, i32)>) -> Leaves {
    let is_user = |&(_, event_type): &(i32, i32)| !(1..FIRST_USER_TYPE).contains(&event_type);
    let mut merged: Vec<_> = leaves.into_iter().filter(is_user).collect();
    merged.sort_unstable();
    merged.dedup();
    merged.into()
}

/// The exception of what a quota has refused. It was logged.
pub(crate) fn exceeded(_: QuotaError) -> SystemException {
    TOO_MANY
}

/// Reports an event of a client to the log of the application.
pub(crate) fn tell(level: Level, cause: &'static str, number: u64, detail: &dyn std::fmt::Display) {
    log::tell(&log::Event {
        level,
        cause,
        peer: &number,
        number: 0,
        detail,
        limit: Limit::PEER,
    });
}

/// The system exception of an operation of the POA.
pub(crate) fn no_resources<E>(_: E) -> SystemException {
    crate::failure::system(SystemExceptionKind::NoResources)
}
