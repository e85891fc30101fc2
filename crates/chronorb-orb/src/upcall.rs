//! The path from an object key to a servant and into it, for requests from the network and from
//! this process.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::{CdrError, Decoder, Encoder};
use chronorb_giop::{CompletionStatus, Ior, SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Key, epoch};
use chronorb_transport::Connection;

use crate::call::{Call, IncomingRequest, ReplyWriter, Skeleton, reply_error};
use crate::config::PriorityExcess;
use crate::core::{Core, OBJECT_ID, Object};
use crate::failure::NO_SUCH_ADAPTER;
use crate::incident::Incident;
use crate::peer::Peer;
use crate::poa::{
    ActiveRef, Entry, ObjectKey, Poa, PoaRef, Refusal, RequestServant, RequestTarget, SerialGuard,
    ThreadModel, WaitCause,
};
use crate::rtcorba::{OwnPriority, Priority, PriorityGuard};
use crate::stage::{Stage, StageProbe};

/// A request, independent of its origin.
pub(crate) struct Upcall<'u> {
    pub(crate) core: &'u Arc<Core>,
    pub(crate) incoming: IncomingRequest<'u>,
    /// The object key.
    pub(crate) key: &'u [u8],
    /// The priority that the request carries.
    pub(crate) propagated: Option<Priority>,
    /// The most urgent priority that clients may propagate at the endpoint of the request.
    pub(crate) ceiling: Option<Priority>,
    pub(crate) thread: &'u Thread,
}

/// The thread that serves a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    /// The priority of the thread while it serves no request.
    pub(crate) own: OwnPriority,
    /// The longest time to wait until a POA admits the request.
    pub(crate) patience: Duration,
    pub(crate) parks: Parks,
    pub(crate) role: Role,
}

/// Whether a request is parked where it would have to wait for its POA.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Parks {
    /// No: its thread waits.
    No,
    /// Yes.
    Yes,
    /// Yes, and it has been parked before.
    Again,
}

/// The requests that a thread may serve.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// A thread of the lane that received the request: all but those for the main thread.
    Lane,
    /// The same, for a request whose priority a filter has set.
    LaneAt(Priority),
    /// The main thread, for requests that were handed off to it: all.
    Main,
    /// Any thread that calls an object in its own process: those that need no other thread.
    Caller,
}

/// The work to do with the servant.
pub(crate) trait Body {
    /// The result of the work.
    type Output;

    /// Does the work for a request to this POA, once. Everything that it borrows lives longer than
    /// the call.
    fn run<'c>(&mut self, servant: &'c dyn Skeleton, poa: &Poa, call: &Call<'c>) -> Self::Output
    where
        Self: 'c;
}

/// The reason why a request was not served.
pub(crate) enum UpcallError {
    /// The client gets this exception.
    Exception(SystemException),
    /// The client is forwarded to this object.
    Forward(Object),
    /// Another thread has to serve it, at this priority: the main thread if there is none, else one
    /// of a lane.
    ByAnotherThread(Option<Priority>),
    /// The request has to wait for the POA of this key, by its priority.
    Parked(Key, WaitCause, Option<Priority>),
}

impl<E: Into<Refusal>> From<E> for UpcallError {
    fn from(refusal: E) -> Self {
        match refusal.into() {
            Refusal::Exception(exception) => Self::Exception(exception),
            Refusal::Forward(target) => Self::Forward(target),
        }
    }
}

