//! Thread pools according to RT-CORBA 1.2, “Threadpools”: a table of all combinations, each under a
//! load that the test applies step by step, compared with a model of the specification.

use chronorb_orb::ThreadpoolStrategy;
use chronorb_orb::rtcorba::LaneOrder;
use std::collections::BTreeMap;

use crate::support::pools::{Bench, Case, SentRequest, await_rest, cases, native, no_room};

/// A pool as the specification describes it. Lanes are named by their class; greater classes are
/// more urgent.
struct Model {
    case: Case,
    order: LaneOrder,
    lanes: Vec<LaneModel>,
}

struct LaneModel {
    /// The maximum number of static and dynamic threads.
    greatest: usize,
    /// The present number of threads.
    threads: usize,
    idle: usize,
    /// Class and number of each waiting request, in the order of arrival.
    waiting: Vec<(usize, u32)>,
}

/// The outcome for a request at its arrival.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    /// The request runs in a thread of this lane.
    Runs {
        on: usize,
    },
    Waits,
    /// The request gets `TRANSIENT`.
    Refused,
    /// The request is buffered, and a less urgent one gets `TRANSIENT`.
    Supplants(u32),
}

impl Model {
    fn new(case: Case, order: LaneOrder) -> Self {
        let (static_threads, dynamic_threads) = case.threads.counts();
        let lane = || LaneModel {
            greatest: (static_threads + dynamic_threads) as usize,
            threads: static_threads as usize,
            idle: static_threads as usize,
            waiting: Vec::new(),
        };
        Self {
            case,
            order,
            lanes: (0..case.lanes.max(1)).map(|_| lane()).collect(),
        }
    }

    /// Returns the number of requests that may wait in the ORB. Lanes with an order buffer even if
    /// the pool was not told to.
    fn room(&self) -> Option<usize> {
        let is_ordered = self.order != LaneOrder::Fifo;
        self.case.room().or_else(|| is_ordered.then_some(4096))
    }

    fn lane_of(&self, class: usize) -> usize {
        if self.case.lanes == 0 { 0 } else { class }
    }

    /// Adds a request. An idle thread of its lane serves it, else a new one, else an idle one of
    /// the next lower lane that has any.
    fn arrive(&mut self, class: usize, number: u32) -> Fate {
        let lane = self.lane_of(class);
        let own = &mut self.lanes[lane];
        if own.idle == 0 && own.threads < own.greatest {
            own.threads += 1;
            own.idle += 1;
        }
        let lowest = if self.case.borrowing { 0 } else { lane };
        let mut lenders = (lowest..=lane).rev();
        if let Some(on) = lenders.find(|lender| self.lanes[*lender].idle > 0) {
            self.lanes[on].idle -= 1;
            return Fate::Runs { on };
        }
        let room = self.room();
        let waiting = &mut self.lanes[lane].waiting;
        let fate = match room {
            Some(room) if waiting.len() >= room && self.case.has_queues() => return Fate::Refused,
            Some(room) if waiting.len() >= room => {
                // The least urgent, and of these the youngest.
                let least = waiting.iter().rev().min_by_key(|(class, _)| *class);
                match least.copied() {
                    Some((least, number)) if least < class => {
                        waiting.retain(|(_, other)| *other != number);
                        Fate::Supplants(number)
                    }
                    _ => return Fate::Refused,
                }
            }
            _ => Fate::Waits,
        };
        waiting.push((class, number));
        fate
    }

    /// Ends a request in a thread of a lane. Returns the requests that the thread may serve next;
    /// none if it becomes idle.
    fn leave(&mut self, on: usize) -> Vec<u32> {
        let highest = if self.case.borrowing {
            self.lanes.len() - 1
        } else {
            on
        };
        let mut entitled = (on..=highest)
            .rev()
            .map(|lane| &self.lanes[lane].waiting)
            .filter(|waiting| !waiting.is_empty());
        let next: Vec<u32> = if self.case.has_queues() {
            let queue = entitled.next().into_iter().flatten();
            queue.map(|(_, number)| *number).take(1).collect()
        } else if self.room().is_some() {
            first(entitled.flatten()).into_iter().collect()
        } else {
            // They wait in the transport, which is not in order.
            entitled.flatten().map(|(_, number)| *number).collect()
        };
        if next.is_empty() {
            self.lanes[on].idle += 1;
        }
        next
    }

