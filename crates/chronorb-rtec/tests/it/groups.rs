//! Consumers of a process that share messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use chronorb::SystemExceptionKind::{BadParam, ImpLimit};
use chronorb::prelude::*;
use chronorb_events::{Filter, Overflow, write_entries};
use chronorb_rt::{Deadline, Gate};
use chronorb_rtec::idl::chronorb_events::{
    FanOutConsumer, FanOutConsumerOwnedServant, FanOutConsumerSkeleton, OverflowPolicy, QueueQOS,
    QueuedProxyPushSupplier, SetFanOutError,
};
use chronorb_rtec::idl::rtec_event_channel_admin::{ProxyPushSupplier, SupplierQOS};
use chronorb_rtec::idl::rtec_event_comm::EventSet;
use chronorb_rtec::{
    ChannelChange, ChannelLimits, ChannelOptions, ConsumerGroup, ConsumerOptions, GroupCallback,
    LaneOptions, PeerPolicy, QueueOptions, Reconnect, WatchOptions,
};

use crate::support::{
    Clients, Fixture, LONG, PLACES, Record, TestConsumer, all, connect, data, dispatchings, event,
    leaf, single,
};

/// An object that records the messages of a channel.
#[derive(Default)]
struct Messages(Record<(Vec<u32>, i32)>);

