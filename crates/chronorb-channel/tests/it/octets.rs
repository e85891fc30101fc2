//! Bounds of the octets that subscriptions keep.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_channel::{
    Allowance, Channel, Delivery, Event, EventStream, Filter, Lane, Overflow, Subscription,
    SubscriptionBuilder,
};
use chronorb_events::Rules;
use chronorb_rt::PiMutex;
use proptest::prelude::*;

use crate::support::{Note, Notes, PATIENCE, TestClock, one};

type Octets = Arc<[u8]>;

/// An allowance that counts.
struct Ledger {
    limit: usize,
    taken: AtomicUsize,
    calls: AtomicUsize,
}

impl Ledger {
    fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            taken: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
        })
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Allowance for Ledger {
    fn take(&self, octets: usize) -> bool {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let sum = |taken: usize| taken.checked_add(octets).filter(|sum| *sum <= self.limit);
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        self.taken.fetch_update(set, fetch, sum).is_ok()
    }

    fn give_back(&self, octets: usize) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let before = self.taken.fetch_sub(octets, Ordering::SeqCst);
        assert!(octets > 0 && before >= octets, "{octets} of {before}");
    }
}

/// The octets of an event beside its body.
const HEADER: usize = size_of::<Event<Octets>>();
const KIB: usize = 1024;

fn octets_channel(rules: Rules) -> (Channel<Octets>, TestClock) {
    let clock = TestClock::default();
    let builder = Channel::builder().lane(Lane::new("lane")).rules(rules);
    let builder = builder.octets_of(|body: &Octets| body.len());
    (builder.without_threads(Arc::new(clock.clone())), clock)
}

fn event(event_type: i32, octets: usize) -> Event<Octets> {
    Event::new(1, event_type, vec![0; octets].into())
}

/// Returns the notes of a consumer whose queue has 100 places and an allowance, for events of these
/// types and octets. The subscription ends afterwards, and everything is given back.
fn overflow(policy: Overflow, limit: usize, events: &[(i32, usize)]) -> Vec<Note> {
    let (channel, _) = octets_channel(Rules::Corrected);
    let (notes, ledger) = (Notes::default(), Ledger::new(limit));
    let subscription = channel.subscribe(Filter::Everything).queue(100, policy);
    let subscription = subscription.allowance(ledger.clone());
    let subscription = subscription.call_on(0, notes.clone()).expect("a lane");
    for (event_type, octets) in events {
        channel.push(&event(*event_type, *octets));
    }
    let status = subscription.status();
    assert_eq!(status.queued as u64 + status.lost, events.len() as u64);
    channel.step(0);
    assert!(ledger.taken() <= 16 * KIB, "{} are spare", ledger.taken());
    subscription.disconnect();
    assert_eq!(ledger.taken(), 0);
    notes.take()
}

#[test]
fn each_policy_bounds_the_octets() {
    // Each fits twice, and not three times.
    let large = 40 * KIB;
    let limit = 100 * KIB;
    let types = [20, 21, 22, 23].map(|event_type| (event_type, large));
    let (lost, first, last) = (Note::Lost(2), one(1, 20), one(1, 22));
    assert_eq!(
        overflow(Overflow::DropOldest, limit, &types),
        [lost.clone(), last, one(1, 23)]
    );
    let expected = [first.clone(), one(1, 21), lost.clone()];
    assert_eq!(overflow(Overflow::DropNewest, limit, &types), expected);
    assert_eq!(overflow(Overflow::Block, limit, &types), expected);
    assert_eq!(
        overflow(Overflow::Disconnect, limit, &types),
        [first, one(1, 21), lost, Note::Disconnected]
    );
    let keys = [20, 21, 20, 21, 20].map(|event_type| (event_type, large));
    assert_eq!(
        overflow(Overflow::LatestByKey, limit, &keys),
        [Note::Lost(3), one(1, 21), one(1, 20)]
    );
    let keys = [20, 21, 22].map(|event_type| (event_type, large));
    assert_eq!(
        overflow(Overflow::LatestByKey, limit, &keys),
        [Note::Lost(1), one(1, 21), one(1, 22)]
    );
}

