//! Things that are being made or unmade by a thread, while others wait for them.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use chronorb_rt::{Deadline, Gate, PiMutex};

use crate::thread_number::{NOBODY, this_thread};

/// The keys of the things in progress.
pub(super) struct InProgress<K> {
    keys: PiMutex<HashMap<K, Progress>>,
    /// Counts completions.
    ended: Gate,
}

#[derive(Clone, Copy)]
struct Progress {
    /// The thread that is at it, or [`NOBODY`].
    thread: u64,
    /// The number of its marks.
    marks: u32,
}

/// The outcome of an attempt to begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BeginOutcome {
    /// The caller has begun, and must end it.
    Now,
    /// The caller was at it already, further up.
    Already,
    /// The time is over, and another thread is still at it.
    TimedOut,
}

impl<K: Clone + Eq + Hash> InProgress<K> {
    pub(super) fn new() -> Self {
        Self {
            keys: PiMutex::new(HashMap::new()),
            ended: Gate::new(0),
        }
    }

    /// Begins, after others at the same have ended.
    pub(super) fn begin(&self, key: &K, deadline: Deadline) -> BeginOutcome {
        loop {
            let ended = self.ended.get();
            {
                let mut keys = self.keys.lock();
                match keys.get(key) {
                    None => {
                        let thread = this_thread();
                        keys.insert(key.clone(), Progress { thread, marks: 0 });
                        return BeginOutcome::Now;
                    }
                    Some(progress) if progress.thread == this_thread() => {
                        return BeginOutcome::Already;
                    }
                    Some(_) => {}
                }
            }
            if deadline.has_passed() {
                return BeginOutcome::TimedOut;
            }
            self.ended.wait_while(ended, deadline);
        }
    }

    /// Prevents further beginnings until the key is unmarked. A thread that has begun continues.
    pub(super) fn mark(&self, key: &K) {
        let none = Progress {
            thread: NOBODY,
            marks: 0,
        };
        self.keys.lock().entry(key.clone()).or_insert(none).marks += 1;
    }

    /// Whether it was marked, and not unmarked yet.
    pub(super) fn is_marked(&self, key: &K) -> bool {
        let keys = self.keys.lock();
        keys.get(key).is_some_and(|progress| progress.marks > 0)
    }

    /// Whether nothing is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.lock().is_empty()
    }

    /// Whether a thread is at it.
    pub(super) fn is_going_on<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.keys.lock().contains_key(key)
    }

    /// Ends the work that the calling thread began; marks that were set meanwhile stay.
    pub(super) fn end(&self, key: &K) {
        self.change(key, |progress| {
            if progress.thread == this_thread() {
                progress.thread = NOBODY;
            }
        });
    }

    /// Removes a mark.
    pub(super) fn unmark(&self, key: &K) {
        self.change(key, |progress| {
            progress.marks = progress.marks.saturating_sub(1)
        });
    }

    fn change(&self, key: &K, change: impl FnOnce(&mut Progress)) {
        let mut keys = self.keys.lock();
        let Some(progress) = keys.get_mut(key) else {
            return;
        };
        change(progress);
        if progress.thread != NOBODY || progress.marks > 0 {
            return;
        }
        keys.remove(key);
        if keys.is_empty() {
            // Frees its memory.
            *keys = HashMap::new();
        }
        drop(keys);
        let mut ended = self.ended.get();
        while let Err(now) = self.ended.compare_set(ended, ended.wrapping_add(1)) {
            ended = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_thread_is_at_it_and_others_wait() {
        let changing = InProgress::new();
        let soon = Deadline::after(Duration::from_micros(50));
        let later = Deadline::after(Duration::from_secs(60));
        assert_eq!(changing.begin(&"a", later), BeginOutcome::Now);
        assert_eq!(changing.begin(&"a", later), BeginOutcome::Already);
        assert!(changing.is_going_on("a"));
        std::thread::scope(|scope| {
            let waited = scope.spawn(|| changing.begin(&"a", soon)).join();
            assert_eq!(waited.expect("no panic"), BeginOutcome::TimedOut);
            assert_eq!(changing.begin(&"b", soon), BeginOutcome::Now);
            let waiting = scope.spawn(|| changing.begin(&"a", later));
            changing.end(&"a");
            assert_eq!(waiting.join().expect("no panic"), BeginOutcome::Now);
        });
        assert!(changing.is_going_on("a"));
    }

    #[test]
    fn a_mark_outlives_the_end_of_what_was_begun_before_it() {
        let changing = InProgress::new();
        let now = Deadline::after(Duration::ZERO);
        assert_eq!(changing.begin(&"a", now), BeginOutcome::Now);
        changing.mark(&"a");
        assert_eq!(changing.begin(&"a", now), BeginOutcome::Already);
        assert!(changing.is_marked(&"a"));
        changing.end(&"a");
        assert_eq!(changing.begin(&"a", now), BeginOutcome::TimedOut);
        changing.unmark(&"a");
        assert_eq!(changing.begin(&"a", now), BeginOutcome::Now);
    }

    #[test]
    fn the_end_of_a_mark_lets_nobody_in_beside_who_has_begun() {
        let changing = InProgress::new();
        let now = Deadline::after(Duration::ZERO);
        assert_eq!(changing.begin(&"a", now), BeginOutcome::Now);
        changing.mark(&"a");
        changing.unmark(&"a");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| changing.begin(&"a", now)).join();
            assert_eq!(other.expect("no panic"), BeginOutcome::TimedOut);
        });
    }
}
