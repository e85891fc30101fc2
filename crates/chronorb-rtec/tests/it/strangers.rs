//! Clients that take all they can, and references that lead elsewhere, do not disturb others.

use std::net::TcpListener;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use chronorb::SystemExceptionKind;
use chronorb::config::BidirectionalConnections;
use chronorb::prelude::*;
use chronorb::rtcorba::{BidirectionalMode, ClientPolicy, SetOverride};
use chronorb::transport::parse_endpoints;
use chronorb_events::{Filter, write_entries};
use chronorb_rt::Deadline;
use chronorb_rtec::idl::chronorb_events::MonitoredChannel;
use chronorb_rtec::idl::rtec_event_channel_admin::{
    ConnectPushConsumerError, EventChannel, ProxyPushConsumer, ProxyPushSupplier, SupplierQOS,
};
use chronorb_rtec::idl::rtec_event_comm::{
    EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
};
use chronorb_rtec::{ChannelLimits, ChannelOptions, EventServer, LaneOptions, PeerPolicy};

use crate::support::{
    Clients, Fixture, LONG, RawConsumer, all, connect, dispatchings, event, orb, orb_with, publish,
    single,
};

fn everything() -> Vec<chronorb_events::Entry> {
    write_entries(&Filter::Everything)
}

/// A consumer of GIOP 1.2 at a listener.
fn consumer_at(f: &Fixture, listener: &TcpListener) -> PushConsumer {
    let port = listener.local_addr().unwrap().port();
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/Consumer");
    PushConsumer::unchecked_narrow(&f.client.string_to_object(&url).unwrap())
}

fn refusal<E: std::fmt::Debug>(error: E) -> String {
    format!("{error:?}")
}

#[test]
fn a_consumer_gets_nothing_before_it_has_answered_and_loses_nothing() {
    for options in dispatchings() {
        let has_outboxes = options.outboxes.is_some();
        let f = Fixture::new(Clients::Remote, options);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (proxy, number) = f.proxy_supplier();
        connect(&proxy, Some(&consumer_at(&f, &listener)), &everything()).unwrap();
        let other = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(1, 20)]);
        let events: Vec<_> = (0..100).map(|number| (1, 20 + number)).collect();
        f.push(&supplier, &events);
        assert_eq!(f.sets(&other), single(&events), "others do not wait");
        let state = f.state_of(number).unwrap();
        assert!(!state.has_answered);
        assert_eq!((state.events, state.lost, state.queued), (0, 0, 100));

        // The first message is a question, and no event.
        let mut consumer = RawConsumer::accept(&listener);
        consumer.answer();
        if has_outboxes {
            // An outbox has a connection of its own, and asks for the object.
            consumer = RawConsumer::accept(&listener);
            let question = consumer.read();
            consumer.answer_locate(&question);
        }
        for (_, event_type) in events {
            let message = consumer.read();
            assert!(message.windows(5).any(|octets| octets == b"push\0"));
            let header = message.len() - 52;
            let found = message[header + 4..header + 8].try_into().unwrap();
            assert_eq!(i32::from_ne_bytes(found), event_type, "in order");
        }
    }
}

#[test]
fn the_objects_of_the_channel_are_no_consumers_of_it() {
    let f = Fixture::new(Clients::Remote, ChannelOptions::default());
    let own = f.proxy_consumer();
    let own = PushConsumer::unchecked_narrow(own.as_object());
    let (proxy, _) = f.proxy_supplier();
    let refused = connect(&proxy, Some(&own), &everything()).unwrap_err();
    let ConnectPushConsumerError::System(exception) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(exception.kind, SystemExceptionKind::BadParam);
}

#[test]
fn consumers_by_datagrams_are_an_option() {
    let f = Fixture::new(Clients::Remote, ChannelOptions::default());
    for url in [
        "corbaloc:miop:1.0@1.0-Events-7/239.80.0.1:31099",
        "corbaloc:diop:127.0.0.1:9/X",
    ] {
        let consumer = f.client.string_to_object(url).unwrap();
        let consumer = PushConsumer::unchecked_narrow(&consumer);
        let (proxy, _) = f.proxy_supplier();
        let refused = connect(&proxy, Some(&consumer), &everything()).unwrap_err();
        assert!(refusal(refused).contains("BadParam"), "{url}");
    }
}

