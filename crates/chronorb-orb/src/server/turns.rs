//! The turns of a connection whose requests are served in the order of arrival.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_rt::{BatonGuard, Deadline, Gate, ReleaseOutcome};

use super::input::Input;

/// The turns of a connection: one request at a time is between its reading and its answer, whatever
/// thread or queue it is at. The next one stays unread.
pub(super) struct Turns {
    state: AtomicU32,
    /// Counts ended turns, for a thread that waits for one.
    ended: Gate,
}

impl Turns {
    pub(super) const fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            ended: Gate::new(0),
        }
    }

    /// Takes the turn for a request that was read. Only the thread that has the input does.
    pub(super) fn begin(&self) {
        self.state.store(TAKEN, Ordering::Relaxed);
    }

    /// Returns whether a request has the turn. Its end makes the connection be read again.
    #[cold]
    pub(super) fn await_end(&self) -> bool {
        let awaited =
            self.state
                .compare_exchange(TAKEN, AWAITED, Ordering::AcqRel, Ordering::Acquire);
        awaited != Err(FREE)
    }

    /// Ends the turn. Returns whether the connection must be read again.
    #[cold]
    pub(super) fn end(&self, has_thread: bool) -> bool {
        let is_awaited = self.state.swap(FREE, Ordering::AcqRel) == AWAITED;
        if has_thread {
            self.ended.advance();
        }
        is_awaited
    }

    /// Waits for the end of the turn, at most for `pause`. Returns whether it has ended.
    #[cold]
    pub(super) fn wait(&self, pause: Duration) -> bool {
        let before = self.ended.get();
        let is_free = || self.state.load(Ordering::Acquire) == FREE;
        is_free() || {
            self.ended.wait_while(before, Deadline::after(pause));
            is_free()
        }
    }

    /// Releases the input of the connection if a request has the turn; otherwise returns it.
    #[cold]
    #[inline(never)]
    pub(super) fn at_turn<'c>(
        &self,
        mut input: BatonGuard<'c, Input>,
    ) -> Option<BatonGuard<'c, Input>> {
        while self.await_end() {
            match input.release() {
                ReleaseOutcome::Done => return None,
                ReleaseOutcome::Again(again) => input = again,
            }
        }
        input.resume();
        Some(input)
    }
}

/// No request of the connection is in progress.
const FREE: u32 = 0;
/// A request is in progress.
const TAKEN: u32 = 1;
/// A request is in progress, and more octets wait, or may wait.
const AWAITED: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_turn_tells_whether_more_waits() {
        let turns = Turns::new();
        assert!(!turns.await_end(), "the turn is free");
        turns.begin();
        assert!(!turns.end(false), "nothing waits");
        turns.begin();
        assert!(turns.await_end());
        assert!(turns.await_end(), "a second thread finds the same");
        assert!(turns.end(false), "the first thread's octets wait");
        assert!(!turns.await_end());
        assert!(turns.wait(Duration::ZERO), "it has ended");
        turns.begin();
        assert!(!turns.wait(Duration::ZERO), "it has not ended");
    }
}
