//! The connections of clients: what they ask for, and what they are refused.

use std::sync::Arc;

use chronorb::quota::{Origin, Quota};
use chronorb::{Call, Object, SystemException};
use chronorb_channel::{Budget, SubscribeError, Subscription};
use chronorb_consumers::{
    ConsumerRecord, ConsumerSettings, OctetShare, OutboxSource, requests_ahead,
};
use chronorb_events::{Filter, Program, read_entries};
use chronorb_giop::{TAG_DIOP, TAG_UIPMC};
use chronorb_rt::log::Level;

use crate::admission::{
    AdmissionPolicy, ConsumerLoad, NOT_ADMITTED, OperationNeeds, PublishedStream, Verdict,
};
use crate::consumer::{ConsumerConnection, ConsumerQueue};
use crate::event::{Body, entry_of, header_of};
use crate::face::{ConsumerHandle, PushFace};
use crate::failure::{BAD_PARAM, GONE, TOO_MANY};
use crate::fan_out::FanOutPlace;
use crate::idl::chronorb_events::FanOutConsumer;
use crate::idl::rtec_event_channel_admin::{ConsumerQOS, SupplierQOS};
use crate::idl::rtec_event_comm::{PushConsumer, PushSupplier};
use crate::observers::Kind;
use crate::options::QueueOptions;
use crate::state::{Channel, Suppliers, exceeded, tell};
use crate::supplier::SupplierConnection;

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
        self.consumers.with(number, |record| {
            unconnected(record)?.proxy.queue = Some(queue);
            Ok(())
        })
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
        self.consumers.with(number, |record| {
            unconnected(record)?.proxy.fan_out = Some(FanOutPlace { target, member });
            Ok(())
        })
    }

    pub(crate) fn connect_consumer(
        &self,
        number: u64,
        consumer: Option<&PushConsumer>,
        qos: &ConsumerQOS<'_>,
        call: &Call<'_>,
    ) -> Result<(), ConnectFailure> {
        let consumer = consumer.ok_or(BAD_PARAM)?.as_object();
        self.check_reference(number, consumer)?;
        let filter = self.filter(number, qos)?;
        let before_connection = self.consumers.with(number, |record| {
            let connection = self.connectable(record)?.connection();
            let ticket = connection.and_then(|it| Some(it.service.admitted.as_ref()?.ticket()));
            let proxy = &record.proxy;
            Ok::<_, ConnectFailure>((record.origin(), proxy.queue, proxy.fan_out.clone(), ticket))
        });
        let (origin, queue, fan_out, ticket) = before_connection?;
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
        let settings = ConsumerSettings {
            outboxes,
            has_queue: queue.is_some(),
            tells_losses: queue.is_some_and(|queue| queue.tells_losses),
            return_path: consumer.by_connection_of(call),
        };
        let face = PushFace {
            // A shared message would count for the budget of one of its consumers.
            fan_out: fan_out.filter(|_| place.budget.is_none() && settings.outboxes.is_none()),
        };
        let this = self.this.clone();
        let consumer = self
            .consumers
            .consumer(this, number, consumer, face, settings)?;
        let handle = ConsumerHandle(consumer.clone());

        // No lock is held for the analysis.
        let Verdict {
            shortfall,
            admitted,
        } = self.admit_consumer(origin, load, ticket)?;
        self.consumers.with(number, |record| {
            self.connectable(record)?;
            record.proxy.shortfall.clone_from(&shortfall);
            if !shortfall.is_empty() {
                let cause = "an event subscription may miss deadlines";
                self.judge(cause, number, &shortfall)?;
            }
            let before = record.connection();
            let was_observed = before.is_some_and(|before| !before.service.is_gateway);
            let octets = record.octets().clone();
            let subscribe = |handle| self.subscribe(place, &filter, queue, handle, octets);
            let connection = |subscription: &Subscription<Body>| ConsumerConnection {
                leaves: subscription.leaves().into(),
                filter: shortened(filter.to_string()),
                is_gateway: qos.is_gateway,
                admitted,
                _uses: uses,
            };
            let connected = (consumer, handle);
            self.consumers
                .connect(record, connected, &filter, subscribe, connection)
                .map_err(|error| refused(number, &error))?;
            if !qos.is_gateway || was_observed {
                self.observers.tell(Kind::Consumers);
            }
            Ok::<_, ConnectFailure>(())
        })?;
        tell(Level::Info, "connected an event consumer", number, &filter);
        Ok(())
    }

    /// Refuses a second connection of a consumer, unless it replaces the first.
    fn connectable<'r>(
        &self,
        record: &'r ConsumerRecord<Self>,
    ) -> Result<&'r ConsumerRecord<Self>, ConnectFailure> {
        if record.connection().is_some() && !self.options.consumer_reconnect {
            return Err(ConnectFailure::AlreadyConnected);
        }
        Ok(record)
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
        let suppliers = self.suppliers.lock();
        let record = suppliers.by_number.get(&number).ok_or(GONE)?;
        let connection = record.connection.as_ref();
        if connection.is_some() && !self.options.supplier_reconnect {
            return Err(ConnectFailure::AlreadyConnected);
        }
        let before = connection.and_then(|it| Some(it.admitted.as_ref()?.ticket()));
        drop(suppliers);
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
        let shortfall = |record: &mut ConsumerRecord<Self>| Ok(record.proxy.shortfall.clone());
        self.consumers.with(number, shortfall)
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
        let (notation, rules) = (self.options.notation, self.options.rules);
        let filter = read_entries(&entries, notation, rules, limits);
        let checked = filter.and_then(|filter| {
            Program::compile(&filter, rules, limits)?;
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
        let origin = |suppliers: &Suppliers| {
            let record = suppliers.by_number.get(&number).ok_or(GONE)?;
            Ok::<_, SystemException>(record.place.origin())
        };
        let origin = origin(&self.suppliers.lock())?;
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
        let mut suppliers = self.suppliers.lock();
        let record = suppliers.by_number.get_mut(&number).ok_or(GONE)?;
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
        let record = suppliers.by_number.get_mut(&number).ok_or(GONE)?;
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
        drop(suppliers);
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
}

/// Refuses what is to precede the connection of a consumer.
fn unconnected(
    record: &mut ConsumerRecord<Channel>,
) -> Result<&mut ConsumerRecord<Channel>, ConnectFailure> {
    if record.connection().is_some() {
        return Err(ConnectFailure::AlreadyConnected);
    }
    Ok(record)
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

/// The exception of a subscription that is refused, for this reason.
fn refused(number: u64, error: &SubscribeError) -> SystemException {
    tell(Level::Warn, "refused an event subscription", number, error);
    match error {
        SubscribeError::Closed => GONE,
        SubscribeError::TooMany { .. } => TOO_MANY,
        _ => BAD_PARAM,
    }
}

/// The characters of a subscription that answers have.
const MOST_TEXT: usize = 200;