impl FanOutConsumerOwnedServant for Messages {
    fn push_to(
        &self,
        _: &Call<'_>,
        members: &[u32],
        data: EventSet<'_>,
    ) -> Result<(), SystemException> {
        for event in data {
            self.0.add((members.to_vec(), event.header.r#type));
        }
        Ok(())
    }
}

fn serve(f: &Fixture, servant: Arc<impl FanOutConsumerOwnedServant>) -> FanOutConsumer {
    let root = f.client.root_poa().unwrap();
    let object = root.serve(FanOutConsumerSkeleton::from_arc(servant));
    FanOutConsumer::unchecked_narrow(&object.unwrap())
}

fn set_fan_out(
    proxy: &ProxyPushSupplier,
    target: Option<&FanOutConsumer>,
    member: u32,
) -> Result<(), SetFanOutError> {
    let queued = QueuedProxyPushSupplier::narrow(proxy.as_object());
    queued.unwrap().unwrap().set_fan_out(target, member)
}

/// Connects a consumer by hand whose events an object takes.
fn member(f: &Fixture, filter: &Filter, target: &FanOutConsumer, number: u32) -> TestConsumer {
    let member = unreached(f, filter, target, number);
    f.wait_until_reached(member.number);
    member
}

/// A consumer that need not answer.
fn unreached(f: &Fixture, filter: &Filter, target: &FanOutConsumer, number: u32) -> TestConsumer {
    let (proxy, of_channel) = f.proxy_supplier();
    let (recorder, consumer) = f.recorder();
    set_fan_out(&proxy, Some(target), number).unwrap();
    connect(&proxy, Some(&consumer), &write_entries(filter)).unwrap();
    TestConsumer {
        proxy,
        number: of_channel,
        recorder,
        consumer,
    }
}

#[test]
fn consumers_of_an_object_share_messages() {
    for clients in [Clients::Collocated, Clients::Remote] {
        let f = Fixture::new(clients, ChannelOptions::default());
        let (messages, others) = (Arc::<Messages>::default(), Arc::<Messages>::default());
        let target = serve(&f, messages.clone());
        let other = serve(&f, others.clone());
        let members: Vec<_> = [
            (leaf((0, 20)), &target, 7),
            (Filter::Everything, &target, 9),
            (leaf((0, 21)), &target, 3),
            (Filter::Everything, &other, 9),
            (leaf((0, 20)), &target, 4),
        ]
        .into_iter()
        .map(|(filter, target, number)| member(&f, &filter, target, number))
        .collect();
        let supplier = f.supplier(&[(0, 0)]);
        f.push(&supplier, &[(1, 20), (1, 21), (1, 22)]);
        members[1].proxy.suspend_connection().unwrap();
        f.push(&supplier, &[(1, 20)]);
        members[1].proxy.resume_connection().unwrap();
        members[0].proxy.disconnect_push_supplier().unwrap();
        f.push(&supplier, &[(1, 20)]);
        let sent = [
            (vec![7, 9, 4], 20),
            (vec![9, 3], 21),
            (vec![9], 22),
            (vec![7, 4], 20),
            (vec![9, 4], 20),
        ];
        assert_eq!(messages.0.wait_for(sent.len()), sent);
        assert_eq!(others.0.wait_for(5).len(), 5);
        for member in &members {
            assert_eq!(member.recorder.sets(0), [] as [Vec<_>; 0], "no other push");
        }
        // Several events of one push are messages of their own.
        let events = [event(1, 20), event(1, 20)];
        supplier.proxy.push(&events).unwrap();
        f.expect(2);
        let sent = messages.0.wait_for(sent.len() + 2);
        assert_eq!(sent[5..], [(vec![9, 4], 20), (vec![9, 4], 20)]);
    }
}

#[test]
fn every_lane_sends_each_event_once_to_each_consumer() {
    for options in dispatchings() {
        let has_outboxes = options.outboxes.is_some();
        let f = Fixture::new(Clients::Remote, options);
        let messages = Arc::<Messages>::default();
        let target = serve(&f, messages.clone());
        let members: Vec<_> = (0..40)
            .map(|number| member(&f, &Filter::Everything, &target, number))
            .collect();
        let supplier = f.supplier(&[(0, 0)]);
        let types = 20..60;
        let events: Vec<_> = types.clone().map(|of_type| event(1, of_type)).collect();
        supplier.proxy.push(&events).unwrap();
        f.expect(events.len() as u64);
        if has_outboxes {
            // Outboxes are of consumers, not of objects.
            let sets = members[39].recorder.sets(events.len());
            assert_eq!(sets.len(), events.len());
            continue;
        }
        let mut taken = vec![Vec::new(); members.len()];
        let mut sent = 0;
        while taken.iter().any(|of: &Vec<i32>| of.len() < events.len()) {
            let all = messages.0.wait_for(sent + 1);
            for (numbers, of_type) in &all[sent..] {
                for number in numbers {
                    taken[*number as usize].push(*of_type);
                }
            }
            sent = all.len();
        }
        let types: Vec<_> = types.collect();
        assert!(taken.iter().all(|of| *of == types), "in order: {taken:?}");
    }
}

#[test]
fn an_object_is_set_before_the_connection() {
    for clients in [Clients::Collocated, Clients::Remote] {
        let f = Fixture::new(clients, ChannelOptions::default());
        let (proxy, _) = f.proxy_supplier();
        let refused = set_fan_out(&proxy, None, 1).unwrap_err();
        assert!(matches!(refused, SetFanOutError::System(it) if it.kind == BadParam));
        let (recorder, consumer) = f.recorder();
        let entries = write_entries(&Filter::Everything);
        connect(&proxy, Some(&consumer), &entries).unwrap();
        let target = serve(&f, Arc::<Messages>::default());
        let refused = set_fan_out(&proxy, Some(&target), 1).unwrap_err();
        assert!(matches!(refused, SetFanOutError::AlreadyConnected(_)));
        let supplier = f.supplier(&[(0, 0)]);
        f.push(&supplier, &[(1, 20)]);
        assert_eq!(recorder.sets(1), single(&[(1, 20)]));
    }
}

#[test]
fn an_object_of_another_kind_disturbs_nobody() {
    for clients in [Clients::Collocated, Clients::Remote] {
        let f = Fixture::new(clients, ChannelOptions::default());
        let (wrong, consumer) = f.recorder();
        let target = FanOutConsumer::unchecked_narrow(consumer.as_object());
        let first = f.subscribe(&Filter::Everything);
        let _confused = [
            member(&f, &Filter::Everything, &target, 0),
            member(&f, &Filter::Everything, &target, 0),
            member(&f, &Filter::Everything, &target, u32::MAX),
        ];
        let last = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(0, 0)]);
        f.push(&supplier, &[(1, 20), (1, 21)]);
        for consumer in [&first, &last] {
            assert_eq!(consumer.recorder.sets(2), single(&[(1, 20), (1, 21)]));
        }
        assert_eq!(wrong.sets(0), [] as [Vec<_>; 0]);
    }
}

