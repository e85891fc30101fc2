//! The attendant of a connection: a thread that completes the calls that nobody waits for, by calling their handlers
//! and waking their futures. It has the priority of the connection, reads where nobody else does, and has somebody
//! else read while it is busy.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_giop::{CompletionStatus, SystemException};
use chronorb_rt::{Deadline, Gate, PiMutex, Wake};
use chronorb_transport::{Interest, Reactor};

use super::meeting::Meeting;
use super::slot::Slot;
use super::table::Slots;
use crate::call::Reply;
use crate::client::connection::{
    Attendant, Multiplexed, Open, OwnThread, Rest, comm_failure, no_thread, start_aside,
    start_thread,
};
use crate::core::Core;
use crate::rtcorba::set_request_priority;
use crate::scope;

/// A call that an attendant looks after.
pub(in crate::client) struct Attended {
    pub(super) slot: Box<Slot>,
    pub(super) then: Then,
    /// While the attendant has it.
    request_id: u32,
    deadline: Deadline,
}

/// What to do when the call has come to its end.
pub(super) enum Then {
    Handle(Handler),
    Meet(Arc<Meeting>),
}

/// Reads a reply, and does something with what was in it.
pub(super) type Handler = Box<dyn FnOnce(Result<Reply<'_>, SystemException>) + Send>;

/// Has the attendant of a call's connection complete it; gives it back where it has come to its end.
///
/// # Errors
/// There is no attendant, and none can be made.
pub(super) fn entrust(mut call: Attended) -> Result<Option<Attended>, (Attended, SystemException)> {
    loop {
        let Some((open, request_id)) = call.slot.awaited() else {
            return Ok(Some(call));
        };
        let core = call.slot.core();
        let attendant = match attendant_of(&open, &core) {
            Ok(attendant) => attendant,
            Err(exception) => return Err((call, exception)),
        };
        call.request_id = request_id;
        call.deadline = call.slot.deadline();
        let attend = |call| attendant.attend(&core, &open.shared, call);
        let meeting = match &call.then {
            Then::Handle(_) => None,
            Then::Meet(meeting) => Some(meeting.clone()),
        };
        let attended = match meeting {
            None => attend(call),
            Some(meeting) => meeting.entrust(attendant, request_id, call, attend),
        };
        match attended {
            Ok(()) => return Ok(None),
            Err(back) => {
                call = back;
                call.slot.settle();
            }
        }
    }
}

/// Whether the calling thread is an attendant of an ORB, so that what it is in is a handler.
pub(crate) fn is_in_handler(core: &Core) -> bool {
    ORB.get() == core.number
}

thread_local! {
    /// The number of the ORB whose attendant the thread is.
    static ORB: Cell<u64> = const { Cell::new(0) };
}

impl Attended {
    pub(super) fn new(slot: Box<Slot>, then: Then) -> Self {
        Self {
            slot,
            then,
            request_id: 0,
            deadline: Deadline::after(Duration::ZERO),
        }
    }

    pub(super) fn cancel(self) {
        self.slot.cancel();
    }

    /// Does what is to be done when the call has come to its end.
    pub(super) fn finish(self) {
        match self.then {
            Then::Handle(handler) => self.slot.open(handler),
            Then::Meet(meeting) => meeting.bring(self.slot),
        }
    }
}

/// An attendant, as its thread and others see it.
struct Replier {
    /// Where it sleeps while somebody else reads.
    seat: Arc<Gate>,
    /// What it waits on while it reads: the peer, and a wake-up.
    reactor: Reactor,
    wake: Wake,
    thread: OnceLock<OwnThread>,
    /// Held for moments only.
    state: PiMutex<State>,
}

struct State {
    calls: Vec<Attended>,
    /// Calls that have come to their end elsewhere, and whose handlers are to be called here.
    ended: Vec<Attended>,
    waits: Waits,
    is_closed: bool,
    has_ended: bool,
}

/// What it waits for at present, and until when.
enum Waits {
    Not,
    Seated(Deadline),
    Reading(Deadline),
}

/// The attendant of a connection, made when it is first needed.
fn attendant_of<'o>(
    open: &'o Arc<Open>,
    core: &Arc<Core>,
) -> Result<&'o Arc<dyn Attendant>, SystemException> {
    if open.shared.attendant().is_none() {
        let _making = Slots::of(core).making.lock();
        if open.shared.attendant().is_none() {
            let attendant = Replier::start(open, core)?;
            open.shared.set_attendant(attendant);
        }
    }
    // It is never taken away.
    open.shared
        .attendant()
        .ok_or_else(|| comm_failure(CompletionStatus::Maybe))
}

