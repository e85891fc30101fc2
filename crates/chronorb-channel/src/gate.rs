//! The end of a subscription: after it no push begins.

use super::sync::{AtomicU32, Deadline, Gate, Ordering, change_depth, depth};

/// A gate through which pushes to a consumer go until it is closed. It counts those in progress.
#[derive(Debug, Default)]
pub struct PushGate {
    /// The pushes in progress, and [`CLOSED`].
    state: AtomicU32,
    /// Advances when the last push ends after the gate was closed.
    ended: Gate,
}

const CLOSED: u32 = 1 << 31;

impl PushGate {
    /// Begins a push, unless the gate is closed.
    #[inline]
    pub fn enter(&self) -> Option<PushGuard<'_>> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        change_depth(1);
        let guard = PushGuard { gate: self };
        (before & CLOSED == 0).then_some(guard)
    }

    /// Returns whether the gate is closed.
    pub fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Closes the gate. Returns whether it was open.
    pub fn close(&self) -> bool {
        self.state.fetch_or(CLOSED, Ordering::AcqRel) & CLOSED == 0
    }

    /// Waits until the pushes that began before the gate was closed are over, at most until the
    /// deadline. Returns whether they are. A thread within a push does not wait, because that push
    /// could wait for it.
    pub fn wait(&self, deadline: Deadline) -> bool {
        loop {
            let seen = self.ended.get();
            if self.state.load(Ordering::Acquire) & !CLOSED == 0 {
                return true;
            }
            if depth() > 0 || deadline.has_passed() {
                return false;
            }
            self.ended.wait_while(seen, deadline);
        }
    }
}

/// A push in progress, which ends when it is dropped.
#[derive(Debug)]
pub struct PushGuard<'g> {
    gate: &'g PushGate,
}

impl Drop for PushGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        change_depth(-1);
        if self.gate.state.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1 {
            self.gate.ended.advance();
        }
    }
}
