//! The rings that the classes of an interface share, and the timers of a class, under the model
//! checker: `RUSTFLAGS="--cfg loom" cargo test -p chronorb-rio --release --test loom`.
#![cfg(loom)]
#![allow(unsafe_code, reason = "loom asks for it")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use loom::cell::UnsafeCell;
use loom::thread;

use shared::{Completion, Fill, Free};
use sync::{AtomicU32, AtomicU64, Ordering};
use timers::{NEVER, Timers};

#[allow(dead_code, reason = "not all of it is modelled")]
#[path = "../src/driver/xdp/shared.rs"]
mod shared;

#[allow(dead_code, reason = "not all of it is modelled")]
#[path = "../src/engine/timers.rs"]
mod timers;

/// The atomics of the shared state.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

/// The length of a frame in octets, which is also the number of laps until the marks repeat.
const FRAME: u64 = 8;
const SLOTS: usize = 2;

struct Ring {
    producer: AtomicU32,
    consumer: AtomicU32,
    slots: [AtomicU64; SLOTS],
}

impl Ring {
    fn new() -> Self {
        Self {
            producer: AtomicU32::new(0),
            consumer: AtomicU32::new(0),
            slots: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    fn fill(&self) -> Fill<'_> {
        Fill {
            producer: &self.producer,
            slots: &self.slots,
            frame: FRAME,
        }
    }

    fn completion(&self) -> Completion<'_> {
        Completion {
            producer: &self.producer,
            consumer: &self.consumer,
            slots: &self.slots,
        }
    }

    /// Takes a frame out of the fill ring, as the kernel does.
    fn kernel_takes(&self, at: &mut u32) -> Option<u64> {
        if self.producer.load(Ordering::Acquire) == *at {
            return None;
        }
        let address = self.slots[*at as usize % SLOTS].load(Relaxed);
        *at += 1;
        Some(address / FRAME)
    }

    /// Puts a frame into the completion ring, as the kernel does.
    fn kernel_puts(&self, frame: u64) {
        let at = self.producer.load(Relaxed);
        self.slots[at as usize % SLOTS].store(frame * FRAME, Relaxed);
        self.producer.store(at + 1, Ordering::Release);
    }
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn the_kernel_gets_every_frame_once_and_sees_no_hole() {
    check(|| {
        let ring = Arc::new(Ring::new());
        // The ring has completed a lap before.
        let mut at = 0;
        for lap in 0..SLOTS as u64 {
            ring.fill().put(lap * FRAME);
            assert_eq!(ring.kernel_takes(&mut at), Some(lap));
        }
        let threads = [1, 2].map(|frame| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.fill().put(frame * FRAME))
        });
        let mut seen: Vec<u64> = (0..2).filter_map(|_| ring.kernel_takes(&mut at)).collect();
        for thread in threads {
            thread.join().unwrap();
        }
        while let Some(frame) = ring.kernel_takes(&mut at) {
            seen.push(frame);
        }
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
    });
}

#[test]
fn who_gives_frames_back_lap_after_lap_disturbs_nobody_who_is_late() {
    check(|| {
        let ring = Arc::new(Ring::new());
        ring.fill().put(FRAME);
        let late = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.fill().put(2 * FRAME))
        };
        // The kernel uses the first frame several times, and gets it back each time.
        let (mut at, mut others) = (0, 0);
        for _ in 0..3 {
            match ring.kernel_takes(&mut at) {
                Some(1) => ring.fill().put(FRAME),
                Some(2) => others += 1,
                None => break,
                other => panic!("{other:?}"),
            }
        }
        late.join().unwrap();
        let mut left = Vec::new();
        while let Some(frame) = ring.kernel_takes(&mut at) {
            left.push(frame);
        }
        let once = |frame| left.iter().filter(|it| **it == frame).count();
        assert_eq!((once(1), once(2) + others), (1, 1));
    });
}

