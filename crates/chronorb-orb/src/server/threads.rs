//! The threads of a lane: how they are made, wait, find work and end.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb_giop::{MessageType, SystemException, SystemExceptionKind};
use chronorb_rt::{Backoff, Deadline, Key, Monotonic, ThreadBuilder, thread_id};
use chronorb_transport::Event;

use super::at::At;
use super::lane::setup::set_lane_of_thread;
use super::lane::{Lane, Work};
use super::scheduler::PoolScheduler;
use super::strategy::{LaneStrategy, Part};
use super::watch::ThreadWatch;
use super::worker::Worker;
use crate::core::Core;
use crate::failure::because;
use crate::incident::Incident;
use crate::observe::Activity;
use crate::room::has_memory_for;

/// Starts the threads of a lane, and of those behind it. Those that were started before one could not be are to be
/// stopped by the caller.
pub(super) fn start(core: &Arc<Core>, lane: &Arc<Lane>) -> Result<(), SystemException> {
    // This thread counts too until all others are there, so that the lane cannot end before; for
    // the lanes behind it, the lane itself does.
    for lane in std::iter::once(lane).chain(lane.behind()) {
        core.server.lane_started();
        lane.running.fetch_add(1, Ordering::AcqRel);
    }
    // Nothing is read for a lane before it has its threads.
    let mut all = lane.behind().iter().chain([lane]);
    let started = all.try_for_each(|lane| start_static(core, lane));
    if started.is_ok() {
        lane.tell_started();
        lane.behind().iter().for_each(|lane| lane.tell_started());
    }
    lane.leave_one(core);
    started
}

fn start_static(core: &Arc<Core>, lane: &Arc<Lane>) -> Result<(), SystemException> {
    let threads = lane.setup().static_threads;
    let parts = lane.strategy().parts(threads, lane.has_doors());
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
    lane: &Arc<Lane>,
    part: Part,
) -> Result<(), SystemException> {
    let setup = lane.setup();
    // The kernel keeps 15 octets of it: the lane comes first.
    let name = match part {
        Part::Reader | Part::Acceptor => format!("{}.io {}", setup.name, core.config.orb_id),
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
    let worker = Worker::new(core, lane, watch);
    lane.running.fetch_add(1, Ordering::AcqRel);
    let spawned = ThreadBuilder::new(name)
        .scheduling(setup.scheduling)
        .stack_size(setup.stack_size)
        .prefault_stack(true)
        .spawn(move || run(worker, part));
    spawned.map(drop).map_err(|error| {
        lane.leave_one(core);
        no_thread(lane, &error)
    })
}

/// Says once for each lane why a thread cannot be had: one on demand is asked for again with each
/// request.
fn no_thread(lane: &Lane, why: &dyn fmt::Display) -> SystemException {
    let name = format_args!("lane {}", lane.setup().name);
    let detail = format_args!("no thread: {why}");
    if !lane.warned.swap(true, Ordering::Relaxed) {
        let incidents = &lane.incidents;
        incidents.tell(Incident::FailedLane, &name, 0, &detail);
    }
    let exception = SystemException::no(SystemExceptionKind::NoResources, 0);
    because(exception, format_args!("{name}: {detail}"))
}

fn run(mut worker: Worker, part: Part) {
    let (core, lane) = (worker.core().clone(), worker.lane().clone());
    set_lane_of_thread(&core, lane.setup());
    let _leaving = Leaving(&core, &lane);
    let watch = worker.watch().clone();
    watch.tid.store(thread_id(), Ordering::Relaxed);
    lane.watch().enter(watch);
    match (lane.strategy(), part) {
        (_, Part::Acceptor) => accept_for_others(&worker, &lane),
        (_, Part::Attendant(key)) => {
            worker.become_stayer();
            worker.attend(&lane, key);
        }
        (LaneStrategy::Scheduled(scheduler), Part::Reader) => {
            read_for_others(&mut worker, &lane, scheduler);
        }
        (LaneStrategy::Scheduled(scheduler), part) => {
            serve_as_member(&mut worker, &lane, scheduler, part);
        }
        (_, _) => serve_alone(&mut worker, &lane),
    }
    lane.watch().leave(worker.watch());
}

/// Takes a thread out of its lane, however it ends.
struct Leaving<'w>(&'w Core, &'w Lane);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.1.leave_one(self.0);
    }
}

