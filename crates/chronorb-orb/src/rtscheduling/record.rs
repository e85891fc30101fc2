//! The distributable threads that threads of this process have, as other threads find them.
//!
//! A thread of the process that has ever had a distributable thread owns a [`ThreadRecord`]. The
//! list of records is locked when a thread joins or leaves it, and to look for a distributable
//! thread.

use std::num::NonZeroU64;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use chronorb_rt::{Activity, Cancellable, PiMutex};

use super::Guid;

/// The most distributable threads that one thread has within each other.
pub(super) const LEVELS: usize = 4;

/// The end of a wait, caused by another thread.
pub(crate) trait Interrupt: Send + Sync {
    /// Ends the wait with a failure.
    fn interrupt(&self);
}

/// The distributable threads of one thread, the innermost one last.
pub(super) type ThreadRecord = [Level; LEVELS];

/// A place for a distributable thread of one thread.
pub(super) struct Level {
    activity: Cancellable<Weak<dyn Interrupt>>,
    /// The origin of the request that brought the present distributable thread; 0 if it began here.
    origin: AtomicU64,
    /// The address of what the wait in the activity interrupts, which keeps its memory. Only the
    /// owner uses it.
    wait_at: AtomicUsize,
}

impl Deref for Level {
    type Target = Cancellable<Weak<dyn Interrupt>>;

    fn deref(&self) -> &Self::Target {
        &self.activity
    }
}

impl Level {
    /// Begins an activity as [`Cancellable::begin`] does.
    pub(super) fn begin(
        &self,
        number: u64,
        name: [u64; 3],
        origin: Option<NonZeroU64>,
    ) -> Activity {
        // Written before the activity begins, after the one before has ended. A canceller that
        // finds an activity reads its origin, or the origin of a later one, if the activity has
        // ended meanwhile and cannot be cancelled any more.
        let origin = origin.map_or(0, NonZeroU64::get);
        self.origin.store(origin, Ordering::Release);
        self.activity.begin(number, name)
    }

    /// Begins a wait as [`Cancellable::begin_wait`] does, for what is at an address.
    #[inline]
    pub(super) fn begin_wait_at(
        &self,
        address: usize,
        wait: impl FnOnce() -> Weak<dyn Interrupt>,
    ) -> bool {
        if self.wait_at.load(Ordering::Relaxed) != address {
            self.wait_at.store(address, Ordering::Relaxed);
            self.activity.set_wait(wait());
        }
        self.activity.begin_wait()
    }
}

/// All records of the process.
static THREADS: PiMutex<Vec<Arc<ThreadRecord>>> = PiMutex::new(Vec::new());

/// The owner of a record, which is in the list as long as this lives.
pub(super) struct RecordOwner(pub(super) Arc<ThreadRecord>);

impl RecordOwner {
    pub(super) fn new() -> Self {
        let record = Arc::new([(); LEVELS].map(|()| Level {
            activity: Cancellable::new(),
            origin: AtomicU64::new(0),
            wait_at: AtomicUsize::new(0),
        }));
        THREADS.lock().push(record.clone());
        Self(record)
    }
}

impl Drop for RecordOwner {
    fn drop(&mut self) {
        THREADS
            .lock()
            .retain(|record| !Arc::ptr_eq(record, &self.0));
    }
}

/// The name of a distributable thread in an ORB.
pub(super) fn name_of(orb: u64, guid: Guid) -> [u64; 3] {
    let (key, number) = guid.halves();
    [orb, key, number]
}

/// Cancels a distributable thread wherever it is in an ORB. Returns whether it is there.
pub(super) fn cancel(orb: u64, guid: Guid) -> bool {
    each(orb, guid, cancel_at) > 0
}

/// Cancels a distributable thread where a request of this origin has brought it.
pub(super) fn cancel_from(orb: u64, guid: Guid, origin: NonZeroU64) {
    each(orb, guid, |level, activity| {
        if level.origin.load(Ordering::Acquire) == origin.get() {
            cancel_at(level, activity);
        }
    });
}

