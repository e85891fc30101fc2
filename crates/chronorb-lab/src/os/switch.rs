//! Two threads that take turns: what a context switch costs.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Thread};
use std::time::Duration;

use chronorb_rt::{Monotonic, PiLock, Scheduling, ThreadBuilder, Usage, lock_all};
use rustix::thread::futex;
use serde::{Deserialize, Serialize};

use super::class::HIGH;
use super::order::{SwitchOrder, Switched};
use crate::error::LabError;
use crate::process;
use crate::stats::Record;

/// How two threads take turns.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switching {
    /// One resumes the other and suspends itself.
    SuspendResume,
    /// One yields its processor, and the other, of the same priority, has it.
    Yield,
    /// One posts a semaphore that the other waits for, and waits for another.
    Semaphore,
    /// One unlocks a lock that inherits priority, for which the other waits, and locks it again.
    PiLock,
}

impl Switching {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::SuspendResume,
        Self::Yield,
        Self::Semaphore,
        Self::PiLock,
    ];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SuspendResume => "suspend–resume",
            Self::Yield => "yield",
            Self::Semaphore => "semaphore",
            Self::PiLock => "PI lock",
        }
    }
}

/// Lets two threads take turns, and tells how long that took.
pub(super) fn measure(order: &SwitchOrder) -> Result<(), LabError> {
    if order.lock_memory {
        lock_all().map_err(LabError::work("locking the memory"))?;
    }
    let shared = Arc::new(Shared::default());
    let (to_first, from_second) = mpsc::channel();
    let (to_second, from_first) = mpsc::channel();
    let switching = order.switching;
    let rounds = order.rounds;
    let spawn = |name: &str, cpu| {
        ThreadBuilder::new(name)
            .scheduling(Scheduling::fifo(HIGH))
            .affinity(&[cpu])
            .prefault_stack(true)
    };
    let seat = |own, shared: &Arc<Shared>| Seat {
        switching,
        own,
        shared: Arc::clone(shared),
    };
    let failed = LabError::work("starting two threads");
    let second = seat(1, &shared);
    let second = spawn("second", order.cpus[1])
        .spawn(move || second.follow(&to_first, &from_first))
        .map_err(&failed)?;
    let first = seat(0, &shared);
    let first = spawn("first", order.cpus[0])
        .spawn(move || first.lead(&to_second, &from_second, rounds))
        .map_err(&failed)?;
    let (switches, of_first) = first.join().unwrap_or_else(|panic| resume_unwind(panic));
    let of_second = second.join().unwrap_or_else(|panic| resume_unwind(panic));
    process::tell(&Switched {
        switches,
        counted: of_first + of_second,
    })?;
    Ok(())
}

/// What both threads use.
#[derive(Default)]
struct Shared {
    /// How often each of them was let go on.
    semaphores: [Semaphore; 2],
    lock: PiLock,
    is_over: AtomicBool,
}

/// The place of one of the two threads.
struct Seat {
    switching: Switching,
    own: usize,
    shared: Arc<Shared>,
}

impl Seat {
    /// The thread whose turns are measured. Returns what its switches took, and how many the kernel has counted.
    fn lead(
        &self,
        other: &Sender<Thread>,
        others: &Receiver<Thread>,
        rounds: u32,
    ) -> (Record, u64) {
        self.take();
        let other = introduce(other, others);
        // The other one waits by then.
        thread::sleep(SETTLING);
        for _ in 0..WARM_UP_ROUNDS {
            self.pass(&other);
        }
        let mut record = Record::new();
        let before = switches();
        let begun = Monotonic::now();
        let mut turn = begun;
        for _ in 0..rounds {
            self.pass(&other);
            let now = Monotonic::now();
            // There and back are two switches.
            record.add(turn.since(begun), now.since(turn) / 2);
            turn = now;
        }
        let counted = switches() - before;
        self.shared.is_over.store(true, Ordering::Release);
        self.give(&other);
        (record, counted)
    }

    /// The other thread. Returns how many of its switches the kernel has counted.
    fn follow(&self, other: &Sender<Thread>, others: &Receiver<Thread>) -> u64 {
        let other = introduce(other, others);
        self.wait();
        let before = switches();
        while !self.shared.is_over.load(Ordering::Acquire) {
            self.pass(&other);
        }
        let counted = switches() - before;
        self.give(&other);
        // Those of the warm-up were counted too.
        counted.saturating_sub(WARM_UP_ROUNDS.into())
    }

    /// Lets the other thread go on, and waits until that does the same.
    fn pass(&self, other: &Thread) {
        let seen = self.shared.semaphores[self.own].posted();
        self.give(other);
        match self.switching {
            Switching::Yield => thread::yield_now(),
            Switching::SuspendResume => thread::park(),
            Switching::Semaphore => {
                self.shared.semaphores[self.own].wait_while(seen);
            }
            Switching::PiLock => self.take(),
        }
    }

    /// Has the lock, where that is what is passed.
    fn take(&self) {
        if self.switching == Switching::PiLock {
            let had = self.shared.lock.lock();
            had.expect("the two threads wait for nothing else");
        }
    }

    /// Lets the other thread go on.
    fn give(&self, other: &Thread) {
        match self.switching {
            Switching::Yield => {}
            Switching::SuspendResume => other.unpark(),
            Switching::Semaphore => self.shared.semaphores[1 - self.own].post(),
            Switching::PiLock => {
                let unlocked = self.shared.lock.unlock();
                unlocked.expect("whose turn it is has the lock");
            }
        }
    }

    /// Waits for the first turn.
    fn wait(&self) {
        match self.switching {
            Switching::Yield => {}
            Switching::SuspendResume => thread::park(),
            Switching::Semaphore => {
                self.shared.semaphores[self.own].wait_while(0);
            }
            Switching::PiLock => self.take(),
        }
    }
}

/// Counts how often it was posted: a futex, without a time limit, whose timer would cost something too.
#[derive(Default)]
struct Semaphore(AtomicU32);

impl Semaphore {
    fn posted(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    fn post(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        // It fails for no word that is there.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    fn wait_while(&self, seen: u32) {
        while self.posted() == seen {
            // Whatever it returns for, what was posted decides.
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, seen, None);
        }
    }
}

/// Tells the other thread who this is, and hears who that is.
fn introduce(other: &Sender<Thread>, others: &Receiver<Thread>) -> Thread {
    // The other one lives as long as it waits for this.
    let _ = other.send(thread::current());
    others.recv().expect("the other thread says who it is")
}

fn switches() -> u64 {
    let usage = Usage::of_thread();
    usage.voluntary_switches + usage.involuntary_switches
}

const WARM_UP_ROUNDS: u32 = 200;
const SETTLING: Duration = Duration::from_millis(10);
