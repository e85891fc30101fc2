//! The distributable threads and segments of the calling thread, and handles to others.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};

use chronorb_giop::{
    CompletionStatus, SchedulingContext, SystemException, SystemExceptionKind, minor,
};
use chronorb_rt::{Activity, Scheduling, set_current};

use super::record::{self, Interrupt, LEVELS, RecordOwner, ThreadRecord};
use super::{Guid, SchedulingParameter};
use crate::core::Core;
use crate::rtcorba::scheduling::{Constraint, set_of_thread};
use crate::rtcorba::{Priority, RtCurrent, request_priority, set_request_priority};

thread_local! {
    /// Whether the thread has a distributable thread.
    static IS_ACTIVE: Cell<bool> = const { Cell::new(false) };
    /// The number of changes of its distributable threads and their segments.
    static CHANGES: Cell<u64> = const { Cell::new(0) };
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// A distributable thread (`RTScheduling::DistributableThread`), as its ORB knows it.
#[derive(Debug)]
pub struct DistributableThread {
    guid: Guid,
    orb: u64,
    is_cancelled: AtomicBool,
}

/// The state of a distributable thread (`DT_State`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ThreadState {
    /// The thread was not cancelled, as far as is known here.
    Active,
    /// The thread was cancelled.
    Cancelled,
}

impl DistributableThread {
    pub(super) fn new(orb: u64, guid: Guid) -> Self {
        Self {
            guid,
            orb,
            is_cancelled: AtomicBool::new(false),
        }
    }

    /// Returns the handle of a thread that is in an ORB now.
    pub(super) fn find(orb: u64, guid: Guid) -> Option<Self> {
        let is_cancelled = record::find(orb, guid)?;
        let found = Self::new(orb, guid);
        found.is_cancelled.store(is_cancelled, Ordering::Relaxed);
        Some(found)
    }

    /// The identity of the thread.
    #[must_use]
    pub fn id(&self) -> Guid {
        self.guid
    }

    /// Cancels the thread: see [cancelling](super#cancelling). It has no effect once the thread has
    /// ended, or has left this ORB.
    pub fn cancel(&self) {
        if record::cancel(self.orb, self.guid) {
            self.is_cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the thread was cancelled, by this handle or while it is in this ORB.
    #[must_use]
    pub fn state(&self) -> ThreadState {
        let is_cancelled = self.is_cancelled.load(Ordering::Relaxed)
            || record::find(self.orb, self.guid).unwrap_or(false);
        if is_cancelled {
            self.is_cancelled.store(true, Ordering::Relaxed);
            ThreadState::Cancelled
        } else {
            ThreadState::Active
        }
    }
}

/// The distributable threads of one thread, and their segments.
struct State {
    record: RecordOwner,
    levels: Vec<Level>,
    segments: Vec<Segment>,
    /// The names of the segments, one behind the other.
    names: String,
    /// Memory for the name of a segment that ends.
    ended_name: String,
    next_serial: u64,
    /// The number of distributable threads that it has had.
    entered: u64,
}

/// A distributable thread of the calling thread.
struct Level {
    core: Arc<Core>,
    guid: Guid,
    activity: Activity,
    /// Whether a request brought it, so that it does not end with its last segment here.
    is_hosted: bool,
    /// The number of segments below it.
    first: usize,
    parameter: Option<SchedulingParameter>,
    implicit: Option<SchedulingParameter>,
    /// The number of calls between its beginning and here.
    hops: u16,
    /// Whether the scheduler was told of its cancellation.
    is_told: bool,
}

/// A segment of the calling thread.
#[derive(Clone, Copy)]
struct Segment {
    /// The position of its name.
    name_at: usize,
    parameter: Option<SchedulingParameter>,
    implicit: Option<SchedulingParameter>,
    /// The priority before it, if it has changed that.
    before: Option<PriorityBefore>,
    serial: u64,
}

/// The priority that a thread had.
#[derive(Clone, Copy, Debug)]
pub(super) struct PriorityBefore {
    priority: Option<Priority>,
    scheduling: Option<Scheduling>,
}

impl PriorityBefore {
    /// Gives the calling thread another priority. Returns the previous one, if it differs.
    pub(super) fn change(
        core: &Arc<Core>,
        to: Option<Priority>,
    ) -> Result<Option<Self>, SystemException> {
        let priority = request_priority();
        if to.is_none() || to == priority {
            return Ok(None);
        }
        let scheduling = chronorb_rt::current().ok();
        let current = RtCurrent::new(core.clone());
        to.map_or(Ok(()), |to| current.set_priority(to))?;
        Ok(Some(Self {
            priority,
            scheduling,
        }))
    }

    /// Takes the change back.
    pub(super) fn restore(self, core: &Arc<Core>) {
        let current = RtCurrent::new(core.clone());
        let restored = self.priority.map(|priority| current.set_priority(priority));
        if !matches!(restored, Some(Ok(()))) {
            // The thread had this scheduling before, so that it is permitted.
            let _ = self.scheduling.map(set_current);
            set_request_priority(self.priority);
        }
    }
}

/// A distributable thread as it begins.
pub(super) struct NewLevel<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) guid: Guid,
    /// The origin of the request that brings it; `None` if it begins here.
    pub(super) origin: Option<NonZeroU64>,
    pub(super) parameter: Option<SchedulingParameter>,
    pub(super) implicit: Option<SchedulingParameter>,
    pub(super) hops: u16,
}

