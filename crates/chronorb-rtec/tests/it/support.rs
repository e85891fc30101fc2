//! A channel with suppliers and consumers, in one process or over TCP, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use chronorb::config::OrbConfig;
use chronorb::data::{Any, AnyBuf};
use chronorb::outbox::OutboxLimits;
use chronorb::poa::{IdAssignment, Lifespan, ObjectId, Policy};
use chronorb::prelude::*;
use chronorb::quota::QuotaLimits;
use chronorb::transport::multicast::MulticastOptions;
use chronorb_events::{Entry, Filter, write_entries};
use chronorb_rt::{Deadline, Gate, PiMutex};
use chronorb_rtec::idl::chronorb_events::ConsumerStatisticsBuf;
use chronorb_rtec::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use chronorb_rtec::idl::rtec_event_channel_admin::{
    ConnectPushConsumerError, ConnectPushSupplierError, ConsumerQOS, Dependency, EventChannel,
    ProxyPushConsumer, ProxyPushSupplier, Publication, SupplierQOS,
};
use chronorb_rtec::idl::rtec_event_comm::{
    Event, EventHeader, EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
    PushSupplier, PushSupplierOwnedServant, PushSupplierSkeleton, RtecEventData,
};
use chronorb_rtec::{
    ChannelOptions, Clock, ConsumerGroup, ConsumerOptions, EventServer, EventService,
    GroupCallback, GroupConsumer, LaneOptions, PeerPolicy, Rules, keep_order,
};

pub(crate) use crate::raw::RawConsumer;

/// A millisecond, in nanoseconds.
pub(crate) const MS: u64 = 1_000_000;

/// A set of events as sources and types.
pub(crate) type Set = Vec<(i32, i32)>;

/// A limit for what happens at once unless something is broken.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// The place of the clients of a channel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Clients {
    /// In the ORB of the channel.
    Collocated,
    /// In another ORB, reached over TCP.
    Remote,
    /// In another ORB, with a group of consumers.
    Grouped,
}

/// The places of the clients.
pub(crate) const PLACES: [Clients; 3] = [Clients::Collocated, Clients::Remote, Clients::Grouped];

/// Runs a test for all places of the clients.
pub(crate) fn everywhere(test: impl Fn(Fixture)) {
    for clients in PLACES {
        for options in dispatchings() {
            test(Fixture::new(clients, options));
        }
    }
}

/// The ways of dispatching: on the thread that receives an event, on lanes, and on lanes with
/// outboxes.
pub(crate) fn dispatchings() -> [ChannelOptions; 3] {
    let lanes = ChannelOptions {
        lanes: vec![LaneOptions::default(); 2],
        ..ChannelOptions::default()
    };
    let outboxes = ChannelOptions {
        outboxes: Some(OutboxLimits::default()),
        ..lanes.clone()
    };
    [ChannelOptions::default(), lanes, outboxes]
}

/// Runs a test for all places of the clients and both rules of correlation.
pub(crate) fn everywhere_by(test: impl Fn(Fixture, Rules)) {
    for clients in PLACES {
        for rules in [Rules::Corrected, Rules::Tao] {
            for options in dispatchings() {
                test(
                    Fixture::new(clients, ChannelOptions { rules, ..options }),
                    rules,
                );
            }
        }
    }
}

/// The limits of a quota that one client may use up.
pub(crate) fn all(total: u64) -> QuotaLimits {
    QuotaLimits {
        total,
        per_origin: total,
    }
}

/// A clock that stands still unless it is set.
#[derive(Clone, Default)]
pub(crate) struct TestClock(Arc<AtomicU64>);

impl Clock for TestClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

pub(crate) struct Fixture {
    server: Orb,
    pub(crate) client: Orb,
    pub(crate) service: EventService,
    pub(crate) channel: EventChannel,
    clock: TestClock,
    pushed: AtomicU64,
    /// The group of consumers, if they have one.
    group: Option<ConsumerGroup>,
    /// The consumers of the group.
    grouped: PiMutex<Vec<GroupConsumer>>,
}

impl Fixture {
    /// A channel whose clients are checked only when the test says so, and that waits for them
    /// unless the options say otherwise.
    pub(crate) fn new(clients: Clients, options: ChannelOptions) -> Self {
        Self::of(clients, options, |server| server)
    }