#[test]
fn consumers_of_an_object_that_is_gone_end() {
    for lanes in [0, 1] {
        let options = ChannelOptions {
            lanes: vec![LaneOptions::default(); lanes],
            peers: PeerPolicy {
                failures: 2,
                ..PeerPolicy::default()
            },
            ..ChannelOptions::default()
        };
        let f = Fixture::new(Clients::Remote, options);
        let gone = Fixture::new(Clients::Remote, ChannelOptions::default());
        let target = serve(&gone, Arc::<Messages>::default());
        let text = gone.client.object_to_string(target.as_object());
        let object = f.client.string_to_object(&text).unwrap();
        let target = FanOutConsumer::unchecked_narrow(&object);
        drop(gone);
        let _lost = [
            unreached(&f, &Filter::Everything, &target, 1),
            unreached(&f, &Filter::Everything, &target, 2),
        ];
        let last = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(0, 0)]);
        f.push(&supplier, &[(1, 20), (1, 21), (1, 22)]);
        let types = single(&[(1, 20), (1, 21), (1, 22)]);
        assert_eq!(last.recorder.sets(3), types);
        f.wait_for_evictions(2);
        let statistics = f.service.statistics();
        assert_eq!(
            (statistics.evicted, statistics.lost),
            (2, 6),
            "what was held"
        );
    }
}

/// An object that looks whether its consumer 1 is connected.
#[derive(Default)]
struct ConnectionWatch {
    is_over: AtomicBool,
    taken: AtomicU64,
    /// The pushes after the end.
    late: AtomicU64,
}

impl FanOutConsumerOwnedServant for ConnectionWatch {
    fn push_to(
        &self,
        _: &Call<'_>,
        members: &[u32],
        _: EventSet<'_>,
    ) -> Result<(), SystemException> {
        if members.contains(&1) {
            self.taken.fetch_add(1, Ordering::Relaxed);
            let is_late = self.is_over.load(Ordering::Acquire);
            self.late.fetch_add(u64::from(is_late), Ordering::Relaxed);
        }
        Ok(())
    }
}

#[test]
fn no_push_comes_after_a_disconnection() {
    // A supplier waits when the thread of the lane is late, so nothing is lost.
    let queue = QueueOptions {
        overflow: Overflow::Block,
        block: LONG,
        ..QueueOptions::default()
    };
    let lane = LaneOptions {
        queue,
        ..LaneOptions::default()
    };
    for lanes in [0, 1] {
        let options = ChannelOptions {
            lanes: vec![lane; lanes],
            disconnect_callbacks: true,
            ..ChannelOptions::default()
        };
        // The callback goes by the connection of the pushes, so it is behind all of them.
        let f = Fixture::new(Clients::Remote, options);
        let is_over = AtomicBool::new(false);
        let deadline = Deadline::after(LONG);
        let mut late = 0;
        thread::scope(|scope| {
            for _ in 0..2 {
                let supplier = f.supplier(&[(0, 0)]);
                let (f, is_over) = (&f, &is_over);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Acquire) {
                        f.push(&supplier, &[(1, 20)]);
                    }
                });
            }
            for _ in 0..20 {
                let connected = Arc::<ConnectionWatch>::default();
                let target = serve(&f, connected.clone());
                let stays = member(&f, &Filter::Everything, &target, 2);
                let ends = member(&f, &Filter::Everything, &target, 1);
                while connected.taken.load(Ordering::Relaxed) < 3 && !deadline.has_passed() {
                    thread::yield_now();
                }
                ends.proxy.disconnect_push_supplier().unwrap();
                connected.is_over.store(true, Ordering::Release);
                stays.proxy.disconnect_push_supplier().unwrap();
                late += connected.late.load(Ordering::Relaxed);
            }
            is_over.store(true, Ordering::Release);
        });
        assert!(!deadline.has_passed(), "a consumer got nothing");
        assert_eq!(late, 0);
        assert_eq!(f.service.statistics().evicted, 0);
        assert_eq!(f.service.statistics().lost, 0);
    }
}

/// A consumer that records types and losses.
#[derive(Clone, Default)]
struct Notes(Arc<Record<Result<i32, u64>>>);

