//! The rings that threads put their stamps into.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use chronorb_rt::{Monotonic, PiMutex, thread_id};

use crate::activity::Activity;

/// Records a stamp of the calling thread at the point with this number, from 0 to 127.
///
/// Call [`keep_stamps`](crate::keep_stamps) before. A program without stamps does not call this.
#[inline]
pub fn stamp(point: u8) {
    let ring = RING.get().unwrap_or_else(StampRing::make);
    ring.put(u64::from(point & !TURNED));
}

/// The calling thread turns to something else. It gets no ring for that: it may be in a signal
/// handler.
pub(crate) fn turned_to(activity: Activity) {
    if let Some(ring) = RING.get() {
        ring.put(u64::from(TURNED | activity as u8));
    }
}

/// The last stamps of a thread. Only the thread itself writes to it.
pub(crate) struct StampRing {
    pub(crate) thread: u32,
    /// The number of stamps made.
    pub(crate) count: AtomicU64,
    /// Ticks and point of each.
    pub(crate) stamps: Box<[AtomicU64]>,
}

impl StampRing {
    #[cold]
    fn make() -> &'static Self {
        let stamps = (0..CAPACITY.load(Ordering::Relaxed)).map(|_| AtomicU64::new(0));
        let ring: &'static Self = Box::leak(Box::new(Self {
            thread: thread_id(),
            count: AtomicU64::new(0),
            stamps: stamps.collect(),
        }));
        RINGS.lock().push(ring);
        RING.set(Some(ring));
        ring
    }

    #[inline]
    fn put(&self, point: u64) {
        let ticks = ticks().wrapping_sub(BEGINNING.load(Ordering::Relaxed));
        let count = self.count.load(Ordering::Relaxed);
        // The number of stamps is a power of two.
        let at = count as usize & (self.stamps.len() - 1);
        if let Some(stamp) = self.stamps.get(at) {
            stamp.store(ticks << POINT_BITS | point, Ordering::Relaxed);
        }
        self.count.store(count + 1, Ordering::Release);
    }
}

#[inline]
pub(crate) fn ticks() -> u64 {
    if COUNTS.load(Ordering::Relaxed) {
        counter()
    } else {
        Monotonic::now().as_nanos()
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: every processor of this architecture has the counter, and Linux lets all processes
    // read it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    Monotonic::now().as_nanos()
}

pub(crate) static COUNTS: AtomicBool = AtomicBool::new(false);
pub(crate) static CAPACITY: AtomicUsize = AtomicUsize::new(2);
/// The ticks at which stamps began to be kept.
pub(crate) static BEGINNING: AtomicU64 = AtomicU64::new(0);
pub(crate) static RINGS: PiMutex<Vec<&'static StampRing>> = PiMutex::new(Vec::new());

thread_local! {
    static RING: Cell<Option<&'static StampRing>> = const { Cell::new(None) };
}

/// The bits of a stamp's word for the point. The others count ticks, for nine months at 3 GHz.
pub(crate) const POINT_BITS: u32 = 8;
/// The bit that distinguishes a change of activity from a number.
pub(crate) const TURNED: u8 = 0x80;
