//! The distributable threads that threads of this process have, as other threads find them.
//!
//! A thread of the process that has ever had a distributable thread owns a [`ThreadRecord`]. To
//! publish a distributable thread there is some stores, and to find out whether it is cancelled is
//! two loads. The list of records is locked when a thread joins or leaves it, and to look for a
//! distributable thread.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use chronorb_rt::PiMutex;

use super::Guid;

/// The most distributable threads that one thread has within each other.
pub(super) const LEVELS: usize = 4;

/// The end of a wait, caused by another thread.
pub(crate) trait Interrupt: Send + Sync {
    /// Ends the wait with a failure.
    fn interrupt(&self);
}

/// The distributable threads of one thread.
#[derive(Default)]
pub(super) struct ThreadRecord {
    levels: [PublishedLevel; LEVELS],
    /// The number of levels in use; the last one is the innermost.
    depth: AtomicUsize,
    /// Whether the innermost distributable thread waits for a reply at `wait`.
    is_waiting: AtomicBool,
    wait: PiMutex<Option<Weak<dyn Interrupt>>>,
}

/// One distributable thread.
#[derive(Default)]
struct PublishedLevel {
    /// Counts the changes of the level; odd while it is in use.
    episode: AtomicU64,
    orb: AtomicU64,
    key: AtomicU64,
    number: AtomicU64,
    /// The episode that is cancelled.
    cancelled: AtomicU64,
}

/// All records of the process.
static THREADS: PiMutex<Vec<Arc<ThreadRecord>>> = PiMutex::new(Vec::new());

/// The owner of a record, which is in the list as long as this lives.
pub(super) struct RecordOwner(pub(super) Arc<ThreadRecord>);

