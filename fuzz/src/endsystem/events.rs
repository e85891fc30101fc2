//! Clients of an event channel that send any subscriptions, queues, publications and events.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chronorb::data::Any;
use chronorb::prelude::*;
use chronorb::quota::QuotaLimits;
use chronorb_rt::PiMutex;
use chronorb_rtec::idl::chronorb_events::{OverflowPolicy, QueueQOS, QueuedProxyPushSupplier};
use chronorb_rtec::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use chronorb_rtec::idl::rtec_event_channel_admin::{
    ConsumerAdmin, ConsumerQOS, Dependency, EventChannel, ProxyPushConsumer, ProxyPushSupplier,
    Publication, SupplierAdmin, SupplierQOS,
};
use chronorb_rtec::idl::rtec_event_comm::{
    Event, EventHeader, EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
    RtecEventData,
};
use chronorb_rtec::{
    AdmissionPolicy, ChannelLimits, ChannelOptions, Clock, EventServer, EventService, LaneOptions,
    OperationNeeds, OperationSource, PeerPolicy,
};

use super::{PATIENCE, orb};
use crate::typed::Choices;

/// The proxies of one kind.
const FOUR: QuotaLimits = QuotaLimits {
    total: 4,
    per_origin: 4,
};

/// Connects clients with any arguments, pushes events, and lets time pass. Then a legitimate
/// consumer gets what a legitimate supplier pushes, and nothing of the others is left.
pub fn event_channel(data: &[u8]) {
    let mut choices = Choices::new(data);
    let world = if choices.rarely(2) { &*LANES } else { &*DIRECT };
    // Tests share the channel, and each counts its clients.
    let _turn = world.turn.lock();
    world.run(&mut choices);
    world.check();
}

/// A channel, and a client of it.
struct World {
    service: EventService,
    _orb: Orb,
    consumers: ConsumerAdmin,
    suppliers: SupplierAdmin,
    /// A consumer that takes everything and forgets it.
    sink: PushConsumer,
    received: Arc<AtomicU64>,
    witness: PushConsumer,
    clock: TestClock,
    turn: PiMutex<()>,
}

static DIRECT: LazyLock<World> = LazyLock::new(|| World::new(0));
static LANES: LazyLock<World> = LazyLock::new(|| World::new(2));

/// The proxies that an input has obtained.
#[derive(Default)]
struct Proxies {
    consumers: Vec<ProxyPushSupplier>,
    suppliers: Vec<ProxyPushConsumer>,
}

impl World {
    fn new(lanes: usize) -> Self {
        let orb = orb(&[], chronorb_rtec::keep_order);
        let root = orb.root_poa().expect("it opens");
        let options = ChannelOptions {
            consumer_reconnect: true,
            supplier_reconnect: true,
            lanes: vec![LaneOptions::default(); lanes],
            peers: PeerPolicy {
                check_period: None,
                ..PeerPolicy::default()
            },
            limits: ChannelLimits {
                consumers: FOUR,
                suppliers: FOUR,
                ..ChannelLimits::default()
            },
            ..ChannelOptions::default()
        };
        let clock = TestClock::default();
        let server = EventServer::new().options(options).clock(clock.clone());
        let server = server.admission(Operations, AdmissionPolicy::Refuse);
        let service = server.serve_in(&root).expect("served");
        root.manager().activate().expect("active");
        let channel = EventChannel::unchecked_narrow(service.channel());
        let consumers = channel.for_consumers().expect("there").expect("not nil");
        let suppliers = channel.for_suppliers().expect("there").expect("not nil");
        let received = Arc::new(AtomicU64::new(0));
        let serve = |servant: Sink| {
            let object = root
                .serve(PushConsumerSkeleton::new(servant))
                .expect("activated");
            PushConsumer::unchecked_narrow(&object)
        };
        Self {
            sink: serve(Sink(Arc::default())),
            witness: serve(Sink(received.clone())),
            received,
            service,
            _orb: orb,
            consumers,
            suppliers,
            clock,
            turn: PiMutex::new(()),
        }
    }

    fn run(&self, choices: &mut Choices<'_>) {
        let mut proxies = Proxies::default();
        for _ in 0..STEPS {
            if choices.is_empty() {
                break;
            }
            self.step(choices, &mut proxies);
        }
        for proxy in proxies.consumers {
            // The input may have ended it.
            let _ = proxy.disconnect_push_supplier();
        }
        for proxy in proxies.suppliers {
            let _ = proxy.disconnect_push_consumer();
        }
    }

