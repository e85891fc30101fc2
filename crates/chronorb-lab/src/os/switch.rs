//! The cost of a context switch: two threads that take turns.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use chronorb_rt::{Monotonic, PiLock, Scheduling, Usage, lock_all};
use rustix::thread::futex;
use serde::{Deserialize, Serialize};

use super::class::HIGH;
use super::fleet::ask;
use super::outcome::SwitchRow;
use super::{OsPart, OsRun, thousandths, threads};
use crate::error::LabError;
use crate::process;
use crate::stats::Record;

/// The mechanism by which two threads take turns.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switching {
    /// One thread unparks the other and parks itself.
    SuspendResume,
    /// One thread yields its CPU to the other, which has the same priority.
    Yield,
    /// One thread posts the semaphore of the other and waits for its own.
    Semaphore,
    /// One thread releases a lock with priority inheritance for which the other waits, and takes
    /// it again.
    PiLock,
}

impl Switching {
    /// All mechanisms.
    pub const ALL: [Self; 4] = [
        Self::SuspendResume,
        Self::Yield,
        Self::Semaphore,
        Self::PiLock,
    ];
}

/// Two threads that take turns.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SwitchOrder {
    switching: Switching,
    /// The CPU of each thread.
    cpus: [usize; 2],
    lock_memory: bool,
    turns: u32,
}

/// Measures a context switch on one CPU by each mechanism, and across two CPUs if there are two.
pub(super) fn measure(run: &OsRun<'_>) -> Result<Vec<SwitchRow>, LabError> {
    let [first, last] = run.ends();
    let on_one = Switching::ALL.map(|switching| (switching, [last, last]));
    let across = run.cpus.are_several();
    let across = across.then_some((Switching::SuspendResume, [first, last]));
    let rows = on_one.into_iter().chain(across).map(|(switching, cpus)| {
        run.watch.begin("context switches");
        let part = OsPart::Switch(SwitchOrder {
            switching,
            cpus,
            lock_memory: run.lock_memory,
            turns: run.plan.turns,
        });
        ask("two threads", &part, A_TURN * run.plan.turns)
    });
    rows.collect()
}

/// Runs the two threads, and tells the parent the figures.
pub(super) fn take_turns(order: &SwitchOrder) -> Result<(), LabError> {
    if order.lock_memory {
        lock_all().map_err(LabError::work("locking the memory"))?;
    }
    let (switching, cpus, turns) = (order.switching, order.cpus, order.turns);
    let shared = Arc::new(TurnState::default());
    let [first, second] = [0, 1].map(|own| Player {
        switching,
        own,
        shared: Arc::clone(&shared),
    });
    let fifo = Scheduling::fifo(HIGH);
    let second = threads::start("second", fifo, cpus[1], move || second.follow())?;
    let first = threads::start("first", fifo, cpus[0], move || first.lead(turns))?;
    let (record, of_first) = threads::join(first);
    let of_second = threads::join(second);
    let latency = record.summary();
    // Each turn is two switches.
    let expected = f64::from(turns) * 2.0;
    process::tell(&SwitchRow {
        switching,
        cpus: if cpus[0] == cpus[1] { 1 } else { 2 },
        turns: latency.calls,
        mean_us: latency.mean_us,
        deviation_us: latency.jitter_us,
        p50_us: latency.p50_us,
        p99_us: latency.p99_us,
        max_us: latency.max_us,
        counted_by_expected: thousandths((of_first + of_second) as f64 / expected),
    })?;
    Ok(())
}

/// The state that both threads share.
#[derive(Default)]
struct TurnState {
    threads: [OnceLock<Thread>; 2],
    /// The posts for each thread.
    semaphores: [Semaphore; 2],
    lock: PiLock,
    is_over: AtomicBool,
}

/// One of the two threads.
struct Player {
    switching: Switching,
    own: usize,
    shared: Arc<TurnState>,
}

impl Player {
    /// Runs the thread whose turns are measured. Returns the times of its switches, and their
    /// number as the kernel counts them.
    fn lead(&self, turns: u32) -> (Record, u64) {
        if self.switching == Switching::PiLock {
            self.take_lock();
        }
        let other = self.meet();
        // The other thread waits by then.
        thread::sleep(SETTLING);
        for _ in 0..WARM_UP_TURNS {
            self.pass(&other);
        }
        let mut record = Record::new();
        let before = switches();
        let begin = Monotonic::now();
        let mut turn = begin;
        for _ in 0..turns {
            self.pass(&other);
            let now = Monotonic::now();
            // There and back are two switches.
            record.add(turn.since(begin), now.since(turn) / 2);
            turn = now;
        }
        let counted = switches() - before;
        self.shared.is_over.store(true, Ordering::Release);
        self.give(&other);
        (record, counted)
    }

    /// Runs the other thread. Returns the number of its switches as the kernel counts them.
    fn follow(&self) -> u64 {
        let other = self.meet();
        self.await_turn(0);
        let before = switches();
        while !self.shared.is_over.load(Ordering::Acquire) {
            self.pass(&other);
        }
        let counted = switches() - before;
        self.give(&other);
        // The switches of the warm-up are counted too.
        counted.saturating_sub(WARM_UP_TURNS.into())
    }

    /// Waits until the other thread runs, and returns it.
    fn meet(&self) -> Thread {
        self.shared.threads[self.own].get_or_init(thread::current);
        self.shared.threads[1 - self.own].wait().clone()
    }

    /// Gives the turn to the other thread, and waits for the next one.
    fn pass(&self, other: &Thread) {
        let seen = self.shared.semaphores[self.own].posts();
        self.give(other);
        self.await_turn(seen);
    }

    fn give(&self, other: &Thread) {
        match self.switching {
            Switching::Yield => {}
            Switching::SuspendResume => other.unpark(),
            Switching::Semaphore => self.shared.semaphores[1 - self.own].post(),
            Switching::PiLock => {
                let released = self.shared.lock.unlock();
                released.expect("the thread at turn holds the lock");
            }
        }
    }

    /// Waits for the turn: for a semaphore, for a post beyond those `seen`.
    fn await_turn(&self, seen: u32) {
        match self.switching {
            Switching::Yield => thread::yield_now(),
            Switching::SuspendResume => thread::park(),
            Switching::Semaphore => self.shared.semaphores[self.own].wait_while(seen),
            Switching::PiLock => self.take_lock(),
        }
    }

    fn take_lock(&self) {
        let taken = self.shared.lock.lock();
        taken.expect("the two threads wait for nothing else");
    }
}

/// A counter of posts, on a futex. Its waits have no time limit, because a timer would add to the
/// cost.
#[derive(Default)]
struct Semaphore(AtomicU32);

impl Semaphore {
    fn posts(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    fn post(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        // It cannot fail for a word that exists.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    fn wait_while(&self, seen: u32) {
        while self.posts() == seen {
            // The number of posts decides, whatever the reason of the return.
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, seen, None);
        }
    }
}

fn switches() -> u64 {
    let usage = Usage::of_thread();
    usage.voluntary_switches + usage.involuntary_switches
}

const WARM_UP_TURNS: u32 = 200;
const SETTLING: Duration = Duration::from_millis(10);
/// Far more than the length of a turn.
const A_TURN: Duration = Duration::from_millis(1);