/// Connects the channel `to` as a consumer of the channel `from`, as a gateway does.
fn join(
    from: &EventChannel,
    to: &EventChannel,
    orb: &Orb,
) -> (ProxyPushSupplier, ProxyPushConsumer) {
    let supply = to.for_suppliers().unwrap().unwrap().obtain_push_consumer();
    let supply = supply.unwrap().unwrap();
    publish(&supply, None, &[(0, 0)]).unwrap();
    let consume = from
        .for_consumers()
        .unwrap()
        .unwrap()
        .obtain_push_supplier();
    let consume = consume.unwrap().unwrap();
    let text = orb.object_to_string(supply.as_object());
    let target = PushConsumer::unchecked_narrow(&orb.string_to_object(&text).unwrap());
    connect(&consume, Some(&target), &everything()).unwrap();
    (consume, supply)
}

#[test]
fn an_event_passes_each_channel_of_a_circle_once() {
    for options in dispatchings() {
        let channels = [(); 3].map(|()| Fixture::new(Clients::Remote, options.clone()));
        for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0)] {
            join(
                &channels[from].channel,
                &channels[to].channel,
                &channels[from].client,
            );
        }
        let recorders = channels
            .each_ref()
            .map(|f| f.subscribe(&Filter::Everything));
        channels
            .iter()
            .for_each(Fixture::wait_until_all_are_reached);
        let supplier = channels[0].supplier(&[(1, 20)]);
        supplier.proxy.push(&[event(1, 20)]).unwrap();
        supplier.proxy.push(&[event(1, 21)]).unwrap();
        for (f, recorder) in channels.iter().zip(&recorders) {
            let sets = recorder.recorder.sets(2);
            assert_eq!(sets, single(&[(1, 20), (1, 21)]), "each event once");
            assert!(f.state_of(recorder.number).is_some());
        }
        // Both ways back to the first one end there.
        let deadline = Deadline::after(LONG);
        while channels[0].service.statistics().returned < 4 {
            assert!(!deadline.has_passed(), "the events come back");
            thread::yield_now();
        }
        assert_eq!(channels[0].service.statistics().received, 2);
    }
}

#[test]
fn a_circle_within_a_process_ends() {
    let f = Fixture::new(Clients::Collocated, ChannelOptions::default());
    let root = f.client.root_poa().unwrap();
    let second = EventServer::new().name("Second").serve_in(&root).unwrap();
    let channel = EventChannel::unchecked_narrow(second.channel());
    join(&f.channel, &channel, &f.client);
    join(&channel, &f.channel, &f.client);
    f.wait_until_all_are_reached();
    let recorder = f.subscribe(&Filter::Everything);
    let supplier = f.supplier(&[(1, 20)]);
    supplier.proxy.push(&[event(1, 20)]).unwrap();
    let deadline = Deadline::after(LONG);
    while f.service.statistics().returned == 0 {
        assert!(!deadline.has_passed(), "the event comes back");
        thread::yield_now();
    }
    assert_eq!(recorder.recorder.sets(1), [[(1, 20)]]);
    assert_eq!(second.statistics().received, 1);
}

#[test]
fn a_client_cannot_take_the_proxies_of_others() {
    let limits = ChannelLimits {
        consumers: chronorb::quota::QuotaLimits {
            total: 5,
            per_origin: 3,
        },
        ..ChannelLimits::default()
    };
    let options = ChannelOptions {
        limits,
        ..ChannelOptions::default()
    };
    let f = Fixture::new(Clients::Remote, options);
    let admin = f.channel.for_consumers().unwrap().unwrap();
    let taken = [(); 3].map(|()| admin.obtain_push_supplier().unwrap().unwrap());
    let excess = admin.obtain_push_supplier().unwrap_err();
    assert_eq!(excess.kind, SystemExceptionKind::ImpLimit);

    // Each connection by the loopback is a client of its own.
    let stranger = orb();
    let text = f.client.object_to_string(f.service.channel());
    let channel = EventChannel::unchecked_narrow(&stranger.string_to_object(&text).unwrap());
    let others = channel.for_consumers().unwrap().unwrap();
    let _two = [(); 2].map(|()| others.obtain_push_supplier().unwrap());
    assert!(
        others.obtain_push_supplier().is_err(),
        "there are five in all"
    );
    taken[0].disconnect_push_supplier().unwrap();
    others.obtain_push_supplier().unwrap();
    stranger.shutdown(true).unwrap();
}

