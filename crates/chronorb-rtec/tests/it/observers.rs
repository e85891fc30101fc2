//! Case 26: observers are told what consumers need and suppliers offer.

use std::sync::Arc;
use std::thread;

use chronorb::prelude::*;
use chronorb_events::{Filter, write_entries};
use chronorb_rt::PiMutex;
use chronorb_rtec::idl::rtec_event_channel_admin::event_channel::{
    CantAppendObserver, CantRemoveObserver,
};
use chronorb_rtec::idl::rtec_event_channel_admin::{
    AppendObserverError, ConsumerQOS, Observer, ObserverOwnedServant, ObserverSkeleton,
    RemoveObserverError, SupplierQOS,
};
use chronorb_rtec::{ChannelLimits, ChannelOptions};

use crate::support::{
    Clients, Fixture, Record, all, connect_as, everywhere, leaf, ms, publish, publish_as,
};

/// The entries of an update as sources and types.
type Entries = Vec<(i32, i32)>;

/// An observer that records its updates.
#[derive(Default)]
struct Watcher {
    consumers: Record<Entries>,
    suppliers: Record<Entries>,
    gateway_flags: Record<bool>,
}

impl Watcher {
    fn consumers(&self, number: usize) -> Vec<Entries> {
        self.consumers.wait_for(number)
    }

    fn suppliers(&self, number: usize) -> Vec<Entries> {
        self.suppliers.wait_for(number)
    }
}

