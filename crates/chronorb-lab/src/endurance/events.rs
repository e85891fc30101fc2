//! The clients of the event channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_rt::{Deadline, Gate};
use chronorb_rtec::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use chronorb_rtec::idl::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, EventChannel, ProxyPushConsumer, ProxyPushSupplier, Publication,
    SupplierQOS,
};
use chronorb_rtec::idl::rtec_event_comm::{
    Event, EventHeader, EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
    RtecEventData,
};

use super::log::CallLog;
use super::order::{ClientOrder, FailureKind};
use crate::error::LabError;

/// Pushes numbered events, and takes them in their order. After events that do not arrive, connects
/// anew.
pub(super) fn run(
    order: &ClientOrder,
    orb: &Orb,
    object: &Object,
    log: &mut CallLog,
) -> Result<(), LabError> {
    let root = orb.root_poa().map_err(LabError::work(SERVING))?;
    let received = Arc::new(OrderedConsumer::default());
    let skeleton = PushConsumerSkeleton::from_arc(received.clone());
    let consumer = root.serve(skeleton).map_err(LabError::work(SERVING))?;
    root.manager().activate().map_err(LabError::work(SERVING))?;
    let consumer = PushConsumer::unchecked_narrow(&consumer);
    let channel = EventChannel::unchecked_narrow(object);
    let event_type = FIRST_TYPE + order.number.cast_signed();

    let mut proxies: Option<EventProxies> = None;
    let mut number = 0_u64;
    let mut counted = 0;
    while !log.is_over() {
        let Some(connected) = &proxies else {
            // Events of a former connection may still arrive, and do not count.
            received.connection.fetch_add(1, Ordering::SeqCst);
            proxies = connect(&channel, &consumer, event_type, log);
            log.report(&[])?;
            continue;
        };
        let before = received.last.load(Ordering::SeqCst);
        let source = received.connection.load(Ordering::SeqCst);
        for _ in 0..BURST {
            number += 1;
            let pushed = event(event_type, source, number);
            if log
                .call("push", || connected.supplier.push(&[pushed]))
                .is_none()
            {
                break;
            }
        }
        let limit = Deadline::after(PATIENCE);
        let arrived = loop {
            let seen = received.changed.get();
            let last = received.last.load(Ordering::SeqCst);
            if last >= number || limit.has_passed() {
                break last > before;
            }
            received.changed.wait_while(seen, limit);
        };
        let taken = received.taken.load(Ordering::Relaxed);
        log.count(taken - counted);
        counted = taken;
        for _ in 0..received.disorder.swap(0, Ordering::Relaxed) {
            log.fail(FailureKind::Disorder, "an event out of order".to_owned());
        }
        if !arrived {
            let lost = proxies.take();
            // A channel that was killed knows neither of them.
            if let Some(lost) = lost {
                let _ = lost.consumer.disconnect_push_supplier();
                let _ = lost.supplier.disconnect_push_consumer();
            }
        }
        log.report(&[])?;
    }
    log.conclude(&[])
}

/// The proxies of a client.
struct EventProxies {
    consumer: ProxyPushSupplier,
    supplier: ProxyPushConsumer,
}

fn connect(
    channel: &EventChannel,
    consumer: &PushConsumer,
    event_type: i32,
    log: &mut CallLog,
) -> Option<EventProxies> {
    let admin = log.call("for_consumers", || channel.for_consumers())??;
    let from = log.call("obtain_push_supplier", || admin.obtain_push_supplier())??;
    let qos = ConsumerQOS {
        dependencies: &[Dependency {
            event: event(event_type, 0, 0),
            rt_info: 0,
        }],
        is_gateway: false,
    };
    log.call("connect_push_consumer", || {
        from.connect_push_consumer(Some(consumer), &qos)
    })?;
    let admin = log.call("for_suppliers", || channel.for_suppliers())??;
    let to = log.call("obtain_push_consumer", || admin.obtain_push_consumer())??;
    let dependency_info = DependencyInfo {
        dependency_type: DependencyTypeT::OneWayCall,
        number_of_calls: 1,
        rt_info: 0,
        rt_info_depended_on: 0,
        enabled: DependencyEnabledTypeT::DependencyEnabled,
    };
    let qos = SupplierQOS {
        publications: &[Publication {
            event: event(event_type, 0, 0),
            dependency_info,
        }],
        is_gateway: false,
    };
    log.call("connect_push_supplier", || {
        to.connect_push_supplier(None, &qos)
    })?;
    Some(EventProxies {
        consumer: from,
        supplier: to,
    })
}

/// An event with its number.
fn event(event_type: i32, connection: u64, number: u64) -> Event<'static> {
    Event {
        header: EventHeader {
            r#type: event_type,
            source: SOURCE,
            creation_time: (connection << NUMBER_BITS) | number,
            ..EventHeader::default()
        },
        data: RtecEventData::default(),
    }
}

/// A consumer that checks the order of its events.
#[derive(Debug, Default)]
struct OrderedConsumer {
    /// The number of the connection whose events count.
    connection: AtomicU64,
    /// The number of its last event.
    last: AtomicU64,
    taken: AtomicU64,
    disorder: AtomicU64,
    changed: Gate,
}

impl PushConsumerOwnedServant for OrderedConsumer {
    fn push(&self, _: &Call<'_>, data: EventSet<'_>) -> Result<(), SystemException> {
        for event in data {
            let time = event.header.creation_time;
            let (connection, number) = (time >> NUMBER_BITS, time & ((1 << NUMBER_BITS) - 1));
            if connection != self.connection.load(Ordering::SeqCst) {
                continue;
            }
            // Numbers go on over connections.
            if self.last.swap(number, Ordering::SeqCst) >= number {
                self.disorder.fetch_add(1, Ordering::Relaxed);
            }
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
        self.changed.advance();
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The first type of the clients' events.
const FIRST_TYPE: i32 = 100;
const SOURCE: i32 = 1;
/// The events that are pushed before the last of them is waited for.
const BURST: u32 = 16;
/// The bits of the number of an event; those above are of its connection.
const NUMBER_BITS: u32 = 40;
/// The longest time for an event to arrive.
const PATIENCE: Duration = Duration::from_secs(2);
const SERVING: &str = "serving a consumer";
