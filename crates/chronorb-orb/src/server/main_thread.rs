//! The main thread: what POAs of the main-thread model have to be served by.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_cdr::{Arena, Frame};
use chronorb_rt::{Deadline, Gate, PiMutex};

use super::queued::QueuedRequest;
use super::spares::FRAME_CAPACITY;
use super::worker::{self, Worker};
use crate::core::Core;
use crate::poa::{NOBODY, this_thread};
use crate::rtcorba::{OwnPriority, Priority};
use crate::upcall::{Parks, Role, Thread};

/// The requests for the main thread, the most urgent first, and who that is: the thread that
/// runs the ORB.
pub(crate) struct MainThread {
    /// `None` once the ORB is ending.
    tasks: PiMutex<Option<BinaryHeap<Task>>>,
    /// How many they are, to be asked without the lock.
    waiting: AtomicUsize,
    max: usize,
    /// The octets of the requests that lanes have request over.
    octets: AtomicUsize,
    max_octets: usize,
    /// Counts what there may be to look at.
    bell: Gate,
    /// The thread that runs the ORB, or was the last to do so.
    owner: AtomicU64,
    /// How often that thread is running it, one run within the other.
    runs: PiMutex<u32>,
    numbers: AtomicU64,
}

type Work = Box<dyn FnOnce() + Send>;

struct Task {
    /// Later ones have greater numbers.
    rank: (Option<Priority>, Reverse<u64>),
    /// Has to be done in any case, if need be by another thread.
    is_duty: bool,
    work: Work,
}

impl MainThread {
    /// One that lets `max` requests wait, and as many of lanes as have `max_octets` together.
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

    /// Makes the calling thread the main one until the result is dropped, unless another is.
    pub(crate) fn claim(&self) -> Option<Claim<'_>> {
        let mut runs = self.runs.lock();
        if *runs > 0 && !self.is_here() {
            return None;
        }
        self.owner.store(this_thread(), Ordering::Relaxed);
        *runs += 1;
        Some(Claim(self))
    }

    /// Whether the calling thread is the main one.
    pub(crate) fn is_here(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    /// Whether no more requests can wait.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= self.max
            || self.octets.load(Ordering::Relaxed) >= self.max_octets
    }

    pub(crate) fn has_work(&self) -> bool {
        self.waiting() > 0
    }

    /// How many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Leaves a request for the main thread. Where the ORB is ending, it is dropped.
    pub(crate) fn post(&self, priority: Option<Priority>, work: Work) {
        drop(self.push(priority, false, work));
    }

    /// Leaves a request of a lane for the main thread, as [`post`](Self::post).
    pub(super) fn take_over(
        &self,
        core: &Arc<Core>,
        priority: Option<Priority>,
        request: QueuedRequest,
    ) {
        let taken = TakenOver::new(core, &request);
        self.post(priority, Box::new(|| taken.serve(request)));
    }

    /// Has work done by the main thread: at once where that is the calling one, and by the
    /// calling one where no thread has run the ORB yet, or it is ending.
    pub(crate) fn entrust(&self, work: impl FnOnce() + Send + 'static) {
        if self.is_here_or_nowhere() {
            work();
        } else if let Some(refused) = self.push(None, true, Box::new(work)) {
            (refused.work)();
        }
    }

    /// As [`entrust`](Self::entrust), and waits for what it comes to; `None` where that takes too
    /// long, or where no more can wait. What has not begun by then is not done any more.
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

    /// Gives a task back where the ORB is ending.
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

    /// Lets the main thread look again.
    pub(crate) fn ring(&self) {
        let bell = self.bell.get();
        // Whoever was faster has rung it.
        let _ = self.bell.compare_set(bell, bell.wrapping_add(1));
    }

    /// Drops the requests that wait, and those that will come; what is in progress goes on.
    pub(crate) fn close(&self) {
        let tasks = self.tasks.lock().take().unwrap_or_default();
        self.waiting.fetch_sub(tasks.len(), Ordering::AcqRel);
        for duty in tasks.into_iter().filter(|task| task.is_duty) {
            let _ = catch_unwind(AssertUnwindSafe(duty.work));
        }
    }
}

/// What somebody asks the main thread, and waits for.
struct Question<R> {
    state: Gate,
    answer: PiMutex<Option<R>>,
}

const ASKED: u32 = 0;
const BEGUN: u32 = 1;
const ANSWERED: u32 = 2;
/// Who asked has stopped waiting.
const WITHDRAWN: u32 = 3;

/// The calling thread is the main one.
pub(crate) struct Claim<'m>(&'m MainThread);

impl Claim<'_> {
    /// Does what is most urgent; returns whether there was anything.
    pub(crate) fn run_one(&self) -> bool {
        let next = self.0.tasks.lock().as_mut().and_then(BinaryHeap::pop);
        let Some(task) = next else {
            return false;
        };
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
        // Application code runs here, which may panic when it is dropped.
        let _ = catch_unwind(AssertUnwindSafe(task.work));
        true
    }

    /// Does what there is until `is_over`, at most for `time`.
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

/// A request of a lane, as the main thread has it: counted, as long as it waits or is served.
struct TakenOver {
    core: Arc<Core>,
    octets: usize,
}

impl TakenOver {
    fn new(core: &Arc<Core>, request: &QueuedRequest) -> Self {
        let octets = request.octets().max(FRAME_CAPACITY);
        core.main.octets.fetch_add(octets, Ordering::Relaxed);
        Self {
            core: core.clone(),
            octets,
        }
    }

    /// Serves it, on the main thread.
    fn serve(self, request: QueuedRequest) {
        let (reply, arena) = SPARE
            .take()
            .unwrap_or_else(|| worker::reply_parts(&self.core));
        let thread = Thread {
            own: OwnPriority::of_caller(),
            // A POA that holds requests again must not hold up the others.
            patience: Duration::ZERO,
            parks: Parks::No,
            role: Role::Main,
        };
        let mut worker = Worker::with_parts(&self.core, request.lane(), thread, reply, arena);
        request.serve_by(&mut worker);
        let (reply, mut arena) = worker.into_reply_parts();
        // The next request may be a long time off.
        arena.reset();
        SPARE.set(Some((reply, arena)));
    }
}

impl Drop for TakenOver {
    fn drop(&mut self) {
        let octets = &self.core.main.octets;
        octets.fetch_sub(self.octets, Ordering::Relaxed);
    }
}

thread_local! {
    /// The frame and the arena of the last request.
    static SPARE: Cell<Option<(Frame, Arena)>> = const { Cell::new(None) };
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Task {}

impl PartialOrd for Task {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Task {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_is_done_first_and_equals_in_order() {
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
        let claim = main.claim().expect("nobody else runs it");
        while claim.run_one() {}
        assert_eq!(*done.lock(), ['b', 'c', 'a']);
        assert!(!main.has_work());
    }

    #[test]
    fn only_one_thread_is_the_main_one() {
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