/// The innermost distributable thread, with what is in effect for it.
#[derive(Clone)]
pub(super) struct Present {
    pub(super) core: Arc<Core>,
    pub(super) guid: Guid,
    pub(super) parameter: Option<SchedulingParameter>,
    pub(super) implicit: Option<SchedulingParameter>,
    pub(super) hops: u16,
    pub(super) is_cancelled: bool,
}

/// The innermost distributable thread, as far as a call with a reply needs it.
pub(super) struct Caller {
    pub(super) core: Arc<Core>,
    pub(super) guid: Guid,
    /// The number of its segments here.
    pub(super) segments: usize,
    pub(super) place: LevelPlace,
}

/// The place of a distributable thread on the calling thread, as it was at a time. Calls and
/// upcalls keep it, so that they need the state of the thread only where that has changed.
pub(super) struct LevelPlace {
    record: Arc<ThreadRecord>,
    level: usize,
    activity: Activity,
    /// [`CHANGES`] at that time.
    changes: u64,
}

impl LevelPlace {
    /// Whether the calling thread has the same distributable threads and segments as at that time.
    #[inline]
    pub(super) fn is_unchanged(&self) -> bool {
        CHANGES.get() == self.changes
    }

    /// Whether the distributable thread is here and cancelled.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.record[self.level].is_cancelled(self.activity)
    }

    /// Notes that the distributable thread waits for a reply, at what is at an address. Returns
    /// `false` if it is cancelled already.
    #[inline]
    pub(super) fn begin_wait(
        &self,
        address: usize,
        wait: impl FnOnce() -> Weak<dyn Interrupt>,
    ) -> bool {
        self.record[self.level].begin_wait_at(address, wait)
    }

    /// Notes that the wait has ended.
    #[inline]
    pub(super) fn end_wait(&self) {
        self.record[self.level].end_wait();
    }
}

/// The state of a distributable thread.
#[derive(Clone, Copy)]
pub(super) struct LevelStatus {
    /// The number of its segments here.
    pub(super) segments: usize,
    pub(super) is_cancelled: bool,
}

/// A segment that has ended.
pub(super) struct EndedSegment {
    pub(super) guid: Guid,
    /// The name of the segment, in memory of the thread, which [`keep`](Self::keep) gives back.
    pub(super) name: String,
    /// The parameter that is in effect again.
    pub(super) outer: Option<SchedulingParameter>,
    /// Whether the distributable thread has ended with it.
    pub(super) was_outermost: bool,
    before: Option<PriorityBefore>,
}

