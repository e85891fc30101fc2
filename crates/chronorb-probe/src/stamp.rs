//! Time stamps of the steps of threads.

use core::sync::atomic::Ordering;
use std::fs;

use chronorb_rt::{Monotonic, PiMutex};

use crate::activity::Activity;
use crate::stamp_ring::{BEGINNING, CAPACITY, COUNTS, POINT_BITS, RINGS, StampRing, TURNED, ticks};
use crate::turn;

/// A point that a thread passed, with the time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stamp {
    /// When, by the clock that all processes of the machine share.
    pub at: Monotonic,
    /// The stamped point.
    pub point: Point,
}

/// The point at which a [`Stamp`] was made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Point {
    /// A call of [`stamp`](crate::stamp()) with this number.
    Number(u8),
    /// A change of the thread's activity to or from input and output ([`doing`](crate::doing)),
    /// stamped before the system call and after it.
    TurnedTo(Activity),
}

/// The stamps of a thread, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ThreadStamps {
    /// The kernel's number of the thread, which may have ended.
    pub thread: u32,
    /// The number of earlier stamps that were overwritten.
    pub lost: u64,
    /// The stamps.
    pub stamps: Vec<Stamp>,
}

/// The clock that stamps are taken from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StampClock {
    /// The processor's own, which runs evenly and alike on all of them: the kernel has it for its
    /// clock too.
    TimeStampCounter,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

/// Keeps stamps from now on, of all threads of the process: the last ones of each, as many as
/// `each`, rounded up to a power of two. For measurements, once in a process.
///
/// A stamp is a look at the clock and a store into the thread's own ring, with neither lock nor
/// allocation; the ring is made with the thread's first [`stamp`](crate::stamp()), and stays for
/// good, so that stamps of threads that have ended can be read.
pub fn keep_stamps(each: usize) -> StampClock {
    let clock = if has_even_counter() {
        StampClock::TimeStampCounter
    } else {
        StampClock::Monotonic
    };
    COUNTS.store(clock == StampClock::TimeStampCounter, Ordering::Relaxed);
    CAPACITY.store(each.next_power_of_two().max(2), Ordering::Relaxed);
    let beginning = Pair::now();
    BEGINNING.store(beginning.ticks, Ordering::Relaxed);
    *BEGUN.lock() = Some(beginning);
    turn::stamp_turns();
    clock
}

/// All stamps that are kept, by thread. Of threads that go on meanwhile, the oldest may be wrong.
#[must_use]
pub fn stamps() -> Vec<ThreadStamps> {
    let Some(beginning) = *BEGUN.lock() else {
        return Vec::new();
    };
    let scale = Scale {
        beginning,
        end: Pair::now(),
    };
    RINGS
        .lock()
        .iter()
        .map(|ring| stamps_of(ring, &scale))
        .collect()
}

fn stamps_of(ring: &StampRing, scale: &Scale) -> ThreadStamps {
    let count = ring.count.load(Ordering::Acquire);
    let lost = count.saturating_sub(ring.stamps.len() as u64);
    let stamp = |at: u64| {
        let word = ring.stamps[at as usize & (ring.stamps.len() - 1)].load(Ordering::Relaxed);
        Stamp {
            at: scale.time(word >> POINT_BITS),
            point: Point::of(word as u8),
        }
    };
    ThreadStamps {
        thread: ring.thread,
        lost,
        stamps: (lost..count).map(stamp).collect(),
    }
}

impl Point {
    fn of(number: u8) -> Self {
        let activity = Activity::ALL.get(usize::from(number & !TURNED));
        match activity.filter(|_| number & TURNED != 0) {
            Some(activity) => Self::TurnedTo(*activity),
            None => Self::Number(number),
        }
    }
}

/// The same moment on both clocks.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: u64,
    time: Monotonic,
}

impl Pair {
    /// The closest of some looks at both.
    fn now() -> Self {
        let look = || {
            let before = ticks();
            let time = Monotonic::now();
            let between = ticks().wrapping_sub(before);
            (between, before.wrapping_add(between / 2), time)
        };
        let closest = (0..LOOKS)
            .map(|_| look())
            .min_by_key(|(between, ..)| *between);
        let (_, ticks, time) = closest.unwrap_or_else(look);
        Self { ticks, time }
    }
}

/// The conversion of ticks to time.
struct Scale {
    beginning: Pair,
    end: Pair,
}

impl Scale {
    /// The time of a stamp that was put down so many ticks after the beginning.
    fn time(&self, ticks: u64) -> Monotonic {
        let all = self.end.ticks.wrapping_sub(self.beginning.ticks).max(1);
        let nanoseconds = (self.end.time - self.beginning.time).as_nanos();
        let since = u128::from(ticks) * nanoseconds / u128::from(all);
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        Monotonic::from_nanos(self.beginning.time.as_nanos().saturating_add(since))
    }
}

/// Whether the processor's counter runs evenly, whatever the processors do, and alike on all of
/// them: the kernel takes it for its clock only then.
fn has_even_counter() -> bool {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    cfg!(target_arch = "x86_64")
        && fs::read_to_string(source).is_ok_and(|source| source.trim() == "tsc")
        && has("constant_tsc")
        && has("nonstop_tsc")
}

static BEGUN: PiMutex<Option<Pair>> = PiMutex::new(None);
const LOOKS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use chronorb_rt::thread_id;

    use crate::{doing, stamp};

    fn of_this_thread() -> ThreadStamps {
        let all = stamps().into_iter();
        let mut own = all.filter(|of| of.thread == thread_id());
        own.next().expect("it has put some down")
    }

    #[test]
    fn stamps_are_in_order_of_time_and_the_oldest_are_forgotten() {
        keep_stamps(64);
        let before = Monotonic::now();
        stamp(7);
        drop(doing(Activity::InputOutput));
        stamp(127);
        let after = Monotonic::now();
        let own = of_this_thread();
        let points: Vec<_> = own.stamps.iter().map(|stamp| stamp.point).collect();
        let turned = [Activity::InputOutput, Activity::Other].map(Point::TurnedTo);
        let first = [Point::Number(7), turned[0], turned[1], Point::Number(127)];
        // The locks that reading takes are no input or output.
        assert_eq!(points, first);
        assert!(own.stamps.is_sorted_by_key(|stamp| stamp.at));
        // The clocks were held against each other some tens of nanoseconds apart, and not for long.
        let slack = core::time::Duration::from_micros(50);
        assert!(own.stamps[0].at + slack >= before && own.stamps[3].at <= after + slack);

        for number in 0..100 {
            stamp(number);
        }
        let own = of_this_thread();
        let capacity = own.stamps.len() as u64;
        assert!(own.lost > 0 && capacity.is_power_of_two(), "{own:?}");
        let at = |number| {
            own.stamps
                .iter()
                .position(|s| s.point == Point::Number(number))
        };
        assert!(at(99).is_some() && at(0).is_none(), "{own:?}");
    }
}
