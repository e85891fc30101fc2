//! No priority inversion inside the ORB: at every stage of a request, each thread has the request's
//! own priority.

#[cfg(feature = "baselines")]
use chronorb_orb::ThreadpoolStrategy::FilterChain;
use chronorb_orb::ThreadpoolStrategy::{HalfSyncHalfAsync, LeaderFollowers};
use chronorb_orb::poa::PriorityModel;
use chronorb_orb::{Object, Stage, StageProbe};
use chronorb_rt::PiMutex;
use std::sync::Arc;

use crate::support::pools::{
    Bench, Buffering, Case, HIGH, LOW, STRATEGIES, Threads, cases, native,
};
use crate::support::{Probe, ProbeSkeleton, relayed};

/// The stages between which a request may move to another thread.
const WHERE_THREADS_CHANGE: [Stage; 5] = [
    Stage::Accept,
    Stage::Read,
    Stage::Dispatch,
    Stage::Upcall,
    Stage::Write,
];

/// The state of a thread at a stage.
#[derive(Clone, Copy, Debug)]
struct Entry {
    stage: Stage,
    tid: u32,
    native: i32,
}

#[derive(Clone, Default)]
struct Log(Arc<PiMutex<Vec<Entry>>>);

impl Log {
    fn probe(&self) -> StageProbe {
        let log = self.0.clone();
        StageProbe::new(move |stage| {
            if !WHERE_THREADS_CHANGE.contains(&stage) {
                return;
            }
            let entry = Entry {
                stage,
                tid: chronorb_rt::thread_id(),
                native: chronorb_rt::current().map_or(-1, |s| i32::from(s.priority)),
            };
            log.lock().push(entry);
        })
    }

    fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.0.lock())
    }
}

fn logged(case: Case) -> (Bench, Log) {
    println!("{case:?}");
    let log = Log::default();
    let bench = Bench::with(case, |config| config.stage_probe = Some(log.probe()));
    (bench, log)
}

/// Returns the log of one request of a class that is served by its own lane; the class's first
/// request if it `connects`.
fn stages_of(bench: &mut Bench, log: &Log, class: usize, connects: bool) -> Vec<Entry> {
    bench.await_all_rest();
    log.take();
    assert_eq!(bench.look(class), Ok(bench.own_sight(class)));
    let entries = log.take();
    let accepted = entries.iter().any(|entry| entry.stage == Stage::Accept);
    assert_eq!(accepted, connects, "{entries:?}");
    entries
}

fn only(entries: &[Entry], stage: Stage) -> Entry {
    let mut of_stage = entries.iter().filter(|entry| entry.stage == stage);
    let first = of_stage.next();
    assert!(of_stage.next().is_none(), "{stage:?} once in {entries:?}");
    *first.unwrap_or_else(|| panic!("no {stage:?} in {entries:?}"))
}

fn all_at(entries: &[Entry], priority: i16) {
    for entry in entries {
        assert_eq!(entry.native, native(priority), "{entry:?} of {entries:?}");
    }
}

/// Returns the stages of a thread, without repetitions.
fn stages_by(entries: &[Entry], tid: u32) -> Vec<Stage> {
    let mut stages: Vec<Stage> = entries
        .iter()
        .filter(|entry| entry.tid == tid && entry.stage != Stage::Accept)
        .map(|entry| entry.stage)
        .collect();
    stages.dedup();
    stages
}

#[test]
fn a_lane_of_leader_followers_has_the_requests_priority_from_the_first_stage_to_the_last() {
    for lanes in [1, 3] {
        for case in cases(LeaderFollowers, lanes) {
            let (mut bench, log) = logged(case);
            for (class, priority) in case.priorities().iter().enumerate() {
                for connects in [true, false, false] {
                    let entries = stages_of(&mut bench, &log, class, connects);
                    all_at(&entries, *priority);
                    // The thread that reads it also serves and answers it.
                    let serves = only(&entries, Stage::Upcall).tid;
                    let whole = [Stage::Read, Stage::Dispatch, Stage::Upcall, Stage::Write];
                    assert_eq!(stages_by(&entries, serves), whole, "{entries:?}");
                }
            }
        }
    }
}