fn cancel_at(level: &Level, activity: Activity) {
    level.cancel(activity, |wait| {
        if let Some(wait) = wait.upgrade() {
            wait.interrupt();
        }
    });
}

/// Whether a distributable thread is in an ORB, and whether it is cancelled there.
pub(super) fn find(orb: u64, guid: Guid) -> Option<bool> {
    let mut is_cancelled = false;
    let found = each(orb, guid, |level, activity| {
        is_cancelled |= level.is_cancelled(activity);
    });
    (found > 0).then_some(is_cancelled)
}

/// Does something at each place that has the distributable thread. Returns their number.
fn each(orb: u64, guid: Guid, mut work: impl FnMut(&Level, Activity)) -> usize {
    let name = name_of(orb, guid);
    // The list is not locked meanwhile, since an interruption may make system calls.
    let records: Vec<_> = THREADS.lock().clone();
    let levels = records.iter().flat_map(|record| record.iter());
    let found = levels.filter_map(|level| Some((level, level.find(name)?)));
    found.map(|(level, activity)| work(level, activity)).count()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    struct Wait(AtomicBool);

    impl Interrupt for Wait {
        fn interrupt(&self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    fn wait() -> (Arc<Wait>, Weak<dyn Interrupt>) {
        let wait = Arc::new(Wait(AtomicBool::new(false)));
        let weak = Arc::downgrade(&(wait.clone() as Arc<dyn Interrupt>));
        (wait, weak)
    }

    #[test]
    fn a_thread_is_found_in_its_own_orb() {
        let record = RecordOwner::new();
        let (orb, guid) = (u64::MAX, Guid::new(1, 1));
        let activity = record.0[0].begin(1, name_of(orb, guid), None);
        assert_eq!(find(orb, guid), Some(false));
        assert_eq!(find(orb - 1, guid), None, "it is in another ORB");
        assert!(cancel(orb, guid));
        assert_eq!(find(orb, guid), Some(true));
        record.0[0].end(activity);
        assert_eq!(find(orb, guid), None);
        assert!(!cancel(orb, guid));
    }

    #[test]
    fn only_the_wait_of_the_innermost_thread_is_interrupted() {
        let record = RecordOwner::new();
        let orb = u64::MAX - 2;
        let (outer, inner) = (Guid::new(2, 1), Guid::new(2, 2));
        record.0[0].begin(1, name_of(orb, outer), None);
        record.0[1].begin(1, name_of(orb, inner), None);
        let (wait, weak) = wait();
        record.0[1].set_wait(weak);
        assert!(record.0[1].begin_wait());
        assert!(cancel(orb, outer));
        assert!(!wait.0.load(Ordering::SeqCst));
        assert!(cancel(orb, inner));
        assert!(wait.0.load(Ordering::SeqCst));
        record.0[1].end_wait();
    }

    #[test]
    fn a_peer_cancels_only_what_came_from_its_origin() {
        let [outer, inner] = [0; 2].map(|_| RecordOwner::new());
        let (orb, guid) = (u64::MAX - 6, Guid::new(6, 1));
        let name = name_of(orb, guid);
        let [first, second] = [1, 2].map(NonZeroU64::new);
        let root = outer.0[0].begin(1, name, None);
        let hosted = inner.0[0].begin(1, name, first);
        cancel_from(orb, guid, second.unwrap());
        assert_eq!(find(orb, guid), Some(false));
        cancel_from(orb, guid, first.unwrap());
        assert!(inner.0[0].is_cancelled(hosted));
        assert!(!outer.0[0].is_cancelled(root), "it began here");
    }

    #[test]
    fn a_thread_that_ends_leaves_the_list() {
        let orb = u64::MAX - 4;
        let guid = Guid::new(4, 1);
        let record = RecordOwner::new();
        record.0[0].begin(1, name_of(orb, guid), None);
        drop(record);
        assert_eq!(find(orb, guid), None);
    }
}