#[test]
fn an_event_that_fits_into_no_queue_is_lost() {
    let types = [(20, 0), (21, 0), (22, 200 * KIB), (23, 0)];
    for policy in [Overflow::DropOldest, Overflow::LatestByKey] {
        let expected = [Note::Lost(3), one(1, 23)];
        assert_eq!(overflow(policy, 100 * KIB, &types), expected);
    }
    let rest = [one(1, 20), one(1, 21), Note::Lost(1), one(1, 23)];
    assert_eq!(overflow(Overflow::DropNewest, 100 * KIB, &types), rest);
    // Where a block is refused, the octets of the event are enough.
    let small = [(20, 10), (21, 10), (22, 10)];
    let limit = 2 * (HEADER + 10);
    let expected = [one(1, 20), one(1, 21), Note::Lost(1)];
    assert_eq!(overflow(Overflow::DropNewest, limit, &small), expected);
}

#[test]
fn a_supplier_waits_for_octets() {
    let (channel, _) = octets_channel(Rules::Corrected);
    let notes = Notes::default();
    let subscription = channel.subscribe(Filter::Everything).block_for(PATIENCE);
    let subscription = subscription.queue(100, Overflow::Block);
    let subscription = subscription.allowance(Ledger::new(100 * KIB));
    let subscription = subscription.call_on(0, notes.clone()).expect("a lane");
    channel.push(&event(20, 60 * KIB));
    let pushing = channel.clone();
    let supplier = std::thread::spawn(move || pushing.push(&event(21, 60 * KIB)));
    while notes.types() != [21] {
        channel.step(0);
        std::thread::yield_now();
    }
    supplier.join().expect("it has pushed");
    assert_eq!(subscription.status().lost, 0);
}

/// Small events come and go without a call of the allowance.
#[test]
fn usual_pushes_ask_for_nothing() {
    let (channel, _) = octets_channel(Rules::Corrected);
    let ledger = Ledger::new(usize::MAX);
    let group = Filter::Conjunction(vec![Filter::of_type(20), Filter::of_type(21)]);
    let subscribe = |filter| channel.subscribe(filter).allowance(ledger.clone());
    let lane = subscribe(Filter::Everything).call_on(0, |_: &[Event<Octets>]| {});
    let group = subscribe(group).call_on(0, |_: &[Event<Octets>]| {});
    let ends = [lane, group].map(|one| one.expect("a lane"));
    for number in 0..10_000 {
        channel.push(&event(20 + number % 2, 100));
        if number % 50 == 49 {
            channel.step(0);
        }
    }
    // A block for each queue, and one for the group.
    assert_eq!(ledger.calls(), 3);
    assert_eq!(ledger.taken(), 3 * 16 * KIB);
    drop(ends);
    assert_eq!(ledger.taken(), 0);
}

/// A subscription in any way that has groups.
enum Receiver {
    Called(Subscription<Octets>, Notes),
    Stream(EventStream<Octets>),
}

impl Receiver {
    fn each<'c>(subscribe: impl Fn() -> SubscriptionBuilder<'c, Octets>) -> [Self; 3] {
        let [lane, inline] = [Notes::default(), Notes::default()];
        let by_lane = subscribe().call_on(0, lane.clone()).expect("a lane");
        let by_supplier = subscribe().call_inline(0, inline.clone());
        [
            Self::Called(by_lane, lane),
            Self::Called(by_supplier.expect("a lane"), inline),
            Self::Stream(subscribe().stream().expect("a filter")),
        ]
    }

    fn take(&mut self) -> Vec<Note> {
        match self {
            Self::Called(_, notes) => notes.take(),
            Self::Stream(stream) => {
                let taken = std::iter::from_fn(|| stream.next_within(Duration::ZERO));
                let note = |delivery| match delivery {
                    Delivery::Set(set) => Note::Set(crate::support::headers(&set)),
                    Delivery::Lost(number) => Note::Lost(number),
                };
                taken.map(note).collect()
            }
        }
    }

    fn lost(&self) -> u64 {
        match self {
            Self::Called(subscription, _) => subscription.status().lost,
            Self::Stream(stream) => stream.status().lost,
        }
    }
}