impl EndedSegment {
    /// Takes back the priority of the segment.
    pub(super) fn restore(&self, core: &Arc<Core>) {
        if let Some(before) = self.before {
            before.restore(core);
        }
    }

    /// Keeps the memory of the name for the next segment that ends.
    pub(super) fn keep(self) {
        with(|state| state.ended_name = self.name);
    }
}

/// Whether the calling thread has a distributable thread.
#[inline]
pub(super) fn is_active() -> bool {
    IS_ACTIVE.get()
}

fn with<T>(work: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(|state| {
        if state.is_none() {
            *state = Some(State::new());
        }
        work(state.get_or_insert_with(State::new))
    })
}

/// Returns the innermost distributable thread.
pub(super) fn present() -> Option<Present> {
    if !is_active() {
        return None;
    }
    with(|state| state.present())
}

/// Returns the innermost distributable thread for a call.
#[inline(always)]
pub(super) fn caller() -> Option<Caller> {
    if !is_active() {
        return None;
    }
    with(|state| {
        let level = state.levels.last()?;
        Some(Caller {
            core: level.core.clone(),
            guid: level.guid,
            segments: state.segments.len() - level.first,
            place: state.place(level),
        })
    })
}

/// Returns the constraint of calls of a distributable thread that is some calls away from its root.
pub(super) fn constraint_of(
    guid: Guid,
    hops: u16,
    parameter: Option<&SchedulingParameter>,
) -> Constraint {
    let mut context = SchedulingContext {
        guid: guid.0,
        hops: hops.saturating_add(1),
        ..SchedulingContext::default()
    };
    if let Some(parameter) = parameter {
        parameter.write(&mut context);
    }
    Constraint {
        due: parameter.and_then(SchedulingParameter::deadline),
        context,
    }
}

/// Returns the innermost distributable thread, if it belongs to an ORB.
///
/// # Errors
/// `BAD_INV_ORDER` if there is none; `THREAD_CANCELLED` if it is cancelled.
pub(super) fn present_in(core: &Core) -> Result<Present, SystemException> {
    let present = present().filter(|present| present.core.number == core.number);
    let present = present.ok_or(NO_SEGMENT)?;
    if present.is_cancelled {
        return Err(unwind(CompletionStatus::No));
    }
    Ok(present)
}

/// Returns the state of the innermost distributable thread, if it is this one.
pub(super) fn status(guid: Guid) -> Option<LevelStatus> {
    if !is_active() {
        return None;
    }
    with(|state| {
        let level = state.levels.last().filter(|level| level.guid == guid)?;
        Some(LevelStatus {
            segments: state.segments.len() - level.first,
            is_cancelled: state.is_cancelled(level),
        })
    })
}

/// Begins a distributable thread. Returns its place.
///
/// # Errors
/// `IMP_LIMIT` if the thread has too many within each other.
pub(super) fn enter(new: NewLevel<'_>) -> Result<LevelPlace, SystemException> {
    with(|state| state.enter(new))
}

/// Ends the innermost distributable thread, whose segments have ended.
pub(super) fn leave() {
    with(State::leave);
}

/// Begins a segment of the innermost distributable thread. Returns its serial number.
pub(super) fn push(
    name: &str,
    parameter: Option<SchedulingParameter>,
    implicit: Option<SchedulingParameter>,
    before: Option<PriorityBefore>,
) -> u64 {
    with(|state| {
        let serial = state.next_serial;
        state.next_serial += 1;
        state.segments.push(Segment {
            name_at: state.names.len(),
            parameter,
            implicit,
            before,
            serial,
        });
        state.names.push_str(name);
        state.note_context();
        serial
    })
}

/// Whether the segment of that serial number is the innermost one.
pub(super) fn is_innermost(serial: u64) -> bool {
    let is_it = |state: &mut State| {
        let segment = state.innermost();
        segment.is_some_and(|segment| segment.serial == serial)
    };
    is_active() && with(is_it)
}

