//! Schedulers: what parameters of segments mean, and what applications are told.

use thiserror::Error;

use super::{Guid, SchedulingParameter};
use crate::rtcorba::Priority;

/// A scheduler of distributable threads (`RTScheduling::Scheduler`).
///
/// The ORB calls it on the thread that is scheduled, so its methods must not block. It has no
/// part in the context that travels: the ORB sends the parameter of the segment with each request.
///
/// Linux has no class of threads for laxity or criticality. The schedulers by deadline, laxity and
/// urgency therefore leave threads at their CORBA priorities. Their parameters travel with the
/// requests, for servers whose lanes have the order of the discipline. A scheduler of an
/// application can give a parameter a [priority](Self::priority).
pub trait Scheduler: Send + Sync {
    /// The name of the discipline.
    fn scheduling_discipline_name(&self) -> &str;

    /// Whether the parameter is one of the discipline. The ORB refuses others with
    /// [`UnsupportedSchedulingDiscipline`].
    fn supports(&self, parameter: &SchedulingParameter) -> bool;

    /// The CORBA priority of a thread in a segment with this parameter; `None` to leave it as it
    /// is. The ORB takes it back when the segment ends.
    fn priority(&self, parameter: &SchedulingParameter) -> Option<Priority> {
        let _ = parameter;
        None
    }

    /// A distributable thread begins with this segment.
    fn begin_new_scheduling_segment(
        &self,
        guid: Guid,
        name: &str,
        parameter: Option<&SchedulingParameter>,
        implicit: Option<&SchedulingParameter>,
    ) {
        let _ = (guid, name, parameter, implicit);
    }

    /// A segment begins within another one.
    fn begin_nested_scheduling_segment(
        &self,
        guid: Guid,
        name: &str,
        parameter: Option<&SchedulingParameter>,
        implicit: Option<&SchedulingParameter>,
    ) {
        let _ = (guid, name, parameter, implicit);
    }

    /// The innermost segment has other parameters from now on.
    fn update_scheduling_segment(
        &self,
        guid: Guid,
        name: &str,
        parameter: Option<&SchedulingParameter>,
        implicit: Option<&SchedulingParameter>,
    ) {
        let _ = (guid, name, parameter, implicit);
    }

    /// The outermost segment of a distributable thread ends, and with it the thread.
    fn end_scheduling_segment(&self, guid: Guid, name: &str) {
        let _ = (guid, name);
    }

    /// A segment within another one ends, whose parameter is in effect again.
    fn end_nested_scheduling_segment(
        &self,
        guid: Guid,
        name: &str,
        outer: Option<&SchedulingParameter>,
    ) {
        let _ = (guid, name, outer);
    }

    /// A distributable thread passes a point of a call.
    fn at_point(&self, point: SchedulingPoint, guid: Guid) {
        let _ = (point, guid);
    }

    /// A distributable thread was cancelled, and its segments here have ended without further
    /// calls. Called once for each thread of the process that had a part in it.
    fn cancel(&self, guid: Guid) {
        let _ = guid;
    }
}

/// A point of a call at which a [`Scheduler`] is told, named as the operations of the standard.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum SchedulingPoint {
    /// The client is about to send a request.
    SendRequest,
    /// The client is about to fetch the reply to an asynchronous call.
    SendPoll,
    /// The client has a reply.
    ReceiveReply,
    /// The client has an exception.
    ReceiveException,
    /// The client has sent a request without waiting for the reply, or has no reply for another
    /// reason.
    ReceiveOther,
    /// The server has read a request.
    ReceiveRequest,
    /// The server is about to send a reply.
    SendReply,
    /// The server is about to send an exception.
    SendException,
    /// The server is about to forward the request.
    SendOther,
}

/// `RTScheduling::Current::UNSUPPORTED_SCHEDULING_DISCIPLINE`: the ORB's scheduler does not support
/// the parameter. Nothing has changed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the scheduler does not support parameters of this discipline")]
pub struct UnsupportedSchedulingDiscipline;

/// Schedules by fixed priorities (`FP_Scheduling`): a thread has the base priority of its segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedPriorityScheduler;

impl Scheduler for FixedPriorityScheduler {
    fn scheduling_discipline_name(&self) -> &str {
        "FP"
    }

    fn supports(&self, parameter: &SchedulingParameter) -> bool {
        matches!(parameter, SchedulingParameter::FixedPriority { .. })
    }

    fn priority(&self, parameter: &SchedulingParameter) -> Option<Priority> {
        match parameter {
            SchedulingParameter::FixedPriority { base_priority } => Some(*base_priority),
            _ => None,
        }
    }
}

/// Schedules by deadlines (`EDF_Scheduling`), where requests wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarliestDeadlineScheduler;

impl Scheduler for EarliestDeadlineScheduler {
    fn scheduling_discipline_name(&self) -> &str {
        "EDF"
    }

    fn supports(&self, parameter: &SchedulingParameter) -> bool {
        matches!(parameter, SchedulingParameter::EarliestDeadline { .. })
    }
}

/// Schedules by laxity (`LLF_Scheduling`), where requests wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastLaxityScheduler;

impl Scheduler for LeastLaxityScheduler {
    fn scheduling_discipline_name(&self) -> &str {
        "LLF"
    }

    fn supports(&self, parameter: &SchedulingParameter) -> bool {
        matches!(parameter, SchedulingParameter::LeastLaxity { .. })
    }
}

/// Schedules by criticality, then laxity (`MUF_Scheduling`), where requests wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaximumUrgencyScheduler;

impl Scheduler for MaximumUrgencyScheduler {
    fn scheduling_discipline_name(&self) -> &str {
        "MUF"
    }

    fn supports(&self, parameter: &SchedulingParameter) -> bool {
        matches!(parameter, SchedulingParameter::MaximumUrgency { .. })
    }
}
