//! Tests of the ledger, without clients.

use std::collections::{BTreeMap, HashMap};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use chronorb_events::{Filter, Header};
use chronorb_sched::{Time, Transaction};

use super::*;
use crate::admission::shortfall::TOO_MUCH_WORK;
use crate::admission::{OperationNeeds, streams::SuppliedStream};

const MS: u64 = 1_000_000;

fn ledger(policy: AdmissionPolicy) -> Arc<AdmissionLedger> {
    let settings = Admission {
        operations: Arc::new(HashMap::new()),
        policy,
    };
    let orb = Orb::init(&mut Vec::new()).unwrap();
    AdmissionLedger::new(settings, &ChannelLimits::default(), &orb)
}

fn load(filter: &Filter, cost: Duration) -> ConsumerLoad {
    load_on(0, filter, cost)
}

/// The load of a consumer on one of two lanes.
fn load_on(lane: usize, filter: &Filter, cost: Duration) -> ConsumerLoad {
    let needs = OperationNeeds {
        cost,
        ..OperationNeeds::default()
    };
    ConsumerLoad::new(filter, &needs, lane, 2).unwrap()
}

fn micros(number: u64) -> Duration {
    Duration::from_micros(number)
}

/// A publication of an event of source 1.
fn published(event_type: i32, period: Time) -> PublishedStream {
    PublishedStream {
        header: Header {
            source: 1,
            event_type,
            ..Header::default()
        },
        period,
        events: 1,
    }
}

/// The transactions of a ledger, by their periods.
fn costs(ledger: &AdmissionLedger) -> BTreeMap<Time, Time> {
    let transactions = ledger.book.lock().loads.sums().transactions();
    let cost = |it: &Transaction| (it.period, it.steps[0].cost);
    transactions.iter().map(cost).collect()
}

fn used(ledger: &AdmissionLedger) -> u64 {
    ledger.streams.snapshot().used
}

#[test]
fn two_consumers_from_one_snapshot_are_not_both_admitted() {
    let ledger = ledger(AdmissionPolicy::Refuse);
    let supplier = ledger.admit_supplier(Origin::Process, vec![published(20, 10 * MS)], None);
    let _supplier = supplier.unwrap().admitted.unwrap();
    let barrier = Barrier::new(2);
    let load = Arc::new(load(&Filter::of_type(20), micros(6_000)));
    let admit = || {
        let mut analyses = 0;
        let verdict = ledger.admit(Origin::Process, None, |loads, ticket| {
            analyses += 1;
            let analysed = with_consumer(loads, ticket, &load, None);
            if analyses == 1 {
                // Each by itself would fit.
                assert!(analysed.as_ref().is_ok_and(|it| it.outcome.is_ok()));
                barrier.wait();
            }
            analysed
        });
        (verdict.unwrap(), analyses)
    };
    let both = thread::scope(|scope| {
        let other = scope.spawn(admit);
        [admit(), other.join().unwrap()]
    });
    let admitted = |it: &&(Verdict, i32)| it.0.admitted.is_some();
    assert_eq!(both.iter().filter(admitted).count(), 1);
    let (refused, analyses) = both.iter().find(|it| !admitted(it)).unwrap();
    assert_eq!(*analyses, 2);
    assert!(
        refused.shortfall.contains("could end"),
        "{}",
        refused.shortfall
    );
    assert_eq!(used(&ledger), 1);
}

#[test]
fn a_client_among_endless_changes_tries_again_later() {
    let ledger = ledger(AdmissionPolicy::Refuse);
    let timer = load(&Filter::each(Duration::from_secs(1)), micros(1));
    let mut others = Vec::new();
    let mut analyses = 0;
    let load = Arc::new(timer.clone());
    let verdict = ledger.admit(Origin::Process, None, |loads, ticket| {
        analyses += 1;
        others.push(ledger.admit_consumer(Origin::Process, timer.clone(), None));
        with_consumer(loads, ticket, &load, None)
    });
    let kind = verdict.err().map(|exception| exception.kind);
    assert_eq!(kind, Some(SystemExceptionKind::Transient));
    assert_eq!(analyses, ATTEMPTS);
    assert_eq!(used(&ledger), ATTEMPTS as u64);
    drop(others);
    assert_eq!(used(&ledger), 0);
    assert!(costs(&ledger).is_empty());
}

