//! The parts of the state of a simulation.

use std::collections::VecDeque;

use crate::schedule::Time;
use crate::simulate::cpu::Urgency;
use crate::simulate::link::Packets;
use crate::simulate::program::Point;
use crate::simulate::work::Work;

/// An execution of an operation, or work outside of the file.
#[derive(Debug)]
pub(super) struct OpenFrame {
    /// The job and the operation; `None` for work outside of the file.
    pub(super) of: Option<(usize, usize)>,
    pub(super) cpu: usize,
    /// The lane whose thread executes it.
    pub(super) lane: Option<usize>,
    /// Whether that thread is free at its end.
    pub(super) has_thread: bool,
    pub(super) then: Then,
    pub(super) points: Vec<(Time, Point)>,
    pub(super) next: usize,
    pub(super) done: Time,
    pub(super) base: u64,
    pub(super) urgency: Urgency,
    pub(super) is_ready: bool,
    pub(super) holds: Option<usize>,
}

/// The consequence of the end of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// The reply to a caller, for the call with an index.
    Reply { caller: usize, call: usize },
    /// The step of a transaction after this one.
    Step { step: usize },
    /// The next job of the activity's thread.
    NextJob,
    /// None.
    Nothing,
}

/// The consequence of the arrival of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Delivery {
    /// A request, with the caller that waits and the index of its call.
    Request {
        operation: usize,
        caller: Option<(usize, usize)>,
    },
    /// A reply.
    Reply { caller: usize },
    /// The step of a transaction after this one.
    Step { step: usize },
}

/// A message on a link.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) job: usize,
    pub(super) work: Work,
    pub(super) packets: Packets,
    pub(super) then: Delivery,
}

/// A job of an activity.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) activity: usize,
    pub(super) number: u64,
    pub(super) arrival: Time,
    /// The number of times that each work was done.
    pub(super) done: Vec<u64>,
    /// The independent parts that have not ended.
    pub(super) parts: u64,
}

/// The releases of an activity.
#[derive(Debug, Default)]
pub(super) struct Releases {
    pub(super) next: u64,
    /// The release of the last job.
    pub(super) last: Time,
    /// The threads of the activity; `None` if its lane serves it.
    pub(super) threads: Option<u32>,
    /// The number of them that execute a job.
    pub(super) busy: u32,
    pub(super) waiting: VecDeque<usize>,
}

/// An event. At one instant they happen in this order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Event {
    /// The frame of a processor comes to a point.
    Due { cpu: usize },
    /// A packet was sent, or the traffic outside of the file ends.
    Sent { link: usize, node: usize },
    /// Work outside of the file begins.
    Outside { cpu: usize },
    /// A job of an activity arrives.
    Arrive { activity: usize },
    /// A job is released.
    Release { job: usize },
    /// A request that was late is released.
    Start { frame: usize },
}