impl Upcall<'_> {
    /// Finds the servant and runs `body` with it, at the request's priority.
    pub(crate) fn serve<B: Body + ?Sized>(&self, body: &mut B) -> Result<B::Output, UpcallError> {
        let Some(key) = ObjectKey::parse(self.key) else {
            return Err(self.unregistered());
        };
        let mut reading = epoch::enter();
        let core = self.core;
        let poa = match core.poas.find_within(&reading, core.incarnation, &key) {
            Some(poa) if poa.is_open() => poa,
            Some(poa) if poa.is_guarded() => {
                // An authorizer may take long, and must not delay the reclamation of memory.
                drop(reading);
                self.ask_guard(&poa, key.id)?;
                reading = epoch::enter();
                poa
            }
            missing_or_closed => {
                // The wait may take long, and must not delay the reclamation of memory.
                drop((missing_or_closed, reading));
                let poa = self.wait_for_poa()?;
                reading = epoch::enter();
                poa
            }
        };
        if !matches!(self.thread.role, Role::Caller) {
            core.at(Stage::Find);
        }
        // Declared first, so that the object is left before the priority is restored.
        let at_priority;
        let active = poa.find_within(&reading, key.hint, key.id);
        drop(reading);
        if let Some(propagated) = self.propagated
            && poa.is_above_ceiling(propagated, self.ceiling)
        {
            self.exceed(propagated)?;
        }
        let (priority, own) =
            poa.priority_of_request(active.as_deref(), key.id, self.propagated, self.ceiling);
        let priority = self.priority_here(&poa, priority)?;
        let priority = core.rt.transform.inbound(priority, key.id)?;
        at_priority = PriorityGuard::enter(&core.rt.real_time, &self.thread.own, priority)?;
        let patience = if poa.is_serial() {
            Some(self.patience_for(&poa, priority)?)
        } else {
            None
        };
        let mut made = None;
        let found = match &active {
            Some(active) => RequestTarget::Active(active),
            None => {
                let servant = poa.make_servant(key.id, own, self.incoming.operation)?;
                made.insert(servant).target()
            }
        };
        let serial = match patience {
            Some(patience) => self.enter(&poa, patience, priority)?,
            None => None,
        };
        let running = found.begin(core, &poa);
        let call = Call {
            incoming: &self.incoming,
            orb: core,
            poa: &*poa,
            object_id: found.id(),
            priority: priority.or(self.thread.own.priority),
        };
        // A panic of the servant fails one request, and not the thread.
        let run = || body.run(found.servant(), &poa, &call);
        let served = catch_unwind(AssertUnwindSafe(run));
        // In the order in which they would be dropped. The calls are inlined, unlike the drops,
        // which each error needs too.
        drop(running);
        drop(serial);
        RequestServant::leave(&mut made);
        // It is empty; moving it to where it is dropped would copy its 144 bytes.
        mem::forget(made);
        ActiveRef::leave(active);
        at_priority.leave();
        poa.leave();
        served.map_err(|panic| self.panicked(panic))
    }

    /// Reports which operation panicked, with the panic's message. The panic hook of the process
    /// has printed the message already, unless the application has replaced it.
    #[cold]
    #[inline(never)]
    fn panicked(&self, panic: Box<dyn Any + Send>) -> UpcallError {
        #[cfg(feature = "schedule")]
        crate::meter::Meter::abandon();
        let literal = panic.downcast_ref::<&str>().copied();
        let said = literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let said = said.unwrap_or("a panic without a text");
        let operation = self.incoming.operation.escape_ascii();
        let operation = format_args!("operation {operation}");
        let detail = format_args!("{said:?}; {TOLD_ONCE}");
        let incidents = &self.core.incidents;
        incidents.tell(Incident::PanickedServant, &operation, 0, &detail);
        UpcallError::Exception(SERVANT_PANICKED)
    }

    /// The time that the request may wait on its thread for its turn in a single-threaded POA; an
    /// error where it has to be parked instead.
    fn patience_for(&self, poa: &Poa, priority: Option<Priority>) -> Result<Duration, UpcallError> {
        let parks = self.thread.parks;
        if parks == Parks::No {
            return Ok(self.thread.patience);
        }
        match poa.entry(priority, parks == Parks::Again) {
            Entry::Now => Ok(Duration::ZERO),
            Entry::Waits => Ok(self.thread.patience),
            Entry::Parks => Err(UpcallError::Parked(poa.place(), WaitCause::Busy, priority)),
        }
    }

    /// Enters a single-threaded POA.
    fn enter<'p>(
        &self,
        poa: &'p Poa,
        patience: Duration,
        priority: Option<Priority>,
    ) -> Result<Option<SerialGuard<'p>>, UpcallError> {
        let entered = poa.enter(patience);
        entered.map_err(|exception| match self.thread.parks {
            Parks::Yes | Parks::Again if patience.is_zero() => {
                // The POA was free just before.
                UpcallError::Parked(poa.place(), WaitCause::Busy, priority)
            }
            _ => UpcallError::Exception(exception),
        })
    }

    /// Notes a propagated priority above the ceiling.
    ///
    /// # Errors
    /// `NO_PERMISSION` where such requests are refused.
    #[cold]
    fn exceed(&self, propagated: Priority) -> Result<(), SystemException> {
        let (incident, result) = match self.core.config.priority_excess {
            PriorityExcess::Clamp => (Incident::PriorityClamped, Ok(())),
            PriorityExcess::Refuse => (Incident::PriorityRefused, Err(ABOVE_CEILING)),
        };
        let number = propagated.value().into();
        self.core
            .incidents
            .note(incident, &PeerName(self.incoming.peer), number);
        result
    }

    /// Returns the POA once it is active and admits the request and its authorizer permits it.
    #[cold]
    #[inline(never)]
    fn wait_for_poa(&self) -> Result<PoaRef<'_>, UpcallError> {
        // A key that is passed by reference stays in memory.
        let key = &ObjectKey::parse(self.key).ok_or(NO_SUCH_ADAPTER)?;
        let poas = &self.core.poas;
        loop {
            let poa = match poas.find(self.core.incarnation, key) {
                Some(poa) => poa,
                None => poas.obtain(self.core.incarnation, key)?,
            };
            if poa.is_open() {
                return Ok(poa);
            }
            if poa.is_guarded() {
                self.ask_guard(&poa, key.id)?;
                return Ok(poa);
            }
            if poa.is_forged(self.key) {
                return Err(self.forged());
            }
            if self.thread.parks != Parks::No && poa.is_held() {
                let active = poa.find(key.hint, key.id);
                let active = active.as_deref();
                let priority =
                    poa.priority_of_request(active, key.id, self.propagated, self.ceiling);
                return Err(UpcallError::Parked(
                    poa.place(),
                    WaitCause::Held,
                    priority.0,
                ));
            }
            // A waiting request is not in the POA, which may be destroyed meanwhile.
            let waiting = Poa::clone(&poa);
            drop(poa);
            waiting.wait_until_open(self.thread.patience)?;
        }
    }

    /// Returns the outcome for a plain name. While the root POA holds requests, the program may
    /// still register the name, so the request waits with the others.
    #[cold]
    #[inline(never)]
    fn unregistered(&self) -> UpcallError {
        let core = self.core;
        match core.poas.present_root() {
            Some(root)
                if self.thread.parks != Parks::No
                    && root.is_held()
                    && core.initial_references.registered(self.key).is_none() =>
            {
                UpcallError::Parked(root.place(), WaitCause::Held, self.propagated)
            }
            _ => NO_SUCH_ADAPTER.into(),
        }
    }

    /// Checks that the key is authentic and that the POA's authorizer, if any, permits the request.
    #[inline]
    fn ask_guard(&self, poa: &Poa, id: &[u8]) -> Result<(), UpcallError> {
        if poa.is_forged(self.key) {
            return Err(self.forged());
        }
        let peer = self.incoming.peer.map(Peer::new);
        Ok(poa.authorize(peer, id, self.incoming.operation)?)
    }

    #[cold]
    fn forged(&self) -> UpcallError {
        let incident = Incident::ForgedObjectKey;
        self.core
            .incidents
            .note(incident, &PeerName(self.incoming.peer), 0);
        NO_SUCH_ADAPTER.into()
    }

    /// The priority at which the thread serves a request to which the POA gives `priority`; an
    /// error if another thread has to serve it.
    #[inline(always)]
    fn priority_here(
        &self,
        poa: &Poa,
        priority: Option<Priority>,
    ) -> Result<Option<Priority>, UpcallError> {
        if poa.thread_model() == ThreadModel::MainThread
            && self.thread.role != Role::Main
            && !self.core.main.is_here()
        {
            return Err(UpcallError::ByAnotherThread(priority));
        }
        match self.thread.role {
            Role::Main | Role::Lane => Ok(priority),
            Role::LaneAt(ordered) => Ok(Some(ordered)),
            Role::Caller if is_lane_of(self.core, poa, priority) => Ok(priority),
            Role::Caller => Err(UpcallError::ByAnotherThread(priority)),
        }
    }
}

