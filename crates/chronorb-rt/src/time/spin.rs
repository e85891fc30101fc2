//! Bounded busy polling instead of sleeping, which starves no other thread.

use core::cell::Cell;
use core::hint;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::fs;
use std::thread::available_parallelism;

use rustix::process::getpid;
use rustix::thread::{Pid, sched_getaffinity};

use crate::sys;
use crate::time::clock::Monotonic;

/// Polls until `look` returns something, at most for `bound`. Returns `None` when it is time to
/// sleep.
///
/// A polling thread keeps its processor from all others of its priority and below. Therefore:
/// * At most as many threads of this process may poll at a time as it has processors, less one, but
///   at least one. Further threads get `None` at once.
/// * A real-time thread polls for less than the share of time that the kernel leaves to real-time
///   threads (`sched_rt_runtime_us`, 95 % by default), by a tenth of the whole. So it is never
///   throttled while it only polls, and less urgent threads get that tenth: it polls for 85 % of
///   each 10 ms. A thread that has used up its share gets `None` until the next 10 ms.
///
/// The processors are those of the calling thread or of the main thread, whichever has more, and no
/// more than a control group's quota.
///
/// One call of `look` should take microseconds at most, since the clock is read after every few of
/// them. Nothing here allocates or takes a lock once the limits are [known](prepare_to_poll). The
/// kernel is only asked for the thread's priority and the processors, once in each 10 ms with
/// polling.
pub fn poll_for<T>(bound: Duration, look: impl FnMut() -> Option<T>) -> Option<T> {
    if bound.is_zero() {
        return None;
    }
    let begun = Monotonic::now();
    let share = Share::of_this_thread(begun);
    let Some(place) = Place::take(share.places) else {
        TURNED_AWAY.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    look_at(place, share, begun, bound, look)
}

/// Polls as [`poll_for`] does, for work of any kind, on behalf of other threads too. It gives way
/// to a thread that polls for its own event and finds that too many threads poll.
pub fn poll_unless_contended<T>(bound: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    if bound.is_zero() {
        return None;
    }
    let begun = Monotonic::now();
    let share = Share::of_this_thread(begun);
    let place = Place::take(share.places)?;
    let before = TURNED_AWAY.load(Ordering::Relaxed);
    let looked = look_at(place, share, begun, bound, || {
        if TURNED_AWAY.load(Ordering::Relaxed) == before {
            look().map(Some)
        } else {
            Some(None)
        }
    });
    looked.flatten()
}

/// Reads the constant limits of polling: the share of time of real-time threads, and the quota of
/// the control group. The first call in a process reads files and allocates. A quota that is not
/// below the number of processors on which the calling thread may run is not found.
///
/// [`ThreadBuilder`](crate::ThreadBuilder) calls it with each thread. Without it, the first polling
/// thread of the process reads them.
pub fn prepare_to_poll() {
    if REAL_TIME.load(Ordering::Acquire) != UNKNOWN {
        return;
    }
    // It is less than the processors of this thread only by a quota.
    let parallelism = available_parallelism().map_or(1, usize::from);
    if parallelism < processors_of(None) {
        QUOTA.store(parallelism, Ordering::Relaxed);
    }
    let real_time = PERIOD.mul_f64(real_time_share()).as_nanos() as u64;
    REAL_TIME.store(real_time, Ordering::Release);
}

fn look_at<T>(
    _place: Place,
    mut share: Share,
    begun: Monotonic,
    bound: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    let mut last = begun;
    let mut found = None;
    'looking: loop {
        share = share.at(last);
        if share.left.is_zero() || last - begun > bound {
            break;
        }
        // Reading the clock takes longer than some polls, and delays them.
        for _ in 0..LOOKS_PER_CLOCK {
            found = look();
            if found.is_some() {
                break 'looking;
            }
            hint::spin_loop();
        }
        let now = Monotonic::now();
        share.left = share.left.saturating_sub(now - last);
        last = now;
    }
    SHARE.set(Some(share));
    found
}

thread_local! {
    static SHARE: Cell<Option<Share>> = const { Cell::new(None) };
}

/// The polling budget of a thread in the present period.
#[derive(Clone, Copy, Debug)]
struct Share {
    begun: Monotonic,
    left: Duration,
    /// The number of threads that may poll at a time.
    places: usize,
}

impl Share {
    /// Returns the budget of the calling thread at `now`.
    fn of_this_thread(now: Monotonic) -> Self {
        let share = SHARE.get();
        let present = share.map_or_else(|| Self::begin(now), |share| share.at(now));
        SHARE.set(Some(present));
        present
    }

    #[cold]
    fn begin(now: Monotonic) -> Self {
        prepare_to_poll();
        let processors = processors_of(None).max(processors_of(Some(getpid())));
        Self {
            begun: now,
            left: if is_real_time() {
                Duration::from_nanos(REAL_TIME.load(Ordering::Acquire))
            } else {
                PERIOD
            },
            places: places(processors.min(QUOTA.load(Ordering::Relaxed))),
        }
    }

    /// Returns the budget in the period at `now`.
    fn at(self, now: Monotonic) -> Self {
        if now - self.begun < PERIOD {
            self
        } else {
            Self::begin(now)
        }
    }
}

/// A permit to poll, of which there are fewer than processors.
struct Place;

