//! Cases 19 and 20: disconnection and destruction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use chronorb::SystemExceptionKind;
use chronorb::prelude::*;
use chronorb_events::{Filter, write_entries};
use chronorb_rt::PiMutex;
use chronorb_rtec::ChannelOptions;
use chronorb_rtec::idl::rtec_event_channel_admin::ProxyPushSupplier;
use chronorb_rtec::idl::rtec_event_comm::{
    EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
};

use crate::support::{Clients, Fixture, connect, dispatchings, event, everywhere, publish};

fn is_gone<T: std::fmt::Debug>(result: Result<T, SystemException>) -> bool {
    result.unwrap_err().kind == SystemExceptionKind::ObjectNotExist
}

#[test]
fn case_19_a_second_disconnection_finds_no_object() {
    everywhere(|f| {
        let consumer = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(1, 20)]);
        consumer.proxy.disconnect_push_supplier().unwrap();
        assert!(is_gone(consumer.proxy.disconnect_push_supplier()));
        assert!(is_gone(consumer.proxy.suspend_connection()));
        supplier.proxy.disconnect_push_consumer().unwrap();
        assert!(is_gone(supplier.proxy.disconnect_push_consumer()));
        // A client that has asked for it is not called back by default.
        assert_eq!(consumer.recorder.disconnections.number(), 0);
    });
}

#[test]
fn a_client_that_disconnects_is_called_back_if_the_channel_does_so() {
    for clients in [Clients::Collocated, Clients::Remote] {
        let options = ChannelOptions {
            disconnect_callbacks: true,
            ..ChannelOptions::default()
        };
        let f = Fixture::new(clients, options);
        let consumer = f.subscribe(&Filter::Everything);
        consumer.proxy.disconnect_push_supplier().unwrap();
        assert_eq!(consumer.recorder.disconnections.number(), 1);

        let proxy = f.proxy_consumer();
        let (supplier, reference) = f.disconnectable();
        publish(&proxy, Some(&reference), &[(1, 20)]).unwrap();
        proxy.disconnect_push_consumer().unwrap();
        assert_eq!(supplier.number(), 1);
    }
}

/// A consumer that disconnects itself at the first push.
#[derive(Default)]
struct OnceOnly {
    proxy: PiMutex<Option<ProxyPushSupplier>>,
    pushes: AtomicU64,
    is_over: AtomicBool,
}

impl PushConsumerOwnedServant for OnceOnly {
    fn push(&self, _: &Call<'_>, _: EventSet<'_>) -> Result<(), SystemException> {
        self.pushes.fetch_add(1, Ordering::AcqRel);
        let proxy = self.proxy.lock().take();
        if let Some(proxy) = proxy {
            proxy.disconnect_push_supplier()?;
            self.is_over.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn case_19_a_consumer_can_disconnect_itself_within_a_push() {
    everywhere(|f| {
        let (proxy, number) = f.proxy_supplier();
        let consumer = Arc::new(OnceOnly::default());
        *consumer.proxy.lock() = Some(proxy.clone());
        let skeleton = PushConsumerSkeleton::from_arc(consumer.clone());
        let object = f.client.root_poa().unwrap().serve(skeleton).unwrap();
        let reference = PushConsumer::unchecked_narrow(&object);
        let filter = write_entries(&Filter::Everything);
        connect(&proxy, Some(&reference), &filter).unwrap();
        let other = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(1, 20)]);
        f.push(&supplier, &[(1, 20)]);
        while !consumer.is_over.load(Ordering::Acquire) {
            thread::yield_now();
        }
        assert!(f.state_of(number).is_none());
        f.push(&supplier, &[(1, 21)]);
        assert_eq!(f.sets(&other), [[(1, 20)], [(1, 21)]]);
        assert_eq!(consumer.pushes.load(Ordering::Acquire), 1);
    });
}

#[test]
fn case_19_disconnections_return_while_other_threads_push() {
    everywhere(|f| {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for source in 1..=2 {
                let (f, is_over) = (&f, &is_over);
                scope.spawn(move || {
                    let supplier = f.supplier(&[(source, 20)]);
                    while !is_over.load(Ordering::Acquire) {
                        f.push(&supplier, &[(source, 20)]);
                    }
                });
            }
            for _ in 0..20 {
                let consumer = f.subscribe(&Filter::Everything);
                consumer.recorder.sets(1);
                consumer.proxy.disconnect_push_supplier().unwrap();
                assert!(f.state_of(consumer.number).is_none());
            }
            is_over.store(true, Ordering::Release);
        });
        let statistics = f.service.statistics();
        assert_eq!((statistics.lost, statistics.evicted), (0, 0));
    });
}