    /// As [`new`](Self::new), of a server with further settings.
    pub(crate) fn of(
        clients: Clients,
        options: ChannelOptions,
        configure: impl FnOnce(EventServer) -> EventServer,
    ) -> Self {
        let usual = PeerPolicy::default();
        let patient = |limit, usual| if limit == usual { LONG } else { limit };
        let options = ChannelOptions {
            peers: PeerPolicy {
                push_timeout: patient(options.peers.push_timeout, usual.push_timeout),
                check_timeout: patient(options.peers.check_timeout, usual.check_timeout),
                check_period: None,
                ..options.peers
            },
            ..options
        };
        let server = orb();
        let client = match clients {
            Clients::Collocated => server.clone(),
            Clients::Remote | Clients::Grouped => orb(),
        };
        let clock = TestClock::default();
        let poa = server.root_poa().unwrap();
        let serving = EventServer::new().options(options).clock(clock.clone());
        let service = configure(serving).serve_in(&poa).unwrap();
        poa.manager().activate().unwrap();
        client.root_poa().unwrap().manager().activate().unwrap();
        let text = server.object_to_string(service.channel());
        let object = client.string_to_object(&text).unwrap();
        let channel = EventChannel::narrow(&object).unwrap().unwrap();
        let poa = client.root_poa().unwrap();
        let group = (clients == Clients::Grouped)
            .then(|| ConsumerGroup::open(&poa, &channel).expect("a new group"));
        Self {
            channel,
            group,
            grouped: PiMutex::default(),
            server,
            client,
            service,
            clock,
            pushed: AtomicU64::new(0),
        }
    }

    /// Obtains a proxy for a consumer, with its number.
    pub(crate) fn proxy_supplier(&self) -> (ProxyPushSupplier, u64) {
        let admin = self.channel.for_consumers().unwrap().unwrap();
        let proxy = admin.obtain_push_supplier().unwrap().unwrap();
        let consumers = self.service.statistics().consumers;
        (proxy, consumers.last().unwrap().number)
    }

    /// Obtains a proxy for a supplier.
    pub(crate) fn proxy_consumer(&self) -> ProxyPushConsumer {
        let admin = self.channel.for_suppliers().unwrap().unwrap();
        admin.obtain_push_consumer().unwrap().unwrap()
    }

    /// Makes a consumer that records what it gets, without connecting it.
    pub(crate) fn recorder(&self) -> (Arc<Recorder>, PushConsumer) {
        let recorder = Arc::new(Recorder::default());
        let skeleton = PushConsumerSkeleton::from_arc(recorder.clone());
        let object = self.client.root_poa().unwrap().serve(skeleton).unwrap();
        (recorder, PushConsumer::unchecked_narrow(&object))
    }

    /// Connects a consumer with a filter.
    pub(crate) fn subscribe(&self, filter: &Filter) -> TestConsumer {
        if let Some(group) = &self.group {
            let recorder = Arc::new(Recorder::default());
            let callback = GroupRecorder(recorder.clone());
            let grouped = group.subscribe(filter, &ConsumerOptions::default(), callback);
            let grouped = grouped.unwrap();
            let (proxy, consumer) = (grouped.proxy(), grouped.object().clone());
            self.grouped.lock().push(grouped);
            let number = self.service.statistics().consumers.last().unwrap().number;
            self.wait_until_reached(number);
            return TestConsumer {
                proxy,
                number,
                recorder,
                consumer,
            };
        }
        let (proxy, number) = self.proxy_supplier();
        let (recorder, consumer) = self.recorder();
        connect(&proxy, Some(&consumer), &write_entries(filter)).unwrap();
        self.wait_until_reached(number);
        TestConsumer {
            proxy,
            number,
            recorder,
            consumer,
        }
    }

    /// Waits until a consumer has answered the channel, which holds its events until then.
    pub(crate) fn wait_until_reached(&self, number: u64) {
        let deadline = Deadline::after(LONG);
        while !self.state_of(number).is_some_and(|it| it.has_answered) {
            assert!(!deadline.has_passed(), "a consumer has not answered");
            thread::yield_now();
        }
    }

    /// Waits until the channel has disconnected so many clients. Their counts are complete then.
    pub(crate) fn wait_for_evictions(&self, clients: u64) {
        let deadline = Deadline::after(LONG);
        while self.service.statistics().evicted < clients {
            assert!(!deadline.has_passed(), "a client is not disconnected");
            thread::yield_now();
        }
    }

