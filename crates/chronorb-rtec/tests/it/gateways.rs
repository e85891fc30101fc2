//! Channels that are joined by gateways, which do what TAO's gateway by IIOP does.

use std::sync::Arc;

use chronorb::prelude::*;
use chronorb_events::Entry;
use chronorb_rt::PiMutex;
use chronorb_rtec::idl::rtec_event_channel_admin::{
    ConsumerQOS, EventChannel, Observer, ObserverOwnedServant, ObserverSkeleton, ProxyPushConsumer,
    ProxyPushSupplier, SupplierQOS,
};
use chronorb_rtec::idl::rtec_event_comm::{
    Event, EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
};
use chronorb_rtec::{ChannelOptions, Notation};

use crate::support::{Clients, Fixture, Record, Recorder, connect, event, publish_as};

const CONJUNCTION: i32 = 8;
const DISJUNCTION: i32 = 9;

/// The half of a gateway that brings events from a supplying channel to a consuming one.
///
/// Observes the consuming channel. Each update replaces the subscription at the supplying channel
/// by the reported structure, which is also published at the consuming channel.
struct Gateway {
    supplying: EventChannel,
    consuming: EventChannel,
    consumer: PushConsumer,
    forwarder: Arc<Forwarder>,
    subscription: PiMutex<Option<ProxyPushSupplier>>,
    /// The entries of each update, after they hold.
    updates: Record<Vec<(i32, i32)>>,
}

/// The consumer of a gateway.
#[derive(Default)]
struct Forwarder(PiMutex<Option<ProxyPushConsumer>>);

impl PushConsumerOwnedServant for Forwarder {
    fn push(&self, _: &Call<'_>, data: EventSet<'_>) -> Result<(), SystemException> {
        let Some(proxy) = self.0.lock().clone() else {
            return Ok(());
        };
        // The gateway decrements the number of hops, and stops at 0.
        let left = data.iter().filter(|event| event.header.ttl > 0);
        let events: Vec<_> = left
            .map(|event| {
                let mut event: Event<'_> = *event;
                event.header.ttl -= 1;
                event
            })
            .collect();
        if events.is_empty() {
            return Ok(());
        }
        proxy.push(&events)
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

impl ObserverOwnedServant for Gateway {
    fn update_consumer(&self, _: &Call<'_>, sub: &ConsumerQOS<'_>) -> Result<(), SystemException> {
        if let Some(before) = self.subscription.lock().take() {
            before.disconnect_push_supplier()?;
        }
        if let Some(before) = self.forwarder.0.lock().take() {
            before.disconnect_push_consumer()?;
        }
        let headers = sub.dependencies.iter().map(|one| one.event.header);
        let entries: Vec<_> = headers.map(|it| (it.source, it.r#type)).collect();
        let admin = self.consuming.for_suppliers()?.unwrap();
        let proxy = admin.obtain_push_consumer()?.unwrap();
        publish_as(&proxy, None, &entries[1..], true).unwrap();
        *self.forwarder.0.lock() = Some(proxy);
        let admin = self.supplying.for_consumers()?.unwrap();
        let proxy = admin.obtain_push_supplier()?.unwrap();
        let connected = proxy.connect_push_consumer(Some(&self.consumer), sub);
        connected.expect("the other channel takes what this one tells");
        *self.subscription.lock() = Some(proxy);
        self.updates.add(entries);
        Ok(())
    }

    fn update_supplier(&self, _: &Call<'_>, _: &SupplierQOS<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Gateway {
    fn open(from: &Fixture, to: &Fixture) -> Arc<Self> {
        let forwarder = Arc::<Forwarder>::default();
        let skeleton = PushConsumerSkeleton::from_arc(forwarder.clone());
        let consumer = from.client.root_poa().unwrap().serve(skeleton).unwrap();
        let gateway = Arc::new(Self {
            supplying: from.channel.clone(),
            consuming: to.channel.clone(),
            consumer: PushConsumer::unchecked_narrow(&consumer),
            forwarder,
            subscription: PiMutex::default(),
            updates: Record::default(),
        });
        let skeleton = ObserverSkeleton::from_arc(gateway.clone());
        let observer = to.client.root_poa().unwrap().serve(skeleton).unwrap();
        let observer = Observer::unchecked_narrow(&observer);
        to.channel.append_observer(Some(&observer)).unwrap();
        gateway
    }
}

fn channel(notation: Notation) -> Fixture {
    let options = ChannelOptions {
        notation,
        ..ChannelOptions::default()
    };
    Fixture::new(Clients::Remote, options)
}

fn subscribe(f: &Fixture, entries: &[(i32, i32)]) -> Arc<Recorder> {
    let entry = |&(source, event_type): &(i32, i32)| Entry {
        source,
        event_type,
        time: 0,
    };
    let entries: Vec<_> = entries.iter().map(entry).collect();
    let (proxy, number) = f.proxy_supplier();
    let (recorder, consumer) = f.recorder();
    connect(&proxy, Some(&consumer), &entries).unwrap();
    f.wait_until_reached(number);
    recorder
}

/// Pushes events that may take so many hops.
fn push(f: &Fixture, events: &[(i32, i32)], hops: i32) {
    let supplier = f.supplier(events);
    for &(source, event_type) in events {
        let mut event = event(source, event_type);
        event.header.ttl = hops;
        supplier.proxy.push(&[event]).unwrap();
    }
}

#[test]
fn gateways_join_channels_both_ways_whose_clients_write_either_notation() {
    for notations in [
        [Notation::Prefix, Notation::Basic],
        [Notation::Basic, Notation::Prefix],
    ] {
        let [near, far] = notations.map(channel);
        // They begin before there is a consumer, with a group without children.
        let to_near = Gateway::open(&far, &near);
        let to_far = Gateway::open(&near, &far);
        for gateway in [&to_near, &to_far] {
            assert_eq!(gateway.updates.wait_for(1), [[(0, DISJUNCTION)]]);
        }

        // In the basic notation, and then in the prefix one.
        let at_near = subscribe(&near, &[(0, DISJUNCTION), (1, 20), (1, 21)]);
        let group = [
            (2, DISJUNCTION),
            (2, CONJUNCTION),
            (2, 20),
            (2, 21),
            (2, 22),
        ];
        let at_far = subscribe(&far, &group);
        // A gateway is told of the consumers, and not of the other gateway.
        let told = [(2, DISJUNCTION), (1, 20), (1, 21)];
        assert_eq!(to_near.updates.wait_for(2)[1], told);
        let told = [(3, DISJUNCTION), (2, 20), (2, 21), (2, 22)];
        assert_eq!(to_far.updates.wait_for(2)[1], told);

        push(&far, &[(1, 20), (1, 23), (1, 21)], 1);
        assert_eq!(at_near.sets(2), [[(1, 20)], [(1, 21)]]);
        push(&near, &[(2, 20), (2, 22), (2, 21)], 1);
        let sets = [vec![(2, 22)], vec![(2, 20), (2, 21)]];
        assert_eq!(at_far.sets(2), sets);

        // Without hops an event stays in its channel, and one with many returns to no channel.
        push(&far, &[(1, 20)], 0);
        push(&far, &[(1, 21)], 5);
        let sets = [[(1, 20)], [(1, 21)], [(1, 21)]];
        assert_eq!(at_near.sets(3), sets);
        assert_eq!(to_near.updates.wait_for(2).len(), 2);
        assert_eq!(to_far.updates.wait_for(2).len(), 2);
    }
}