/// Whether the innermost segment has this name; `None` if there is none.
pub(super) fn is_named(name: &str) -> Option<bool> {
    with(|state| {
        let at = state.innermost()?.name_at;
        Some(&state.names[at..] == name)
    })
}

/// Replaces the parameters of the innermost segment.
pub(super) fn update(
    parameter: Option<SchedulingParameter>,
    implicit: Option<SchedulingParameter>,
    before: Option<PriorityBefore>,
) {
    with(|state| {
        if let Some(segment) = state.segments.last_mut() {
            segment.parameter = parameter;
            segment.implicit = implicit;
            // The outer priority is what returns at the end.
            segment.before = segment.before.or(before);
            state.note_context();
        }
    });
}

/// Ends the innermost segment, and the distributable thread with its last one.
pub(super) fn pop() -> Option<EndedSegment> {
    let ended = with(|state| {
        let level = state.levels.last()?;
        let (guid, first, is_hosted) = (level.guid, level.first, level.is_hosted);
        let segment = *state.innermost()?;
        state.segments.pop();
        let mut name = std::mem::take(&mut state.ended_name);
        name.clear();
        name.push_str(&state.names[segment.name_at..]);
        state.names.truncate(segment.name_at);
        let was_outermost = state.segments.len() == first && !is_hosted;
        let outer = state.present().and_then(|present| present.parameter);
        state.note_context();
        Some(EndedSegment {
            guid,
            name,
            outer,
            was_outermost,
            before: segment.before,
        })
    })?;
    if ended.was_outermost {
        leave();
    }
    Some(ended)
}

/// Returns the names of the segments of the innermost distributable thread here, innermost first.
pub(super) fn names() -> Vec<String> {
    with(|state| {
        let first = state.levels.last().map_or(0, |level| level.first);
        let mut end = state.names.len();
        let segments = state.segments[first..].iter().rev();
        let each = segments.map(|segment| {
            let name = state.names[segment.name_at..end].to_owned();
            end = segment.name_at;
            name
        });
        each.collect()
    })
}

/// Ends all segments of the innermost distributable thread here, which was cancelled, and the
/// thread itself if it began here. The scheduler is told once. Returns the exception.
#[cold]
pub(super) fn unwind(completed: CompletionStatus) -> SystemException {
    unwind_by(completed, true)
}

/// Unwinds as [`unwind`] does. The thread keeps its priority unless the segments `restore` it.
#[cold]
pub(super) fn unwind_by(completed: CompletionStatus, restore: bool) -> SystemException {
    let Some(present) = present() else {
        return cancelled(completed);
    };
    let mut is_left = false;
    while !is_left && status(present.guid).is_some_and(|status| status.segments > 0) {
        let Some(ended) = pop() else { break };
        is_left = ended.was_outermost;
        if restore {
            ended.restore(&present.core);
        }
        ended.keep();
    }
    let is_told = is_left || with(|state| state.levels.last_mut().is_some_and(Level::tell));
    if is_told {
        present.core.scheduling.scheduler().cancel(present.guid);
    }
    cancelled(completed)
}

/// Marks the innermost distributable thread as cancelled, if it is this one.
pub(super) fn mark_cancelled_if(guid: Guid) {
    with(|state| {
        if state.levels.last().is_some_and(|level| level.guid == guid) {
            state.record.0[state.levels.len() - 1].mark();
        }
    });
}

impl Level {
    /// Notes that the scheduler is told of the cancellation. Returns `false` if it was told.
    fn tell(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }
}

impl State {
    #[cold]
    #[inline(never)]
    fn new() -> Self {
        Self {
            record: RecordOwner::new(),
            levels: Vec::with_capacity(LEVELS),
            segments: Vec::with_capacity(USUAL_SEGMENTS),
            names: String::with_capacity(USUAL_NAMES),
            ended_name: String::with_capacity(USUAL_NAMES),
            next_serial: 0,
            entered: 0,
        }
    }