#[test]
fn a_lane_of_half_sync_half_async_has_the_requests_priority_on_both_sides() {
    for lanes in [1, 3] {
        for case in cases(HalfSyncHalfAsync, lanes) {
            let (mut bench, log) = logged(case);
            for (class, priority) in case.priorities().iter().enumerate() {
                for connects in [true, false, false] {
                    let entries = stages_of(&mut bench, &log, class, connects);
                    all_at(&entries, *priority);
                    let serves = only(&entries, Stage::Upcall).tid;
                    let second_half = [Stage::Dispatch, Stage::Upcall, Stage::Write];
                    assert_eq!(stages_by(&entries, serves), second_half, "{entries:?}");
                }
            }
        }
    }
}

#[cfg(feature = "baselines")]
#[test]
fn a_lane_of_a_filter_chain_has_the_requests_priority_once_it_has_the_request() {
    for lanes in [1, 3] {
        for case in cases(FilterChain, lanes) {
            let (mut bench, log) = logged(case);
            let first = *case.priorities().last().expect("there are some");
            for (class, priority) in case.priorities().iter().enumerate() {
                for connects in [true, false, false] {
                    let entries = stages_of(&mut bench, &log, class, connects);
                    let serves = only(&entries, Stage::Upcall).tid;
                    let second_half = [Stage::Dispatch, Stage::Upcall, Stage::Write];
                    assert_eq!(stages_by(&entries, serves), second_half, "{entries:?}");
                    let (serving, reading): (Vec<_>, Vec<_>) =
                        entries.iter().partition(|entry| entry.tid == serves);
                    all_at(&serving, *priority);
                    all_at(&reading, first);
                }
            }
        }
    }
}

#[test]
fn without_lanes_only_the_upcall_has_the_requests_priority() {
    for strategy in STRATEGIES.iter().copied() {
        for case in cases(strategy, 0) {
            let (mut bench, log) = logged(case);
            for (class, priority) in case.priorities().iter().enumerate() {
                for connects in [true, false] {
                    let entries = stages_of(&mut bench, &log, class, connects);
                    assert_eq!(only(&entries, Stage::Upcall).native, native(*priority));
                    let of_pool: Vec<_> = entries
                        .into_iter()
                        .filter(|entry| entry.stage != Stage::Upcall)
                        .collect();
                    all_at(&of_pool, LOW);
                }
            }
        }
    }
}

#[test]
fn a_borrowed_thread_has_the_requests_priority_from_the_first_stage_to_the_last() {
    for strategy in [LeaderFollowers, HalfSyncHalfAsync] {
        for buffering in [Buffering::Off, Buffering::Requests] {
            let (mut bench, log) = logged(Case {
                strategy,
                lanes: 3,
                buffering,
                borrowing: true,
                threads: Threads::Static,
                model: PriorityModel::ClientPropagated,
            });
            let high = 2;
            let busy = [bench.hold_now(high, 1), bench.hold_now(high, 2)];
            let own: Vec<_> = [1, 2].map(|number| bench.floor.begun(number).tid).into();
            for _ in 0..3 {
                log.take();
                let (_, corba, current, seen) = bench.look(high).expect("it is served");
                assert_eq!((corba, current, seen), (HIGH, HIGH, native(HIGH)));
                let entries = log.take();
                all_at(&entries, HIGH);
                let serves = only(&entries, Stage::Upcall).tid;
                assert!(!own.contains(&serves));
                assert_ne!(only(&entries, Stage::Read).tid, serves);
                bench.await_home();
            }
            bench.floor.open();
            for asked in busy {
                assert_eq!(bench.answer(asked), Ok(()));
            }
        }
    }
}

