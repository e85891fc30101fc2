//! Lanes for work of the application: threads of one priority with a bounded queue.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind};
use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex, PiMutexGuard, Scheduling, ThreadBuilder};

use super::real_time::RealTime;
use super::{Priority, set_request_priority};
use crate::failure::{DISCARDED, because};
use crate::incident::{Incident, Incidents};

/// A lane for work of the application: threads of one CORBA priority that take items from a bounded
/// queue, in order.
///
/// A pool's lanes serve requests; this one serves what threads of the process
/// [post](Self::post) to it, and shares no thread, queue or lock with them. Calls that the work
/// makes have the priority of the lane. Made by [`RtOrb::start_work_lane`][start].
///
/// [start]: super::RtOrb::start_work_lane
///
/// Dropping it ends the threads after their present work. Items that wait are dropped.
///
/// # Example
/// ```no_run
/// use chronorb_orb::Orb;
/// use chronorb_orb::rtcorba::{Priority, WorkLaneSpec};
///
/// # fn f(orb: &Orb) -> Result<(), Box<dyn std::error::Error>> {
/// let spec = WorkLaneSpec {
///     priority: Priority::new(20_000),
///     ..WorkLaneSpec::new("alarms")
/// };
/// let lane = orb.rt().start_work_lane(&spec, |alarm: u32| println!("alarm {alarm}"))?;
/// if let Err(refused) = lane.post(7) {
///     println!("{}: alarm {} waits for better times", refused.exception, refused.item);
/// }
/// # Ok(())
/// # }
/// ```
pub struct WorkLane<T: Send + 'static> {
    queue: Arc<WorkQueue<T>>,
}

/// The parameters of a [`WorkLane`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WorkLaneSpec {
    /// The name of its threads.
    pub name: String,
    /// The priority of its threads. `None`, the default, is ordinary scheduling.
    pub priority: Option<Priority>,
    /// The number of its threads, at least 1. With one, which is the default, items are done in the
    /// order in which they were posted.
    pub threads: u32,
    /// The most items that wait, at least 1. By default 1,024.
    pub capacity: usize,
}

/// An item that a lane does not take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RefusedWork<T> {
    /// The item.
    pub item: T,
    /// `TRANSIENT` (OMG minor 1): as many items wait as may.
    pub exception: SystemException,
}

struct WorkQueue<T> {
    /// Locked for moments only.
    state: PiMutex<WorkState<T>>,
    /// Advances when threads are to look, while one sleeps.
    work: Gate,
    /// Advances when nothing is left to do, while threads wait for that.
    idle: Gate,
    incidents: Arc<Incidents>,
}

struct WorkState<T> {
    items: VecDeque<T>,
    capacity: usize,
    /// The threads that do work.
    busy: u32,
    /// The threads that sleep.
    asleep: u32,
    /// The threads that wait until the lane is idle.
    waiters: u32,
    is_over: bool,
}

impl WorkLaneSpec {
    /// A lane with this name and the defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            priority: None,
            threads: 1,
            capacity: 1024,
        }
    }
}

impl<T: Send + 'static> WorkLane<T> {
    /// Starts a lane, whose incidents go to those of an ORB.
    pub(crate) fn start(
        spec: &WorkLaneSpec,
        real_time: &RealTime,
        incidents: Arc<Incidents>,
        work: impl Fn(T) + Send + Sync + 'static,
    ) -> Result<Self, SystemException> {
        let scheduling = spec.priority.map(|priority| real_time.scheduling(priority));
        let scheduling = scheduling.transpose()?.unwrap_or(Scheduling::OTHER);
        let capacity = spec.capacity.max(1);
        let queue = Arc::new(WorkQueue {
            state: PiMutex::new(WorkState {
                items: VecDeque::with_capacity(capacity),
                capacity,
                busy: 0,
                asleep: 0,
                waiters: 0,
                is_over: false,
            }),
            work: Gate::new(0),
            idle: Gate::new(0),
            incidents,
        });
        // An error drops the lane, which ends the threads that were started.
        let lane = Self { queue };
        let work = Arc::new(work);
        for number in 0..spec.threads.max(1) {
            let (queue, work, priority) = (lane.queue.clone(), work.clone(), spec.priority);
            let started = ThreadBuilder::new(format!("{}.{number}", spec.name))
                .scheduling(scheduling)
                .prefault_stack(true)
                .spawn(move || {
                    set_request_priority(priority);
                    queue.serve(&*work);
                });
            started.map_err(|error| {
                let exception = SystemException::no(SystemExceptionKind::NoResources, 0);
                because(exception, format_args!("{}: no thread: {error}", spec.name))
            })?;
        }
        Ok(lane)
    }

    /// Leaves an item to the threads of the lane. Never waits for them, and allocates nothing.
    ///
    /// # Errors
    /// [`RefusedWork`] with the item where as many wait as may.
    pub fn post(&self, item: T) -> Result<(), RefusedWork<T>> {
        let mut state = self.queue.state.lock();
        if state.items.len() == state.capacity {
            let exception = DISCARDED;
            return Err(RefusedWork { item, exception });
        }
        state.items.push_back(item);
        let wakes = state.asleep > 0;
        drop(state);
        if wakes {
            self.queue.work.advance();
        }
        Ok(())
    }

    /// The number of items that wait.
    pub fn waiting(&self) -> usize {
        self.queue.state.lock().items.len()
    }

    /// Waits until all posted work is done, at most for `limit`. Returns whether it is.
    pub fn flush(&self, limit: Duration) -> bool {
        let deadline = Deadline::after(limit);
        let mut state = self.queue.state.lock();
        loop {
            if state.items.is_empty() && state.busy == 0 {
                return true;
            }
            if deadline.has_passed() {
                return false;
            }
            state.waiters += 1;
            let seen = self.queue.idle.get();
            drop(state);
            self.queue.idle.wait_while(seen, deadline);
            state = self.queue.state.lock();
            state.waiters -= 1;
        }
    }
}

impl<T> WorkQueue<T> {
    /// Does the work of the lane until it ends.
    fn serve(&self, work: &dyn Fn(T)) {
        let mut state = self.state.lock();
        while !state.is_over {
            let Some(item) = state.items.pop_front() else {
                state = self.sleep(state);
                continue;
            };
            state.busy += 1;
            drop(state);
            if catch_unwind(AssertUnwindSafe(|| work(item))).is_err() {
                self.incidents.note(Incident::PanickedApplication, &"", 0);
            }
            state = self.state.lock();
            state.busy -= 1;
        }
    }

    fn sleep<'s>(
        &'s self,
        mut state: PiMutexGuard<'s, WorkState<T>>,
    ) -> PiMutexGuard<'s, WorkState<T>> {
        state.asleep += 1;
        let has_waiters = state.waiters > 0 && state.busy == 0;
        let seen = self.work.get();
        drop(state);
        if has_waiters {
            self.idle.advance();
        }
        let never = Deadline::at(Monotonic::from_nanos(u64::MAX));
        self.work.wait_while(seen, never);
        let mut state = self.state.lock();
        state.asleep -= 1;
        state
    }
}

impl<T: Send + 'static> Drop for WorkLane<T> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.is_over = true;
        let left = std::mem::take(&mut state.items);
        drop(state);
        self.queue.work.advance();
        // Items may do anything when they are dropped.
        drop(left);
    }
}

impl<T: Send + 'static> fmt::Debug for WorkLane<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkLane")
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}