/// An upcall that calls a servant by its skeleton.
pub(crate) struct Dispatch<'a, 'r, 'f> {
    /// The ORB, if the request did not come from this process.
    pub(crate) core: Option<&'r Core>,
    /// Sends the answer to a client that waits for the server but not for the servant.
    pub(crate) answer_early: Option<AnswerEarly<'r>>,
    /// The arguments, taken when the servant is called.
    pub(crate) arguments: &'r mut Option<Decoder<'a>>,
    pub(crate) reply: &'r mut ReplyWriter<'f>,
    /// The thread, if it may send the reply before the request leaves its POA.
    pub(crate) sender: Option<&'r Thread>,
}

type AnswerEarly<'r> = &'r dyn Fn(&[u8]) -> Result<(), SystemException>;

impl<'a, 'r, 'f> Dispatch<'a, 'r, 'f> {
    /// Returns the dispatch of a call within the process.
    pub(crate) fn of_caller(
        arguments: &'r mut Option<Decoder<'a>>,
        reply: &'r mut ReplyWriter<'f>,
    ) -> Self {
        Self {
            core: None,
            answer_early: None,
            arguments,
            reply,
            sender: None,
        }
    }
}

impl Body for Dispatch<'_, '_, '_> {
    type Output = Result<(), SystemException>;

    #[inline(always)]
    fn run<'c>(&mut self, servant: &'c dyn Skeleton, poa: &Poa, call: &Call<'c>) -> Self::Output
    where
        Self: 'c,
    {
        let Some(mut arguments): Option<Decoder<'c>> = self.arguments.take() else {
            return Err(SystemException::no(SystemExceptionKind::Internal, 0));
        };
        if let Some(core) = self.core {
            enter(core, servant, call)?;
        }
        let reply = &mut *self.reply;
        if call.operation().first() == Some(&b'_')
            && let Some(result) = implicit(servant, call.operation(), &mut arguments, reply)
        {
            return result;
        }
        if let Some(answer) = self.answer_early {
            // From here on no forward or refusal is possible, and the servant's reply is discarded.
            reply.normal()?;
            answer(reply.take_sent())?;
        }
        let dispatched = servant.dispatch(call, call.operation(), &mut arguments, reply);
        if let Some(core) = self.core {
            leave(core, servant, call, &dispatched, reply);
        }
        dispatched?;
        if !reply.is_begun() {
            reply.normal()?;
        }
        // At the request's own priority only the servant runs.
        if let Some(thread) = self.sender
            && thread.own.priority == call.priority
            && poa.ends_after_reply()
        {
            reply.send();
        }
        Ok(())
    }
}

