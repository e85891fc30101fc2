//! Dynamic scheduling: distributable threads, their segments, and schedulers.
//!
//! Source: Real-Time CORBA 1.2, chapter 3 (`RTScheduling`).
//!
//! A distributable thread begins with a scheduling segment ([`SchedulingCurrent`]). Calls carry it
//! to other processes and back, with its identity, its urgency, and the segments in which the
//! servants put it. A [`Scheduler`] says what parameters mean; [`FixedPriorityScheduler`] is the
//! default.
//!
//! ```
//! use std::time::Duration;
//!
//! use chronorb_orb::Orb;
//! use chronorb_orb::rtcorba::Priority;
//! use chronorb_orb::rtscheduling::{DistributableThread, SchedulingParameter};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let orb = Orb::init(&mut Vec::new())?;
//! let current = orb.scheduling_current();
//! let base_priority = Priority::new(0).ok_or("negative")?;
//! let parameter = SchedulingParameter::FixedPriority { base_priority };
//! let segment = current.segment("navigate", Some(&parameter), None)?;
//! let thread = current.lookup(current.id()?);
//! assert!(thread.is_some());
//! assert_eq!(current.current_scheduling_segment_names()?, ["navigate"]);
//! drop(segment);
//! assert!(current.id().is_err(), "the outermost segment has ended");
//! # orb.shutdown(true)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Errors of these operations
//!
//! | exception | minor | cause |
//! |---|---|---|
//! | `BAD_INV_ORDER` | chronorb 5 | the calling thread is in no segment of this ORB |
//! | `BAD_PARAM` | chronorb 2 | another segment than the named one is the innermost |
//! | `IMP_LIMIT` | chronorb 9 | a thread serves distributable threads within each other, too deeply |
//! | `THREAD_CANCELLED` | 0 | the distributable thread was cancelled; its segments have ended |
//!
//! # Cancelling
//!
//! [`DistributableThread::cancel`] sets a mark. `THREAD_CANCELLED` rises at the thread's next
//! scheduling point: the beginning, update and end of a segment, `spawn`, both ends of a call on
//! both sides, and [`ResourceManager`]s. A thread that waits for a reply is woken at once, with
//! completion `MAYBE`, and sends the cancellation on to the server that it waited for, where the
//! same happens. So it follows the thread to its head, over connections that are known. An
//! exclusive connection ends with that; a shared one goes on. The server reads the cancellation by
//! a thread of its lane that is free; if it has none, the thread goes on until its request has been
//! served.
//!
//! A server heeds a cancellation only from the [origin](crate::quota::Origin) that brought the
//! thread there, by a request for an object of the server that its POA's authorizer permits.

mod current;
mod hop;
mod record;
mod resource;
mod thread;

pub use chronorb_rt::Monotonic;

pub use crate::dynamic_scheduling::{
    EarliestDeadlineScheduler, FixedPriorityScheduler, Guid, LeastLaxityScheduler,
    MaximumUrgencyScheduler, Scheduler, SchedulingParameter, SchedulingPoint,
    UnsupportedSchedulingDiscipline,
};

pub use current::{SchedulingCurrent, SegmentError, SegmentGuard, SpawnThreadError};
pub(crate) use hop::{
    Answer, CallInSegment, HostedThread, begin_call, begin_detached, begin_poll, cancel_hosted,
    cancelling, host, is_in_segment,
};
pub(crate) use record::Interrupt;
pub use resource::{ResourceGuard, ResourceManager};
pub use thread::{DistributableThread, ThreadState};