/// A group that never completes keeps what its allowance grants. Other events are told as lost.
#[test]
fn groups_bound_the_octets_that_they_keep() {
    const PARTS: i32 = 150;
    let parts = (0..PARTS).map(|part| Filter::of_type(100 + part)).collect();
    let filter = Filter::Conjunction(parts) | Filter::of_type(50);
    for rules in [Rules::Corrected, Rules::Tao] {
        let (channel, _) = octets_channel(rules);
        let ledgers = [(); 3].map(|()| Ledger::new(1000 * KIB));
        let next = AtomicUsize::new(0);
        let subscribe = || {
            let ledger = &ledgers[next.fetch_add(1, Ordering::SeqCst)];
            channel.subscribe(filter.clone()).allowance(ledger.clone())
        };
        let mut ended = Receiver::each(subscribe);
        let body: Octets = vec![0; 100 * KIB].into();
        for part in 0..PARTS - 1 {
            channel.push(&Event::new(1, 100 + part, body.clone()));
            channel.step(0);
            for (one, ledger) in ended.iter_mut().zip(&ledgers) {
                let expected = Vec::from_iter((part >= 9).then_some(Note::Lost(1)));
                assert_eq!(one.take(), expected, "part {part}");
                assert!(ledger.taken() <= 1000 * KIB);
            }
        }
        // 9 in each group, and the test has one.
        assert_eq!(Arc::strong_count(&body), 3 * 9 + 1);
        channel.push(&event(50, 0));
        channel.step(0);
        for mut one_ended in ended {
            assert_eq!(one_ended.take(), [one(1, 50)]);
            assert_eq!(one_ended.lost(), 149 - 9);
        }
        assert_eq!(Arc::strong_count(&body), 1);
        assert_eq!(ledgers.each_ref().map(|ledger| ledger.taken()), [0; 3]);
    }
}

/// The event that completes a set is delivered with it, and needs no octets. Groups within groups
/// pass theirs on.
#[test]
fn a_complete_group_gives_its_octets_back() {
    let group = |types: [i32; 2]| Filter::Conjunction(types.map(Filter::of_type).into());
    let nested = Filter::Conjunction(vec![group([20, 21]), group([22, 23])]);
    let (channel, _) = octets_channel(Rules::Corrected);
    // Three events of the four wait at most.
    let ledger = Ledger::new(350 * KIB);
    let subscription = channel.subscribe(nested).allowance(ledger.clone());
    let notes = Notes::default();
    let subscription = subscription.call_inline(0, notes.clone()).expect("a lane");
    for _ in 0..10 {
        for event_type in [20, 22, 23, 21] {
            channel.push(&event(event_type, 100 * KIB));
        }
        let set = Note::Set([20, 22, 23, 21].map(|it| (1, it)).into());
        assert_eq!(notes.take(), [set]);
        assert!(ledger.taken() <= 16 * KIB);
    }
    assert_eq!(subscription.status().lost, 0);
}

/// A subscription that ends in the midst of its own push gives everything back.
#[test]
fn an_end_within_a_push_gives_everything_back() {
    let group = Filter::Conjunction(vec![Filter::of_type(20), Filter::of_type(21)]);
    for is_inline in [false, true] {
        let (channel, _) = octets_channel(Rules::Corrected);
        let ledger = Ledger::new(usize::MAX);
        let own: Arc<PiMutex<Option<Subscription<Octets>>>> = Arc::default();
        let its = own.clone();
        let end = move |_: &[Event<Octets>]| drop(its.lock().take());
        let filter = group.clone() | Filter::of_type(30);
        let subscription = channel.subscribe(filter).allowance(ledger.clone());
        *own.lock() = Some(if is_inline {
            subscription.call_inline(0, end).expect("a lane")
        } else {
            subscription.call_on(0, end).expect("a lane")
        });
        for event_type in [20, 30, 20, 21] {
            channel.push(&event(event_type, 50 * KIB));
        }
        channel.step(0);
        assert_eq!(ledger.taken(), 0, "inline: {is_inline}");
    }
}