impl Replier {
    fn start(open: &Arc<Open>, core: &Arc<Core>) -> Result<Arc<Self>, SystemException> {
        let replier = Self::new(&open.shared).map_err(|error| no_thread(&open.key, error))?;
        let replier = Arc::new(replier);
        let (this, orb) = (replier.clone(), core.number);
        let work = move |shared: &Multiplexed| {
            ORB.set(orb);
            this.attend_all(shared);
        };
        let thread = start_thread(core, &open.key, &open.shared, "ami", work)?;
        let _ = replier.thread.set(thread);
        Ok(replier)
    }

    fn new(shared: &Multiplexed) -> io::Result<Self> {
        let (reactor, wake) = (Reactor::new()?, Wake::new()?);
        reactor.add(shared.transport(), PEER, Interest::Read)?;
        reactor.add(&wake, WAKE, Interest::Read)?;
        Ok(Self {
            seat: Arc::new(Gate::new(0)),
            reactor,
            wake,
            thread: OnceLock::new(),
            state: PiMutex::new(State {
                calls: Vec::new(),
                ended: Vec::new(),
                waits: Waits::Not,
                is_closed: false,
                has_ended: false,
            }),
        })
    }

    /// Looks after calls until the connection has ended, with the last of them.
    fn attend_all(self: &Arc<Self>, shared: &Multiplexed) {
        let mut frame = scope::frame();
        loop {
            while let Some(call) = self.next_ended(shared) {
                self.complete(call);
            }
            let (rest, until) = {
                let mut state = self.state.lock();
                if !state.ended.is_empty() {
                    continue;
                }
                if state.is_closed && state.calls.is_empty() {
                    state.has_ended = true;
                    return;
                }
                let deadlines = state.calls.iter().map(|call| call.deadline);
                let until = deadlines.min();
                let until = until.unwrap_or_else(|| Deadline::after(LOOK_AGAIN));
                let rest = shared.rest(&self.seat);
                state.waits = match rest {
                    Rest::Not => Waits::Not,
                    Rest::Seated(_) => Waits::Seated(until),
                    Rest::Reading => Waits::Reading(until),
                };
                (rest, until)
            };
            match rest {
                Rest::Not => {}
                Rest::Seated(seen) => {
                    self.seat.wait_while(seen, until);
                    self.state.lock().waits = Waits::Not;
                    shared.rise(&self.seat);
                }
                Rest::Reading => {
                    self.read(shared, &mut frame, until);
                    self.state.lock().waits = Waits::Not;
                    shared.stop_reading();
                }
            }
        }
    }

    /// Completes a call that has come to its end; one that the server wants elsewhere goes on there.
    fn complete(self: &Arc<Self>, mut call: Attended) {
        let mut ended = call.slot.look_and_defer();
        if call.slot.is_deferred() {
            let Some(back) = self.resume_aside(call) else {
                return;
            };
            call = back;
            call.slot.resume();
            ended = false;
        }
        let call = match ended {
            true => Some(call),
            false => go_on(call),
        };
        if let Some(call) = call {
            finish(call);
        }
    }

    /// Has another thread find out how a call goes on, for which the name of a host may have to be looked up; gives it
    /// back where no thread can be had for that.
    fn resume_aside(self: &Arc<Self>, call: Attended) -> Option<Attended> {
        let (core, urgency) = (call.slot.core(), call.slot.urgency());
        // It is not lost with a thread that cannot be had.
        let place = Arc::new(PiMutex::new(Some(call)));
        let (this, there, orb) = (self.clone(), place.clone(), core.number);
        let started = start_aside(&core, urgency, move || {
            ORB.set(orb);
            let call = there.lock().take();
            if let Some(mut call) = call {
                call.slot.resume();
                if let Some(ended) = go_on(call) {
                    this.finish_soon(ended);
                }
            }
        });
        match started {
            true => None,
            false => place.lock().take(),
        }
    }

    /// Finishes a call as soon as those before it are finished; at once where the thread has ended.
    fn finish_soon(&self, call: Attended) {
        let mut state = self.state.lock();
        if state.has_ended {
            drop(state);
            return finish(call);
        }
        state.ended.push(call);
        match state.waits {
            Waits::Not => {}
            Waits::Seated(_) => self.seat.advance(),
            Waits::Reading(_) => self.wake.notify(),
        }
    }