    fn enter(&mut self, new: NewLevel<'_>) -> Result<LevelPlace, SystemException> {
        let level = self.levels.len();
        if level == LEVELS {
            return Err(TOO_DEEP);
        }
        let name = record::name_of(new.core.number, new.guid);
        self.entered += 1;
        let activity = self.record.0[level].begin(self.entered, name, new.origin);
        self.levels.push(Level {
            core: new.core.clone(),
            guid: new.guid,
            activity,
            is_hosted: new.origin.is_some(),
            first: self.segments.len(),
            parameter: new.parameter,
            implicit: new.implicit,
            hops: new.hops,
            is_told: false,
        });
        self.note_context();
        Ok(LevelPlace {
            record: self.record.0.clone(),
            level,
            activity,
            changes: CHANGES.get(),
        })
    }

    /// The place of the innermost distributable thread.
    fn place(&self, innermost: &Level) -> LevelPlace {
        LevelPlace {
            record: self.record.0.clone(),
            level: self.levels.len() - 1,
            activity: innermost.activity,
            changes: CHANGES.get(),
        }
    }

    fn leave(&mut self) {
        if let Some(level) = self.levels.last() {
            let outer = self.levels.len() - 1;
            self.record.0[outer].end(level.activity);
            self.levels.truncate(outer);
        }
        self.note_context();
    }

    /// Sets the constraint of the calls that this thread makes now, after a change.
    fn note_context(&self) {
        let level = self.levels.last();
        CHANGES.set(CHANGES.get() + 1);
        IS_ACTIVE.set(level.is_some());
        // Most upcalls make no call, and do not need it.
        set_of_thread(level.is_some(), || {
            let found = STATE.try_with(|state| state.borrow().as_ref()?.constraint());
            found.ok().flatten()
        });
    }

    /// The constraint of the calls that this thread makes now.
    fn constraint(&self) -> Option<Constraint> {
        let level = self.levels.last()?;
        let parameter = match self.innermost() {
            Some(segment) => &segment.parameter,
            None => &level.parameter,
        };
        Some(constraint_of(level.guid, level.hops, parameter.as_ref()))
    }

    fn is_cancelled(&self, innermost: &Level) -> bool {
        let place = &self.record.0[self.levels.len() - 1];
        place.is_cancelled(innermost.activity)
    }

    /// The parameter and the implicit one of the innermost distributable thread.
    fn parameters(
        &self,
        innermost: &Level,
    ) -> (Option<SchedulingParameter>, Option<SchedulingParameter>) {
        match self.innermost() {
            Some(segment) => (segment.parameter, segment.implicit),
            None => (innermost.parameter, innermost.implicit),
        }
    }

    /// The innermost segment of the innermost distributable thread.
    fn innermost(&self) -> Option<&Segment> {
        let first = self.levels.last()?.first;
        self.segments[first..].last()
    }

    fn present(&self) -> Option<Present> {
        let level = self.levels.last()?;
        let (parameter, implicit) = self.parameters(level);
        Some(Present {
            core: level.core.clone(),
            guid: level.guid,
            parameter,
            implicit,
            hops: level.hops,
            is_cancelled: self.is_cancelled(level),
        })
    }
}

/// The exception of a distributable thread that was cancelled.
pub(super) const fn cancelled(completed: CompletionStatus) -> SystemException {
    SystemException::new(SystemExceptionKind::ThreadCancelled, 0, completed)
}

/// The segments of a thread for which memory is allocated from the start.
const USUAL_SEGMENTS: usize = 16;
/// The octets of their names.
const USUAL_NAMES: usize = 512;
pub(super) const NO_SEGMENT: SystemException = SystemException::no(
    SystemExceptionKind::BadInvOrder,
    minor::NO_SCHEDULING_SEGMENT,
);
const TOO_DEEP: SystemException = SystemException::no(
    SystemExceptionKind::ImpLimit,
    minor::TOO_MANY_DISTRIBUTABLE_THREADS,
);