/// Reports to the probe and the meter, if there are any, that a request of another process is about
/// to be served.
///
/// # Errors
/// `TRANSIENT` where the request is skipped, because its operation exceeded its budget.
#[inline]
fn enter(core: &Core, servant: &dyn Skeleton, call: &Call<'_>) -> Result<(), SystemException> {
    match &core.config.stage_probe {
        None => Ok(()),
        Some(probe) => enter_probed(core, probe, servant, call),
    }
}

#[cold]
#[cfg_attr(
    not(feature = "schedule"),
    expect(unused_variables, reason = "for the meter")
)]
fn enter_probed(
    core: &Core,
    probe: &StageProbe,
    servant: &dyn Skeleton,
    call: &Call<'_>,
) -> Result<(), SystemException> {
    probe.at(Stage::Upcall);
    #[cfg(feature = "schedule")]
    if let Some(meter) = &core.meter {
        return meter.enter(servant, call.operation());
    }
    Ok(())
}

/// Reports that the servant has returned.
#[inline]
fn leave(
    core: &Core,
    servant: &dyn Skeleton,
    call: &Call<'_>,
    outcome: &Result<(), SystemException>,
    reply: &ReplyWriter<'_>,
) {
    if let Some(probe) = &core.config.stage_probe {
        leave_probed(core, probe, servant, call, outcome, reply);
    }
}

