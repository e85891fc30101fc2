//! The threads of a lane: how they start, wait, find work and end.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb_giop::{MessageType, SystemException, SystemExceptionKind};
use chronorb_rt::{Backoff, Deadline, Key, Monotonic, ThreadBuilder, thread_id};
use chronorb_transport::Event;

use super::at::At;
use super::growth::{Growth, GrowthStep};
use super::lane::{ServerLane, Work};
use super::scheduler::PoolScheduler;
use super::strategy::{LaneStrategy, ThreadPart};
use super::watch::ThreadWatch;
use super::worker::Worker;
use crate::core::Core;
use crate::failure::because;
use crate::incident::Incident;
use crate::lanes::set_lane_of_thread;
use crate::observe::Activity;
use crate::room::has_memory_for;

/// Starts the threads of a lane and of the lanes that it serves. After an error, the caller stops
/// those that were started.
pub(super) fn start(core: &Arc<Core>, lane: &Arc<ServerLane>) -> Result<(), SystemException> {
    // The calling thread counts too until all others run, so that the lane cannot end before; a
    // lane in turn counts as a thread of the lanes that it serves.
    for lane in std::iter::once(lane).chain(&lane.served_lanes) {
        core.server().lane_started();
        lane.running.fetch_add(1, Ordering::AcqRel);
    }
    // No request is read for a lane before its threads have started.
    let mut all = lane.served_lanes.iter().chain([lane]);
    let started = all.try_for_each(|lane| start_static(core, lane));
    if started.is_ok() {
        lane.report_started();
        lane.served_lanes
            .iter()
            .for_each(|lane| lane.report_started());
    }
    lane.leave_one(core);
    started
}

fn start_static(core: &Arc<Core>, lane: &Arc<ServerLane>) -> Result<(), SystemException> {
    let threads = lane.setup.static_threads;
    let parts = lane.strategy.parts(threads, lane.reads());
    let mut parts = parts
        .into_iter()
        .flat_map(|(part, threads)| (0..threads).map(move |_| part));
    parts.try_for_each(|part| start_one(core, lane, part))
}

/// Starts one more thread of a lane that is not ending.
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "once for each thread"
)]
pub(super) fn start_one(
    core: &Arc<Core>,
    lane: &Arc<ServerLane>,
    part: ThreadPart,
) -> Result<(), SystemException> {
    let setup = &lane.setup;
    // The kernel keeps only 15 bytes of it, so the lane comes first.
    let name = match part {
        ThreadPart::Reader | ThreadPart::Acceptor => {
            format!("{}.io {}", setup.name, core.config.orb_id)
        }
        _ => format!(
            "{}.{} {}",
            setup.name,
            lane.next_number(),
            core.config.orb_id
        ),
    };
    if !has_memory_for(core.config.arena_size) {
        return Err(no_thread(lane, &"no memory for its arena (-ORBArenaSize)"));
    }
    let watch = Arc::new(ThreadWatch::new(name.clone()));
    let (for_core, for_lane) = (core.clone(), lane.clone());
    lane.running.fetch_add(1, Ordering::AcqRel);
    let builder = ThreadBuilder::new(name)
        .scheduling(setup.scheduling)
        .stack_size(setup.stack_size)
        .prefault_stack(true);
    #[cfg(feature = "schedule")]
    let builder = match setup.cpu {
        Some(cpu) => builder.affinity(&[cpu as usize]),
        None => builder,
    };
    let spawned = builder.spawn(move || run(&for_core, &for_lane, watch, part));
    spawned.map(drop).map_err(|error| {
        lane.leave_one(core);
        no_thread(lane, &error)
    })
}

/// Reports once for each lane why a thread cannot be started, because threads on demand are tried
/// again with each request.
fn no_thread(lane: &ServerLane, why: &dyn fmt::Display) -> SystemException {
    let name = format_args!("lane {}", lane.setup.name);
    let detail = format_args!("no thread: {why}");
    if !lane.warned.swap(true, Ordering::Relaxed) {
        let incidents = &lane.incidents;
        incidents.tell(Incident::FailedLane, &name, 0, &detail);
    }
    let exception = SystemException::no(SystemExceptionKind::NoResources, 0);
    because(exception, format_args!("{name}: {detail}"))
}

fn run(core: &Arc<Core>, lane: &Arc<ServerLane>, watch: Arc<ThreadWatch>, part: ThreadPart) {
    set_lane_of_thread(core.number, lane.setup.id, lane.setup.priority);
    let _guard = ExitGuard(core, lane);
    watch.tid.store(thread_id(), Ordering::Relaxed);
    lane.watch.enter(watch.clone());
    // After the thread is known to its lane, because touching the arena takes a while.
    let mut worker = Worker::new(core, lane, watch);
    match (&lane.strategy, part) {
        (_, ThreadPart::Acceptor) => accept_for_others(&worker, lane),
        (_, ThreadPart::Connection(key)) => {
            worker.become_stayer();
            worker.serve_connection(lane, key);
        }
        (LaneStrategy::Scheduled(scheduler), ThreadPart::Reader) => {
            read_for_others(&mut worker, lane, scheduler);
        }
        (LaneStrategy::Scheduled(scheduler), part) => {
            serve_as_member(&mut worker, lane, scheduler, part);
        }
        (_, _) => {
            worker.become_stayer();
            serve_as_leader(&mut worker, lane);
        }
    }
    lane.watch.leave(&worker.watch);
}

/// A guard that removes a thread from its lane, however the thread ends.
struct ExitGuard<'w>(&'w Core, &'w ServerLane);

impl Drop for ExitGuard<'_> {
    fn drop(&mut self) {
        self.1.leave_one(self.0);
    }
}

