//! Bounded outboxes for oneway requests, which no slow peer can make wait.
//!
//! An [`Outbox`] has a connection of its own to one object, for one oneway operation. Any thread
//! puts an [`EncodedBody`] into it. The request is sent at once, by one `sendmsg` of the outbox's
//! header and the shared octets, if the connection has room. Otherwise it waits, within
//! [bounds](OutboxLimits), and an [`OutboxThread`] sends it when the peer has taken what was sent
//! before. So a peer that takes nothing costs its own requests only.
//!
//! # Example
//! ```no_run
//! use chronorb_orb::outbox::{OutboxLimits, OutboxThread};
//! use chronorb_orb::{EncodedBody, Object, Operation, Orb, SystemException};
//!
//! fn tell_all(orb: &Orb, consumers: &[Object]) -> Result<(), SystemException> {
//!     let thread = OutboxThread::start(orb, None)?;
//!     let push = Operation::oneway("push");
//!     let open = |consumer| thread.open(consumer, &push, OutboxLimits::default());
//!     let outboxes = consumers.iter().map(open).collect::<Result<Vec<_>, _>>()?;
//!
//!     let mut body = EncodedBody::empty();
//!     for number in 0..1000 {
//!         body.renew(&|e| e.write_i32(number))?;
//!         for outbox in &outboxes {
//!             // A consumer that has ended is the next one's gain.
//!             let _ = outbox.put(&body);
//!         }
//!     }
//!     Ok(())
//! }
//! ```

mod thread;
mod waiting;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chronorb_cdr::CdrError;
use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex, PiMutexGuard};
use chronorb_transport::IoError;

pub use self::thread::OutboxThread;
use self::waiting::{Offer, WaitingBodies};
pub use self::waiting::{OutboxLimits, OutboxOverflow};
use crate::client::{OnewayPath, RequestHead};
use crate::encoded_body::{BodyForm, EncodedBody};

/// A bounded outbox for the oneway requests of one operation of an object.
///
/// Dropping it drops the requests that wait; [`flush`](Self::flush) waits for them.
pub struct Outbox {
    inner: Arc<OutboxInner>,
    limits: OutboxLimits,
    /// Keeps the thread running.
    thread: OutboxThread,
    token: u64,
}

/// The outcome of putting a request into an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The transport has taken the request.
    Sent,
    /// The request waits.
    Waits,
    /// The request waits, and this number of older ones was lost for it.
    Displaced(u64),
    /// The request was lost, because there is no room.
    Lost,
}

/// The state of an outbox, for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxStatus {
    /// The requests that wait.
    pub waiting: usize,
    /// The octets of their bodies.
    pub octets: usize,
    /// The requests that the transport has taken.
    pub sent: u64,
    /// The requests that were lost.
    pub lost: u64,
    /// The time since which the peer has taken nothing, if requests wait.
    pub stalled: Option<Duration>,
    /// Set once the connection has ended. Nothing is sent any more.
    pub has_ended: bool,
}

