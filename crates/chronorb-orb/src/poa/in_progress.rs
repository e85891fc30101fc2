//! Things that are being made or unmade by a thread, while others wait for them.

use std::borrow::Borrow;
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_rt::{Deadline, Gate, PiMutex};

/// The keys of what is in progress, each with the thread that is at it.
pub(super) struct InProgress<K> {
    keys: PiMutex<HashMap<K, u64>>,
    /// Counts what has come to an end.
    ended: Gate,
}

/// What an attempt to begin came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Begun {
    /// The caller is at it now, and has to end it.
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
    pub(super) fn begin(&self, key: &K, deadline: Deadline) -> Begun {
        loop {
            let ended = self.ended.get();
            {
                let mut keys = self.keys.lock();
                match keys.get(key) {
                    None => {
                        keys.insert(key.clone(), this_thread());
                        return Begun::Now;
                    }
                    Some(thread) if *thread == this_thread() => return Begun::Already,
                    Some(_) => {}
                }
            }
            if deadline.has_passed() {
                return Begun::TimedOut;
            }
            self.ended.wait_while(ended, deadline);
        }
    }

    /// Begins at once, on behalf of whichever thread will end it.
    pub(super) fn mark(&self, key: &K) {
        self.keys.lock().insert(key.clone(), NOBODY);
    }

    /// Whether nobody is at anything.
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

    /// Ends what the calling thread began; what was marked meanwhile stays so.
    pub(super) fn end(&self, key: &K) {
        self.end_of(key, this_thread());
    }

    /// Ends what was marked.
    pub(super) fn unmark(&self, key: &K) {
        self.end_of(key, NOBODY);
    }

    fn end_of(&self, key: &K, thread: u64) {
        let mut keys = self.keys.lock();
        if keys.get(key) != Some(&thread) {
            return;
        }
        keys.remove(key);
        if keys.is_empty() {
            keys.shrink_to_fit();
        }
        drop(keys);
        let mut ended = self.ended.get();
        while let Err(now) = self.ended.compare_set(ended, ended.wrapping_add(1)) {
            ended = now;
        }
    }
}

/// A number of the calling thread that no other has, nor will have.
pub(crate) fn this_thread() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(NOBODY + 1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(NOBODY) };
    }
    let mut number = NUMBER.get();
    if number == NOBODY {
        number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        NUMBER.set(number);
    }
    number
}

pub(crate) const NOBODY: u64 = 0;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_thread_is_at_it_and_others_wait() {
        let changing = InProgress::new();
        let soon = Deadline::after(Duration::from_micros(50));
        let later = Deadline::after(Duration::from_secs(60));
        assert_eq!(changing.begin(&"a", later), Begun::Now);
        assert_eq!(changing.begin(&"a", later), Begun::Already);
        assert!(changing.is_going_on("a"));
        std::thread::scope(|scope| {
            let waited = scope.spawn(|| changing.begin(&"a", soon)).join();
            assert_eq!(waited.expect("no panic"), Begun::TimedOut);
            assert_eq!(changing.begin(&"b", soon), Begun::Now);
            let waiting = scope.spawn(|| changing.begin(&"a", later));
            changing.end(&"a");
            assert_eq!(waiting.join().expect("no panic"), Begun::Now);
        });
        assert!(changing.is_going_on("a"));
    }

    #[test]
    fn a_mark_outlives_the_end_of_what_was_begun_before_it() {
        let changing = InProgress::new();
        let now = Deadline::after(Duration::ZERO);
        assert_eq!(changing.begin(&"a", now), Begun::Now);
        changing.mark(&"a");
        changing.end(&"a");
        assert_eq!(changing.begin(&"a", now), Begun::TimedOut);
        changing.unmark(&"a");
        assert_eq!(changing.begin(&"a", now), Begun::Now);
    }
}
