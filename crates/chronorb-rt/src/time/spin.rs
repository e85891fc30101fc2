//! Looking again and again instead of sleeping, without starving anybody.

use core::cell::Cell;
use core::hint;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::OnceLock;

use crate::sched::scheduling::{Policy, current};
use crate::time::clock::Monotonic;

/// Looks again and again until there is something, at most for `bound`; `None` where it is time to
/// sleep.
///
/// A thread that looks keeps its processor from all others of its priority and below. Therefore:
/// * of the threads of this process as many may look at a time as it has processors but one, and
///   one where it has one only: further ones get `None` at once;
/// * a real-time thread looks for less than the share of time that the kernel leaves to real-time
///   threads (`sched_rt_runtime_us`, 95 % unless it was changed), by a tenth of all, so that it is
///   never throttled while it only looks, and what is less urgent gets that tenth: 85 % of each 10
///   ms. A thread that has used that up gets `None` until the next 10 ms.
///
/// One look should take microseconds at most, since time is read after every few of them. Nothing here allocates or takes a lock, and asks the
/// kernel for no more than the thread's priority, once in each 10 ms in which it looks.
pub fn look_for<T>(bound: Duration, look: impl FnMut() -> Option<T>) -> Option<T> {
    if bound.is_zero() {
        return None;
    }
    let Some(place) = Place::take() else {
        TURNED_AWAY.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    look_at(place, bound, look)
}

/// As [`look_for`], for a thread that looks for whatever comes, on behalf of others too: it gives
/// way to one that looks for something of its own and finds that too many look.
pub fn look_unless_wanted<T>(bound: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    if bound.is_zero() {
        return None;
    }
    let place = Place::take()?;
    let before = TURNED_AWAY.load(Ordering::Relaxed);
    let looked = look_at(place, bound, || {
        match TURNED_AWAY.load(Ordering::Relaxed) == before {
            true => look().map(Some),
            false => Some(None),
        }
    });
    looked.flatten()
}

fn look_at<T>(_place: Place, bound: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Monotonic::now();
    let mut share = SHARE.get().unwrap_or_else(|| Share::begin(begun));
    let mut last = begun;
    let mut found = None;
    'looking: loop {
        share = share.at(last);
        if share.left.is_zero() || last - begun > bound {
            break;
        }
        // To read the clock takes longer than some looks, and so does what it delays.
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

/// What a thread may look for in the present period.
#[derive(Clone, Copy, Debug)]
struct Share {
    begun: Monotonic,
    left: Duration,
}

impl Share {
    #[cold]
    fn begin(now: Monotonic) -> Self {
        let real_time = !matches!(current(), Ok(scheduling) if scheduling.policy == Policy::Other);
        Self {
            begun: now,
            left: match real_time {
                true => PERIOD.mul_f64(real_time_share()),
                false => PERIOD,
            },
        }
    }

    /// That of the period at `now`.
    fn at(self, now: Monotonic) -> Self {
        match now - self.begun < PERIOD {
            true => self,
            false => Self::begin(now),
        }
    }
}

/// The right to look, of which there are fewer than processors.
struct Place;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// How often a thread that looked for something of its own found no place.
static TURNED_AWAY: AtomicUsize = AtomicUsize::new(0);

impl Place {
    fn take() -> Option<Self> {
        static PLACES: OnceLock<usize> = OnceLock::new();
        let places = *PLACES.get_or_init(|| {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            (processors - 1).max(1)
        });
        let before = TAKEN.fetch_add(1, Ordering::Relaxed);
        let place = Self;
        // Where there is none, it is given back at once.
        (before < places).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        TAKEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The part of a period that a real-time thread may look, from 0 to 1.
fn real_time_share() -> f64 {
    static SHARE: OnceLock<f64> = OnceLock::new();
    *SHARE.get_or_init(|| {
        let number = |name: &str| -> Option<f64> {
            let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
            // Reading fractions would bring 13 KiB of code and tables.
            text.trim().parse::<i32>().ok().map(f64::from)
        };
        share_of(number("sched_rt_runtime_us"), number("sched_rt_period_us"))
    })
}

/// A runtime of -1 is no bound; where nothing is known, the kernel's default is assumed.
fn share_of(runtime: Option<f64>, period: Option<f64>) -> f64 {
    let of_kernel = match (runtime, period) {
        (Some(runtime), Some(period)) if runtime >= 0.0 && period > 0.0 => runtime / period,
        _ => DEFAULT_SHARE,
    };
    (of_kernel.min(DEFAULT_SHARE) - RESERVE).max(0.0)
}

/// How often it is looked between two readings of the clock.
const LOOKS_PER_CLOCK: usize = 4;
/// In which a thread's share is counted.
const PERIOD: Duration = Duration::from_millis(10);
/// What Linux leaves to real-time threads by default.
const DEFAULT_SHARE: f64 = 0.95;
/// What is left to others beside.
const RESERVE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_ends_the_looking() {
        let mut looks = 0;
        let found = look_for(Duration::from_secs(10), || {
            looks += 1;
            (looks == 3).then_some("it")
        });
        assert_eq!((found, looks), (Some("it"), 3));
    }

    #[test]
    fn looking_ends_at_its_bound_and_does_not_begin_without_one() {
        let mut looks = 0;
        let nothing: Option<()> = look_for(Duration::from_micros(1), || {
            looks += 1;
            None
        });
        assert_eq!(nothing, None);
        assert_eq!(look_for(Duration::ZERO, || Some(())), None);
    }

    #[test]
    fn who_looks_for_others_gives_way() {
        let mut looks = 0;
        let found: Option<()> = look_unless_wanted(Duration::from_secs(60), || {
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
        };
        assert!(used_up.at(start + PERIOD / 2).left.is_zero());
        assert!(!used_up.at(start + PERIOD).left.is_zero());
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