#[test]
fn what_was_sent_is_taken_out_once() {
    check(|| {
        let ring = Arc::new(Ring::new());
        ring.kernel_puts(1);
        ring.kernel_puts(2);
        let take = |ring: &Ring| ring.completion().take().map(|address| address / FRAME);
        let other = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || [take(&ring), take(&ring)])
        };
        let first = take(&ring);
        // A position was taken out, so the kernel has room for another frame.
        assert_ne!(ring.consumer.load(Ordering::Acquire), 0);
        ring.kernel_puts(3);
        let second = take(&ring);
        let third = take(&ring);
        let mut seen: Vec<u64> = other
            .join()
            .unwrap()
            .into_iter()
            .chain([first, second, third])
            .flatten()
            .collect();
        seen.extend(take(&ring));
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
    });
}

/// A frame that is being sent; all other frames are too.
struct FrameInFlight {
    ring: Ring,
    free: Free,
    octets: UnsafeCell<u8>,
}

impl FrameInFlight {
    fn new() -> Arc<Self> {
        let free = Free::new(1);
        free.take(0, 0, 64);
        Arc::new(Self {
            ring: Ring::new(),
            free,
            octets: UnsafeCell::new(0),
        })
    }

    /// Sends the frame, as the kernel does.
    fn send(&self) {
        // SAFETY: loom reports concurrent writes by another thread.
        self.octets.with(|at| unsafe { *at });
        self.ring.kernel_puts(PLACE);
    }

    /// Collects sent frames, as any class does.
    fn reap(&self) {
        if let Some(address) = self.ring.completion().take() {
            self.free.give((address / FRAME) as usize);
        }
    }

    /// Writes the next frame there as its class. Returns whether the slot was free.
    fn write(&self) -> bool {
        let found = self.free.find(0, 1, u64::MAX);
        if let Some(place) = found {
            assert_eq!(u64::from(place), PLACE);
            self.free.take(0, place, 1);
            // SAFETY: as above.
            self.octets.with_mut(|at| unsafe { *at = 1 });
        }
        found.is_some()
    }
}

const PLACE: u64 = 5;

/// Whether some schedule found the frame free at the first attempt.
static WAS_FREE: AtomicBool = AtomicBool::new(false);

#[test]
fn a_frame_is_written_again_only_when_the_kernel_has_read_it() {
    for is_own_reaper in [false, true] {
        WAS_FREE.store(false, Relaxed);
        check(move || {
            let frame = FrameInFlight::new();
            let sender = {
                let frame = Arc::clone(&frame);
                thread::spawn(move || {
                    frame.send();
                    if !is_own_reaper {
                        frame.reap();
                    }
                })
            };
            let writer = thread::spawn(move || {
                if is_own_reaper {
                    frame.reap();
                }
                if frame.write() {
                    WAS_FREE.store(true, Relaxed);
                }
            });
            sender.join().unwrap();
            writer.join().unwrap();
        });
        assert!(WAS_FREE.load(Relaxed), "{is_own_reaper}");
    }
}

#[test]
fn no_time_is_lost_that_is_set_during_a_search() {
    check(|| {
        let timers = Arc::new(Timers::new(9));
        timers.set(0, 1);
        let threads = [(0, 5), (8, 3)].map(|(slot, due)| {
            let timers = Arc::clone(&timers);
            thread::spawn(move || timers.set(slot, due))
        });
        let found = timers.serve(&(0..9), 1, &mut |_| ());
        for thread in threads {
            thread.join().unwrap();
        }
        // The search may have read the first time of slot 0 again, and then corrects the bounds.
        let mut served = Vec::new();
        let left = timers.serve(&(0..9), 4, &mut |slot| {
            served.push(slot);
            timers.set(slot, NEVER);
        });
        assert!(found >= 1);
        assert_eq!(served, [8]);
        assert_eq!(left, 5);
    });
}
