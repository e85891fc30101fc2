//! The state of a channel, which its servants and threads share.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use chronorb::monitor::{ChannelSnapshot, ChannelSource, QueueSnapshot};
use chronorb::outbox::OutboxThread;
use chronorb::poa::{ObjectId, Poa};
use chronorb::quota::{Origin, Quota, QuotaError};
use chronorb::{Object, SystemException, SystemExceptionKind};
use chronorb_channel::{Budget, Clock, SubscribeError, Subscription};
use chronorb_events::{FIRST_USER_TYPE, Filter, Program, read_entries};
use chronorb_giop::{TAG_DIOP, TAG_UIPMC};
use chronorb_rt::log::{self, Level, Limit};
use chronorb_rt::{Deadline, Gate, PiMutex};

use crate::admission::{
    Admission, AdmissionLedger, AdmissionPolicy, ConsumerLoad, NOT_ADMITTED, OperationNeeds,
    PublishedStream, Verdict,
};
use crate::consumer::{ConsumerConnection, ConsumerQueue, ConsumerRecord};
use crate::event::{Body, entry_of, event_of, header_of};
use crate::face::{ConsumerHandle, PushFace, PushTarget};
use crate::failure::{BAD_PARAM, GONE, TOO_MANY};
use crate::fan_out::{self, FanOutPlace, FanOuts};
use crate::idl::chronorb_events::{ConsumerStatisticsBuf, FanOutConsumer};
use crate::idl::rtec_event_channel_admin::{ConsumerQOS, SupplierQOS};
use crate::idl::rtec_event_comm::{EventSet, PushConsumer, PushSupplier};
use crate::observers::{Kind, ObservedClients, Observers};
use crate::options::{ChannelOptions, ClientQuotas, QueueOptions, UnpublishedPolicy};
use crate::remote::{
    ConsumerOwner, OctetShare, OutboxSource, PeerCalls, PeerSettings, Trail, begin_push,
    requests_ahead,
};
use crate::servants::StatisticsPage;
use crate::supplier::{Leaves, Supplier, SupplierConnection, SupplierRecord, is_published};

/// A channel.
pub(crate) struct Channel {
    pub(crate) name: String,
    /// The identifier of the channel in the trails of events.
    identifier: u64,
    pub(crate) quotas: ClientQuotas,
    /// Calls clients that may not answer.
    pub(crate) calls: PeerCalls,
    pub(crate) options: ChannelOptions,
    /// Admits clients by response times, if that is wanted.
    admission: Option<Arc<AdmissionLedger>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) poas: Poas,
    /// Filters events, and has them pushed by lanes or by the threads that receive them.
    pub(crate) events: chronorb_channel::Channel<Body>,
    /// The threads of the outboxes of each lane. There are none if consumers have no outboxes.
    outboxes: Box<[OutboxThread]>,
    pub(crate) clients: PiMutex<Clients>,
    fan_outs: FanOuts,
    pub(crate) observers: Observers,
    /// Advances when events of a consumer are held, when one is to be told its end, and at the end.
    pub(crate) links: Gate,
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

/// Counts of the whole channel.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) received: AtomicU64,
    pub(crate) evicted: AtomicU64,
    /// The events that came back, and were dropped.
    pub(crate) returned: AtomicU64,
    /// Those of consumers that are not connected any more.
    pub(crate) sets: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) lost: AtomicU64,
}

/// The proxies of a channel.
#[derive(Default)]
pub(crate) struct Clients {
    pub(crate) consumers: BTreeMap<u64, ConsumerRecord>,
    pub(crate) suppliers: BTreeMap<u64, SupplierRecord>,
    last_number: u64,
    is_destroyed: bool,
}

/// The state of a channel that takes clients.
pub(crate) const RUNNING: u32 = 0;
/// The state of a channel whose owner has gone.
pub(crate) const STOPPED: u32 = 2;
/// The state of a destroyed channel.
pub(crate) const DESTROYED: u32 = 1;

/// The reason for the end of a client's connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EndCause {
    /// The client asked for it.
    Request,
    /// The client is not reached.
    Failure(SystemException),
    /// The client did not connect in time.
    Unused,
    /// The client's queue overflowed, and that is its policy.
    Overflow,
}