    fn begin(&mut self, number: u32) {
        for lane in &mut self.lanes {
            lane.waiting.retain(|(_, waits)| *waits != number);
        }
    }

    /// Returns the number of dynamic threads.
    fn grown(&self) -> usize {
        let (static_threads, _) = self.case.threads.counts();
        let threads: usize = self.lanes.iter().map(|lane| lane.threads).sum();
        threads - self.lanes.len() * static_threads as usize
    }
}

/// Returns the most urgent waiting request, and of these the oldest.
fn first<'w>(waiting: impl Iterator<Item = &'w (usize, u32)>) -> Option<u32> {
    let more_urgent = |first: &'w (usize, u32), next| match next {
        &(class, _) if class > first.0 => next,
        _ => first,
    };
    waiting.reduce(more_urgent).map(|(_, number)| *number)
}

/// A pool and its model under the same load.
struct Play {
    bench: Bench,
    model: Model,
    running: Vec<RunningRequest>,
    asked: BTreeMap<u32, SentRequest>,
    classes: BTreeMap<u32, usize>,
    /// The number of threads before any was started on demand.
    threads_at_first: usize,
    /// The number of requests that have begun so far.
    begun: usize,
}

struct RunningRequest {
    number: u32,
    on: usize,
    tid: u32,
}

impl Play {
    fn new(case: Case, order: LaneOrder) -> Self {
        let bench = Bench::with(case, |config| config.lane_order = order);
        Self {
            model: Model::new(case, order),
            threads_at_first: bench.threads().len(),
            running: Vec::new(),
            asked: BTreeMap::new(),
            classes: BTreeMap::new(),
            begun: 0,
            bench,
        }
    }

    fn arrive(&mut self, class: usize) {
        let number = self.classes.len() as u32 + 1;
        let fate = self.model.arrive(class, number);
        println!("  {number} of class {class}: {fate:?}");
        let asked = self.bench.hold(class, number);
        self.asked.insert(number, asked);
        self.classes.insert(number, class);
        match fate {
            Fate::Runs { on } => self.begins(&[number], on),
            Fate::Waits => self.waits(number),
            Fate::Refused => self.is_refused(number),
            Fate::Supplants(other) => {
                self.is_refused(other);
                self.waits(number);
            }
        }
        assert_eq!(self.bench.floor.running(), self.running.len());
    }

    /// Asserts that the next request to begin is one of these, in a thread of this lane, at its own
    /// priority.
    fn begins(&mut self, numbers: &[u32], on: usize) {
        let sight = self.bench.floor.nth_begun(self.begun);
        self.begun += 1;
        let number = sight.number;
        assert!(numbers.contains(&number), "{number} of {numbers:?}");
        self.model.begin(number);
        let case = &self.model.case;
        let lane = sight.lane.expect("a thread of the pool");
        assert_eq!(case.class_of_lane(lane), on, "{sight:?}");
        let priority = case.priorities()[self.classes[&number]];
        let priorities = (sight.corba, sight.current, sight.native);
        let expected = (Some(priority), Some(priority), native(priority));
        assert_eq!(priorities, expected, "{sight:?}");
        let tid = sight.tid;
        self.running.push(RunningRequest { number, on, tid });
    }

    fn waits(&self, number: u32) {
        if self.model.room().is_none() {
            // It is not read. That it does not run is visible from all others that do.
            return;
        }
        self.bench.barrier(self.classes[&number]);
        assert!(!self.bench.floor.has_begun(number), "{number} waits");
        assert!(!self.asked[&number].is_answered(), "{number} waits");
    }

    fn is_refused(&mut self, number: u32) {
        let asked = self.asked.remove(&number).expect("it was asked");
        assert_eq!(self.bench.answer(asked), Err(no_room()), "{number}");
        assert!(!self.bench.floor.has_begun(number));
    }

    /// Finishes a request.
    fn finish(&mut self, nth: usize) {
        let done = self.running.remove(nth);
        println!("  {} ends", done.number);
        self.bench.floor.release(done.number);
        let asked = self.asked.remove(&done.number).expect("it was asked");
        assert_eq!(self.bench.answer(asked), Ok(()));
        match &self.model.leave(done.on)[..] {
            [] => await_rest(done.tid),
            next => self.begins(next, done.on),
        }
        assert_eq!(self.bench.floor.running(), self.running.len());
    }

