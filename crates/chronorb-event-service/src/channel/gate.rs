//! The end of a connection: after it no push begins.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, Gate};

/// The number of pushes to a consumer that are in progress, and whether more may begin.
#[derive(Debug, Default)]
pub(crate) struct PushGate {
    /// The pushes in progress, and [`CLOSED`].
    state: AtomicU32,
    /// Advances when the last push ends after the gate was closed.
    ended: Gate,
}

const CLOSED: u32 = 1 << 31;

thread_local! {
    /// The pushes that the thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

impl PushGate {
    /// Begins a push, unless the gate is closed.
    pub(crate) fn enter(&self) -> Option<PushGuard<'_>> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        DEPTH.set(DEPTH.get() + 1);
        let guard = PushGuard { gate: self };
        (before & CLOSED == 0).then_some(guard)
    }

    /// Closes the gate, and waits until the pushes that have begun are over. A thread that is
    /// within a push itself does not wait, because that push could wait for it.
    ///
    /// The wait is at most `limit`: a consumer may call another process that disconnects it and
    /// wait for the answer.
    pub(crate) fn close(&self, limit: Duration) {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
        if DEPTH.get() > 0 {
            return;
        }
        let deadline = Deadline::after(limit);
        loop {
            let seen = self.ended.get();
            let is_over = self.state.load(Ordering::Acquire) & !CLOSED == 0;
            if is_over || self.ended.wait_while(seen, deadline) == seen {
                return;
            }
        }
    }
}

/// A push in progress.
#[derive(Debug)]
pub(crate) struct PushGuard<'g> {
    gate: &'g PushGate,
}

impl Drop for PushGuard<'_> {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if self.gate.state.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1 {
            self.gate.ended.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn no_push_begins_after_the_gate_was_closed() {
        let gate = PushGate::default();
        assert!(gate.enter().is_some());
        gate.close(LONG);
        assert!(gate.enter().is_none());
        gate.close(LONG);
    }

    #[test]
    fn closing_waits_for_pushes_of_other_threads() {
        let gate = &PushGate::default();
        let (begun, has_begun) = mpsc::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let (closed, is_closed) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let _push = gate.enter().unwrap();
                begun.send(()).unwrap();
                may_end.recv().unwrap();
            });
            has_begun.recv().unwrap();
            scope.spawn(move || {
                gate.close(LONG);
                closed.send(()).unwrap();
            });
            while gate.state.load(Ordering::Acquire) & CLOSED == 0 {
                thread::yield_now();
            }
            assert!(is_closed.try_recv().is_err());
            end.send(()).unwrap();
            is_closed.recv().unwrap();
        });
    }

    #[test]
    fn closing_within_a_push_does_not_wait() {
        let gate = PushGate::default();
        let push = gate.enter();
        gate.close(LONG);
        drop(push);
        assert!(gate.enter().is_none());
    }
}