    /// Waits until all consumers that are connected have answered the channel.
    pub(crate) fn wait_until_all_are_reached(&self) {
        for consumer in self.service.statistics().consumers {
            if !consumer.subscription.is_empty() {
                self.wait_until_reached(consumer.number);
            }
        }
    }

    /// Connects a supplier that publishes these sources and types, without a callback.
    pub(crate) fn supplier(&self, published: &[(i32, i32)]) -> TestSupplier {
        let proxy = self.proxy_consumer();
        publish(&proxy, None, published).unwrap();
        TestSupplier { proxy }
    }

    /// Makes a supplier that records its disconnection.
    pub(crate) fn disconnectable(&self) -> (Arc<Disconnections>, PushSupplier) {
        let supplier = Arc::new(Disconnections::default());
        let skeleton = PushSupplierSkeleton::from_arc(supplier.clone());
        let object = self.client.root_poa().unwrap().serve(skeleton).unwrap();
        (supplier, PushSupplier::unchecked_narrow(&object))
    }

    /// Pushes events one by one, and waits until the channel has dispatched them.
    pub(crate) fn push(&self, supplier: &TestSupplier, events: &[(i32, i32)]) {
        for &(source, event_type) in events {
            supplier.proxy.push(&[event(source, event_type)]).unwrap();
            self.expect(1);
        }
    }

    /// Waits until the channel has taken so many events more.
    pub(crate) fn expect(&self, events: u64) {
        let all = self.pushed.fetch_add(events, Ordering::Relaxed) + events;
        self.wait_for_received(all);
        assert!(self.service.flush(LONG), "the lanes work");
    }

    /// Waits until the channel has taken so many events in all.
    pub(crate) fn wait_for_received(&self, events: u64) {
        let deadline = Deadline::after(LONG);
        while self.service.statistics().received < events {
            assert!(!deadline.has_passed(), "an event has not arrived");
            thread::yield_now();
        }
    }

    /// Sets the time, and fires each timer at its time.
    pub(crate) fn run_until(&self, nanos: u64) {
        let mut due = self.service.run_timers();
        while let Some(next) = due.filter(|due| *due <= nanos) {
            self.clock.0.store(next, Ordering::Release);
            due = self.service.run_timers();
        }
        self.clock.0.store(nanos, Ordering::Release);
    }

    /// The state of a consumer.
    pub(crate) fn state_of(&self, number: u64) -> Option<ConsumerStatisticsBuf> {
        let mut consumers = self.service.statistics().consumers.into_iter();
        consumers.find(|consumer| consumer.number == number)
    }

    /// The part of a quota of the channel's ORB that the origin with the greatest use has.
    pub(crate) fn most_used(&self, quota: &str) -> u64 {
        let quotas = self.server.snapshot().quotas;
        quotas.iter().find(|it| it.name == quota).unwrap().most
    }

    /// Returns all sets that a connected consumer got, after it got those that were sent to it.
    pub(crate) fn sets(&self, of: &TestConsumer) -> Vec<Set> {
        let sent = self.state_of(of.number).unwrap().sets;
        of.recorder.sets(sent as usize)
    }

    /// Pushes events to a channel with one consumer, and returns what it got.
    pub(crate) fn sets_of(&self, filter: &Filter, events: &[(i32, i32)]) -> Vec<Set> {
        let consumer = self.subscribe(filter);
        let supplier = self.supplier(&[(0, 0)]);
        self.push(&supplier, events);
        let sets = self.sets(&consumer);
        consumer.proxy.disconnect_push_supplier().unwrap();
        supplier.proxy.disconnect_push_consumer().unwrap();
        sets
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.grouped.lock().clear();
        self.client.shutdown(true).unwrap();
        self.server.shutdown(true).unwrap();
    }
}

/// An ORB that keeps the order of events.
pub(crate) fn orb() -> Orb {
    orb_with(|_| ())
}

/// As [`orb`], with further settings.
pub(crate) fn orb_with(configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    let endpoint = ["p", "-ORBListenEndpoints", "iiop://127.0.0.1:0"];
    let mut args = endpoint.map(str::to_owned).to_vec();
    let mut config = OrbConfig::read(&mut args).unwrap();
    keep_order(&mut config);
    config.multicast = MulticastOptions::parse("interface=lo&ttl=0").unwrap();
    configure(&mut config);
    Orb::with_config(config).unwrap()
}

