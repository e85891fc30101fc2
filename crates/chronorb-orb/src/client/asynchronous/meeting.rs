//! Where a future and whoever completes its call meet.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::task::Waker;

use chronorb_rt::{Deadline, Gate, PiMutex};

use super::attendance::Attended;
use super::slot::Slot;
use crate::client::connection::Attendant;

/// The reply, as soon as it is there, and who wants to be told.
#[derive(Default)]
pub(super) struct Meeting {
    state: PiMutex<State>,
    /// 1 when the reply is there.
    is_over: Gate,
}

#[derive(Default)]
struct State {
    waker: Option<Waker>,
    /// Who looks after the call, and its request.
    place: Option<(Arc<dyn Attendant>, u32)>,
    ended: Option<Box<Slot>>,
    /// Whether nobody comes for the reply.
    is_left: bool,
}

impl Meeting {
    /// As it was when nobody had been there.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Has the attendant look after a request by `attend`, unless nobody comes for the reply.
    ///
    /// # Errors
    /// That of `attend`.
    pub(super) fn entrust(
        &self,
        attendant: &Arc<dyn Attendant>,
        request_id: u32,
        call: Attended,
        attend: impl FnOnce(Attended) -> Result<(), Attended>,
    ) -> Result<(), Attended> {
        let mut state = self.state.lock();
        if state.is_left {
            drop(state);
            call.cancel();
            return Ok(());
        }
        attend(call)?;
        state.place = Some((attendant.clone(), request_id));
        Ok(())
    }

    /// The call has come to its end.
    pub(super) fn bring(self: Arc<Self>, slot: Box<Slot>) {
        let mut state = self.state.lock();
        if state.is_left {
            drop(state);
            return slot.cancel();
        }
        state.ended = Some(slot);
        state.place = None;
        let waker = state.waker.take();
        self.is_over.set(1);
        drop(state);
        // Whoever is woken can have the place for another call.
        drop(self);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The ended call; if it has not ended, `waker` will be told.
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

    /// Takes the call back from who looks after it, be it that it has ended. Where it is coming to its end at this
    /// moment that is waited for; `None` where `until` passes first.
    pub(super) fn take_back(&self, until: Deadline) -> Option<Box<Slot>> {
        loop {
            let (ended, place) = {
                let mut state = self.state.lock();
                (state.ended.take(), state.place.take())
            };
            if ended.is_some() {
                return ended;
            }
            let given_back = place.and_then(|(attendant, id)| attendant.give_back(id));
            if let Some(call) = given_back {
                return Some(call.slot);
            }
            if self.is_over.wait_while(0, until) == 0 {
                return None;
            }
        }
    }

    /// Nobody comes for the reply.
    pub(super) fn leave(&self) {
        let (ended, place) = {
            let mut state = self.state.lock();
            state.is_left = true;
            state.waker = None;
            (state.ended.take(), state.place.take())
        };
        if let Some(slot) = ended {
            slot.cancel();
        } else if let Some((attendant, id)) = place
            && let Some(call) = attendant.give_back(id)
        {
            call.cancel();
        }
    }
}
