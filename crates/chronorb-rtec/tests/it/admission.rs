//! Admission of consumers and suppliers by response times.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use chronorb::SystemException;
use chronorb::SystemExceptionKind::{BadParam, NoResources, Transient};
use chronorb_events::{Filter, write_entries};
use chronorb_rtec::idl::chronorb_events::QueuedProxyPushSupplier;
use chronorb_rtec::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use chronorb_rtec::idl::rtec_event_channel_admin::{
    ConnectPushConsumerError, ConnectPushSupplierError, ConsumerQOS, ProxyPushConsumer,
    Publication, SupplierQOS,
};
use chronorb_rtec::{
    AdmissionPolicy, ChannelOptions, Clock, LaneOptions, OperationNeeds, OperationSource,
};

use crate::support::{Clients, Fixture, TestConsumer, dependencies, event, ms};

/// Suppliers of 10, 20 and 50 ms.
const FAST: i32 = 1;
const MIDDLE: i32 = 2;
const SLOW: i32 = 3;
/// A consumer of 4 ms on the first lane, and one of 15 ms on the second.
const URGENT: i32 = 11;
const LONG: i32 = 12;

fn operations() -> HashMap<i32, OperationNeeds> {
    let supplier = |period| OperationNeeds {
        period: Some(ms(period)),
        ..OperationNeeds::default()
    };
    let consumer = |cost, lane| OperationNeeds {
        cost: ms(cost),
        lane: Some(lane),
        ..OperationNeeds::default()
    };
    HashMap::from([
        (FAST, supplier(10)),
        (MIDDLE, supplier(20)),
        (SLOW, supplier(50)),
        (URGENT, consumer(4, 0)),
        (LONG, consumer(15, 1)),
    ])
}

fn channel(clients: Clients, policy: AdmissionPolicy) -> Fixture {
    let options = ChannelOptions {
        lanes: vec![LaneOptions::default(); 2],
        ..ChannelOptions::default()
    };
    Fixture::of(clients, options, |server| {
        server.admission(operations(), policy)
    })
}

fn everywhere(policy: AdmissionPolicy, test: impl Fn(Fixture)) {
    for clients in [Clients::Collocated, Clients::Remote] {
        test(channel(clients, policy));
    }
}

/// Connects a supplier of an event type, with the handle of its operation.
fn supply(
    proxy: &ProxyPushConsumer,
    event_type: i32,
    rt_info: i32,
) -> Result<(), ConnectPushSupplierError> {
    supply_all(proxy, &[(event_type, rt_info)])
}

/// Connects a supplier of event types, each with the handle of an operation.
fn supply_all(
    proxy: &ProxyPushConsumer,
    published: &[(i32, i32)],
) -> Result<(), ConnectPushSupplierError> {
    let publication = |&(event_type, rt_info): &(i32, i32)| Publication {
        event: event(1, event_type),
        dependency_info: DependencyInfo {
            dependency_type: DependencyTypeT::OneWayCall,
            number_of_calls: 1,
            rt_info,
            rt_info_depended_on: 0,
            enabled: DependencyEnabledTypeT::DependencyEnabled,
        },
    };
    let publications: Vec<_> = published.iter().map(publication).collect();
    let qos = SupplierQOS {
        publications: &publications,
        is_gateway: false,
    };
    proxy.connect_push_supplier(None, &qos)
}

/// Obtains a proxy and connects a consumer with the handle of its operation.
fn consume(
    f: &Fixture,
    filter: &Filter,
    rt_info: i32,
) -> (TestConsumer, Result<(), ConnectPushConsumerError>) {
    let (proxy, number) = f.proxy_supplier();
    let (recorder, consumer) = f.recorder();
    let dependencies = dependencies(&write_entries(filter), rt_info);
    let qos = ConsumerQOS {
        dependencies: &dependencies,
        is_gateway: false,
    };
    let connected = proxy.connect_push_consumer(Some(&consumer), &qos);
    if connected.is_ok() {
        f.wait_until_all_are_reached();
    }
    let consumer = TestConsumer {
        proxy,
        number,
        recorder,
        consumer,
    };
    (consumer, connected)
}

fn shortfall(consumer: &TestConsumer) -> String {
    let queued = QueuedProxyPushSupplier::narrow(consumer.proxy.as_object());
    queued.unwrap().unwrap().shortfall().unwrap()
}

fn is_refused(connected: &Result<(), ConnectPushConsumerError>) -> bool {
    let is_full = |exception: &SystemException| exception.kind == NoResources;
    matches!(connected, Err(ConnectPushConsumerError::System(it)) if is_full(it))
}