/// Consumers in an ORB of their own, whose references stay valid when it is gone.
pub(crate) struct ConsumerProcess {
    orb: Orb,
    pub(crate) recorders: Vec<Arc<Recorder>>,
    pub(crate) texts: Vec<String>,
}

/// An endpoint of this test that no other process takes.
pub(crate) fn endpoint(test: &str) -> String {
    let name = format!("chronorb-events-{test}-{}", std::process::id());
    format!("uiop://{}", std::env::temp_dir().join(name).display())
}

impl ConsumerProcess {
    pub(crate) fn start(endpoint: &str, consumers: u32) -> Self {
        let arguments = ["p", "-ORBListenEndpoints", endpoint];
        let mut arguments = arguments.map(str::to_owned).to_vec();
        let mut config = OrbConfig::read(&mut arguments).unwrap();
        keep_order(&mut config);
        let orb = Orb::with_config(config).unwrap();
        let root = orb.root_poa().unwrap();
        let policies = [
            Policy::Lifespan(Lifespan::Persistent),
            Policy::IdAssignment(IdAssignment::User),
        ];
        let poa = root.create_poa("Consumers", Some(root.manager()), &policies);
        let poa = poa.unwrap();
        let (mut recorders, mut texts) = (Vec::new(), Vec::new());
        for number in 0..consumers {
            let recorder = Arc::new(Recorder::default());
            let id = ObjectId::from(number.to_string().as_str());
            let skeleton = PushConsumerSkeleton::from_arc(recorder.clone());
            poa.activate_object_with_id(id.clone(), skeleton).unwrap();
            texts.push(orb.object_to_string(&poa.id_to_reference(&id).unwrap()));
            recorders.push(recorder);
        }
        root.manager().activate().unwrap();
        Self {
            orb,
            recorders,
            texts,
        }
    }
}

impl Drop for ConsumerProcess {
    fn drop(&mut self) {
        self.orb.shutdown(true).unwrap();
    }
}

/// A connected consumer.
pub(crate) struct TestConsumer {
    pub(crate) proxy: ProxyPushSupplier,
    pub(crate) number: u64,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) consumer: PushConsumer,
}

/// A connected supplier.
pub(crate) struct TestSupplier {
    pub(crate) proxy: ProxyPushConsumer,
}

/// A list that grows, for threads that wait for it.
pub(crate) struct Record<T> {
    entries: PiMutex<Vec<T>>,
    changed: Gate,
}

impl<T> Default for Record<T> {
    fn default() -> Self {
        Self {
            entries: PiMutex::new(Vec::new()),
            changed: Gate::new(0),
        }
    }
}

impl<T: Clone> Record<T> {
    pub(crate) fn add(&self, entry: T) {
        self.entries.lock().push(entry);
        self.changed.advance();
    }

    /// Waits for so many entries, and returns all of them.
    pub(crate) fn wait_for(&self, least: usize) -> Vec<T> {
        let deadline = Deadline::after(LONG);
        loop {
            let seen = self.changed.get();
            let entries = self.entries.lock().clone();
            if entries.len() >= least {
                return entries;
            }
            let changed = self.changed.wait_while(seen, deadline);
            assert_ne!(changed, seen, "{} of {least} entries", entries.len());
        }
    }
}

/// A servant that records what is pushed to it.
#[derive(Default)]
pub(crate) struct Recorder {
    sets: Record<Set>,
    payloads: Record<(Vec<u8>, AnyBuf)>,
    pub(crate) disconnections: Disconnections,
}

impl Recorder {
    /// Waits for so many sets, and returns all of them.
    pub(crate) fn sets(&self, least: usize) -> Vec<Set> {
        self.sets.wait_for(least)
    }

    fn record(&self, set: EventSet<'_>) {
        let of = |event: &Event<'_>| (event.header.source, event.header.r#type);
        for event in set {
            let data = event.data.to_owned();
            self.payloads.add((data.payload, data.any_value));
        }
        self.sets.add(set.iter().map(of).collect());
    }

    /// Returns the payloads and anys of all events.
    pub(crate) fn payloads(&self) -> Vec<(Vec<u8>, AnyBuf)> {
        self.payloads.wait_for(0)
    }
}

/// A recorder as a consumer of a group.
struct GroupRecorder(Arc<Recorder>);

impl GroupCallback for GroupRecorder {
    fn push(&self, events: EventSet<'_>) {
        self.0.record(events);
    }

    fn disconnected(&self) {
        self.0.disconnections.count();
    }
}