/// The time that a real-time thread may poll in a period, in nanoseconds.
static REAL_TIME: AtomicU64 = AtomicU64::new(UNKNOWN);
const UNKNOWN: u64 = u64::MAX;
/// The control group's quota in processors.
static QUOTA: AtomicUsize = AtomicUsize::new(usize::MAX);
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// The number of times that a thread polling for its own event was refused.
static TURNED_AWAY: AtomicUsize = AtomicUsize::new(0);

impl Place {
    fn take(places: usize) -> Option<Self> {
        let before = TAKEN.fetch_add(1, Ordering::Relaxed);
        let place = Self;
        // An excess permit is returned at once.
        (before < places).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        TAKEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the number of threads that may poll at a time.
fn places(processors: usize) -> usize {
    processors.saturating_sub(1).max(1)
}

/// The number of processors on which a thread may run now.
fn processors_of(thread: Option<Pid>) -> usize {
    sched_getaffinity(thread).map_or(1, |cpus| cpus.count() as usize)
}

fn is_real_time() -> bool {
    let policy = sys::scheduler(0).map(|(policy, _)| policy & !libc::SCHED_RESET_ON_FORK);
    !matches!(
        policy,
        Ok(libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE)
    )
}

/// Returns the part of a period that a real-time thread may poll, from 0 to 1.
fn real_time_share() -> f64 {
    let number = |name: &str| -> Option<f64> {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim_ascii().parse::<i32>().ok().map(f64::from)
    };
    share_of(number("sched_rt_runtime_us"), number("sched_rt_period_us"))
}

/// A runtime of -1 means no bound; if the values are unknown, the kernel's default is assumed.
fn share_of(runtime: Option<f64>, period: Option<f64>) -> f64 {
    let of_kernel = match (runtime, period) {
        (Some(runtime), Some(period)) if runtime >= 0.0 && period > 0.0 => runtime / period,
        _ => DEFAULT_SHARE,
    };
    (of_kernel.min(DEFAULT_SHARE) - RESERVE).max(0.0)
}

/// The number of polls between two readings of the clock.
const LOOKS_PER_CLOCK: usize = 4;
/// The period in which a thread's share is counted.
const PERIOD: Duration = Duration::from_millis(10);
/// The share of time that Linux leaves to real-time threads by default.
const DEFAULT_SHARE: f64 = 0.95;
/// The share that is left to other threads besides.
const RESERVE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::thread::{CpuSet, sched_setaffinity};

    use super::*;

    #[test]
    fn what_is_found_ends_the_looking() {
        let mut looks = 0;
        let found = poll_for(Duration::from_secs(10), || {
            looks += 1;
            (looks == 3).then_some("it")
        });
        assert_eq!((found, looks), (Some("it"), 3));
    }

    #[test]
    fn looking_ends_at_its_bound_and_does_not_begin_without_one() {
        let mut looks = 0;
        let nothing: Option<()> = poll_for(Duration::from_micros(1), || {
            looks += 1;
            None
        });
        assert_eq!(nothing, None);
        assert_eq!(poll_for(Duration::ZERO, || Some(())), None);
    }

    #[test]
    fn who_looks_for_others_gives_way() {
        let mut looks = 0;
        let found: Option<()> = poll_unless_contended(Duration::from_secs(60), || {
            looks += 1;
            if looks == 3 {
                TURNED_AWAY.fetch_add(1, Ordering::Relaxed);
            }
            None
        });
        assert_eq!(found, None);
        assert!(looks <= 3, "it looked on");
    }

    #[test]
    fn the_share_of_a_thread_is_used_up_and_comes_again() {
        let start = Monotonic::from_nanos(1);
        let used_up = Share {
            begun: start,
            left: Duration::ZERO,
            places: usize::MAX,
        };
        assert!(used_up.at(start + PERIOD / 2).left.is_zero());
        assert!(!used_up.at(start + PERIOD).left.is_zero());
    }

    #[test]
    fn the_places_follow_the_processors_of_the_thread_or_the_process() {
        assert_eq!([0, 1, 2, 3, 16].map(places), [1, 1, 1, 2, 15]);
        thread::spawn(|| {
            let all = sched_getaffinity(None).unwrap();
            let mut first = CpuSet::new();
            first.set((0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)).unwrap());
            sched_setaffinity(None, &first).unwrap();
            assert_eq!(processors_of(None), 1);
            // Other tests may hold the one permit.
            let _: Option<()> = poll_for(Duration::from_secs(1), || Some(()));
            let share = SHARE.get().unwrap();
            let of_process = processors_of(Some(getpid()));
            assert_eq!(share.places, places(of_process));

            // The share that the thread has found holds until the period is over.
            let narrow = Share {
                places: 77,
                ..share
            };
            assert_eq!(narrow.at(share.begun + PERIOD / 2).places, 77);
            sched_setaffinity(None, &all).unwrap();
            let present = narrow.at(share.begun + PERIOD).places;
            assert_eq!(present, places(all.count() as usize));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn real_time_threads_leave_a_tenth_more_than_the_kernel_does() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(share_of(Some(950_000.0), Some(1e6)), 0.85));
        assert!(close(share_of(Some(-1.0), Some(1e6)), 0.85));
        assert!(close(share_of(None, None), 0.85));
        assert!(close(share_of(Some(400_000.0), Some(1e6)), 0.3));
        assert!(close(share_of(Some(0.0), Some(1e6)), 0.0));
    }
}