/// A consumer that counts the pushes which begin after it has left.
#[derive(Default)]
struct Leaver {
    has_left: AtomicBool,
    pushes: AtomicU64,
    late: AtomicU64,
}

impl PushConsumerOwnedServant for Leaver {
    fn push(&self, _: &Call<'_>, _: EventSet<'_>) -> Result<(), SystemException> {
        self.pushes.fetch_add(1, Ordering::SeqCst);
        let late = u64::from(self.has_left.load(Ordering::SeqCst));
        self.late.fetch_add(late, Ordering::SeqCst);
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn case_19_no_push_follows_the_callback_of_a_disconnection() {
    // The callback goes by the connection of the pushes, so it is behind all of them. That of an
    // outbox is another one.
    let shared = dispatchings()
        .into_iter()
        .filter(|it| it.outboxes.is_none());
    for options in shared {
        let options = ChannelOptions {
            disconnect_callbacks: true,
            ..options
        };
        let f = Fixture::new(Clients::Remote, options);
        let is_over = AtomicBool::new(false);
        let leavers: Vec<_> = (0..40).map(|_| Arc::new(Leaver::default())).collect();
        thread::scope(|scope| {
            for source in 1..=2 {
                let (f, is_over) = (&f, &is_over);
                scope.spawn(move || {
                    let supplier = f.supplier(&[(source, 20)]);
                    while !is_over.load(Ordering::Acquire) {
                        f.push(&supplier, &[(source, 20)]);
                    }
                });
            }
            let filter = write_entries(&Filter::Everything);
            for leaver in &leavers {
                let (proxy, _) = f.proxy_supplier();
                let skeleton = PushConsumerSkeleton::from_arc(leaver.clone());
                let object = f.client.root_poa().unwrap().serve(skeleton).unwrap();
                let reference = PushConsumer::unchecked_narrow(&object);
                connect(&proxy, Some(&reference), &filter).unwrap();
                while leaver.pushes.load(Ordering::SeqCst) == 0 {
                    thread::yield_now();
                }
                proxy.disconnect_push_supplier().unwrap();
                leaver.has_left.store(true, Ordering::SeqCst);
            }
            is_over.store(true, Ordering::Release);
        });
        let late: u64 = leavers
            .iter()
            .map(|it| it.late.load(Ordering::SeqCst))
            .sum();
        assert_eq!(late, 0);
    }
}

#[test]
fn case_20_destruction_calls_each_client_back_once() {
    everywhere(|f| {
        let consumers: Vec<_> = (0..5).map(|_| f.subscribe(&Filter::Everything)).collect();
        let suppliers: Vec<_> = (0..5)
            .map(|_| {
                let proxy = f.proxy_consumer();
                let (supplier, reference) = f.disconnectable();
                publish(&proxy, Some(&reference), &[(1, 20)]).unwrap();
                (proxy, supplier)
            })
            .collect();
        // Events are in flight when the channel is destroyed.
        for (proxy, _) in &suppliers {
            proxy.push(&[event(1, 20)]).unwrap();
        }
        let admin = f.channel.for_consumers().unwrap().unwrap();
        f.channel.destroy().unwrap();
        assert!(f.service.wait_until_destroyed(crate::support::LONG));

        for consumer in &consumers {
            assert_eq!(consumer.recorder.disconnections.number(), 1);
            assert!(is_gone(consumer.proxy.resume_connection()));
        }
        for (proxy, supplier) in &suppliers {
            assert_eq!(supplier.number(), 1);
            assert!(is_gone(proxy.disconnect_push_consumer()));
        }
        assert!(is_gone(f.channel.destroy()));
        assert!(is_gone(f.channel.for_suppliers()));
        assert!(is_gone(admin.obtain_push_supplier()));
        assert_eq!(f.service.statistics().consumers.len(), 0);
    });
}
