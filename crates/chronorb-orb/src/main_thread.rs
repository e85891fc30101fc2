//! The main thread, which serves the POAs of the main-thread model.

use std::cmp::{Ordering as Order, Reverse};
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, Gate, PiMutex};

use crate::rtcorba::Priority;
use crate::thread_number::{NOBODY, this_thread};

/// The requests for the main thread, the most urgent first, and the identity of that thread: it is
/// the one that runs the ORB.
pub(crate) struct MainThread {
    /// `None` once the ORB is ending.
    tasks: PiMutex<Option<BinaryHeap<Task>>>,
    /// The number of waiting requests, to be read without the lock.
    waiting: AtomicUsize,
    max: usize,
    /// The octets of the requests that lanes have handed over.
    octets: AtomicUsize,
    max_octets: usize,
    /// Counts the occasions at which the main thread has to look for work.
    bell: Gate,
    /// The thread that runs the ORB, or was the last to do so.
    owner: AtomicU64,
    /// The depth of nested runs of the ORB on that thread.
    runs: PiMutex<u32>,
    numbers: AtomicU64,
}

type Work = Box<dyn FnOnce() + Send>;

struct Task {
    /// The priority, then the order of arrival: later tasks have greater numbers.
    rank: (Option<Priority>, Reverse<u64>),
    /// The task must be done in any case, if need be by another thread.
    is_duty: bool,
    work: Work,
}

impl MainThread {
    /// Returns a queue for `max` requests, of which those of lanes have `max_octets` together.
    pub(crate) fn new(max: usize, max_octets: usize) -> Self {
        Self {
            tasks: PiMutex::new(Some(BinaryHeap::new())),
            waiting: AtomicUsize::new(0),
            max,
            octets: AtomicUsize::new(0),
            max_octets,
            bell: Gate::new(0),
            owner: AtomicU64::new(NOBODY),
            runs: PiMutex::new(0),
            numbers: AtomicU64::new(0),
        }
    }

    /// Makes the calling thread the main thread until the result is dropped, unless another is.
    pub(crate) fn claim(&self) -> Option<Claim<'_>> {
        let mut runs = self.runs.lock();
        if *runs > 0 && !self.is_here() {
            return None;
        }
        self.owner.store(this_thread(), Ordering::Relaxed);
        *runs += 1;
        Some(Claim(self))
    }

    /// Whether the calling thread is the main thread.
    pub(crate) fn is_here(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    /// Whether the queue of the main thread has no room for another request.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= self.max
            || self.octets.load(Ordering::Relaxed) >= self.max_octets
    }

    pub(crate) fn has_work(&self) -> bool {
        self.waiting() > 0
    }

    /// The number of waiting requests.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Queues a request for the main thread. It is dropped where the ORB is ending.
    pub(crate) fn post(&self, priority: Option<Priority>, work: Work) {
        drop(self.push(priority, false, work));
    }

    /// Notes that a lane has handed over a request of so many octets.
    pub(crate) fn add_octets(&self, octets: usize) {
        self.octets.fetch_add(octets, Ordering::Relaxed);
    }

    /// Notes that a request of a lane has ended.
    pub(crate) fn remove_octets(&self, octets: usize) {
        self.octets.fetch_sub(octets, Ordering::Relaxed);
    }

    /// Runs work on the main thread. The calling thread runs it itself if it is the main thread, if
    /// no thread has run the ORB yet, or if the ORB is ending.
    pub(crate) fn entrust(&self, work: impl FnOnce() + Send + 'static) {
        if self.is_here_or_nowhere() {
            work();
        } else if let Some(refused) = self.push(None, true, Box::new(work)) {
            (refused.work)();
        }
    }

    /// Like [`entrust`](Self::entrust), and waits for the result; `None` where that takes too long,
    /// or where no further request can wait. Work that has not begun by then is cancelled.
    pub(crate) fn consult<R: Send + 'static>(
        &self,
        time_out: Duration,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        if self.is_full() && !self.is_here_or_nowhere() {
            return None;
        }
        let question = Arc::new(Question {
            state: Gate::new(ASKED),
            answer: PiMutex::new(None),
        });
        let left = question.clone();
        self.entrust(move || {
            if left.state.compare_set(ASKED, BEGUN).is_ok() {
                *left.answer.lock() = Some(work());
                left.state.set(ANSWERED);
            }
        });
        let deadline = Deadline::after(time_out);
        if question.state.wait_while(ASKED, deadline) == ASKED {
            let _ = question.state.compare_set(ASKED, WITHDRAWN);
        }
        question.state.wait_while(BEGUN, deadline);
        question.answer.lock().take()
    }

    fn is_here_or_nowhere(&self) -> bool {
        self.is_here() || self.owner.load(Ordering::Relaxed) == NOBODY
    }

    /// Queues a task, and gives it back where the ORB is ending.
    fn push(&self, priority: Option<Priority>, is_duty: bool, work: Work) -> Option<Task> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let rank = (priority, Reverse(number));
        let task = Task {
            rank,
            is_duty,
            work,
        };
        let refused = match &mut *self.tasks.lock() {
            Some(tasks) => {
                self.waiting.fetch_add(1, Ordering::AcqRel);
                tasks.push(task);
                None
            }
            None => Some(task),
        };
        self.ring();
        refused
    }

    /// Makes the main thread look for work again.
    pub(crate) fn ring(&self) {
        let bell = self.bell.get();
        // If the exchange fails, another thread has rung the bell.
        let _ = self.bell.compare_set(bell, bell.wrapping_add(1));
    }

    /// Drops waiting and later requests; those in progress are completed.
    pub(crate) fn close(&self) {
        let mut tasks = self.tasks.lock().take().unwrap_or_default();
        self.waiting.fetch_sub(tasks.len(), Ordering::AcqRel);
        while let Some(task) = tasks.pop() {
            if task.is_duty {
                let _ = catch_unwind(AssertUnwindSafe(task.work));
            }
        }
    }
}

