//! Calls that no thread waits for: a thread of the connection, made for the first of them,
//! completes them.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;

use chronorb_rt::Gate;

use super::shared::{SharedConnection, WaitingCall, wake_next_reader};
use crate::client::asynchronous::AsyncCall;
use crate::core::Core;

/// A thread that completes asynchronous calls of a connection which no other thread waits for.
pub(in crate::client) trait CompletionThread: Send + Sync {
    /// Takes a call over.
    ///
    /// # Errors
    /// The call, if the thread has ended with the connection.
    fn take_over(
        &self,
        core: &Core,
        shared: &SharedConnection,
        call: AsyncCall,
    ) -> Result<(), AsyncCall>;

    /// Returns a call, unless the thread is just completing it.
    fn give_back(&self, request_id: u32) -> Option<AsyncCall>;

    /// Notes that the connection was closed.
    fn closed(&self);
}

/// The next step of a completion thread.
pub(in crate::client) enum CompletionStep {
    /// Complete a call that has ended.
    Complete,
    /// Read from the connection, for all calls.
    Read,
    /// Sleep at the waiter until it has another number: another thread reads.
    Sleep(u32),
}

impl SharedConnection {
    pub(in crate::client) fn completion_thread(&self) -> Option<&Arc<dyn CompletionThread>> {
        self.completion_thread.get()
    }

    /// Sets the completion thread, unless there is one.
    pub(in crate::client) fn set_completion_thread(&self, thread: Arc<dyn CompletionThread>) {
        let _ = self.completion_thread.set(thread);
    }

    /// Gives a call another waiter, at which a thread already sleeps if it `is_asleep`. Returns
    /// whether that thread must act at once.
    pub(in crate::client) fn reattach(
        &self,
        request_id: u32,
        waiter: &Arc<Gate>,
        is_asleep: bool,
    ) -> bool {
        let mut calls = self.calls.lock();
        let must_act = calls.end.is_some() || !calls.is_read;
        let Some(i) = calls.position(request_id) else {
            return true;
        };
        let call = &mut calls.waiting[i];
        call.waiter.clone_from(waiter);
        call.is_asleep = is_asleep;
        must_act || call.reply.is_some()
    }

    /// Returns a call with this waiter that has ended.
    pub(in crate::client) fn ended_call_of(&self, waiter: &Arc<Gate>) -> Option<u32> {
        let calls = self.calls.lock();
        let is_over = calls.end.is_some();
        let mut all = calls.waiting.iter();
        let ended = all.find(|call| is_at(call, waiter) && (is_over || call.reply.is_some()));
        ended.map(|call| call.request_id)
    }

    /// Decides the next step of the completion thread with this waiter.
    pub(in crate::client) fn next_step(&self, waiter: &Arc<Gate>) -> CompletionStep {
        // Each change for its calls after this point changes the number.
        let seen = waiter.get();
        let mut calls = self.calls.lock();
        let (is_over, is_read) = (calls.end.is_some(), calls.is_read);
        let mut has_calls = false;
        for call in calls.waiting.iter().filter(|call| is_at(call, waiter)) {
            if is_over || call.reply.is_some() {
                return CompletionStep::Complete;
            }
            has_calls = true;
        }
        if has_calls && !is_read {
            calls.is_read = true;
            return CompletionStep::Read;
        }
        set_asleep(&mut calls.waiting, waiter, true);
        CompletionStep::Sleep(seen)
    }

    /// Notes that the completion thread is awake; if a thread has to read, another one does.
    pub(in crate::client) fn awake(&self, waiter: &Arc<Gate>) {
        let mut calls = self.calls.lock();
        set_asleep(&mut calls.waiting, waiter, false);
        wake_next_reader(calls);
    }
}

fn is_at(call: &WaitingCall, waiter: &Arc<Gate>) -> bool {
    Arc::ptr_eq(&call.waiter, waiter)
}

fn set_asleep(calls: &mut [WaitingCall], waiter: &Arc<Gate>, is_asleep: bool) {
    for call in calls.iter_mut().filter(|call| is_at(call, waiter)) {
        call.is_asleep = is_asleep;
    }
}
