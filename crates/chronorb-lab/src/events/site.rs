//! A channel in a process of its own, and clients of it in this one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use chronorb::data::Any;
use chronorb::outbox::{OutboxLimits, OutboxOverflow};
use chronorb::poa::Poa;
use chronorb::prelude::*;
use chronorb_probe::{Mark, counts_of_this_thread, trace_mark};
use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex, counts_of_others};
use chronorb_rtec::all_statistics;
use chronorb_rtec::idl::chronorb_events::{ChannelStatisticsBuf, MonitoredChannel};
use chronorb_rtec::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use chronorb_rtec::idl::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, EventChannel, ProxyPushConsumer, ProxyPushSupplier, Publication,
    SupplierQOS,
};
use chronorb_rtec::idl::rtec_event_comm::{
    Event, EventHeader, EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
    RtecEventData,
};
use chronorb_rtec::{
    ChannelOptions, ConsumerGroup, EventRing, EventServer, EventService, Filter, LaneOptions,
    LocalSupplier, PeerPolicy, RingOptions,
};
use serde::{Deserialize, Serialize};

use super::PATIENCE;
use crate::bench::{Model, PoolSpec, orb_arguments, priority};
use crate::error::LabError;
use crate::process::{self, Child, Parent, Ready};

/// The order of a channel's process.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct ChannelOrder {
    /// The priorities of its lanes, the most urgent first. They also receive events, each by a
    /// thread of its own.
    pub(super) lanes: Vec<i16>,
    /// The threads that receive events without lanes; those of the ORB if it is 0.
    pub(super) threads: u32,
    /// The events that wait for a consumer in its outbox, if it has one.
    pub(super) outbox: Option<usize>,
}

/// The reference of a channel.
#[derive(Debug, Deserialize, Serialize)]
struct ChannelReference {
    reference: String,
}

/// A question to the process of a channel.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
enum ChannelQuestion {
    /// The counts so far.
    Counts,
    /// A mark for its tracer, the last one or not.
    Mark(bool),
}

/// Counts of all threads of a channel.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct ChannelCounts {
    pub(super) allocations: u64,
    pub(super) allocated_octets: u64,
}

/// A channel in a process of its own.
pub(super) struct ChannelProcess {
    child: Child,
    reference: String,
}

