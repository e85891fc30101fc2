//! The segments of the calling thread, as applications begin and end them.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use chronorb_giop::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, Gate, ThreadBuilder};
use thiserror::Error;

use super::thread::{self, DistributableThread, NewLevel, PriorityBefore};
use super::{Guid, ResourceManager, SchedulingParameter, UnsupportedSchedulingDiscipline};
use crate::core::Core;
use crate::failure::because;
use crate::rtcorba::{Priority, RtMutex, set_request_priority};

/// `RTScheduling::Current`: the distributable thread and the segments of the calling thread.
///
/// A parameter that is not given (nil in the standard) is that of the outer segment.
#[derive(Clone)]
pub struct SchedulingCurrent {
    core: Arc<Core>,
}

/// An error in beginning or updating a segment. Nothing has changed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SegmentError {
    /// The scheduler does not support the parameter.
    #[error(transparent)]
    UnsupportedSchedulingDiscipline(#[from] UnsupportedSchedulingDiscipline),
    /// See [the table](super#errors-of-these-operations); others if the priority of the parameter
    /// cannot be set.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// An error in starting a distributable thread.
pub type SpawnThreadError = SegmentError;

/// A segment that ends when this is dropped, also by a panic.
#[must_use = "the segment ends when the guard is dropped"]
pub struct SegmentGuard {
    core: Arc<Core>,
    serial: u64,
    /// The segment ends on the thread where it began.
    of_this_thread: PhantomData<*const ()>,
}

impl SchedulingCurrent {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Begins a segment. The first one makes the calling thread a distributable thread, and others
    /// are nested.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn begin_scheduling_segment(
        &self,
        name: &str,
        sched_param: Option<&SchedulingParameter>,
        implicit_sched_param: Option<&SchedulingParameter>,
    ) -> Result<(), SegmentError> {
        self.begin(name, sched_param, implicit_sched_param)
            .map(drop)
    }

    /// Begins a segment that ends when the guard is dropped.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn segment(
        &self,
        name: &str,
        sched_param: Option<&SchedulingParameter>,
        implicit_sched_param: Option<&SchedulingParameter>,
    ) -> Result<SegmentGuard, SegmentError> {
        let serial = self.begin(name, sched_param, implicit_sched_param)?;
        Ok(SegmentGuard {
            core: self.core.clone(),
            serial,
            of_this_thread: PhantomData,
        })
    }

    fn begin(
        &self,
        name: &str,
        parameter: Option<&SchedulingParameter>,
        implicit: Option<&SchedulingParameter>,
    ) -> Result<u64, SegmentError> {
        let scheduler = self.core.scheduling.scheduler();
        self.check([parameter, implicit])?;
        let outer = match thread::present_in(&self.core) {
            Ok(present) => Some(present),
            Err(exception) if exception == thread::NO_SEGMENT => None,
            Err(cancelled) => return Err(cancelled.into()),
        };
        let inherited = outer.as_ref();
        let own = parameter.copied();
        let own = own.or_else(|| inherited.and_then(|outer| outer.parameter));
        let onward = implicit.copied();
        let onward = onward.or_else(|| inherited.and_then(|outer| outer.implicit));
        let priority = own.as_ref().and_then(|own| scheduler.priority(own));
        let before = PriorityBefore::change(&self.core, priority)?;
        let guid = match &outer {
            Some(outer) => outer.guid,
            None => {
                let guid = self.core.scheduling.next_guid();
                let entered = self.enter(guid);
                entered.inspect_err(|_| {
                    if let Some(before) = before {
                        before.restore(&self.core);
                    }
                })?;
                guid
            }
        };
        let serial = thread::push(name, own, onward, before);
        let (own, onward) = (own.as_ref(), onward.as_ref());
        if outer.is_some() {
            scheduler.begin_nested_scheduling_segment(guid, name, own, onward);
        } else {
            scheduler.begin_new_scheduling_segment(guid, name, own, onward);
        }
        Ok(serial)
    }

    fn enter(&self, guid: Guid) -> Result<(), SystemException> {
        let entered = thread::enter(NewLevel {
            core: &self.core,
            guid,
            origin: None,
            parameter: None,
            implicit: None,
            hops: 0,
        });
        entered.map(drop)
    }

    /// Replaces the parameters of the innermost segment, which has this name.
    ///
    /// # Errors
    /// [`SegmentError`]: `BAD_INV_ORDER` without a segment, `BAD_PARAM` if the innermost one has
    /// another name.
    pub fn update_scheduling_segment(
        &self,
        name: &str,
        sched_param: Option<&SchedulingParameter>,
        implicit_sched_param: Option<&SchedulingParameter>,
    ) -> Result<(), SegmentError> {
        let scheduler = self.core.scheduling.scheduler();
        let present = thread::present_in(&self.core)?;
        self.check([sched_param, implicit_sched_param])?;
        check_name(name)?;
        let own = sched_param.copied().or(present.parameter);
        let onward = implicit_sched_param.copied().or(present.implicit);
        let priority = own.as_ref().and_then(|own| scheduler.priority(own));
        let before = PriorityBefore::change(&self.core, priority)?;
        thread::update(own, onward, before);
        scheduler.update_scheduling_segment(present.guid, name, own.as_ref(), onward.as_ref());
        Ok(())
    }

    /// Ends the innermost segment, which has this name. The parameter and the priority of the outer
    /// one are in effect again; the end of the outermost one ends the distributable thread.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` without a segment, `BAD_PARAM` if the innermost one has another name,
    /// `THREAD_CANCELLED`.
    pub fn end_scheduling_segment(&self, name: &str) -> Result<(), SystemException> {
        thread::present_in(&self.core)?;
        check_name(name)?;
        end(&self.core, true);
        Ok(())
    }

    /// Starts a distributable thread with one segment, on a new thread of the process.
    ///
    /// The segment has this name and these parameters. A parameter that is not given is the
    /// implicit one of the calling thread. The new thread has the base priority, and a stack of
    /// `stack_size` octets, 0 for the system's default. Its segments end with `start`, also by a
    /// panic, which ends nothing else.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` without a segment; `THREAD_CANCELLED`; `NO_RESOURCES` if the thread cannot
    /// be started; those of the priority, and [`UnsupportedSchedulingDiscipline`].
    pub fn spawn(
        &self,
        start: impl FnOnce() + Send + 'static,
        name: &str,
        sched_param: Option<&SchedulingParameter>,
        implicit_sched_param: Option<&SchedulingParameter>,
        stack_size: u32,
        base_priority: Priority,
    ) -> Result<DistributableThread, SpawnThreadError> {
        let present = thread::present_in(&self.core)?;
        self.check([sched_param, implicit_sched_param])?;
        let own = sched_param.copied().or(present.implicit);
        let onward = implicit_sched_param.copied().or(present.implicit);
        let scheduling = self.core.rt.real_time.scheduling(base_priority)?;
        let mut builder = ThreadBuilder::new(format!("dt {name}")).scheduling(scheduling);
        if stack_size > 0 {
            builder = builder.stack_size(stack_size as usize);
        }
        let guid = self.core.scheduling.next_guid();
        let (current, name) = (self.clone(), name.to_owned());
        let ready = Arc::new(Gate::new(STARTING));
        let started = ready.clone();
        let thread = builder.spawn(move || {
            set_request_priority(Some(base_priority));
            let begun = current.enter(guid).map_err(SegmentError::from);
            let begun = begun.and_then(|()| current.begin_spawned(guid, &name, own, onward));
            started.set(if begun.is_ok() { STARTED } else { FAILED });
            if begun.is_ok() {
                // The hook of the process has reported a panic.
                let _ = catch_unwind(AssertUnwindSafe(start));
                end_all(&current.core, 0, guid, true);
            }
        });
        thread.map_err(|error| {
            let exception = SystemException::no(SystemExceptionKind::NoResources, 0);
            because(exception, format_args!("no distributable thread: {error}"))
        })?;
        ready.wait_while(STARTING, Deadline::after(START_TIME));
        match ready.get() {
            STARTED => Ok(DistributableThread::new(self.core.number, guid)),
            _ => Err(SystemException::no(SystemExceptionKind::NoResources, 0).into()),
        }
    }

    /// Begins the segment of a new distributable thread on its own thread.
    fn begin_spawned(
        &self,
        guid: Guid,
        name: &str,
        own: Option<SchedulingParameter>,
        onward: Option<SchedulingParameter>,
    ) -> Result<(), SegmentError> {
        let scheduler = self.core.scheduling.scheduler();
        let priority = own.as_ref().and_then(|own| scheduler.priority(own));
        let before = PriorityBefore::change(&self.core, priority)?;
        thread::push(name, own, onward, before);
        scheduler.begin_new_scheduling_segment(guid, name, own.as_ref(), onward.as_ref());
        Ok(())
    }

    /// The identity of the distributable thread.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` without a segment.
    pub fn id(&self) -> Result<Guid, SystemException> {
        self.present().map(|present| present.guid)
    }

    /// Finds a distributable thread that is in this ORB now: one that began here, or that a request
    /// has brought here. `None` is for others.
    #[must_use]
    pub fn lookup(&self, id: Guid) -> Option<DistributableThread> {
        DistributableThread::find(self.core.number, id)
    }

    /// The parameter in effect: that of the innermost segment, or of the request.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` without a segment.
    pub fn scheduling_parameter(&self) -> Result<Option<SchedulingParameter>, SystemException> {
        self.present().map(|present| present.parameter)
    }

    /// The parameter of threads that begin with a oneway request, or by [`spawn`](Self::spawn)
    /// without one.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` without a segment.
    pub fn implicit_scheduling_parameter(
        &self,
    ) -> Result<Option<SchedulingParameter>, SystemException> {
        self.present().map(|present| present.implicit)
    }

    /// The names of the segments that began on this thread, innermost first.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` without a segment.
    pub fn current_scheduling_segment_names(&self) -> Result<Vec<String>, SystemException> {
        self.present().map(|_| thread::names())
    }

    /// Makes a mutex whose operations are scheduling points. With a priority ceiling, which is the
    /// base priority of a parameter of fixed priorities, its owner runs at least at that priority.
    ///
    /// # Errors
    /// [`UnsupportedSchedulingDiscipline`] for a parameter that the scheduler does not support.
    pub fn create_resource_manager(
        &self,
        sched_param: Option<&SchedulingParameter>,
    ) -> Result<ResourceManager, UnsupportedSchedulingDiscipline> {
        self.check([sched_param, None])?;
        let scheduler = self.core.scheduling.scheduler();
        let ceiling = sched_param.and_then(|parameter| scheduler.priority(parameter));
        let mutex = RtMutex::inheriting(self.core.number);
        Ok(ResourceManager::new(self.core.clone(), mutex, ceiling))
    }

    fn present(&self) -> Result<thread::Present, SystemException> {
        let present = thread::present();
        let present = present.filter(|present| present.core.number == self.core.number);
        present.ok_or(thread::NO_SEGMENT)
    }

    fn check(
        &self,
        parameters: [Option<&SchedulingParameter>; 2],
    ) -> Result<(), UnsupportedSchedulingDiscipline> {
        let scheduler = self.core.scheduling.scheduler();
        let mut given = parameters.into_iter().flatten();
        if given.all(|parameter| scheduler.supports(parameter)) {
            Ok(())
        } else {
            Err(UnsupportedSchedulingDiscipline)
        }
    }
}

