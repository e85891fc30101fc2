//! `chronorb lab scheduling`: task sets analysed, simulated, and run on lanes.
//!
//! [`Scheduling`] runs the overload of TAO's scheduling test in the simulator, by four disciplines,
//! and on lanes by fixed priorities. It compares the analysed response times of other sets with
//! those of the simulator and of lanes. It counts the instructions of the run-time scheduler's
//! look-up and of the queues of lanes. It has an operation exceed its budget under each policy for
//! overruns, and serves one lane by arrival and by deadlines. Deadlines travel over two calls, with
//! clocks that are apart. It measures the scheduling service of TAO, distributable threads, and the
//! static scheduling service. Schedule files are analysed, simulated, and run by the ORB.
//!
//! A set on lanes has a server with one processor and a lane for each priority, and a client with
//! a thread for each task. A job is a call that computes for a fixed processor time. Its response
//! is the time from its release to the end of its computing, by the clock of the machine.

mod bounds;
mod claims;
mod client;
mod files;
mod fleet;
mod hops;
mod look_up;
mod nodes;
mod one_lane;
mod outcome;
mod overload;
mod overrun;
mod plan;
mod queue;
mod recompute;
mod report;
mod servers;
mod sets;
mod static_service;
mod tables;
mod threads;

use crate::bench::Cpus;
use crate::error::LabError;
use crate::experiment::{Experiment, may_lock_memory, observed};
use crate::watch::Watch;

pub use bounds::{BoundFigures, BoundRow, FirstRelease, SetCosts};
pub(crate) use client::{CLIENT, client_main};
pub use files::FileRow;
pub(crate) use files::{SCHEDULE_NODE, schedule_node_main};
pub use hops::HopRow;
pub(crate) use look_up::{LOOK_UPS, look_ups_main};
pub use look_up::{SchedulerLookUps, TableLookUps};
pub use one_lane::OneLaneRow;
pub use outcome::SchedulingOutcome;
pub use overload::{DispatchOrder, FigureSource, FrameRow, LoadRow, OverloadFigures, OverloadRow};
pub use overrun::OverrunRow;
pub use plan::{SchedulingPart, SchedulingPlan};
pub(crate) use queue::{QUEUES, queues_main};
pub use queue::{QueueFigures, QueueRow};
pub use recompute::RecomputeRow;
pub(crate) use servers::{OVERRUN_SERVER, RELAY, overrun_server_main, relay_main};
pub use static_service::StaticServiceRow;
pub use threads::{CancellationRow, SegmentCostRow, SegmentFigures};

/// The experiment on scheduling.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Scheduling;

impl Experiment for Scheduling {
    const NAME: &'static str = "scheduling";
    const TITLE: &'static str = "Task sets: analysed, simulated, and run on lanes";

    type Plan = SchedulingPlan;
    type Findings = SchedulingOutcome;

    fn full() -> SchedulingPlan {
        SchedulingPlan::full()
    }

    fn short() -> SchedulingPlan {
        SchedulingPlan::short()
    }

    fn measure(plan: &SchedulingPlan) -> Result<SchedulingOutcome, LabError> {
        let memory_locked = may_lock_memory();
        let one_cpu = !Cpus::of_this_process()?.are_several();
        let (mut overload, mut look_ups, mut bounds) = (None, None, None);
        let mut queues = None;
        let (mut overruns, mut one_lane) = (Vec::new(), Vec::new());
        let (mut hops, mut files) = (Vec::new(), Vec::new());
        let (mut recomputed, mut segments, mut static_service) = (Vec::new(), None, Vec::new());
        let mut real_time = true;
        let (environment, ()) = observed(|| {
            let watch = Watch::start("scheduling", plan.length());
            if plan.has(SchedulingPart::Overload) {
                let mut figures = overload::simulated()?;
                real_time &= overload::measure(plan, memory_locked, &watch, &mut figures)?;
                overload = Some(figures);
            }
            if plan.has(SchedulingPart::LookUp) {
                watch.begin("look-ups");
                look_ups = Some(look_up::measure(plan.looked_up)?);
            }
            if plan.has(SchedulingPart::Queue) {
                watch.begin("queues of lanes");
                queues = Some(queue::measure(plan.queued)?);
            }
            if plan.has(SchedulingPart::Recompute) {
                watch.begin("computations of the scheduling service");
                recomputed = recompute::measure(plan.computations)?;
            }
            if plan.has(SchedulingPart::Segments) {
                segments = Some(threads::measure(plan, &watch)?);
            }
            if plan.has(SchedulingPart::Responses) {
                let mut figures = BoundFigures::default();
                real_time &= bounds::measure(plan, memory_locked, &watch, &mut figures)?;
                bounds = Some(figures);
            }
            if plan.has(SchedulingPart::StaticService) {
                watch.begin("the static scheduling service");
                static_service = static_service::measure(plan)?;
            }
            if plan.has(SchedulingPart::Overrun) {
                real_time &= overrun::measure(plan, memory_locked, &watch, &mut overruns)?;
            }
            if plan.has(SchedulingPart::Hops) {
                real_time &= hops::measure(plan, memory_locked, &watch, &mut hops)?;
            }
            if plan.has(SchedulingPart::OneLane) {
                real_time &= one_lane::measure(plan, memory_locked, &watch, &mut one_lane)?;
            }
            if plan.has(SchedulingPart::Files) {
                real_time &= files::measure(plan, memory_locked, &watch, &mut files)?;
            }
            Ok(())
        })?;
        Ok(SchedulingOutcome {
            plan: plan.clone(),
            environment,
            real_time,
            one_cpu,
            memory_locked,
            overload,
            look_ups,
            queues,
            bounds,
            overruns,
            recomputed,
            segments,
            static_service,
            hops,
            one_lane,
            files,
        })
    }
}