/// Reads the requests of the lane for its dispatchers.
fn read_for_others(worker: &mut Worker, lane: &ServerLane, scheduler: &PoolScheduler) {
    loop {
        worker.watch.set(Activity::Waiting);
        match lane.next_work(None, false, || false) {
            Work::Serve { key, event } => worker.serve(lane, key, event),
            Work::Resume => worker.resume(lane),
            Work::Nothing => {}
            Work::Stop => return,
        }
        // A permit that no request used goes back.
        worker.give_permit_back(scheduler);
    }
}

/// Serves the events of the lane, of which the kernel gives each to one of its threads, until the
/// lane ends or has a thread too many.
fn serve_as_leader(worker: &mut Worker, lane: &Arc<ServerLane>) {
    let growth = lane.strategy.growth();
    if let Some(growth) = growth {
        growth.arrive();
    }
    let mut idle_since = None;
    loop {
        worker.watch.set(Activity::Waiting);
        let patience = growth.and_then(Growth::patience);
        let idle_until =
            patience.map(|patience| *idle_since.get_or_insert_with(Monotonic::now) + patience);
        let core = &worker.core;
        match lane.next_work(patience, false, || grow(core, lane)) {
            Work::Serve { key, event } => worker.serve(lane, key, event),
            Work::Resume => worker.resume(lane),
            Work::Nothing => {
                if idle_until.is_some_and(|until| Monotonic::now() >= until) {
                    if lane.shrink() {
                        return;
                    }
                    idle_since = None;
                }
                continue;
            }
            Work::Stop => return,
        }
        idle_since = None;
    }
}

/// Starts another thread for a lane whose last one leaves the reactor. Returns whether a thread
/// will come there.
#[cold]
fn grow(core: &Arc<Core>, lane: &Arc<ServerLane>) -> bool {
    let Some(growth) = lane.strategy.growth() else {
        return false;
    };
    match growth.step() {
        GrowthStep::UnderWay => true,
        GrowthStep::AtBound => false,
        GrowthStep::Start => {
            let started = start_one(core, lane, ThreadPart::Leader).is_ok();
            if !started {
                growth.give_up();
            }
            started
        }
    }
}

/// Accepts connections, starts their threads, and sends octets that slow peers have left.
fn accept_for_others(worker: &Worker, lane: &Arc<ServerLane>) {
    loop {
        worker.watch.set(Activity::Waiting);
        match lane.next_work(None, false, || false) {
            Work::Serve { key, event } => start_or_flush(&worker.core, lane, key, event),
            // No request is parked at this lane.
            Work::Resume | Work::Nothing => {}
            Work::Stop => return,
        }
    }
}

/// Starts the thread of a new connection; of another, sends octets that its peer has left.
fn start_or_flush(core: &Arc<Core>, lane: &Arc<ServerLane>, key: Key, event: Event) {
    let Some(connection) = lane.connections.get(key) else {
        return;
    };
    let at = At::new(lane, &connection, key);
    if !connection.set_has_thread() {
        at.flush(event);
    } else if !at.disarm() || start_one(core, lane, ThreadPart::Connection(key)).is_err() {
        // In order, so that the peer knows that no request was processed.
        connection.say_goodbye(MessageType::CloseConnection);
        at.end();
    }
}

/// Serves assigned requests; a leader also serves those that it reads.
fn serve_as_member(
    worker: &mut Worker,
    lane: &Arc<ServerLane>,
    scheduler: &PoolScheduler,
    part: ThreadPart,
) {
    let workers = scheduler.workers(lane.index());
    let mut backoff = Backoff::new();
    let member = loop {
        match workers.enlist(thread_id()) {
            Some(member) => break member,
            // There is room once the thread that has retired has left.
            None => backoff.wait(),
        }
    };
    worker.member = Some(member);
    if let Some(kick) = scheduler.kick {
        kick.block();
    }
    let mut idle_since = Monotonic::now();
    loop {
        let mut work = Work::Nothing;
        worker.watch.set(Activity::Waiting);
        if workers.rest(member) {
            let patience = scheduler.patience(lane.index());
            match part {
                ThreadPart::Leader => {
                    work = lane.next_work(patience, scheduler.kick.is_some(), || false);
                }
                // `stop` wakes the members that are idle by then.
                _ if lane.is_stopping() => {}
                _ => workers.park(member, Deadline::after(patience.unwrap_or(LOOK_AGAIN))),
            }
        }
        if worker.rise(scheduler) {
            // Assigned requests come first; another thread reads on.
            match work {
                Work::Serve { key, event } => lane.put_back(key, event),
                Work::Resume => lane.handle.bell.notify(),
                Work::Stop | Work::Nothing => {}
            }
            if !matches!(work, Work::Stop) {
                work = Work::Nothing;
            }
        }
        let mut idle = true;
        while let Some(request) = workers.take_assigned() {
            worker.serve_queued(scheduler.most_urgent(request));
            worker.give_permit_back(scheduler);
            idle = false;
        }
        worker.restore_priority();
        match work {
            Work::Serve { key, event } => {
                worker.serve(lane, key, event);
                worker.give_permit_back(scheduler);
                idle = false;
            }
            Work::Resume => {
                worker.resume(lane);
                worker.give_permit_back(scheduler);
                idle = false;
            }
            Work::Stop => break,
            Work::Nothing if lane.is_stopping() => break,
            Work::Nothing => {}
        }
        let now = Monotonic::now();
        if !idle {
            idle_since = now;
        } else if let Some(patience) = scheduler.patience(lane.index())
            && now - idle_since >= patience
            && workers.retire()
        {
            break;
        }
    }
    workers.leave(member);
}

/// The interval at which an idle dispatcher checks whether it is to end, without being woken.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