impl Drop for SegmentGuard {
    fn drop(&mut self) {
        // It may have ended by a cancellation.
        if thread::is_innermost(self.serial) {
            end(&self.core, true);
        }
    }
}

impl fmt::Debug for SchedulingCurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulingCurrent").finish_non_exhaustive()
    }
}

impl fmt::Debug for SegmentGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentGuard").finish_non_exhaustive()
    }
}

/// Checks that the innermost segment has a name.
fn check_name(name: &str) -> Result<(), SystemException> {
    match thread::is_named(name) {
        Some(true) => Ok(()),
        Some(false) => Err(WRONG_NAME),
        None => Err(thread::NO_SEGMENT),
    }
}

/// Ends the innermost segment. The thread keeps its priority unless the segment restores it.
fn end(core: &Arc<Core>, restore: bool) {
    let Some(ended) = thread::pop() else {
        return;
    };
    if restore {
        ended.restore(core);
    }
    let scheduler = core.scheduling.scheduler();
    if ended.was_outermost {
        scheduler.end_scheduling_segment(ended.guid, &ended.name);
    } else {
        scheduler.end_nested_scheduling_segment(ended.guid, &ended.name, ended.outer.as_ref());
    }
    ended.keep();
}

/// Ends the segments of the distributable thread `guid` that began after the first `kept` here.
/// Returns their number. After an upcall, which has restored the priority, they do not restore it.
pub(super) fn end_all(core: &Arc<Core>, kept: usize, guid: Guid, restore: bool) -> usize {
    let mut ended = 0;
    while let Some(status) = thread::status(guid)
        && status.segments > kept
    {
        if status.is_cancelled {
            thread::unwind_by(CompletionStatus::Maybe, restore);
            break;
        }
        end(core, restore);
        ended += 1;
    }
    ended
}

const STARTING: u32 = 0;
const STARTED: u32 = 1;
const FAILED: u32 = 2;
/// The longest time until a new thread has begun its segment.
const START_TIME: Duration = Duration::from_secs(30);
const WRONG_NAME: SystemException =
    SystemException::no(SystemExceptionKind::BadParam, minor::WRONG_SEGMENT_NAME);