#[test]
fn nodes_and_timers_of_subscriptions_are_shared() {
    let filter = Filter::of_type(20) | Filter::of_type(21) | Filter::each(crate::support::ms(100));
    let limits = [
        ChannelLimits {
            nodes: all(6),
            ..ChannelLimits::default()
        },
        ChannelLimits {
            firings: all(15),
            ..ChannelLimits::default()
        },
    ];
    for limits in limits {
        let options = ChannelOptions {
            limits,
            ..ChannelOptions::default()
        };
        let f = Fixture::new(Clients::Remote, options);
        let first = f.subscribe(&filter);
        let (proxy, _) = f.proxy_supplier();
        let (_, consumer) = f.recorder();
        let entries = write_entries(&filter);
        let refused = connect(&proxy, Some(&consumer), &entries).unwrap_err();
        assert!(refusal(refused).contains("ImpLimit"));
        first.proxy.disconnect_push_supplier().unwrap();
        connect(&proxy, Some(&consumer), &entries).unwrap();
    }
}

#[test]
fn statistics_are_pages_with_short_texts() {
    let f = Fixture::new(Clients::Remote, ChannelOptions::default());
    let leaves = (0..300).map(|number| Filter::event(number, 20 + number));
    let long = leaves.reduce(|all, leaf| all | leaf).unwrap();
    let longest = f.subscribe(&long);
    let admin = f.channel.for_consumers().unwrap().unwrap();
    for _ in 0..299 {
        admin.obtain_push_supplier().unwrap();
    }
    let monitored = MonitoredChannel::unchecked_narrow(f.channel.as_object());
    let first = monitored.statistics().unwrap();
    assert_eq!(first.consumers.len(), 64);
    let text = &first.consumers[0].subscription;
    assert_eq!(text.chars().count(), 201, "{text}");
    let last = first.consumers.last().unwrap().number;
    let second = monitored.statistics_after(last, 0).unwrap();
    assert_eq!(second.consumers.len(), 64);
    assert!(
        second
            .consumers
            .iter()
            .all(|consumer| consumer.number > last)
    );
    let none = monitored.statistics_after(u64::MAX, u64::MAX).unwrap();
    assert!(none.consumers.is_empty() && none.suppliers.is_empty());
    drop(longest);
}

#[test]
fn clients_destroy_the_channel_only_where_they_may() {
    let options = ChannelOptions {
        clients_destroy: false,
        ..ChannelOptions::default()
    };
    let f = Fixture::new(Clients::Remote, options);
    let refused = f.channel.destroy().unwrap_err();
    assert_eq!(refused.kind, SystemExceptionKind::NoPermission);
    assert!(f.channel.for_consumers().unwrap().is_some());
    f.service.destroy().unwrap();
}

#[test]
fn the_keys_of_proxies_cannot_be_guessed() {
    let f = Fixture::new(Clients::Remote, ChannelOptions::default());
    let (mine, number) = f.proxy_supplier();
    let (_, victim) = f.proxy_supplier();
    assert_eq!((number, victim), (1, 2));
    // The key is the same but for the number and its code.
    let text = f.client.object_to_string(mine.as_object());
    let digit = "31";
    let mut forged = 0;
    for at in (4..text.len()).step_by(2) {
        if &text[at..at + 2] != digit {
            continue;
        }
        let mut other = text.clone();
        other.replace_range(at..at + 2, "32");
        if let Ok(object) = f.client.string_to_object(&other) {
            forged += 1;
            let object = object.with_timeout(crate::support::ms(500));
            // Some of them are other addresses, or malformed.
            let _ = ProxyPushSupplier::unchecked_narrow(&object).disconnect_push_supplier();
        }
    }
    assert!(forged > 0);
    assert!(f.state_of(victim).is_some(), "a forged key is no right");
}