/// Counts of a connected consumer since it connected.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ConnectionCounts {
    /// The sets that were given to the consumer.
    pub(crate) sets: u64,
    /// The events in these sets.
    pub(crate) events: u64,
    /// The events that were lost.
    pub(crate) lost: u64,
    /// The events that wait.
    pub(crate) queued: u64,
    /// The waits for another period of its budget.
    pub(crate) pauses: u64,
}

/// The place of a consumer among those of its channel.
#[derive(Clone, Copy, Debug)]
struct LanePlace {
    lane: usize,
    subpriority: i32,
    /// The time that it may use of its lane.
    budget: Option<Budget>,
}

/// The connection error of a proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ConnectFailure {
    AlreadyConnected,
    System(SystemException),
}

impl From<SystemException> for ConnectFailure {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl Channel {
    pub(crate) fn new(
        name: String,
        options: ChannelOptions,
        admission: Option<Admission>,
        clock: Arc<dyn Clock>,
        poas: Poas,
        (events, outboxes): (chronorb_channel::Channel<Body>, Box<[OutboxThread]>),
    ) -> Arc<Self> {
        let quotas = ClientQuotas::new(&poas.channel.orb(), &options.limits);
        Arc::new_cyclic(|this| Self {
            name,
            // Random, so that nobody ends the events of others by its identifier.
            identifier: RandomState::new().hash_one(0),
            quotas,
            calls: PeerCalls::default(),
            made: clock.now(),
            options,
            admission: admission.map(|it| AdmissionLedger::new(it, &poas.channel.orb())),
            clock,
            poas,
            events,
            outboxes,
            clients: PiMutex::default(),
            fan_outs: FanOuts::default(),
            observers: Observers::default(),
            links: Gate::new(0),
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
        let place = self.quotas.consumers.charge(origin, 1).map_err(exceeded)?;
        let octets = self.quotas.octets.charge(origin, 0).map_err(exceeded)?;
        let mut clients = self.clients.lock();
        let number = clients.next_number()?;
        let activated = activate(number)?;
        let record = ConsumerRecord {
            octets: Arc::new(OctetShare::new(octets, self.options.limits.consumer_octets)),
            _place: place,
            made: self.clock.now(),
            queue: None,
            fan_out: None,
            shortfall: String::new(),
            connection: None,
        };
        clients.consumers.insert(number, record);
        Ok(activated)
    }

    /// Makes a record of a supplier and its object.
    pub(crate) fn add_supplier<T>(
        &self,
        origin: Origin,
        activate: impl FnOnce(u64, Arc<Supplier>) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let place = self.quotas.suppliers.charge(origin, 1).map_err(exceeded)?;
        let mut clients = self.clients.lock();
        let number = clients.next_number()?;
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
        clients.suppliers.insert(number, record);
        Ok(activated)
    }

    /// Sets the queue of a consumer that is not connected yet.
    pub(crate) fn set_queue(
        &self,
        number: u64,
        queue: ConsumerQueue,
    ) -> Result<(), ConnectFailure> {
        let (limits, options) = (&self.options.limits, &queue.options);
        if options.capacity == 0 || options.capacity > limits.queue || options.block > limits.block
        {
            return Err(BAD_PARAM.into());
        }
        let mut clients = self.clients.lock();
        let record = clients.consumers.get_mut(&number).ok_or(GONE)?;
        if record.connection.is_some() {
            return Err(ConnectFailure::AlreadyConnected);
        }
        record.queue = Some(queue);
        Ok(())
    }

    /// Sets the object that takes the events of a consumer that is not connected yet.
    pub(crate) fn set_fan_out(
        &self,
        number: u64,
        target: Option<&FanOutConsumer>,
        member: u32,
    ) -> Result<(), ConnectFailure> {
        let target = target.ok_or(BAD_PARAM)?;
        let orb = self.poas.channel.orb();
        let target = self.fan_outs.of(&orb, target, &self.options.peers)?;
        let mut clients = self.clients.lock();
        let record = clients.consumers.get_mut(&number).ok_or(GONE)?;
        if record.connection.is_some() {
            return Err(ConnectFailure::AlreadyConnected);
        }
        record.fan_out = Some(FanOutPlace { target, member });
        Ok(())
    }

    pub(crate) fn connect_consumer(
        &self,
        number: u64,
        consumer: Option<&PushConsumer>,
        qos: &ConsumerQOS<'_>,
    ) -> Result<(), ConnectFailure> {
        let consumer = consumer.ok_or(BAD_PARAM)?.as_object();
        self.check_reference(number, consumer)?;
        let filter = self.filter(number, qos)?;
        let record = |clients: &Clients| {
            let record = clients.consumers.get(&number).ok_or(GONE)?;
            let is_taken = record.connection.is_some() && !self.options.consumer_reconnect;
            if is_taken {
                return Err(ConnectFailure::AlreadyConnected);
            }
            let connection = record.connection.as_ref();
            let before = connection.and_then(|it| Some(it.admitted.as_ref()?.ticket()));
            Ok((
                record.queue,
                record.fan_out.clone(),
                record.octets.clone(),
                before,
            ))
        };
        let (queue, fan_out, octets, before) = record(&self.clients.lock())?;
        let origin = octets.origin();
        let charge = |quota: &Arc<Quota>, amount| quota.charge(origin, amount).map_err(exceeded);
        let uses = [
            charge(&self.quotas.nodes, filter.nodes() as u64)?,
            charge(&self.quotas.firings, filter.firings_per_second())?,
        ];
        let needs = self.needs_of(qos)?;
        let (lane, subpriority) = match &needs {
            // In the channel lower ones are more urgent.
            Some(needs) => (
                self.own_lane(needs.lane),
                needs.subpriority.saturating_neg(),
            ),
            None => (self.lane_of(qos), 0),
        };
        let lanes = self.options.lanes.len().max(1);
        let place = LanePlace {
            lane,
            subpriority,
            budget: needs.and_then(|needs| needs.budget()),
        };
        let load = needs.and_then(|needs| ConsumerLoad::new(&filter, &needs, lane, lanes));
        let outboxes = self.outboxes.get(lane).zip(self.options.outboxes);
        let outboxes = outboxes.map(|(thread, limits)| OutboxSource {
            thread: thread.clone(),
            limits,
        });
        let owner: Weak<dyn ConsumerOwner> = self.this.clone();
        let settings = PeerSettings {
            number,
            origin,
            channel: self.identifier,
            outboxes,
            has_queue: queue.is_some(),
            tells_losses: queue.is_some_and(|queue| queue.tells_losses),
            octets: octets.clone(),
            owner,
        };
        let face = PushFace {
            // A shared message would count for the budget of one of its consumers.
            fan_out: fan_out.filter(|_| place.budget.is_none() && settings.outboxes.is_none()),
        };
        let consumer = match self
            .connected(number)
            .filter(|it| it.has_reference(consumer))
        {
            // It need not answer again.
            Some(present) => present,
            None => PushTarget::new(consumer, face, &self.options.peers, settings)?,
        };
        let handle = ConsumerHandle(consumer.clone());

        // No lock is held for the analysis.
        let Verdict {
            shortfall,
            admitted,
        } = self.admit_consumer(origin, load, before)?;
        let mut clients = self.clients.lock();
        record(&clients)?;
        let record = clients.consumers.get_mut(&number).ok_or(GONE)?;
        record.shortfall.clone_from(&shortfall);
        if !shortfall.is_empty() {
            self.judge(
                "an event subscription may miss deadlines",
                number,
                &shortfall,
            )?;
        }
        let (subscription, before) = match record.connection.take() {
            None => {
                let subscription = self.subscribe(place, &filter, queue, handle, octets);
                (subscription.map_err(|error| refused(number, &error))?, None)
            }
            Some(mut before) => {
                if let Err(error) = before.subscription.replace(&filter, handle) {
                    record.connection = Some(before);
                    return Err(refused(number, &error).into());
                }
                if !Arc::ptr_eq(&consumer, &before.consumer) {
                    let lost = consumer.succeed(&before.consumer);
                    self.totals.lost.fetch_add(lost, Ordering::Relaxed);
                }
                (before.subscription, Some(before.is_gateway))
            }
        };
        let is_observed = !qos.is_gateway || before == Some(false);
        consumer.set_waker(subscription.waker());
        if consumer.is_held() {
            self.links.advance();
        }
        record.connection = Some(ConsumerConnection {
            leaves: subscription.leaves().into(),
            subscription,
            consumer,
            filter: shortened(filter.to_string()),
            is_gateway: qos.is_gateway,
            admitted,
            _uses: uses,
        });
        if is_observed {
            self.observers.tell(Kind::Consumers);
        }
        drop(clients);
        tell(Level::Info, "connected an event consumer", number, &filter);
        Ok(())
    }

    /// Returns the consumer that is connected to a proxy.
    fn connected(&self, number: u64) -> Option<Arc<PushTarget>> {
        let clients = self.clients.lock();
        let connection = clients.consumers.get(&number)?.connection.as_ref()?;
        Some(connection.consumer.clone())
    }

    /// Subscribes a consumer to a lane, or to the threads that receive events.
    fn subscribe(
        &self,
        place: LanePlace,
        filter: &Filter,
        queue: Option<ConsumerQueue>,
        consumer: ConsumerHandle,
        octets: Arc<OctetShare>,
    ) -> Result<Subscription<Body>, SubscribeError> {
        let options = &self.options;
        let subscription = self.events.subscribe(filter.clone()).allowance(octets);
        let mut subscription = subscription.subpriority(place.subpriority);
        if let Some(budget) = place.budget {
            subscription = subscription.budget(budget);
        }
        let lane = place.lane;
        let has_lanes = !options.lanes.is_empty() || options.outboxes.is_some();
        if !has_lanes && queue.is_none() {
            return subscription.call_inline(lane, consumer);
        }
        let before = |limits| QueueOptions::before(limits, requests_ahead(limits));
        let of_lane = || options.lanes.get(lane).map(|lane| lane.queue);
        let queue = queue.map(|queue| queue.options);
        let queue = queue.or_else(|| options.outboxes.map(before));
        let queue = queue.or_else(of_lane).unwrap_or_default();
        let subscription = subscription.queue(queue.capacity, queue.overflow);
        subscription.block_for(queue.block).call_on(lane, consumer)
    }

    /// Admits a consumer with a load, of this origin, in place of the one with a ticket.
    fn admit_consumer(
        &self,
        origin: Origin,
        load: Option<ConsumerLoad>,
        before: Option<u64>,
    ) -> Result<Verdict, SystemException> {
        match self.admission.as_ref().zip(load) {
            Some((ledger, load)) => ledger.admit_consumer(origin, load, before),
            None => Ok(Verdict::default()),
        }
    }

    /// Admits a supplier of this origin with publications that have periods.
    fn admit_supplier(
        &self,
        origin: Origin,
        number: u64,
        streams: Vec<PublishedStream>,
    ) -> Result<Verdict, ConnectFailure> {
        let ledger = self.admission.as_ref().filter(|_| !streams.is_empty());
        let Some(ledger) = ledger else {
            return Ok(Verdict::default());
        };
        let clients = self.clients.lock();
        let record = clients.suppliers.get(&number).ok_or(GONE)?;
        let connection = record.connection.as_ref();
        if connection.is_some() && !self.options.supplier_reconnect {
            return Err(ConnectFailure::AlreadyConnected);
        }
        let before = connection.and_then(|it| Some(it.admitted.as_ref()?.ticket()));
        drop(clients);
        Ok(ledger.admit_supplier(origin, streams, before)?)
    }

    /// Returns the needs of a consumer, if clients are admitted by them.
    fn needs_of(&self, qos: &ConsumerQOS<'_>) -> Result<Option<OperationNeeds>, SystemException> {
        let handles = qos.dependencies.iter().map(|dependency| dependency.rt_info);
        let admission = self.admission.as_ref();
        let needs = admission.map(|admission| admission.settings.of_consumer(handles));
        needs.transpose()
    }

    /// Refuses a client with which deadlines could be missed, or reports it.
    fn judge(
        &self,
        cause: &'static str,
        number: u64,
        shortfall: &str,
    ) -> Result<(), SystemException> {
        tell(Level::Warn, cause, number, &shortfall);
        let policy = self.admission.as_ref().map(|it| it.settings.policy);
        if policy == Some(AdmissionPolicy::Refuse) {
            return Err(NOT_ADMITTED);
        }
        Ok(())
    }

    /// Returns the time that was missing for the last connection of a consumer.
    pub(crate) fn shortfall(&self, number: u64) -> Result<String, SystemException> {
        let clients = self.clients.lock();
        let record = clients.consumers.get(&number).ok_or(GONE)?;
        Ok(record.shortfall.clone())
    }

    /// The lane with this index, or the last one.
    fn own_lane(&self, lane: Option<usize>) -> usize {
        let last = self.options.lanes.len().saturating_sub(1);
        lane.unwrap_or(last).min(last)
    }

    /// The lane of a consumer: the first number of its dependencies that is not 0, from 1.
    fn lane_of(&self, qos: &ConsumerQOS<'_>) -> usize {
        let last = self.options.lanes.len().saturating_sub(1);
        let mut infos = qos.dependencies.iter().map(|dependency| dependency.rt_info);
        let info = infos.find(|info| *info != 0).unwrap_or(0);
        let lane = usize::try_from(info.wrapping_sub(1)).unwrap_or(last);
        lane.min(last)
    }

    /// Refuses a consumer to which events would come back, or whose address proves nothing.
    fn check_reference(&self, number: u64, consumer: &Object) -> Result<(), SystemException> {
        let is_own = [&self.poas.suppliers, &self.poas.consumers];
        let refused = if is_own
            .iter()
            .any(|poa| poa.reference_to_id(consumer).is_ok())
        {
            "it is an object of the channel itself"
        } else if !self.options.datagram_consumers && is_reached_by_datagrams(consumer) {
            "it is reached by datagrams, which the options of the channel do not allow"
        } else {
            return Ok(());
        };
        tell(Level::Warn, "refused an event consumer", number, &refused);
        Err(BAD_PARAM)
    }

    /// Reads a subscription.
    fn filter(&self, number: u64, qos: &ConsumerQOS<'_>) -> Result<Filter, SystemException> {
        let limits = &self.options.limits.subscription;
        // Each node has at most three entries, so more are too many without being read.
        let most = limits.nodes.saturating_mul(3) + 1;
        let entries: Vec<_> = (qos.dependencies.iter().take(most))
            .map(|dependency| entry_of(&dependency.event.header))
            .collect();
        let filter = read_entries(&entries, self.options.notation, limits);
        let checked = filter.and_then(|filter| {
            Program::compile(&filter, self.options.rules, limits)?;
            Ok(filter)
        });
        checked.map_err(|error| refused(number, &error.into()))
    }

    pub(crate) fn connect_supplier(
        &self,
        number: u64,
        supplier: Option<&PushSupplier>,
        qos: &SupplierQOS<'_>,
    ) -> Result<(), ConnectFailure> {
        if qos.publications.len() > self.options.limits.publications {
            return Err(BAD_PARAM.into());
        }
        let reference = supplier.map(|supplier| {
            let object = supplier.as_object();
            let object = object.with_timeout(self.options.peers.check_timeout);
            PushSupplier::unchecked_narrow(&object)
        });
        let streams = self.streams_of(qos)?;
        let mut publications: Vec<_> = (qos.publications.iter())
            .map(|publication| header_of(&publication.event.header))
            .map(|header| (header.source, header.event_type))
            .collect();
        publications.sort_unstable();
        publications.dedup();
        let origin = |clients: &Clients| {
            let record = clients.suppliers.get(&number).ok_or(GONE)?;
            Ok::<_, SystemException>(record.place.origin())
        };
        let origin = origin(&self.clients.lock())?;
        let uses = self
            .quotas
            .publications
            .charge(origin, publications.len() as u64);
        let uses = uses.map_err(exceeded)?;
        // No lock is held for the analysis.
        let Verdict {
            shortfall,
            admitted,
        } = self.admit_supplier(origin, number, streams)?;
        let mut clients = self.clients.lock();
        let record = clients.suppliers.get_mut(&number).ok_or(GONE)?;
        if record.connection.is_some() && !self.options.supplier_reconnect {
            return Err(ConnectFailure::AlreadyConnected);
        }
        if !shortfall.is_empty() {
            self.judge(
                "an event supplier may make consumers late",
                number,
                &shortfall,
            )?;
        }
        let record = clients.suppliers.get_mut(&number).ok_or(GONE)?;
        let before = record.connection.as_ref();
        let is_observed = !qos.is_gateway || before.is_some_and(|before| !before.is_gateway);
        record.supplier.publish(publications);
        record.failures = 0;
        record.connection = Some(SupplierConnection {
            reference,
            is_gateway: qos.is_gateway,
            admitted,
            _uses: uses,
        });
        if is_observed {
            self.observers.tell(Kind::Suppliers);
        }
        drop(clients);
        tell(Level::Info, "connected an event supplier", number, &"");
        Ok(())
    }

    /// Returns the publications of a supplier that have periods, if clients are admitted by them.
    fn streams_of(&self, qos: &SupplierQOS<'_>) -> Result<Vec<PublishedStream>, SystemException> {
        let publications = qos.publications.iter().map(|publication| {
            let info = &publication.dependency_info;
            let header = header_of(&publication.event.header);
            (header, info.rt_info, info.number_of_calls)
        });
        let admission = self.admission.as_ref();
        let streams = admission.map(|admission| admission.settings.streams_of(publications));
        Ok(streams.transpose()?.unwrap_or_default())
    }

    /// Takes the events of a push of a supplier. Those of a supplier that is not connected are
    /// ignored, and so are those that have passed this channel before.
    pub(crate) fn push(&self, supplier: &Supplier, events: EventSet<'_>, trail: &Trail) {
        let Some(publications) = supplier.publications() else {
            return supplier.count(0, events.len());
        };
        let number = events.len() as u64;
        if trail.ends_at(self.identifier) {
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
        let mut clients = self.clients.lock();
        let record = clients.consumers.get_mut(&number).ok_or(GONE)?;
        if let Some(connection) = &record.connection {
            if suspended {
                connection.subscription.suspend();
            } else {
                connection.subscription.resume();
            }
        }
        Ok(())
    }

    /// Ends the proxy of a consumer. No push begins after it has returned.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` if it has ended before.
    pub(crate) fn end_consumer(&self, number: u64, cause: EndCause) -> Result<(), SystemException> {
        let mut clients = self.clients.lock();
        let record = clients.consumers.remove(&number).ok_or(GONE)?;
        let connection = record.connection;
        if connection.as_ref().is_some_and(|it| !it.is_gateway) {
            self.observers.tell(Kind::Consumers);
        }
        drop(clients);
        deactivate(&self.poas.consumers, number);
        if let Some(connection) = connection {
            let consumer = connection.consumer.clone();
            self.disconnect(connection, cause != EndCause::Request);
            if cause == EndCause::Overflow {
                // The thread of a lane does not wait for the consumer.
                self.call_back(&consumer, || ());
            } else if cause == EndCause::Request && self.options.disconnect_callbacks {
                // The client has asked for its end, so it does not matter whether it is reached.
                let _ = PushConsumer::unchecked_narrow(&consumer.check).disconnect_push_consumer();
            }
        }
        self.tell_end("disconnected an event consumer", number, cause);
        Ok(())
    }

    /// Tells a consumer its end, if it has ever answered. Calls `then` afterwards, and does not wait.
    fn call_back(&self, consumer: &Arc<PushTarget>, then: impl FnOnce() + Send + 'static) {
        if consumer.has_answered() {
            let reference = PushConsumer::unchecked_narrow(&consumer.check);
            self.calls.post(consumer.origin(), move || {
                // A consumer that is not reached is disconnected all the same.
                let _ = reference.disconnect_push_consumer();
                then();
            });
        }
    }

    /// Ends the connection of a consumer, and keeps its counts. Events that wait are lost, if the
    /// consumer `would_take` them.
    fn disconnect(&self, connection: ConsumerConnection, would_take: bool) {
        let ConsumerConnection {
            mut subscription,
            consumer,
            ..
        } = connection;
        let deadline = Deadline::after(PATIENCE);
        subscription.end_within(PATIENCE);
        // What is deferred was pushed before, for the subscription.
        consumer.gate.close();
        consumer.gate.wait(deadline);
        let counts = counts(&subscription, &consumer);
        consumer.clear();
        let totals = &self.totals;
        totals.sets.fetch_add(counts.sets, Ordering::Relaxed);
        totals.events.fetch_add(counts.events, Ordering::Relaxed);
        let waiting = if would_take { counts.queued } else { 0 };
        let lost = counts.lost + waiting;
        totals.lost.fetch_add(lost, Ordering::Relaxed);
    }

    /// Ends the proxy of a supplier.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` if it has ended before.
    pub(crate) fn end_supplier(&self, number: u64, cause: EndCause) -> Result<(), SystemException> {
        let mut clients = self.clients.lock();
        let record = clients.suppliers.remove(&number).ok_or(GONE)?;
        let connection = record.connection;
        if connection.as_ref().is_some_and(|it| !it.is_gateway) {
            self.observers.tell(Kind::Suppliers);
        }
        drop(clients);
        deactivate(&self.poas.suppliers, number);
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
        let mut clients = self.clients.lock();
        if std::mem::replace(&mut clients.is_destroyed, true) {
            return Err(GONE);
        }
        let consumers = std::mem::take(&mut clients.consumers);
        let suppliers = std::mem::take(&mut clients.suppliers);
        drop(clients);
        self.observers.clear();
        for id in [CHANNEL_ID, CONSUMER_ADMIN_ID, SUPPLIER_ADMIN_ID] {
            // One that is not active is what is wanted.
            let _ = self.poas.channel.deactivate_object(&ObjectId::from(id));
        }
        for &number in consumers.keys() {
            deactivate(&self.poas.consumers, number);
        }
        for &number in suppliers.keys() {
            deactivate(&self.poas.suppliers, number);
        }
        // Sent, or dropped with the call, at the end of each.
        let (ended, ends) = mpsc::channel::<()>();
        for record in consumers.into_values() {
            let Some(connection) = record.connection else {
                continue;
            };
            let (consumer, ended) = (connection.consumer.clone(), ended.clone());
            self.disconnect(connection, true);
            self.call_back(&consumer, move || drop(ended));
        }
        for record in suppliers.into_values() {
            let origin = record.place.origin();
            let reference = record
                .connection
                .and_then(|connection| connection.reference);
            if let Some(reference) = reference {
                let ended = ended.clone();
                self.calls.post(origin, move || {
                    let _ = reference.disconnect_push_supplier();
                    drop(ended);
                });
            }
        }
        drop(ended);
        // Clients that hang share this time. They are disconnected all the same.
        let _ = ends.recv_timeout(2 * self.options.peers.check_timeout);
        self.life.set(DESTROYED);
        self.events.close();
        self.calls.end();
        self.links.advance();
        tell(Level::Info, "destroyed an event channel", 0, &"");
        Ok(())
    }
}

impl Channel {
    /// Ends the threads of the channel.
    pub(crate) fn stop(&self) {
        // A channel that was destroyed stays so.
        let _ = self.life.compare_set(RUNNING, STOPPED);
        self.events.close();
        self.calls.end();
        self.observers.clear();
        self.links.advance();
    }
}

impl ChannelSource for Channel {
    fn snapshot(&self) -> ChannelSnapshot {
        let statistics = self.statistics(StatisticsPage::ALL);
        let queue = |it: &ConsumerStatisticsBuf| QueueSnapshot {
            number: it.number,
            subscription: it.subscription.clone(),
            is_suspended: it.is_suspended,
            events: it.events,
            lost: it.lost,
            queued: it.queued.into(),
        };
        ChannelSnapshot {
            name: self.name.clone(),
            received: statistics.received,
            delivered: statistics.delivered,
            lost: statistics.lost,
            evicted: statistics.evicted,
            suppliers: statistics.suppliers.len() as u64,
            consumers: statistics.consumers.len() as u64,
            queues: statistics.consumers.iter().map(queue).collect(),
        }
    }
}

impl ConsumerOwner for Channel {
    fn evict_consumer(&self, number: u64, cause: SystemException) {
        // Another thread may have ended it.
        let _ = self.end_consumer(number, EndCause::Failure(cause));
    }

    fn drop_consumer(&self, number: u64) {
        // At the end of the channel its consumers are told otherwise.
        if self.life.get() == RUNNING {
            let _ = self.end_consumer(number, EndCause::Overflow);
        }
    }

    fn reach_consumers(&self) {
        self.links.advance();
    }
}

/// Returns the counts of a consumer. Each event that passed its filter was taken by its connection,
/// is lost, or waits.
pub(crate) fn counts(subscription: &Subscription<Body>, consumer: &PushTarget) -> ConnectionCounts {
    let status = subscription.status();
    let failed = consumer.lost.load(Ordering::Relaxed);
    let waiting = consumer.waiting() as u64;
    ConnectionCounts {
        sets: status.sets,
        events: status.events.saturating_sub(failed + waiting),
        lost: status.lost + failed,
        queued: status.queued as u64 + waiting,
        pauses: status.pauses,
    }
}

impl Clients {
    fn next_number(&mut self) -> Result<u64, SystemException> {
        if self.is_destroyed {
            return Err(GONE);
        }
        self.last_number += 1;
        Ok(self.last_number)
    }

    /// The sources and types of a kind of clients that observers are told.
    fn leaves(&self, kind: Kind) -> Vec<Leaves> {
        match kind {
            Kind::Consumers => {
                let connections = self
                    .consumers
                    .values()
                    .filter_map(|it| it.connection.as_ref());
                let observed = connections.filter(|connection| !connection.is_gateway);
                observed
                    .map(|connection| connection.leaves.clone())
                    .collect()
            }
            Kind::Suppliers => {
                let observed = self.suppliers.values().filter(|record| {
                    let connection = record.connection.as_ref();
                    connection.is_some_and(|connection| !connection.is_gateway)
                });
                observed
                    .filter_map(|record| record.supplier.publications())
                    .collect()
            }
        }
    }
}

impl ObservedClients for Channel {
    fn leaves(&self, kind: Kind) -> Leaves {
        // Sorted without the lock.
        let leaves = self.clients.lock().leaves(kind);
        merged(leaves.iter().flat_map(|leaves| leaves.iter().copied()))
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

/// Whether an object is a group, or may be reached by datagrams, whose source proves nothing.
fn is_reached_by_datagrams(object: &Object) -> bool {
    let mut profiles = object.ior().profiles.iter();
    profiles.any(|profile| matches!(profile.tag, TAG_UIPMC | TAG_DIOP))
}

/// Cuts the text of a subscription, which may be long, for answers about many of them.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MOST_TEXT) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The exception of what a quota has refused. It was logged.
pub(crate) fn exceeded(_: QuotaError) -> SystemException {
    TOO_MANY
}

/// The characters of a subscription that answers have.
const MOST_TEXT: usize = 200;

/// The object id of a proxy.
pub(crate) fn proxy_id(number: u64) -> ObjectId {
    ObjectId::from(number.to_string().as_str())
}

fn deactivate(poa: &Poa, number: u64) {
    // The POA may be destroyed already.
    let _ = poa.deactivate_object(&proxy_id(number));
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

/// The exception of a subscription that is refused, for this reason.
fn refused(number: u64, error: &SubscribeError) -> SystemException {
    tell(Level::Warn, "refused an event subscription", number, error);
    match error {
        SubscribeError::Closed => GONE,
        SubscribeError::TooMany { .. } => TOO_MANY,
        _ => BAD_PARAM,
    }
}

/// The longest time that a disconnection waits for pushes in progress: a consumer may call another
/// process that disconnects it, and wait for the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The system exception of an operation of the POA.
pub(crate) fn no_resources<E>(_: E) -> SystemException {
    crate::failure::system(SystemExceptionKind::NoResources)
}