impl ObserverOwnedServant for Watcher {
    fn update_consumer(&self, _: &Call<'_>, sub: &ConsumerQOS<'_>) -> Result<(), SystemException> {
        let headers = sub.dependencies.iter().map(|entry| entry.event.header);
        let entries = headers
            .map(|header| (header.source, header.r#type))
            .collect();
        self.gateway_flags.add(sub.is_gateway);
        self.consumers.add(entries);
        Ok(())
    }

    fn update_supplier(&self, _: &Call<'_>, pub_: &SupplierQOS<'_>) -> Result<(), SystemException> {
        let headers = pub_.publications.iter().map(|entry| entry.event.header);
        let entries = headers
            .map(|header| (header.source, header.r#type))
            .collect();
        self.gateway_flags.add(pub_.is_gateway);
        self.suppliers.add(entries);
        Ok(())
    }
}

fn observe(f: &Fixture) -> (Arc<Watcher>, u32) {
    let watcher = Arc::new(Watcher::default());
    let skeleton = ObserverSkeleton::from_arc(watcher.clone());
    let object = f.client.root_poa().unwrap().serve(skeleton).unwrap();
    let observer = Observer::unchecked_narrow(&object);
    let handle = f.channel.append_observer(Some(&observer)).unwrap();
    (watcher, handle)
}

const DISJUNCTION: i32 = 9;

#[test]
fn case_26_an_observer_is_told_the_present_state_at_once() {
    everywhere(|f| {
        let consumer = f.subscribe(&(leaf((10, 20)) | leaf((11, 21))));
        f.supplier(&[(10, 20), (10, 22)]);
        let (watcher, _) = observe(&f);
        let present = [(2, DISJUNCTION), (10, 20), (11, 21)];
        assert_eq!(watcher.consumers(1), [present]);
        assert_eq!(watcher.suppliers(1), [[(10, 20), (10, 22)]]);
        drop(consumer);
    });
}

/// So a gateway may connect with the structure that it was told, as in TAO.
#[test]
fn case_26_observers_are_told_the_flag_of_gateways() {
    everywhere(|f| {
        let (watcher, _) = observe(&f);
        watcher.consumers(1);
        watcher.suppliers(1);
        let _consumer = f.subscribe(&leaf((10, 20)));
        let _supplier = f.supplier(&[(10, 20)]);
        watcher.consumers(2);
        watcher.suppliers(2);
        let flags = watcher.gateway_flags.wait_for(4);
        assert!(flags.into_iter().all(|is_gateway| is_gateway));
    });
}

#[test]
fn case_26_each_connection_and_disconnection_is_one_update() {
    everywhere(|f| {
        // Each is told before the next change, which would take its place.
        let (watcher, _) = observe(&f);
        watcher.consumers(1);
        let first = f.subscribe(&leaf((10, 20)));
        watcher.consumers(2);
        let second = f.subscribe(&(leaf((10, 20)) | Filter::each(ms(5)) | leaf((9, 30))));
        watcher.consumers(3);
        first.proxy.disconnect_push_supplier().unwrap();
        watcher.consumers(4);
        second.proxy.disconnect_push_supplier().unwrap();
        let none = vec![(0, DISJUNCTION)];
        let both = vec![(2, DISJUNCTION), (9, 30), (10, 20)];
        let one = vec![(1, DISJUNCTION), (10, 20)];
        let told = watcher.consumers(5);
        assert_eq!(told, [none.clone(), one, both.clone(), both, none]);

        watcher.suppliers(1);
        let supplier = f.supplier(&[(1, 20)]);
        watcher.suppliers(2);
        supplier.proxy.disconnect_push_consumer().unwrap();
        let told = watcher.suppliers(3);
        assert_eq!(told, [vec![], vec![(1, 20)], vec![]]);
    });
}

#[test]
fn case_26_negations_and_masks_are_told_as_any_event() {
    everywhere(|f| {
        let _consumer = f.subscribe(&!leaf((10, 20)));
        let (watcher, _) = observe(&f);
        assert_eq!(watcher.consumers(1), [[(1, DISJUNCTION), (0, 0)]]);
    });
}

#[test]
fn case_26_gateways_are_not_told() {
    everywhere(|f| {
        let (watcher, _) = observe(&f);
        watcher.consumers(1);
        watcher.suppliers(1);
        let (proxy, _) = f.proxy_supplier();
        let (_, gateway) = f.recorder();
        connect_as(&proxy, Some(&gateway), &write_entries(&leaf((1, 20))), true).unwrap();
        let supplying = f.proxy_consumer();
        publish_as(&supplying, None, &[(1, 20)], true).unwrap();
        proxy.disconnect_push_supplier().unwrap();
        supplying.disconnect_push_consumer().unwrap();
        publish(&f.proxy_consumer(), None, &[(2, 20)]).unwrap();
        f.subscribe(&leaf((2, 20)));
        let told = watcher.consumers(2);
        assert_eq!(told[1], [(1, DISJUNCTION), (2, 20)]);
        assert_eq!(watcher.suppliers(2), [vec![], vec![(2, 20)]]);
    });
}

#[test]
fn case_26_an_observer_that_is_not_there_cannot_be_removed() {
    everywhere(|f| {
        let (_watcher, handle) = observe(&f);
        f.channel.remove_observer(handle).unwrap();
        let expected = RemoveObserverError::CantRemoveObserver(CantRemoveObserver);
        for handle in [handle, 0, u32::MAX] {
            let refused = f.channel.remove_observer(handle).unwrap_err();
            assert_eq!(refused, expected);
        }
    });
}

/// An observer that hangs in its first update until it may go on.
#[derive(Default)]
struct HangingObserver(PiMutex<()>, Record<usize>);

impl ObserverOwnedServant for HangingObserver {
    fn update_consumer(&self, _: &Call<'_>, qos: &ConsumerQOS<'_>) -> Result<(), SystemException> {
        self.1.add(qos.dependencies.len());
        drop(self.0.lock());
        Ok(())
    }

    fn update_supplier(&self, _: &Call<'_>, _: &SupplierQOS<'_>) -> Result<(), SystemException> {
        drop(self.0.lock());
        Ok(())
    }
}

#[test]
fn case_26_a_hanging_observer_delays_nobody() {
    let f = Fixture::new(Clients::Remote, ChannelOptions::default());
    let hanging = Arc::<HangingObserver>::default();
    let hang = hanging.0.lock();
    let skeleton = ObserverSkeleton::from_arc(hanging.clone());
    // In an ORB of its own, because it occupies a connection.
    let place = crate::support::orb();
    let root = place.root_poa().unwrap();
    let object = root.serve(skeleton).unwrap();
    root.manager().activate().unwrap();
    let observer = place.object_to_string(&object);
    let observer = Observer::unchecked_narrow(&f.client.string_to_object(&observer).unwrap());
    f.channel.append_observer(Some(&observer)).unwrap();
    hanging.1.wait_for(1);
    let (watcher, _) = observe(&f);
    watcher.consumers(1);

    let consumer = f.subscribe(&leaf((1, 20)));
    let supplier = f.supplier(&[(1, 20)]);
    f.push(&supplier, &[(1, 20)]);
    assert_eq!(f.sets(&consumer), [[(1, 20)]]);
    assert_eq!(watcher.consumers(2)[1], [(1, DISJUNCTION), (1, 20)]);
    for event_type in 21..=70 {
        f.subscribe(&leaf((1, event_type)));
    }
    drop(hang);
    // One state takes the place of all that waited.
    assert_eq!(hanging.1.wait_for(2), [1, 52]);
    place.shutdown(true).unwrap();
}

#[test]
fn observers_are_bounded_and_those_that_do_not_exist_are_removed() {
    let options = ChannelOptions {
        limits: ChannelLimits {
            observers: all(1),
            ..ChannelLimits::default()
        },
        ..ChannelOptions::default()
    };
    let f = Fixture::new(Clients::Remote, options);
    let watcher = Arc::new(Watcher::default());
    let skeleton = ObserverSkeleton::from_arc(watcher.clone());
    let root = f.client.root_poa().unwrap();
    let object = root.serve(skeleton).unwrap();
    let observer = Observer::unchecked_narrow(&object);
    f.channel.append_observer(Some(&observer)).unwrap();
    let refused = f.channel.append_observer(Some(&observer)).unwrap_err();
    let expected = AppendObserverError::CantAppendObserver(CantAppendObserver);
    assert_eq!(refused, expected);

    watcher.suppliers(1);
    let id = root.reference_to_id(observer.as_object()).unwrap();
    root.deactivate_object(&id).unwrap();
    f.subscribe(&leaf((1, 20)));
    while f.service.statistics().observers > 0 {
        thread::yield_now();
    }
    observe(&f);
}