#[cold]
#[cfg_attr(
    not(feature = "schedule"),
    expect(unused_variables, reason = "for the meter")
)]
fn leave_probed(
    core: &Core,
    probe: &StageProbe,
    servant: &dyn Skeleton,
    call: &Call<'_>,
    outcome: &Result<(), SystemException>,
    reply: &ReplyWriter<'_>,
) {
    #[cfg(feature = "schedule")]
    if let Some(meter) = &core.meter {
        let replied = reply.is_sent() || !call.response_expected();
        meter.leave(servant, call.operation(), outcome.is_ok(), replied);
    }
    probe.at(Stage::Conclude);
}

/// Operations that every object has (CORBA 3.3 part 2, 9.4.2.2); their names begin with `_`, like
/// those of attributes.
#[inline(never)]
fn implicit(
    servant: &dyn Skeleton,
    operation: &[u8],
    body: &mut Decoder<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Option<Result<(), SystemException>> {
    let mut answer = |write: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>| {
        write(reply.normal()?).map_err(reply_error)
    };
    match operation {
        b"_is_a" => Some(
            body.read_str()
                .map_err(SystemException::from)
                .and_then(|id| {
                    let is = id == OBJECT_ID || servant.is_a(id);
                    answer(&|e| e.write_bool(is))
                }),
        ),
        _ if NON_EXISTENT.contains(&operation) => Some(answer(&|e| e.write_bool(false))),
        b"_repository_id" => {
            let id = servant.repository_id();
            Some(answer(&|e| e.write_str(id)))
        }
        // A client announces the band of a connection (RT-CORBA 1.2, “Priority Banded
        // Connections”). Here the endpoint of a connection decides which lane serves it, whatever
        // its band.
        b"_bind_priority_band" => Some(answer(&|_| Ok(()))),
        // The object is not a CORBA component.
        b"_component" => Some(answer(&|e| Ior::nil().encode(e))),
        // There is no interface repository.
        b"_interface" | b"_get_interface" => Some(Err(SystemException::no(
            SystemExceptionKind::IntfRepos,
            minor::NO_INTERFACE_REPOSITORY,
        ))),
        _ => None,
    }
}

/// The other side of a request, displayed in messages.
struct PeerName<'p>(Option<&'p dyn Connection>);

impl fmt::Display for PeerName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(connection) => f.write_str(&connection.peer()),
            None => f.write_str("this process"),
        }
    }
}

/// Whether calls of an object by the calling thread, made at this priority, stay within the
/// process: this thread or the main one serves them.
pub(crate) fn stays_within(core: &Core, key: &[u8], priority: Option<Priority>) -> bool {
    let Some(key) = ObjectKey::parse(key) else {
        return false;
    };
    let _reading = epoch::enter();
    let Some(poa) = core.poas.find(core.incarnation, &key) else {
        // The POA does not exist yet, so nothing speaks for a connection.
        return true;
    };
    let active = poa.find(key.hint, key.id);
    let (served_at, _) = poa.priority_of_request(active.as_deref(), key.id, priority, None);
    poa.thread_model() == ThreadModel::MainThread || is_lane_of(core, &poa, served_at)
}

/// Whether the calling thread may serve a request of this process: any thread, where the ORB's own
/// pool serves the POA, else a thread of the pool's lane of that priority. Pools are made to keep
/// their threads and priorities to themselves.
fn is_lane_of(core: &Core, poa: &Poa, priority: Option<Priority>) -> bool {
    let Ok(pool) = poa.pool() else {
        return false;
    };
    if pool.is_default() {
        return true;
    }
    let Some(lane) = pool.lane_of_thread(core.number) else {
        return false;
    };
    !pool.has_lanes || lane.priority == priority
}

const TOLD_ONCE: &str = "the client gets UNKNOWN; the operation's next panics are counted";
const ABOVE_CEILING: SystemException = SystemException::no(
    SystemExceptionKind::NoPermission,
    minor::PRIORITY_ABOVE_CEILING,
);
/// The exception for a panic of the servant, whose progress is unknown.
const SERVANT_PANICKED: SystemException = SystemException::new(
    SystemExceptionKind::Unknown,
    minor::SERVANT_PANICKED,
    CompletionStatus::Maybe,
);
/// The operation that asks whether an object is gone, under its names in all versions of GIOP.
pub(crate) const NON_EXISTENT: [&[u8]; 2] = [b"_non_existent", b"_not_existent"];
