//! The ring of events, and the thread that empties it.

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::panic::catch_unwind;

use tracing::level_filters::LevelFilter;

use super::event::{Event, Level, Limit};
use super::limits::{Admission, Limits, Summary};
use super::record::{Record, record_of};
use crate::sched::thread::ThreadBuilder;
use crate::sync::gate::Gate;
use crate::sync::pi_mutex::PiMutex;
use crate::time::clock::{Deadline, Monotonic};

/// The queue between the threads that report events and the thread that passes them on.
struct Ring {
    /// Has the capacity [`CAPACITY`] from the start of the thread on.
    records: VecDeque<Record>,
    is_started: bool,
}

static RING: PiMutex<Ring> = PiMutex::new(Ring {
    records: VecDeque::new(),
    is_started: false,
});
/// Advances with the first record of an empty ring.
static FILLED: Gate = Gate::new(0);
/// Advances when the ring is empty and all records have been passed on.
static EMPTIED: Gate = Gate::new(0);
/// Whether the thread is passing a record on.
static IS_BUSY: AtomicBool = AtomicBool::new(false);
static LOST: AtomicU64 = AtomicU64::new(0);

pub(super) fn is_wanted(level: Level) -> bool {
    LevelFilter::current() >= filter_of(level)
}

fn filter_of(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    }
}

pub(super) fn tell(event: &Event<'_>) {
    if !is_wanted(event.level) {
        return;
    }
    put(record_of(event));
}

fn put(record: Record) {
    let mut ring = RING.lock();
    if !ring.is_started {
        drop(ring);
        start();
        ring = RING.lock();
    }
    if !ring.is_started || ring.records.len() == CAPACITY {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let was_empty = ring.records.is_empty();
    ring.records.push_back(record);
    drop(ring);
    if was_empty {
        FILLED.advance();
    }
}

pub(super) fn start() {
    let records = VecDeque::with_capacity(CAPACITY);
    let mut ring = RING.lock();
    if ring.is_started {
        return;
    }
    ring.is_started = true;
    ring.records = records;
    drop(ring);
    let thread = ThreadBuilder::new("chronorb.log").stack_size(STACK_SIZE);
    if thread.spawn(pass_on).is_err() {
        // The next event tries again.
        RING.lock().is_started = false;
    }
}

pub(super) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

pub(super) fn flush(time: Duration) -> bool {
    let deadline = Deadline::after(time);
    loop {
        let seen = EMPTIED.get();
        let ring = RING.lock();
        let is_empty = ring.records.is_empty() && !IS_BUSY.load(Ordering::Acquire);
        drop(ring);
        if is_empty {
            return true;
        }
        if deadline.has_passed() {
            return false;
        }
        EMPTIED.wait_while(seen, deadline);
    }
}

/// The thread's function: passes records on, one after another, and reports suppressed events when
/// their interval is over.
fn pass_on() {
    let mut limits = Limits::default();
    let mut lost_before = 0;
    loop {
        let seen = FILLED.get();
        let taken = {
            let mut ring = RING.lock();
            let taken = ring.records.pop_front();
            // Under the lock, so that `flush` sees the record here or there.
            IS_BUSY.store(taken.is_some(), Ordering::Release);
            taken
        };
        let now = Monotonic::now();
        limits.expire(now, &mut |summary| tell_suppressed(&summary));
        let lost = lost();
        if lost != lost_before {
            emit(Level::Warn, &loss(lost - lost_before));
            lost_before = lost;
        }
        match taken {
            Some(record) => match limits.admit(&record, now) {
                Admission::Told => emit(record.level, &record),
                Admission::Suppressed => {}
            },
            None => {
                EMPTIED.advance();
                let next = limits.next_end().unwrap_or(now + LOOK_AGAIN);
                FILLED.wait_while(seen, Deadline::at(next));
            }
        }
    }
}

fn loss(lost: u64) -> Record {
    record_of(&Event {
        level: Level::Warn,
        cause: "lost events",
        peer: &"",
        number: lost as i64,
        detail: &"events came faster than the subscriber took them",
        limit: Limit::NONE,
    })
}

fn tell_suppressed(summary: &Summary) {
    let record = record_of(&Event {
        level: summary.level,
        cause: summary.cause,
        peer: &summary.peer,
        number: summary.count as i64,
        detail: &format_args!("{} more like this were not told", summary.count),
        limit: Limit::NONE,
    });
    emit(summary.level, &record);
}

/// Calls the subscriber. One that panics has lost one event, and not all that follow.
fn emit(level: Level, record: &Record) {
    let _ = catch_unwind(AssertUnwindSafe(|| emit_event(level, record)));
}

fn emit_event(level: Level, record: &Record) {
    macro_rules! event {
        ($level:ident) => {
            tracing::event!(
                target: "chronorb",
                tracing::Level::$level,
                cause = record.cause,
                peer = record.peer.as_str(),
                number = record.number,
                thread = record.thread.as_str(),
                time_ns = record.time_ns,
                "{}",
                record.detail,
            )
        };
    }
    match level {
        Level::Error => event!(ERROR),
        Level::Warn => event!(WARN),
        Level::Info => event!(INFO),
        Level::Debug => event!(DEBUG),
    }
}

/// Records that wait, at most.
const CAPACITY: usize = 128;
/// A subscriber of the application runs on it.
const STACK_SIZE: usize = 1 << 20;
/// The interval at which the thread checks for records without a wake-up.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
