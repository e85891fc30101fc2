//! The completion of a call, for a future.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::task::Waker;

use chronorb_rt::{Deadline, Gate, PiMutex};

use super::completer::AsyncCall;
use super::slot::Slot;
use crate::client::connection::CompletionThread;

/// The ended call, as soon as it has ended, and the waker of the task that waits for it.
#[derive(Default)]
pub(super) struct Completion {
    state: PiMutex<CompletionState>,
    /// 1 when the call has ended.
    is_over: Gate,
}

#[derive(Default)]
struct CompletionState {
    waker: Option<Waker>,
    /// The thread that completes the call, and the id of its request.
    place: Option<(Arc<dyn CompletionThread>, u32)>,
    ended: Option<Box<Slot>>,
    /// Whether the future was dropped.
    is_abandoned: bool,
}

impl Completion {
    /// Has `thread` take the call over by `take_over`, unless the future was dropped.
    ///
    /// # Errors
    /// Those of `take_over`.
    pub(super) fn entrust(
        &self,
        thread: &Arc<dyn CompletionThread>,
        request_id: u32,
        call: AsyncCall,
        take_over: impl FnOnce(AsyncCall) -> Result<(), AsyncCall>,
    ) -> Result<(), AsyncCall> {
        let mut state = self.state.lock();
        if state.is_abandoned {
            drop(state);
            call.slot.cancel();
            return Ok(());
        }
        take_over(call)?;
        state.place = Some((thread.clone(), request_id));
        Ok(())
    }

    /// Stores the ended call, and wakes the task.
    pub(super) fn complete(self: Arc<Self>, slot: Box<Slot>) {
        let mut state = self.state.lock();
        if state.is_abandoned {
            drop(state);
            return slot.cancel();
        }
        state.ended = Some(slot);
        state.place = None;
        let waker = state.waker.take();
        self.is_over.set(1);
        drop(state);
        // The woken task may need this object for another call.
        drop(self);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the call if it has ended; otherwise `waker` is woken when it has.
    pub(super) fn poll(&self, waker: &Waker) -> Option<Box<Slot>> {
        let mut state = self.state.lock();
        let ended = state.ended.take();
        if ended.is_none() {
            match &mut state.waker {
                Some(present) => present.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
        ended
    }

    /// Takes the call back from the completion thread, ended or not. Waits for a call that is just
    /// being completed; `None` if `until` passes first.
    pub(super) fn take_back(&self, until: Deadline) -> Option<Box<Slot>> {
        loop {
            let (ended, place) = {
                let mut state = self.state.lock();
                (state.ended.take(), state.place.take())
            };
            if ended.is_some() {
                return ended;
            }
            let given_back = place.and_then(|(thread, id)| thread.give_back(id));
            if let Some(call) = given_back {
                return Some(call.slot);
            }
            if self.is_over.wait_while(0, until) == 0 {
                return None;
            }
        }
    }

    /// Cancels the call, because the future was dropped.
    pub(super) fn abandon(&self) {
        let (ended, place) = {
            let mut state = self.state.lock();
            state.is_abandoned = true;
            state.waker = None;
            (state.ended.take(), state.place.take())
        };
        let given_back = || place.and_then(|(thread, id)| thread.give_back(id));
        if let Some(slot) = ended.or_else(|| given_back().map(|call| call.slot)) {
            slot.cancel();
        }
    }
}
