//! The completion thread of a connection: it completes the calls that no other thread waits for, by
//! calling their handlers and waking their futures. It has the priority of the connection, reads if
//! no other thread does, and lets another one read while it is busy.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_giop::{CompletionStatus, SystemException};
use chronorb_rt::{Deadline, Gate, PiMutex, Wake};
use chronorb_transport::{Interest, Reactor};

use super::completion::Completion;
use super::slot::{Slot, Slots};
use crate::call::Reply;
use crate::client::connection::{
    CompletionStep, CompletionThread, ConnectionThread, SharedConnection, SharedOwner,
    comm_failure, no_thread, start_aside,
};
use crate::core::Core;
use crate::rtcorba::set_request_priority;
use crate::scope;

/// A call that a completion thread completes.
pub(in crate::client) struct AsyncCall {
    pub(super) slot: Box<Slot>,
    pub(super) then: Continuation,
}

/// The continuation of a call that has ended.
pub(super) enum Continuation {
    Handle(Handler),
    Complete(Arc<Completion>),
}

/// A function that takes the reply.
pub(super) type Handler = Box<dyn FnOnce(Result<Reply<'_>, SystemException>) + Send>;

/// Has the completion thread of a call's connection complete it; returns the call if it has ended.
///
/// # Errors
/// The completion thread cannot be started.
pub(super) fn entrust(
    mut call: AsyncCall,
) -> Result<Option<AsyncCall>, (AsyncCall, SystemException)> {
    loop {
        let Some((owner, request_id)) = call.slot.awaited() else {
            return Ok(Some(call));
        };
        let core = call.slot.core();
        let thread = match thread_of(&owner, &core) {
            Ok(thread) => thread,
            Err(exception) => return Err((call, exception)),
        };
        let take_over = |call| thread.take_over(&core, &owner.shared, call);
        let completion = match &call.then {
            Continuation::Handle(_) => None,
            Continuation::Complete(completion) => Some(completion.clone()),
        };
        let entrusted = match completion {
            None => take_over(call),
            Some(completion) => completion.entrust(thread, request_id, call, take_over),
        };
        match entrusted {
            Ok(()) => return Ok(None),
            Err(back) => {
                call = back;
                call.slot.settle();
            }
        }
    }
}

/// Whether the calling thread is a completion thread of an ORB, and therefore in a handler.
pub(crate) fn is_in_handler(core: &Core) -> bool {
    ORB.get() == core.number
}

thread_local! {
    /// The number of the ORB whose completion thread the thread is.
    static ORB: Cell<u64> = const { Cell::new(0) };
}

impl AsyncCall {
    /// Runs the continuation of a call that has ended.
    pub(super) fn finish(self) {
        match self.then {
            Continuation::Handle(handler) => self.slot.open(handler),
            Continuation::Complete(completion) => completion.complete(self.slot),
        }
    }
}

/// The state of a completion thread, for the thread and for others.
struct Completer {
    /// The gate at which it sleeps while another thread reads.
    waiter: Arc<Gate>,
    /// The reactor by which it waits while it reads, with the peer and a wake-up.
    reactor: Reactor,
    wake: Wake,
    thread: OnceLock<ConnectionThread>,
    /// Locked for moments only.
    state: PiMutex<CompleterState>,
}

struct CompleterState {
    calls: Vec<AsyncCall>,
    /// Calls that ended elsewhere, and whose handlers are called here.
    ended: Vec<AsyncCall>,
    wait: WaitState,
    is_closed: bool,
    has_ended: bool,
}

/// The present wait of the thread, and its limit.
enum WaitState {
    None,
    Asleep(Deadline),
    Reading(Deadline),
}

/// The completion thread of a connection, which is started for the first call.
fn thread_of<'o>(
    owner: &'o Arc<SharedOwner>,
    core: &Arc<Core>,
) -> Result<&'o Arc<dyn CompletionThread>, SystemException> {
    let shared = &owner.shared;
    if shared.completion_thread().is_none() {
        let _starting = Slots::of(core).starting.lock();
        if shared.completion_thread().is_none() {
            shared.set_completion_thread(Completer::start(owner, core)?);
        }
    }
    // It is never removed.
    shared
        .completion_thread()
        .ok_or_else(|| comm_failure(CompletionStatus::Maybe))
}

