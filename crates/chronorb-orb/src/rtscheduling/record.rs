//! The distributable threads that threads of this process have, as other threads find them.
//!
//! A thread of the process that has ever had a distributable thread owns a [`ThreadRecord`]. The
//! list of records is locked when a thread joins or leaves it, and to look for a distributable
//! thread.

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
pub(super) type ThreadRecord = [Cancellable<Weak<dyn Interrupt>>; LEVELS];

/// All records of the process.
static THREADS: PiMutex<Vec<Arc<ThreadRecord>>> = PiMutex::new(Vec::new());

/// The owner of a record, which is in the list as long as this lives.
pub(super) struct RecordOwner(pub(super) Arc<ThreadRecord>);

impl RecordOwner {
    pub(super) fn new() -> Self {
        let record = Arc::new([(); LEVELS].map(|()| Cancellable::new()));
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
    let places = |(place, activity): (&Cancellable<Weak<dyn Interrupt>>, Activity)| {
        place.cancel(activity, |wait| {
            if let Some(wait) = wait.upgrade() {
                wait.interrupt();
            }
        });
    };
    each(orb, guid, places) > 0
}

/// Whether a distributable thread is in an ORB, and whether it is cancelled there.
pub(super) fn find(orb: u64, guid: Guid) -> Option<bool> {
    let mut is_cancelled = false;
    let found = each(orb, guid, |(place, activity)| {
        is_cancelled |= place.is_cancelled(activity);
    });
    (found > 0).then_some(is_cancelled)
}

/// Does something at each place that has the distributable thread. Returns their number.
fn each(
    orb: u64,
    guid: Guid,
    mut work: impl FnMut((&Cancellable<Weak<dyn Interrupt>>, Activity)),
) -> usize {
    let name = name_of(orb, guid);
    // The list is not locked meanwhile, since an interruption may make system calls.
    let records: Vec<_> = THREADS.lock().clone();
    let places = records.iter().flat_map(|record| record.iter());
    let found = places.filter_map(|place| Some((place, place.find(name)?)));
    found.map(&mut work).count()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

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
        let activity = record.0[0].begin(1, name_of(orb, guid));
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
        record.0[0].begin(1, name_of(orb, outer));
        record.0[1].begin(1, name_of(orb, inner));
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
    fn a_thread_that_ends_leaves_the_list() {
        let orb = u64::MAX - 4;
        let guid = Guid::new(4, 1);
        let record = RecordOwner::new();
        record.0[0].begin(1, name_of(orb, guid));
        drop(record);
        assert_eq!(find(orb, guid), None);
    }
}