    fn step(&self, choices: &mut Choices<'_>, proxies: &mut Proxies) {
        let consumer = proxies.consumers.get(choices.pick(4)).cloned();
        let supplier = proxies.suppliers.get(choices.pick(4)).cloned();
        match (choices.pick(10), consumer, supplier) {
            (0, ..) => proxies
                .consumers
                .extend(self.consumers.obtain_push_supplier().ok().flatten()),
            (1, ..) => proxies
                .suppliers
                .extend(self.suppliers.obtain_push_consumer().ok().flatten()),
            (2, Some(proxy), _) => self.state_queue(choices, &proxy),
            (3 | 4, Some(proxy), _) => self.subscribe(choices, &proxy),
            (5, _, Some(proxy)) => publish(choices, &proxy),
            (6, _, Some(proxy)) => push(choices, &proxy),
            (7, Some(proxy), _) => {
                let _ = match choices.pick(3) {
                    0 => proxy.suspend_connection(),
                    1 => proxy.resume_connection(),
                    _ => proxy.disconnect_push_supplier(),
                };
            }
            (8, _, Some(proxy)) => {
                let _ = proxy.disconnect_push_consumer();
            }
            _ => {
                let nanos = 1_000_000_u64 << choices.pick(20);
                self.clock.0.fetch_add(nanos, Ordering::AcqRel);
                self.service.run_timers();
            }
        }
    }

    fn state_queue(&self, choices: &mut Choices<'_>, proxy: &ProxyPushSupplier) {
        let policies = [
            OverflowPolicy::DropOldest,
            OverflowPolicy::DropNewest,
            OverflowPolicy::LatestByKey,
            OverflowPolicy::Block,
            OverflowPolicy::Disconnect,
        ];
        let qos = QueueQOS {
            capacity: choices.of(&[0, 1, 2, 4096, 4097, u32::MAX]),
            overflow: choices.of(&policies),
            block: choices.of(&[0, 1, u64::MAX]),
            tells_losses: choices.any(),
        };
        let queued = QueuedProxyPushSupplier::unchecked_narrow(proxy.as_object());
        let stated = queued.set_queue(&qos);
        let is_bounded = (1..=4096).contains(&qos.capacity) && qos.block == 0;
        assert!(
            is_bounded || stated.is_err(),
            "{qos:?} is beyond the bounds"
        );
    }

    fn subscribe(&self, choices: &mut Choices<'_>, proxy: &ProxyPushSupplier) {
        let count = choices.of(&[0, 1, 2, 3, 5, 9, 40, 3000]);
        let dependencies: Vec<_> = (0..count).map(|_| dependency(choices)).collect();
        let qos = ConsumerQOS {
            dependencies: &dependencies,
            is_gateway: choices.rarely(4),
        };
        let consumer = (!choices.rarely(8)).then_some(&self.sink);
        let connected = proxy.connect_push_consumer(consumer, &qos);
        let is_valid = count > 0 && consumer.is_some();
        assert!(
            is_valid || connected.is_err(),
            "an empty subscription is accepted"
        );
        let queued = QueuedProxyPushSupplier::unchecked_narrow(proxy.as_object());
        let _ = queued.shortfall();
    }

    /// Checks that a legitimate consumer gets the event of a legitimate supplier.
    fn check(&self) {
        assert!(self.service.flush(PATIENCE), "the lanes are stuck");
        let statistics = self.service.statistics();
        let left = statistics.consumers.len() + statistics.suppliers.len();
        assert_eq!(left, 0, "clients are left");
        let consumer = self
            .consumers
            .obtain_push_supplier()
            .expect("room")
            .expect("not nil");
        let supplier = self
            .suppliers
            .obtain_push_consumer()
            .expect("room")
            .expect("not nil");
        let dependency = Dependency {
            event: event(1, 20, 0),
            rt_info: 0,
        };
        let qos = ConsumerQOS {
            dependencies: &[dependency],
            is_gateway: false,
        };
        consumer
            .connect_push_consumer(Some(&self.witness), &qos)
            .expect("connected");
        let publications = [publication(1, 20, 0, 1)];
        let qos = SupplierQOS {
            publications: &publications,
            is_gateway: false,
        };
        supplier
            .connect_push_supplier(None, &qos)
            .expect("connected");
        let before = self.received.load(Ordering::Acquire);
        supplier.push(&[event(1, 20, 0)]).expect("taken");
        let deadline = Instant::now() + PATIENCE;
        while self.received.load(Ordering::Acquire) == before {
            assert!(Instant::now() < deadline, "the event has not arrived");
            std::thread::yield_now();
        }
        consumer.disconnect_push_supplier().expect("connected");
        supplier.disconnect_push_consumer().expect("connected");
        assert_eq!(self.service.run_timers(), None, "a timer is left");
    }
}