#[test]
fn a_consumer_that_would_be_late_is_refused_with_the_shortfall() {
    everywhere(AdmissionPolicy::Refuse, |f| {
        let (fast, slow) = (f.proxy_consumer(), f.proxy_consumer());
        supply(&fast, 20, FAST).unwrap();
        supply(&slow, 21, SLOW).unwrap();
        let (urgent, connected) = consume(&f, &Filter::of_type(20), URGENT);
        connected.unwrap();
        // 15 ms, and 4 ms in each 10 ms: 27 of 50 ms.
        let (long, connected) = consume(&f, &Filter::of_type(21), LONG);
        connected.unwrap();
        assert_eq!(shortfall(&long), "");
        let (refused, connected) = consume(&f, &Filter::of_type(20), LONG);
        assert!(is_refused(&connected), "{connected:?}");
        let text = shortfall(&refused);
        assert!(text.contains("the processor is overloaded"), "{text}");
        assert_eq!(f.state_of(refused.number).unwrap().subscription, "");
        // Others go on, and the proxy can be used for less.
        let supplier = crate::support::TestSupplier { proxy: fast };
        f.push(&supplier, &[(1, 20)]);
        assert_eq!(f.sets(&urgent), [[(1, 20)]]);
        let dependencies = dependencies(&write_entries(&Filter::of_type(22)), LONG);
        let qos = ConsumerQOS {
            dependencies: &dependencies,
            is_gateway: false,
        };
        let again = refused
            .proxy
            .connect_push_consumer(Some(&refused.consumer), &qos);
        assert_eq!(again, Ok(()));
        assert_eq!(shortfall(&refused), "");
    });
}

#[test]
fn a_consumer_that_leaves_makes_room() {
    everywhere(AdmissionPolicy::Refuse, |f| {
        supply(&f.proxy_consumer(), 20, MIDDLE).unwrap();
        let (first, connected) = consume(&f, &Filter::of_type(20), LONG);
        connected.unwrap();
        let (_, connected) = consume(&f, &Filter::of_type(20), LONG);
        assert!(is_refused(&connected));
        first.proxy.disconnect_push_supplier().unwrap();
        let (_, connected) = consume(&f, &Filter::of_type(20), LONG);
        connected.unwrap();
    });
}

#[test]
fn a_supplier_that_would_make_consumers_late_is_refused() {
    everywhere(AdmissionPolicy::Refuse, |f| {
        let (_, connected) = consume(&f, &Filter::of_type(20), LONG);
        connected.unwrap();
        let proxy = f.proxy_consumer();
        let refused = supply(&proxy, 20, FAST).unwrap_err();
        let ConnectPushSupplierError::System(exception) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(exception.kind, NoResources);
        assert!(!f.service.statistics().suppliers[0].is_connected);
        supply(&proxy, 20, MIDDLE).unwrap();
    });
}

#[test]
fn timers_are_a_load_too() {
    everywhere(AdmissionPolicy::Refuse, |f| {
        let (_, connected) = consume(&f, &Filter::each(ms(14)), LONG);
        assert!(is_refused(&connected));
        let (_, connected) = consume(&f, &Filter::each(ms(16)), LONG);
        connected.unwrap();
    });
}

#[test]
fn a_shortfall_can_be_reported_only() {
    everywhere(AdmissionPolicy::Report, |f| {
        let proxy = f.proxy_consumer();
        supply(&proxy, 20, FAST).unwrap();
        let (late, connected) = consume(&f, &Filter::of_type(20), LONG);
        connected.unwrap();
        let text = shortfall(&late);
        assert!(text.contains("its consumer could end"), "{text}");
        assert!(
            text.ends_with("66 % of the execution times would fit"),
            "{text}"
        );
        let supplier = crate::support::TestSupplier { proxy };
        f.push(&supplier, &[(1, 20)]);
        assert_eq!(f.sets(&late), [[(1, 20)]]);
    });
}

#[test]
fn an_operation_without_needs_is_left_out() {
    everywhere(AdmissionPolicy::Refuse, |f| {
        supply(&f.proxy_consumer(), 20, FAST).unwrap();
        supply(&f.proxy_consumer(), 21, 4711).unwrap();
        for (filter, handle) in [(20, 0), (20, 4711), (21, LONG)] {
            let (consumer, connected) = consume(&f, &Filter::of_type(filter), handle);
            connected.unwrap();
            assert_eq!(shortfall(&consumer), "");
        }
    });
}

#[test]
fn simultaneous_consumers_are_admitted_only_as_far_as_they_fit() {
    everywhere(AdmissionPolicy::Refuse, |f| {
        supply(&f.proxy_consumer(), 20, MIDDLE).unwrap();
        let barrier = Barrier::new(6);
        let connect = || {
            barrier.wait();
            let (_, connected) = consume(&f, &Filter::of_type(20), LONG);
            connected
        };
        let all: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(connect)).collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert_eq!(all.iter().filter(|it| it.is_ok()).count(), 1, "{all:?}");
        for refused in all.iter().filter(|it| it.is_err()) {
            let tries_again = SystemException::no(Transient, 0).into();
            assert!(
                is_refused(refused) || *refused == Err(tries_again),
                "{refused:?}"
            );
        }
    });
}