#[test]
fn what_waited_has_its_own_priority_at_all_stages() {
    for strategy in [LeaderFollowers, HalfSyncHalfAsync] {
        for borrowing in [false, true] {
            let (mut bench, log) = logged(Case {
                strategy,
                lanes: 3,
                buffering: Buffering::Requests,
                borrowing,
                threads: Threads::Static,
                model: PriorityModel::ClientPropagated,
            });
            let (low, high) = (0, 2);
            let mut busy: Vec<_> = [low, low, 1, 1, high, high]
                .into_iter()
                .zip(1..)
                .map(|(class, number)| bench.hold_now(class, number))
                .collect();
            bench.await_all_rest();
            log.take();
            let waits = bench.hold_buffered(high, 7);
            // With borrowing, a low thread takes it.
            let ends = if borrowing { 0 } else { 4 };
            bench.floor.release(7);
            let first = busy.remove(ends);
            bench.floor.release(first.number);
            assert_eq!(bench.answer(first), Ok(()));
            assert_eq!(bench.answer(waits), Ok(()));
            let entries = log.take();
            let upcall = only(&entries, Stage::Upcall);
            let own = |entry: &&Entry| {
                entry.tid == upcall.tid && matches!(entry.stage, Stage::Dispatch | Stage::Upcall)
                    || entry.stage == Stage::Read
            };
            let of_request: Vec<_> = entries.iter().filter(own).copied().collect();
            all_at(&of_request, HIGH);
            let mut writes = entries.iter().filter(|entry| entry.stage == Stage::Write);
            let last = writes.next_back().expect("it was answered");
            assert_eq!(last.native, native(HIGH));
            bench.floor.open();
            for asked in busy {
                assert_eq!(bench.answer(asked), Ok(()));
            }
        }
    }
}

#[test]
fn calls_of_a_servant_have_its_requests_priority_at_all_stages() {
    for strategy in [LeaderFollowers, HalfSyncHalfAsync] {
        for model in [
            PriorityModel::ClientPropagated,
            PriorityModel::ServerDeclared,
        ] {
            let case = Case {
                strategy,
                lanes: 3,
                buffering: Buffering::Off,
                borrowing: false,
                threads: Threads::Static,
                model,
            };
            let (mut near, log) = logged(case);
            let far = Bench::with(case, |config| config.stage_probe = Some(log.probe()));
            for (class, priority) in case.priorities().iter().copied().enumerate() {
                let (target, relay) = (probe(&far, class), probe(&near, class));
                for _ in 0..3 {
                    near.await_all_rest();
                    far.await_all_rest();
                    log.take();
                    let client = near.priority_of_client(class);
                    let (relay, target) = (relay.clone(), target.clone());
                    let calling = near.callers.run(client, 0, move || {
                        let seen = relayed(&relay, &target)?;
                        assert_eq!(seen, (priority, native(priority)));
                        Ok(())
                    });
                    assert_eq!(near.callers.answer(calling), Ok(()));
                    let entries = log.take();
                    all_at(&entries, priority);
                    for stage in [Stage::Dispatch, Stage::Upcall, Stage::Write] {
                        let count = entries.iter().filter(|entry| entry.stage == stage);
                        assert_eq!(count.count(), 2, "{stage:?} in {entries:?}");
                    }
                }
            }
        }
    }
}

/// Returns an object that relays, for a class of requests.
fn probe(bench: &Bench, class: usize) -> Object {
    let poa = match bench.case.model {
        PriorityModel::ServerDeclared => &bench.poas[class],
        PriorityModel::ClientPropagated => bench.poas.last().expect("it is the last"),
    };
    let probe = poa.serve(ProbeSkeleton(Arc::new(Probe::default())));
    let text = bench.server.object_to_string(&probe.expect("it activates"));
    bench.client.string_to_object(&text).expect("it reads")
}