/// The shape of TAO's and omniEvents' clients.
#[test]
fn a_client_of_one_thread_that_connects_and_pushes_at_once_loses_nothing() {
    for options in dispatchings() {
        // No more than the queue before an outbox takes, if the lane is late.
        let number = if options.outboxes.is_some() { 50 } else { 200 };
        let f = Fixture::new(Clients::Remote, options);
        let client = orb();
        let root = client.root_poa().unwrap();
        let recorder = Arc::new(crate::support::Recorder::default());
        let skeleton = PushConsumerSkeleton::from_arc(recorder.clone());
        let object = root.serve(skeleton).unwrap();
        let consumer = PushConsumer::unchecked_narrow(&object);
        let text = f.client.object_to_string(f.service.channel());
        let channel = EventChannel::unchecked_narrow(&client.string_to_object(&text).unwrap());
        let proxy = channel
            .for_consumers()
            .unwrap()
            .unwrap()
            .obtain_push_supplier();
        connect(&proxy.unwrap().unwrap(), Some(&consumer), &everything()).unwrap();
        let supply = channel
            .for_suppliers()
            .unwrap()
            .unwrap()
            .obtain_push_consumer();
        let supply = supply.unwrap().unwrap();
        publish(&supply, None, &[(1, 20)]).unwrap();
        let events: Vec<_> = (20..20 + number)
            .map(|event_type| (1, event_type))
            .collect();
        for &(source, event_type) in &events {
            supply.push(&[event(source, event_type)]).unwrap();
        }
        // It serves requests only from here on, and so answers the channel.
        root.manager().activate().unwrap();
        assert_eq!(recorder.sets(events.len()), single(&events));
        client.shutdown(true).unwrap();
    }
}

/// A client that can be called back on its own connection proves nothing more by an answer.
#[test]
fn a_client_of_one_thread_gets_its_events_at_once_on_its_own_connection() {
    let [reactive, lanes, _] = dispatchings();
    // The first address is proved. Nothing can connect to the others, which are claimed.
    for (options, host) in [
        (reactive.clone(), "127.0.0.1"),
        (reactive, "192.0.2.7"),
        (lanes, "client.invalid"),
    ] {
        let server = orb_with(|config| {
            config.bidirectional = BidirectionalConnections::Accept;
            config.client_transport_rules = ["* none".parse().unwrap()].into_iter().collect();
        });
        let root = server.root_poa().unwrap();
        let service = EventServer::new().options(options).serve_in(&root).unwrap();
        root.manager().activate().unwrap();
        let client = orb_with(|config| {
            let endpoint = format!("iiop://127.0.0.1:0/hostname_in_ior={host}");
            config.listen_endpoints = parse_endpoints(&endpoint).unwrap();
            config.bidirectional = BidirectionalConnections::Offer;
            config.threads = "1".parse().unwrap();
        });
        let offer = [ClientPolicy::Bidirectional(BidirectionalMode::Both)];
        let policies = client.policy_manager();
        policies
            .set_policy_overrides(&offer, SetOverride::Add)
            .unwrap();
        let root = client.root_poa().unwrap();
        let both = [Policy::Bidirectional(BidirectionalMode::Both)];
        let poa = root.create_poa("callbacks", Some(root.manager()), &both);
        let recorder = Arc::new(crate::support::Recorder::default());
        let skeleton = PushConsumerSkeleton::from_arc(recorder.clone());
        let consumer = PushConsumer::unchecked_narrow(&poa.unwrap().serve(skeleton).unwrap());
        let text = server.object_to_string(service.channel());
        let channel = EventChannel::unchecked_narrow(&client.string_to_object(&text).unwrap());
        let proxy = channel
            .for_consumers()
            .unwrap()
            .unwrap()
            .obtain_push_supplier();
        connect(&proxy.unwrap().unwrap(), Some(&consumer), &everything()).unwrap();
        let supplier = service.supplier(&SupplierQOS::default()).unwrap();
        let events: Vec<_> = (20..70).map(|event_type| (1, event_type)).collect();
        for &(source, event_type) in &events {
            supplier.push(&[event(source, event_type)]);
        }
        assert!(service.flush(LONG));
        // It has served nothing so far, so it has not answered.
        let state = service.statistics().consumers.remove(0);
        assert_eq!((state.events, state.queued, state.lost), (50, 0, 0));
        root.manager().activate().unwrap();
        assert_eq!(recorder.sets(events.len()), single(&events));

        // Without the connection it is a consumer like others, which nothing reaches here.
        client.shutdown(true).unwrap();
        let deadline = Deadline::after(LONG);
        while service.statistics().evicted == 0 {
            assert!(!deadline.has_passed(), "it is not reached any more");
            supplier.push(&[event(1, 20)]);
            thread::yield_now();
        }
        drop((supplier, service));
        server.shutdown(true).unwrap();
    }
}