impl GroupCallback for Notes {
    fn push(&self, events: EventSet<'_>) {
        for event in events {
            self.0.add(Ok(event.header.r#type));
        }
    }

    fn lost(&self, number: u64) {
        self.0.add(Err(number));
    }
}

#[test]
fn each_consumer_of_a_group_has_its_own_queue() {
    let options = ChannelOptions {
        lanes: vec![LaneOptions::default()],
        ..ChannelOptions::default()
    };
    let f = Fixture::new(Clients::Remote, options);
    let group = ConsumerGroup::open(&f.client.root_poa().unwrap(), &f.channel).unwrap();
    let queue = |capacity, overflow| ConsumerOptions {
        queue: Some(QueueQOS {
            capacity,
            overflow,
            block: 0,
            tells_losses: true,
        }),
        rt_info: 0,
    };
    let [plain, first, last] = [(); 3].map(|()| Notes::default());
    let open = Arc::new(Gate::new(0));
    // The thread of the lane waits for the process of this consumer, and the queues fill.
    let held = {
        let (plain, open) = (plain.clone(), open.clone());
        move |events: EventSet<'_>| {
            open.wait_while(0, Deadline::after(LONG));
            plain.push(events);
        }
    };
    let long = queue(4096, OverflowPolicy::DropOldest);
    let newest = queue(4, OverflowPolicy::DropNewest);
    let oldest = queue(4, OverflowPolicy::DropOldest);
    let consumers = [
        group.subscribe(&Filter::Everything, &long, held).unwrap(),
        group
            .subscribe(&Filter::Everything, &newest, first.clone())
            .unwrap(),
        group
            .subscribe(&Filter::Everything, &oldest, last.clone())
            .unwrap(),
    ];
    assert_eq!(group.consumers(), 3);
    let supplier = f.supplier(&[(0, 0)]);
    let payload = vec![7; 64 << 10];
    let mut types = 20..;
    let deadline = Deadline::after(LONG);
    loop {
        assert!(!deadline.has_passed(), "no queue fills");
        let consumers = f.service.statistics().consumers;
        if consumers.iter().filter(|it| it.lost >= 5).count() == 2 {
            break;
        }
        let mut large = event(1, types.next().unwrap());
        large.data = data(&payload);
        supplier.proxy.push(&[large]).unwrap();
        f.wait_for_received(types.start as u64 - 20);
    }
    open.set(1);
    let all: Vec<_> = (20..types.start).map(Ok).collect();
    assert_eq!(plain.0.wait_for(all.len()), all);
    for noting in [&first, &last] {
        // Everything arrives but what is told as lost, at its place.
        let (mut next, mut seen, mut lost) = (20, 0, 0);
        while next < types.start {
            let notes = noting.0.wait_for(seen + 1);
            for note in &notes[seen..] {
                match note {
                    Ok(of_type) => {
                        assert_eq!(*of_type, next, "{notes:?}");
                        next += 1;
                    }
                    Err(number) => {
                        next += *number as i32;
                        lost += number;
                    }
                }
            }
            seen = notes.len();
        }
        assert_eq!(next, types.start);
        assert!(lost >= 5);
    }
    let [first, second, third] = consumers;
    second.suspend().unwrap();
    second.resume().unwrap();
    first.disconnect().unwrap();
    drop(second);
    assert_eq!(group.consumers(), 1);
    assert_eq!(f.service.statistics().consumers.len(), 1);
    f.service.destroy().unwrap();
    assert!(third.disconnect().is_err(), "it has ended");
    assert_eq!(group.consumers(), 0);
}

#[test]
fn a_group_that_is_refused_leaves_nothing() {
    for clients in PLACES {
        let f = Fixture::new(clients, ChannelOptions::default());
        let group = ConsumerGroup::open(&f.client.root_poa().unwrap(), &f.channel).unwrap();
        let without_time = Filter::each(Duration::ZERO);
        let options = ConsumerOptions::default();
        let refused = group.subscribe(&without_time, &options, |_: EventSet<'_>| ());
        assert!(refused.is_err());
        assert_eq!(group.consumers(), 0);
        assert_eq!(f.service.statistics().consumers.len(), 0);
        assert!(f.service.flush(LONG));
    }
}

#[test]
fn a_supplier_of_the_process_pushes_without_messages() {
    for options in dispatchings() {
        let has_lanes = !options.lanes.is_empty();
        let options = ChannelOptions {
            limits: ChannelLimits {
                suppliers: all(1),
                ..ChannelLimits::default()
            },
            ..options
        };
        let f = Fixture::new(Clients::Remote, options);
        let consumers = [leaf((0, 20)), leaf((1, 0))].map(|filter| f.subscribe(&filter));
        let supplier = f.service.supplier(&SupplierQOS::default()).unwrap();
        let excess = f.service.supplier(&SupplierQOS::default()).unwrap_err();
        assert_eq!(excess.kind, ImpLimit);
        supplier.push(&[event(1, 20), event(1, 21), event(2, 20)]);
        if !has_lanes {
            let states = consumers
                .each_ref()
                .map(|of| f.state_of(of.number).unwrap());
            assert_eq!(states.map(|state| state.events), [2, 2], "when it returns");
        }
        assert!(f.service.flush(LONG));
        assert_eq!(f.sets(&consumers[0]), single(&[(1, 20), (2, 20)]));
        assert_eq!(f.sets(&consumers[1]), single(&[(1, 20), (1, 21)]));
        let statistics = f.service.statistics();
        assert_eq!((statistics.received, statistics.suppliers.len()), (3, 1));
        drop(supplier);
        assert_eq!(f.service.statistics().suppliers.len(), 0);
        f.service.destroy().unwrap();
        assert!(f.service.supplier(&SupplierQOS::default()).is_err());
    }
}

/// A consumer that records what it is told of its channel.
#[derive(Clone, Default)]
struct ChangeNotes(Arc<Record<String>>);

impl GroupCallback for ChangeNotes {
    fn push(&self, events: EventSet<'_>) {
        self.0.add(format!("{} events", events.len()));
    }

    fn disconnected(&self) {
        self.0.add("disconnected".to_owned());
    }

    fn channel_changed(&self, change: &ChannelChange) {
        self.0.add(change.to_string());
    }
}

#[test]
fn a_consumer_subscribes_again_as_it_was_and_one_that_has_ended_does_not() {
    let channels = [(); 2].map(|()| Fixture::new(Clients::Remote, ChannelOptions::default()));
    let [first, second] = &channels;
    let group = ConsumerGroup::open(&first.client.root_poa().unwrap(), &first.channel).unwrap();
    let notes = [(); 3].map(|()| ChangeNotes::default());
    let [active, suspended, ended] = notes.each_ref().map(|notes| {
        let options = ConsumerOptions::default();
        group
            .subscribe(&leaf((0, 20)), &options, notes.clone())
            .unwrap()
    });
    suspended.suspend().unwrap();
    ended.disconnect().unwrap();
    let other = second.channel.clone();
    let options = WatchOptions {
        period: Duration::from_millis(10),
        timeout: LONG,
        reconnect: Reconnect::Found(Arc::new(move || Ok(other.clone()))),
    };
    group.watch(options).unwrap();
    first.service.destroy().unwrap();
    // The channel's own call may come first or last.
    let told = [
        "disconnected",
        "the channel does not have the consumer any more",
        "the consumer has subscribed again",
    ];
    for notes in &notes[..2] {
        let mut noted = notes.0.wait_for(3);
        noted.sort_unstable();
        assert_eq!(noted, told);
    }
    assert_eq!(active.proxy().as_object().non_existent(), Ok(false));
    let consumers = second.service.statistics().consumers.into_iter();
    let consumers = consumers.map(|it| (it.subscription, it.is_suspended));
    let expected = [false, true].map(|is_suspended| ("20".to_owned(), is_suspended));
    assert_eq!(consumers.collect::<Vec<_>>(), expected);
    second.wait_until_all_are_reached();
    let supplier = second.supplier(&[(1, 20)]);
    second.push(&supplier, &[(1, 20)]);
    assert_eq!(notes[0].0.wait_for(4)[3], "1 events");
    suspended.resume().unwrap();
    second.push(&supplier, &[(1, 20)]);
    assert_eq!(notes[1].0.wait_for(4)[3], "1 events");
    assert_eq!(notes[2].0.wait_for(0), [""; 0]);
    drop(active);
    assert_eq!(second.service.statistics().consumers.len(), 1);
}
