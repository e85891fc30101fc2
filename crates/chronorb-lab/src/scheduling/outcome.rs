//! The figures of the experiment.

use serde::Serialize;
use serde_json::Value;

use super::bounds::{BoundFigures, BoundRow};
use super::files::FileRow;
use super::hops::HopRow;
use super::look_up::SchedulerLookUps;
use super::one_lane::OneLaneRow;
use super::overload::OverloadFigures;
use super::overrun::OverrunRow;
use super::plan::{SchedulingPart, SchedulingPlan};
use super::queue::QueueFigures;
use super::recompute::RecomputeRow;
use super::static_service::StaticServiceRow;
use super::threads::SegmentFigures;
use crate::environment::Environment;
use crate::experiment::{merge, plain_data};

/// The outcome of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct SchedulingOutcome {
    /// The plan of the run.
    pub plan: SchedulingPlan,
    /// The machine.
    pub environment: Environment,
    /// Whether all calling threads had real-time priorities.
    pub real_time: bool,
    /// Whether client and server shared a processor.
    pub one_cpu: bool,
    /// Whether client and server had their memory locked.
    pub memory_locked: bool,
    /// The overload, if it was run.
    #[serde(skip)]
    pub overload: Option<OverloadFigures>,
    /// The look-ups, if they were counted.
    #[serde(skip)]
    pub look_ups: Option<SchedulerLookUps>,
    /// The queues of lanes, if they were counted.
    #[serde(skip)]
    pub queues: Option<QueueFigures>,
    /// The response times, if they were measured.
    #[serde(skip)]
    pub bounds: Option<BoundFigures>,
    /// The frames with an overrun; none if they were not run.
    #[serde(skip)]
    pub overruns: Vec<OverrunRow>,
    /// The computations of the scheduling service; none if they were not timed.
    #[serde(skip)]
    pub recomputed: Vec<RecomputeRow>,
    /// The costs of distributable threads, if they were measured.
    #[serde(skip)]
    pub segments: Option<SegmentFigures>,
    /// The costs of the static scheduling service; none if they were not measured.
    #[serde(skip)]
    pub static_service: Vec<StaticServiceRow>,
    /// The frames over two calls; none if they were not run.
    #[serde(skip)]
    pub hops: Vec<HopRow>,
    /// The frames on one lane; none if they were not run.
    #[serde(skip)]
    pub one_lane: Vec<OneLaneRow>,
    /// The operations of schedule files; none if they were not run.
    #[serde(skip)]
    pub files: Vec<FileRow>,
}

impl SchedulingOutcome {
    /// Returns all rows for programs, with their parts.
    pub(super) fn rows(&self) -> Vec<Value> {
        let mut rows = Vec::new();
        let mut add = |part: SchedulingPart, kind: &str, values: Value| {
            for mut row in values.as_array().cloned().unwrap_or_default() {
                merge(&mut row, serde_json::json!({"part": part, "kind": kind}));
                rows.push(row);
            }
        };
        if let Some(overload) = &self.overload {
            add(
                SchedulingPart::Overload,
                "task",
                plain_data(&overload.tasks),
            );
            add(
                SchedulingPart::Overload,
                "frame",
                plain_data(&overload.frames),
            );
            add(
                SchedulingPart::Overload,
                "load",
                plain_data(&overload.loads),
            );
        }
        if let Some(look_ups) = &self.look_ups {
            add(
                SchedulingPart::LookUp,
                "table",
                plain_data(&look_ups.tables),
            );
        }
        if let Some(queues) = &self.queues {
            add(SchedulingPart::Queue, "queue", plain_data(&queues.rows));
        }
        if let Some(bounds) = &self.bounds {
            add(SchedulingPart::Responses, "task", plain_data(&bounds.tasks));
            add(SchedulingPart::Responses, "cost", plain_data(&bounds.costs));
        }
        add(
            SchedulingPart::Recompute,
            "computation",
            plain_data(&self.recomputed),
        );
        if let Some(segments) = &self.segments {
            add(
                SchedulingPart::Segments,
                "cost",
                plain_data(&segments.costs),
            );
            let rows = plain_data(&segments.cancellations);
            add(SchedulingPart::Segments, "cancellation", rows);
        }
        add(
            SchedulingPart::StaticService,
            "cost",
            plain_data(&self.static_service),
        );
        add(SchedulingPart::Overrun, "task", plain_data(&self.overruns));
        add(SchedulingPart::Hops, "frame", plain_data(&self.hops));
        add(SchedulingPart::OneLane, "frame", plain_data(&self.one_lane));
        add(SchedulingPart::Files, "operation", plain_data(&self.files));
        rows
    }
}

impl BoundFigures {
    /// Returns the names of the sets, in their order.
    pub(super) fn sets(&self) -> impl Iterator<Item = &str> {
        self.costs.iter().map(|costs| costs.set.as_str())
    }

    /// Returns the runs of a set by task, in their order.
    pub(super) fn by_task(&self, set: &str) -> Vec<Vec<&BoundRow>> {
        let mut tasks: Vec<Vec<&BoundRow>> = Vec::new();
        for row in self.tasks.iter().filter(|row| row.set == set) {
            match tasks.iter_mut().find(|of| of[0].task == row.task) {
                Some(rows) => rows.push(row),
                None => tasks.push(vec![row]),
            }
        }
        tasks
    }
}