/// The part that the thread of the outbox also has.
struct OutboxInner {
    path: OnewayPath,
    /// Locked for moments only. Sending under it does not wait.
    state: PiMutex<OutboxState>,
    /// Advances when there may be room, while threads wait for it.
    room: Gate,
    /// Called when there may be room, after [`Outbox::has_room`] has found none.
    on_room: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

struct OutboxState {
    head: RequestHead,
    waiting: WaitingBodies,
    /// The octets of the first waiting request that were sent. Its header is `head`, if there are
    /// any.
    sent_of_first: usize,
    sent: u64,
    lost: u64,
    /// The time of the last progress, while requests wait.
    stalled: Monotonic,
    /// The threads that wait for room.
    waiters: u32,
    /// Whether the owner is to be called when there may be room.
    wants_call: bool,
    has_ended: bool,
}

impl Outbox {
    /// Sends a request with this body, or lets it wait. Only [`OutboxOverflow::Block`] makes the
    /// caller wait. Allocates nothing.
    ///
    /// Requests are sent in the order in which they were put in.
    ///
    /// # Errors
    /// `COMM_FAILURE` (chronorb minor 1) once the connection has ended; the requests that waited
    /// are lost. `IMP_LIMIT` (chronorb minor 1) where the message would be longer than
    /// `-ORBMaxMessageSize`. `BAD_PARAM` where the body has another [form](Self::form).
    pub fn put(&self, body: &EncodedBody) -> Result<Delivery, SystemException> {
        let inner = &*self.inner;
        if body.form() != self.form() && !body.is_empty() {
            return Err(WRONG_FORM);
        }
        let mut state = inner.state.lock();
        if state.head.len(body.len()) + body.len() > inner.path.max_message {
            return Err(CdrError::FrameFull.into());
        }
        let mut deadline = None;
        loop {
            if state.push(&inner.path).is_err() {
                return Err(inner.end(state));
            }
            let Some(delivery) = state.put(&inner.path, body) else {
                return Err(inner.end(state));
            };
            if delivery != Delivery::Lost {
                return Ok(delivery);
            }
            let until = match self.limits.overflow {
                OutboxOverflow::Block(limit) => {
                    *deadline.get_or_insert_with(|| Deadline::after(limit))
                }
                _ => Deadline::after(Duration::ZERO),
            };
            if until.has_passed() {
                state.lost += 1;
                return Ok(Delivery::Lost);
            }
            state = inner.wait(state, until);
        }
    }

    /// Whether fewer requests wait than may, and fewer octets of bodies than `octets`. Then
    /// [`put`](Self::put) loses nothing unless the bound of octets is exceeded by the new body. An
    /// outbox that has ended has room, so that its owner learns of the end.
    ///
    /// After `false`, the function of [`on_room`](Self::on_room) is called when there may be room.
    pub fn has_room(&self, octets: usize) -> bool {
        let mut state = self.inner.state.lock();
        let is_full = state.waiting.len() >= self.limits.requests.max(1)
            || state.waiting.len() > 0 && state.waiting.octets() >= octets;
        state.wants_call = is_full && !state.has_ended;
        !state.wants_call
    }

    /// Sets the function that is called, by the thread of the outbox, when there may be room after
    /// [`has_room`](Self::has_room) has found none. The function does not wait. Only the first
    /// one counts.
    pub fn on_room(&self, call: impl Fn() + Send + Sync + 'static) {
        // A second function is dropped.
        let _ = self.inner.on_room.set(Box::new(call));
    }

    /// The form that the text of bodies must have for this target.
    pub fn form(&self) -> BodyForm {
        self.inner.path.form
    }

    /// Waits until no request waits; returns whether that was in time.
    ///
    /// # Errors
    /// `COMM_FAILURE` (chronorb minor 1) once the connection has ended.
    pub fn flush(&self, limit: Duration) -> Result<bool, SystemException> {
        let deadline = Deadline::after(limit);
        let mut state = self.inner.state.lock();
        loop {
            if state.push(&self.inner.path).is_err() {
                return Err(self.inner.end(state));
            }
            if state.waiting.len() == 0 {
                return Ok(true);
            }
            if deadline.has_passed() {
                return Ok(false);
            }
            state = self.inner.wait(state, deadline);
        }
    }

    /// The present state.
    pub fn status(&self) -> OutboxStatus {
        let state = self.inner.state.lock();
        let waits = state.waiting.len() > 0;
        OutboxStatus {
            waiting: state.waiting.len(),
            octets: state.waiting.octets(),
            sent: state.sent,
            lost: state.lost,
            stalled: waits.then(|| Monotonic::now().since(state.stalled)),
            has_ended: state.has_ended,
        }
    }
}

const WRONG_FORM: SystemException = SystemException::no(SystemExceptionKind::BadParam, 0);

impl OutboxInner {
    fn new(path: OnewayPath, head: RequestHead, limits: OutboxLimits) -> Self {
        let state = OutboxState {
            head,
            waiting: WaitingBodies::new(limits),
            sent_of_first: 0,
            sent: 0,
            lost: 0,
            stalled: Monotonic::now(),
            waiters: 0,
            wants_call: false,
            has_ended: false,
        };
        Self {
            path,
            state: PiMutex::new(state),
            room: Gate::new(0),
            on_room: OnceLock::new(),
        }
    }

