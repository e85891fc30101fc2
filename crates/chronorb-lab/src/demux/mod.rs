//! `chronorb lab demux`: the cost of finding the target of a request, stage by stage.
//!
//! The papers give 2 µs for reading a request's header, 2 for finding its POA, 3 for finding its
//! servant and 2 for finding its operation, and compare strategies for each. [`Demux`] measures the
//! same with this ORB: every stage, alone and all together, for one entry and for many, by each
//! strategy that can be configured. It runs in one process without a socket, and measures the
//! functions that a thread of a lane calls.

mod cache;
mod cases;
mod claims;
mod operations;
mod outcome;
mod plan;
mod population;
mod probe;
mod report;
mod scale;
mod schedule;

use crate::error::LabError;
use crate::experiment::{Experiment, observed};
use schedule::LookUpFigures;

pub use cache::Caches;
pub use outcome::{DemuxOutcome, LookUpRow, Stage};
pub use plan::DemuxPlan;
pub use scale::{BulkCost, MemoryUse, Scale};

/// The experiment on demultiplexing.
///
/// The bytes of each object and POA are counted if the program's allocator is
/// [`chronorb_rt::CountingAllocator`].
#[derive(Debug)]
pub struct Demux;

impl Experiment for Demux {
    const NAME: &'static str = "demux";
    const TITLE: &'static str = "Finding the target of a request";

    type Plan = DemuxPlan;
    type Findings = DemuxOutcome;

    fn full() -> DemuxPlan {
        DemuxPlan::full()
    }

    fn short() -> DemuxPlan {
        DemuxPlan::short()
    }

    fn measure(plan: &DemuxPlan) -> Result<DemuxOutcome, LabError> {
        let (environment, (scale, look_ups)) = observed(|| {
            // It comes first, so that memory that the look-ups leave behind is not counted.
            let scale = scale::measure(plan)?;
            Ok((scale, schedule::measure(plan)?))
        })?;
        let LookUpFigures {
            rows,
            hot,
            operation_bytes,
        } = look_ups;
        Ok(DemuxOutcome {
            plan: plan.clone(),
            caches: Caches::probe(),
            environment,
            rows,
            hot,
            scale,
            operation_bytes,
        })
    }
}