impl Completer {
    fn start(owner: &SharedOwner, core: &Core) -> Result<Arc<Self>, SystemException> {
        let completer = Self::new(&owner.shared).map_err(|error| no_thread(&owner.key, error))?;
        let completer = Arc::new(completer);
        let (this, orb) = (completer.clone(), core.number);
        let work = move |shared: &SharedConnection| {
            ORB.set(orb);
            this.run(shared);
        };
        let thread = ConnectionThread::start(core, &owner.key, &owner.shared, "ami", work)?;
        let _ = completer.thread.set(thread);
        Ok(completer)
    }

    fn new(shared: &SharedConnection) -> io::Result<Self> {
        let (reactor, wake) = (Reactor::new()?, Wake::new()?);
        reactor.add(shared.link.transport(), PEER, Interest::Read)?;
        reactor.add(&wake, WAKE, Interest::Read)?;
        Ok(Self {
            waiter: Arc::new(Gate::new(0)),
            reactor,
            wake,
            thread: OnceLock::new(),
            state: PiMutex::new(CompleterState {
                calls: Vec::new(),
                ended: Vec::new(),
                wait: WaitState::None,
                is_closed: false,
                has_ended: false,
            }),
        })
    }

    /// Completes calls until the connection has ended, with the last of them.
    fn run(self: &Arc<Self>, shared: &SharedConnection) {
        let mut frame = scope::frame();
        loop {
            while let Some(call) = self.next_ended(shared) {
                self.complete(call);
            }
            let (step, until) = {
                let mut state = self.state.lock();
                if !state.ended.is_empty() {
                    continue;
                }
                if state.is_closed && state.calls.is_empty() {
                    state.has_ended = true;
                    return;
                }
                let deadlines = state.calls.iter().map(|call| call.slot.deadline());
                let until = deadlines.min();
                let until = until.unwrap_or_else(|| Deadline::after(LONG));
                let step = shared.next_step(&self.waiter);
                state.wait = match step {
                    CompletionStep::Complete => WaitState::None,
                    CompletionStep::Sleep(_) => WaitState::Asleep(until),
                    CompletionStep::Read => WaitState::Reading(until),
                };
                (step, until)
            };
            match step {
                CompletionStep::Complete => {}
                CompletionStep::Sleep(seen) => {
                    self.waiter.wait_while(seen, until);
                    self.state.lock().wait = WaitState::None;
                    shared.awake(&self.waiter);
                }
                CompletionStep::Read => {
                    self.read(shared, &mut frame, until);
                    self.state.lock().wait = WaitState::None;
                    shared.stop_reading();
                }
            }
        }
    }

    /// Completes a call that has ended; another attempt of it is made aside.
    fn complete(self: &Arc<Self>, mut call: AsyncCall) {
        let mut ended = call.slot.poll_and_defer();
        if call.slot.is_deferred() {
            let Some(back) = self.resume_aside(call) else {
                return;
            };
            call = back;
            call.slot.resume();
            ended = false;
        }
        if let Some(call) = if ended {
            Some(call)
        } else {
            continue_call(call)
        } {
            finish(call);
        }
    }

    /// Continues a call by another thread, because it may have to look up the name of a host.
    /// Returns the call if that thread cannot be started.
    fn resume_aside(self: &Arc<Self>, call: AsyncCall) -> Option<AsyncCall> {
        let (core, urgency) = (call.slot.core(), call.slot.urgency());
        // A thread that cannot be started must not take the call with it.
        let place = Arc::new(PiMutex::new(Some(call)));
        let (this, there, orb) = (self.clone(), place.clone(), core.number);
        let is_started = start_aside(&core, urgency, move || {
            ORB.set(orb);
            let call = there.lock().take();
            if let Some(mut call) = call {
                call.slot.resume();
                if let Some(ended) = continue_call(call) {
                    this.finish_soon(ended);
                }
            }
        });
        if is_started {
            return None;
        }
        place.lock().take()
    }

    /// Finishes a call after those before it; at once if the thread has ended.
    fn finish_soon(&self, call: AsyncCall) {
        let mut state = self.state.lock();
        if state.has_ended {
            drop(state);
            return finish(call);
        }
        state.ended.push(call);
        self.wake_if(&state, |_| true);
    }

    /// Wakes the thread if it waits, and its limit makes that necessary.
    fn wake_if(&self, state: &CompleterState, is_needed: impl Fn(Deadline) -> bool) {
        match state.wait {
            WaitState::Asleep(until) if is_needed(until) => self.waiter.advance(),
            WaitState::Reading(until) if is_needed(until) => self.wake.notify(),
            _ => {}
        }
    }