/// A channel of another make: what it takes it pushes back, without the context of its passage.
#[derive(Default)]
struct ForeignChannel(OnceLock<ProxyPushConsumer>);

impl PushConsumerOwnedServant for ForeignChannel {
    fn push(&self, _: &Call<'_>, data: EventSet<'_>) -> Result<(), SystemException> {
        self.0.get().expect("it is connected").push(data)
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_circle_through_a_foreign_channel_has_the_share_of_its_origin() {
    const SHARE: u64 = 128 << 10;
    for options in dispatchings() {
        let octets = chronorb::quota::QuotaLimits {
            total: 8 * SHARE,
            per_origin: SHARE,
        };
        let f = Fixture::new(
            Clients::Remote,
            ChannelOptions {
                limits: ChannelLimits {
                    octets,
                    ..ChannelLimits::default()
                },
                peers: PeerPolicy {
                    push_timeout: Duration::from_millis(200),
                    failures: u32::MAX,
                    ..PeerPolicy::default()
                },
                ..options
            },
        );
        let other = f.subscribe(&Filter::of_type(99));
        let foreign = orb();
        let root = foreign.root_poa().unwrap();
        root.manager().activate().unwrap();
        let text = foreign.object_to_string(f.service.channel());
        let channel = EventChannel::unchecked_narrow(&foreign.string_to_object(&text).unwrap());
        let supply = channel
            .for_suppliers()
            .unwrap()
            .unwrap()
            .obtain_push_consumer();
        let supply = supply.unwrap().unwrap();
        publish(&supply, None, &[(0, 0)]).unwrap();
        // Both push each event back, so that there are twice as many each time.
        let mut circles = Vec::new();
        for _ in 0..2 {
            let servant = Arc::new(ForeignChannel::default());
            servant.0.set(supply.clone()).unwrap();
            let object = root.serve(PushConsumerSkeleton::from_arc(servant)).unwrap();
            let consumer = PushConsumer::unchecked_narrow(&object);
            let admin = channel.for_consumers().unwrap().unwrap();
            let proxy = admin.obtain_push_supplier().unwrap().unwrap();
            let entries = write_entries(&Filter::of_type(20));
            connect(&proxy, Some(&consumer), &entries).unwrap();
            circles.push(proxy);
        }
        f.wait_until_all_are_reached();
        let supplier = f.supplier(&[(1, 20)]);
        let payload = vec![7; 2000];
        let mut first = event(1, 20);
        first.data = crate::support::data(&payload);
        supplier.proxy.push(&[first]).unwrap();

        let deadline = Deadline::after(LONG);
        let mut urgent = 0;
        let mut most = 0;
        while f.service.statistics().lost < 1000 || urgent < 100 {
            assert!(!deadline.has_passed(), "what exceeds the share is lost");
            most = most.max(f.most_used("octets of waiting events"));
            supplier.proxy.push(&[event(1, 99)]).unwrap();
            urgent += 1;
            assert_eq!(
                other.recorder.sets(urgent).len(),
                urgent,
                "others get theirs"
            );
        }
        assert!(most <= SHARE, "{most} octets wait");
        let state = f.state_of(other.number).unwrap();
        assert_eq!((state.lost, state.failures), (0, 0));
        let lost = f
            .service
            .statistics()
            .consumers
            .iter()
            .map(|it| it.lost)
            .sum::<u64>();
        assert!(
            lost >= 1000,
            "they are counted for the consumers of the circle"
        );
        for proxy in circles {
            proxy.disconnect_push_supplier().unwrap();
        }
        foreign.shutdown(true).unwrap();
    }
}

/// A group that never completes keeps an event for each of its other parts.
#[test]
fn events_that_wait_are_bounded_by_their_octets() {
    let options = |lanes: usize| ChannelOptions {
        lanes: vec![LaneOptions::default(); lanes],
        limits: ChannelLimits {
            consumer_octets: 1 << 20,
            ..ChannelLimits::default()
        },
        ..ChannelOptions::default()
    };
    for lanes in [0, 1] {
        let f = Fixture::new(Clients::Remote, options(lanes));
        let parts = (0..150).map(|part| Filter::event(1, 20 + part)).collect();
        let group = f.subscribe(&Filter::Conjunction(parts));
        let other = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(1, 0)]);
        for part in 0..149 {
            let mut one = event(1, 20 + part);
            let payload = vec![7; 100_000];
            one.data = crate::support::data(&payload);
            supplier.proxy.push(&[one]).unwrap();
            f.expect(1);
        }
        assert_eq!(other.recorder.sets(149).len(), 149, "others get all");
        let state = f.state_of(group.number).unwrap();
        assert!(state.lost > 130, "{} of 149 are lost", state.lost);
    }
}