impl RecordOwner {
    pub(super) fn new() -> Self {
        let record = Arc::<ThreadRecord>::default();
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

impl ThreadRecord {
    /// Publishes a distributable thread at a level, and returns its episode.
    pub(super) fn publish(&self, level: usize, orb: u64, guid: Guid) -> u64 {
        let place = &self.levels[level];
        let (key, number) = guid.halves();
        // A reader of one of these sees the end of the episode before.
        place.orb.store(orb, Ordering::Release);
        place.key.store(key, Ordering::Release);
        place.number.store(number, Ordering::Release);
        // Only this thread changes it.
        let episode = place.episode.load(Ordering::Relaxed) + 1;
        place.episode.store(episode, Ordering::SeqCst);
        self.depth.store(level + 1, Ordering::SeqCst);
        episode
    }

    /// Ends the episode of the innermost level.
    pub(super) fn withdraw(&self, level: usize) {
        let episode = &self.levels[level].episode;
        episode.store(episode.load(Ordering::Relaxed) + 1, Ordering::SeqCst);
        self.depth.store(level, Ordering::SeqCst);
    }

    /// Whether an episode of a level is cancelled.
    #[inline]
    pub(super) fn is_cancelled(&self, level: usize, episode: u64) -> bool {
        self.levels[level].cancelled.load(Ordering::SeqCst) == episode
    }

    /// Cancels an episode of a level.
    pub(super) fn mark(&self, level: usize, episode: u64) {
        self.levels[level]
            .cancelled
            .store(episode, Ordering::SeqCst);
    }

    /// Notes that the thread waits at `wait`, which is known already if it `is_same`, and may be
    /// interrupted until [`end_wait`](Self::end_wait).
    pub(super) fn begin_wait(&self, wait: Option<Weak<dyn Interrupt>>, is_same: bool) {
        if !is_same {
            *self.wait.lock() = wait;
        }
        self.is_waiting.store(true, Ordering::SeqCst);
    }

    /// Ends a wait. If it was cancelled, no other thread interrupts anything after this.
    pub(super) fn end_wait(&self, level: usize, episode: u64) {
        self.is_waiting.store(false, Ordering::SeqCst);
        if self.is_cancelled(level, episode) {
            // Either that thread has seen the store, or it has the lock until it has interrupted.
            drop(self.wait.lock());
        }
    }

    /// Interrupts the wait of the innermost distributable thread.
    fn interrupt(&self, level: usize) {
        let wait = self.wait.lock();
        let is_innermost = self.depth.load(Ordering::SeqCst) == level + 1;
        if is_innermost
            && self.is_waiting.load(Ordering::SeqCst)
            && let Some(wait) = wait.as_ref().and_then(Weak::upgrade)
        {
            wait.interrupt();
        }
    }

    /// The levels that have the distributable thread, with their episodes.
    fn find(&self, orb: u64, guid: Guid) -> impl Iterator<Item = (usize, u64)> {
        let halves = guid.halves();
        let found = move |place: &PublishedLevel| {
            let episode = place.episode.load(Ordering::SeqCst);
            let key = place.key.load(Ordering::SeqCst);
            let its = (key, place.number.load(Ordering::SeqCst));
            let is_it = its == halves && place.orb.load(Ordering::SeqCst) == orb;
            // The values belong to the episode if it is still the same.
            let is_stable = place.episode.load(Ordering::SeqCst) == episode;
            (episode % 2 == 1 && is_it && is_stable).then_some(episode)
        };
        let levels = self.levels.iter().enumerate();
        levels.filter_map(move |(level, place)| Some((level, found(place)?)))
    }
}

/// Cancels a distributable thread wherever it is in an ORB. Returns whether it is there.
pub(super) fn cancel(orb: u64, guid: Guid) -> bool {
    let records: Vec<_> = THREADS.lock().clone();
    let mut is_here = false;
    for record in &records {
        for (level, episode) in record.find(orb, guid) {
            is_here = true;
            if !record.is_cancelled(level, episode) {
                record.mark(level, episode);
                record.interrupt(level);
            }
        }
    }
    is_here
}

/// Whether a distributable thread is in an ORB, and whether it is cancelled there.
pub(super) fn find(orb: u64, guid: Guid) -> Option<bool> {
    let records: Vec<_> = THREADS.lock().clone();
    let each = records.iter().flat_map(|record| {
        let found = record.find(orb, guid);
        found.map(|(level, episode)| record.is_cancelled(level, episode))
    });
    each.reduce(|one, other| one || other)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wait(AtomicBool);

    impl Interrupt for Wait {
        fn interrupt(&self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_mark_belongs_to_one_episode() {
        let record = RecordOwner::new();
        let (orb, guid) = (u64::MAX, Guid::new(1, 1));
        let first = record.0.publish(0, orb, guid);
        assert_eq!(find(orb, guid), Some(false));
        assert_eq!(find(orb - 1, guid), None, "it is in another ORB");
        assert!(cancel(orb, guid));
        assert!(record.0.is_cancelled(0, first));
        assert_eq!(find(orb, guid), Some(true));
        record.0.withdraw(0);
        assert_eq!(find(orb, guid), None);
        assert!(!cancel(orb, guid));
        let second = record.0.publish(0, orb, guid);
        assert!(!record.0.is_cancelled(0, second));
    }

    #[test]
    fn only_a_wait_of_the_innermost_thread_is_interrupted() {
        let record = RecordOwner::new();
        let orb = u64::MAX - 2;
        let (outer, inner) = (Guid::new(2, 1), Guid::new(2, 2));
        record.0.publish(0, orb, outer);
        let episode = record.0.publish(1, orb, inner);
        let wait = Arc::new(Wait(AtomicBool::new(false)));
        let weak: Weak<dyn Interrupt> = Arc::downgrade(&(wait.clone() as Arc<dyn Interrupt>));
        record.0.begin_wait(Some(weak), false);
        assert!(cancel(orb, outer));
        assert!(!wait.0.load(Ordering::SeqCst));
        assert!(cancel(orb, inner));
        assert!(wait.0.load(Ordering::SeqCst));
        record.0.end_wait(1, episode);
    }

    #[test]
    fn a_wait_that_has_ended_is_not_interrupted() {
        let record = RecordOwner::new();
        let (orb, guid) = (u64::MAX - 3, Guid::new(3, 1));
        let episode = record.0.publish(0, orb, guid);
        let wait = Arc::new(Wait(AtomicBool::new(false)));
        let weak: Weak<dyn Interrupt> = Arc::downgrade(&(wait.clone() as Arc<dyn Interrupt>));
        record.0.begin_wait(Some(weak), false);
        record.0.end_wait(0, episode);
        assert!(cancel(orb, guid));
        assert!(!wait.0.load(Ordering::SeqCst));
    }

    #[test]
    fn a_thread_that_ends_leaves_the_list() {
        let orb = u64::MAX - 4;
        let guid = Guid::new(4, 1);
        let record = RecordOwner::new();
        record.0.publish(0, orb, guid);
        drop(record);
        assert_eq!(find(orb, guid), None);
    }
}