/// A subscription that ends while its lane is within a push gives everything back afterwards.
#[test]
fn an_end_beside_a_push_gives_everything_back() {
    let builder = Channel::<Octets>::builder().lane(Lane::new("octets"));
    let builder = builder.octets_of(|body: &Octets| body.len());
    let channel = builder.start().expect("it has a thread");
    let ledger = Ledger::new(usize::MAX);
    let group = Filter::Conjunction(vec![Filter::of_type(20), Filter::of_type(21)]);
    let subscription = channel.subscribe(group | Filter::of_type(30));
    let (begin, begun) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = PiMutex::new(ended);
    let subscription = subscription
        .allowance(ledger.clone())
        .call_on(0, move |_: &[Event<Octets>]| {
            begin.send(()).expect("the test waits");
            ended.lock().recv().expect("the test ends it");
        })
        .expect("a lane");
    for event_type in [20, 30, 20] {
        channel.push(&event(event_type, 50 * KIB));
    }
    begun.recv().expect("the push has begun");
    assert!(!subscription.disconnect_within(Duration::ZERO));
    // The queue is empty, and the group has its event until the push is over.
    assert!((50 * KIB..100 * KIB).contains(&ledger.taken()));
    end.send(()).expect("the push waits");
    assert!(channel.flush(PATIENCE));
    assert_eq!(ledger.taken(), 0);
}

/// A subscription of which a lane knows timers far ahead keeps nothing after its end, nor does a
/// filter that was replaced.
#[test]
fn nothing_is_kept_for_timers_to_come() {
    let late = Filter::after(Duration::from_secs(1 << 20));
    let group = Filter::Conjunction(vec![Filter::of_type(20), late]);
    for is_inline in [false, true] {
        let (channel, _) = octets_channel(Rules::Corrected);
        let ledger = Ledger::new(usize::MAX);
        let notes = Notes::default();
        let subscription = channel.subscribe(group.clone()).allowance(ledger.clone());
        let mut subscription = if is_inline {
            subscription.call_inline(0, notes.clone()).expect("a lane")
        } else {
            subscription.call_on(0, notes.clone()).expect("a lane")
        };
        let body: Octets = vec![0; 50 * KIB].into();
        channel.push(&Event::new(1, 20, body.clone()));
        channel.step(0);
        assert_eq!(Arc::strong_count(&body), 2);
        subscription.replace(&group, notes).expect("a filter");
        assert_eq!(Arc::strong_count(&body), 1);
        assert!(ledger.taken() <= 16 * KIB);
        channel.push(&Event::new(1, 20, body.clone()));
        channel.push(&Event::new(1, 20, body.clone()));
        assert!(Arc::strong_count(&body) > 1);
        subscription.disconnect();
        assert_eq!(Arc::strong_count(&body), 1);
        assert_eq!(ledger.taken(), 0);
    }
}

#[derive(Clone, Debug)]
enum Action {
    Subscribe {
        way: usize,
        filter: usize,
        policy: Overflow,
        capacity: usize,
    },
    Push(i32, usize),
    Step,
    Advance(u64),
    Take(usize),
    Replace(usize, usize),
    Suspend(usize),
    Resume(usize),
    End(usize),
    Close,
}

fn action() -> impl Strategy<Value = Action> {
    let policies = vec![
        Overflow::DropOldest,
        Overflow::DropNewest,
        Overflow::LatestByKey,
        Overflow::Block,
        Overflow::Disconnect,
    ];
    let policy = prop::sample::select(policies);
    let octets = prop::sample::select(vec![0, 10, 1000, 9 * KIB, 17 * KIB, 40 * KIB]);
    let subscribe = (0_usize..3, 0_usize..6, policy, 1_usize..6);
    prop_oneof![
        4 => subscribe.prop_map(|(way, filter, policy, capacity)| Action::Subscribe {
            way,
            filter,
            policy,
            capacity,
        }),
        16 => (20..24, octets).prop_map(|(event_type, octets)| Action::Push(event_type, octets)),
        4 => Just(Action::Step),
        2 => (1_u64..30).prop_map(Action::Advance),
        2 => (0_usize..6).prop_map(Action::Take),
        2 => (0_usize..6, 0_usize..6).prop_map(|(name, filter)| Action::Replace(name, filter)),
        1 => (0_usize..6).prop_map(Action::Suspend),
        1 => (0_usize..6).prop_map(Action::Resume),
        1 => (0_usize..6).prop_map(Action::End),
        1 => (0_usize..20).prop_map(|one| if one == 0 { Action::Close } else { Action::Step }),
    ]
}