fn dependency(choices: &mut Choices<'_>) -> Dependency<'static> {
    let source = choices.of(&[0, 1, 2, 3, 5, -1, i32::MAX, 40]);
    let kind = choices.pick(24) as i32;
    let event_type = if choices.rarely(16) {
        choices.any()
    } else {
        kind
    };
    let time = choices.of(&[0, 1, 1_000, 10_000, 1_000_000, u64::MAX]);
    Dependency {
        event: event(source, event_type, time),
        rt_info: choices.of(&[0, 0, 1, 2, 3, -1, i32::MIN]),
    }
}

fn publish(choices: &mut Choices<'_>, proxy: &ProxyPushConsumer) {
    let count = choices.of(&[0, 1, 2, 7, 1_025]);
    let publications: Vec<_> = (0..count)
        .map(|_| {
            let (source, event_type) = (choices.pick(4) as i32, choices.pick(24) as i32);
            let rt_info = choices.of(&[0, 1, 2, 3, -7]);
            let calls = choices.of(&[1, 0, -1, i32::MAX]);
            publication(source, event_type, rt_info, calls)
        })
        .collect();
    let qos = SupplierQOS {
        publications: &publications,
        is_gateway: choices.rarely(4),
    };
    let _ = proxy.connect_push_supplier(None, &qos);
}

fn push(choices: &mut Choices<'_>, proxy: &ProxyPushConsumer) {
    let count = choices.of(&[0, 1, 2, 8]);
    let payloads: Vec<_> = (0..count).map(|_| choices.octets(16)).collect();
    let events: Vec<_> = payloads
        .iter()
        .map(|payload| {
            let mut event = event(choices.pick(4) as i32, choices.pick(24) as i32, 0);
            event.header.ttl = choices.any();
            event.data.payload = payload;
            event
        })
        .collect();
    let _ = proxy.push(&events);
}

fn publication(
    source: i32,
    event_type: i32,
    rt_info: i32,
    number_of_calls: i32,
) -> Publication<'static> {
    Publication {
        event: event(source, event_type, 0),
        dependency_info: DependencyInfo {
            dependency_type: DependencyTypeT::OneWayCall,
            number_of_calls,
            rt_info,
            rt_info_depended_on: 0,
            enabled: DependencyEnabledTypeT::DependencyEnabled,
        },
    }
}

fn event(source: i32, event_type: i32, time: u64) -> Event<'static> {
    Event {
        header: EventHeader {
            r#type: event_type,
            source,
            creation_time: time,
            ..EventHeader::default()
        },
        data: RtecEventData {
            pad1: 0,
            payload: &[],
            any_value: Any::default(),
        },
    }
}

/// Operations of which one has a period, one an execution time, and one both beyond any bound.
struct Operations;

impl OperationSource for Operations {
    fn operation(&self, handle: i32) -> Result<Option<OperationNeeds>, SystemException> {
        Ok(match handle {
            1 => Some(OperationNeeds {
                period: Some(Duration::from_millis(10)),
                ..OperationNeeds::default()
            }),
            2 => Some(OperationNeeds {
                cost: Duration::from_millis(4),
                lane: Some(0),
                subpriority: i32::MIN,
                ..OperationNeeds::default()
            }),
            3 => Some(OperationNeeds {
                cost: Duration::MAX,
                period: Some(Duration::MAX),
                lane: Some(usize::MAX),
                subpriority: i32::MAX,
                ..OperationNeeds::default()
            }),
            _ => None,
        })
    }
}

/// A consumer that counts the events of the type 20.
struct Sink(Arc<AtomicU64>);

impl PushConsumerOwnedServant for Sink {
    fn push(&self, _: &Call<'_>, set: EventSet<'_>) -> Result<(), SystemException> {
        let counted = set.iter().filter(|event| event.header.r#type == 20).count();
        self.0.fetch_add(counted as u64, Ordering::AcqRel);
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A clock that stands still unless it is set.
#[derive(Clone, Default)]
struct TestClock(Arc<AtomicU64>);

impl Clock for TestClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// The most steps of an input.
const STEPS: usize = 64;