#[test]
fn a_supplier_names_a_bounded_number_of_operations() {
    everywhere(AdmissionPolicy::Refuse, |f| {
        let publications = |operations: i32| -> Vec<_> {
            (0..128)
                .map(|it| (20 + it, 1_000 + it % operations))
                .collect()
        };
        let proxy = f.proxy_consumer();
        let refused = supply_all(&proxy, &publications(65));
        let bad = SystemException::no(BadParam, 0);
        assert_eq!(refused, Err(bad.into()));
        assert_eq!(supply_all(&proxy, &publications(64)), Ok(()));
    });
}

#[test]
fn admission_has_quotas_and_a_channel_without_has_none() {
    let names = |f: &Fixture| -> Vec<_> {
        let quotas = f.client.snapshot().quotas.into_iter();
        let quotas = quotas.map(|quota| (quota.name, quota.used, quota.total));
        quotas
            .filter(|(name, ..)| name.contains("streams") || name.contains("periods"))
            .collect()
    };
    let f = channel(Clients::Collocated, AdmissionPolicy::Refuse);
    supply(&f.proxy_consumer(), 20, SLOW).unwrap();
    let (_, connected) = consume(&f, &Filter::of_type(20), URGENT);
    connected.unwrap();
    let expected = [
        ("streams of events to consumers".to_owned(), 1, 4096),
        ("publications with periods".to_owned(), 1, 8192),
    ];
    assert_eq!(names(&f), expected);
    let f = Fixture::new(Clients::Collocated, ChannelOptions::default());
    supply(&f.proxy_consumer(), 20, SLOW).unwrap();
    assert_eq!(names(&f), []);
}

/// A scheduling service that is not reached.
struct Absent;

impl OperationSource for Absent {
    fn operation(&self, _: i32) -> Result<Option<OperationNeeds>, SystemException> {
        Err(SystemException::no(Transient, 0))
    }
}

#[test]
fn a_source_that_fails_refuses_only_what_names_operations() {
    let options = ChannelOptions::default();
    let f = Fixture::of(Clients::Collocated, options, |server| {
        server.admission(Absent, AdmissionPolicy::Refuse)
    });
    let (_, connected) = consume(&f, &Filter::of_type(20), 0);
    connected.unwrap();
    let (_, connected) = consume(&f, &Filter::of_type(20), URGENT);
    let Err(ConnectPushConsumerError::System(exception)) = connected else {
        panic!("{connected:?}");
    };
    assert_eq!(exception.kind, Transient);
    assert_eq!(f.channel.destroy(), Ok(()));
    assert!(f.service.wait_until_destroyed(Duration::from_secs(60)));
}

/// A clock that goes on by a millisecond at each reading.
#[derive(Clone, Default)]
struct SteppingClock(Arc<AtomicU64>);

impl Clock for SteppingClock {
    fn now(&self) -> u64 {
        self.0.fetch_add(1_000_000, Ordering::AcqRel)
    }
}

/// Pushes five events to a queued consumer with these needs, by each dispatching with queues and by
/// a clock that steps at each reading. Calls `check` with the channel and the consumer.
fn push_to_queued_consumer(needs: OperationNeeds, check: impl Fn(&Fixture, &TestConsumer)) {
    let operations = HashMap::from([(LONG, needs)]);
    for options in crate::support::dispatchings().into_iter().skip(1) {
        let f = Fixture::of(Clients::Remote, options, |server| {
            let server = server.clock(SteppingClock::default());
            server.admission(operations.clone(), AdmissionPolicy::Refuse)
        });
        let (consumer, connected) = consume(&f, &Filter::of_type(20), LONG);
        connected.unwrap();
        let supplier = f.supplier(&[(1, 20)]);
        f.push(&supplier, &[(1, 20); 5]);
        check(&f, &consumer);
    }
}

#[test]
fn a_consumer_has_its_execution_time_in_each_period() {
    let bounded = OperationNeeds {
        cost: ms(1),
        period: Some(Duration::from_secs(1_000_000)),
        ..OperationNeeds::default()
    };
    push_to_queued_consumer(bounded, |f, consumer| {
        // The first event has used all of it.
        let state = f.state_of(consumer.number).unwrap();
        assert_eq!((state.events, state.queued, state.pauses), (1, 4, 1));
        assert_eq!(f.sets(consumer), [[(1, 20)]]);
    });
}

#[test]
fn a_consumer_with_the_period_of_its_callers_has_no_budget() {
    let called = OperationNeeds {
        cost: ms(1),
        period: Some(Duration::from_secs(1_000_000)),
        is_called: true,
        ..OperationNeeds::default()
    };
    push_to_queued_consumer(called, |f, consumer| {
        assert_eq!(f.sets(consumer).len(), 5);
        assert_eq!(f.state_of(consumer.number).unwrap().pauses, 0);
    });
}