fn filters() -> [Filter; 6] {
    let group = |types: &[i32]| {
        let types = types.iter().copied().map(Filter::of_type);
        Filter::Conjunction(types.collect())
    };
    let tick = Filter::each(Duration::from_millis(10));
    [
        Filter::Everything,
        Filter::of_type(20) | Filter::of_type(21),
        group(&[20, 21, 22]),
        group(&[20, 21]) | group(&[21, 22, 23]) | Filter::of_type(23),
        Filter::Conjunction(vec![
            group(&[20, 21]),
            group(&[22, 23]),
            Filter::of_type(20),
        ]),
        Filter::Conjunction(vec![Filter::of_type(20), tick, Filter::of_type(21)])
            | Filter::Conjunction(vec![
                Filter::of_type(22),
                Filter::of_type(23),
                Filter::silence(Duration::from_millis(15)),
            ]),
    ]
}

proptest! {
    /// No sequence of actions takes more than the limit, and the end of each subscription gives
    /// everything back.
    #[test]
    fn an_allowance_is_whole_at_the_end(
        is_tao in any::<bool>(),
        limit in prop::sample::select(vec![0, 200, 20 * KIB, 100 * KIB, 1 << 30]),
        actions in prop::collection::vec(action(), 1..120),
    ) {
        let rules = if is_tao { Rules::Tao } else { Rules::Corrected };
        let (channel, clock) = octets_channel(rules);
        let mut ended = BTreeMap::new();
        let mut ledgers = Vec::new();
        for action in actions {
            match action {
                Action::Subscribe { way, filter, policy, capacity } => {
                    let ledger = Ledger::new(limit);
                    let builder = channel.subscribe(filters()[filter].clone());
                    let builder = builder.queue(capacity, policy).allowance(ledger.clone());
                    let notes = Notes::default();
                    let one = match way {
                        0 => {
                            let one = builder.call_on(0, notes.clone());
                            one.map(|one| Receiver::Called(one, notes))
                        }
                        1 => {
                            let one = builder.call_inline(0, notes.clone());
                            one.map(|one| Receiver::Called(one, notes))
                        }
                        _ => builder.stream().map(Receiver::Stream),
                    };
                    if let Ok(one) = one {
                        ended.insert(ledgers.len(), one);
                    }
                    ledgers.push(ledger);
                }
                Action::Push(event_type, octets) => channel.push(&event(event_type, octets)),
                Action::Step => {
                    channel.step(0);
                }
                Action::Advance(milliseconds) => clock.advance(milliseconds),
                Action::Take(name) => {
                    if let Some(one) = ended.get_mut(&name) {
                        one.take();
                    }
                }
                Action::Replace(name, filter) => {
                    if let Some(Receiver::Called(one, notes)) = ended.get_mut(&name) {
                        let _ = one.replace(&filters()[filter], notes.clone());
                    }
                }
                Action::Suspend(name) => {
                    if let Some(Receiver::Called(one, _)) = ended.get(&name) {
                        one.suspend();
                    }
                }
                Action::Resume(name) => {
                    if let Some(Receiver::Called(one, _)) = ended.get(&name) {
                        one.resume();
                    }
                }
                Action::End(name) => {
                    if ended.remove(&name).is_some() {
                        prop_assert_eq!(ledgers[name].taken(), 0);
                    }
                }
                Action::Close => channel.close(),
            }
            for ledger in &ledgers {
                prop_assert!(ledger.taken() <= limit);
            }
        }
        // The channel and its lane live on, and know the timers of ended subscriptions.
        drop(ended);
        for ledger in &ledgers {
            prop_assert_eq!(ledger.taken(), 0);
        }
    }
}
