//! Threads for calls to peers that may not answer.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use chronorb::quota::Origin;
use chronorb_rt::{Deadline, Gate, PiMutex, ThreadBuilder};

/// The threads that call peers, at most 16 at a time. The calls of one origin have at most half of
/// them, and origins take turns, so peers that do not answer delay those of their own
/// origin.
///
/// Threads are started when they are needed, and end after a while without work. A handle; clones
/// have the same threads.
#[derive(Clone, Default)]
pub struct PeerCalls(Arc<CallPool>);

#[derive(Default)]
struct CallPool {
    state: PiMutex<State>,
    /// Advances when there is work, and at the end.
    wake: Gate,
}

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    /// The origin whose turn is next is the first.
    waiting: VecDeque<(Origin, VecDeque<Work>)>,
    running: Vec<Origin>,
    threads: usize,
    idle: usize,
    is_over: bool,
}

impl PeerCalls {
    /// Has a thread do work that calls a peer of this origin.
    ///
    /// Without a thread the work waits until one can be started for later work.
    pub fn post(&self, origin: Origin, work: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state.lock();
        if state.is_over {
            return;
        }
        let work: Work = Box::new(work);
        match state.waiting.iter_mut().find(|it| it.0 == origin) {
            Some((_, queue)) => queue.push_back(work),
            None => state.waiting.push_back((origin, VecDeque::from([work]))),
        }
        // An idle thread that was woken counts as idle until it runs.
        let waiting: usize = state.waiting.iter().map(|(_, queue)| queue.len()).sum();
        let needs_thread = waiting > state.idle && state.threads < THREADS;
        state.threads += usize::from(needs_thread);
        drop(state);
        self.0.wake.advance();
        if !needs_thread {
            return;
        }
        let shared = self.0.clone();
        let spawned = ThreadBuilder::new("events.calls").spawn(move || shared.run());
        if spawned.is_err() {
            self.0.state.lock().threads -= 1;
        }
    }

    /// Begins a number of calls that are awaited together.
    pub fn round(&self) -> CallRound<'_> {
        let (ended, ends) = mpsc::channel();
        CallRound {
            calls: self,
            ended,
            ends,
        }
    }

    /// Drops what waits, and ends the threads after the calls in progress.
    pub fn end(&self) {
        let mut state = self.0.state.lock();
        state.is_over = true;
        let dropped = std::mem::take(&mut state.waiting);
        drop(state);
        drop(dropped);
        self.0.wake.advance();
    }
}

impl fmt::Debug for PeerCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerCalls").finish_non_exhaustive()
    }
}

/// Calls that are awaited together.
#[derive(Debug)]
pub struct CallRound<'c> {
    calls: &'c PeerCalls,
    /// Dropped with the call, at the end of each. Nothing is ever sent.
    ended: mpsc::Sender<()>,
    ends: mpsc::Receiver<()>,
}

impl CallRound<'_> {
    /// Has a thread do work that calls a peer of this origin.
    pub fn post(&self, origin: Origin, work: impl FnOnce() + Send + 'static) {
        let ended = self.ended.clone();
        self.calls.post(origin, move || {
            work();
            drop(ended);
        });
    }

    /// Waits for the ends of the calls, at most for `limit`, and not after the end of the threads.
    pub fn wait(self, limit: Duration) {
        let Self { calls, ended, ends } = self;
        drop(ended);
        let until = Instant::now() + limit;
        while !calls.0.state.lock().is_over {
            let left = until.saturating_duration_since(Instant::now());
            match ends.recv_timeout(left.min(LOOK)) {
                Err(mpsc::RecvTimeoutError::Timeout) if left > LOOK => {}
                _ => return,
            }
        }
    }
}

impl State {
    fn next(&mut self) -> Option<(Origin, Work)> {
        let may_run = |(origin, _): &(Origin, _)| {
            self.running.iter().filter(|it| *it == origin).count() < THREADS / 2
        };
        let place = self.waiting.iter().position(may_run)?;
        let (origin, mut queue) = self.waiting.remove(place)?;
        let work = queue.pop_front()?;
        if !queue.is_empty() {
            self.waiting.push_back((origin, queue));
        }
        self.running.push(origin);
        Some((origin, work))
    }
}

impl CallPool {
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some((origin, work)) = state.next() {
                drop(state);
                // The hook of the process has printed a panic.
                let _ = catch_unwind(AssertUnwindSafe(work));
                state = self.state.lock();
                if let Some(place) = state.running.iter().position(|it| *it == origin) {
                    state.running.swap_remove(place);
                }
                continue;
            }
            if state.is_over {
                break;
            }
            state.idle += 1;
            let seen = self.wake.get();
            drop(state);
            let now = self.wake.wait_while(seen, Deadline::after(IDLE));
            state = self.state.lock();
            state.idle -= 1;
            if now == seen {
                break;
            }
        }
        state.threads -= 1;
    }
}

/// The most threads.
const THREADS: usize = 16;
/// The time between two looks at the end of the threads while calls are awaited.
const LOOK: Duration = Duration::from_millis(100);
/// The time after which a thread without work ends.
const IDLE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn peers_that_do_not_answer_delay_their_own_origin_alone() {
        let calls = PeerCalls::default();
        let (release, wait) = mpsc::channel::<()>();
        let wait = Arc::new(PiMutex::new(wait));
        let (began, beginnings) = mpsc::channel();
        for number in 0..100 {
            let (wait, began) = (wait.clone(), began.clone());
            calls.post(Origin::User(1), move || {
                began.send(number).unwrap();
                // Ends with the sender.
                let _ = wait.lock().recv();
            });
        }
        let (answer, answers) = mpsc::channel();
        calls.post(Origin::User(2), move || answer.send(()).unwrap());
        answers.recv().expect("the other origin is served");
        let begun = beginnings.try_iter().count();
        assert!(
            begun <= THREADS / 2,
            "{begun} calls of one origin at a time"
        );
        drop(release);
        calls.end();
    }

    #[test]
    fn one_idle_thread_does_not_have_to_do_all_work() {
        let calls = PeerCalls::default();
        let (done, first) = mpsc::channel();
        calls.post(Origin::User(1), move || done.send(()).unwrap());
        first.recv().unwrap();
        while calls.0.state.lock().idle == 0 {
            std::thread::yield_now();
        }
        // Each waits for the other, so two threads have to run.
        let barrier = Arc::new(std::sync::Barrier::new(3));
        for _ in 0..2 {
            let barrier = barrier.clone();
            calls.post(Origin::User(1), move || {
                barrier.wait();
            });
        }
        barrier.wait();
        calls.end();
    }

    #[test]
    fn a_panic_ends_no_thread() {
        let calls = PeerCalls::default();
        calls.post(Origin::Process, || panic!("work fails, as this test wants"));
        let (answer, answers) = mpsc::channel();
        calls.post(Origin::Process, move || answer.send(()).unwrap());
        answers.recv().expect("later work is done");
        calls.end();
    }
}