    /// Takes a call that has ended, or whose time is over.
    fn next_ended(&self, shared: &SharedConnection) -> Option<AsyncCall> {
        let mut state = self.state.lock();
        if let Some(call) = state.ended.pop() {
            return Some(call);
        }
        let calls = &mut state.calls;
        let ended = shared.ended_call_of(&self.waiter);
        let ended = ended.and_then(|id| position(calls, id));
        let late = || {
            let mut all = calls.iter();
            all.position(|call| call.slot.deadline().has_passed())
        };
        let i = ended.or_else(late)?;
        Some(calls.swap_remove(i))
    }

    /// Reads for all calls until one of its own has its reply, another event occurs, or its turn is
    /// over. So deadlines and new calls are served although messages arrive without end.
    fn read(&self, shared: &SharedConnection, frame: &mut Frame, until: Deadline) {
        let mut reader = shared.reader.lock();
        let mut turn = reader.turn();
        loop {
            let read = |room: &mut [u8]| turn.recv(&shared.link, room);
            let failure = match reader.receive_reply(&shared.link, frame, read) {
                Ok(Some((id, header))) => match shared.hand_over(id, header, frame) {
                    Ok(()) => {
                        if position(&self.state.lock().calls, id).is_some() {
                            return;
                        }
                        continue;
                    }
                    Err(failure) => failure,
                },
                Ok(None) if turn.is_over() => return,
                Ok(None) => {
                    let Some(left) = until.remaining() else {
                        return;
                    };
                    match self.reactor.wait(Some(left)) {
                        Ok(Some(event)) if event.token == WAKE => return,
                        Ok(_) => continue,
                        Err(_) => comm_failure(CompletionStatus::Maybe).into(),
                    }
                }
                Err(failure) => failure,
            };
            return shared.end(failure);
        }
    }
}

impl CompletionThread for Completer {
    fn take_over(
        &self,
        core: &Core,
        shared: &SharedConnection,
        call: AsyncCall,
    ) -> Result<(), AsyncCall> {
        if let Some(thread) = self.thread.get() {
            // The call was sent, so its priority has a native one.
            let _ = thread.work_for(core, call.slot.urgency());
        }
        let mut state = self.state.lock();
        if state.has_ended {
            return Err(call);
        }
        let (id, deadline) = (call.slot.request_id(), call.slot.deadline());
        state.calls.push(call);
        let is_asleep = matches!(state.wait, WaitState::Asleep(_));
        let must_act = id.is_none_or(|id| shared.reattach(id, &self.waiter, is_asleep));
        self.wake_if(&state, |until| must_act || deadline < until);
        Ok(())
    }

    fn give_back(&self, request_id: u32) -> Option<AsyncCall> {
        let mut state = self.state.lock();
        let i = position(&state.calls, request_id)?;
        let call = state.calls.swap_remove(i);
        call.slot.reattach();
        Some(call)
    }

    fn closed(&self) {
        self.state.lock().is_closed = true;
        self.waiter.advance();
        self.wake.notify();
    }
}

fn position(calls: &[AsyncCall], request_id: u32) -> Option<usize> {
    let mut all = calls.iter();
    all.position(|call| call.slot.request_id() == Some(request_id))
}

/// Entrusts a call that continues to a completion thread; returns one that has ended.
fn continue_call(call: AsyncCall) -> Option<AsyncCall> {
    match entrust(call) {
        Ok(ended) => ended,
        Err((mut lost, exception)) => {
            lost.slot.fail(exception);
            Some(lost)
        }
    }
}

/// Runs the continuation of a call that has ended.
fn finish(call: AsyncCall) {
    set_request_priority(call.slot.caller());
    // The panic of a handler or waker was reported, and must not affect the others.
    let _ = catch_unwind(AssertUnwindSafe(|| call.finish()));
    set_request_priority(None);
}

const PEER: u64 = 0;
const WAKE: u64 = 1;
/// The limit of a wait without calls.
const LONG: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::client::connection::tests::endless::awaiting_endless;

    #[test]
    fn a_completion_thread_stops_reading_from_a_peer_that_sends_without_end() {
        let waiter = Arc::new(Gate::new(0));
        let (shared, received) = awaiting_endless(7, &waiter);
        let completer = Completer::new(&shared).expect("descriptors are left");
        let mut frame = scope::frame();
        for turn in 1..=4_usize {
            completer.read(&shared, &mut frame, Deadline::after(LONG));
            assert!(!shared.link.is_closed(), "it reads to the end");
            assert!(received.load(Ordering::Relaxed) <= (1 << 20) << turn);
        }
    }
}