impl ChannelProcess {
    pub(super) fn start(order: &ChannelOrder) -> Result<Self, LabError> {
        let (child, told): (_, ChannelReference) = Child::start("channel", CHANNEL, order)?;
        Ok(Self {
            child,
            reference: told.reference,
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn reference(&self) -> &str {
        &self.reference
    }

    pub(super) fn counts(&mut self) -> Result<ChannelCounts, LabError> {
        self.child.tell(&Some(ChannelQuestion::Counts))?;
        Ok(self.child.hear(Deadline::after(PATIENCE))?)
    }

    /// Has the process make a mark for its tracer.
    pub(super) fn mark(&mut self, is_last: bool) -> Result<(), LabError> {
        self.child.tell(&Some(ChannelQuestion::Mark(is_last)))?;
        let Ready {} = self.child.hear(Deadline::after(PATIENCE))?;
        Ok(())
    }

    pub(super) fn stop(self) -> Result<(), LabError> {
        Ok(self.child.dismiss(Deadline::after(PATIENCE))?)
    }
}

/// A channel in this process.
pub(super) struct ServedChannel {
    orb: Orb,
    service: EventService,
}

impl ServedChannel {
    pub(super) fn serve(order: &ChannelOrder) -> Result<Self, LabError> {
        let orb = ordered_orb()?;
        let root = orb.root_poa().map_err(LabError::work(SERVING))?;
        let pool = match order.lanes.as_slice() {
            [] if order.threads == 0 => None,
            [] => Some(PoolSpec::Shared {
                priority: 0,
                threads: order.threads,
            }),
            lanes => {
                let mut lanes: Vec<_> = lanes.iter().map(|lane| (*lane, 1)).collect();
                lanes.sort_unstable();
                Some(PoolSpec::lanes(lanes))
            }
        };
        let mut policies = Vec::new();
        if let Some(pool) = pool {
            let pool = pool.make(&orb).map_err(LabError::work(SERVING))?;
            policies = vec![Policy::Threadpool(pool), Model::Propagated(0).policy()];
        }
        let lane = |lane: &i16| LaneOptions {
            priority: Some(priority(*lane)),
            ..LaneOptions::default()
        };
        let options = ChannelOptions {
            lanes: order.lanes.iter().map(lane).collect(),
            outboxes: order.outbox.map(|requests| OutboxLimits {
                requests,
                octets: 64 << 20,
                overflow: OutboxOverflow::DropOldest,
            }),
            peers: PeerPolicy {
                // A consumer that is slow stays connected.
                push_timeout: Duration::from_secs(600),
                failures: u32::MAX,
                check_period: None,
                ..PeerPolicy::default()
            },
            ..ChannelOptions::default()
        };
        let server = EventServer::new().options(options).policies(&policies);
        let service = server.serve_in(&root).map_err(LabError::work(SERVING))?;
        let active = root.manager().activate();
        active.map_err(LabError::work(SERVING))?;
        Ok(Self { orb, service })
    }

    /// Connects a supplier of events of a type in this process.
    pub(super) fn supplier(&self, event_type: i32) -> Result<LocalSupplier, LabError> {
        let publications = [publication(event_type)];
        let qos = SupplierQOS {
            publications: &publications,
            is_gateway: false,
        };
        self.service.supplier(&qos).map_err(calling)
    }

    pub(super) fn reference(&self) -> String {
        self.orb.object_to_string(self.service.channel())
    }

    pub(super) fn end(self) -> Result<(), LabError> {
        drop(self.service);
        self.orb.shutdown(false).map_err(LabError::work(SERVING))
    }
}

/// Serves a channel, and answers questions until there are no more.
pub(crate) fn channel_main(order: &str) -> Result<(), LabError> {
    let order: ChannelOrder = process::order(order)?;
    let parent = Parent::or_exit();
    let served = ServedChannel::serve(&order)?;
    process::tell(&ChannelReference {
        reference: served.reference(),
    })?;
    while let Some(question) = parent.hear()? {
        match question {
            ChannelQuestion::Counts => {
                let counts = counts_of_others() + counts_of_this_thread();
                process::tell(&ChannelCounts {
                    allocations: counts.allocations,
                    allocated_octets: counts.allocated_octets,
                })?;
            }
            ChannelQuestion::Mark(is_last) => {
                trace_mark(if is_last { Mark::Last } else { Mark::Next });
                process::tell(&Ready {})?;
            }
        }
    }
    served.end()
}

/// Starts an ORB that keeps the order of events.
fn ordered_orb() -> Result<Orb, LabError> {
    Orb::init(&mut orb_arguments(ORDERED)).map_err(LabError::work("starting the ORB"))
}

/// A client of a channel, with an ORB of its own.
pub(crate) struct Client {
    pub(super) orb: Orb,
    pub(super) channel: MonitoredChannel,
    poa: Poa,
}

impl Client {
    /// Starts an ORB. With a lane, its consumers are served at that priority.
    pub(crate) fn start(reference: &str, lane: Option<i16>) -> Result<Self, LabError> {
        Self::with_orb(ordered_orb()?, reference, lane)
    }

    /// A client that shares the ORB of a channel.
    pub(super) fn of(served: &ServedChannel) -> Result<Self, LabError> {
        Self::with_orb(served.orb.clone(), &served.reference(), None)
    }

    fn with_orb(orb: Orb, reference: &str, lane: Option<i16>) -> Result<Self, LabError> {
        let root = orb.root_poa().map_err(LabError::work(CONNECTING))?;
        let mut poa = root.clone();
        if let Some(lane) = lane {
            let pool = PoolSpec::lanes([(lane, 1)]).make(&orb);
            let pool = pool.map_err(LabError::work(CONNECTING))?;
            let policies = [Policy::Threadpool(pool), Model::Propagated(lane).policy()];
            let made = root.create_poa("consumers", Some(root.manager()), &policies);
            poa = made.map_err(LabError::work(CONNECTING))?;
        }
        let active = root.manager().activate();
        active.map_err(LabError::work(CONNECTING))?;
        let object = orb.string_to_object(reference);
        let object = object.map_err(LabError::work(CONNECTING))?;
        Ok(Self {
            channel: MonitoredChannel::unchecked_narrow(&object),
            orb,
            poa,
        })
    }

    /// Connects a consumer of events of a type to a lane of the channel, by its number from 1.
    pub(crate) fn subscribe(
        &self,
        event_type: i32,
        lane: i32,
        consumer: &Arc<Receiver>,
    ) -> Result<ProxyPushSupplier, LabError> {
        let skeleton = PushConsumerSkeleton::from_arc(consumer.clone());
        let object = self.poa.serve(skeleton);
        let object = object.map_err(LabError::work(CONNECTING))?;
        let failed = || LabError::work(CONNECTING)("a nil reference");
        let admin = self.channel.for_consumers().map_err(calling)?;
        let proxy = admin.ok_or_else(failed)?.obtain_push_supplier();
        let proxy = proxy.map_err(calling)?.ok_or_else(failed)?;
        let dependency = Dependency {
            event: event(event_type, 0, &[]),
            rt_info: lane,
        };
        let qos = ConsumerQOS {
            dependencies: &[dependency],
            is_gateway: false,
        };
        let consumer = PushConsumer::unchecked_narrow(&object);
        let connected = proxy.connect_push_consumer(Some(&consumer), &qos);
        connected.map_err(LabError::work(CONNECTING))?;
        Ok(proxy)
    }

    /// Opens a group of consumers.
    pub(super) fn group(&self) -> Result<ConsumerGroup, LabError> {
        let channel = EventChannel::unchecked_narrow(self.channel.as_object());
        ConsumerGroup::open(&self.poa, &channel).map_err(LabError::work(CONNECTING))
    }

    /// Connects a ring of shared memory as a consumer of events of a type.
    pub(super) fn open_ring(&self, event_type: i32, path: &Path) -> Result<EventRing, LabError> {
        let filter = Filter::of_type(event_type);
        let options = RingOptions::default();
        let channel = EventChannel::unchecked_narrow(self.channel.as_object());
        let ring = EventRing::open(&self.poa, &channel, &filter, path, &options);
        ring.map_err(LabError::work(CONNECTING))
    }

    /// Connects a supplier of events of a type.
    pub(crate) fn supplier(&self, event_type: i32) -> Result<ProxyPushConsumer, LabError> {
        let failed = || LabError::work(CONNECTING)("a nil reference");
        let admin = self.channel.for_suppliers().map_err(calling)?;
        let proxy = admin.ok_or_else(failed)?.obtain_push_consumer();
        let proxy = proxy.map_err(calling)?.ok_or_else(failed)?;
        let qos = SupplierQOS {
            publications: &[publication(event_type)],
            is_gateway: false,
        };
        let connected = proxy.connect_push_supplier(None, &qos);
        connected.map_err(LabError::work(CONNECTING))?;
        Ok(proxy)
    }

    /// Returns the state of the channel.
    pub(super) fn statistics(&self) -> Result<ChannelStatisticsBuf, LabError> {
        all_statistics(&self.channel, usize::MAX).map_err(calling)
    }

    /// Waits until the channel has taken so many events.
    pub(super) fn await_received(&self, events: u64) -> Result<(), LabError> {
        let limit = Deadline::after(PATIENCE);
        loop {
            let statistics = self.statistics()?;
            if statistics.received >= events {
                return Ok(());
            }
            if limit.has_passed() {
                let words = format!("{} of {events} events", statistics.received);
                return Err(LabError::WrongAnswer(words));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until each consumer, in the order of connections, has taken or lost as many events as
    /// it is asked for. Returns what each has taken and lost.
    pub(super) fn settle(&self, asked: &[(&Receiver, u64)]) -> Result<Vec<(u64, u64)>, LabError> {
        let limit = Deadline::after(PATIENCE);
        loop {
            // Losses first: an event that is taken meanwhile is not lost any more.
            let statistics = self.statistics()?;
            let lost = statistics.consumers.iter().map(|of| of.lost);
            let all = asked.iter().zip(lost);
            let all = all.map(|((receiver, asked), lost)| (receiver.taken(), lost, *asked));
            let all: Vec<_> = all.collect();
            let is_settled = all
                .iter()
                .all(|(taken, lost, asked)| taken + lost >= *asked);
            if is_settled || limit.has_passed() {
                return Ok(all
                    .into_iter()
                    .map(|(taken, lost, _)| (taken, lost))
                    .collect());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It is not called by a servant.
        let _ = self.orb.shutdown(false);
    }
}

/// A count that threads wait for. To count makes no system call unless a thread waits.
#[derive(Debug, Default)]
pub(super) struct TakenCount {
    taken: AtomicU64,
    waiters: AtomicU32,
    changed: Gate,
}

impl TakenCount {
    pub(super) fn add(&self, events: u64) {
        // Sequentially consistent, as are the accesses of waiters: at least one sees the other.
        self.taken.fetch_add(events, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.changed.advance();
        }
    }

    pub(super) fn get(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    /// Waits for so many until a time. Returns those that there are.
    pub(super) fn await_until(&self, events: u64, limit: Deadline) -> u64 {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let taken = loop {
            let seen = self.changed.get();
            let taken = self.get();
            if taken >= events || limit.has_passed() {
                break taken;
            }
            self.changed.wait_while(seen, limit);
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        taken
    }
}

/// A consumer that counts its events and the time since they were made.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    taken: TakenCount,
    latencies: Option<PiMutex<Vec<u64>>>,
    /// The gate before which no event is taken, if there is one.
    hold: Option<Gate>,
    /// The computing for each event.
    work: Duration,
}

impl Receiver {
    /// A consumer that keeps the latencies of so many events.
    pub(crate) fn timed(events: u32) -> Arc<Self> {
        Arc::new(Self {
            latencies: Some(PiMutex::new(Vec::with_capacity(events as usize))),
            ..Self::default()
        })
    }

    /// A consumer that takes nothing before it is [released](Self::release).
    pub(super) fn held() -> Arc<Self> {
        Arc::new(Self {
            hold: Some(Gate::new(0)),
            ..Self::default()
        })
    }

    /// A consumer that computes for each event.
    pub(super) fn busy(work: Duration) -> Arc<Self> {
        Arc::new(Self {
            work,
            ..Self::default()
        })
    }

    pub(super) fn release(&self) {
        if let Some(hold) = &self.hold {
            hold.set(1);
        }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Waits for so many events.
    pub(super) fn await_taken(&self, events: u64) -> Result<(), LabError> {
        let taken = self.await_until(events, Deadline::after(PATIENCE));
        if taken >= events {
            return Ok(());
        }
        Err(LabError::WrongAnswer(format!("{taken} of {events} events")))
    }

    /// Waits for so many events until a time. Returns those that came.
    pub(crate) fn await_until(&self, events: u64, limit: Deadline) -> u64 {
        self.taken.await_until(events, limit)
    }

    /// Takes events.
    pub(super) fn take(&self, data: EventSet<'_>) {
        if let Some(hold) = &self.hold {
            hold.wait_while(0, Deadline::after(PATIENCE));
        }
        if !self.work.is_zero() {
            let end = Monotonic::now() + self.work;
            while Monotonic::now() < end {}
        }
        if let Some(latencies) = &self.latencies {
            let now = Monotonic::now().as_nanos();
            let made = data.iter().map(|event| event.header.creation_time);
            let latencies = &mut *latencies.lock();
            latencies.extend(made.map(|made| now.saturating_sub(made)));
        }
        self.taken.add(data.len() as u64);
    }

    /// Returns the latencies so far, in nanoseconds.
    pub(super) fn latencies(&self) -> Vec<u64> {
        self.latencies
            .as_ref()
            .map_or_else(Vec::new, |all| all.lock().clone())
    }
}

impl PushConsumerOwnedServant for Receiver {
    fn push(&self, _: &Call<'_>, data: EventSet<'_>) -> Result<(), SystemException> {
        self.take(data);
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

/// An event of a type. Its time of creation is in nanoseconds, which the channel passes on.
pub(super) fn event(event_type: i32, made: u64, payload: &[u8]) -> Event<'_> {
    Event {
        header: EventHeader {
            r#type: event_type,
            source: SOURCE,
            creation_time: made,
            ..EventHeader::default()
        },
        data: RtecEventData {
            pad1: 0,
            payload,
            any_value: Any::default(),
        },
    }
}

fn publication(event_type: i32) -> Publication<'static> {
    Publication {
        event: event(event_type, 0, &[]),
        dependency_info: DependencyInfo {
            dependency_type: DependencyTypeT::OneWayCall,
            number_of_calls: 1,
            rt_info: 0,
            rt_info_depended_on: 0,
            enabled: DependencyEnabledTypeT::DependencyEnabled,
        },
    }
}

/// Pushes an event that is made now.
pub(crate) fn push_now(
    proxy: &ProxyPushConsumer,
    event_type: i32,
    payload: &[u8],
) -> Result<(), LabError> {
    proxy
        .push(&[made_now(event_type, payload)])
        .map_err(calling)
}

/// Returns an event that is made now.
pub(super) fn made_now(event_type: i32, payload: &[u8]) -> Event<'_> {
    event(event_type, Monotonic::now().as_nanos(), payload)
}

pub(super) fn calling(exception: SystemException) -> LabError {
    LabError::work("calling the channel")(exception)
}

/// The part of a process that serves a channel.
pub(crate) const CHANNEL: &str = "events-channel";
/// The settings by which events keep their order.
const ORDERED: &[&str] = &[
    "-ORBOrderedConnections",
    "true",
    "-ORBClientConnection",
    "leader",
    "-ORBRealTime",
    "preferred",
];
const SOURCE: i32 = 1;
const SERVING: &str = "serving a channel";
const CONNECTING: &str = "connecting to a channel";