    /// Sends what waits, for the thread of the outbox. A peer that `has_hung_up`, or has sent
    /// octets, has ended the connection.
    fn on_event(&self, has_hung_up: bool) {
        let mut state = self.state.lock();
        let is_over = has_hung_up || self.path.transport().is_stale();
        if is_over || state.push(&self.path).is_err() {
            self.end(state);
        } else {
            self.announce_room(state);
        }
    }

    /// Waits until there may be room.
    fn wait<'s>(
        &'s self,
        mut state: PiMutexGuard<'s, OutboxState>,
        deadline: Deadline,
    ) -> PiMutexGuard<'s, OutboxState> {
        state.waiters += 1;
        let seen = self.room.get();
        drop(state);
        self.room.wait_while(seen, deadline);
        let mut state = self.state.lock();
        state.waiters -= 1;
        state
    }

    /// Ends the outbox, whose connection has ended. Returns the exception for its callers.
    #[cold]
    fn end(&self, mut state: PiMutexGuard<'_, OutboxState>) -> SystemException {
        let is_first = !std::mem::replace(&mut state.has_ended, true);
        let lost = state.waiting.clear();
        state.sent_of_first = 0;
        state.lost += lost;
        self.announce_room(state);
        if is_first {
            self.path.close();
        }
        if lost > 0 {
            self.path.note_lost(lost);
        }
        SystemException::no(SystemExceptionKind::CommFailure, minor::CONNECTION_LOST)
    }

    fn announce_room(&self, mut state: PiMutexGuard<'_, OutboxState>) {
        let has_waiters = state.waiters > 0;
        let wants_call = std::mem::take(&mut state.wants_call);
        drop(state);
        if has_waiters {
            self.room.advance();
        }
        if wants_call && let Some(call) = self.on_room.get() {
            call();
        }
    }
}

impl OutboxState {
    /// Sends or keeps a request; `None` if the connection has ended.
    fn put(&mut self, path: &OnewayPath, body: &EncodedBody) -> Option<Delivery> {
        if self.waiting.len() == 0 {
            self.sent_of_first = 0;
            self.stalled = Monotonic::now();
            if self.send(path, body).ok()? {
                return Some(Delivery::Sent);
            }
            self.waiting.begin(body.clone());
            // The transport reports room only after it has taken no more.
            self.push(path).ok()?;
            return Some(match self.waiting.len() {
                0 => Delivery::Sent,
                _ => Delivery::Waits,
            });
        }
        Some(match self.waiting.offer(body, self.sent_of_first > 0) {
            Offer::Waits(0) => Delivery::Waits,
            Offer::Waits(dropped) => {
                self.lost += dropped;
                Delivery::Displaced(dropped)
            }
            Offer::Full => Delivery::Lost,
        })
    }

    /// Sends waiting requests until the transport takes no more.
    fn push(&mut self, path: &OnewayPath) -> Result<(), IoError> {
        if self.has_ended {
            return Err(IoError::Closed);
        }
        while let Some(first) = self.waiting.first().cloned() {
            let before = self.sent_of_first;
            if self.send(path, &first)? {
                self.waiting.remove_first();
                self.sent_of_first = 0;
            } else if self.sent_of_first == before {
                break;
            }
            self.stalled = Monotonic::now();
        }
        Ok(())
    }

    /// Sends a part of the first request. Returns whether it is sent whole.
    fn send(&mut self, path: &OnewayPath, body: &EncodedBody) -> Result<bool, IoError> {
        if self.sent_of_first == 0 {
            self.head.set(path.next_request_id(), body.len());
        }
        let head = self.head.octets(body.len());
        match path.try_send(head, body.as_slice(), self.sent_of_first) {
            Ok(sent) => self.sent_of_first = sent,
            Err(IoError::WouldBlock) => return Ok(false),
            Err(error) => return Err(error),
        }
        let is_whole = self.sent_of_first == head.len() + body.len();
        self.sent += u64::from(is_whole);
        Ok(is_whole)
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.thread.forget(self.token);
        // Threads that wait are told.
        self.inner.end(self.inner.state.lock());
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status().fmt(f)
    }
}