    /// A call that has come to its end, or whose time is over.
    fn next_ended(&self, shared: &Multiplexed) -> Option<Attended> {
        let mut state = self.state.lock();
        if let Some(call) = state.ended.pop() {
            return Some(call);
        }
        let calls = &mut state.calls;
        let ended = shared.ended_call_of(&self.seat);
        let ended = ended.and_then(|id| calls.iter().position(|call| call.request_id == id));
        let late = || calls.iter().position(|call| call.deadline.has_passed());
        let i = ended.or_else(late)?;
        Some(calls.swap_remove(i))
    }

    /// Reads for all until one of its own calls has its reply, or there is something else to look at, or its turn is
    /// over: where messages come without end, deadlines and new calls are looked at all the same.
    fn read(&self, shared: &Multiplexed, frame: &mut Frame, until: Deadline) {
        let mut inbox = shared.inbox.lock();
        let mut turn = inbox.turn();
        loop {
            let transport = shared.transport();
            let take = |room: &mut [u8]| turn.take(|| transport.try_recv(room));
            match shared.read_present(&mut inbox, frame, take) {
                Ok(Some((id, header))) => {
                    if let Err(failure) = shared.hand_over(id, header, frame) {
                        shared.end(failure);
                        break;
                    }
                    let state = self.state.lock();
                    if state.calls.iter().any(|call| call.request_id == id) {
                        break;
                    }
                }
                Ok(None) if turn.is_over() => break,
                Ok(None) => {
                    let Some(left) = until.remaining() else { break };
                    match self.reactor.wait(Some(left)) {
                        Ok(Some(event)) if event.token == WAKE => break,
                        Ok(_) => {}
                        Err(_) => {
                            shared.end(comm_failure(CompletionStatus::Maybe).into());
                            break;
                        }
                    }
                }
                Err(failure) => {
                    shared.end(failure);
                    break;
                }
            }
        }
    }
}

impl Attendant for Replier {
    fn attend(&self, core: &Core, shared: &Multiplexed, call: Attended) -> Result<(), Attended> {
        if let Some(thread) = self.thread.get() {
            // Where the priority has no native one, the call would not have come this far.
            let _ = thread.work_for(core, call.slot.urgency());
        }
        let mut state = self.state.lock();
        if state.has_ended {
            return Err(call);
        }
        let (id, deadline) = (call.request_id, call.deadline);
        state.calls.push(call);
        let is_seated = matches!(state.waits, Waits::Seated(_));
        let at_once = shared.hand_to(id, &self.seat, is_seated);
        match state.waits {
            Waits::Seated(until) if at_once || deadline < until => self.seat.advance(),
            Waits::Reading(until) if at_once || deadline < until => self.wake.notify(),
            _ => {}
        }
        Ok(())
    }

    fn give_back(&self, request_id: u32) -> Option<Attended> {
        let mut state = self.state.lock();
        let calls = &mut state.calls;
        let i = calls
            .iter()
            .position(|call| call.request_id == request_id)?;
        let call = calls.swap_remove(i);
        call.slot.sit_down();
        Some(call)
    }

    fn closed(&self) {
        self.state.lock().is_closed = true;
        self.seat.advance();
        self.wake.notify();
    }
}

/// Has a call looked after that goes on; gives back one that has come to its end.
fn go_on(call: Attended) -> Option<Attended> {
    match entrust(call) {
        Ok(ended) => ended,
        Err((mut lost, exception)) => {
            lost.slot.fail(exception);
            Some(lost)
        }
    }
}

/// Does what is to be done with a call that has come to its end.
fn finish(call: Attended) {
    set_request_priority(call.slot.caller());
    // A handler or waker that panics has told so, and the others shall not suffer from it.
    let _ = catch_unwind(AssertUnwindSafe(|| call.finish()));
    set_request_priority(None);
}

const PEER: u64 = 0;
const WAKE: u64 = 1;
/// Without calls there is nothing to be done in time.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::client::connection::endless::awaiting_endless;

    #[test]
    fn an_attendant_looks_up_from_a_peer_that_sends_without_end() {
        let seat = Arc::new(Gate::new(0));
        let (shared, received) = awaiting_endless(7, &seat);
        let replier = Replier::new(&shared).expect("descriptors are left");
        let mut frame = scope::frame();
        for turn in 1..=4_usize {
            replier.read(&shared, &mut frame, Deadline::after(LOOK_AGAIN));
            assert!(!shared.is_closed(), "it reads to the end");
            assert!(received.load(Ordering::Relaxed) <= (1 << 20) << turn);
        }
    }
}