#[test]
fn each_origin_has_a_share_of_the_streams() {
    let ledger = ledger(AdmissionPolicy::Refuse);
    // Long periods, so that time is no matter.
    let wide: Vec<_> = (0..512).map(|it| published(16 + it, 1 << 50)).collect();
    let supplier = ledger.admit_supplier(Origin::User(1), wide, None);
    let supplier = supplier.unwrap().admitted.unwrap();
    let all = load(&Filter::Everything, micros(1));
    let admit = |user, before| ledger.admit_consumer(Origin::User(user), all.clone(), before);
    let mut held: Vec<_> = (0..4)
        .map(|_| admit(2, None).unwrap().admitted.unwrap())
        .collect();
    let refused = admit(2, None).unwrap();
    assert!(refused.admitted.is_none());
    let expected = "user 2 has 2048 of 2048 streams of events to consumers, and asks for 512 more";
    assert_eq!(refused.shortfall, expected);
    // Another one has its own share, and a consumer that connects again needs no other one.
    held.push(admit(3, None).unwrap().admitted.unwrap());
    let before = held.remove(0);
    let again = admit(2, Some(before.ticket())).unwrap().admitted.unwrap();
    drop(before);
    assert_eq!(used(&ledger), 5 * 512);
    held.push(again);
    // A second supplier would pay for its events to all of them.
    let more: Vec<_> = (0..500).map(|it| published(16 + it, 1 << 50)).collect();
    let refused = ledger.admit_supplier(Origin::User(1), more, None).unwrap();
    assert!(
        refused.shortfall.starts_with("user 1 has 0 of 2048"),
        "{}",
        refused.shortfall
    );
    // The first one has connected before the consumers.
    drop(supplier);
    assert_eq!((used(&ledger), ledger.publications.snapshot().used), (0, 0));
    drop(held);
    assert_eq!(ledger.book.lock().shares.len(), 0);
}

#[test]
fn a_replaced_client_keeps_its_share_if_the_replacement_fails() {
    let ledger = ledger(AdmissionPolicy::Refuse);
    let timer = load(&Filter::each(Duration::from_millis(10)), micros(6_000));
    let admit = |before| ledger.admit_consumer(Origin::Process, timer.clone(), before);
    let first = admit(None).unwrap().admitted.unwrap();
    assert!(admit(None).unwrap().admitted.is_none());
    let second = admit(Some(first.ticket())).unwrap().admitted.unwrap();
    // Until one of them goes, the time of both is taken.
    assert_eq!(costs(&ledger), BTreeMap::from([(10 * MS, 12 * MS)]));
    assert_eq!(used(&ledger), 1);
    drop(second);
    assert_eq!(costs(&ledger), BTreeMap::from([(10 * MS, 6 * MS)]));
    assert_eq!(used(&ledger), 1);
    drop(first);
    assert_eq!(used(&ledger), 0);
}

/// The timers of a consumer with which the response is found in very many steps: more urgent work
/// leaves almost nothing of the processor.
fn endless(ledger: &Arc<AdmissionLedger>) -> Verdict {
    let seldom = Filter::each(Duration::from_secs(100_000));
    let often = Filter::each(Duration::from_millis(1));
    let first = load(&often, Duration::from_nanos(999_999));
    let admitted = ledger.admit_consumer(Origin::Process, first, None).unwrap();
    let last = load_on(1, &seldom, micros(50_000));
    let verdict = ledger.admit_consumer(Origin::Process, last, None);
    drop(admitted);
    verdict.unwrap()
}