impl PushConsumerOwnedServant for Recorder {
    fn push(&self, _: &Call<'_>, data: EventSet<'_>) -> Result<(), SystemException> {
        self.record(data);
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        self.disconnections.count();
        Ok(())
    }
}

/// The number of disconnections that a client was told.
#[derive(Default)]
pub(crate) struct Disconnections(AtomicU64);

impl Disconnections {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn number(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl PushSupplierOwnedServant for Disconnections {
    fn disconnect_push_supplier(&self, _: &Call<'_>) -> Result<(), SystemException> {
        self.count();
        Ok(())
    }
}

/// An event without data.
pub(crate) fn event(source: i32, event_type: i32) -> Event<'static> {
    let header = EventHeader {
        r#type: event_type,
        source,
        ..EventHeader::default()
    };
    Event {
        header,
        data: data(&[]),
    }
}

/// Data with a payload.
pub(crate) fn data(payload: &[u8]) -> RtecEventData<'_> {
    RtecEventData {
        pad1: 0,
        payload,
        any_value: Any::default(),
    }
}

/// Connects a consumer with the entries of a subscription.
pub(crate) fn connect(
    proxy: &ProxyPushSupplier,
    consumer: Option<&PushConsumer>,
    entries: &[Entry],
) -> Result<(), ConnectPushConsumerError> {
    connect_as(proxy, consumer, entries, false)
}

/// Connects a consumer to a lane.
pub(crate) fn connect_on(
    proxy: &ProxyPushSupplier,
    consumer: &PushConsumer,
    entries: &[Entry],
    lane: i32,
) {
    let dependencies = dependencies(entries, lane);
    let qos = ConsumerQOS {
        dependencies: &dependencies,
        is_gateway: false,
    };
    proxy.connect_push_consumer(Some(consumer), &qos).unwrap();
}

pub(crate) fn dependencies(entries: &[Entry], rt_info: i32) -> Vec<Dependency<'static>> {
    let dependency = |entry: &Entry| {
        let mut event = event(entry.source, entry.event_type);
        event.header.creation_time = entry.time;
        Dependency { event, rt_info }
    };
    entries.iter().map(dependency).collect()
}

/// Connects a consumer that may be a gateway.
pub(crate) fn connect_as(
    proxy: &ProxyPushSupplier,
    consumer: Option<&PushConsumer>,
    entries: &[Entry],
    is_gateway: bool,
) -> Result<(), ConnectPushConsumerError> {
    let dependencies = dependencies(entries, 0);
    let qos = ConsumerQOS {
        dependencies: &dependencies,
        is_gateway,
    };
    proxy.connect_push_consumer(consumer, &qos)
}

/// Connects a supplier with its publications.
pub(crate) fn publish(
    proxy: &ProxyPushConsumer,
    supplier: Option<&PushSupplier>,
    published: &[(i32, i32)],
) -> Result<(), ConnectPushSupplierError> {
    publish_as(proxy, supplier, published, false)
}

/// Connects a supplier that may be a gateway.
pub(crate) fn publish_as(
    proxy: &ProxyPushConsumer,
    supplier: Option<&PushSupplier>,
    published: &[(i32, i32)],
    is_gateway: bool,
) -> Result<(), ConnectPushSupplierError> {
    let publication = |&(source, event_type): &(i32, i32)| Publication {
        event: event(source, event_type),
        dependency_info: DependencyInfo {
            dependency_type: DependencyTypeT::OneWayCall,
            number_of_calls: 1,
            rt_info: 0,
            rt_info_depended_on: 0,
            enabled: DependencyEnabledTypeT::DependencyEnabled,
        },
    };
    let publications: Vec<_> = published.iter().map(publication).collect();
    let qos = SupplierQOS {
        publications: &publications,
        is_gateway,
    };
    proxy.connect_push_supplier(supplier, &qos)
}

/// Sets of one event each.
pub(crate) fn single(events: &[(i32, i32)]) -> Vec<Set> {
    events.iter().map(|event| vec![*event]).collect()
}

/// A time of so many milliseconds.
pub(crate) fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// A leaf of a source and a type.
pub(crate) fn leaf((source, event_type): (i32, i32)) -> Filter {
    Filter::event(source, event_type)
}

/// A conjunction of leaves.
pub(crate) fn conjunction<const N: usize>(events: [(i32, i32); N]) -> Filter {
    Filter::Conjunction(events.map(leaf).into())
}