/// A question to the main thread, for whose answer another thread waits.
struct Question<R> {
    state: Gate,
    answer: PiMutex<Option<R>>,
}

const ASKED: u32 = 0;
const BEGUN: u32 = 1;
const ANSWERED: u32 = 2;
/// The asking thread has stopped waiting.
const WITHDRAWN: u32 = 3;

/// The role of main thread, which the calling thread has.
pub(crate) struct Claim<'m>(&'m MainThread);

impl Claim<'_> {
    /// Runs the most urgent task; returns whether there was one.
    pub(crate) fn run_one(&self) -> bool {
        let next = self.0.tasks.lock().as_mut().and_then(BinaryHeap::pop);
        let Some(task) = next else {
            return false;
        };
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
        // Application code runs here, and may panic, also when it is dropped.
        let _ = catch_unwind(AssertUnwindSafe(task.work));
        true
    }

    /// Runs tasks until `is_over`, at most for `time`.
    pub(crate) fn run(&self, time: Duration, is_over: impl Fn() -> bool) {
        let deadline = Deadline::after(time);
        loop {
            let bell = self.0.bell.get();
            if is_over() || deadline.has_passed() {
                return;
            }
            if !self.run_one() {
                self.0.bell.wait_while(bell, deadline);
            }
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        *self.0.runs.lock() -= 1;
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Task {}

impl PartialOrd for Task {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for Task {
    fn cmp(&self, other: &Self) -> Order {
        self.rank.cmp(&other.rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_task_runs_first_and_equal_ones_in_order() {
        let main = MainThread::new(8, 1 << 20);
        let done = Arc::new(PiMutex::new(Vec::new()));
        for (priority, name) in [
            (None, 'a'),
            (Priority::new(7), 'b'),
            (Priority::new(7), 'c'),
        ] {
            let done = done.clone();
            main.post(priority, Box::new(move || done.lock().push(name)));
        }
        let claim = main.claim().expect("no other thread runs it");
        while claim.run_one() {}
        assert_eq!(*done.lock(), ['b', 'c', 'a']);
        assert!(!main.has_work());
    }

    #[test]
    fn only_one_thread_is_the_main_thread() {
        let main = MainThread::new(8, 1 << 20);
        let claim = main.claim();
        assert!(claim.is_some() && main.is_here());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| main.claim().is_some() || main.is_here());
            assert!(!other.join().expect("no panic"));
            drop(claim);
            let other = scope.spawn(|| main.claim().is_some());
            assert!(other.join().expect("no panic"));
        });
        assert!(!main.is_here());
    }
}