#[test]
fn an_analysis_without_end_refuses_its_client() {
    let ledger = ledger(AdmissionPolicy::Refuse);
    let refused = endless(&ledger);
    assert_eq!(refused.shortfall, TOO_MUCH_WORK);
    assert!(refused.admitted.is_none());
    let reporting = self::ledger(AdmissionPolicy::Report);
    let reported = endless(&reporting);
    assert_eq!(reported.shortfall, TOO_MUCH_WORK);
    assert!(reported.admitted.is_some());
}

#[test]
fn the_evaluation_of_filters_is_bounded() {
    let ledger = ledger(AdmissionPolicy::Refuse);
    let mut suppliers = Vec::new();
    for _ in 0..4 {
        let publications = (0..1024).map(|it| published(16 + it, 1 << 50)).collect();
        let verdict = ledger.admit_supplier(Origin::User(1), publications, None);
        suppliers.push(verdict.unwrap().admitted.unwrap());
    }
    let refused = ledger.admit_supplier(Origin::User(1), vec![published(20, MS)], None);
    let text = refused.unwrap().shortfall;
    let expected = "user 1 has 4096 of 4096 publications with periods, and asks for 1 more";
    assert_eq!(text, expected);
    // Each leaf is compared with each publication.
    let leaves = |count| Filter::Any(vec![Filter::event(2, 20); count]);
    let admit = |leaves| ledger.admit_consumer(Origin::User(2), load(&leaves, micros(1)), None);
    assert!(admit(leaves(1000)).unwrap().admitted.is_some());
    assert_eq!(admit(leaves(4000)).unwrap().shortfall, TOO_MUCH_WORK);
}

#[test]
fn a_filter_that_is_dear_to_compute_anew_refuses_no_other_client() {
    let ledger = ledger(AdmissionPolicy::Refuse);
    let supply = |first: i32, count: i32| {
        let publications = (0..count)
            .map(|it| published(first + it, 1 << 50))
            .collect();
        let verdict = ledger.admit_supplier(Origin::User(1), publications, None);
        verdict.unwrap().admitted.unwrap()
    };
    let _many = supply(1_000, 4_000);
    let first = supply(20, 1);
    let mut children = vec![Filter::event(1, 20); 900];
    children.push(Filter::each(Duration::from_secs(1)));
    let dear = load(&Filter::Any(children), micros(1));
    let dear = ledger.admit_consumer(Origin::User(2), dear, None).unwrap();
    let _dear = dear.admitted.unwrap();
    assert_eq!(used(&ledger), 2);
    drop(first);
    assert_eq!(used(&ledger), 1);
    let cheap = load(&Filter::of_type(30), micros(1));
    let cheap = ledger.admit_consumer(Origin::User(3), cheap, None).unwrap();
    assert!(cheap.admitted.is_some(), "{}", cheap.shortfall);
}

/// The steps of the connection of a consumer to 50 publications.
fn steps_of(ledger: &AdmissionLedger, load: &Arc<ConsumerLoad>) -> u64 {
    let (loads, ticket) = ledger.book.lock().copy();
    let analysed = with_consumer(&loads, ticket, load, None).unwrap();
    Work::for_loads(&loads).left() - analysed.outcome.unwrap()
}

#[test]
fn the_steps_of_a_connection_do_not_grow_with_the_consumers() {
    let ledger = ledger(AdmissionPolicy::Refuse);
    let publications = (0..50)
        .map(|it| published(16 + it, (100 + it as u64) * MS))
        .collect();
    let supplier = ledger.admit_supplier(Origin::Process, publications, None);
    let _supplier = supplier.unwrap().admitted.unwrap();
    let leaves = (0..50).map(|it| Filter::event(1, 16 + it));
    let load = load(&Filter::Any(leaves.collect()), micros(10));
    let shared = Arc::new(load.clone());
    let mut held = Vec::new();
    let mut steps = Vec::new();
    for number in 1..=60 {
        if number % 20 == 0 {
            steps.push(steps_of(&ledger, &shared));
        }
        let origin = Origin::User(number / 30);
        let verdict = ledger.admit_consumer(origin, load.clone(), None).unwrap();
        held.push(verdict.admitted.unwrap());
    }
    println!("steps of the 20th, 40th and 60th connection: {steps:?}");
    assert_eq!(used(&ledger), 3000);
    assert!(steps[2] <= 2 * steps[0], "{steps:?}");
}