/// Leads, follows and serves; whichever thread the kernel wakes.
fn serve_alone(worker: &mut Worker, lane: &Lane) {
    worker.become_stayer();
    loop {
        worker.watch().set(Activity::Waiting);
        match lane.next_work(None, false) {
            Work::Serve { key, event } => worker.serve(lane, key, event),
            Work::Resume => worker.resume(lane),
            Work::Nothing => {}
            Work::Stop => return,
        }
    }
}

/// Takes in connections, starts their threads, and sends what slow peers did not take at once.
fn accept_for_others(worker: &Worker, lane: &Arc<Lane>) {
    loop {
        worker.watch().set(Activity::Waiting);
        match lane.next_work(None, false) {
            Work::Serve { key, event } => look_after(worker.core(), lane, key, event),
            // Nothing is parked there.
            Work::Resume | Work::Nothing => {}
            Work::Stop => return,
        }
    }
}

fn look_after(core: &Arc<Core>, lane: &Arc<Lane>, key: Key, event: Event) {
    let Some(connection) = lane.connections.get(key) else {
        return;
    };
    let at = At::new(lane, &connection, key);
    if !connection.set_attended() {
        at.flush(event);
    } else if !at.disarm() || start_one(core, lane, Part::Attendant(key)).is_err() {
        // In order, so that the peer knows that nothing was processed.
        connection.say_goodbye(MessageType::CloseConnection);
        at.end();
    }
}

/// Reads, and never dispatches.
fn read_for_others(worker: &mut Worker, lane: &Lane, scheduler: &PoolScheduler) {
    loop {
        worker.watch().set(Activity::Waiting);
        match lane.next_work(None, false) {
            Work::Serve { key, event } => worker.serve(lane, key, event),
            Work::Resume => worker.resume(lane),
            Work::Nothing => {}
            Work::Stop => return,
        }
        // A permit that no request used goes back.
        worker.give_permit_back(scheduler);
    }
}

/// Serves the requests that are assigned to it; as a leader, those that it reads too.
fn serve_as_member(worker: &mut Worker, lane: &Arc<Lane>, scheduler: &PoolScheduler, part: Part) {
    let crew = scheduler.crew(lane.index());
    let mut backoff = Backoff::new();
    let member = loop {
        match crew.enlist(thread_id()) {
            Some(member) => break member,
            // There is room for all, once one that has retired is gone.
            None => backoff.wait(),
        }
    };
    worker.become_member(member);
    if let Some(kick) = scheduler.kick() {
        kick.block();
    }
    let mut idle_since = Monotonic::now();
    loop {
        let mut work = Work::Nothing;
        worker.watch().set(Activity::Waiting);
        if crew.rest(member) {
            let patience = scheduler.patience(lane.index());
            match part {
                Part::Leader => {
                    work = lane.next_work(patience, scheduler.kick().is_some());
                }
                // Whoever stops the lane wakes those that rest by then.
                _ if lane.is_stopping() => {}
                _ => crew.park(member, Deadline::after(patience.unwrap_or(LOOK_AGAIN))),
            }
        }
        if worker.rise(scheduler) {
            // What is assigned comes first; somebody else reads on.
            match work {
                Work::Serve { key, event } => lane.put_back(key, event),
                Work::Resume => lane.ring(),
                Work::Stop | Work::Nothing => {}
            }
            if !matches!(work, Work::Stop) {
                work = Work::Nothing;
            }
        }
        let mut idle = true;
        while let Some(request) = crew.take_assigned() {
            worker.serve_queued(request);
            worker.give_permit_back(scheduler);
            idle = false;
        }
        worker.be_lowered();
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
            && crew.retire()
        {
            break;
        }
    }
    crew.leave(member);
}

/// How often a thread that serves what others read looks whether it is to end, without being woken.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
