//! A state that threads wait on.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex;

use crate::sync::observer;
use crate::time::clock::Deadline;

/// A 32-bit state on which threads wait until it changes: a futex word.
///
/// The user decides about the meaning of the numbers, for example the states of a POA manager. A
/// write of the state happens before every read that sees it.
#[derive(Debug, Default)]
pub struct Gate {
    state: AtomicU32,
}

impl Gate {
    /// A gate in `state`.
    #[must_use]
    pub const fn new(state: u32) -> Self {
        Self {
            state: AtomicU32::new(state),
        }
    }

    /// The present state. Never waits, makes no system call.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u32 {
        self.state.load(Ordering::Acquire)
    }

    /// Sets the state, wakes all waiting threads, and returns the state before.
    pub fn set(&self, state: u32) -> u32 {
        let before = self.state.swap(state, Ordering::AcqRel);
        self.wake();
        before
    }

    /// Sets the state to `new` if it is `current`, and then wakes all waiting threads.
    ///
    /// # Errors
    /// The state that was found instead of `current`.
    pub fn compare_set(&self, current: u32, new: u32) -> Result<(), u32> {
        self.state
            .compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)?;
        self.wake();
        Ok(())
    }

    /// Sets the state to the next number, and wakes all waiting threads. The state then counts
    /// events, and concurrent writers get different numbers.
    pub fn advance(&self) {
        self.state.fetch_add(1, Ordering::AcqRel);
        self.wake();
    }

    /// Waits while the state is `state`, at most until `deadline`.
    ///
    /// Returns the present state: another one, or `state` itself when the deadline has passed.
    pub fn wait_while(&self, state: u32, deadline: Deadline) -> u32 {
        wait_while(&self.state, state, deadline)
    }

    fn wake(&self) {
        wake_all(&self.state);
    }
}

/// Waits while a word is `value`, at most until `deadline`; returns its value afterwards.
pub(crate) fn wait_while(word: &AtomicU32, value: u32, deadline: Deadline) -> u32 {
    let _waiting = observer::begin();
    let timeout = deadline.instant().to_timespec();
    loop {
        let present = word.load(Ordering::Acquire);
        if present != value {
            return present;
        }
        let waited = futex::wait_bitset(
            word,
            futex::Flags::PRIVATE,
            value,
            Some(&timeout),
            NonZeroU32::MAX,
        );
        match waited {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::TIMEDOUT) => return word.load(Ordering::Acquire),
            Err(error) => unreachable!("FUTEX_WAIT_BITSET on an own word: {error}"),
        }
    }
}

/// Wakes all threads that wait for a change of a word.
pub(crate) fn wake_all(word: &AtomicU32) {
    let _waking = observer::begin();
    // Waking cannot fail: the word is mapped and aligned.
    let _woken = futex::wake(word, futex::Flags::PRIVATE, i32::MAX as u32);
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::thread;

    use super::*;

    const HOLDING: u32 = 0;
    const ACTIVE: u32 = 1;

    #[test]
    fn opening_the_gate_lets_every_waiting_thread_pass() {
        let gate = Gate::new(HOLDING);
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        gate.wait_while(HOLDING, Deadline::after(Duration::from_secs(60)))
                    })
                })
                .collect();
            assert_eq!(gate.set(ACTIVE), HOLDING);
            for thread in waiting {
                assert_eq!(thread.join().unwrap(), ACTIVE);
            }
        });
    }

    #[test]
    fn a_wait_ends_with_its_deadline_and_reports_the_unchanged_state() {
        let gate = Gate::new(HOLDING);
        assert_eq!(
            gate.wait_while(HOLDING, Deadline::after(Duration::from_micros(50))),
            HOLDING
        );
        assert_eq!(
            gate.wait_while(HOLDING, Deadline::after(Duration::ZERO)),
            HOLDING
        );
    }

    #[test]
    fn a_wait_for_another_state_returns_at_once() {
        let gate = Gate::new(ACTIVE);
        assert_eq!(
            gate.wait_while(HOLDING, Deadline::after(Duration::ZERO)),
            ACTIVE
        );
    }

    #[test]
    fn each_advance_makes_another_state() {
        let gate = Gate::new(u32::MAX);
        thread::scope(|scope| {
            let waiting =
                scope.spawn(|| gate.wait_while(u32::MAX, Deadline::after(Duration::from_secs(60))));
            gate.advance();
            assert_eq!(waiting.join().unwrap(), 0);
        });
        gate.advance();
        assert_eq!(gate.get(), 1);
    }

    #[test]
    fn compare_set_changes_only_the_expected_state() {
        let gate = Gate::new(HOLDING);
        assert_eq!(gate.compare_set(ACTIVE, 7), Err(HOLDING));
        assert_eq!(gate.compare_set(HOLDING, ACTIVE), Ok(()));
        assert_eq!(gate.get(), ACTIVE);
    }
}