#[test]
fn the_work_of_a_push_is_bounded() {
    let options = ChannelOptions {
        limits: ChannelLimits {
            push_work: 100,
            ..ChannelLimits::default()
        },
        ..ChannelOptions::default()
    };
    let f = Fixture::new(Clients::Remote, options);
    let filter = Filter::Bits {
        source_mask: -1,
        type_mask: -1,
        then: Box::new(Filter::Everything),
    };
    let consumer = f.subscribe(&filter);
    let supplier = f.supplier(&[(1, 20)]);
    let events: Vec<_> = (0..200).map(|_| event(1, 20)).collect();
    supplier.proxy.push(&events).unwrap();
    f.expect(200);
    let lost = f.service.statistics().lost;
    assert!((100..200).contains(&lost), "{lost} of 200 are lost");
    assert_eq!(f.sets(&consumer).len() as u64, 200 - lost);
    // The next push is another one.
    supplier.proxy.push(&events[..10]).unwrap();
    f.expect(10);
    assert_eq!(f.service.statistics().lost, lost);
}

/// Stuck consumers make a push wait once, whatever their number, and lose nothing of others.
#[test]
fn many_stuck_consumers_make_a_push_wait_for_one_of_them() {
    let options = ChannelOptions {
        peers: PeerPolicy {
            push_timeout: Duration::from_millis(300),
            failures: u32::MAX,
            ..PeerPolicy::default()
        },
        ..ChannelOptions::default()
    };
    let f = Fixture::new(Clients::Remote, options);
    let mut stuck = Vec::new();
    for _ in 0..6 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (proxy, number) = f.proxy_supplier();
        connect(&proxy, Some(&consumer_at(&f, &listener)), &everything()).unwrap();
        let mut consumer = RawConsumer::accept(&listener);
        consumer.answer();
        f.wait_until_reached(number);
        stuck.push((listener, consumer, number));
    }
    let living = f.subscribe(&Filter::Everything);
    let supplier = f.supplier(&[(1, 20)]);
    // More than the buffers of the kernel take of the stuck ones.
    let payload = vec![0; 256 << 10];
    let mut pushed = 0;
    let failures = |number| f.state_of(number).unwrap().failures;
    while stuck.iter().all(|(.., number)| failures(*number) == 0) {
        let mut one = event(1, 20);
        one.data = crate::support::data(&payload);
        supplier.proxy.push(&[one]).unwrap();
        f.expect(1);
        pushed += 1;
    }
    // The push that waited for one of them has held its event for the others.
    let failed = stuck
        .iter()
        .filter(|(.., number)| f.state_of(*number).unwrap().lost > 0);
    assert_eq!(failed.count(), 1);
    assert_eq!(
        living.recorder.sets(pushed).len(),
        pushed,
        "the living one gets all"
    );
}