    /// Finishes all requests, and checks that the pool is as before.
    fn finish_all(&mut self) {
        while !self.running.is_empty() {
            self.finish(0);
        }
        assert!(self.asked.is_empty(), "none is forgotten");
        self.bench.await_home();
        let threads = self.threads_at_first + self.model.grown();
        self.bench.await_threads(threads);
        // Each lane's next request is in its own thread, at its own priority.
        for class in 0..self.model.case.priorities().len() {
            let own = self.bench.own_sight(class);
            let lane = self.model.lane_of(class);
            if self.model.lanes[lane].threads > 0 {
                assert_eq!(self.bench.look(class), Ok(own));
                self.bench.await_all_rest();
            }
        }
    }

    /// Applies more requests of one class than can be served or buffered.
    fn saturate(&mut self, class: usize) {
        let lanes = self.model.lanes.len();
        for _ in 0..2 * lanes + 2 + 2 {
            self.arrive(class);
        }
    }
}

/// Returns the number of random steps of each combination. Where each takes long,
/// `CHRONORB_MODEL_STEPS` may ask for fewer.
fn steps() -> usize {
    let asked = std::env::var("CHRONORB_MODEL_STEPS").ok();
    asked.map_or(80, |steps| steps.parse().expect("a number"))
}

fn conforms(case: Case, order: LaneOrder) {
    println!("{case:?} {order:?}");
    let mut play = Play::new(case, order);
    let classes = case.priorities().len();
    println!(" lower lanes are busy first");
    (0..classes).for_each(|class| play.saturate(class));
    play.finish_all();
    println!(" higher lanes are busy first");
    (0..classes).rev().for_each(|class| play.saturate(class));
    play.finish_all();
    println!(" all come and go");
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..steps() {
        let roll = random.usize(..1 << 16);
        if roll.is_multiple_of(3) && !play.running.is_empty() {
            play.finish(roll / 3 % play.running.len());
        } else if play.asked.len() < 16 {
            play.arrive(roll / 3 % classes);
        }
    }
    play.finish_all();
}

fn conform(strategy: ThreadpoolStrategy, lanes: usize) {
    let cases = cases(strategy, lanes).into_iter();
    cases.for_each(|case| conforms(case, LaneOrder::Fifo));
}

/// Without deadlines all requests of a lane are equals, whatever its order is.
fn conform_in_order(order: LaneOrder) {
    for strategy in [
        ThreadpoolStrategy::LeaderFollowers,
        ThreadpoolStrategy::HalfSyncHalfAsync,
    ] {
        for lanes in [0, 3] {
            let cases = cases(strategy, lanes).into_iter();
            cases.for_each(|case| conforms(case, order));
        }
    }
}

#[test]
fn lanes_in_the_order_of_deadlines() {
    conform_in_order(LaneOrder::Deadline);
}

#[test]
fn lanes_in_the_order_of_laxity() {
    conform_in_order(LaneOrder::Laxity);
}

#[test]
fn lanes_in_the_order_of_urgency() {
    conform_in_order(LaneOrder::Urgency);
}

#[test]
fn leader_followers_without_lanes() {
    conform(ThreadpoolStrategy::LeaderFollowers, 0);
}

#[test]
fn leader_followers_with_one_lane() {
    conform(ThreadpoolStrategy::LeaderFollowers, 1);
}

#[test]
fn leader_followers_with_three_lanes() {
    conform(ThreadpoolStrategy::LeaderFollowers, 3);
}

#[test]
fn half_sync_half_async_without_lanes() {
    conform(ThreadpoolStrategy::HalfSyncHalfAsync, 0);
}

#[test]
fn half_sync_half_async_with_one_lane() {
    conform(ThreadpoolStrategy::HalfSyncHalfAsync, 1);
}

#[test]
fn half_sync_half_async_with_three_lanes() {
    conform(ThreadpoolStrategy::HalfSyncHalfAsync, 3);
}

#[cfg(feature = "baselines")]
#[test]
fn a_worker_pool() {
    conform(ThreadpoolStrategy::WorkerPool, 0);
}

#[cfg(feature = "baselines")]
#[test]
fn a_filter_chain_without_lanes() {
    conform(ThreadpoolStrategy::FilterChain, 0);
}

#[cfg(feature = "baselines")]
#[test]
fn a_filter_chain_with_one_lane() {
    conform(ThreadpoolStrategy::FilterChain, 1);
}

#[cfg(feature = "baselines")]
#[test]
fn a_filter_chain_with_three_lanes() {
    conform(ThreadpoolStrategy::FilterChain, 3);
}