/// Any filter, with and without state.
fn some_filter(random: &mut fastrand::Rng) -> Filter {
    let event = |random: &mut fastrand::Rng| Filter::event(random.i32(0..3), random.i32(0..5));
    let mut three = || vec![event(random), event(random), event(random)];
    let filters = [
        Filter::Any(three()),
        !Filter::Any(three()),
        Filter::Conjunction(three()),
        Filter::Any(vec![
            Filter::each(micros(7_000)),
            Filter::Conjunction(three()),
        ]),
    ];
    filters[random.usize(0..4)].clone()
}

/// The sums are always those that are computed from nothing, and each stream is paid for once.
#[test]
fn the_sums_are_those_of_all_that_are_there() {
    let ledger = ledger(AdmissionPolicy::Report);
    let mut random = fastrand::Rng::with_seed(41);
    let mut suppliers: Vec<(AdmissionPlace, Vec<PublishedStream>)> = Vec::new();
    let mut consumers: Vec<(AdmissionPlace, ConsumerLoad)> = Vec::new();
    for _ in 0..400 {
        let origin = Origin::User(random.u32(0..3));
        match random.u8(0..6) {
            0 | 1 if suppliers.len() < 15 => {
                let count = random.usize(1..4);
                let streams: Vec<_> = std::iter::repeat_with(|| PublishedStream {
                    header: Header {
                        source: random.i32(0..3),
                        event_type: random.i32(0..5),
                        ..Header::default()
                    },
                    period: [5, 10, 20, 40][random.usize(0..4)] * MS,
                    events: random.u64(1..3),
                })
                .take(count)
                .collect();
                let verdict = ledger
                    .admit_supplier(origin, streams.clone(), None)
                    .unwrap();
                suppliers.push((verdict.admitted.unwrap(), streams));
            }
            2 | 3 if consumers.len() < 15 => {
                let load = load(&some_filter(&mut random), micros(random.u64(1..50)));
                let verdict = ledger.admit_consumer(origin, load.clone(), None).unwrap();
                consumers.push((verdict.admitted.unwrap(), load));
            }
            4 if !suppliers.is_empty() => {
                suppliers.swap_remove(random.usize(0..suppliers.len()));
            }
            5 if !consumers.is_empty() => {
                consumers.swap_remove(random.usize(0..consumers.len()));
            }
            _ => {}
        }
        let mut all: Vec<SuppliedStream> = Vec::new();
        for (admitted, streams) in &suppliers {
            all.extend(streams.iter().map(|stream| (admitted.ticket(), *stream)));
        }
        all.sort_by_key(|(ticket, _)| *ticket);
        let mut expected = BTreeMap::new();
        let mut streams = 0;
        for (_, load) in &consumers {
            for execution in load.executions(&all, u64::MAX) {
                *expected.entry(execution.period).or_default() += execution.cost;
                streams += 1;
            }
        }
        // Groups are computed anew when another client connects.
        let another = ledger.admit_supplier(origin, vec![published(99, MS)], None);
        let another = another.unwrap().admitted.unwrap();
        let mut present = costs(&ledger);
        drop(another);
        present.retain(|period, _| *period != MS);
        assert_eq!(present, expected);
        assert_eq!(used(&ledger), streams);
    }
    suppliers.clear();
    consumers.clear();
    assert_eq!(used(&ledger), 0);
    assert!(costs(&ledger).is_empty());
    assert_eq!(ledger.book.lock().shares.len(), 0);
}
